//! Draws unified diffs: line numbers, signs and syntax colours. Text around them is drawn as it is.
//!
//! A permission question shows what an agent wrote, so no line of it is left out: only the names of
//! the file at the very beginning are drawn as one, and the places of changes as numbers.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::Span;

use super::highlight::Highlights;
use super::markdown::pieces;
use super::theme::Theme;
use crate::text::wrap::{Breaks, Margin, Piece, Row, rows as wrapped};

/// Stands for lines that are not part of the diff.
const GAP: &str = "⋯";
/// Margin of a row that continues a long line.
const GOES_ON: char = '↪';

/// A line of a text that may contain diffs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DiffLine<'t> {
    kind: LineKind,
    /// Line number in the file, if it is known.
    number: Option<usize>,
    /// Text without its sign.
    text: &'t str,
    /// Offset of the text.
    at: usize,
}

/// Role of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// Not part of a change.
    Text,
    /// Name of the changed file.
    Name,
    /// Place of a change.
    Place,
    /// Unchanged.
    Same,
    /// Added.
    Added,
    /// Removed.
    Removed,
    /// Remark about the line before, such as a missing line feed.
    Remark,
}

impl DiffLine<'_> {
    fn source(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }
}

impl LineKind {
    fn is_code(self) -> bool {
        matches!(self, LineKind::Same | LineKind::Added | LineKind::Removed)
    }
}

/// Position within a change: the numbers of the next lines, if they are known.
#[derive(Clone, Copy, Debug)]
struct Position {
    old: Option<usize>,
    new: Option<usize>,
    /// Number of lines that are left, if it is known.
    left: Option<(usize, usize)>,
}

impl Position {
    /// Reads `@@ -7,7 +7,8 @@ words`, or `@@ words`; returns the words, too.
    fn read(line: &str) -> Option<(Position, &str)> {
        let rest = line.strip_prefix("@@")?;
        let range = |range: &str| -> Option<(usize, usize)> {
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        let known = rest.strip_prefix(" -").and_then(|rest| {
            let (ranges, words) = rest.split_once(" @@")?;
            let (old, new) = ranges.split_once(" +")?;
            let ((old, olds), (new, news)) = (range(old)?, range(new)?);
            let position = Position {
                old: Some(old),
                new: Some(new),
                left: Some((olds, news)),
            };
            Some((position, words))
        });
        let unknown = Position {
            old: None,
            new: None,
            left: None,
        };
        Some(known.unwrap_or((unknown, rest)))
    }

    /// Takes a line; returns its kind and number, or `None` if the change ends before it.
    fn take(&mut self, line: &str) -> Option<(LineKind, Option<usize>)> {
        let kind = match line.as_bytes().first() {
            Some(b' ') | None => LineKind::Same,
            Some(b'+') => LineKind::Added,
            Some(b'-') => LineKind::Removed,
            Some(b'\\') => return Some((LineKind::Remark, None)),
            Some(_) => return None,
        };
        let (old, new) = match kind {
            LineKind::Added => (0, 1),
            LineKind::Removed => (1, 0),
            _ => (1, 1),
        };
        if let Some((olds, news)) = &mut self.left {
            *olds = olds.checked_sub(old)?;
            *news = news.checked_sub(new)?;
        } else if line.is_empty() {
            return None;
        }
        let number = match kind {
            LineKind::Removed => self.old,
            _ => self.new,
        };
        self.old = self.old.map(|number| number.saturating_add(old));
        self.new = self.new.map(|number| number.saturating_add(new));
        Some((kind, number))
    }
}

fn parse(text: &str) -> Vec<DiffLine<'_>> {
    let mut lines = Vec::new();
    let mut position: Option<Position> = None;
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let taken = position.as_mut().and_then(|position| position.take(line));
        let (kind, number, sign) = match taken {
            Some((kind, number)) if kind.is_code() => (kind, number, 1.min(line.len())),
            Some((kind, number)) => (kind, number, 0),
            None => {
                let place = Position::read(line);
                position = place.map(|(position, _)| position);
                match place {
                    Some((_, words)) => (LineKind::Place, None, line.len() - words.len()),
                    None if is_name(line) => (LineKind::Name, None, 0),
                    None => (LineKind::Text, None, 0),
                }
            }
        };
        lines.push(DiffLine {
            kind,
            number,
            text: &line[sign..],
            at: at + sign,
        });
        at += whole.len();
    }
    lines
}

fn is_name(line: &str) -> bool {
    let marks = ["--- ", "+++ ", "*** Update File: ", "*** Add File: "];
    marks.iter().any(|mark| line.starts_with(mark))
}

/// Returns the language of a file, by its name.
fn language(line: &str) -> Option<&str> {
    let path = line.rsplit(' ').next()?;
    let name = path.rsplit('/').next()?;
    Some(name.rsplit('.').next().unwrap_or(name))
}

/// Draws text with diffs. `start` is the offset of the text in its source; text that is not part of a
/// change gets the given margin and style.
pub fn rows(
    text: &str,
    start: usize,
    (margin, style): (&Margin, Style),
    width: usize,
    theme: Theme,
) -> Vec<Row> {
    let lines = parse(text);
    let largest = lines.iter().filter_map(|line| line.number).max();
    let drawing = Drawing {
        start,
        margin,
        style,
        width,
        theme,
        digits: largest.map_or(0, |largest| largest.to_string().len()),
    };
    let mut out = Vec::new();
    let mut rest = lines.as_slice();
    let mut spoken = "";
    let mut has_change = false;
    if let Some((names, after)) = file_names(rest) {
        drawing.plain(&names, rest[1].source(), theme.heading(), &mut out);
        spoken = rest[1].text;
        rest = after;
    }
    while let Some(first) = rest.first() {
        if first.kind.is_code() {
            let count = rest.iter().take_while(|line| line.kind.is_code()).count();
            let (code, after) = rest.split_at(count);
            drawing.code(code, language(spoken).unwrap_or_default(), &mut out);
            rest = after;
            continue;
        }
        match first.kind {
            LineKind::Place => {
                // The numbers tell the place of the first change.
                if has_change || !first.text.trim().is_empty() {
                    let words = format!("{GAP}{}", first.text.trim_end());
                    drawing.plain(&words, first.source(), theme.dim(), &mut out);
                }
                has_change = true;
            }
            LineKind::Name => {
                spoken = first.text;
                drawing.plain(first.text, first.source(), theme.heading(), &mut out);
            }
            LineKind::Remark => drawing.plain(first.text, first.source(), theme.dim(), &mut out),
            _ => drawing.plain(first.text, first.source(), style, &mut out),
        }
        rest = &rest[1..];
    }
    out
}

/// Returns the names at the beginning of a diff on one line, and the lines after them.
fn file_names<'l, 't>(lines: &'l [DiffLine<'t>]) -> Option<(String, &'l [DiffLine<'t>])> {
    let [old, new, rest @ ..] = lines else {
        return None;
    };
    let old = old.text.strip_prefix("--- ")?;
    let new = new.text.strip_prefix("+++ ")?;
    let names = match old {
        "/dev/null" => format!("{new} (new file)"),
        old if old == new => new.to_owned(),
        old => format!("{old} → {new}"),
    };
    Some((names, rest))
}

struct Drawing<'d> {
    start: usize,
    margin: &'d Margin,
    style: Style,
    width: usize,
    theme: Theme,
    /// Columns of the largest line number.
    digits: usize,
}

impl Drawing<'_> {
    fn plain(&self, text: &str, source: Range<usize>, style: Style, out: &mut Vec<Row>) {
        let piece = Piece {
            text: Cow::Borrowed(text),
            style,
            source: self.start + source.start..self.start + source.end,
        };
        wrapped(&[piece], self.margin, self.width, Breaks::Words, out);
    }

    /// Draws the lines of one change.
    fn code(&self, lines: &[DiffLine<'_>], language: &str, out: &mut Vec<Row>) {
        let kept = lines.iter().filter(|line| line.kind != LineKind::Removed);
        let code: String = kept.map(|line| format!("{}\n", line.text)).collect();
        let mut highlights = Highlights::default();
        let mut runs = highlights.code(language, &code, self.theme).iter();
        for line in lines {
            let (sign, style) = match line.kind {
                LineKind::Added => ('+', self.theme.added()),
                LineKind::Removed => ('-', self.theme.removed()),
                _ => (' ', self.style),
            };
            let coloured = match line.kind {
                LineKind::Removed => None,
                _ => runs.next(),
            };
            let source = line.source();
            let source = self.start + source.start..self.start + source.end;
            let coloured = coloured.map_or(&[][..], Vec::as_slice);
            let pieces = pieces(line.text, coloured, &source, style);
            let margin = self.gutter(line.number, sign, style);
            wrapped(&pieces, &margin, self.width, Breaks::Anywhere, out);
        }
    }

    /// Returns the margin of a line: its number and its sign.
    fn gutter(&self, number: Option<usize>, sign: char, style: Style) -> Margin {
        let digits = self.digits;
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let blank = match digits {
            0 => String::new(),
            _ => " ".repeat(digits + 1),
        };
        let number = match digits {
            0 => String::new(),
            _ => format!("{number:>digits$} "),
        };
        let dim = self.theme.dim();
        let with = |number: String, sign: char, style| {
            let mut spans = self.margin.first.clone();
            spans.push(Span::styled(number, dim));
            spans.push(Span::styled(format!("{sign} "), style));
            spans
        };
        Margin {
            first: with(number, sign, style),
            rest: with(blank, GOES_ON, dim),
        }
    }
}
