//! Dialog that offers to resume an earlier session or start a new one.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;

use super::quiet::Quiet;
use crate::key_event;
use crate::overlay::{Overlay, Reaction};
use crate::view;
use crate::view::brush::Look;

/// Dialog about one earlier session.
#[derive(Clone, Debug)]
pub struct Restore {
    /// Session id.
    pub id: SessionId,
    /// Team, if it is a team session.
    pub team: Option<String>,
    /// Title.
    pub title: String,
    /// Time of the last message.
    pub updated_at: Timestamp,
    /// Number of messages.
    pub messages: u64,
    /// What the session was about.
    pub gist: String,
    /// Effect of Enter.
    pub chosen: Chosen,
    /// Whether the user pressed a key that answers nothing.
    pub is_puzzled: bool,
    /// Time during which no answer is accepted.
    pub quiet: Quiet,
}

/// Effect of Enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Resume the earlier session.
    Resume,
    /// Start a new session.
    New,
}

impl Overlay for Restore {
    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return Reaction::Pass(vec![key]);
        }
        if key_event::leaves(key) {
            return Reaction::Return;
        }
        match (key_event::answer(key), key.code, self.chosen) {
            (Some('r'), ..) | (_, KeyCode::Enter, Chosen::Resume) => {
                Reaction::ResumeEarlier(self.id)
            }
            (Some('n'), ..) | (_, KeyCode::Enter, Chosen::New) => Reaction::StartNew,
            (_, KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, chosen) => {
                self.chosen = match chosen {
                    Chosen::Resume => Chosen::New,
                    Chosen::New => Chosen::Resume,
                };
                Reaction::Changed
            }
            _ => {
                self.is_puzzled = true;
                Reaction::Changed
            }
        }
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.quiet.due(now)
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::dialog::restore::draw(self, look, area, buffer);
        None
    }
}

impl Restore {
    /// Creates a dialog that appears at `now`; `gist` says what the session was about.
    pub fn new(meta: &SessionMeta, gist: &str, now: Timestamp) -> Restore {
        Restore {
            id: meta.id,
            team: meta.team.clone(),
            title: meta.title_or_untitled().to_owned(),
            updated_at: meta.updated_at,
            messages: meta.messages,
            gist: gist.to_owned(),
            chosen: Chosen::Resume,
            is_puzzled: false,
            quiet: Quiet::new(now),
        }
    }
}
