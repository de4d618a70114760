//! Error dialog.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use crate::choice::Scroll;
use crate::geometry::{dialog_inside, dialog_lines};
use crate::key_event;
use crate::overlay::{Overlay, Reaction};
use crate::text::fold;
use crate::view;
use crate::view::brush::Look;

/// Maximum number of lines shown; all of them are copied.
const MOST_LINES: usize = 2000;

/// Lines inside the frame besides the text: a gap and the keys.
pub const OTHER_LINES: usize = 2;

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

impl Overlay for Failure {
    fn resize(&mut self, size: Size) {
        self.size = size;
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if key_event::leaves(key) || key.code == KeyCode::Enter {
            return Reaction::Close;
        }
        if key_event::with_control(key) == Some('y') {
            self.is_copied = true;
            return Reaction::Copy(self.copied());
        }
        // What is typed was meant for the input, whenever the dialog appeared.
        let edits = matches!(key.code, KeyCode::Backspace | KeyCode::Delete);
        if key_event::typed(key).is_some() || edits {
            return Reaction::Pass(vec![key]);
        }
        let count = self.lines(dialog_inside(self.size).width).len();
        self.scroll
            .moves(key, count, dialog_lines(self.size, count, OTHER_LINES))
            .into()
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::dialog::failure::draw(self, look, area, buffer);
        None
    }
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
