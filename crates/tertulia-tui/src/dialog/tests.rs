//! Tests of the error dialog.

use proptest::prelude::*;
use ratatui::layout::Size;

use super::failure::Failure;
use crate::overlay::{Overlay, Reaction};
use crate::test_support::{any_key, any_size, key, look, noon, screen};
use crate::view::dialog;

fn failure() -> Failure {
    let text = (1..40).map(|n| format!("cause {n}: \u{1b}the disk is gone\n"));
    let hints = vec!["look at the disk".to_owned()];
    Failure::new(
        "The talk could not be saved",
        &text.collect::<String>(),
        hints,
    )
}

fn shown_failure(dialog: &Failure, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        dialog::failure::draw(dialog, look(), area, buffer);
        None
    })
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
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let mut failure = failure();
        failure.resize(Size::from(told));
        for key in keys {
            failure.key(key, noon());
            shown_failure(&failure, size);
        }
    }
}
