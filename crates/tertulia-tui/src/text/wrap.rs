//! Wraps text into screen rows by graphemes and their widths, at word boundaries where possible.
//!
//! Every row records its range of the source text, so that copying returns the source and not the
//! drawn text.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::{ODD, shortened, width, width_of as width_of_grapheme};

/// Columns between two tab stops.
const TAB: usize = 4;
const SPACES: &str = "    ";

/// One screen row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Drawn line.
    pub line: Line<'static>,
    /// Byte range of the source text.
    pub source: Range<usize>,
}

/// A run of text in one style.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece<'a> {
    /// Text, without line breaks.
    pub text: Cow<'a, str>,
    /// Style.
    pub style: Style,
    /// Source range. If it is as long as the text, it is the text, byte for byte.
    pub source: Range<usize>,
}

impl<'a> Piece<'a> {
    /// Creates a piece that is equal to its source from `start` on.
    pub fn exact(text: &'a str, style: Style, start: usize) -> Piece<'a> {
        Piece {
            text: Cow::Borrowed(text),
            style,
            source: start..start + text.len(),
        }
    }

    fn is_exact(&self) -> bool {
        self.source.len() == self.text.len()
    }

    /// Source range of a part of the text.
    fn source_of(&self, part: &Range<usize>) -> Range<usize> {
        if self.is_exact() {
            self.source.start + part.start..self.source.start + part.end
        } else {
            self.source.clone()
        }
    }

    /// Returns a part of the piece.
    fn part(&self, part: Range<usize>) -> Piece<'a> {
        let source = self.source_of(&part);
        let text = match &self.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[part]),
            Cow::Owned(text) => Cow::Owned(text[part].to_owned()),
        };
        Piece {
            text,
            style: self.style,
            source,
        }
    }
}

/// Left margin of the first row and of all others.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    /// Before the first row.
    pub first: Vec<Span<'static>>,
    /// Before the other rows.
    pub rest: Vec<Span<'static>>,
}

impl Margin {
    /// The same margin for every row.
    pub fn even(text: &'static str, style: Style) -> Margin {
        let spans = vec![Span::styled(text, style)];
        Margin {
            first: spans.clone(),
            rest: spans,
        }
    }
}

/// Width of spans.
pub fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| width(&span.content)).sum()
}

/// Where a text may be wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// Between words, and within words longer than a row. Spaces at a wrap are not shown.
    Words,
    /// Anywhere; all spaces are shown.
    Anywhere,
}

/// Wraps one line of text and appends its rows: at least one.
pub fn rows(
    pieces: &[Piece<'_>],
    margin: &Margin,
    width: usize,
    breaks: Breaks,
    out: &mut Vec<Row>,
) {
    let mut filler = Filler {
        out,
        margin,
        width,
        room: room(width, &margin.first),
        runs: Vec::new(),
        used: 0,
        source: None,
        first: true,
        spaces: Vec::new(),
        spaces_width: 0,
        word: Vec::new(),
        word_width: 0,
        splitting: false,
    };
    for piece in pieces {
        for_each_grapheme(&piece.text, |range, grapheme| {
            let glyph = Glyph {
                text: grapheme,
                style: piece.style,
                source: piece.source_of(&range),
            };
            match breaks {
                Breaks::Words => filler.take(glyph),
                Breaks::Anywhere => filler.put(&glyph),
            }
        });
    }
    filler.finish(pieces);
}

/// Columns beside a margin; at least one, so that text is always shown.
fn room(width: usize, margin: &[Span<'_>]) -> usize {
    width.saturating_sub(width_of(margin)).max(1)
}

fn for_each_grapheme<'t>(text: &'t str, mut each: impl FnMut(Range<usize>, &'t str)) {
    if text.is_ascii() {
        for at in 0..text.len() {
            each(at..at + 1, &text[at..=at]);
        }
    } else {
        for (at, grapheme) in text.grapheme_indices(true) {
            each(at..at + grapheme.len(), grapheme);
        }
    }
}

struct Glyph<'t> {
    text: &'t str,
    style: Style,
    source: Range<usize>,
}

impl Glyph<'_> {
    fn is_space(&self) -> bool {
        // A no-break space counts as a letter.
        self.text != "\u{a0}" && self.text.starts_with(char::is_whitespace)
    }

    /// Width at a column.
    fn width_at(&self, column: usize) -> usize {
        match self.text {
            "\t" => TAB - column % TAB,
            text => width_of_grapheme(text),
        }
    }
}

/// Rows being filled.
struct Filler<'o, 't> {
    out: &'o mut Vec<Row>,
    margin: &'o Margin,
    width: usize,
    room: usize,
    runs: Vec<(Style, String)>,
    used: usize,
    source: Option<Range<usize>>,
    first: bool,
    /// Spaces that are shown only if the next word is on the same row. At most a row of them.
    spaces: Vec<Glyph<'t>>,
    spaces_width: usize,
    /// The word that may not fit on this row. Never longer than a row.
    word: Vec<Glyph<'t>>,
    word_width: usize,
    /// Whether the word is longer than a row, so that it is split wherever the row is full.
    splitting: bool,
}

impl<'t> Filler<'_, 't> {
    /// Adds the next grapheme of text that is wrapped at words.
    fn take(&mut self, glyph: Glyph<'t>) {
        if glyph.is_space() {
            self.end_word();
            // Keep indentation.
            if self.first && self.used == 0 && self.spaces.is_empty() {
                self.put(&glyph);
            } else if self.spaces_width <= self.room {
                self.spaces_width += glyph.width_at(self.used + self.spaces_width);
                self.spaces.push(glyph);
            }
            return;
        }
        if self.splitting {
            self.put(&glyph);
            return;
        }
        let width = width_of_grapheme(glyph.text);
        // A row may end between two wide characters (Chinese, Japanese, emoji).
        if width > 1 {
            self.end_word();
        }
        self.word_width += width;
        self.word.push(glyph);
        if self.word_width > self.room {
            if self.used > 0 && !(self.first && self.only_indent()) {
                self.end_row();
            }
            self.spaces.clear();
            self.spaces_width = 0;
            self.word_out();
            self.splitting = true;
        } else if width > 1 {
            self.end_word();
        }
    }

    fn only_indent(&self) -> bool {
        self.runs.iter().all(|(_, text)| text.trim().is_empty())
    }

    fn end_word(&mut self) {
        self.splitting = false;
        if self.word.is_empty() {
            return;
        }
        if self.used > 0 && self.used + self.spaces_width + self.word_width > self.room {
            self.spaces.clear();
            self.end_row();
        }
        for space in std::mem::take(&mut self.spaces) {
            self.put(&space);
        }
        self.spaces_width = 0;
        self.word_out();
    }

    fn word_out(&mut self) {
        for glyph in std::mem::take(&mut self.word) {
            self.put(&glyph);
        }
        self.word_width = 0;
    }

    /// Puts a grapheme on the row, or on the next one.
    fn put(&mut self, glyph: &Glyph<'t>) {
        let mut width = glyph.width_at(self.used);
        if self.used > 0 && self.used + width > self.room {
            self.end_row();
            width = glyph.width_at(0);
        }
        if glyph.text == "\t" {
            width = width.min(self.room);
        }
        let shown = match glyph.text {
            "\t" => &SPACES[..width],
            // ratatui would drop them anyway, but only after examining them in every frame.
            _ if width == 0 => "",
            text if text.starts_with(char::is_control) => ODD,
            text => shortened(text),
        };
        match self.runs.last_mut() {
            Some((style, run)) if *style == glyph.style => run.push_str(shown),
            _ => self.runs.push((glyph.style, shown.to_owned())),
        }
        self.used += width;
        match &mut self.source {
            Some(source) => source.end = source.end.max(glyph.source.end),
            None => self.source = Some(glyph.source.clone()),
        }
    }

    fn end_row(&mut self) {
        let margin = if self.first {
            &self.margin.first
        } else {
            &self.margin.rest
        };
        let mut spans = fitting(margin, self.width);
        let runs = std::mem::take(&mut self.runs);
        spans.extend(
            runs.into_iter()
                .map(|(style, text)| Span::styled(text, style)),
        );
        let source = self.source.take().unwrap_or_default();
        self.out.push(Row {
            line: Line::from(spans),
            source,
        });
        self.used = 0;
        self.first = false;
        self.room = room(self.width, &self.margin.rest);
    }

    fn finish(mut self, pieces: &[Piece<'_>]) {
        self.end_word();
        if self.source.is_none() {
            let start = pieces.first().map_or(0, |piece| piece.source.start);
            self.source = Some(start..start);
        }
        if self.first || !self.runs.is_empty() {
            self.end_row();
        }
    }
}

/// The margin if it leaves at least one column for text, or else nothing.
fn fitting(margin: &[Span<'static>], width: usize) -> Vec<Span<'static>> {
    if width_of(margin) < width {
        margin.to_vec()
    } else {
        Vec::new()
    }
}

/// Applies a style to the ranges of a line that `find` returns, across pieces.
pub fn restyle<'a>(
    pieces: Vec<Piece<'a>>,
    find: impl Fn(&str) -> Vec<Range<usize>>,
    look: Style,
) -> Vec<Piece<'a>> {
    let whole: Cow<'_, str> = match pieces.as_slice() {
        [only] => Cow::Borrowed(&only.text),
        several => Cow::Owned(several.iter().map(|piece| &*piece.text).collect()),
    };
    let found = find(&whole);
    if found.is_empty() {
        return pieces;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for piece in &pieces {
        let end = start + piece.text.len();
        let mut at = start;
        // Skip ranges that end before this piece.
        let first = found.partition_point(|range| range.end <= start);
        for range in found[first..].iter().take_while(|range| range.start < end) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if at < from {
                parts.push(piece.part(at - start..from - start));
            }
            let mut part = piece.part(from - start..to - start);
            part.style = part.style.patch(look);
            parts.push(part);
            at = to;
        }
        if at < end {
            parts.push(piece.part(at - start..end - start));
        }
        start = end;
    }
    parts
}

#[cfg(test)]
mod tests;
