//! Permission prompts in line mode, on a pseudo-terminal.

use std::fs;

use serde_json::json;
use tertulia_testkit::provider::Api;

use super::stage::{wanted, wanted_command};
use crate::agents::world::{KEY, World};
use crate::home::{Backend, Home, messages, until};
use crate::pty::{CTRL_C, CTRL_D, Terminal};

const QUESTION: &str = "Allow it? [y] once, [a] this session, [n] no, [i] say what to do instead: ";

/// Starts a session with this prompt, and waits for the first permission prompt.
fn asked(home: &Home, words: &str) -> Terminal {
    let mut terminal = Terminal::open(home, &["--no-color", words], &[]);
    terminal.sees(QUESTION, 1);
    terminal
}

/// Exits once the input prompt is shown for the nth time.
fn leave(mut terminal: Terminal, prompts: usize) -> String {
    terminal.sees("you> ", prompts);
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    shown
}

#[test]
fn a_command_is_shown_and_runs_after_a_yes() {
    for answer in ["y\n", "YES\n", " yes \n"] {
        let home = Home::new();
        let mut terminal = asked(&home, &wanted_command("echo a > made"));
        assert!(!home.project().join("made").exists());
        terminal.types(answer);
        let shown = leave(terminal, 1);
        let folder = home.project().display().to_string();
        let asked =
            format!("wants to run a command, high risk, in {folder}\r\n  echo a > made\r\n");
        assert!(shown.contains(&asked), "{shown}");
        assert!(home.project().join("made").exists());
    }
}

#[test]
fn a_change_is_shown_as_a_diff() {
    let home = Home::new();
    let path = home.project().join("kept");
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let edit = json!({ "path": "kept", "old_text": "two", "new_text": "2" });
    let mut terminal = asked(&home, &wanted("file_edit", &edit));
    terminal.types("y\n");
    let shown = leave(terminal, 1);
    for line in [
        "wants to edit kept (+1 −1), medium risk",
        "  -two\r\n",
        "  +2\r\n",
    ] {
        assert!(shown.contains(line), "no {line:?}: {shown}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n2\nthree\n");
}

#[test]
fn after_a_no_the_agent_is_told() {
    let home = Home::new();
    let mut terminal = asked(&home, &wanted_command("echo a > made"));
    terminal.types("n\n");
    leave(terminal, 1);
    assert!(!home.project().join("made").exists());
    let said = home.said("@");
    assert!(
        said[2].starts_with("[not run: the user does not want"),
        "{said:?}"
    );
    assert!(said[3].contains(&said[2]), "{said:?}");
    // People read it shorter.
    home.run(&["show", "@"]).ok().says("\ndenied by you\n");
}

#[test]
fn what_to_do_instead_is_told_with_the_no() {
    let home = Home::new();
    let mut terminal = asked(&home, &wanted_command("echo a > made"));
    terminal.types("i\n");
    terminal.sees("What to do instead (empty: back): ", 1);
    // Without words the question is asked again.
    terminal.types("\n");
    terminal.sees(QUESTION, 2);
    terminal.types("instead\n");
    terminal.sees("What to do instead (empty: back): ", 2);
    terminal.types("y\n");
    leave(terminal, 1);
    assert!(!home.project().join("made").exists());
    let said = home.said("@");
    let reason = "[not run: the user does not want this, and says what to do instead: y]";
    assert_eq!(said[2], reason, "{said:?}");
    assert!(said[3].contains(reason), "{said:?}");
}

#[test]
fn always_means_the_same_command_and_no_other() {
    let home = Home::new();
    let mut terminal = asked(&home, &wanted_command("echo a >> made"));
    terminal.types("a\n");
    // Allowing every such call needs a second confirmation.
    terminal.sees("Allow exactly this command in this session?", 1);
    assert!(!home.project().join("made").exists());
    terminal.types("y\n");
    terminal.sees("always allowed: shell echo a >> made", 1);
    terminal.sees("you> ", 1);
    terminal.types(format!("{}\n", wanted_command("echo a >> made")));
    terminal.sees("you> ", 2);
    assert_eq!(terminal.shown().matches(QUESTION).count(), 1);
    terminal.types(format!("{}\n", wanted_command("echo b >> made")));
    terminal.sees(QUESTION, 2);
    terminal.types("n\n");
    // A revoked permission is asked for again.
    terminal.sees("you> ", 3);
    terminal.types("/permissions\n");
    terminal.sees("1  shell echo a >> made", 1);
    terminal.types("/permissions revoke 1\n");
    terminal.sees("you> ", 5);
    terminal.types(format!("{}\n", wanted_command("echo a >> made")));
    terminal.sees(QUESTION, 3);
    terminal.types("n\n");
    leave(terminal, 6);
    let made = fs::read_to_string(home.project().join("made")).unwrap();
    assert_eq!(made, "a\na\n");
    // It applies to this run of the session only.
    let args = ["-c", &wanted_command("echo a >> made")];
    let mut terminal = Terminal::open(&home, &args, &[]);
    terminal.sees(QUESTION, 1);
    terminal.types("n\n");
    leave(terminal, 1);
}

#[test]
fn an_answer_that_is_none_is_asked_for_again() {
    let home = Home::new();
    let mut terminal = asked(&home, &wanted_command("echo a > made"));
    for (times, rubbish) in [(2, "yes please, go on\n"), (3, "\n"), (4, "echo any\n")] {
        terminal.types(rubbish);
        terminal.sees(QUESTION, times);
    }
    terminal.types(b"\xff\xfe\n");
    terminal.sees(QUESTION, 5);
    terminal.types("a\n");
    terminal.sees("in this session?", 1);
    terminal.types("no\n");
    terminal.sees(QUESTION, 6);
    terminal.types("n\n");
    // Lines that were no answer are sent as prompts when the turn is over.
    leave(terminal, 4);
    assert!(!home.project().join("made").exists());
    let said = home.said("@");
    assert!(
        said.iter().any(|words| words == "yes please, go on"),
        "{said:?}"
    );
    assert!(said.iter().any(|words| words == "any"), "{said:?}");
}

#[test]
fn ctrl_c_at_the_question_stops_the_turn_and_not_the_talk() {
    let home = Home::new();
    let mut terminal = asked(&home, &wanted_command("echo a > made"));
    terminal.types(CTRL_C);
    terminal.sees("(stopped)", 1);
    terminal.sees("you> ", 1);
    terminal.types("echo still here\n");
    leave(terminal, 2);
    assert!(!home.project().join("made").exists());
    let messages = messages(&home.show("@"));
    assert_eq!(messages[2]["interrupted"], true);
    assert_eq!(messages[4]["content"], "still here");
}

#[test]
fn the_end_of_the_input_means_no() {
    let home = Home::new();
    let mut terminal = asked(&home, &wanted_command("echo a > made"));
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(!home.project().join("made").exists());
    assert!(home.said("@")[2].starts_with("[not run: "));
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let world = World::with(Api::OpenAi, Backend::Sqlite, "");
    // In the first turn, before which no line was read, and in a later one.
    let words = r#"[[delay:300]] [[tool:shell {"command":"echo a >> made"}]] [[say:told]]"#;
    let args = ["--no-color", "--agent", "a", words];
    let mut terminal = Terminal::open(&world.home, &args, &[("TEST_KEY", KEY)]);
    for turn in 1..=2 {
        terminal.sees("a> ", turn);
        terminal.types("y\n");
        terminal.sees(QUESTION, turn);
        terminal.types("n\n");
        // The line typed early is sent as the next prompt.
        terminal.sees("echo #", turn);
        terminal.sees("you> ", 2 * turn);
        if turn == 1 {
            terminal.types(format!("{words}\n"));
        }
    }
    leave(terminal, 4);
    assert!(!world.home.project().join("made").exists());
    let said = world.home.said("@");
    assert_eq!(said.iter().filter(|words| *words == "y").count(), 2);
}

#[test]
fn one_turn_on_a_terminal_asks_too() {
    let home = Home::new();
    let words = wanted_command("echo a > made");
    let mut terminal = Terminal::open(&home, &["chat", "-p", &words], &[]);
    // Typed before the permission prompt.
    terminal.types("n\n");
    terminal.sees(QUESTION, 1);
    terminal.types("y\n");
    assert_eq!(terminal.ends().0, 0);
    assert!(home.project().join("made").exists());
}

#[test]
fn escape_sequences_do_not_reach_the_terminal() {
    let home = Home::new();
    let evil = "\u{1b}[2K\rls \u{1b}]0;owned\u{7}\u{9b}2J";
    for (tool, arguments) in [
        ("shell", json!({ "command": format!("rm x #{evil}") })),
        ("file_write", json!({ "path": "x", "content": evil })),
        ("file_write", json!({ "path": evil, "content": "x" })),
        ("no_such_tool", json!({ "path": evil })),
    ] {
        let words = wanted(tool, &arguments);
        let mut terminal = Terminal::open(&home, &["--no-color", &words], &[]);
        if tool != "no_such_tool" {
            terminal.sees(QUESTION, 1);
            terminal.types("n\n");
        }
        let shown = leave(terminal, 1);
        assert!(shown.contains("owned") || tool == "no_such_tool");
        assert!(
            !shown.contains(['\u{1b}', '\u{7}', '\u{9b}']),
            "{tool}: {shown:?}"
        );
        assert!(!shown.contains("\rls"), "{tool}: {shown:?}");
    }
}

#[test]
fn the_notification_command_runs_in_line_mode() {
    let home = Home::new();
    let told = home.path().join("told");
    home.settings(&format!(
        "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> {}\"]\n",
        told.display()
    ));
    let mut terminal = asked(&home, &wanted_command("echo a > made"));
    terminal.types("y\n");
    leave(terminal, 1);
    let text = until("both notifications came", || {
        let text = fs::read_to_string(&told).ok()?;
        (text.lines().count() == 2).then_some(text)
    });
    let kinds = ["\"kind\":\"permission\"", "\"kind\":\"ended\""];
    assert!(kinds.iter().all(|kind| text.contains(kind)), "{text}");
    assert!(!text.contains("made"), "{text}");
}
