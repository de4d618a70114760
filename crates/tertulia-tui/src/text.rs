//! Text measured in terminal columns, by graphemes: cut to one line, or folded into lines; `wrap`
//! makes styled rows that know their source.

mod program;
pub mod wrap;

use std::borrow::Cow;
use std::ops::Range;

pub use program::program_output;
use ratatui::buffer::CellWidth;
use tertulia_engine::text::steers;
use unicode_segmentation::UnicodeSegmentation;

/// Bytes examined per column. No script needs more; longer sequences are made to slow down the
/// screen.
const BYTES_A_COLUMN: usize = 64;
/// Replacement of a tab.
const TAB: &str = "    ";
/// Replacement of a control character: harmless to the terminal, but visible.
const ODD: &str = "\u{fffd}";
/// Maximum length of a grapheme (such as a letter with many accents); longer ones are cut because
/// each is drawn again in every frame.
const LONGEST_GRAPHEME: usize = 64;

/// Width of a grapheme, as ratatui computes it. A control character is shown as one column.
pub fn width_of(grapheme: &str) -> usize {
    if grapheme.starts_with(char::is_control) {
        return 1;
    }
    usize::from(shortened(grapheme).cell_width())
}

fn shortened(grapheme: &str) -> &str {
    &grapheme[..grapheme.floor_char_boundary(LONGEST_GRAPHEME)]
}

/// Width of a line.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(width_of).sum()
}

/// Part of a line between two columns. A wide character belongs to it if it begins there.
pub fn columns(line: &str, part: Range<u16>) -> &str {
    let (from, to) = (usize::from(part.start), usize::from(part.end));
    let mut column = 0;
    let (mut start, mut end) = (line.len(), line.len());
    for (at, letter) in line.grapheme_indices(true) {
        if column >= from && start == line.len() {
            start = at;
        }
        if column >= to {
            end = at;
            break;
        }
        column += width_of(letter);
    }
    &line[start.min(end)..end]
}

/// Converts text to one line without characters that could affect the terminal.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if steers(c) => '\u{fffd}',
        c => c,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Cuts text to one line of at most `columns` columns, with an ellipsis if it continues. Examines
/// no more of the text than can be shown.
pub fn cut(text: &str, columns: usize) -> String {
    let most = text.floor_char_boundary(columns.saturating_add(1).saturating_mul(BYTES_A_COLUMN));
    let text_goes_on = most < text.len();
    let line = one_line(&text[..most]);
    let (mut taken, mut room_for_mark) = (0, 0);
    for (at, letter) in line.grapheme_indices(true) {
        let wide = width_of(letter);
        if taken + wide > columns {
            return marked(&line[..room_for_mark], columns);
        }
        taken += wide;
        if taken < columns {
            room_for_mark = at + letter.len();
        }
    }
    if text_goes_on {
        return marked(&line[..room_for_mark], columns);
    }
    line.into_owned()
}

fn marked(text: &str, columns: usize) -> String {
    match columns {
        0 => String::new(),
        _ => format!("{text}…"),
    }
}

/// Folds text into lines of at most `columns` columns, between words if possible. Keeps every
/// visible character: nothing in a permission request may hide at a fold. Stops after `most` lines
/// and returns whether there is more.
pub fn fold(text: &str, columns: usize, most: usize) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if lines.len() >= most {
            return (lines, true);
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        if fold_line(line, columns.max(1), most, &mut lines) {
            return (lines, true);
        }
    }
    (lines, false)
}

/// Folds one line; returns true if it stopped because there are enough lines.
fn fold_line(text: &str, columns: usize, most: usize, lines: &mut Vec<String>) -> bool {
    let mut ends = RowEnds::new(columns);
    let (mut line, mut start) = (String::new(), 0);
    for letter in text.graphemes(true) {
        let letter = shown(letter);
        let is_blank = letter == " " || letter == TAB;
        for end in ends.push(line.len(), letter.len(), width(letter), is_blank) {
            lines.push(line[start..end].to_owned());
            start = end;
            if lines.len() >= most {
                return true;
            }
        }
        line.push_str(letter);
    }
    lines.push(line[start..].to_owned());
    false
}

/// Finds where rows of text end: after a blank if there is one, or else where the row is full.
#[derive(Clone, Debug)]
pub struct RowEnds {
    columns: usize,
    /// First byte of the row.
    start: usize,
    /// Columns of the row so far.
    used: usize,
    /// Byte after the last blank of the row, and the columns up to there.
    gap: Option<(usize, usize)>,
}

impl RowEnds {
    /// Begins with the first row.
    pub fn new(columns: usize) -> RowEnds {
        RowEnds {
            columns,
            start: 0,
            used: 0,
            gap: None,
        }
    }

    /// Begins a row at a byte, after a line feed.
    pub fn restart(&mut self, start: usize) {
        (self.start, self.used, self.gap) = (start, 0, None);
    }

    /// Returns true if the row is filled to its last column.
    pub fn is_full(&self) -> bool {
        self.used == self.columns
    }

    /// Adds a grapheme; returns the bytes at which rows end before it.
    pub fn push(
        &mut self,
        at: usize,
        length: usize,
        wide: usize,
        is_blank: bool,
    ) -> impl Iterator<Item = usize> + use<> {
        let mut ends = [None; 2];
        if self.used + wide > self.columns
            && let Some((end, before)) = self.gap.take()
        {
            ends[0] = Some(end);
            self.start = end;
            self.used -= before;
        }
        if self.used + wide > self.columns && at > self.start {
            ends[1] = Some(at);
            self.restart(at);
        }
        self.add(at, length, wide, is_blank);
        ends.into_iter().flatten()
    }

    /// Adds a grapheme to the row even if it does not fit.
    pub fn add(&mut self, at: usize, length: usize, wide: usize, is_blank: bool) {
        self.used += wide;
        if is_blank {
            self.gap = Some((at + length, self.used));
        }
    }
}

fn shown(letter: &str) -> &str {
    match letter {
        "\t" => TAB,
        letter if letter.contains(steers) => ODD,
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_cut_by_columns() {
        let check = |text: &str, columns, expected: &str| assert_eq!(cut(text, columns), expected);
        check("short", 5, "short");
        check("longer", 5, "long…");
        check("漢字漢字", 5, "漢字…");
        check("漢字漢字", 4, "漢…");
        check("a\u{301}bc", 2, "a\u{301}…");
        check("a\nb\u{1b}[1m", 9, "a b\u{fffd}[1m");
        check("a\nb\u{7}", 9, "a b\u{fffd}");
        check("any", 0, "");
        check("👩‍👩‍👧 family", 4, "👩‍👩‍👧 …");
    }

    #[test]
    fn a_part_of_a_line_is_found_by_columns() {
        let check = |part: Range<u16>, expected: &str| {
            assert_eq!(columns("ab 漢字 c", part), expected);
        };
        check(0..2, "ab");
        check(3..5, "漢");
        check(3..6, "漢字");
        check(4..9, "字 c");
        check(7..99, " c");
        check(20..30, "");
        check(1..1, "");
    }

    #[test]
    fn text_is_folded_between_words() {
        let check = |text: &str, columns, expected: &[&str]| {
            assert_eq!(fold(text, columns, 99).0, expected, "{text:?}")
        };
        check("one two three", 8, &["one two ", "three"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("a\r\n\nb", 5, &["a", "", "b"]);
        check("x\u{1b}y", 5, &["x\u{fffd}y"]);
        check("", 5, &[""]);
        assert_eq!(
            fold("a b c d", 2, 2),
            (vec!["a ".into(), "b ".into()], true)
        );
        assert_eq!(fold("a\nb", 2, 1), (vec!["a".into()], true));
    }

    #[test]
    fn only_what_is_shown_is_looked_at() {
        let endless = "漢".repeat(1_000_000);
        assert_eq!(cut(&endless, 5), "漢漢…");
        assert_eq!(fold(&endless, 10, 3).0.len(), 3);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text in any::<String>(), columns in 0..40_usize) {
            prop_assert!(width(&cut(&text, columns)) <= columns);
        }

        #[test]
        fn folding_loses_nothing_and_fits(text in "[ a-z漢é\u{301}😀\n]{0,200}", columns in 4..30_usize) {
            let (lines, more) = fold(&text, columns, usize::MAX);
            prop_assert!(!more);
            prop_assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
            let plain = |text: &str| text.replace('\n', "");
            prop_assert_eq!(plain(&lines.concat()), plain(&text));
        }
    }
}
