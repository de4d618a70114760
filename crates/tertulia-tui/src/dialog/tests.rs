//! Tests of the smaller dialogs.

use proptest::prelude::*;
use ratatui::layout::Size;

use super::confirm::Confirm;
use super::failure::Failure;
use super::restore::Restore;
use crate::overlay::{Overlay, Reaction};
use crate::test_support::{any_key, any_size, before, id, key, later, look, noon, screen, session};
use crate::view::dialog;

fn confirm() -> Confirm {
    Confirm::new(
        "Leave while Claude is answering?",
        "What was said so far is kept, and the talk can be resumed.",
        before(1),
    )
}

fn restore() -> Restore {
    let mut row = session(1, "Plan der Übergabe 漢字", 130);
    row.meta.team = Some("design".to_owned());
    row.meta.messages = 48;
    Restore::new(
        &row.meta,
        "The team agreed on a parser that keeps line ends. Bob was to write the tests, and Ann waits for them.",
        before(1),
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

#[test]
fn only_a_chosen_yes_is_a_yes() {
    insta::assert_snapshot!("confirm_80", shown_confirm(&confirm(), (80, 24)));
    let press = |names: &[&str]| {
        let mut dialog = confirm();
        names
            .iter()
            .map(|name| dialog.key(key(name), noon()))
            .last()
            .unwrap()
    };
    assert_eq!(press(&["y"]), Reaction::Continue);
    assert_eq!(press(&["left", "enter"]), Reaction::Continue);
    for no in [&["n"][..], &["enter"], &["esc"], &["tab", "tab", "enter"]] {
        assert_eq!(press(no), Reaction::Close, "{no:?}");
    }
    assert_eq!(press(&["x"]), Reaction::Nothing);
}

#[test]
fn an_earlier_session_goes_on_or_not() {
    insta::assert_snapshot!("restore_80", shown_restore(&restore(), (80, 24)));
    insta::assert_snapshot!("restore_120", shown_restore(&restore(), (120, 40)));
    let press = |names: &[&str]| {
        let mut dialog = restore();
        names
            .iter()
            .map(|name| dialog.key(key(name), noon()))
            .last()
            .unwrap()
    };
    for yes in [&["r"][..], &["R"], &["enter"]] {
        assert_eq!(press(yes), Reaction::ResumeEarlier(id(1)), "{yes:?}");
    }
    for new in [&["n"][..], &["N"], &["right", "enter"]] {
        assert_eq!(press(new), Reaction::StartNew, "{new:?}");
    }
    assert_eq!(press(&["esc"]), Reaction::Return);
    let mut dialog = restore();
    assert_eq!(dialog.key(key("x"), noon()), Reaction::Changed);
    assert!(shown_restore(&dialog, (80, 24)).contains("Press R"));
}

#[test]
fn what_is_typed_while_a_question_appears_is_no_answer() {
    let row = session(1, "Earlier", 130);
    let mut asked = Restore::new(&row.meta, "", noon());
    let mut confirm = Confirm::new("Go on?", "", noon());
    for name in ["r", "n", "y", "enter", "esc"] {
        let early = Reaction::Pass(vec![key(name)]);
        assert_eq!(asked.key(key(name), later(299)), early);
        let early = Reaction::Pass(vec![key(name)]);
        assert_eq!(confirm.key(key(name), later(299)), early);
    }
    assert_eq!(asked.key(key("n"), later(599)), Reaction::StartNew);
    assert_eq!(confirm.key(key("y"), later(599)), Reaction::Continue);
}

#[test]
fn what_went_wrong_is_read_copied_and_left() {
    let mut dialog = failure();
    insta::assert_snapshot!("failure_80", shown_failure(&dialog, (80, 24)));
    let Reaction::Copy(text) = dialog.key(key("^y"), noon()) else {
        panic!("nothing is copied");
    };
    assert!(
        text.starts_with("The talk could not be saved\ncause 1")
            && text.ends_with("look at the disk")
    );
    assert!(shown_failure(&dialog, (80, 24)).contains("copied"));
    assert_eq!(dialog.key(key("end"), noon()), Reaction::Changed);
    assert!(shown_failure(&dialog, (80, 24)).contains("• look at the disk"));
    assert_eq!(dialog.key(key("enter"), noon()), Reaction::Close);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_keys_and_no_size_break_them(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let (mut confirm, mut restore, mut failure) = (confirm(), restore(), failure());
        failure.resize(Size::from(told));
        for key in keys {
            confirm.key(key, noon());
            restore.key(key, noon());
            failure.key(key, noon());
            shown_confirm(&confirm, size);
            shown_restore(&restore, size);
            shown_failure(&failure, size);
        }
    }
}
