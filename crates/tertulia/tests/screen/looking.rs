//! Navigation: help, the full transcript, scrolling, rewinding, copying.

use std::os::unix::fs::PermissionsExt;

use tertulia_testkit::terminal::Terminal;

use super::stage::{leave, open_with, ready, say, status_says, talk, wrote};
use crate::home::{Home, until};

/// A session of many lines.
fn long(home: &Home) -> Terminal {
    let mut terminal = talk(home, &[]);
    for round in 1..=8 {
        say(
            &mut terminal,
            &format!("echo answer number {round}"),
            &format!("answer number {round}"),
        );
    }
    terminal
}

#[test]
fn f1_shows_every_key() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.keys("F1");
    terminal.sees("Help");
    terminal.sees("/sessions");
    let before = terminal.contents();
    terminal.keys("PgDn");
    terminal.wait_for("another page", |screen| screen.text() != before);
    terminal.keys("End");
    terminal.keys("Esc");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn pages_and_lines_are_scrolled() {
    let home = Home::new();
    let mut terminal = long(&home);
    terminal.sees("answer number 8");
    terminal.keys("PgUp");
    terminal.sees_no_more("answer number 8");
    terminal.keys("PgUp PgUp PgUp PgUp");
    terminal.sees("answer number 1");
    // Sending a message scrolls to the end.
    terminal.type_text("echo the end");
    terminal.keys("Enter");
    terminal.sees("echo the end");
    ready(&mut terminal);
    terminal.wheel(true, (5, 5));
    terminal.wheel(true, (5, 5));
    terminal.sees_no_more("echo the end");
    terminal.keys("Ctrl+End");
    terminal.sees("echo the end");
    leave(&mut terminal);
}

#[test]
fn the_full_transcript_is_read_with_its_own_keys() {
    let home = Home::new();
    let mut terminal = long(&home);
    terminal.keys("^o");
    status_says(&mut terminal, "full transcript");
    assert_eq!(terminal.cursor(), None);
    terminal.keys("g");
    terminal.sees("answer number 1");
    terminal.keys("G");
    terminal.sees("answer number 8");
    terminal.keys("^o");
    ready(&mut terminal);
    terminal.wait_for("the input is back", |screen| screen.cursor().is_some());
    terminal.type_text("g");
    wrote(&mut terminal, &["g"]);
}

#[test]
fn esc_twice_goes_back_to_what_was_said() {
    let home = Home::new();
    let mut terminal = long(&home);
    let first = home.all()[0]["id"].as_str().unwrap().to_owned();
    terminal.keys("Esc Esc");
    terminal.sees("Rewind to just before");
    terminal.sees("echo answer number 8");
    terminal.keys("Down");
    terminal.wait_for("another is chosen", |screen| {
        screen
            .rows()
            .iter()
            .any(|row| row.starts_with("› echo answer number 7"))
    });
    terminal.keys("Enter");
    wrote(&mut terminal, &["echo answer number 7"]);
    ready(&mut terminal);
    until("there is a fork", || (home.all().len() == 2).then_some(()));
    terminal.keys("^u");
    say(&mut terminal, "echo otherwise", "otherwise");
    leave(&mut terminal);
    assert_eq!(home.said(&first).len(), 16, "the other talk is as it was");
    let said = home.said("@");
    assert_eq!(said.len(), 14);
    assert_eq!(said[12], "echo otherwise");
}

#[test]
fn esc_esc_esc_leaves_everything_as_it_is() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    say(&mut terminal, "echo one", "one");
    terminal.keys("Esc Esc");
    terminal.sees("Rewind to just before");
    terminal.keys("Esc");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(home.all().len(), 1);
}

#[test]
fn what_is_dragged_over_is_copied() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("echo copy me 漢");
    terminal.keys("Alt+Enter");
    terminal.type_text("and me\n");
    terminal.wait_for("the answer", |screen| screen.rows_with("and me") == 2);
    ready(&mut terminal);
    let (row, _) = terminal.look(|screen| {
        let rows = screen.rows();
        let row = rows.iter().rposition(|row| row == "  copy me 漢").unwrap();
        (u16::try_from(row).unwrap(), 0)
    });
    terminal.drag((row, 0), (row + 1, 6));
    terminal.sees("copied 2 lines");
    let copied = terminal.clipboard();
    assert_eq!(copied.len(), 1, "{copied:?}");
    // In base64: "copy me 漢
    // and me".
    assert_eq!(
        String::from_utf8_lossy(&copied[0]),
        "Y29weSBtZSDmvKIKYW5kIG1l"
    );
}

/// tmux ignores the sequence that copies, unless it is told otherwise.
#[test]
fn in_tmux_the_text_is_also_handed_to_tmux() {
    let home = Home::new();
    let copied = home.path().join("copied");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > '{0}.args'; cat > '{0}'\n",
        copied.display()
    );
    let tmux = home.folder("bin").join("tmux");
    std::fs::write(&tmux, script).unwrap();
    std::fs::set_permissions(&tmux, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    let variables = [("TMUX", "/tmp/tmux-0/default,1,0"), ("PATH", path.as_str())];
    let mut terminal = open_with(&home, &[], &variables).with_clear_keys();
    ready(&mut terminal);
    say(&mut terminal, "echo to be copied", "to be copied");
    terminal.keys("^o");
    status_says(&mut terminal, "full transcript");
    terminal.keys("V y");
    until("tmux has it", || {
        let text = std::fs::read_to_string(&copied).unwrap_or_default();
        text.contains("to be copied").then_some(())
    });
    let arguments = std::fs::read_to_string(copied.with_extension("args")).unwrap();
    assert_eq!(arguments, "load-buffer -w -\n");
    until("the terminal has it, too", || {
        (terminal.clipboard().len() == 1).then_some(())
    });
}

#[test]
fn the_search_leads_to_the_place() {
    let home = Home::new();
    let other = home.say("echo a needle in it");
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/search needle\n");
    terminal.sees("2 hits");
    terminal.keys("Enter");
    status_says(&mut terminal, &crate::home::short(&other));
    terminal.sees("a needle in it");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn the_settings_choose_keys_modes_and_notifications() {
    let home = Home::new();
    home.settings(
        "vim = true\ntheme = \"contrast\"\n[notify]\nafter = \"0s\"\n\
         [keys.session]\ntranscript = \"alt+t\"\nedit = \"ctrl+a\"\n",
    );
    let mut terminal = talk(&home, &[]);
    terminal.sees("Ctrl+A is both keys.session.edit and keys.input.line_start");
    terminal.send("\u{1b}t");
    status_says(&mut terminal, "full transcript");
    terminal.keys("Esc");
    ready(&mut terminal);
    say(&mut terminal, "echo one", "one");
    until("the bell", || (terminal.bells() > 0).then_some(()));
    until("the notification", || {
        let raw = terminal.raw_text();
        raw.contains("\u{1b}]9;demo is done\u{7}").then_some(())
    });
    assert!(terminal.raw_text().contains("\u{1b}]2;working · "));
    terminal.type_text("one two");
    terminal.keys("Esc");
    terminal.sees("[N] you> one two");
    terminal.type_text("0dw");
    terminal.sees("[N] you> two");
    terminal.type_text("dd");
    terminal.sees_no_more("[N] you> two");
    leave(&mut terminal);
    let raw = terminal.raw_text();
    assert!(raw.contains("\u{1b}[22;2t") && raw.contains("\u{1b}[23;2t"));
}
