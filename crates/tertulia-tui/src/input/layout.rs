//! Wraps the text of the input into rows.

use super::text::{FOLD, Piece, clusters};
use crate::text::{self, RowEnds};

/// Width of a tab at any position.
const TAB: usize = 4;

/// One screen row: a range of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// First byte.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
    /// Number of folds before the row.
    pub folds: usize,
}

/// All rows of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    rows: Vec<Row>,
    columns: usize,
}

/// A grapheme as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Byte offset in the text.
    pub at: usize,
    /// Symbol shown for it.
    pub symbol: &'a str,
    /// Width of the symbol.
    pub columns: usize,
    /// Whether it stands for a folded passage.
    pub folded: bool,
}

impl Layout {
    /// Wraps a text into rows: after a blank if there is one, or else where the row is full. One
    /// more column is left for the cursor. Visits each grapheme once.
    pub fn new(piece: &Piece, columns: usize) -> Layout {
        let (text, columns) = (piece.text(), columns.max(1));
        let mut ends = RowEnds::new(columns);
        let mut rows = Vec::new();
        let (mut start, mut before, mut folds) = (0, 0, 0);
        let mut finish = |end: usize, next: usize| {
            let folds = before;
            rows.push(Row { start, end, folds });
            before += text[start..next].matches(FOLD).count();
            start = next;
        };
        for (at, cluster) in clusters(text) {
            if cluster.ends_with('\n') {
                finish(at, at + cluster.len());
                ends.restart(at + cluster.len());
                continue;
            }
            let wide = shown(piece, at, cluster, folds).columns.min(columns);
            folds += usize::from(cluster.starts_with(FOLD));
            let is_blank = cluster.starts_with([' ', '\t']);
            // A blank that does not fit goes into the cursor's column, so that the word before it
            // stays.
            if cluster == " " && ends.is_full() {
                ends.add(at, cluster.len(), wide, is_blank);
                continue;
            }
            for end in ends.push(at, cluster.len(), wide, is_blank) {
                finish(end, end);
            }
        }
        finish(text.len(), text.len());
        Layout { rows, columns }
    }

    /// The rows; at least one.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Row of a byte. A byte at a wrap belongs to the second row.
    pub fn row_of(&self, at: usize) -> usize {
        let later = self.rows.partition_point(|row| row.start <= at);
        later.saturating_sub(1)
    }

    /// Column of a byte in its row.
    pub fn column_of(&self, piece: &Piece, at: usize) -> usize {
        let row = &self.rows[self.row_of(at)];
        let before = row_of_characters(piece, row)
            .take_while(|shown| shown.at + piece_length(piece, shown.at) <= at);
        before.map(|shown| shown.columns.min(self.columns)).sum()
    }

    /// Byte at a column of a row, or the nearest one.
    pub fn at(&self, piece: &Piece, row: usize, column: usize) -> usize {
        let place = &self.rows[row.min(self.rows.len() - 1)];
        let mut used = 0;
        let mut last = place.start;
        for shown in row_of_characters(piece, place) {
            used += shown.columns.min(self.columns);
            if used > column {
                return shown.at;
            }
            last = shown.at;
        }
        let goes_on = self
            .rows
            .get(row + 1)
            .is_some_and(|next| next.start == place.end);
        if goes_on { last } else { place.end }
    }
}

fn piece_length(piece: &Piece, at: usize) -> usize {
    super::text::cluster_after(piece.text(), at) - at
}

/// Graphemes of a row, as shown.
pub fn row_of_characters<'a>(piece: &'a Piece, row: &Row) -> impl Iterator<Item = Shown<'a>> {
    let start = row.start;
    let mut folds = row.folds;
    clusters(&piece.text()[row.start..row.end]).map(move |(at, cluster)| {
        let shown = shown(piece, start + at, cluster, folds);
        folds += usize::from(shown.folded);
        shown
    })
}

/// Converts a grapheme to its symbol; control characters are replaced so that they cannot affect
/// the terminal.
fn shown<'a>(piece: &'a Piece, at: usize, cluster: &'a str, folds: usize) -> Shown<'a> {
    let folded = cluster.starts_with(FOLD);
    let symbol = if folded {
        piece.folds().get(folds).map_or("", |fold| &fold.label)
    } else if cluster == "\t" {
        "    "
    } else if cluster.contains(char::is_control) {
        "\u{fffd}"
    } else {
        cluster
    };
    Shown {
        at,
        symbol,
        columns: if cluster == "\t" {
            TAB
        } else {
            text::width(symbol)
        },
        folded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        let piece = Piece::plain(text);
        let layout = Layout::new(&piece, columns);
        let texts = layout.rows().iter();
        texts
            .map(|row| text[row.start..row.end].to_owned())
            .collect()
    }

    #[test]
    fn rows_break_after_blanks_and_else_where_they_are_full() {
        assert_eq!(rows("", 5), [""]);
        assert_eq!(rows("one two three", 8), ["one two ", "three"]);
        assert_eq!(rows("one two three", 7), ["one two ", "three"]);
        assert_eq!(rows("one two  three", 7), ["one two ", " three"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("a bcdefgh", 3), ["a ", "bcd", "efg", "h"]);
        assert_eq!(rows("a\n\nb\n", 3), ["a", "", "b", ""]);
        assert_eq!(rows("a\r\nb", 3), ["a", "b"]);
        assert_eq!(rows("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(rows("漢字", 1), ["漢", "字"]);
        assert_eq!(rows("👩‍👩‍👧a\u{301}b", 3), ["👩‍👩‍👧a\u{301}", "b"]);
    }

    #[test]
    fn places_are_found_again() {
        let text = "one 漢字 three\n\tfour";
        let piece = Piece::plain(text);
        let layout = Layout::new(&piece, 8);
        for (at, _) in clusters(text) {
            let (row, column) = (layout.row_of(at), layout.column_of(&piece, at));
            assert_eq!(layout.at(&piece, row, column), at, "{row} {column}");
        }
        assert_eq!(layout.at(&piece, 0, 100), 10, "the blank, not the next row");
        assert_eq!(layout.at(&piece, 9, 100), text.len());
    }
}
