//! The input field.

use super::stage::{leave, open_at, ready, say, talk, wrote};
use crate::home::Home;
use tertulia_testkit::terminal::Size;

#[test]
fn several_lines_are_written_and_sent_as_one() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("echo one");
    terminal.keys("Alt+Enter");
    terminal.type_text("  two\\");
    terminal.keys("Enter");
    terminal.type_text("three");
    wrote(&mut terminal, &["echo one", "two", "three"]);
    terminal.keys("Enter");
    ready(&mut terminal);
    terminal.wait_for("the answer", |screen| screen.rows_with("three") == 2);
    ready(&mut terminal);
    assert_eq!(
        home.said("@"),
        ["echo one\n  two\nthree", "one\n  two\nthree"]
    );
    leave(&mut terminal);
}

#[test]
fn editing_keys() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("word two three");
    wrote(&mut terminal, &["word two three"]);
    terminal.keys("^w");
    wrote(&mut terminal, &["word two"]);
    terminal.keys("^a");
    terminal.type_text("漢字 ");
    wrote(&mut terminal, &["漢字 word two"]);
    // Two wide characters and a space after the label.
    terminal.wait_for("the cursor after them", |screen| {
        screen.cursor() == Some((22, 10))
    });
    terminal.keys("^k");
    wrote(&mut terminal, &["漢字"]);
    terminal.keys("^y");
    wrote(&mut terminal, &["漢字 word two"]);
    terminal.keys("Alt+Backspace");
    wrote(&mut terminal, &["漢字 word"]);
    terminal.keys("^_");
    wrote(&mut terminal, &["漢字 word two"]);
}

#[test]
fn a_paste_of_half_a_megabyte_is_sent_whole() {
    let home = Home::new();
    home.script_agent("counts", "wc -c > /dev/null; echo counted");
    let mut terminal = talk(&home, &["--agent", "counts"]);
    let line = "a line of fifty bytes, with 漢字 and an ending….\n";
    let text = line.repeat(500_000 / line.len());
    terminal.type_text("look: ");
    terminal.paste(&text);
    terminal.sees("[pasted");
    let lines = text.lines().count();
    assert!(lines > 9_000);
    terminal.type_text(" and say");
    terminal.sees("and say");
    terminal.keys("Enter");
    terminal.sees("counted");
    ready(&mut terminal);
    assert_eq!(home.said("@")[0], format!("look: {text} and say"));
    leave(&mut terminal);
}

#[test]
fn a_short_paste_is_written_and_not_sent() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.paste("two\nlines");
    wrote(&mut terminal, &["two", "lines"]);
    terminal.keys("Enter");
    terminal.sees("You said: “two…”.");
    ready(&mut terminal);
    assert_eq!(home.said("@")[0], "two\nlines");
}

#[test]
fn nothing_of_a_paste_is_a_key() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.paste("words\n/exit\n\u{3}\u{4}\u{1b}[A\u{1b}x");
    terminal.type_text("end");
    terminal.sees("end");
    terminal.keys("Enter");
    terminal.sees("You said");
    ready(&mut terminal);
    assert!(
        home.said("@")[0].starts_with("words\n/exit\n"),
        "{:?}",
        home.said("@")
    );
}

#[test]
fn what_was_said_before_is_brought_back() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    say(&mut terminal, "echo alpha", "alpha");
    say(&mut terminal, "echo beta", "beta");
    terminal.type_text("mine");
    terminal.keys("Up");
    wrote(&mut terminal, &["echo beta"]);
    terminal.keys("Up");
    wrote(&mut terminal, &["echo alpha"]);
    terminal.keys("Down Down");
    wrote(&mut terminal, &["mine"]);
    leave_unsaid(terminal);
    // Also in another run, by a search.
    let mut terminal = talk(&home, &[]);
    terminal.keys("^r");
    terminal.type_text("alp");
    terminal.sees("echo alpha");
    terminal.keys("Enter");
    wrote(&mut terminal, &["echo alpha"]);
    terminal.keys("Enter");
    ready(&mut terminal);
    terminal.wait_for("said again", |screen| {
        screen.rows().contains(&"  alpha".to_owned())
    });
    ready(&mut terminal);
    assert_eq!(home.said("@"), ["echo alpha", "alpha"]);
    terminal.keys("^r");
    terminal.type_text("bet");
    terminal.sees("echo beta");
    terminal.keys("Esc");
    wrote(&mut terminal, &[""]);
    leave(&mut terminal);
}

fn leave_unsaid(mut terminal: tertulia_testkit::terminal::Terminal) {
    terminal.keys("^u");
    leave(&mut terminal);
}

#[test]
fn commands_are_completed() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/se");
    terminal.sees("/sessions");
    terminal.sees("/search");
    terminal.keys("Down");
    terminal.wait_for("another is chosen", |screen| {
        screen.rows_with("▸ /search") == 1
    });
    terminal.keys("Tab");
    wrote(&mut terminal, &["/search"]);
    terminal.keys("^u");
    terminal.type_text("/rena");
    terminal.sees("▸ /rename");
    terminal.keys("Esc");
    terminal.sees_no_more("▸ /rename");
    wrote(&mut terminal, &["/rena"]);
}

#[test]
fn sessions_and_files_are_completed() {
    let home = Home::new();
    home.say("the milk");
    std::fs::write(home.project().join("plan.txt"), "x").unwrap();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/resume mi");
    terminal.sees("the milk");
    terminal.keys("^u");
    terminal.type_text("look at @pl");
    terminal.sees("plan.txt");
    terminal.keys("Tab");
    terminal.wait_for("the file is named", |screen| {
        super::stage::written(screen).concat().contains("plan.txt")
    });
}

#[test]
fn there_is_room_for_writing_on_a_small_screen() {
    let home = Home::new();
    let mut terminal = open_at(&home, &[], Size::new(40, 12));
    ready(&mut terminal);
    for line in 1..=9 {
        terminal.type_text(&format!("line {line}"));
        terminal.keys("Alt+Enter");
    }
    terminal.type_text("the end");
    terminal.sees("the end");
    ready(&mut terminal);
    terminal.keys("Enter");
    terminal.sees("You said: “line 1…”");
    ready(&mut terminal);
    assert_eq!(home.said("@")[0].lines().count(), 10);
}
