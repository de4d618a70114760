//! Much at once: a very long line, a very fast answer, a long talk.

use crate::agents::{FAST, LONG, LONG_LINE};
use crate::home::Home;
use crate::stage::{leave, open, ready, talk, wrote};

#[test]
fn one_line_of_200_kilobytes() {
    let home = Home::new();
    home.script_agent("long", LONG_LINE);
    let mut terminal = talk(&home, &["--agent", "long"]);
    terminal.type_text("go\n");
    terminal.sees("that was long");
    ready(&mut terminal);
    terminal.keys("PgUp");
    terminal.wait_for("a page of it", |screen| {
        screen.row(0).starts_with("xxxxxxxx")
    });
    terminal.type_text("still here");
    wrote(&mut terminal, &["still here"]);
    terminal.keys("^u");
    leave(&mut terminal);
    assert!(home.said("@")[1].starts_with(&"x".repeat(LONG)));
    // And again, read from the disk.
    let mut terminal = open(&home, &["-c", "--agent", "long"]);
    terminal.sees("that was long");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn what_is_typed_is_drawn_while_5000_words_a_second_come() {
    let home = Home::new();
    home.script_agent("fast", FAST);
    let mut terminal = talk(&home, &["--agent", "fast"]);
    terminal.type_text("go\n");
    terminal.sees("98 99 100");
    for (count, letter) in "typed while it speaks".chars().enumerate() {
        terminal.type_text(&letter.to_string());
        let so_far: String = "typed while it speaks".chars().take(count + 1).collect();
        wrote(&mut terminal, &[so_far.trim_end()]);
    }
    assert!(
        !terminal.contents().contains("that was fast"),
        "it has not ended yet"
    );
    terminal.sees("that was fast");
    ready(&mut terminal);
    terminal.keys("^u");
    leave(&mut terminal);
    assert_eq!(home.said("@")[1].split_whitespace().count(), 20_003);
}

/// As many pieces as words, as fast as they can be told.
#[test]
fn sixty_thousand_pieces() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("count to 60000\n");
    terminal.type_text("typed");
    wrote(&mut terminal, &["typed"]);
    terminal.sees("59999 60000");
    ready(&mut terminal);
    let written = terminal.raw().len();
    assert!(
        written < 4_000_000,
        "{written} bytes were written to the terminal"
    );
    terminal.keys("^u");
    leave(&mut terminal);
    assert!(home.said("@")[1].ends_with(" 59999 60000"));
}

#[test]
fn a_long_talk_is_scrolled_without_being_read_whole() {
    let home = Home::new();
    let id = home.say("echo begin");
    for round in 0..40 {
        home.say_in(&id, &format!("echo answer {round}"));
    }
    let mut terminal = talk(&home, &["-c"]);
    terminal.sees("answer 39");
    terminal.keys("Ctrl+Home");
    terminal.sees("begin");
    terminal.keys("Ctrl+End");
    terminal.sees("answer 39");
    leave(&mut terminal);
}
