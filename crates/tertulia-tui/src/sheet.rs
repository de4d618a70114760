//! Sheet overlay: read-only output of a command, which can be scrolled and copied.

use crossterm::event::KeyEvent;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::choice::Scroll;
use super::key_event;
use super::overlay::{Overlay, Reaction};
use super::view;
use super::view::brush::Look;
use crate::text::{fold, width};

/// Maximum width; longer rows are hard to read.
const MOST_COLUMNS: u16 = 100;
/// Columns of the frame, with a space on each side of the text.
const FRAME_COLUMNS: u16 = 4;
/// Rows of the frame and the keys.
const FRAME_ROWS: u16 = 3;
/// Width of the signs of a diff.
const SIGN_COLUMNS: usize = 2;

/// A sheet of text.
#[derive(Clone, Debug)]
pub struct Sheet {
    title: String,
    lines: Vec<Line>,
    /// Lines folded for the current size.
    rows: Vec<Row>,
    /// Whether lines have signs, because it is a diff.
    signs: bool,
    scroll: Scroll,
    size: Size,
}

/// A line of text of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Role.
    pub ink: Ink,
    /// Text.
    pub text: String,
}

/// Role of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Plain text.
    Plain,
    /// Only in the second text of a diff.
    Added,
    /// Only in the first text of a diff.
    Removed,
}

/// Converts text to plain lines.
pub fn plain(lines: Vec<String>) -> Vec<Line> {
    let lines = lines.into_iter();
    lines.map(|text| Line::new(Ink::Plain, text)).collect()
}

/// Converts the lines of a diff, which start with their signs.
pub fn compared(lines: Vec<String>) -> Vec<Line> {
    let line = |text: String| {
        let (sign, rest) = text.split_at_checked(1).unwrap_or(("", &text));
        let ink = match sign {
            "+" => Ink::Added,
            "-" => Ink::Removed,
            _ => Ink::Plain,
        };
        let words = match (ink, text.strip_prefix("  ")) {
            (Ink::Plain, bare) => bare.unwrap_or(&text),
            _ => rest.strip_prefix(' ').unwrap_or(rest),
        };
        Line::new(ink, words)
    };
    lines.into_iter().map(line).collect()
}

impl Ink {
    /// Sign before a line of a diff, so that it can be read without colours.
    fn sign(self) -> &'static str {
        match self {
            Ink::Added => "+ ",
            Ink::Removed => "- ",
            _ => "  ",
        }
    }
}

impl Line {
    /// Creates a line.
    pub fn new(ink: Ink, text: impl Into<String>) -> Line {
        Line {
            ink,
            text: text.into(),
        }
    }
}

/// A row of the sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Role.
    pub ink: Ink,
    /// Text that fits the width.
    pub text: String,
}

impl Overlay for Sheet {
    fn resize(&mut self, size: Size) {
        let before = self.columns();
        self.size = size;
        if !self.rows.is_empty() && before == self.columns() {
            return;
        }
        let signs = if self.signs { SIGN_COLUMNS } else { 0 };
        let room = usize::from(self.columns().saturating_sub(FRAME_COLUMNS));
        let room = room.saturating_sub(signs);
        self.rows.clear();
        for line in &self.lines {
            let (folded, _) = fold(&line.text, room, usize::MAX);
            for (number, text) in folded.into_iter().enumerate() {
                let sign = match (self.signs, number) {
                    (false, _) => "",
                    (true, 0) => line.ink.sign(),
                    (true, _) => "  ",
                };
                self.rows.push(Row {
                    ink: line.ink,
                    text: format!("{sign}{text}"),
                });
            }
        }
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        match key_event::answer(key) {
            _ if key_event::leaves(key) => return Reaction::Close,
            Some('q') => return Reaction::Close,
            Some('y') => return Reaction::Copy(self.text()),
            _ => {}
        }
        let seen = usize::from(self.size.height.saturating_sub(FRAME_ROWS));
        self.scroll.moves(key, self.rows.len(), seen).into()
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::sheet::draw(self, look, area, buffer);
        None
    }
}

impl Sheet {
    /// Creates a sheet.
    pub fn new(title: impl Into<String>, lines: Vec<Line>) -> Sheet {
        let is_compared = |line: &Line| matches!(line.ink, Ink::Added | Ink::Removed);
        let mut sheet = Sheet {
            title: title.into(),
            signs: lines.iter().any(is_compared),
            lines,
            rows: Vec::new(),
            scroll: Scroll::default(),
            size: Size::default(),
        };
        sheet.resize(Size::new(80, 24));
        sheet
    }

    /// Title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Width including the frame.
    fn columns(&self) -> u16 {
        self.size.width.min(MOST_COLUMNS)
    }

    /// Size including the frame: no higher than the text needs.
    pub fn size(&self) -> (u16, u16) {
        let rows = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let most = self.size.height;
        (self.columns(), rows.saturating_add(FRAME_ROWS).min(most))
    }

    /// Whole text as given, with the signs of a diff.
    fn text(&self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            match line.ink.sign() {
                _ if !self.signs => {}
                sign if line.text.is_empty() => out.push_str(sign.trim_end()),
                sign => out.push_str(sign),
            }
            out.push_str(&line.text);
            out.push('\n');
        }
        out
    }

    /// Visible rows for a viewport height, and the numbers of rows before and after them.
    pub fn seen(&self, count: usize) -> (&[Row], usize, usize) {
        let top = self.scroll.top(self.rows.len(), count);
        let end = (top + count).min(self.rows.len());
        (&self.rows[top..end], top, self.rows.len() - end)
    }
}

/// Formats names and values as aligned lines: `title    Fix the parser`.
pub fn facts(rows: &[(&str, String)]) -> Vec<Line> {
    let widest = rows.iter().map(|(name, _)| width(name)).max();
    let widest = widest.unwrap_or_default();
    let line = |(name, fact): &(&str, String)| {
        let gap = " ".repeat(widest + 2 - width(name));
        Line::new(Ink::Plain, format!("{name}{gap}{fact}"))
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
