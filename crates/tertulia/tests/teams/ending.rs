//! How a team session is left: who is still queued, and how failures are reported.

use serde_json::json;

use super::cast::Cast;
use crate::home::until;
use crate::pty::CTRL_C;
use crate::running::agents_of;
use rustix::process::{Pid, Signal, kill_process};

/// Prints a word and ignores signals to stop.
const STUBBORN: &str = "trap '' TERM INT; printf PARTIAL; while true; do sleep 0.1; done";

/// Ada, Ben, Cleo, and Ann.
fn cast() -> Cast {
    Cast::of(&["ada", "ben", "cleo"], &["ann"])
}

/// Resumes with the `[NEXT]` marker that the hint suggests.
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
    // The queue does not outlive the program.
    output.lacks("continue with the queue");
    asked_again(&cast, "ben");
    // On a terminal the queue continues until the user exits.
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
    // An ephemeral session cannot be resumed.
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
    // JSON output has the warning, too.
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
    // If other members answer after it, the failure is a warning to who keeps going.
    let words = "[NEXT: ben, ada] go";
    let output = cast.run(&["--keep-going", words]).ok();
    assert_eq!(output.stdout, "Ada:\nAda speaks.\n\n");
    assert_eq!(output.stderr.matches("the disk of Ben").count(), 1);
    output
        .notes("warning: Ben could not answer")
        .lacks("error:");
    // Both failures are reported.
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

/// A message after a forced exit begins on a new line.
#[test]
fn insisting_on_leaving_begins_a_new_line() {
    let cast = cast();
    cast.does("ada", STUBBORN);
    let mut terminal = cast.open(&["[NEXT: ada] go"]);
    terminal.sees("PARTIAL", 1);
    terminal.types(CTRL_C);
    // Two signals that arrive together count as one, so repeat until the second is noticed. As
    // signals: at each key the kernel drops output of the terminal that was not read yet.
    let pid = terminal.child.process_id().unwrap();
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    until("the talk has ended", || {
        let over = terminal.child.try_wait().unwrap().is_some();
        if !over {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::INT);
        }
        over.then_some(())
    });
    let (code, shown) = terminal.ends();
    assert_eq!(code, 130, "{shown}");
    // The terminal echoes what was typed, perhaps after the new line.
    let without_echo = shown.replace("^C", "");
    assert!(without_echo.contains("\nResume: tertulia"), "{shown:?}");
    until("no process is left", || {
        agents_of(&cast.home).is_empty().then_some(())
    });
}

/// Hangs until it is stopped.
const HANGING: &str = "sleep 60";

/// A prompt that was stopped before an answer is not sent again, in the same run and in a later
/// one.
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

/// A prompt that one member has answered is not withdrawn, though another member was stopped.
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
