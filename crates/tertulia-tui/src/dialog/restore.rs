//! Dialog that offers to resume an earlier session or start a new one.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;

use super::quiet::Quiet;
use crate::press;

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

/// Outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// None.
    Nothing,
    /// None, but the dialog looks different.
    Changed,
    /// The key came before the question could be read: it belongs to the layer below.
    NotYet(KeyEvent),
    /// Resume the earlier session.
    Resume(SessionId),
    /// Start a new session.
    New,
    /// Neither.
    Leave,
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

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return Outcome::NotYet(key);
        }
        if press::leaves(key) {
            return Outcome::Leave;
        }
        match (press::answer(key), key.code, self.chosen) {
            (Some('r'), ..) | (_, KeyCode::Enter, Chosen::Resume) => Outcome::Resume(self.id),
            (Some('n'), ..) | (_, KeyCode::Enter, Chosen::New) => Outcome::New,
            (_, KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, chosen) => {
                self.chosen = match chosen {
                    Chosen::Resume => Chosen::New,
                    Chosen::New => Chosen::Resume,
                };
                Outcome::Changed
            }
            _ => {
                self.is_puzzled = true;
                Outcome::Changed
            }
        }
    }
}
