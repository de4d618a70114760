//! Breaking text into rows of a screen: by what is seen (graphemes and their widths), at words where there are any.
//!
//! Every row remembers which part of the original text it shows, so that copying gives that and not what was drawn.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

/// What a control character looks like: it has no power over the terminal, and it is not hidden either.
const ODD: &str = "\u{fffd}";
/// Columns between two tab stops.
const TAB: usize = 4;
const SPACES: &str = "    ";
/// Longer graphemes (a letter under a tower of accents) are cut on the screen: each is drawn again in every frame.
const LONGEST_GRAPHEME: usize = 64;

/// One row of the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What is drawn.
    pub line: Line<'static>,
    /// Which bytes of the original text it shows.
    pub source: Range<usize>,
}

/// A stretch of text in one style.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece<'a> {
    /// The text, without line ends.
    pub text: Cow<'a, str>,
    /// How it looks.
    pub style: Style,
    /// Where it comes from. If that is as long as the text, it is the text, byte for byte.
    pub source: Range<usize>,
}

impl<'a> Piece<'a> {
    /// Text that stands in the original as it is, from this byte on.
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

    /// Where a part of the text comes from.
    fn source_of(&self, part: &Range<usize>) -> Range<usize> {
        if self.is_exact() {
            self.source.start + part.start..self.source.start + part.end
        } else {
            self.source.clone()
        }
    }

    /// A part of the piece.
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

/// What stands left of the text: once before its first row, and before all others.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    /// Before the first row.
    pub first: Vec<Span<'static>>,
    /// Before the others.
    pub rest: Vec<Span<'static>>,
}

impl Margin {
    /// The same before every row.
    pub fn even(text: &'static str, style: Style) -> Margin {
        let spans = vec![Span::styled(text, style)];
        Margin {
            first: spans.clone(),
            rest: spans,
        }
    }
}

/// How many columns spans take.
pub fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| text_width(&span.content)).sum()
}

/// How many columns a text takes, as it is drawn here.
pub fn text_width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.starts_with(char::is_control) {
        return 1;
    }
    usize::from(shortened(grapheme).cell_width())
}

fn shortened(grapheme: &str) -> &str {
    &grapheme[..grapheme.floor_char_boundary(LONGEST_GRAPHEME)]
}

/// The beginning of a text that fits into so many columns, in one line; with an ellipsis if something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    let mut shown = String::new();
    let mut used = 0;
    // Where the ellipsis would have to stand.
    let mut last = 0;
    for grapheme in text.graphemes(true) {
        let width = grapheme_width(grapheme);
        if used + width > columns {
            shown.truncate(last);
            if columns > 0 {
                shown.push('…');
            }
            return shown;
        }
        if grapheme.starts_with(char::is_whitespace) {
            shown.push(' ');
        } else if grapheme.starts_with(char::is_control) {
            shown.push_str(ODD);
        } else {
            shown.push_str(shortened(grapheme));
        }
        used += width;
        if used < columns {
            last = shown.len();
        }
    }
    shown
}

/// Where a text may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// Between words, and within words that are longer than a row. Spaces at a break are not shown.
    Words,
    /// Anywhere: every space counts.
    Anywhere,
}

/// Breaks one line of text into rows and puts them behind those that are there: at least one.
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

/// How many columns are left beside a margin; at least one, or nothing would ever be shown.
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
        // A space that must not be broken at is a letter like any other.
        self.text != "\u{a0}" && self.text.starts_with(char::is_whitespace)
    }

    /// Columns that it takes from this one on.
    fn width_at(&self, column: usize) -> usize {
        match self.text {
            "\t" => TAB - column % TAB,
            text => grapheme_width(text),
        }
    }
}

/// Rows in the making.
struct Filler<'o, 't> {
    out: &'o mut Vec<Row>,
    margin: &'o Margin,
    width: usize,
    room: usize,
    runs: Vec<(Style, String)>,
    used: usize,
    source: Option<Range<usize>>,
    first: bool,
    /// Spaces that are shown only if the next word is on the same row. Never more than a row of them.
    spaces: Vec<Glyph<'t>>,
    spaces_width: usize,
    /// The word that is not yet known to end on this row. Never longer than a row.
    word: Vec<Glyph<'t>>,
    word_width: usize,
    /// Whether the word is longer than a row, so that its letters go wherever there is room.
    splitting: bool,
}

impl<'t> Filler<'_, 't> {
    /// The next grapheme of a text that is broken at words.
    fn take(&mut self, glyph: Glyph<'t>) {
        if glyph.is_space() {
            self.end_word();
            // What a person indented stays indented.
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
        let width = grapheme_width(glyph.text);
        // Between two wide characters (Chinese, Japanese, emoji) a line may end.
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
            // They would be left out by the screen anyway, but not before they were looked at in every frame.
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

/// A margin where there is room for it beside at least one column of text.
fn fitting(margin: &[Span<'static>], width: usize) -> Vec<Span<'static>> {
    if width_of(margin) < width {
        margin.to_vec()
    } else {
        Vec::new()
    }
}

/// Gives the parts of a line that a function finds another look, across pieces.
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
        // What ends before this piece was there for an earlier one.
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
