//! Yes/no dialog.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::quiet::Quiet;
use crate::key_event;
use crate::overlay::{Overlay, Reaction};
use crate::view;
use crate::view::brush::Look;

/// Yes/no dialog.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// Question, in one line.
    pub question: String,
    /// Details.
    pub detail: String,
    /// Whether Enter means yes: only after the user chose it.
    pub says_yes: bool,
    /// Time during which no answer is accepted.
    pub quiet: Quiet,
}

impl Overlay for Confirm {
    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return Reaction::Pass(vec![key]);
        }
        if key_event::leaves(key) {
            return Reaction::Close;
        }
        match (key_event::answer(key), key.code) {
            (Some('y'), _) => Reaction::Continue,
            (Some('n'), _) => Reaction::Close,
            (_, KeyCode::Enter) if self.says_yes => Reaction::Continue,
            (_, KeyCode::Enter) => Reaction::Close,
            (_, KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab) => {
                self.says_yes = !self.says_yes;
                Reaction::Changed
            }
            _ => Reaction::Nothing,
        }
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.quiet.due(now)
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::dialog::confirm::draw(self, look, area, buffer);
        None
    }
}

impl Confirm {
    /// Creates a dialog that appears at `now`.
    pub fn new(question: &str, detail: &str, now: Timestamp) -> Confirm {
        Confirm {
            question: question.to_owned(),
            detail: detail.to_owned(),
            says_yes: false,
            quiet: Quiet::new(now),
        }
    }
}
