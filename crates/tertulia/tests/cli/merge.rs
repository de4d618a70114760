//! `merge`.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, both, messages, short, until};

/// Two sessions that share their first turn.
fn forks(home: &Home) -> (String, String) {
    let one = home.say("echo common");
    let other = home.run(&["fork", &one, "-q"]).ok().stdout;
    (one, other.trim().to_owned())
}

/// The same, each with a turn of its own.
fn diverged(home: &Home) -> (String, String) {
    let (one, other) = forks(home);
    home.say_in(&one, "echo ours");
    home.say_in(&other, "echo theirs");
    (one, other)
}

fn merge(home: &Home, args: &[&str]) -> String {
    let output = home.run(&[&["merge"], args].concat()).ok();
    output.stdout.trim().to_owned()
}

#[test]
fn a_merge_has_the_common_part_and_then_both_sides() {
    both(|home| {
        let (one, other) = diverged(home);
        home.say_in(&one, "use directory_list {\"path\": \".\"}");
        let output = home.run(&["merge", &one, &other]).ok();
        let merged = output.stdout.trim().to_owned();
        output.notes("Merged").notes("Resume: tertulia");
        let session = home.show(&merged);
        let parent = json!({ "id": one, "seq": 9, "relation": "merge" });
        assert_eq!(session["parent"], parent);
        let second = json!({ "id": other, "seq": 6, "relation": "merge" });
        assert_eq!(session["merged"], second);
        assert_eq!(session["status"], "paused");
        assert_eq!(session["title"], "echo common (merge)");
        let said = home.said(&merged);
        assert_eq!(
            said[..6],
            [
                "echo common",
                "common",
                "echo ours",
                "ours",
                "echo theirs",
                "theirs"
            ]
        );
        assert_eq!(said.len(), 10);
        // What both have is shared, and copies keep their ids.
        let (ours, entries) = (
            home.show(&one),
            session["entries"].as_array().unwrap().clone(),
        );
        for shared in 0..3 {
            assert_eq!(entries[shared], ours["entries"][shared]);
        }
        assert_eq!(entries[3]["type"], "forked");
        assert_eq!(entries[4]["type"], "merged");
        assert_eq!(entries[4]["ours"]["seq"], 9);
        let copies = messages(&session);
        assert_eq!(copies[3]["id"], messages(&ours)[3]["id"]);
        assert_eq!(
            copies[3]["usage_id"], copies[3]["id"],
            "its tokens are counted once"
        );
        assert!(copies[2].get("usage_id").is_none());
        home.say_in(&merged, "echo and on");
        assert_eq!(home.said(&merged).len(), 12);
        assert_eq!(home.said(&one).len(), 8, "the original stays as it is");
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn the_order_is_chosen() {
    let home = &Home::new();
    let (one, other) = diverged(home);
    home.say_in(&one, "echo ours again");
    let humans = |merged: &str| -> Vec<String> {
        let said = home.said(merged).into_iter();
        said.filter(|text| text.starts_with("echo ")).collect()
    };
    let by_time = merge(home, &[&one, &other]);
    assert_eq!(
        humans(&by_time),
        ["echo common", "echo ours", "echo theirs", "echo ours again"]
    );
    home.run(&["rm", "-y", &by_time]).ok();
    let ours = merge(
        home,
        &[&one, &other, "--order", "ours", "--title", "A title"],
    );
    assert_eq!(
        humans(&ours),
        ["echo common", "echo ours", "echo ours again", "echo theirs"]
    );
    assert_eq!(home.show(&ours)["title"], "A title");
    home.run(&["rm", "-y", &ours]).ok();
    let theirs = merge(home, &[&one, &other, "--order", "theirs"]);
    assert_eq!(
        humans(&theirs),
        ["echo common", "echo theirs", "echo ours", "echo ours again"]
    );
}

#[test]
fn what_is_merged_is_not_merged_again() {
    let home = &Home::new();
    let (one, other) = forks(home);
    let nothing = |args: &[&str], existing: &str, words: &str| {
        let before = home.all().len();
        let output = home.run(&[&["merge"], args].concat()).ok();
        assert_eq!(output.stdout.trim(), existing);
        output.notes("Nothing to merge: ").notes(words);
        let document = home.run(&[&["merge", "--json"], args].concat()).ok().json();
        assert_eq!(document["merged"], false);
        assert_eq!(document["session"]["id"], existing);
        assert_eq!(document["messages"], 0);
        assert_eq!(home.all().len(), before);
    };
    nothing(&[&one, &one], &one, "the same session");
    // Forked, then merged without changes: the fork adds nothing.
    nothing(&[&one, &other], &one, "has all messages of");
    home.say_in(&other, "echo theirs");
    nothing(&[&one, &other], &other, "has all messages of");
    home.say_in(&one, "echo ours");
    let merged = merge(home, &[&one, &other]);
    for args in [[one.as_str(), &other], [&other, &one]] {
        nothing(&args, &merged, "is a merge of both");
    }
    nothing(&[&merged, &one], &merged, "has all messages of");
    nothing(&[&other, &merged], &merged, "has all messages of");
    // What is new since then is merged once, without doubling the rest.
    home.say_in(&one, "echo later");
    let again = merge(home, &[&merged, &one]);
    let mut said = home.said(&again);
    assert_eq!(said.len(), 8);
    said.dedup();
    assert_eq!(said.len(), 8);
    home.run(&["doctor"]).ok();
}

#[test]
fn a_dry_run_writes_nothing() {
    let home = &Home::new();
    let (one, other) = diverged(home);
    let output = home.run(&["merge", &one, &other, "--dry-run"]).ok();
    assert_eq!(output.stdout, "");
    output
        .notes("Would merge 2 messages of")
        .notes("3 entries in common");
    let document = home.run(&["merge", &one, &other, "--dry-run", "--json"]);
    let document = document.ok().json();
    assert_eq!(document["dry_run"], true);
    assert_eq!(
        (&document["messages"], &document["session"]),
        (&json!(4), &Value::Null)
    );
    assert_eq!(home.all().len(), 2);
}

#[test]
fn sessions_that_share_nothing_are_merged_into_a_new_one() {
    both(|home| {
        let (one, other) = (home.say("echo one"), home.say("echo other"));
        let document = home.run(&["merge", &one, &other, "--json"]).ok().json();
        assert_eq!(
            (&document["merged"], &document["messages"]),
            (&json!(true), &json!(4))
        );
        assert_eq!(document["ours"]["id"], one.as_str());
        assert_eq!(document["theirs"]["seq"], 3);
        let merged = document["session"]["id"].as_str().unwrap();
        assert_eq!(document["session"]["parent"]["relation"], "merge");
        assert_eq!(document["session"]["project"], home.show(&one)["project"]);
        assert_eq!(
            home.said(merged),
            ["echo one", "one", "echo other", "other"]
        );
        assert_eq!(home.show(merged)["entries"][0]["type"], "created");
        home.say_in(merged, "echo on");
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn tags_of_both_are_kept() {
    let home = &Home::new();
    let (one, other) = diverged(home);
    home.run(&["tag", &one, "+a"]).ok();
    home.run(&["tag", &other, "+b"]).ok();
    let merged = merge(home, &[&one, &other]);
    assert_eq!(home.show(&merged)["tags"], json!(["a", "b"]));
}

#[test]
fn the_family_shows_both_parents() {
    let home = &Home::new();
    let (one, other) = diverged(home);
    let merged = merge(home, &[&one, &other]);
    let text = home.run(&["log", "--graph", &one]).ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[2].starts_with(&format!("│ └─◇ {}", short(&merged))),
        "{text}"
    );
    assert!(
        lines[2].contains(&format!("shown below {}", short(&one))),
        "{text}"
    );
    let parents = format!("merge of {} at 5 and {} at 6", short(&one), short(&other));
    assert!(
        lines[3].starts_with(&format!("└─◆ {}", short(&merged))),
        "{text}"
    );
    assert!(lines[3].contains(&parents), "{text}");
    home.run(&["show", &merged]).ok().says(&format!(
        "merge of {}:5 and {}:6",
        short(&one),
        short(&other)
    ));
    let document = home.run(&["log", "--json", &other]).ok().json();
    let forks = document["forks"].as_array().unwrap();
    assert_eq!(forks[0]["forks"][0]["repeated"], true);
    assert_eq!(forks[1]["id"], merged.as_str());
    // Sessions without a common entry are two trees, whichever of them is asked for.
    let stranger = home.say("echo stranger");
    let joint = merge(home, &[&merged, &stranger]);
    for reference in [&one, &stranger, &joint] {
        let text = home.run(&["log", "--graph", reference]).ok().stdout;
        assert_eq!(text.matches(&short(&joint)).count(), 2, "{text}");
        assert!(
            text.contains(&format!("○ {}", short(&stranger))) || reference == &stranger,
            "{text}"
        );
        assert!(text.lines().count() == 7, "{text}");
    }
}

#[test]
fn an_agent_summarises_both_sides() {
    let home = &Home::new();
    home.script_agent("sum", "grep -c . >/dev/null; echo both sides in short");
    home.script_agent("broken", "echo no >&2; exit 3");
    home.script_agent("reader", "cat > ../prompt; echo read");
    let (one, other) = diverged(home);
    let merged = merge(home, &[&one, &other, "--summarise", "sum"]);
    let last = messages(&home.show(&merged)).pop().unwrap();
    assert_eq!(
        last["content"].as_str().unwrap().trim(),
        "both sides in short"
    );
    assert_eq!(
        (&last["speaker"]["name"], &last["role"]),
        (&json!("sum"), &json!("assistant"))
    );
    home.run(&["rm", "-y", &merged]).ok();
    let merged = merge(home, &[&one, &other, "--summarize", "reader"]);
    let prompt = fs::read_to_string(home.path().join("prompt")).unwrap();
    assert!(
        prompt.contains("# First side") && prompt.contains("theirs"),
        "{prompt}"
    );
    home.run(&["rm", "-y", &merged]).ok();
    // The merge stands without its summary.
    let output = home
        .run(&["merge", &one, &other, "--summarise", "broken"])
        .code(6);
    let merged = output.stdout.trim().to_owned();
    output.notes("only the summary is missing");
    assert_eq!(home.said(&merged).len(), 6);
    home.run(&["rm", "-y", &merged]).ok();
    let before = home.all().len();
    home.run(&["merge", &one, &other, "--summarise", "nosuch"])
        .code(3)
        .notes("there is no agent 'nosuch'");
    assert_eq!(home.all().len(), before);
}

#[test]
fn wrong_input_makes_nothing() {
    let home = &Home::new();
    let (one, other) = diverged(home);
    home.run(&["merge", &one, "nosuch"]).code(3);
    home.run(&["merge", "nosuch", &one]).code(3);
    home.run(&["merge", &one]).code(2);
    home.run(&["merge", &one, &other, "--order", "random"])
        .code(2);
    home.run(&["merge", &one, &other, "--title", " "]).code(2);
    home.run(&["merge", &one, &format!("{other}:2")]).code(2);
    assert_eq!(home.all().len(), 2);
}

fn team(home: &Home, file: &str, name: &str) {
    let member = |name: &str, kind: &str| {
        json!({
            "name": name, "displayName": name, "role": "r", "type": kind, "agentType": "demo",
            "baseDir": ".", "systemInstruction": "",
        })
    };
    let members = [
        member("me", "human"),
        member("ada", "ai"),
        member("ben", "ai"),
    ];
    let team = json!({
        "schemaVersion": "1.2",
        "team": { "name": name, "description": "d", "members": members },
    });
    fs::write(home.project().join(file), team.to_string()).unwrap();
}

fn team_turn(home: &Home, args: &[&str]) -> String {
    let args = [&["team"], args, &["--output-format", "json"]].concat();
    let document = home.run(&args).ok().json();
    document["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn only_sessions_of_one_kind_and_team_are_merged() {
    let home = &Home::new();
    team(home, "t.json", "birds");
    team(home, "u.json", "bees");
    let chat = home.say("echo hello");
    let birds = team_turn(home, &["t.json", "[NEXT: ada] [TEAM_TASK: nest] hello"]);
    let bees = team_turn(home, &["u.json", "[NEXT: ada] hello"]);
    home.run(&["merge", &chat, &birds])
        .code(2)
        .notes("only sessions of one kind can be merged");
    home.run(&["merge", &birds, &bees])
        .code(2)
        .notes("'birds'")
        .notes("'bees'");
    assert_eq!(home.all().len(), 3);
    let fork = home.run(&["fork", &birds, "-q"]).ok().stdout;
    let fork = fork.trim();
    team_turn(
        home,
        &["t.json", "--resume", &birds, "[NEXT: ada] from ours"],
    );
    let asked = "[NEXT: ben] [TEAM_TASK: eggs] from theirs";
    team_turn(home, &["t.json", "--resume", fork, asked]);
    let merged = merge(home, &[&birds, fork]);
    let session = home.show(&merged);
    assert_eq!(
        (&session["team"], &session["status"]),
        (&json!("birds"), &json!("paused"))
    );
    let last = session["entries"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["type"], "seated", "the queue is empty");
    let resumed = ["team", "t.json", "--resume", &merged, "[NEXT: ada] and on"];
    let output = home.run(&resumed).ok().lacks("still queued");
    output.lacks("no longer in the team");
    assert_eq!(home.said(&merged).len(), messages(&session).len() + 2);
    let text = home.run(&["export", &merged, "--format", "snapshot"]).ok();
    assert_eq!(text.json()["context"]["teamTask"], "eggs");
}

#[test]
fn tasks_of_pairs_stay_whole() {
    let home = &Home::new();
    let pair = |args: &[&str]| {
        let pair = ["pair", "--instructor", "demo", "--worker", "demo"];
        let args = [&pair[..], &["--output-format", "json"], args].concat();
        let document = home.run(&args).ok().json();
        document["session_id"].as_str().unwrap().to_owned()
    };
    let one = pair(&["-r", "9", "echo first"]);
    let other = home.run(&["fork", &one, "-q"]).ok().stdout;
    let other = other.trim();
    pair(&["--resume", &one, "echo ours"]);
    pair(&["--resume", other, "echo theirs"]);
    let (ours, theirs) = (home.show(&one), home.show(other));
    let merged = merge(home, &[&one, other]);
    let session = home.show(&merged);
    let count = |session: &Value| messages(session).len();
    let shared = session["entries"].as_array().unwrap().iter();
    let shared = shared.take_while(|entry| entry["type"] != "forked");
    let shared = shared.filter(|entry| entry["type"] == "message").count();
    assert_eq!(count(&session), count(&ours) + count(&theirs) - shared);
    let remaining = |session: &Value| session["pair"]["remaining"].as_u64().unwrap();
    assert_eq!(
        remaining(&session),
        remaining(&ours).min(remaining(&theirs))
    );
    assert_eq!(session["status"], "paused");
    let rounds = |session: &Value| session["pair"]["round"].as_u64().unwrap();
    assert!(rounds(&session) > rounds(&ours));
    pair(&["--resume", &merged, "echo and on"]);
    home.run(&["doctor"]).ok();
}

/// A turn that another program is running is left out, as in a fork.
#[test]
fn a_running_turn_is_not_merged() {
    let home = &Home::new();
    home.script_agent("slow", "sleep 60");
    let (one, other) = diverged(home);
    let mut command = home
        .prepare(&["chat", "-r", &other, "--agent", "slow", "-p", "unanswered"])
        .command();
    let mut child = command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the prompt is saved", || {
        home.said(&other)
            .contains(&"unanswered".to_owned())
            .then_some(())
    });
    let output = home.run(&["merge", &one, &other]).ok();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = home.said(output.stdout.trim());
    assert!(!said.contains(&"unanswered".to_owned()) && said.contains(&"theirs".to_owned()));
    output.notes("is being answered elsewhere");
}
