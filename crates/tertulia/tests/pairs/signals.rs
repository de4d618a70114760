//! Signals without a terminal: one is enough, and everything so far is durable.

use rustix::process::Signal;
use serde_json::json;

use super::stage::{home, pair, state, thread, with_both};
use crate::home::{Home, messages};
use crate::running::{Running, SLOW, agents_of};

fn running(home: &Home) -> Running {
    let args = ["go", "-r", "3", "--output-format", "stream-json"];
    Running::of(&home.prepare(&with_both(&args)))
}

/// Reads events until the worker's first text.
fn worker_speaks(running: &mut Running) {
    loop {
        let event = running.until("text");
        if event["speaker"] == "worker" {
            return;
        }
    }
}

#[test]
fn each_signal_ends_it_with_its_number() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let home = home("cat > /dev/null; echo 'Tell worker: step-1'", SLOW);
        let mut running = running(&home);
        worker_speaks(&mut running);
        running.signal(signal);
        let output = running.end().code(code);
        let last = output.events().pop().unwrap();
        assert_eq!(
            (&last["type"], &last["status"]),
            (&json!("turn.completed"), &json!("cancelled"))
        );
        assert!(agents_of(&home).is_empty());
        let session = home.show("@");
        assert_eq!(session["status"], "paused");
        let half = messages(&session).pop().unwrap();
        assert_eq!(
            (&half["thread"], &half["interrupted"]),
            (&json!("worker"), &json!(true))
        );
        let now = state(&home);
        assert_eq!(
            (&now["next"], &now["remaining"], &now["round"]),
            (&json!("worker"), &json!(2), &json!(1))
        );
    }
}

#[test]
fn what_was_cut_off_is_taken_up_and_told() {
    let boss = "grep -q 'Worker says: finished' && echo DONE || echo 'Tell worker: step-1'";
    let hand = "if grep -q 'You were cut off'; then echo finished; else echo begun; sleep 60; fi";
    let home = home(boss, hand);
    let mut running = running(&home);
    worker_speaks(&mut running);
    running.signal(Signal::TERM);
    running.end().code(143);
    let output = pair(&home, &["-c"]).ok();
    output.notes("cut off").notes("done");
    let said = thread(&home, "worker");
    let by: Vec<&str> = said.iter().map(|(by, ..)| by.as_str()).collect();
    assert_eq!(by, ["instructor", "worker", "tertulia", "worker"]);
    let now = state(&home);
    assert_eq!(
        (&now["worker_calls"], &now["remaining"]),
        (&json!(1), &json!(2))
    );
}

#[test]
fn with_words_the_instructor_hears_what_happened() {
    let boss = "grep -q 'never mind' && echo DONE || echo 'Tell worker: step-1'";
    let home = home(boss, "cat > /dev/null; echo begun; sleep 60");
    let mut running = running(&home);
    worker_speaks(&mut running);
    running.signal(Signal::INT);
    running.end().code(130);
    pair(&home, &["-c", "never mind"]).ok();
    let said = thread(&home, "instructor");
    let (by, _, words) = &said[2];
    assert_eq!(by, "tertulia");
    assert!(
        words.contains("cut off before it had finished") && words.ends_with("begun"),
        "{words}"
    );
    assert_eq!(said[3].2, "never mind");
}

#[test]
fn an_instructor_that_was_cut_off_replies_again() {
    let boss = "if grep -q 'You were cut off'; then echo DONE; else echo begun; sleep 60; fi";
    let home = home(boss, "cat");
    let mut running = running(&home);
    running.until("text");
    running.signal(Signal::INT);
    running.end().code(130);
    assert_eq!(state(&home)["round"], 0);
    pair(&home, &["-c"]).ok();
    let now = state(&home);
    assert_eq!((&now["round"], &now["next"]), (&json!(1), &json!("human")));
}

/// A new prompt replaces the one that was stopped; without a new prompt the old one is continued.
#[test]
fn an_instructor_is_not_asked_again_for_what_was_stopped() {
    let boss = "cat > ../told; if grep -q 'again' ../told || [ -e ../go ]; then echo DONE; \
                else touch ../hanging; sleep 60; fi";
    let home = home(boss, "cat");
    let hanging = home.path().join("hanging");
    let stop = |words: &str| {
        let _ = std::fs::remove_file(&hanging);
        let running = Running::of(&home.prepare(&with_both(&[words, "-r", "3"])));
        crate::home::until("it is asked", || hanging.exists().then_some(()));
        running.signal(Signal::INT);
        running.end().code(130);
    };
    let told = || std::fs::read_to_string(home.path().join("told")).unwrap();
    stop("DELETE EVERYTHING");
    pair(&home, &["-c", "once again: what time is it?"]).ok();
    let text = told();
    let at = text.find("DELETE EVERYTHING").unwrap();
    assert!(text[..at].contains("Do not act on it"), "{text}");
    assert!(text.ends_with("what time is it?"), "{text}");
    stop("count the files");
    std::fs::write(home.path().join("go"), "").unwrap();
    pair(&home, &["-c"]).ok();
    let text = told();
    assert!(text.contains("count the files"), "{text}");
    assert!(!text.contains("Withdrawn"), "{text}");
    // By then it was answered.
    pair(&home, &["-c", "and now?"]).ok();
    let text = told();
    assert!(!text.contains("Withdrawn"), "{text}");
}
