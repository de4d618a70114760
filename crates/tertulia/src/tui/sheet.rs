//! A sheet of text over the screen: what a command tells, to be read, scrolled and copied.

use crossterm::event::KeyEvent;
use ratatui::layout::Size;

use super::choice::Scroll;
use super::columns::{fold, width};
use super::press;

/// A sheet is no wider than this: longer rows are hard to read.
const MOST_COLUMNS: u16 = 100;
/// The frame and a space on each side of the text.
const FRAME_COLUMNS: u16 = 4;
/// The frame and the keys.
const FRAME_ROWS: u16 = 3;
/// How wide the signs of a comparison are.
const SIGN_COLUMNS: usize = 2;

/// A sheet of text.
#[derive(Clone, Debug)]
pub struct Sheet {
    title: String,
    lines: Vec<Line>,
    /// The lines as they are folded for this size.
    rows: Vec<Row>,
    /// Whether lines have signs, because some were added or taken away.
    signs: bool,
    scroll: Scroll,
    size: Size,
}

/// A line of text, of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub ink: Ink,
    /// The words.
    pub text: String,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Words like any other.
    Plain,
    /// What one side of a comparison has.
    Added,
    /// What the other side has.
    Removed,
}

/// Words like any other.
pub fn plain(lines: Vec<String>) -> Vec<Line> {
    let lines = lines.into_iter();
    lines.map(|text| Line::new(Ink::Plain, text)).collect()
}

/// A comparison, whose lines begin with their signs.
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
    /// What stands before such a line in a comparison, so that it reads without colours.
    fn sign(self) -> &'static str {
        match self {
            Ink::Added => "+ ",
            Ink::Removed => "- ",
            _ => "  ",
        }
    }
}

impl Line {
    /// A line.
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
    /// What it is.
    pub ink: Ink,
    /// The words that fit.
    pub text: String,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing, but the screen looks different.
    Changed,
    /// To leave.
    Leave,
    /// To have all of the text.
    Copy(String),
}

impl Sheet {
    /// A sheet with a title and lines.
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

    /// What it is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
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

    /// How wide it is on this screen, with its frame.
    fn columns(&self) -> u16 {
        self.size.width.min(MOST_COLUMNS)
    }

    /// How large it is on this screen, with its frame: no larger than its text needs.
    pub fn size(&self) -> (u16, u16) {
        let rows = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let most = self.size.height;
        (self.columns(), rows.saturating_add(FRAME_ROWS).min(most))
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        match press::answer(key) {
            _ if press::leaves(key) => return Outcome::Leave,
            Some('q') => return Outcome::Leave,
            Some('y') => return Outcome::Copy(self.text()),
            _ => {}
        }
        let seen = usize::from(self.size.height.saturating_sub(FRAME_ROWS));
        match self.scroll.moves(key, self.rows.len(), seen) {
            true => Outcome::Changed,
            false => Outcome::Nothing,
        }
    }

    /// All of the text, as it was given; in a comparison with its signs.
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

    /// The rows that are seen where so many fit, how many come before and how many follow.
    pub fn seen(&self, count: usize) -> (&[Row], usize, usize) {
        let top = self.scroll.top(self.rows.len(), count);
        let end = (top + count).min(self.rows.len());
        (&self.rows[top..end], top, self.rows.len() - end)
    }
}

/// Rows of names and what belongs to them, for sheets of facts: `title    Fix the parser`.
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
