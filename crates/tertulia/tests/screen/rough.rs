//! Terminal trouble: odd bytes, job control, a window that closes at the wrong moment.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use tertulia_testkit::terminal::{Size, Terminal};

use super::agents;
use super::stage::{SIZE, leave, open, open_with, ready, say, status_says, talk, written, wrote};
use crate::home::{Home, until};

#[test]
fn bytes_that_are_no_keys_are_passed_over() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    ready(&mut terminal);
    for rubbish in [
        &b"\xff\xfe\x80"[..],
        b"\x1b[999;999;999z",
        b"\x1b[<1;2M",
        b"\x1b[200",
        b"~\x1b[201~",
        b"\x1b]0;title\x1b\\",
        b"\xc3",
    ] {
        terminal.send(rubbish);
    }
    // Some of the bytes count as letters, and no incomplete key blocks the input.
    terminal.type_text(" still here");
    terminal.sees("till here");
    ready(&mut terminal);
}

#[test]
fn letters_may_come_in_halves() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    ready(&mut terminal);
    let words = "echo 漢字 👩‍👩‍👧 é";
    for byte in words.bytes() {
        terminal.send([byte]);
    }
    // The emulator does not support joined emoji, and shows only the first of them.
    terminal.wait_for("all of it", |screen| {
        let written = written(screen).concat();
        written.starts_with("echo 漢字 ") && written.contains(" é")
    });
    terminal.keys("Enter");
    terminal.wait_for("the answer", |screen| screen.rows_with("漢字 ") == 3);
    ready(&mut terminal);
    assert_eq!(home.said("@")[0], words);
}

/// A terminal without bracketed paste sends pasted text as keys.
#[test]
fn five_thousand_letters_at_once() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    let words = "word ".repeat(1000);
    terminal.type_text(&format!("{}end\n", words));
    terminal.sees("You said");
    ready(&mut terminal);
    assert_eq!(home.said("@")[0], format!("{words}end"));
}

#[test]
fn the_editor_has_the_terminal_for_a_while() {
    let home = Home::new();
    let script = home.path().join("edit.sh");
    fs::write(
        &script,
        "printf 'the editor is here'; read x; printf 'edited 漢\\nsecond' > \"$1\"\n",
    )
    .unwrap();
    let editor = format!("sh '{}'", script.display());
    let mut terminal = open_with(&home, &[], &[("EDITOR", &editor)]).with_clear_keys();
    ready(&mut terminal);
    terminal.type_text("draft");
    wrote(&mut terminal, &["draft"]);
    terminal.keys("^g");
    terminal.sees("the editor is here");
    terminal.look(|screen| {
        assert!(
            !screen.is_alternate() && !screen.hears_the_mouse(),
            "{}",
            screen.framed()
        );
    });
    terminal.type_text("\n");
    wrote(&mut terminal, &["edited 漢", "second"]);
    ready(&mut terminal);
    terminal.look(|screen| assert!(screen.hears_the_mouse() && screen.marks_pastes()));
    terminal.keys("Enter");
    terminal.sees("You said: “edited 漢…”");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn an_editor_that_fails_changes_nothing() {
    let home = Home::new();
    let mut terminal = open_with(&home, &[], &[("EDITOR", "false")]);
    ready(&mut terminal);
    terminal.type_text("draft");
    terminal.keys("^g");
    terminal.sees("the editor (false) ended with");
    wrote(&mut terminal, &["draft"]);
}

/// In a shell with job control.
#[test]
fn it_can_be_put_aside_and_brought_back() {
    let home = Home::new();
    let prepared = home.prepare::<&str>(&[]).command();
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    shell.current_dir(home.project()).env("PS1", "$ ");
    for (name, value) in prepared.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let mut terminal = Terminal::open(&mut shell, SIZE).with_clear_keys();
    terminal.sees("$");
    terminal.type_text(&format!("'{}'\n", env!("CARGO_BIN_EXE_tertulia")));
    ready(&mut terminal);
    say(&mut terminal, "echo one", "one");
    terminal.type_text("half");
    wrote(&mut terminal, &["half"]);
    terminal.keys("^z");
    terminal.sees("Stopped");
    terminal.look(|screen| {
        assert!(
            !screen.is_alternate() && !screen.hears_the_mouse(),
            "{}",
            screen.framed()
        );
    });
    terminal.type_text("echo in the shell: $((40+2))\n");
    terminal.sees("in the shell: 42");
    terminal.type_text("fg\n");
    ready(&mut terminal);
    wrote(&mut terminal, &["half"]);
    terminal.keys("^u");
    say(&mut terminal, "echo two", "two");
    terminal.keys("^d");
    terminal.sees("tertulia --resume");
    terminal.type_text("exit 0\n");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(home.said("@").len(), 4);
}

#[test]
fn addresses_are_links_where_terminals_know_them() {
    let home = Home::new();
    agents::says(
        &home,
        "writer",
        "Look at https://example.org/page?a=1 now.\n\nAnd file:///etc/passwd.",
    );
    let mut terminal = open_with(
        &home,
        &["--agent", "writer", "give me a link"],
        &[("VTE_VERSION", "7600")],
    );
    terminal.sees("https://example.org/page?a=1");
    ready(&mut terminal);
    leave(&mut terminal);
    let raw = terminal.raw_text();
    assert!(raw.contains("\u{1b}]8;"), "no links");
    assert!(
        raw.contains(";https://example.org/page?a=1\u{1b}\\")
            || raw.contains(";https://example.org/page?a=1\u{7}")
    );
    assert!(!raw.contains(";file:"), "a click must not open a file");
    let mut terminal = open_with(&home, &["-c", "--agent", "writer"], &[("TERM", "linux")]);
    terminal.sees("https://example.org/page?a=1");
    ready(&mut terminal);
    leave(&mut terminal);
    assert!(!terminal.raw_text().contains("\u{1b}]8;"));
}

#[test]
fn ctrl_c_leaves_the_list_and_the_question_too() {
    let home = Home::new();
    home.say("echo earlier");
    let mut terminal = open(&home, &["--resume"]);
    terminal.sees("Sessions of this project");
    terminal.keys("^c ^c ^c");
    assert_eq!(terminal.exit_code(), 130);
    let mut terminal = talk(&home, &[]);
    let words = agents::wanted("shell", &json!({ "command": "echo a > made" }));
    terminal.type_text(&format!("{words}\n"));
    status_says(&mut terminal, "needs you");
    terminal.keys("^c");
    ready(&mut terminal);
    terminal.keys("^c ^c");
    assert_eq!(terminal.exit_code(), 130);
    assert!(!home.project().join("made").exists());
}

#[test]
fn a_window_that_goes_away_while_something_is_asked() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    let words = agents::wanted("shell", &json!({ "command": "echo a > made" }));
    terminal.type_text(&format!("{words}\n"));
    status_says(&mut terminal, "needs you");
    terminal.close();
    assert_eq!(terminal.exit_code(), 129);
    assert!(!home.project().join("made").exists());
    // The tool call is closed at the latest when the session is resumed.
    let mut terminal = talk(&home, &["-c"]);
    say(&mut terminal, "echo on", "on");
    leave(&mut terminal);
}

#[test]
fn a_window_that_goes_away_while_the_list_is_open() {
    let home = Home::new();
    home.say("echo earlier");
    let mut terminal = open(&home, &["--resume"]);
    terminal.sees("Sessions of this project");
    terminal.close();
    assert_eq!(terminal.exit_code(), 129);
}

/// As started by `nohup`.
#[test]
fn a_window_that_goes_away_without_a_signal_is_noticed() {
    let home = Home::new();
    let prepared = home.prepare::<&str>(&[]).command();
    let script = format!("trap '' HUP; exec '{}'", env!("CARGO_BIN_EXE_tertulia"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(home.project());
    for (name, value) in prepared.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let mut terminal = Terminal::open(&mut shell, SIZE);
    ready(&mut terminal);
    say(&mut terminal, "echo kept", "kept");
    terminal.close();
    assert_eq!(terminal.exit_code(), 129);
    assert_eq!(home.said("@").len(), 2);
}

#[test]
fn the_list_and_the_question_are_resized() {
    let home = Home::new();
    for round in 0..12 {
        home.say(&format!("echo talk {round} 漢字"));
    }
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/sessions\n");
    terminal.sees("12 sessions");
    for size in [
        Size::new(30, 8),
        Size::new(100, 40),
        Size::new(12, 4),
        Size::new(60, 20),
    ] {
        terminal.resize(size);
        terminal.wait_for("the chosen one", |screen| {
            screen.size() == size && screen.rows().iter().any(|row| row.starts_with("› "))
        });
        terminal.keys("Down");
    }
    terminal.keys("Esc");
    ready(&mut terminal);
    let words = agents::wanted("shell", &json!({ "command": "echo a > made" }));
    terminal.type_text(&format!("{words}\n"));
    terminal.sees("can change files");
    for size in [Size::new(24, 6), Size::new(120, 40), SIZE] {
        terminal.resize(size);
        terminal.wait_for("the answers", |screen| {
            screen.size() == size && screen.has("y once")
        });
    }
    terminal.keys("^c");
    ready(&mut terminal);
    leave(&mut terminal);
}

/// The second signal does not wait for an agent that does not stop.
#[test]
fn a_stubborn_agent_does_not_keep_anybody() {
    let home = Home::new();
    home.script_agent("stubborn", "trap '' TERM INT HUP; echo begun; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done");
    let mut terminal = talk(&home, &["--agent", "stubborn"]);
    terminal.type_text("go on\n");
    terminal.sees("begun");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.exit_code(), 143);
    until("its agents are gone", || {
        crate::running::agents_of(&home).is_empty().then_some(())
    });
    assert_eq!(home.said("@").len(), 2);
}
