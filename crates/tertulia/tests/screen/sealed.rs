//! Sealed sessions on the screen: the passphrase is asked for once, before the screen opens.

use super::stage::{leave, open, ready, say, status_says};
use crate::home::Home;

#[test]
fn a_fork_and_another_session_need_no_second_passphrase() {
    let home = Home::new();
    home.settings("[seal]\nwork_factor = 1\n");
    let mut terminal = open(&home, &["chat", "--sealed"]).with_clear_keys();
    for question in ["New passphrase:", "The same again:"] {
        terminal.sees(question);
        terminal.type_text("between us\n");
    }
    ready(&mut terminal);
    say(&mut terminal, "echo hidden words", "hidden words");
    status_says(&mut terminal, "sealed");
    leave(&mut terminal);
    let mut terminal = open(&home, &["-c"]).with_clear_keys();
    terminal.sees("Passphrase:");
    terminal.type_text("between us\n");
    ready(&mut terminal);
    terminal.sees("hidden words");
    terminal.type_text("/fork\n");
    terminal.sees("fork of ");
    ready(&mut terminal);
    say(&mut terminal, "echo in the fork", "in the fork");
    status_says(&mut terminal, "sealed");
    leave(&mut terminal);
    let sealed = home
        .all()
        .iter()
        .filter(|row| row["sealed"] == true)
        .count();
    assert_eq!(sealed, 2);
}
