//! How a team's talk is left: who was not heard, and what is said of a failure.

use serde_json::json;

use crate::cast::Cast;
use crate::home::until;
use crate::pty::CTRL_C;
use crate::running::agents_of;
use rustix::process::Signal;

/// Says a word and does not end when it is asked to.
const STUBBORN: &str = "trap '' TERM INT; printf PARTIAL; while true; do sleep 0.1; done";

/// Ada, Ben, Cleo, and Ann.
fn cast() -> Cast {
    Cast::of(&["ada", "ben", "cleo"], &["ann"])
}

/// Going on asks those who were not heard, as it was said.
fn asked_again(cast: &Cast, names: &str) {
    let words = format!("[NEXT: {names}] go on");
    let output = cast.run(&["-c", &words]).ok();
    output.says("Ben speaks.");
}

#[test]
fn those_whom_the_limit_of_rounds_kept_from_speaking_are_named() {
    let mut cast = cast();
    cast.change(|document| document["maxRounds"] = json!(1));
    cast.says("ada", "Ben? [NEXT: ben]");
    let output = cast.run(&["[NEXT: ada] go"]).ok();
    let output = output.notes("as many as maxRounds allows");
    let output = output.notes("still queued: ben (ask again with [NEXT: ben])");
    // Whoever waits does not when the program has ended.
    output.lacks("continue with the queue");
    asked_again(&cast, "ben");
    // On a terminal it does, until that is left.
    let mut terminal = cast.open(&["[NEXT: ada] go"]);
    terminal.sees("send a message to continue with the queue", 1);
    terminal.sees("Ann> ", 1);
    terminal.types("/exit\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("still queued: ben (ask again with [NEXT: ben])"),
        "{shown}"
    );
    // A talk that is not kept cannot go on.
    let output = cast.run(&["--ephemeral", "[NEXT: ada] go"]).ok();
    output.notes("still queued: ben").lacks("ask again");
}

#[test]
fn those_who_wait_while_a_name_is_nobodys_are_named() {
    let cast = cast();
    cast.says("ada", "Ask [NEXT: nobody].");
    let output = cast.run(&["[NEXT: ada, ben, cleo, ben] go"]).ok();
    output.notes("still queued: ben, cleo (ask again with [NEXT: ben, cleo])");
    asked_again(&cast, "ben, cleo");
    // A script is told, too.
    let output = cast.run(&["--json", "[NEXT: ada, ben] go"]).ok();
    output.notes("\"warning\"").notes("still queued: ben");
}

#[test]
fn those_who_wait_behind_a_person_are_named() {
    let cast = cast();
    let output = cast.run(&["[NEXT: ada, ann, ben] go"]).ok();
    output
        .says("Ada speaks.")
        .notes("still queued: ben (ask again with [NEXT: ben])");
    asked_again(&cast, "ben");
    let output = cast.run(&["[NEXT: ada, ben] go"]).ok();
    output.lacks("still queued");
}

#[test]
fn a_failure_is_told_once_and_leaves_no_empty_name() {
    let cast = cast();
    cast.does("ben", "echo 'the disk of Ben' >&2; exit 3");
    let output = cast.run(&["[NEXT: ada, ben] go"]).code(6);
    assert_eq!(output.stdout, "Ada:\nAda speaks.\n\n");
    assert_eq!(output.stderr.matches("the disk of Ben").count(), 1);
    output.notes("error: Ben could not answer").lacks("--agent");
    // Where others speak after it, it is a warning in its place.
    let output = cast.run(&["[NEXT: ben, ada] go"]).ok();
    assert_eq!(output.stdout, "Ada:\nAda speaks.\n\n");
    assert_eq!(output.stderr.matches("the disk of Ben").count(), 1);
    output
        .notes("warning: Ben could not answer")
        .lacks("error:");
    // Of two failures each is told.
    cast.does("ada", "echo 'the disk of Ada' >&2; exit 3");
    let output = cast.run(&["[NEXT: ben, ada] go"]).code(6);
    assert_eq!(output.stdout, "");
    let output = output.notes("warning: Ben could not answer");
    output.notes("error: Ada could not answer");
    let output = cast.run(&["--json", "[NEXT: ben] go"]).code(6);
    let error = output.error();
    let words = error["message"].as_str().unwrap();
    assert!(words.contains("the disk of Ben"), "{error}");
}

/// What is said when somebody insists on leaving stands on a line of its own.
#[test]
fn insisting_on_leaving_begins_a_new_line() {
    let cast = cast();
    cast.does("ada", STUBBORN);
    let mut terminal = cast.open(&["[NEXT: ada] go"]);
    terminal.sees("PARTIAL", 1);
    // Two that arrive together are one, so it is asked until it has heard the second.
    until("the talk has ended", || {
        let over = terminal.child.try_wait().unwrap().is_some();
        if !over {
            terminal.types(CTRL_C);
        }
        over.then_some(())
    });
    let (code, shown) = terminal.ends();
    assert_eq!(code, 130, "{shown}");
    assert!(shown.contains("\nResume: tertulia"), "{shown:?}");
    until("no process is left", || {
        agents_of(&cast.home).is_empty().then_some(())
    });
}

/// Hangs until it is stopped.
const HANGING: &str = "sleep 60";

/// What was stopped before anybody answered is not asked again, in the same run and in a later one.
#[test]
fn words_that_were_stopped_before_an_answer_are_withdrawn() {
    let cast = cast();
    cast.does("ada", HANGING);
    let running = cast.start(&["[NEXT: ada] DELETE EVERYTHING"]);
    until("ada is asked", || (cast.asked("ada") == 1).then_some(()));
    running.signal(Signal::INT);
    running.end().code(130);
    cast.run(&["-c", "[NEXT: ben] what time is it?"]).ok();
    is_withdrawn(&cast.prompt("ben"), "DELETE EVERYTHING");
    let mut terminal = cast.open(&["-c"]);
    terminal.sees("Ann> ", 1);
    terminal.types("[NEXT: ada] BURN IT\n");
    until("ada is asked", || (cast.asked("ada") == 2).then_some(()));
    terminal.types(CTRL_C);
    until("ada is stopped", || {
        agents_of(&cast.home).is_empty().then_some(())
    });
    terminal.sees("Ann> ", 2);
    terminal.types("[NEXT: cleo] what time is it?\n");
    terminal.sees("Cleo speaks.", 1);
    terminal.types("/exit\n");
    terminal.ends();
    is_withdrawn(&cast.prompt("cleo"), "BURN IT");
    is_withdrawn(&cast.prompt("cleo"), "DELETE EVERYTHING");
}

/// Words that somebody has answered are not, though others were stopped.
#[test]
fn words_that_somebody_answered_are_not_withdrawn() {
    let cast = cast();
    cast.does("ben", HANGING);
    let running = cast.start(&["[NEXT: ada, ben] count the files"]);
    until("ben is asked", || (cast.asked("ben") == 1).then_some(()));
    running.signal(Signal::INT);
    running.end().code(130);
    cast.run(&["-c", "[NEXT: cleo] well?"]).ok();
    let prompt = cast.prompt("cleo");
    assert!(prompt.contains("count the files"), "{prompt}");
    assert!(!prompt.contains("Withdrawn"), "{prompt}");
}

#[track_caller]
fn is_withdrawn(prompt: &str, words: &str) {
    let at = prompt.find(words).unwrap();
    let before = prompt[..at].lines().rev().nth(1).unwrap();
    assert!(before.contains("Do not act on it"), "{prompt}");
    assert_eq!(prompt.matches(words).count(), 1, "{prompt}");
}
