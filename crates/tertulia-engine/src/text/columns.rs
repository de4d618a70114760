//! Styled text folded to a number of terminal columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Text in one style. What a style is, is up to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span<S> {
    /// The style.
    pub style: S,
    /// The text, without line feeds.
    pub text: String,
}

/// Returns the number of terminal columns that a row takes.
pub fn row_width<S>(row: &[Span<S>]) -> usize {
    row.iter().map(|span| span.text.width()).sum()
}

/// Folds one line into rows of at most `columns` columns, at blanks where possible. An empty line is
/// one empty row.
pub fn folded<S: Copy + PartialEq>(line: &[Span<S>], columns: usize) -> Vec<Vec<Span<S>>> {
    let mut rows = vec![Vec::new()];
    let mut used = 0;
    for span in line {
        for word in span.text.split_inclusive(' ') {
            if used > 0 && used + word.trim_end().width() > columns {
                rows.push(Vec::new());
                used = 0;
            }
            for grapheme in word.graphemes(true) {
                let width = grapheme.width();
                // A blank at the end of a row needs no column: the next row begins with a word.
                if used + width > columns && used > 0 {
                    if grapheme == " " {
                        continue;
                    }
                    rows.push(Vec::new());
                    used = 0;
                }
                used += width;
                if let Some(row) = rows.last_mut() {
                    push(row, span.style, grapheme);
                }
            }
        }
    }
    rows
}

fn push<S: Copy + PartialEq>(row: &mut Vec<Span<S>>, style: S, text: &str) {
    match row.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => row.push(Span {
            style,
            text: text.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> Vec<Span<u8>> {
        vec![Span {
            style: 0,
            text: text.to_owned(),
        }]
    }

    fn rows(text: &str, columns: usize) -> Vec<String> {
        let rows = folded(&plain(text), columns).into_iter();
        rows.map(|row| row.iter().map(|span| span.text.as_str()).collect())
            .collect()
    }

    #[test]
    fn lines_are_folded_at_blanks() {
        let check = |text: &str, columns: usize, expected: &[&str]| {
            assert_eq!(rows(text, columns), expected, "{text}");
        };
        check("", 5, &[""]);
        check("one two", 10, &["one two"]);
        check("one two three", 8, &["one two ", "three"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("a 漢字漢字漢字", 6, &["a ", "漢字漢", "字漢字"]);
    }

    #[test]
    fn styles_stay_with_their_text() {
        let line = [("one ", 0), ("two ", 1), ("three", 0)].map(|(text, style)| Span {
            style,
            text: text.to_owned(),
        });
        let rows = folded(&line, 8);
        assert_eq!(rows.len(), 2);
        let styles: Vec<u8> = rows.iter().flatten().map(|span| span.style).collect();
        assert_eq!(styles, [0, 1, 0]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_too_wide(text in "[a-c 漢é🦀]{0,40}", columns in 2..20_usize) {
            let rows = folded(&plain(&text), columns);
            let joined: String = rows.iter().flatten().map(|span| span.text.as_str()).collect();
            let visible = |text: &str| text.replace(' ', "");
            prop_assert_eq!(visible(&joined), visible(&text));
            for row in &rows {
                prop_assert!(row_width(row) <= columns);
            }
        }
    }
}
