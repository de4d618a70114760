//! Exiting by keys, by signals and by force: the terminal is restored, and nothing is lost.

use rustix::process::Signal;
use tertulia_testkit::terminal::Terminal;

use super::stage::{leave, open, ready, say, status_says, talk, wrote};
use crate::home::{Home, messages, until};
use crate::running::sweep;

/// A home with a slow demo agent.
fn slow() -> Home {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 50\n");
    home
}

/// A session in the middle of an answer.
fn counting(home: &Home) -> Terminal {
    let mut terminal = talk(home, &[]);
    terminal.type_text("count to 500\n");
    terminal.sees("7 8 9 ");
    terminal
}

/// Checks that every terminal mode that was switched on is switched off in the end.
#[track_caller]
fn is_restored(terminal: &Terminal) {
    terminal.look(|screen| {
        assert!(!screen.is_alternate(), "{}", screen.framed());
        assert!(!screen.hears_the_mouse() && !screen.marks_pastes());
        assert!(screen.cursor().is_some(), "the cursor is shown");
    });
    let raw = terminal.raw_text();
    for (on, off) in [
        ("\u{1b}[?1049h", "\u{1b}[?1049l"),
        ("\u{1b}[?2004h", "\u{1b}[?2004l"),
        ("\u{1b}[?1000h", "\u{1b}[?1000l"),
        ("\u{1b}[?1006h", "\u{1b}[?1006l"),
        ("\u{1b}[>1u", "\u{1b}[<1u"),
    ] {
        let (on_at, off_at) = (raw.rfind(on), raw.rfind(off));
        assert!(
            on_at.is_some() && off_at > on_at,
            "{on:?} {on_at:?} {off_at:?}"
        );
    }
}

fn interrupted(home: &Home) {
    let said = messages(&home.show("@"));
    assert_eq!(said[1]["interrupted"], true);
    let text = said[1]["content"].as_str().unwrap();
    assert!(text.starts_with("1 2 3 4 5 6 7 8 9"), "{text}");
}

#[test]
fn ctrl_d_leaves_and_only_on_an_empty_line() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("x");
    terminal.keys("^d");
    terminal.type_text("y");
    terminal.sees("xy");
    terminal.keys("^u ^d");
    assert_eq!(terminal.exit_code(), 0);
    is_restored(&terminal);
}

#[test]
fn ctrl_c_twice_leaves() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    say(&mut terminal, "echo kept", "kept");
    terminal.keys("^c");
    terminal.sees("Ctrl+C again to exit");
    terminal.keys("^c ^c");
    assert_eq!(terminal.exit_code(), 130);
    is_restored(&terminal);
    assert!(terminal.contents().contains("tertulia --resume"));
    assert_eq!(home.said("@").len(), 2);
}

#[test]
fn ctrl_c_once_stops_the_answer_and_empties_the_input() {
    let home = slow();
    let mut terminal = counting(&home);
    terminal.keys("^c");
    terminal.sees("⏹ interrupted");
    ready(&mut terminal);
    terminal.type_text("half a thought");
    terminal.sees("half a thought");
    // Wait until a second Ctrl+C would no longer exit.
    terminal.sees_no_more("Ctrl+C again to exit");
    terminal.keys("^c");
    terminal.sees_no_more("half a thought");
    ready(&mut terminal);
    leave(&mut terminal);
    interrupted(&home);
}

#[test]
fn ctrl_c_twice_leaves_from_everywhere() {
    for (opening, seen) in [
        ("F1", "Help"),
        ("^o", "full transcript"),
        ("Esc Esc", "Rewind to just before"),
    ] {
        let home = Home::new();
        let mut terminal = talk(&home, &[]);
        say(&mut terminal, "echo kept", "kept");
        terminal.keys(opening);
        terminal.sees(seen);
        terminal.keys("^c ^c ^c");
        assert_eq!(terminal.exit_code(), 130, "from {seen}");
        is_restored(&terminal);
    }
}

#[test]
fn signals_end_the_talk_and_keep_it() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let home = slow();
        let mut terminal = counting(&home);
        terminal.signal(signal);
        assert_eq!(terminal.exit_code(), code);
        is_restored(&terminal);
        interrupted(&home);
    }
}

#[test]
fn a_window_that_goes_away_ends_the_talk_and_keeps_it() {
    let home = slow();
    let mut terminal = counting(&home);
    terminal.close();
    assert_eq!(terminal.exit_code(), 129);
    interrupted(&home);
    // It does not continue in the background either.
    until("nobody has it open", || {
        (home.all()[0]["open"] == false).then_some(())
    });
}

#[test]
fn a_window_that_goes_away_while_nothing_happens() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    say(&mut terminal, "echo kept", "kept");
    terminal.type_text("unsaid");
    terminal.sees("unsaid");
    terminal.close();
    assert_eq!(terminal.exit_code(), 129);
    assert_eq!(home.said("@"), ["echo kept", "kept"]);
    // Unsent input is in the history.
    let mut terminal = talk(&home, &["-c"]);
    terminal.keys("Up");
    wrote(&mut terminal, &["unsaid"]);
}

#[test]
fn after_kill_9_what_was_there_is_shown() {
    let home = slow();
    let mut terminal = counting(&home);
    // Drafts are written once a second.
    terminal.sees("35 36 37");
    terminal.kill9();
    sweep(&home);
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    let mut terminal = open(&home, &["--resume", &id]);
    terminal.sees("count to 500");
    terminal.sees("7 8 9 10");
    terminal.sees("⏹ interrupted");
    ready(&mut terminal);
    terminal.sees("restored: 2 messages");
    leave(&mut terminal);
    interrupted(&home);
    home.run(&["doctor"]).ok();
}

/// An interrupted answer is written to the log when the session is opened, and a disk may be slow.
#[test]
fn a_talk_that_is_still_being_opened_can_be_left() {
    let home = slow();
    let mut terminal = counting(&home);
    terminal.sees("35 36 37");
    terminal.kill9();
    sweep(&home);
    let lock = home.database().with_extension("db-lock");
    let lock = std::fs::File::open(lock).unwrap();
    lock.lock().unwrap();
    let mut terminal = open(&home, &["-c"]).with_clear_keys();
    status_says(&mut terminal, "opening");
    terminal.keys("^c");
    terminal.sees("Ctrl+C again to exit");
    terminal.keys("^c");
    status_says(&mut terminal, "leaving");
    terminal.keys("^c");
    terminal.wait_for("the terminal given back", |screen| !screen.is_alternate());
    lock.unlock().unwrap();
    assert_eq!(terminal.exit_code(), 130);
    home.run(&["doctor"]).ok();
}

#[test]
fn two_screens_on_one_talk() {
    let home = Home::new();
    home.say("echo shared");
    let mut first = talk(&home, &["-c"]);
    let mut second = open(&home, &["-c"]).with_clear_keys();
    second.sees("Enter read only");
    second.keys("f Enter");
    second.sees_no_more("This session is open elsewhere");
    say(&mut first, "echo of the first", "of the first");
    say(&mut second, "echo of the second", "of the second");
    leave(&mut first);
    leave(&mut second);
    let all = home.all();
    let said: Vec<Vec<String>> = all
        .iter()
        .map(|session| home.said(session["id"].as_str().unwrap()))
        .collect();
    let has = |words: &str| {
        said.iter()
            .filter(|said| said.iter().any(|text| text == words))
            .count()
    };
    // The fork is made with its first message, from what the second screen shows by then.
    assert_eq!(
        (has("of the first"), has("of the second")),
        (2, 1),
        "{said:?}"
    );
}
