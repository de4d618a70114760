//! Rows: width, wrapping, and source ranges.

use proptest::prelude::*;

use super::super::LONGEST_GRAPHEME;
use super::*;

fn broken(text: &str, width: usize, breaks: Breaks) -> Vec<Row> {
    let mut out = Vec::new();
    let pieces = [Piece::exact(text, Style::new(), 0)];
    rows(&pieces, &Margin::default(), width, breaks, &mut out);
    out
}

fn texts(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.line.to_string()).collect()
}

fn words(text: &str, width: usize) -> Vec<String> {
    texts(&broken(text, width, Breaks::Words))
}

#[test]
fn words_stay_whole_where_they_can() {
    assert_eq!(words("one two three", 7), ["one two", "three"]);
    assert_eq!(words("one  two", 20), ["one  two"]);
    assert_eq!(words("one   two", 5), ["one", "two"]);
    assert_eq!(words("", 5), [""]);
    assert_eq!(words("    indented text", 12), ["    indented", "text"]);
    assert_eq!(words("a abcdefghij b", 4), ["a", "abcd", "efgh", "ij b"]);
}

#[test]
fn width_is_what_is_seen() {
    assert_eq!(words("漢字漢字", 4), ["漢字", "漢字"]);
    assert_eq!(words("ab漢字", 3), ["ab", "漢", "字"]);
    assert_eq!(words("👩‍👩‍👧 👍🏽", 4), ["👩‍👩‍👧", "👍🏽"]);
    assert_eq!(
        words("e\u{301}e\u{301}e\u{301}", 2),
        ["e\u{301}e\u{301}", "e\u{301}"]
    );
    // A character wider than the screen still gets its own row.
    assert_eq!(words("漢字", 1), ["漢", "字"]);
}

#[test]
fn what_would_steer_a_terminal_is_shown_harmless() {
    assert_eq!(words("a\u{1b}[31mb\u{7}", 20), ["a\u{fffd}[31mb\u{fffd}"]);
    assert_eq!(words("a\u{202e}b\u{200b}c", 20), ["abc"]);
    let tower = format!("a{}", "\u{301}".repeat(100_000));
    assert!(words(&tower, 20)[0].len() <= LONGEST_GRAPHEME);
}

#[test]
fn tabs_go_to_the_next_stop() {
    assert_eq!(
        texts(&broken("\ta\tb", 20, Breaks::Anywhere)),
        ["    a   b"]
    );
    assert_eq!(
        texts(&broken("abc\td", 3, Breaks::Anywhere)),
        ["abc", "   ", "d"]
    );
}

#[test]
fn a_row_knows_what_it_shows() {
    let text = "one two  three";
    let rows = broken(text, 7, Breaks::Words);
    let shown: Vec<&str> = rows.iter().map(|row| &text[row.source.clone()]).collect();
    assert_eq!(shown, ["one two", "three"]);
}

#[test]
fn a_look_may_reach_across_pieces() {
    let pieces = vec![
        Piece::exact("ab", Style::new(), 0),
        Piece::exact("cd", Style::new().bold(), 2),
        Piece::exact("ef", Style::new(), 4),
    ];
    let find = |text: &str| {
        let at = text.find("bcde").unwrap();
        std::iter::once(at..at + 4).collect()
    };
    let parts = restyle(pieces, find, Style::new().reversed());
    let texts: Vec<&str> = parts.iter().map(|part| &*part.text).collect();
    assert_eq!(texts, ["a", "b", "cd", "e", "f"]);
    assert_eq!(parts[2].style, Style::new().bold().reversed());
    assert_eq!(parts[4].source, 5..6);
}

proptest! {
    #[test]
    fn no_row_is_too_wide_and_nothing_is_lost(
        text in "([a-c]{1,9}|[ \t]{1,3}|漢|👩‍👩‍👧|e\u{301}|\u{1b}|\u{200b}){0,30}",
        width in 1usize..12,
    ) {
        for breaks in [Breaks::Words, Breaks::Anywhere] {
            let rows = broken(&text, width, breaks);
            prop_assert!(!rows.is_empty());
            let mut seen = String::new();
            let mut end = 0;
            for row in &rows {
                let wide = row.line.to_string().graphemes(true).count() <= 1
                    || row.line.to_string().trim().is_empty();
                prop_assert!(width_of(&row.line.spans) <= width || wide, "{row:?}");
                prop_assert!(row.source.start >= end, "{rows:?}");
                // Only spaces and invisible characters may lie between two rows.
                let between = &text[end..row.source.start];
                prop_assert!(between.trim_matches(['\u{200b}', ' ', '\t']).is_empty(), "{between:?}");
                end = row.source.end;
                seen.push_str(&row.line.to_string());
            }
            let letters = |text: &str| -> String {
                text.chars().filter(|c| !c.is_whitespace() && *c != '\u{200b}')
                    .map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
            };
            prop_assert_eq!(letters(&seen), letters(&text));
        }
    }
}

/// The cost grows linearly with the length of the text: rows and their bytes are counted.
#[test]
fn one_endless_word_is_one_pass() {
    let bytes = |length: usize| -> usize {
        let rows = broken(&"x".repeat(length), 80, Breaks::Words);
        assert_eq!(rows.len(), length.div_ceil(80));
        texts(&rows).iter().map(String::len).sum()
    };
    assert_eq!(bytes(200_000), 10 * bytes(20_000));
}
