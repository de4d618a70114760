//! Replays that do not get to their end.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{recorded, results};
use crate::home::{Home, both, messages, until};
use crate::running::{Running, agents_of, sweep};

/// Answers the first prompt, and every other one slower than any test waits.
const SLOW_SECOND: &str = "case $(cat) in *file_read*) echo begun; \
     i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done;; *) echo one;; esac";

/// Fails at the second prompt.
const FAILING_SECOND: &str =
    "case $(cat) in *file_read*) echo no more >&2; exit 3;; *) echo one;; esac";

#[test]
fn a_failed_answer_ends_the_replay_and_is_told() {
    let home = &Home::new();
    home.script_agent("weak", FAILING_SECOND);
    let id = recorded(home);
    let args = ["replay", &id, "--with-agent", "weak"];
    let output = home.run(&args).code(6);
    output
        .says("First divergence: turn 2, failed")
        .says("replay:   failed: ")
        .notes("error: ")
        .notes("no more")
        .notes("--with-agent");
    // The third prompt is not played.
    assert_eq!(home.said("@").len(), 3);
    let output = home.run(&[&args[..], &["--json"]].concat()).code(6);
    assert_eq!(output.error()["kind"], "agent");
    let document = output.json();
    let replay = &document["replays"][0];
    assert_eq!(results(replay), ["same", "failed", "missing"]);
    assert_eq!(replay["status"], "failed");
    assert_eq!(replay["error"]["kind"], "agent");
    let failure = &replay["first_divergence"]["theirs"]["failure"];
    assert!(failure.as_str().unwrap().contains("no more"), "{replay:#}");
    assert_eq!(replay["turns"][2]["tools"], Value::Null);
}

#[test]
fn the_others_are_played_after_a_failure() {
    let home = &Home::new();
    home.script_agent("weak", FAILING_SECOND);
    let id = recorded(home);
    let other = home.say("echo one");
    let args = ["replay", &id, &other, "--with-agent", "weak"];
    let output = home.run(&args).code(6);
    output
        .says("2/3")
        .says("turn 2: failed")
        .says("none")
        .notes("1 of 2 replays failed");
}

#[test]
fn a_failure_of_both_is_no_divergence() {
    let home = &Home::new();
    home.run(&["chat", "-p", "fail"]).code(6);
    let args = ["replay", "@", "--with-agent", "demo", "--json"];
    let document = home.run(&args).code(6).json();
    assert_eq!(document["diverged"], 0);
    assert_eq!(document["replays"][0]["status"], "failed");
}

/// Starts a replay and waits until the second prompt is being answered. Returns the new session.
fn started(home: &Home, more: &[&str]) -> (Running, String) {
    home.script_agent("slow", SLOW_SECOND);
    let id = recorded(home);
    let args = [&["replay", &id, "--with-agent", "slow"], more].concat();
    let running = Running::of(&home.prepare(&args));
    let replay = until("the second prompt is saved", || {
        let sessions = home.all();
        let is_it = |session: &&Value| session["parent"] != Value::Null && session["messages"] == 3;
        let session = sessions.iter().find(is_it)?;
        Some(session["id"].as_str().unwrap().to_owned())
    });
    until("the agent runs", || {
        (!agents_of(home).is_empty()).then_some(())
    });
    (running, replay)
}

#[test]
fn a_signal_stops_it_and_keeps_what_was_played() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let home = &Home::new();
        let (running, replay) = started(home, &["@", "--json"]);
        running.signal(signal);
        let document = running.end().code(code).json();
        let replays = &document["replays"];
        assert_eq!(replays[0]["status"], "cancelled");
        assert_eq!(results(&replays[0]), ["same"]);
        assert_eq!(replays[0]["session"], replay.as_str());
        // What was not played is no divergence.
        assert_eq!(document["diverged"], 0);
        assert_eq!(replays[1]["status"], "not_played");
        assert_eq!(replays[1]["session"], Value::Null);
        assert_eq!(agents_of(home), []);
        let told = home.said(&replay);
        assert_eq!(told[..2], ["echo one", "one\n"]);
        home.run(&["chat", "-r", &replay, "--agent", "demo", "-p", "echo on"])
            .ok()
            .says("on");
    }
}

#[test]
fn after_a_kill_the_replay_can_be_resumed() {
    both(|home| {
        let (running, replay) = started(home, &[]);
        running.kill();
        sweep(home);
        let output = home.run(&["chat", "-r", &replay, "--agent", "demo", "-p", "echo on"]);
        output.ok().says("on");
        let session = home.show(&replay);
        assert_eq!(session["parent"]["relation"], json!("replay"));
        let told = messages(&session);
        assert_eq!(told.last().unwrap()["content"], "on");
        assert_eq!(told[1]["content"], "one\n");
        home.run(&["doctor"]).ok();
        // A replay is a session like any other, and can itself be replayed.
        home.run(&["replay", &replay, "--with-agent", "demo", "--to", "1"])
            .ok()
            .says("No divergence");
    });
}
