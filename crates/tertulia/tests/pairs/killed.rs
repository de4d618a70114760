//! `kill -9` at every stage: finished work is never repeated and never lost, and the counters add
//! up.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tertulia_testkit::soak::sampled;

use super::stage::{MARKING, home, marks, planner, with_both};
use crate::home::{Home, messages, until};
use crate::running::{Running, sweep};

const STEPS: u32 = 3;
const BUDGET: u64 = 10;

/// Starts or resumes the pair. Returns `None` if it is done.
fn start(home: &Home) -> Option<Running> {
    let mut args = vec!["--output-format", "stream-json"];
    match home.all().first() {
        None => args.extend(["go", "-r", "10"]),
        Some(session) if session["status"] == "paused" && is_done(home) => return None,
        Some(_) => args.push("-c"),
    }
    Some(Running::of(&home.prepare(&with_both(&args))))
}

fn is_done(home: &Home) -> bool {
    home.show("@")["pair"]["next"] == "human"
}

/// Kills the process after so many events. Returns true if it was still running.
fn kill_after(running: Running, events: usize) -> bool {
    let mut running = running;
    for _ in 0..events {
        if running.event()["type"] == "turn.completed" {
            running.end();
            return false;
        }
    }
    running.kill();
    true
}

/// Lets the pair finish, and checks all work and messages.
fn finish_and_check(home: &Home, what: &str) {
    while let Some(running) = start(home) {
        running.end().ok();
    }
    let session = home.show("@");
    let pair = &session["pair"];
    assert_eq!(
        pair["last_reply"]["should_continue"], false,
        "{what}: {pair:#}"
    );
    let messages = messages(&session);
    let of = |thread: &str, role: &str, by: &str| -> Vec<Value> {
        let wanted = |message: &&Value| {
            message["thread"] == thread && message["role"] == role && message["speaker"]["id"] == by
        };
        messages.iter().filter(wanted).cloned().collect()
    };
    let whole = |said: Vec<Value>| -> Vec<String> {
        let whole = said
            .iter()
            .filter(|message| message["interrupted"] == false);
        whole
            .map(|message| message["content"].as_str().unwrap().trim().to_owned())
            .collect()
    };
    let numbered =
        |prefix: &str| -> Vec<String> { (1..=STEPS).map(|n| format!("{prefix}{n}")).collect() };
    // Each instruction was given once, answered once according to the log, and reported once.
    assert_eq!(
        whole(of("worker", "user", "instructor")),
        numbered("step-"),
        "{what}"
    );
    assert_eq!(
        whole(of("worker", "assistant", "worker")),
        numbered("worked-"),
        "{what}"
    );
    let told = whole(of("instructor", "user", "worker"));
    assert_eq!(told, numbered("Worker says: worked-"), "{what}");
    // The counters add up.
    let replies = whole(of("instructor", "assistant", "instructor")).len();
    assert_eq!(pair["round"], json!(replies), "{what}");
    assert_eq!(pair["worker_calls"], json!(STEPS), "{what}");
    assert_eq!(
        pair["remaining"],
        json!(BUDGET - u64::from(STEPS)),
        "{what}"
    );
    check_marks(home, &messages, what);
}

/// Checks that the worker repeated a step only after it was told of the interruption, and never a
/// finished one.
fn check_marks(home: &Home, messages: &[Value], what: &str) {
    let mut allowed: BTreeMap<String, usize> = BTreeMap::new();
    let mut step = String::new();
    for message in messages
        .iter()
        .filter(|message| message["thread"] == "worker")
    {
        if message["role"] == "user" {
            if message["speaker"]["id"] == "instructor" {
                message["content"].as_str().unwrap().clone_into(&mut step);
            }
            *allowed.entry(step.clone()).or_default() += 1;
        }
    }
    let marks = marks(home);
    for (step, times) in allowed {
        let count = |mark: &str| {
            marks
                .iter()
                .filter(|line| **line == format!("{mark} {step}"))
                .count()
        };
        assert!(count("begin") <= times, "{what}: {step} {marks:?}");
        assert!(count("end") >= 1, "{what}: {step} {marks:?}");
    }
    let steps: Vec<&str> = marks
        .iter()
        .filter_map(|mark| mark.split("step-").nth(1))
        .collect();
    let mut sorted = steps.clone();
    sorted.sort_unstable();
    assert_eq!(steps, sorted, "{what}: a finished step was begun again");
}

#[test]
fn after_every_event() {
    // Count the events of an undisturbed run.
    let calm = home(&planner(STEPS), MARKING);
    let mut running = start(&calm).unwrap();
    let mut events = 1;
    while running.event()["type"] != "turn.completed" {
        events += 1;
    }
    running.end().ok();
    assert!(events > 25, "{events}");
    let mut kills = 0;
    let cases = sampled(1..events, 4);
    for &event in &cases {
        let home = home(&planner(STEPS), MARKING);
        kills += usize::from(kill_after(start(&home).unwrap(), event));
        finish_and_check(&home, &format!("killed after event {event}"));
        if event % 8 == 0 {
            home.run(&["doctor"]).ok();
        }
    }
    // The number of text chunks varies, so the last kills may come too late.
    assert!(3 * kills >= 2 * cases.len(), "{kills} of {cases:?}");
}

#[test]
fn again_and_again_in_one_session() {
    let mut kills = 0;
    let runs = sampled(1..=3, 3);
    for &first in &runs {
        let home = home(&planner(STEPS), MARKING);
        // Each time a little further from the point of resumption.
        for more in 0..12 {
            let Some(running) = start(&home) else { break };
            kills += usize::from(kill_after(running, first + more % 5));
            if more % 3 == 0 {
                // While the worker is busy, or after all is done.
                let before = marks(&home).len();
                if let Some(mut running) = start(&home) {
                    until("the worker begins", || {
                        (marks(&home).len() > before || running.has_ended()).then_some(())
                    });
                    running.kill();
                    kills += 1;
                }
            }
        }
        finish_and_check(&home, &format!("killed again and again, from {first}"));
        home.run(&["doctor"]).ok();
        sweep(&home);
    }
    assert!(kills >= 8 * runs.len(), "{kills}");
}
