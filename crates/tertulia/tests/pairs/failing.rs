//! What a script learns of a pair: DONE, out of budget, or failed.

use serde_json::{Value, json};

use super::stage::{ENDLESS, MARKING, home, pair, planner};
use crate::home::Home;

/// Runs a pair for a script, and returns its document.
#[track_caller]
fn run(home: &Home, code: i32, more: &[&str]) -> Value {
    let args = [&["go", "--output-format", "json"], more].concat();
    pair(home, &args).code(code).json()
}

#[test]
fn done_succeeds() {
    let document = run(&home(&planner(2), MARKING), 0, &[]);
    assert_eq!(
        (&document["status"], &document["errors"]),
        (&json!("completed"), &json!([]))
    );
}

#[test]
fn a_spent_budget_is_told_from_done() {
    let [boss, hand] = ENDLESS;
    for more in [&["-r", "2"][..], &["-r", "0"], &["-r", "1", "--keep-going"]] {
        let document = run(&home(boss, hand), 1, more);
        assert_eq!(document["status"], "budget", "{document:#}");
    }
}

#[test]
fn an_instructor_that_fails_fails_the_run() {
    let document = run(&home("cat > /dev/null; exit 4", MARKING), 6, &[]);
    assert_eq!(document["status"], "failed");
    assert_eq!(document["errors"][0]["speaker"], "instructor");
    assert_eq!(document["errors"].as_array().unwrap().len(), 1);
}

/// One cause is one error, on one line.
#[test]
fn one_cause_is_said_once() {
    let home = home("cat > /dev/null; echo no-disk >&2; exit 4", MARKING);
    let output = pair(&home, &["go"]).code(6);
    assert_eq!(output.stderr.matches("no-disk").count(), 1, "{output:?}");
}

#[test]
fn a_worker_that_keeps_failing_fails_the_run() {
    let document = run(
        &home(&planner(2), "cat > /dev/null; exit 3"),
        6,
        &["--keep-going"],
    );
    assert_eq!(document["status"], "failed");
    let errors = document["errors"].as_array().unwrap();
    assert!(errors.iter().all(|error| error["speaker"] == "worker"));
    assert_eq!(errors.len(), 3, "{document:#}");
}

/// The instructor may deal with it, but a script has to ask for that.
#[test]
fn a_worker_that_failed_once_fails_the_run() {
    let wise = "grep -q ERROR && echo DONE || echo 'Tell worker: try'";
    let broken = "cat > /dev/null; exit 3";
    let document = run(&home(wise, broken), 6, &[]);
    assert_eq!(document["status"], "failed");
    assert_eq!(document["errors"][0]["speaker"], "worker");
    let document = run(&home(wise, broken), 0, &["--keep-going"]);
    assert_eq!(document["status"], "completed");
}

#[test]
fn an_instructor_without_an_instruction_is_not_done() {
    let document = run(&home("cat > /dev/null; echo I ponder", MARKING), 1, &[]);
    assert_eq!(document["status"], "paused");
}
