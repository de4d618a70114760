//! `replay`.

mod agents;
mod ending;
mod several_agents;
mod wrong_input;

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, keys, short};

/// Records three turns with the demo agent, the second with a tool that reads a file. The file is
/// gone afterwards.
fn recorded(home: &Home) -> String {
    let file = home.project().join("kept");
    fs::write(&file, "the words in it\n").unwrap();
    let id = home.say("echo one");
    home.say_in(&id, r#"use file_read {"path":"kept"}"#);
    home.say_in(&id, "count to 5");
    fs::remove_file(file).unwrap();
    id
}

/// Replays a session and returns its object of the document.
fn replayed(home: &Home, args: &[&str]) -> Value {
    let args = [&["replay", "--json"], args].concat();
    let mut document = home.run(&args).ok().json();
    let replays = document["replays"].as_array_mut().unwrap();
    assert_eq!(replays.len(), 1);
    replays.remove(0)
}

fn results(replay: &Value) -> Vec<&str> {
    let turns = replay["turns"].as_array().unwrap().iter();
    turns.map(|turn| turn["result"].as_str().unwrap()).collect()
}

#[test]
fn the_same_agent_does_not_diverge() {
    let home = &Home::new();
    let id = recorded(home);
    home.run(&["rename", &id, "First", "try"]).ok();
    let text = home.run(&[
        "replay",
        &id,
        "--with-agent",
        "demo",
        "--fail-on-divergence",
    ]);
    let text = text
        .ok()
        .says("No divergence in 3 turns")
        .notes("turn 2 of 3: use file_read")
        .notes("→ same");
    let replay = home.show("@");
    let again = replay["id"].as_str().unwrap();
    let text = text.notes(&format!("tertulia show {}", short(again)));
    assert_eq!(text.stdout.matches("same").count(), 3, "{text:#?}");
    assert_eq!(replay["title"], "First try (replay with demo)");
    let original = home.show(&id);
    assert_eq!(replay["project"], original["project"]);
    assert_eq!(
        replay["parent"],
        json!({ "id": id, "seq": 10, "relation": "replay" })
    );
    let kinds = replay["entries"].as_array().unwrap().iter();
    let kinds: Vec<&str> = kinds.map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["created", "replayed", "message"]);
    assert_eq!(home.said(again), home.said(&id));
    let graph = home.run(&["log", &id, "--graph"]).ok().stdout;
    let line = format!(
        "└─○ {}  First try (replay with demo)  replay at 10 · 8 messages",
        short(again)
    );
    assert!(graph.lines().nth(1).unwrap().starts_with(&line), "{graph}");
    home.run(&["doctor"]).ok();
}

#[test]
fn the_document() {
    let home = &Home::new();
    let id = recorded(home);
    let replay = replayed(home, &[&id, "--with-agent", "demo", "--to", "2"]);
    assert_eq!(
        keys(&replay),
        [
            "agent",
            "cost",
            "error",
            "first_divergence",
            "model",
            "of",
            "session",
            "status",
            "tokens",
            "turns"
        ]
    );
    assert_eq!(replay["of"], id.as_str());
    assert_eq!(replay["session"], home.show("@")["id"]);
    assert_eq!(
        (&replay["agent"], &replay["model"]),
        (&json!("demo"), &json!("demo-1"))
    );
    assert_eq!(
        replay["turns"][0],
        json!({
            "prompt": "echo one", "tools": "same", "text": "same", "similarity": 1.0, "result": "same"
        })
    );
    assert_eq!(results(&replay), ["same", "same"]);
    assert_eq!(replay["first_divergence"], Value::Null);
    assert_eq!(replay["tokens"]["original"], replay["tokens"]["replay"]);
    // The tokens of the turns that were played, not of the whole session.
    let all = home.show(&id)["tokens"]["input"].as_u64().unwrap();
    let played = replay["tokens"]["original"]["input"].as_u64().unwrap();
    assert!(0 < played && played < all, "{played} of {all}");
    assert_eq!(replay["cost"], json!({ "original": null, "replay": null }));
    assert_eq!(replay["status"], "completed");
    assert_eq!(home.said("@").len(), 6);
}

#[test]
fn costs_are_compared_at_prices_of_today() {
    let home = &Home::new();
    let id = recorded(home);
    home.settings("[prices.\"demo*\"]\ninput = 500000\noutput = 1000000\n");
    let replay = replayed(home, &[&id, "--with-agent", "demo", "--to", "2"]);
    let spent = |what: &str| replay["tokens"]["original"][what].as_u64().unwrap();
    let expected = (spent("input") + 2 * spent("output")) as f64 / 2.0;
    assert_eq!(
        replay["cost"],
        json!({ "original": expected, "replay": expected })
    );
    let shown = home.run(&["replay", &id, "--with-agent", "demo", "--to", "2"]);
    let line = format!("Cost at today's prices: ${expected:.2} → ${expected:.2}");
    assert!(shown.ok().stdout.contains(&line), "{line}");
}

#[test]
fn another_agent_diverges() {
    let home = &Home::new();
    home.script_agent("other", "tail -n1 | sed 's/.*echo one.*/one/'");
    let id = recorded(home);
    let args = ["replay", &id, "--with-agent", "other"];
    let output = home.run(&args).ok();
    output
        .says("First divergence: turn 2, other tools")
        .says("original: file_read kept")
        .says("replay:   no tool call")
        .says("replay unknown");
    let flag = ["--fail-on-divergence", "--json"];
    let document = home.run(&[&args[..], &flag].concat()).code(1).json();
    assert_eq!(document["diverged"], 1);
    let replay = &document["replays"][0];
    assert_eq!(results(replay), ["same", "other_tools", "other_text"]);
    let first = &replay["first_divergence"];
    assert_eq!(
        (&first["turn"], &first["kind"]),
        (&json!(2), &json!("other_tools"))
    );
    assert_eq!(
        first["ours"]["tools"],
        json!([{ "name": "file_read", "arguments": { "path": "kept" } }])
    );
    assert_eq!(first["theirs"]["tools"], json!([]));
    assert_eq!(replay["turns"][1]["tools"], "other");
    // Up to the divergence, there is none.
    let args = [&args[..], &["--to", "1", "--fail-on-divergence"]].concat();
    home.run(&args).ok().says("No divergence in 1 turn\n");
}

#[test]
fn both_sides_of_another_text_are_shown() {
    let home = &Home::new();
    home.script_agent("other", "printf 'first line\\nsecond other line\\n'");
    home.script_agent("same", "printf 'first line\\nsecond line\\n\\n\\n'");
    let args = ["chat", "--agent", "same", "-p", "hi"];
    home.run(&args).ok();
    let output = home.run(&["replay", "@", "--with-agent", "other"]).ok();
    output
        .says("First divergence: turn 1, other text (similarity 0.88)")
        .says("original: second line\n")
        .says("replay:   second other line\n");
}

#[test]
fn a_dry_run_starts_nothing() {
    let home = &Home::new();
    let marker = home.path().join("started");
    home.script_agent("other", &format!("touch '{}'", marker.display()));
    let id = recorded(home);
    let args = ["replay", &id, "--with-agent", "other", "--dry-run"];
    let output = home.run(&args).ok();
    output
        .says("with other: 3 prompts, 1 recorded tool call")
        .says("1. echo one\n")
        .says("→ file_read kept (ok)\n");
    let args = [&args[..], &["--json", "--to", "2"]].concat();
    let document = home.run(&args).ok().json();
    let replay = &document["replays"][0];
    assert_eq!(
        (&replay["session"], &replay["status"]),
        (&Value::Null, &json!("planned"))
    );
    let turns = replay["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[1]["recorded_calls"][0]["name"], "file_read");
    assert_eq!(home.all().len(), 1);
    assert!(!marker.exists());
}

#[test]
fn a_folder_of_sessions_is_a_suite() {
    let home = &Home::new();
    let (first, suite) = (recorded(home), home.folder("project/suite"));
    let second = home.say("echo two");
    for (name, id) in [("a", &first), ("b", &second)] {
        let file = suite.join(format!("{name}.jsonl"));
        let file = file.to_str().unwrap();
        let args = ["export", id, "--format", "jsonl", "-o", file];
        home.run(&args).ok();
    }
    fs::write(suite.join("notes.txt"), "about the suite").unwrap();
    // Another machine, with other agents.
    let other = &Home::new();
    other.script_agent("two", "echo two");
    let suite = suite.to_str().unwrap();
    let args = [
        "replay",
        suite,
        "--with-agent",
        "two",
        "--fail-on-divergence",
    ];
    let output = other.run(&args).code(1);
    let output = output
        .says("SESSION")
        .says("turn 1: other text (similarity 0.00)")
        .notes("1 other file ignored")
        .notes("[2/2]")
        .notes("1 of 2 replays diverged");
    let rows: Vec<&str> = output.stdout.lines().rev().take(2).collect();
    assert!(
        rows[0].starts_with(&short(&second)) && rows[0].contains("none"),
        "{rows:?}"
    );
    assert!(
        rows[1].starts_with(&short(&first)) && rows[1].contains(" 3 "),
        "{rows:?}"
    );
    // The originals are only read.
    let sessions = other.all();
    assert_eq!(sessions.len(), 2);
    let parents: Vec<&Value> = sessions
        .iter()
        .map(|session| &session["parent"]["id"])
        .collect();
    assert!(parents.contains(&&json!(first)) && parents.contains(&&json!(second)));
    let args = [&args[..], &["--json", "--store", "sqlite::memory:"]].concat();
    let document = other.run(&args).code(1).json();
    assert_eq!(document["diverged"], 1);
    assert_eq!(document["replays"].as_array().unwrap().len(), 2);
    assert_eq!(other.all().len(), 2);
    // A single file, together with a session of the store.
    let file = format!("{suite}/b.jsonl");
    let args = ["replay", "--json", &file, "@", "--with-agent", "two"];
    let document = other.run(&args).ok().json();
    assert_eq!(document["replays"].as_array().unwrap().len(), 2);
    assert_eq!(document["diverged"], 0);
}
