use proptest::prelude::*;

use super::*;
use crate::test_support::{any_key, any_size, key, look, noon, screen};
use crate::view;

fn amount(messages: u64, tokens: u64) -> Amount {
    Amount {
        messages,
        tokens: Usage {
            input: tokens,
            output: tokens / 10,
            estimated: true,
            ..Usage::default()
        },
    }
}

fn some() -> Stats {
    let day = |text: &str| text.parse::<Date>().unwrap();
    Stats::new(Figures {
        of: "git:github.com/ann/parser".to_owned(),
        sessions: 12,
        days: vec![
            (day("2026-10-30"), amount(120, 90_000)),
            (day("2026-11-01"), amount(40, 1_250_000)),
            (day("2026-10-03"), amount(3, 500)),
            (day("2024-02-29"), amount(1, 10)),
        ],
        agents: vec![
            ("demo".to_owned(), amount(60, 1000)),
            (
                "漢字の代理人 with a very long name".to_owned(),
                amount(70, 900),
            ),
            ("evil\u{1b}[2J".to_owned(), amount(0, 0)),
        ],
        models: vec![("demo-1".to_owned(), amount(130, 1900))],
    })
}

fn shown(stats: &Stats, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::stats::draw(stats, look(), area, buffer);
        None
    })
}

#[test]
fn figures_are_bars() {
    let mut stats = some();
    insta::assert_snapshot!("messages_80", shown(&stats, (80, 24)));
    insta::assert_snapshot!("messages_120", shown(&stats, (120, 40)));
    assert_eq!(stats.key(key("tab"), noon()), Reaction::Changed);
    insta::assert_snapshot!("tokens_80", shown(&stats, (80, 24)));
    assert_eq!(stats.key(key("esc"), noon()), Reaction::Close);
    assert_eq!(stats.key(key("x"), noon()), Reaction::Nothing);
}

#[test]
fn the_last_days_have_gaps() {
    assert_eq!(some().last_days(4), [0, 120, 0, 40]);
    assert_eq!(some().last_days(0), [0_u64; 0]);
    assert!(Stats::new(Figures::default()).last_days(9).is_empty());
}

#[test]
fn lines_are_as_many_as_are_said() {
    let stats = some();
    let all: Vec<Line<'_>> = (0..stats.lines()).filter_map(|n| stats.line(n)).collect();
    assert_eq!(all.len(), stats.lines());
    assert_eq!(stats.line(stats.lines()), None);
    let bars = all.iter().filter(|line| matches!(line, Line::Bar(..)));
    assert_eq!(bars.count(), 8);
}

#[test]
fn nothing_said_is_no_trouble() {
    let stats = Stats::new(Figures::default());
    insta::assert_snapshot!("nothing", shown(&stats, (80, 24)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let mut stats = some();
        stats.resize(Size::new(told.0, told.1));
        for key in keys {
            stats.key(key, noon());
            shown(&stats, size);
        }
    }
}
