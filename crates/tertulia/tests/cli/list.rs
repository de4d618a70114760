//! `list`.

use serde_json::{Value, json};

use crate::home::{Home, both, keys, short};

fn ids(listing: &Value) -> Vec<String> {
    let sessions = listing["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect()
}

fn listed(home: &Home, flags: &[&str]) -> Vec<String> {
    let args = [&["list", "--json"], flags].concat();
    ids(&home.run(&args).ok().json())
}

#[test]
fn an_empty_home_lists_nothing() {
    let home = &Home::new();
    let output = home.run(&["list"]).ok();
    assert_eq!(output.stdout, "");
    let document = home.run(&["list", "--json"]).ok().json();
    assert_eq!(
        document,
        json!({ "sessions": [], "hidden": 0, "next": null })
    );
}

#[test]
fn the_json_shape_is_the_promised_one() {
    let home = &Home::new();
    let id = home.say("count to 3");
    home.run(&["tag", &id, "+b", "+a"]).ok();
    let fork = home.run(&["fork", &id]).ok().stdout.trim().to_owned();
    let document = home.run(&["ls", "--json"]).ok().json();
    assert_eq!(keys(&document), ["hidden", "next", "sessions"]);
    assert_eq!(ids(&document), [fork, id.clone()]);
    let expected = [
        "agents",
        "created_at",
        "cwd",
        "id",
        "kind",
        "messages",
        "open",
        "parent",
        "project",
        "status",
        "tags",
        "team",
        "title",
        "tokens",
        "updated_at",
    ];
    for session in document["sessions"].as_array().unwrap() {
        assert_eq!(keys(session), expected);
    }
    let session = &document["sessions"][1];
    let project = home.project().display().to_string();
    assert_eq!(session["kind"], "chat");
    assert_eq!(session["title"], "count to 3");
    assert_eq!(session["team"], Value::Null);
    assert_eq!(session["project"], format!("dir:{project}"));
    assert_eq!(session["cwd"], project);
    assert_eq!(session["tags"], json!(["a", "b"]));
    assert_eq!(session["messages"], 2);
    assert_eq!(session["tokens"], json!({ "input": 3, "output": 3 }));
    assert_eq!(session["agents"], json!(["demo"]));
    assert_eq!(session["parent"], Value::Null);
    assert_eq!(session["status"], "paused");
    assert_eq!(session["open"], false);
    let parent = &document["sessions"][0]["parent"];
    assert_eq!(parent, &json!({ "id": id, "seq": 4, "relation": "fork" }));
}

#[test]
fn times_have_an_offset() {
    let home = Home::new();
    home.say("one");
    let session = &home.all()[0];
    for key in ["created_at", "updated_at"] {
        let text = session[key].as_str().unwrap();
        assert!(text.parse::<jiff::Timestamp>().is_ok(), "{text}");
    }
}

#[test]
fn the_newest_stands_first_for_people_too() {
    let home = &Home::new();
    let (one, two) = (home.say("first talk"), home.say("second talk"));
    let text = home.run(&["list"]).ok().stdout;
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words} in {text}"))
    };
    assert!(at(&short(&two)) < at(&short(&one)));
    assert!(at("second talk") < at("first talk"));
    home.say_in(&one, "again");
    assert_eq!(listed(home, &[]), [one.clone(), two.clone()]);
    // Renaming does not count as activity.
    home.run(&["rename", &two, "Other"]).ok();
    assert_eq!(listed(home, &[]), [one, two]);
}

#[test]
fn filters_choose() {
    let home = &Home::new();
    let (one, two) = (home.say("one"), home.say("two"));
    home.run(&["tag", &one, "+release"]).ok();
    let (all, none) = (vec![two.clone(), one.clone()], Vec::<String>::new());
    let check = |flags: &[&str], expected: &Vec<String>| {
        assert_eq!(&listed(home, flags), expected, "{flags:?}");
    };
    check(&["--tag", "release"], &vec![one.clone()]);
    check(&["--tag", "relea"], &none);
    check(&["--kind", "chat"], &all);
    check(&["--kind", "team"], &none);
    check(&["--kind", "pair"], &none);
    check(&["--team", "nobody"], &none);
    check(&["--since", "1h"], &all);
    check(&["--since", "2100-01-01"], &none);
    check(&["--until", "1h"], &none);
    check(&["--until", "2100-01-01"], &all);
    check(
        &["--since", "2000-01-01T00:00:00Z", "--until", "2001-01-01"],
        &none,
    );
    check(&["--limit", "1"], &vec![two.clone()]);
    check(&["-n", "1"], &vec![two.clone()]);
    let moment = home.show(&two)["updated_at"].as_str().unwrap().to_owned();
    check(&["--since", &moment], &vec![two.clone()]);
    check(&["--until", &moment], &vec![one]);
    check(&["--trash"], &none);
    home.run(&["rm", "-y", &two]).ok();
    check(&["--trash"], &vec![two]);
}

#[test]
fn pages_follow_each_other_without_gaps() {
    let home = &Home::new();
    let mut all: Vec<String> = (0..7).map(|n| home.say(&format!("talk {n}"))).collect();
    all.reverse();
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    let mut pages = 0;
    loop {
        let mut args = vec!["list", "--json", "--limit", "3"];
        if let Some(cursor) = &cursor {
            args.extend(["--cursor", cursor]);
        }
        let page = home.run(&args).ok().json();
        seen.extend(ids(&page));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!((seen, pages), (all, 3));
    home.run(&["list", "--limit", "3"]).ok().notes("--cursor");
    home.run(&["list", "--cursor", "nonsense"])
        .code(2)
        .notes("nonsense");
}

#[test]
fn a_page_of_nothing_does_not_go_on_for_ever() {
    let home = &Home::new();
    home.say("one");
    let output = home.run(&["list", "--json", "--limit", "0"]);
    if output.status.success() {
        let page = output.json();
        assert_eq!((ids(&page).len(), &page["next"]), (0, &Value::Null));
    } else {
        output.code(2);
    }
}

#[test]
fn what_is_hidden_is_counted() {
    let home = &Home::new();
    let id = home.say("one");
    home.say("two");
    let other = home.folder("other");
    home.prepare(&["chat", "-p", "three"])
        .folder(&other)
        .run()
        .ok();
    home.run(&["rm", "-y", &id]).ok();
    let document = home.run(&["list", "--json"]).ok().json();
    assert_eq!((ids(&document).len(), &document["hidden"]), (1, &json!(2)));
    let output = home.run(&["list"]).ok();
    output
        .notes("1 in other projects (--all)")
        .notes("1 in the trash (--trash)");
    let document = home.run(&["list", "--all", "--json"]).ok().json();
    assert_eq!((ids(&document).len(), &document["hidden"]), (2, &json!(1)));
    home.run(&["list", "-q"]).ok().lacks("Hidden");
}

#[test]
fn a_project_is_its_repository_wherever_it_lies() {
    let home = &Home::new();
    let remote = "[remote \"origin\"]\n\turl = https://user:hunter2@example.org/team/talk.git\n";
    for clone in ["a", "b/deep"] {
        let folder = home.folder(clone);
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        std::fs::write(folder.join(".git/config"), remote).unwrap();
        let below = home.folder(&format!("{clone}/src"));
        home.prepare(&["chat", "-p", "hello"])
            .folder(below)
            .run()
            .ok();
    }
    let prepared = home
        .prepare(&["list", "--json"])
        .folder(home.path().join("a"));
    let output = prepared.run().ok();
    let document = output.json();
    assert_eq!(ids(&document).len(), 2);
    assert_eq!(
        document["sessions"][0]["project"],
        "git:example.org/team/talk"
    );
    output.lacks("hunter2");
}

#[test]
fn automatic_tags_are_an_option_and_are_never_written() {
    let home = Home::new();
    home.say("hello");
    home.run(&[
        "chat",
        "--approve",
        "all",
        "-p",
        "use shell {\"command\": \"true\"}",
    ])
    .ok();
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    home.run(&["tag", &id, "+mine"]).ok();
    let listed = |args: &[&str]| home.run(&[&["list"], args].concat()).ok();
    listed(&[]).says("#mine").lacks("~shell");
    assert!(home.all()[0].get("auto_tags").is_none());
    listed(&["--tag", "shell"]).notes("No sessions");
    home.settings("auto_tags = true\n");
    listed(&[]).says("#mine ~shell");
    let all = home.all();
    assert_eq!(all[0]["auto_tags"], json!(["shell"]));
    assert_eq!(all[0]["tags"], json!(["mine"]));
    assert_eq!(all[1]["auto_tags"], json!([]));
    let tagged = listed(&["--tag", "shell", "--json"]).json();
    assert_eq!(tagged["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(home.show(&id)["tags"], json!(["mine"]));
    home.run(&["tag", &id, "-shell"])
        .ok()
        .notes("~shell stays: it is automatic");
    home.run(&["tag", &id, "-other"]).ok().lacks("automatic");
    home.run(&["doctor"]).ok();
}

#[test]
fn sessions_of_an_author() {
    both(|home| {
        home.settings("author = \"ana\"\n");
        let mine = home.say("echo mine");
        home.settings("author = \"ben\"\n");
        let theirs = home.say("echo theirs");
        home.settings("author = \"carla\"\n");
        home.say_in(&theirs, "echo more");
        let listed = |author: &str| -> Vec<String> {
            let document = home
                .run(&["list", "--author", author, "--json"])
                .ok()
                .json();
            let rows = document["sessions"].as_array().unwrap();
            rows.iter()
                .map(|row| row["id"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(listed("ana"), [mine.as_str()]);
        assert_eq!(listed("ben"), [theirs.as_str()]);
        assert_eq!(listed("carla"), [theirs]);
        assert!(listed("dora").is_empty());
        let shown = home.show(&mine);
        let entry = &shown["entries"][1];
        assert_eq!(entry["author"], "ana");
        assert!(entry["host"].as_str().is_some_and(|host| !host.is_empty()));
        let found = home.run(&["search", "echo", "--author", "ana", "--json"]);
        assert_eq!(found.ok().json()["total"], 1);
    });
}
