use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

use super::*;
use crate::test_support::{any_key, any_size, key, look, noon, screen};
use crate::theme::{Palette, Theme};
use crate::view;
use crate::view::brush::Look;

fn info() -> Sheet {
    let mut lines = facts(&[
        ("title", "Fix the parser, 漢字".to_owned()),
        ("id", "01936f5e-6c5a-7b3a-9d2f-0000a0010001".to_owned()),
        ("messages", "42".to_owned()),
    ]);
    lines.push(Line::new(Ink::Plain, ""));
    let long = "It was begun on another machine, by somebody else, and was continued here. ";
    lines.push(Line::new(Ink::Plain, long.repeat(2).trim_end()));
    let text = "words with \u{1b}[31mpower\tand a tab";
    lines.push(Line::new(Ink::Plain, text));
    Sheet::new("Info", lines)
}

fn compared() -> Sheet {
    let lines = [
        "  Ann: Why is it slow?",
        "- Ada: Because of the loop.",
        "+ Ada: Because of the lock, which every reader takes, even those that only want to know the length of the list.",
        "",
        "+",
    ];
    Sheet::new(
        "Comparison",
        super::compared(lines.map(str::to_owned).to_vec()),
    )
}

fn numbered(count: usize) -> Sheet {
    let line = |number| Line::new(Ink::Plain, format!("line {number}"));
    Sheet::new("Many", (1..=count).map(line).collect())
}

fn shown(sheet: &Sheet, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::sheet::draw(sheet, look(), area, buffer);
        None
    })
}

fn at(mut sheet: Sheet, size: (u16, u16)) -> String {
    sheet.resize(Size::new(size.0, size.1));
    shown(&sheet, size)
}

#[test]
fn a_sheet_lies_over_the_screen() {
    insta::assert_snapshot!("info_80", at(info(), (80, 24)));
    insta::assert_snapshot!("info_120", at(info(), (120, 40)));
    insta::assert_snapshot!("compared_80", at(compared(), (80, 24)));
    insta::assert_snapshot!("info_small", at(info(), (24, 8)));
}

#[test]
fn a_long_one_is_scrolled() {
    let mut sheet = numbered(50);
    let mut ends = |name: &str| {
        assert_eq!(sheet.key(key(name), noon()), Reaction::Changed, "{name}");
        let (rows, before, after) = sheet.seen(21);
        assert_eq!(rows.len() + before + after, 50);
        (before, after)
    };
    assert_eq!(ends("down"), (1, 28));
    assert_eq!(ends("pgdn"), (22, 7));
    assert_eq!(ends("end"), (29, 0));
    assert_eq!(ends("up"), (28, 1));
    assert_eq!(ends("pgup"), (7, 22));
    insta::assert_snapshot!("scrolled_80", shown(&sheet, (80, 24)));
    assert_eq!(sheet.key(key("home"), noon()), Reaction::Changed);
    assert_eq!(sheet.key(key("x"), noon()), Reaction::Nothing);
}

#[test]
fn it_is_left_and_copied() {
    let mut sheet = compared();
    for name in ["esc", "q", "^c"] {
        assert_eq!(sheet.key(key(name), noon()), Reaction::Close, "{name}");
    }
    let Reaction::Copy(text) = sheet.key(key("y"), noon()) else {
        panic!("y copies");
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "  Ann: Why is it slow?");
    assert_eq!(lines[1], "- Ada: Because of the loop.");
    assert!(lines[2].starts_with("+ Ada:") && lines[2].ends_with("of the list."));
    assert_eq!(lines[3..], ["", "+"]);
    // Copies the text as given, not as displayed.
    let Reaction::Copy(text) = info().key(key("y"), noon()) else {
        panic!("y copies");
    };
    assert!(text.contains("\n\nIt was") && text.contains("\u{1b}[31mpower\tand"));
}

#[test]
fn what_differs_has_its_colours() {
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    let look = Look {
        theme: Theme::new(Palette::Dark),
        now: noon(),
    };
    view::sheet::draw(&compared(), look, area, &mut buffer);
    let colour_of = |sign: &str| {
        let is_sign = |cell: &&ratatui::buffer::Cell| cell.symbol() == sign;
        buffer.content.iter().find(is_sign).map(|cell| cell.fg)
    };
    assert_eq!(colour_of("+"), Some(Color::Green));
    assert_eq!(colour_of("-"), Some(Color::Red));
}

#[test]
fn another_height_folds_nothing_again() {
    let mut sheet = numbered(10);
    let rows = sheet.rows.as_ptr();
    sheet.resize(Size::new(80, 40));
    assert_eq!(sheet.rows.as_ptr(), rows);
    sheet.resize(Size::new(8, 40));
    assert_eq!(sheet.rows[0].text, "line");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_keys_no_words_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
        texts in proptest::collection::vec(any::<String>(), 0..6),
    ) {
        let inks = [Ink::Plain, Ink::Added, Ink::Removed];
        let lines = texts.iter().zip(inks.iter().cycle());
        let lines = lines.map(|(text, ink)| Line::new(*ink, text.clone()));
        let mut sheet = Sheet::new(texts.concat(), lines.collect());
        sheet.resize(Size::new(told.0, told.1));
        for key in keys {
            sheet.key(key, noon());
            shown(&sheet, size);
        }
        shown(&sheet, told);
    }
}
