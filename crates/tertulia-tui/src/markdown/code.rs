//! Renders code: keeps all spaces, and continues long lines on marked rows so that nothing is cut
//! off.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::Span;

use super::super::highlight::{Highlights, Runs};
use super::super::theme::Theme;
use super::marked_rows;
use crate::text::wrap::{Breaks, Margin, Piece, Row};

/// Left margin of code.
const INDENT: &str = "  ";
/// Left margin of a continuation row.
const GOES_ON: &str = "↪ ";

/// A code block being collected: its text and the source ranges of its parts.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) language: String,
    text: String,
    /// Source range of each part by its offset in `text`; both ascending.
    parts: Vec<(usize, Range<usize>)>,
}

impl Code {
    /// Creates an empty block; the language is the first word of the info string.
    pub(super) fn new(info: &str) -> Code {
        let word = info
            .split(|c: char| c.is_whitespace() || c == ',' || c == '{')
            .next()
            .unwrap_or_default();
        Code {
            language: word.to_owned(),
            ..Code::default()
        }
    }

    /// Appends a part.
    pub(super) fn push(&mut self, text: &str, source: Range<usize>) {
        self.parts.push((self.text.len(), source));
        self.text.push_str(text);
    }

    /// Source range of a line.
    fn source_of(&self, start: usize, length: usize) -> Range<usize> {
        let from = self.place_of(start);
        match length {
            0 => from..from,
            _ => from..(self.place_of(start + length - 1) + 1).max(from),
        }
    }

    fn place_of(&self, byte: usize) -> usize {
        let at = self.parts.partition_point(|(start, _)| *start <= byte);
        match at.checked_sub(1).and_then(|at| self.parts.get(at)) {
            None => 0,
            Some((start, source)) => (source.start + byte - start).min(source.end),
        }
    }

    /// Renders the code as rows.
    pub(super) fn rows(
        &self,
        margin: &Margin,
        width: usize,
        theme: Theme,
        highlights: &mut Highlights,
    ) -> Vec<Row> {
        let colours = highlights.code(&self.language, &self.text, theme);
        let first = with(&margin.first, INDENT, theme);
        let later = with(&margin.rest, INDENT, theme);
        let rest = with(&margin.rest, GOES_ON, theme);
        let mut margin = Margin { first, rest };
        let mut out = Vec::new();
        let mut at = 0;
        for (number, line) in self.text.split_inclusive('\n').enumerate() {
            let shown = line.strip_suffix('\n').unwrap_or(line);
            let runs = colours.get(number).map_or(&[][..], Runs::as_slice);
            let pieces = pieces(shown, runs, &self.source_of(at, shown.len()), theme.text());
            marked_rows(pieces, &margin, width, Breaks::Anywhere, theme, &mut out);
            margin.first.clone_from(&later);
            at += line.len();
        }
        out
    }
}

fn with(margin: &[Span<'static>], more: &'static str, theme: Theme) -> Vec<Span<'static>> {
    let mut spans = margin.to_vec();
    spans.push(Span::styled(more, theme.dim()));
    spans
}

/// Splits a line into highlighted pieces; text without a highlight gets the text style.
fn pieces<'t>(
    line: &'t str,
    runs: &[(Style, usize)],
    source: &Range<usize>,
    text: Style,
) -> Vec<Piece<'t>> {
    let part = |from: usize, to: usize, style: Style| {
        let mut piece = Piece::exact(&line[from..to], style, source.start + from);
        // If the parser changed the line (a tab split in two), only the line as a whole maps to its
        // source.
        if source.len() != line.len() {
            piece.source = source.clone();
        }
        piece
    };
    let mut pieces = Vec::new();
    let mut at = 0;
    for (style, length) in runs {
        let end = line.floor_char_boundary(at + length);
        if at < end {
            pieces.push(part(at, end, *style));
        }
        at = end;
    }
    if at < line.len() || pieces.is_empty() {
        pieces.push(part(at, line.len(), text));
    }
    pieces
}
