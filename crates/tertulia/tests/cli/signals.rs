//! A session that is ended by a signal keeps its messages.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home::{Home, both, messages, until, until_kept};
use crate::running::{Running, SLOW, agents_of, sweep};

/// Several processes, one of which ignores signals.
const STUBBORN: &str = "trap '' INT TERM HUP; (trap '' TERM; for n in 1 2 3 4 5 6 7 8 9; do sleep 9; done) & \
                        i=0; while [ $i -lt 400 ]; do echo \"line $i\"; i=$((i+1)); sleep 0.2; done";

fn ended_by(home: &Home, signal: Signal, code: i32) {
    let mut talk = Running::start(home, &["--agent", "slow", "-p", "speak"]);
    let id = talk.until("session.started")["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let heard = talk.speaking_for(Duration::from_millis(500));
    assert!(!agents_of(home).is_empty());
    talk.signal(signal);
    let output = talk.end().code(code);
    assert!(output.stderr.contains("Resume: "), "{output:?}");
    let end = output.events().pop().unwrap();
    assert_eq!(
        (&end["type"], &end["status"]),
        (&json!("turn.completed"), &json!("cancelled"))
    );
    let said = messages(&home.show(&id));
    assert_eq!(said.len(), 2);
    assert_eq!(said[1]["interrupted"], true);
    let kept = said[1]["content"].as_str().unwrap();
    assert!(kept.starts_with(&heard), "{kept:?} does not have {heard:?}");
    until("the agent's processes are gone", || {
        agents_of(home).is_empty().then_some(())
    });
    home.run(&["show", &id]).ok().says("interrupted");
    let next = home
        .run(&["-r", &id, "--agent", "demo", "-p", "echo on"])
        .ok();
    assert_eq!(next.stdout, "on\n");
}

#[test]
fn interrupted_terminated_hung_up() {
    let home = &Home::new();
    home.script_agent("slow", SLOW);
    ended_by(home, Signal::INT, 130);
    ended_by(home, Signal::TERM, 143);
    ended_by(home, Signal::HUP, 129);
}

#[test]
fn a_stubborn_agent_is_ended_with_its_whole_tree() {
    let home = Home::new();
    home.script_agent("slow", STUBBORN);
    ended_by(&home, Signal::TERM, 143);
}

#[test]
fn what_was_seen_for_more_than_a_second_survives_a_kill() {
    both(|home| {
        home.script_agent("slow", SLOW);
        let mut talk = Running::start(home, &["--agent", "slow", "-p", "speak"]);
        let id = talk.until("session.started")["session_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut seen = String::new();
        for _ in 0..2 {
            seen.push_str(talk.until("text")["text"].as_str().unwrap());
            until_kept(&home.store_url(), &id, seen.trim_end());
        }
        // It is still speaking when it is killed.
        talk.until("text");
        talk.kill();
        sweep(home);
        // It can be read before a resume, and is the same entry afterwards.
        let unfinished = messages(&home.show(&id)).pop().unwrap();
        assert_eq!(unfinished["interrupted"], true);
        let output = home.run(&["-c", "--agent", "demo", "-p", "echo on"]).ok();
        output.notes("slow was cut off");
        let said = messages(&home.show(&id));
        assert_eq!(said.len(), 4);
        assert_eq!(said[1], unfinished);
        assert_eq!(
            (&said[1]["interrupted"], &said[1]["speaker"]["name"]),
            (&json!(true), &json!("slow"))
        );
        let kept = said[1]["content"].as_str().unwrap();
        assert!(
            kept.starts_with(seen.trim_end()),
            "{kept:?} does not have {seen:?}"
        );
        assert_eq!(said[3]["content"], "on");
        // Reported once, not at every resume.
        home.run(&["-c", "-p", "echo more"]).ok().lacks("cut off");
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn reading_a_half_written_answer_changes_nothing() {
    let home = &Home::new();
    // Nothing more comes after these words: time alone makes the program keep them.
    home.script_agent("slow", "echo 'line 0'; exec sleep 600");
    let mut talk = Running::start(home, &["--agent", "slow", "-p", "speak"]);
    let id = talk.until("session.started")["session_id"].clone();
    until_kept(&home.store_url(), id.as_str().unwrap(), "line 0");
    talk.kill();
    sweep(home);
    let before = home.run(&["show", "--raw"]).ok().stdout;
    for command in ["list", "log", "export", "doctor"] {
        home.run(&[command]).ok();
    }
    home.run(&["search", "line"]).ok();
    assert_eq!(home.run(&["show", "--raw"]).ok().stdout, before);
    home.run(&["-c", "--agent", "demo", "-p", "echo on"])
        .ok()
        .notes("cut off");
}

#[test]
fn the_agents_of_a_killed_talk_do_not_go_on() {
    let home = Home::new();
    home.script_agent("slow", SLOW);
    let mut talk = Running::start(&home, &["--agent", "slow", "-p", "speak"]);
    talk.until("text");
    talk.kill();
    // Their output pipe is closed, so they end at the next write.
    until("the agents are gone", || {
        agents_of(&home).is_empty().then_some(())
    });
}

#[test]
fn a_signal_in_text_mode_ends_the_line_and_says_how_to_resume() {
    let home = Home::new();
    home.script_agent("slow", "printf 'no line end'; exec sleep 60");
    let child = home
        .prepare(&["chat", "--agent", "slow", "-p", "speak"])
        .command()
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("the agent runs", || {
        (!agents_of(&home).is_empty()).then_some(())
    });
    // The prompt is saved once the session is listed, so polling the store is enough.
    until("the session is there", || {
        (home.all().len() == 1).then_some(())
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let output = crate::home::finish(child, "chat").code(130);
    output.notes("Resume: tertulia --resume");
    assert!(agents_of(&home).is_empty());
}

/// Commands such as `rename` must not lose an incomplete answer that was on the screen.
#[test]
fn a_half_written_answer_survives_tidying_up_and_forking() {
    both(|home| {
        home.script_agent("slow", SLOW);
        let mut talk = Running::start(home, &["--agent", "slow", "-p", "speak"]);
        let id = talk.until("session.started")["session_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut speak_and_be_kept = |words: &str| {
            while !talk.until("text")["text"].as_str().unwrap().contains(words) {}
            until_kept(&home.store_url(), &id, words);
        };
        speak_and_be_kept("line 1");
        home.run(&["tag", &id, "+during"]).ok();
        speak_and_be_kept("line 9");
        talk.kill();
        sweep(home);
        home.run(&["rename", &id, "after the crash"]).ok();
        let unfinished = messages(&home.show(&id)).pop().unwrap();
        assert_eq!(unfinished["interrupted"], true);
        home.run(&["-r", &id, "--fork", "--agent", "demo", "-p", "echo on"])
            .ok();
        let said = messages(&home.show(&id));
        assert_eq!(said.last().unwrap(), &unfinished, "the original has it");
        let fork = messages(&home.show("@"));
        assert_eq!(fork[1], unfinished, "and the fork shares it");
        home.run(&["doctor"]).ok();
    });
}

/// An agent that does not stop is given five seconds; a second signal does not wait.
#[test]
fn a_second_signal_ends_at_once_and_leaves_no_agent_behind() {
    let home = Home::new();
    home.script_agent("stubborn", STUBBORN);
    let mut talk = Running::start(&home, &["--agent", "stubborn", "-p", "speak"]);
    talk.until("text");
    assert!(!agents_of(&home).is_empty());
    // Two signals that arrive together count as one, so repeat until the second is noticed.
    until("the talk has ended", || {
        if !talk.has_ended() {
            talk.signal(Signal::INT);
        }
        talk.has_ended().then_some(())
    });
    // Had it waited for the agent, the turn would be over and its answer saved.
    let output = talk.end().code(130);
    assert!(
        output
            .stderr
            .contains("error: left in the middle of an answer"),
        "{output:?}"
    );
    let is_over = |event: &Value| event["type"] == "turn.completed";
    assert!(!output.events().iter().any(is_over), "{output:?}");
    until("the agent's processes are gone", || {
        agents_of(&home).is_empty().then_some(())
    });
    home.run(&["-c", "--agent", "demo", "-p", "echo on"]).ok();
    home.run(&["doctor"]).ok();
}
