//! The question whether an earlier session goes on, or a new one begins.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;

use super::quiet::Quiet;
use crate::tui::press;

/// A question whether an earlier session goes on.
#[derive(Clone, Debug)]
pub struct Restore {
    /// Which session.
    pub id: SessionId,
    /// The team, if it is a team's.
    pub team: Option<String>,
    /// Its title.
    pub title: String,
    /// When somebody last spoke in it.
    pub updated_at: Timestamp,
    /// How many messages.
    pub messages: u64,
    /// What it was about.
    pub gist: String,
    /// What Enter does.
    pub chosen: Chosen,
    /// Whether somebody pressed a key that answers nothing.
    pub is_puzzled: bool,
    /// The time in which it takes no answer.
    pub quiet: Quiet,
}

/// What Enter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The earlier session goes on.
    Resume,
    /// A new one begins.
    New,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but the question looks different.
    Changed,
    /// The key was pressed before the question could be read: it belongs to what was there before.
    NotYet(KeyEvent),
    /// The earlier session goes on.
    Resume(SessionId),
    /// A new one begins.
    New,
    /// Neither.
    Leave,
}

impl Restore {
    /// A question about a session that appears now, with what it was about.
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

    /// Takes a key.
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
