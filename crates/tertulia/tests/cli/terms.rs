//! The terms of a session: agent, model and tool policy stay as the user set them, in forks and after a
//! restart.

use serde_json::Value;

use crate::home::Home;
use crate::pty::{CTRL_D, Terminal};

/// A home with a default agent and another one.
fn home() -> Home {
    let home = Home::new();
    home.settings("agent = \"demo\"\n[agents.other]\ntype = \"demo\"\n");
    home
}

/// Returns who gave the last answer of a session.
fn answered_by(home: &Home, reference: &str) -> String {
    let session = home.show(reference);
    let entries = session["entries"].as_array().unwrap().iter().rev();
    let mut speakers = entries.map(|entry| &entry["speaker"]);
    let ai = speakers.find(|speaker| speaker["type"] == "ai");
    ai.unwrap()["name"].as_str().unwrap().to_owned()
}

fn fork(home: &Home, place: &str) -> String {
    let forked = home.run(&["fork", place, "--json"]).ok().json();
    forked["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_fork_from_before_the_first_answer_keeps_the_agent() {
    let home = home();
    let first = home.run(&["--agent", "other", "-p", "echo one"]);
    first.ok();
    for place in ["@:1", "@:2", "@"] {
        let fork = fork(&home, place);
        home.run(&["-r", &fork, "-p", "echo two"]).ok();
        assert_eq!(answered_by(&home, &fork), "other", "{place}");
    }
}

#[test]
fn a_fork_keeps_the_agent_that_was_switched_to_later() {
    let home = home();
    home.run(&["-p", "echo one"]).ok();
    home.run(&["-c", "--agent", "other", "-p", "echo two"]).ok();
    let fork = fork(&home, "@:3");
    home.run(&["-r", &fork, "-p", "echo three"]).ok();
    assert_eq!(answered_by(&home, &fork), "other");
}

#[test]
fn a_tighter_policy_holds_after_a_restart_and_in_forks() {
    let home = home();
    let set = "tool policy: none, as set in this session";
    home.run(&["-p", "echo one", "--approve", "none"]).ok();
    home.run(&["-c", "-p", "echo two"]).ok().notes(set);
    for place in ["@:1", "@"] {
        let fork = fork(&home, place);
        home.run(&["-r", &fork, "-p", "echo three"]).ok().notes(set);
    }
}

#[test]
fn a_looser_policy_is_not_taken_from_a_log() {
    let home = home();
    let writes = r#"use file_write {"path":"made","content":"x"}"#;
    home.run(&["-p", "echo one", "--approve", "all"]).ok();
    let output = home.run(&["-c", "-p", writes]).ok();
    assert!(!output.stderr.contains("tool policy"), "{output:?}");
    assert!(!home.project().join("made").exists());
}

#[test]
fn what_was_set_is_an_entry_only_if_it_changes_something() {
    let home = home();
    home.run(&["-p", "echo one", "--approve", "low"]).ok();
    home.run(&["-c", "-p", "echo two", "--approve", "low"]).ok();
    let entries = |kind: &str| {
        let session = home.show("@");
        let entries = session["entries"].as_array().unwrap().clone();
        entries.iter().filter(|it| it["type"] == kind).count()
    };
    assert_eq!((entries("terms"), entries("created")), (0, 1));
    home.run(&["-c", "-p", "echo three", "--approve", "all"])
        .ok();
    assert_eq!(entries("terms"), 1);
}

/// Line mode: the policy that the user chose last holds in every session that follows.
#[test]
fn a_tightened_policy_does_not_come_back() {
    let home = home();
    let earlier = home.say("echo earlier");
    let mut lines = Terminal::open(&home, &["--plain", "--approve", "all"], &[]);
    lines.sees("you> ", 1);
    lines.types("echo one\n");
    lines.sees("you> ", 2);
    lines.types("/approve ask\n");
    lines.sees("tool policy: ask", 1);
    let mut seen = 1;
    for command in ["/fork", "/rewind 2", "/new", &format!("/resume {earlier}")] {
        lines.types(format!("{command}\n"));
        lines.types("/permissions\n");
        seen += 1;
        lines.sees("tool policy: ask", seen);
        assert!(!lines.shown().contains("tool policy: all"), "{command}");
    }
    lines.types(CTRL_D);
    assert_eq!(lines.ends().0, 0);
    // It was recorded before the next prompt.
    let sessions = home.all();
    let with_terms = |session: &&Value| {
        let shown = home.show(session["id"].as_str().unwrap());
        let entries = shown["entries"].as_array().unwrap().clone();
        entries.iter().any(|entry| entry["type"] == "terms")
    };
    assert!(sessions.iter().filter(with_terms).count() >= 1);
}

#[test]
fn the_settings_choose_the_policy_of_sessions_without_one() {
    let home = home();
    let writes = r#"use file_write {"path":"made","content":"x"}"#;
    let made = home.project().join("made");
    let settings = |mode: &str| home.settings(&format!("agent = \"demo\"\napprove = {mode}\n"));
    settings("\"all\"");
    home.run(&["-p", writes, "--approve", "low"]).ok();
    assert!(!made.exists(), "a flag comes first");
    home.run(&["-c", "-p", writes]).ok();
    assert!(!made.exists(), "what was set in a session stays");
    home.run(&["-p", writes]).ok();
    assert!(made.exists());
    std::fs::remove_file(&made).unwrap();
    // Without a terminal, `ask` denies what changes anything, without a warning at every run.
    settings("\"ask\"");
    home.run(&["-p", writes]).ok().lacks("not interactive");
    assert!(!made.exists());
    settings("\"every\"");
    home.run(&["-p", "hello"])
        .code(2)
        .notes("'approve' must be")
        .notes("\"edits\"");
}
