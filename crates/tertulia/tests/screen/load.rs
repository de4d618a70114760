//! Large amounts: a very long line, a very fast answer, a long session.

use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human};

use super::agents::{FAST, LONG, LONG_LINE};
use super::stage::{leave, open, ready, talk, wrote};
use crate::home::Home;

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
        screen.row(0).starts_with("  xxxxxxxx")
    });
    terminal.type_text("still here");
    wrote(&mut terminal, &["still here"]);
    terminal.keys("^u");
    leave(&mut terminal);
    assert!(home.said("@")[1].starts_with(&"x".repeat(LONG)));
    // The same when read from disk.
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

/// One chunk per word, as fast as they can be sent.
#[test]
fn sixty_thousand_pieces() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 0\n");
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

/// An unusually long session: its beginning, its end and any position are shown at once.
#[test]
fn a_talk_of_twenty_thousand_messages() {
    let home = Home::new();
    home.say("something else, which makes the store");
    let store = SqliteStore::open(&home.database()).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(7));
    for thousand in 0..20 {
        let messages = (0..500).flat_map(|pair| {
            let number = thousand * 500 + pair;
            [
                human(&format!("question {number}")),
                ai("demo", &format!("answer {number} 答え")),
            ]
        });
        writer.append(&store, messages.collect());
    }
    let id = writer.id.to_string();
    drop(store);
    let mut terminal = talk(&home, &["--resume", &id]);
    terminal.sees("answer 9999 答え");
    terminal.sees("restored: 20000 messages");
    terminal.keys("Ctrl+Home");
    terminal.sees("answer 0 答え");
    terminal.keys("Ctrl+End");
    terminal.sees("answer 9999 答え");
    // All of it is searched, whatever is loaded.
    terminal.keys("^o");
    terminal.type_text("/question 17\n");
    terminal.sees("111 of 111");
    terminal.sees("question 1799");
    terminal.keys("N");
    terminal.sees("1 of 111");
    terminal.sees("question 17");
    terminal.type_text("/question 0x\n");
    terminal.sees("no 'question 0x' in this session");
    terminal.keys("Esc Esc");
    terminal.sees("answer 9999 答え");
    terminal.keys("PgUp PgUp PgUp");
    terminal.sees_no_more("answer 9999 答え");
    terminal.type_text("still here");
    wrote(&mut terminal, &["still here"]);
    terminal.keys("^u");
    leave(&mut terminal);
}
