//! Text for users that all frontends share: safe for a terminal, cut to columns, one line each.

pub mod columns;
pub mod effects;
pub mod entries;
pub mod hint;
pub mod members;
pub mod permissions;
pub mod routing;
pub mod tools;

use jiff::Timestamp;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::pair::text::lasting;

/// Formats how long ago a time was.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let span = now.duration_since(then);
    if span.as_secs() < 60 {
        return "just now".to_owned();
    }
    format!("{} ago", lasting(span))
}

/// Formats a number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Formats a table as lines, the headings first.
pub fn table_lines(headings: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let clean = |row: &Vec<String>| row.iter().map(|cell| cell_of(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(clean).collect();
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.width()).collect();
    for row in &rows {
        for (column, cell) in row.iter().enumerate().take(widths.len()) {
            widths[column] = widths[column].max(cell.width());
        }
    }
    let line = |cells: Vec<&str>| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < cells.len() {
                text.push_str(&" ".repeat(widths[column] - cell.width() + 2));
            }
        }
        text.trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| row.iter().map(String::as_str));
    let rows = rows.map(|row| line(row.collect()));
    std::iter::once(line(headings.to_vec()))
        .chain(rows)
        .collect()
}

/// Truncates text to a number of terminal columns, between graphemes.
pub fn fit(text: &str, columns: usize) -> String {
    let clean: String = text
        .chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect();
    if clean.width() <= columns {
        return clean;
    }
    let (mut used, mut end) = (1, 0);
    for (at, grapheme) in clean.grapheme_indices(true) {
        used += grapheme.width();
        if used > columns {
            break;
        }
        end = at + grapheme.len();
    }
    format!("{}…", &clean[..end])
}

/// Fits text to a number of terminal columns: truncates it, or fills it up with spaces.
pub fn padded(text: &str, columns: usize) -> String {
    let mut cell = fit(text, columns);
    cell.push_str(&" ".repeat(columns.saturating_sub(cell.width())));
    cell
}

/// Returns the number of terminal columns that text occupies.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Formats text as a table cell: on one line, without control characters.
fn cell_of(text: &str) -> String {
    harmless(text).replace(['\n', '\t', '\u{2028}', '\u{2029}'], " ")
}

/// Returns true for control characters and for characters that change the direction of text, which
/// could reverse the line that contains a name.
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces control characters other than newline and tab, so that text cannot control the
/// terminal.
pub fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| {
            if steers(c) && c != '\n' && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn text_is_cut_by_columns() {
        let check = |text: &str, columns, expected: &str| assert_eq!(fit(text, columns), expected);
        check("short", 10, "short");
        check("a longer text", 8, "a longe…");
        check("漢字漢字", 5, "漢字…");
        check("a\nb", 5, "a b");
        check("👩‍👩‍👧 family", 4, "👩‍👩‍👧 …");
    }

    #[test]
    fn a_cell_is_one_line_of_text() {
        assert_eq!(cell_of("a\u{1b}[2J\nb\tc"), "a\u{fffd}[2J b c");
    }

    #[test]
    fn control_sequences_lose_their_power() {
        assert_eq!(harmless("a\u{202e}b\u{2066}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(
            harmless("a\u{1b}[31mb\n\tc\r"),
            "a\u{fffd}[31mb\n\tc\u{fffd}"
        );
    }

    #[test]
    fn ages_are_said_in_words() {
        let check = |seconds: i64, expected: &str| assert_eq!(ago(at(0), at(seconds)), expected);
        check(-5, "just now");
        check(59, "just now");
        check(60, "1 minute ago");
        check(7199, "1 hour ago");
        check(7200, "2 hours ago");
        check(86_400, "1 day ago");
        check(59 * 86_400, "59 days ago");
        check(90 * 86_400, "3 months ago");
        check(800 * 86_400, "2 years ago");
    }

    #[test]
    fn spans_are_said_in_words() {
        let check = |seconds: i64, expected: &str| {
            assert_eq!(lasting(SignedDuration::from_secs(seconds)), expected)
        };
        check(-5, "0 seconds");
        check(1, "1 second");
        check(59, "59 seconds");
        check(60, "1 minute");
        check(7200, "2 hours");
    }
}
