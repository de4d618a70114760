//! `--session-file` with a team: the file is written back when a turn ends, however it ends.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use super::cast::Cast;
use crate::home::until;
use crate::running::{SLOW, agents_of};

/// Prints lines and ignores signals to stop.
const STUBBORN: &str = "trap '' TERM INT; while true; do echo line; sleep 0.1; done";

/// Returns a team with a session, and the path of the file that it was exported to.
fn with_a_file() -> (Cast, String) {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.turn(&["[NEXT: ada] first words"]);
    let file = cast.home.path().join("shared.jsonl").display().to_string();
    let export = ["export", "@", "--format", "jsonl", "-o", &file];
    cast.home.run(&export).ok();
    (cast, file)
}

fn text(file: &str) -> String {
    fs::read_to_string(file).unwrap()
}

/// The whole session is written each time, so this happens once per turn, not after each member.
#[test]
fn it_is_written_back_once_nothing_is_being_said() {
    let (cast, file) = with_a_file();
    let before = text(&file);
    cast.does("ben", "cp ../../shared.jsonl seen; cat answer");
    let args = ["--session-file", &file, "[NEXT: ada, ben] second words"];
    cast.run(&args).ok().says("Ben speaks.");
    let seen = cast.home.path().join("cast/ben/seen");
    assert_eq!(fs::read_to_string(seen).unwrap(), before);
    let after = text(&file);
    assert!(after.starts_with(&before));
    for words in ["second words", "Ada speaks.", "Ben speaks."] {
        assert!(after.contains(words), "{words:?} in {after}");
    }
}

#[test]
fn on_a_terminal_it_is_written_back_with_each_turn() {
    let (cast, file) = with_a_file();
    let mut terminal = cast.open(&["--session-file", &file]);
    terminal.sees("Ann> ", 1);
    let mut prompts = 1;
    for words in ["second words", "third words"] {
        terminal.types(format!("[NEXT: ben] {words}\n"));
        prompts += 1;
        terminal.sees("Ann> ", prompts);
        let written = text(&file);
        assert!(written.contains(words), "{written}");
        assert_eq!(written.matches("Ben speaks.").count(), prompts - 1);
    }
    terminal.types("/exit\n");
    assert_eq!(terminal.ends().0, 0);
}

#[test]
fn it_is_written_back_when_an_answer_is_stopped() {
    let (cast, file) = with_a_file();
    cast.does("ada", SLOW);
    for (signal, code, words) in [(Signal::INT, 130, "second"), (Signal::TERM, 143, "third")] {
        let mut talk = cast.start(&["--session-file", &file, &format!("[NEXT: ada] {words}")]);
        talk.speaking_for(Duration::from_millis(300));
        talk.signal(signal);
        talk.end().code(code);
        let written = text(&file);
        assert!(written.contains(words), "{written}");
        let last = written.lines().rfind(|line| line.contains("line 0"));
        assert!(last.unwrap().contains("\"interrupted\":true"), "{written}");
    }
}

/// A forced exit does not wait for the answer, but the file has the prompt.
#[test]
fn it_is_written_back_when_somebody_insists_on_leaving() {
    let (cast, file) = with_a_file();
    cast.does("ada", STUBBORN);
    let mut talk = cast.start(&["--session-file", &file, "[NEXT: ada] second words"]);
    talk.until("text");
    // Two signals that arrive together count as one, so repeat until the second is noticed.
    until("the talk has ended", || {
        if !talk.has_ended() {
            talk.signal(Signal::INT);
        }
        talk.has_ended().then_some(())
    });
    talk.end().code(130);
    assert!(text(&file).contains("second words"));
    until("no process is left", || {
        agents_of(&cast.home).is_empty().then_some(())
    });
}
