use std::borrow::Cow;

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use serde_json::json;
use tertulia_agents::approval::{Risk, ToolRequest};
use tertulia_core::entry::ToolCall;

use super::*;
use crate::dialog::subject::Permission;
use crate::test_support::{any_key, any_size, key, later, look, noon, screen};
use crate::theme::{Palette, Theme};
use crate::view::brush::Look;
use crate::view::dialog;

fn request(preview: &str) -> ToolRequest {
    ToolRequest {
        call: ToolCall {
            id: "1".to_owned(),
            name: "file_edit".to_owned(),
            arguments: json!({ "path": "src/parser.rs" }),
        },
        risk: Risk::Medium,
        preview: preview.to_owned(),
        folder: String::new(),
        key: "file_edit src/parser.rs".to_owned(),
        is_edit: false,
    }
}

const DIFF: &str = "--- src/parser.rs\n+++ src/parser.rs\n@@ -1,4 +1,4 @@\n fn parse() {\n\
    -    let line = read();\n+    let line = read().trim_end(); // 漢字\n }\n";

fn permission(request: ToolRequest) -> Subject {
    Subject::Permission(Box::new(Permission {
        ticket: 1,
        request,
        who: "Claude".to_owned(),
        place: None,
    }))
}

fn opened(preview: &str, size: (u16, u16)) -> Question {
    let look = (Size::from(size), Theme::new(Palette::Plain));
    let mut question = Question::new(permission(request(preview)), noon(), look);
    question.resize(Size::new(size.0, question.height().min(size.1)));
    question
}

fn shown(question: &Question, size: (u16, u16), milliseconds: i64) -> String {
    screen(size, |area, buffer| {
        let look = Look {
            now: later(milliseconds),
            ..look()
        };
        let height = question.height().min(area.height);
        let y = area.height - height;
        let area = Rect { y, height, ..area };
        dialog::question::draw(question, look, area, buffer)
    })
}

#[test]
fn what_a_tool_would_do_is_seen_before_it_is_allowed() {
    let question = opened(DIFF, (80, 24));
    insta::assert_snapshot!("asked_80", shown(&question, (80, 24), 300));
    let question = opened(DIFF, (120, 40));
    insta::assert_snapshot!("asked_120", shown(&question, (120, 40), 0));
}

#[test]
fn keys_that_were_pressed_before_it_could_be_read_are_no_answer() {
    let mut question = opened(DIFF, (80, 24));
    for name in ["y", "a", "enter", "esc"] {
        assert_eq!(
            question.key(key(name), later(299)),
            Reaction::Pass(vec![key(name)])
        );
    }
    // Typing continues: each key restarts the quiet time.
    assert_eq!(question.due(noon()), Some(later(599)));
    assert_eq!(
        question.key(key("y"), later(598)),
        Reaction::Pass(vec![key("y")])
    );
    assert_eq!(question.key(key("y"), later(898)), Reaction::Changed);
    assert_eq!(
        question.key(key("enter"), later(899)),
        Reaction::Answer(Verdict::Yes)
    );
}

#[test]
fn every_answer_has_its_keys() {
    let answer = |names: &[&str]| {
        let mut question = opened(DIFF, (80, 24));
        let mut last = Reaction::Nothing;
        for name in names {
            last = question.key(key(name), later(300));
        }
        last
    };
    let check =
        |names: &[&str], verdict| assert_eq!(answer(names), Reaction::Answer(verdict), "{names:?}");
    check(&["y", "enter"], Verdict::Yes);
    check(&["Y", "enter"], Verdict::Yes);
    check(&["a", "enter"], Verdict::Always);
    check(&["n", "enter"], Verdict::No);
    check(&["a", "backspace", "enter"], Verdict::No);
    check(&["esc"], Verdict::No);
    check(&["^c"], Verdict::No);
    // Enter alone denies: it may have been meant for something else.
    check(&["enter"], Verdict::No);
    check(&["right", "right", "enter"], Verdict::Yes);
    check(&["left", "enter"], Verdict::Always);
    check(&["left", "left", "enter"], Verdict::Yes);
    check(&["tab", "tab", "tab", "tab", "enter"], Verdict::No);
    // A letter alone is no answer, and a second letter turns both into text.
    for letter in ["y", "a", "n", "i"] {
        assert_eq!(answer(&[letter]), Reaction::Changed);
    }
    assert_eq!(answer(&["x"]), Reaction::Pass(vec![key("x")]));
    assert_eq!(
        answer(&["a", "t"]),
        Reaction::Pass(vec![key("a"), key("t")])
    );
    let backtab = KeyEvent::from(KeyCode::BackTab);
    assert_eq!(
        opened(DIFF, (80, 24)).key(backtab, later(300)),
        Reaction::Pass(vec![backtab]),
        "switches the tool policy"
    );
    assert_eq!(
        answer(&["y", "y"]),
        Reaction::Pass(vec![key("y"), key("y")])
    );
}

#[test]
fn what_to_do_instead_is_written_and_told() {
    let mut question = opened(DIFF, (80, 24));
    let mut press = |name: &str| question.key(key(name), later(300));
    assert_eq!(
        (press("i"), press("enter")),
        (Reaction::Changed, Reaction::Changed)
    );
    // Without words there is nothing to tell; every letter is text now.
    assert_eq!(press("enter"), Reaction::Nothing);
    for letter in ["y", "a", "n", " ", "i"] {
        assert_eq!(press(letter), Reaction::Changed);
    }
    assert!(question.paste("t", later(300)));
    let screen = shown(&question, (80, 24), 300);
    assert!(screen.contains("instead> yan it"), "{screen}");
    assert!(
        screen.contains("what should Claude do instead?"),
        "{screen}"
    );
    let mut told = question.clone();
    let instead = Verdict::Instead("yan it".to_owned());
    assert_eq!(
        told.key(key("enter"), later(300)),
        Reaction::Answer(instead)
    );
    // Esc goes back to the question, whose answer is no again.
    assert_eq!(question.key(key("esc"), later(300)), Reaction::Changed);
    assert!(!question.paste("x", later(300)));
    let no = Reaction::Answer(Verdict::No);
    assert_eq!(question.key(key("enter"), later(300)), no);
}

#[test]
fn a_long_preview_scrolls_and_says_how_much_is_not_seen() {
    let long: String = (1..=100)
        .map(|number| format!("+line {number}\n"))
        .collect();
    let mut question = opened(&long, (80, 24));
    insta::assert_snapshot!("long_80", shown(&question, (80, 24), 300));
    question.key(key("pgdn"), later(300));
    question.key(key("down"), later(300));
    let screen = shown(&question, (80, 24), 300);
    assert!(
        screen.contains("PgUp ↑ 22, PgDn ↓ 57 more lines"),
        "{screen}"
    );
    question.key(key("end"), later(300));
    let end = shown(&question, (80, 24), 300);
    assert!(end.contains("+line 100") && !end.contains('↓'), "{end}");
}

#[test]
fn nothing_hides_at_a_fold_or_behind_spaces() {
    let command = format!("ls{}; rm -rf /\u{1b}[2K", " ".repeat(300));
    let mut odd = request(&command);
    odd.call.name = "odd".to_owned();
    let look = (Size::new(40, 24), Theme::new(Palette::Plain));
    let mut question = Question::new(permission(odd), noon(), look);
    let screen = shown(&question, (40, 24), 300);
    assert!(screen.contains("rm -rf /\u{fffd}[2K"), "{screen}");
    // Drawn at a size other than the last `resize`, the preview is folded for that size.
    let screen = shown(&question, (30, 24), 300);
    let all = |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all(&screen).contains("; rm -rf"), "{screen}");
    assert!(screen.contains("medium risk"), "{screen}");
    // The meaning of "always" is shown in full, too.
    question.resize(Size::new(30, 40));
    let screen = shown(&question, (30, 40), 300);
    assert!(
        all(&screen).contains("(file_edit src/parser.rs) in this session"),
        "{screen}"
    );
}

#[test]
fn what_a_change_adds_and_takes_away_is_coloured() {
    let theme = Theme::new(Palette::Dark);
    let size = Size::new(80, 24);
    let question = Question::new(permission(request(DIFF)), noon(), (size, theme));
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    let now = later(300);
    dialog::question::draw(&question, Look { theme, now }, area, &mut buffer);
    // After the number of the line.
    let colour = |mark: &str| {
        let mut lines = (0..24).filter(|y| buffer[(3, *y)].symbol() == mark);
        lines.next_back().map(|y| buffer[(3, y)].fg)
    };
    assert_eq!(colour("+"), Some(Color::Green));
    assert_eq!(colour("-"), Some(Color::Red));
}

#[test]
fn a_huge_preview_is_folded_once_and_drawn_in_part() {
    // 500 kB in one line, and 200 000 lines.
    for preview in ["x".repeat(500_000), "+x\n".repeat(200_000)] {
        let mut question = opened(&preview, (80, 24));
        for _ in 0..50 {
            question.key(key("pgdn"), later(300));
            shown(&question, (80, 24), 300);
        }
        assert!(matches!(question.rows(80), Cow::Borrowed(_)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let mut question = opened(DIFF, told);
        for key in keys {
            question.key(key, later(300));
            shown(&question, size, 300);
        }
    }
}
