//! Renders code: in a frame that names the language, with all its spaces. Long lines continue on
//! marked rows, so that nothing is cut off. The frame is open to the right: there it would move while
//! code streams in.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::highlight::{Highlights, Runs};
use super::super::theme::Theme;
use super::{PROSE, marked_rows};
use crate::text::cut;
use crate::text::wrap::{Breaks, Margin, Piece, Row, width_of};

/// Left margin of code.
const INDENT: &str = "│ ";
/// Left margin of a continuation row.
const GOES_ON: &str = "↪ ";

/// A code block being collected: its text and the source ranges of its parts.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) language: String,
    text: String,
    /// Offset of the block, including its fence.
    start: usize,
    /// Source range of each part by its offset in `text`; both ascending.
    parts: Vec<(usize, Range<usize>)>,
}

impl Code {
    /// Creates an empty block; the language is the first word of the info string.
    pub(super) fn new(info: &str, start: usize) -> Code {
        let word = info
            .split(|c: char| c.is_whitespace() || c == ',' || c == '{')
            .next()
            .unwrap_or_default();
        Code {
            language: word.to_owned(),
            start,
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

    /// Source range of the code without its fence.
    fn source(&self) -> Range<usize> {
        let first = self.parts.first().map(|(_, source)| source.start);
        let last = self.parts.last().map(|(_, source)| source.end);
        first.unwrap_or(self.start)..last.unwrap_or(self.start)
    }

    /// Renders the code as rows; the first and the last are the frame. A frame has no source: copied
    /// code does not include its fence.
    pub(super) fn rows(
        &self,
        margin: &Margin,
        width: usize,
        theme: Theme,
        highlights: &mut Highlights,
    ) -> Vec<Row> {
        let colours = highlights.code(&self.language, &self.text, theme);
        let source = self.source();
        let head = match self.language.as_str() {
            "" => "┌".to_owned(),
            language => format!("┌─ {language} "),
        };
        let mut out = vec![edge(&head, &margin.first, width, theme, source.start)];
        let code_margin = Margin {
            first: with(&margin.rest, INDENT, theme),
            rest: with(&margin.rest, GOES_ON, theme),
        };
        let mut at = 0;
        for (number, line) in self.text.split_inclusive('\n').enumerate() {
            let shown = line.strip_suffix('\n').unwrap_or(line);
            let runs = colours.get(number).map_or(&[][..], Runs::as_slice);
            let pieces = pieces(shown, runs, &self.source_of(at, shown.len()), theme.text());
            let breaks = Breaks::Anywhere;
            marked_rows(pieces, &code_margin, width, breaks, theme, &mut out);
            at += line.len();
        }
        out.push(edge("└", &margin.rest, width, theme, source.end));
        out
    }
}

/// The first or the last row of a frame.
fn edge(begin: &str, margin: &[Span<'static>], width: usize, theme: Theme, at: usize) -> Row {
    let room = width.min(PROSE).saturating_sub(width_of(margin));
    let begin = cut(begin, room);
    let line = "─".repeat(room.saturating_sub(crate::text::width(&begin)));
    let mut spans = margin.to_vec();
    spans.push(Span::styled(format!("{begin}{line}"), theme.frame()));
    Row {
        line: Line::from(spans),
        source: at..at,
    }
}

fn with(margin: &[Span<'static>], more: &'static str, theme: Theme) -> Vec<Span<'static>> {
    let mut spans = margin.to_vec();
    spans.push(Span::styled(more, theme.dim()));
    spans
}

/// Splits a line into highlighted pieces; text without a highlight gets the text style.
pub(crate) fn pieces<'t>(
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
