//! Dialog about a session that another program has open: read it, fork it, or take it over.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tertulia_core::id::SessionId;

use super::quiet::Quiet;
use crate::effect::IfOpen;
use crate::key_event;
use crate::overlay::{Overlay, Reaction};
use crate::view;
use crate::view::brush::Look;

/// The answers, in the order of the dialog.
pub const ANSWERS: [(char, IfOpen, &str); 3] = [
    ('r', IfOpen::Read, "R read only"),
    ('f', IfOpen::Fork, "F fork"),
    ('t', IfOpen::TakeOver, "T take over"),
];

/// Dialog about one session.
#[derive(Clone, Debug)]
pub struct Held {
    /// Session id.
    pub id: SessionId,
    /// The program that has the session open.
    pub holder: String,
    /// Position of the chosen answer in [`ANSWERS`].
    pub chosen: usize,
    /// Whether the user pressed a key that answers nothing.
    pub is_puzzled: bool,
    /// Time during which no answer is accepted.
    pub quiet: Quiet,
}

impl Held {
    /// Creates a dialog that appears at `now`.
    pub fn new(id: SessionId, holder: &str, now: Timestamp) -> Held {
        Held {
            id,
            holder: holder.to_owned(),
            chosen: 0,
            is_puzzled: false,
            quiet: Quiet::new(now),
        }
    }

    fn answered(&self, if_open: IfOpen) -> Reaction {
        match if_open {
            IfOpen::Ask | IfOpen::Read => Reaction::Close,
            IfOpen::Fork | IfOpen::TakeOver => Reaction::Open(self.id, if_open),
        }
    }
}

impl Overlay for Held {
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
        if let Some(letter) = key_event::answer(key)
            && let Some((_, if_open, _)) = ANSWERS.iter().find(|(own, ..)| *own == letter)
        {
            return self.answered(*if_open);
        }
        let count = ANSWERS.len();
        match key.code {
            KeyCode::Enter => return self.answered(ANSWERS[self.chosen.min(count - 1)].1),
            KeyCode::Right | KeyCode::Tab => self.chosen = (self.chosen + 1) % count,
            KeyCode::Left | KeyCode::BackTab => self.chosen = (self.chosen + count - 1) % count,
            _ => self.is_puzzled = true,
        }
        Reaction::Changed
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.quiet.due(now)
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::dialog::held::draw(self, look, area, buffer);
        None
    }
}
