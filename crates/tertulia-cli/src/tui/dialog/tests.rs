//! Tests of the smaller dialogs.

use proptest::prelude::*;
use ratatui::layout::Size;

use super::ask::{self, Ask};
use super::confirm::{self, Confirm};
use super::failure::{self, Failure};
use super::restore::{self, Restore};
use crate::tui::stage::{any_key, any_size, id, key, look, screen, session};
use crate::tui::view::dialog;

fn confirm() -> Confirm {
    Confirm::new(
        "Leave while Claude is answering?",
        "What was said so far is kept, and the talk can be resumed.",
    )
}

fn restore() -> Restore {
    let mut row = session(1, "Plan der Übergabe 漢字", 130);
    row.summary.team = Some("design".to_owned());
    row.summary.messages = 48;
    Restore::new(
        &row.summary,
        "The team agreed on a parser that keeps line ends. Bob was to write the tests, and Ann waits for them.",
    )
}

fn failure() -> Failure {
    let text = (1..40).map(|n| format!("cause {n}: \u{1b}the disk is gone\n"));
    let hints = vec!["look at the disk".to_owned()];
    Failure::new(
        "The talk could not be saved",
        &text.collect::<String>(),
        hints,
    )
}

fn shown_confirm(dialog: &Confirm, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        dialog::confirm::draw(dialog, look(), area, buffer);
        None
    })
}

fn shown_restore(dialog: &Restore, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        dialog::restore::draw(dialog, look(), area, buffer);
        None
    })
}

fn shown_failure(dialog: &Failure, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        dialog::failure::draw(dialog, look(), area, buffer);
        None
    })
}

fn shown_ask(dialog: &Ask, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        dialog::ask::draw(dialog, look(), area, buffer)
    })
}

#[test]
fn only_a_chosen_yes_is_a_yes() {
    use confirm::Outcome;
    insta::assert_snapshot!("confirm_80", shown_confirm(&confirm(), (80, 24)));
    let press = |names: &[&str]| {
        let mut dialog = confirm();
        names
            .iter()
            .map(|name| dialog.key(key(name)))
            .last()
            .unwrap()
    };
    assert_eq!(press(&["y"]), Outcome::Yes);
    assert_eq!(press(&["left", "enter"]), Outcome::Yes);
    for no in [&["n"][..], &["enter"], &["esc"], &["tab", "tab", "enter"]] {
        assert_eq!(press(no), Outcome::No, "{no:?}");
    }
    assert_eq!(press(&["x"]), Outcome::Nothing);
}

#[test]
fn an_earlier_session_goes_on_or_not() {
    use restore::Outcome;
    insta::assert_snapshot!("restore_80", shown_restore(&restore(), (80, 24)));
    insta::assert_snapshot!("restore_120", shown_restore(&restore(), (120, 40)));
    let press = |names: &[&str]| {
        let mut dialog = restore();
        names
            .iter()
            .map(|name| dialog.key(key(name)))
            .last()
            .unwrap()
    };
    for yes in [&["r"][..], &["R"], &["enter"]] {
        assert_eq!(press(yes), Outcome::Resume(id(1)), "{yes:?}");
    }
    for new in [&["n"][..], &["N"], &["right", "enter"]] {
        assert_eq!(press(new), Outcome::New, "{new:?}");
    }
    assert_eq!(press(&["esc"]), Outcome::Leave);
    let mut dialog = restore();
    assert_eq!(dialog.key(key("x")), Outcome::Changed);
    assert!(shown_restore(&dialog, (80, 24)).contains("Press R"));
}

#[test]
fn a_line_is_asked_for() {
    use ask::Outcome;
    let mut dialog = Ask::new("A title for this talk", "a title", "Talk 漢字");
    insta::assert_snapshot!("ask_80", shown_ask(&dialog, (80, 24)));
    dialog.key(key("^u"));
    dialog.paste("  two\nlines ");
    assert_eq!(
        dialog.key(key("enter")),
        Outcome::Answer("two lines".into())
    );
    assert_eq!(dialog.key(key("esc")), Outcome::Leave);
    assert_eq!(dialog.key(key("up")), Outcome::Nothing);
}

#[test]
fn what_went_wrong_is_read_copied_and_left() {
    use failure::Outcome;
    let mut dialog = failure();
    insta::assert_snapshot!("failure_80", shown_failure(&dialog, (80, 24)));
    let Outcome::Copy(text) = dialog.key(key("c")) else {
        panic!("nothing is copied");
    };
    assert!(
        text.starts_with("The talk could not be saved\ncause 1")
            && text.ends_with("look at the disk")
    );
    assert!(shown_failure(&dialog, (80, 24)).contains("copied"));
    assert_eq!(dialog.key(key("end")), Outcome::Changed);
    assert!(shown_failure(&dialog, (80, 24)).contains("• look at the disk"));
    assert_eq!(dialog.key(key("enter")), Outcome::Leave);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_keys_and_no_size_break_them(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let (mut confirm, mut restore, mut failure) = (confirm(), restore(), failure());
        let mut ask = Ask::new("?", "", "");
        failure.resize(Size::from(told));
        for key in keys {
            confirm.key(key);
            restore.key(key);
            failure.key(key);
            ask.key(key);
            shown_confirm(&confirm, size);
            shown_restore(&restore, size);
            shown_failure(&failure, size);
            shown_ask(&ask, size);
        }
    }
}
