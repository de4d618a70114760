//! References to sessions.

use crate::home::{Home, short};

const ID: &str = "01900000-0000-7000-8000-00000000beef";
const LIKE: &str = "01900000-0000-7000-8000-0000dead0001";

fn talk(home: &Home, id: &str, words: &str) {
    home.run(&["chat", "--session-id", id, "-p", words]).ok();
}

fn named(home: &Home, reference: &str) -> String {
    home.show(reference)["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_way_of_naming_works() {
    let home = &Home::new();
    talk(home, ID, "one");
    let newer = home.say("two");
    home.run(&["rename", ID, "The first talk"]).ok();
    let references = [
        ID,
        &ID.to_uppercase(),
        &short(ID),
        "beef",
        "BEEF",
        "0000beef",
        "-00000000beef",
        "0190",
        "01900000-0000",
        "The first talk",
        "@~1",
    ];
    for reference in references {
        let session = home.run(&["show", "--json", "--", reference]).ok().json();
        assert_eq!(session["id"], ID, "{reference}");
    }
    for reference in ["@", "latest", "@~0"] {
        assert_eq!(named(home, reference), newer, "{reference}");
    }
}

#[test]
fn what_names_several_is_ambiguous() {
    let home = &Home::new();
    talk(home, ID, "one");
    talk(home, LIKE, "two");
    let output = home.run(&["show", "0190"]).code(3);
    output
        .notes("'0190' names 2 sessions")
        .notes(&short(ID))
        .notes(&short(LIKE))
        .notes("one")
        .notes("two")
        .notes("just now");
    let error = home.run(&["--json", "rm", "-y", "0190"]).code(3).error();
    assert_eq!(error["kind"], "ambiguous");
    assert!(error["hint"].as_str().unwrap().contains(&short(ID)));
    assert_eq!(home.all().len(), 2);
    for id in [ID, LIKE] {
        home.run(&["rename", id, "Same title"]).ok();
    }
    home.run(&["show", "Same title"]).code(3).notes(&short(ID));
    // Sessions in the trash match only if no others do.
    home.run(&["rm", "-y", LIKE]).ok();
    assert_eq!(named(home, "Same title"), ID);
}

#[test]
fn what_names_nothing_is_not_found() {
    let home = &Home::new();
    talk(home, ID, "a talk about parsers");
    let check = |reference: &str| {
        let output = home.run(&["show", reference]).code(3);
        output.notes(reference).notes(&home.store_url());
    };
    for reference in [
        "nosuch",
        "bee",
        "eef",
        "a talk",
        "../../etc/passwd",
        "/etc/passwd",
    ] {
        check(reference);
    }
    let near = home.run(&["show", "a talk about parser"]).code(3);
    near.notes("did you mean").notes(&short(ID));
    check("@~5");
    check("01900000-0000-7000-8000-000000000000");
    let error = home.run(&["show", "nosuch", "--json"]).code(3).error();
    assert_eq!(error["kind"], "not_found");
}

#[test]
fn odd_references_are_wrong_usage() {
    let home = &Home::new();
    home.say("one");
    for reference in ["", " ", "@~x", "@~", "@~-1"] {
        home.run(&["show", reference]).code(2);
    }
}

#[test]
fn the_newest_is_the_newest_here_or_else_of_all() {
    let home = &Home::new();
    let here = home.say("here");
    let other = home.folder("other");
    home.prepare(&["chat", "-p", "there"])
        .folder(&other)
        .run()
        .ok();
    assert_eq!(named(home, "@"), here);
    let third = home.folder("third");
    let output = home
        .prepare(&["show", "@", "--json"])
        .folder(third)
        .run()
        .ok();
    assert_eq!(output.json()["title"], "there");
}

#[test]
fn in_an_empty_store_nothing_is_found() {
    let home = &Home::new();
    for reference in ["@", "latest", "abcd1234", "x"] {
        home.run(&["show", reference]).code(3);
    }
    home.run(&["-r", "-p", "hi"]).code(3);
    home.run(&["export"]).code(3);
    home.run(&["log"]).code(3);
}

#[test]
fn the_beginning_of_the_short_id_names_a_session() {
    let home = &Home::new();
    talk(home, "01900000-0000-7000-8000-1234a11a9ddc", "one");
    talk(home, LIKE, "two");
    for reference in [
        "a11a", "A11A", "a11a9", "a11a9ddc", "9ddc", "dead", "dead0001",
    ] {
        let title = home.show(reference)["title"].clone();
        let expected = if reference.starts_with('d') {
            "two"
        } else {
            "one"
        };
        assert_eq!(title, expected, "{reference}");
    }
    home.run(&["show", "a11a:2"]).ok().says("one");
    // Neither the middle of the id nor a shorter beginning.
    for reference in ["11a9", "a11", "4a11a9d"] {
        home.run(&["show", reference]).code(3);
    }
}

/// Creates a chat, and a team session that is newer.
fn a_team_and_a_chat(home: &Home) -> (String, String) {
    let chat = home.say("a chat");
    home.run(&["team", "init", "-q"]).ok();
    let output = home.run(&["team", "demo", "a team", "--output-format", "json"]);
    let team = output.ok().json()["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    (chat, team)
}

#[test]
fn the_newest_is_the_same_session_in_every_command() {
    let home = &Home::new();
    let (chat, team) = a_team_and_a_chat(home);
    for newest in ["@", "latest", "@~0"] {
        assert_eq!(named(home, newest), team);
        for flag in ["--resume", "--session"] {
            let args = [flag, newest, "who?", "--output-format", "json"];
            assert_eq!(home.run(&args).ok().json()["session_id"], *team, "{args:?}");
        }
    }
    let before = ["--resume", "@~1", "-p", "x", "--output-format", "json"];
    assert_eq!(home.run(&before).ok().json()["session_id"], *chat);
    // Now the chat is the newest, and is not a team session.
    assert_eq!(named(home, "@"), chat);
    let output = home.run(&["team", "demo", "--resume", "@", "x"]).code(2);
    let words = format!(
        "session {} is a chat session, not a team session",
        short(&chat)
    );
    output
        .notes(&words)
        .notes(&format!("--resume {}`", short(&chat)));
    let pair = home.run(&["pair", "--resume", &team, "x"]).code(2);
    pair.notes("is a team session of the team")
        .notes("not a pair session");
    let chatted = home.run(&["chat", "--resume", &team, "-p", "x"]).code(2);
    chatted
        .notes("not a chat session")
        .notes(&format!("--resume {}`", short(&team)));
    // Without a reference to a session, the kind of the command applies.
    let args = ["team", "demo", "--resume", "x y", "--output-format", "json"];
    assert_eq!(home.run(&args).ok().json()["session_id"], *team);
    let args = ["chat", "-c", "-p", "x", "--output-format", "json"];
    assert_eq!(home.run(&args).ok().json()["session_id"], *chat);
    home.run(&["rm", "-y", "@"]).ok();
    assert_eq!(named(home, "@"), team);
}

#[test]
fn so_many_before_the_newest_never_leaves_the_project() {
    let home = &Home::new();
    for words in ["one", "two", "three"] {
        let prepared = home.prepare(&["chat", "-p", words]);
        prepared.folder(home.folder("other")).run().ok();
    }
    home.say("here");
    home.run(&["show", "@~2"]).code(3).notes("'@~2'");
    home.run(&["show", "@"]).ok().says("here");
}

#[test]
fn only_what_is_near_is_offered() {
    let home = &Home::new();
    let id = home.say("hi");
    for reference in ["%", "../../etc/passwd", "zz"] {
        let output = home.run(&["show", reference]).code(3);
        output.lacks("did you mean").notes("list --all`");
    }
    let mut wrong = short(&id);
    wrong.replace_range(3..4, "z");
    let output = home.run(&["show", &wrong]).code(3);
    output.notes("did you mean").notes(&short(&id));
}

#[test]
fn an_entry_is_not_taken_for_a_session() {
    let home = &Home::new();
    let id = home.say("one");
    for args in [
        &["rm", "-y", "@:2"][..],
        &["rename", "@:2", "x"],
        &["--resume", "@:2", "-p", "x"],
    ] {
        let output = home.run(args).code(2);
        output
            .notes("'@:2' is entry 2")
            .notes(&format!("fork {}:2`", short(&id)));
    }
    assert_eq!(home.entries(&id), 3);
}

#[test]
fn an_entry_of_a_session_before_the_newest_is_named() {
    let home = &Home::new();
    let older = home.say("echo older");
    home.say("echo newer");
    let fork = home.run(&["fork", "@~1:2", "--json"]).ok().json();
    assert_eq!(fork["parent"]["id"], older.as_str());
    assert_eq!(fork["parent"]["seq"], 2);
    home.run(&["rm", "-y", "@~2:2"])
        .code(2)
        .notes("'@~2:2' is entry 2");
}
