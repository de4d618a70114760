//! What a script learns of a run that failed: exit code, status and errors, wherever it failed.

use serde_json::{Value, json};

use super::cast::{Cast, said_in, speakers};
use crate::home::Output;

fn cast() -> Cast {
    Cast::of(&["ada", "ben", "cleo"], &["ann"])
}

/// Runs one turn for a script.
fn run(cast: &Cast, args: &[&str]) -> Output {
    cast.run(&[&["--output-format", "json"], args].concat())
}

/// Checks that a run fails with status and errors, and returns its document.
#[track_caller]
fn fails(cast: &Cast, args: &[&str], failed: &[&str]) -> Value {
    let document = run(cast, args).code(6).json();
    assert_eq!(document["status"], "failed", "{document:#}");
    let errors = document["errors"].as_array().unwrap().iter();
    let who: Vec<_> = errors.map(|error| error["speaker"].clone()).collect();
    assert_eq!(who, failed, "{document:#}");
    document
}

/// Whichever of the members fails, the run fails, and the others have answered.
#[test]
fn whoever_fails_fails_the_run() {
    for broken in ["ada", "ben", "cleo"] {
        let cast = cast();
        cast.does(broken, "echo 'no disk' >&2; exit 3");
        let document = fails(&cast, &["[NEXT: ada, ben, cleo] review"], &[broken]);
        let error = &document["errors"][0];
        assert_eq!(error["kind"], "failed");
        assert!(error["message"].as_str().unwrap().contains("no disk"));
        let names = speakers(said_in(&document));
        assert_eq!(names.len(), 3, "{names:?}");
        cast.run(&["[NEXT: ada, ben, cleo] review"]).code(6);
    }
}

#[test]
fn all_failures_are_listed() {
    let cast = cast();
    for broken in ["ada", "cleo"] {
        cast.does(broken, "exit 3");
    }
    fails(&cast, &["[NEXT: ada, ben, cleo] review"], &["ada", "cleo"]);
    cast.run(&["[NEXT: ada, ben] review"])
        .code(6)
        .notes("Ada could not answer")
        .notes("--keep-going");
}

/// A member whose agent is not there was asked, too.
#[test]
fn an_agent_that_is_not_there_fails_the_run() {
    let mut cast = cast();
    cast.change_member("ada", |ada| ada["agentType"] = json!("nosuch"));
    fails(&cast, &["[NEXT: ada, ben] review"], &["ada"]);
}

/// A member that another one asked fails the run as well.
#[test]
fn a_failure_further_on_fails_the_run() {
    let cast = cast();
    cast.says_in_turn("ada", &["Ben? [NEXT: ben, cleo]"]);
    cast.does("ben", "exit 3");
    fails(&cast, &["[NEXT: ada] review"], &["ben"]);
}

#[test]
fn nobody_asked_fails_the_run() {
    let cast = cast();
    for words in ["[NEXT: nobody] review", "review"] {
        let document = run(&cast, &[words]).code(6).json();
        assert_eq!(document["status"], "failed", "{document:#}");
        assert_eq!(document["errors"][0]["kind"], "nobody_asked");
        run(&cast, &[words, "--keep-going"]).ok();
    }
    // A new task asks no member, and a person can be asked.
    run(&cast, &["[TEAM_TASK: review it]"]).ok();
    run(&cast, &["[NEXT: ann] your turn"]).ok();
}

#[test]
fn the_run_can_keep_going() {
    let cast = cast();
    cast.does("cleo", "exit 3");
    let words = "[NEXT: ada, cleo] review";
    let document = run(&cast, &[words, "--keep-going"]).ok().json();
    assert_eq!(document["status"], "completed");
    assert_eq!(document["errors"][0]["speaker"], "cleo");
    let whole = run(&cast, &["[NEXT: ada, ben] review"]).ok().json();
    assert_eq!(
        (&whole["status"], &whole["errors"]),
        (&json!("completed"), &json!([]))
    );
}

/// A stream ends with the same status.
#[test]
fn a_stream_ends_with_the_failure() {
    let cast = cast();
    cast.does("ada", "exit 3");
    let words = "[NEXT: ada, ben] review";
    let output = cast.run(&["--output-format", "stream-json", words]).code(6);
    let last = output.stdout.lines().last().unwrap().to_owned();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&last["type"], &last["status"]),
        (&json!("turn.completed"), &json!("failed"))
    );
}
