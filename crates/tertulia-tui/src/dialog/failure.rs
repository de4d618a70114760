//! Error dialog.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Size;

use crate::choice::Scroll;
use crate::columns::fold;
use crate::press;
use crate::view::dialog::failure::{inside, seen_lines};

/// Maximum number of lines shown; all of them are copied.
const MOST_LINES: usize = 2000;

/// Error dialog.
#[derive(Clone, Debug)]
pub struct Failure {
    title: String,
    text: String,
    hints: Vec<String>,
    is_copied: bool,
    scroll: Scroll,
    size: Size,
}

/// Outcome of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// None.
    Nothing,
    /// None, but scrolled.
    Changed,
    /// Close the dialog.
    Leave,
    /// Copy this text.
    Copy(String),
}

impl Failure {
    /// Creates a dialog with a summary, the full message, and hints.
    pub fn new(title: &str, text: &str, hints: Vec<String>) -> Failure {
        Failure {
            title: title.to_owned(),
            text: text.to_owned(),
            hints,
            is_copied: false,
            scroll: Scroll::default(),
            size: Size::new(80, 24),
        }
    }

    /// Sets the screen size.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if press::leaves(key) || key.code == KeyCode::Enter {
            return Outcome::Leave;
        }
        if press::answer(key) == Some('c') {
            self.is_copied = true;
            return Outcome::Copy(self.copied());
        }
        let count = self.lines(inside(self.size).width).len();
        match self.scroll.moves(key, count, seen_lines(self.size, count)) {
            true => Outcome::Changed,
            false => Outcome::Nothing,
        }
    }

    fn copied(&self) -> String {
        let mut text = format!("{}\n{}", self.title, self.text);
        for hint in &self.hints {
            text.push_str(&format!("\n{hint}"));
        }
        text
    }

    /// Summary of the error.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns true if the text was copied.
    pub fn is_copied(&self) -> bool {
        self.is_copied
    }

    /// Message and hints, folded to a width.
    pub fn lines(&self, columns: u16) -> Vec<String> {
        let columns = usize::from(columns);
        let (mut lines, more) = fold(self.text.trim_end(), columns, MOST_LINES);
        if more {
            lines.push("…".to_owned());
        }
        if !self.hints.is_empty() {
            lines.push(String::new());
        }
        for hint in &self.hints {
            lines.extend(fold(&format!("• {hint}"), columns, MOST_LINES).0);
        }
        lines
    }

    /// Index of the first visible line, given the total and the viewport height.
    pub fn top(&self, count: usize, seen: usize) -> usize {
        self.scroll.top(count, seen)
    }
}
