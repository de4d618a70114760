//! Overlays and dialogs: all of them take keys, request data, accept answers and draw themselves
//! through one trait.

use std::fmt;

use crossterm::event::KeyEvent;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_agents::approval::Verdict;
use tertulia_core::id::{Seq, SessionId};

use super::effect::IfOpen;
use super::picker::Ticket;
use super::store_service::{Answer, Request};
use super::view::brush::Look;

/// An overlay or a dialog. It performs no I/O.
pub trait Overlay: fmt::Debug {
    /// Sets the screen size.
    fn resize(&mut self, _size: Size) {}

    /// Handles a key.
    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction;

    /// Handles a click at a place of the screen.
    fn click(&mut self, _at: Position, _now: Timestamp) -> Reaction {
        Reaction::Nothing
    }

    /// Takes pasted text; returns false if it has no place for text.
    fn paste(&mut self, _text: &str, _now: Timestamp) -> bool {
        false
    }

    /// Returns the time of the next change that needs no key, if any.
    fn due(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Sets the first ticket, so that answers to an earlier overlay of the same kind are not taken.
    fn number(&mut self, _first: Ticket) {}

    /// Returns the next request to the store service, each once.
    fn wants(&mut self, _session: SessionId, _now: Timestamp) -> Option<Request> {
        None
    }

    /// Takes an answer of the store service, or gives it back if it is not for this overlay.
    fn accept(&mut self, answer: Answer) -> Option<Answer> {
        Some(answer)
    }

    /// Draws the overlay and returns the cursor position.
    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position>;
}

/// What a key does in an overlay.
#[derive(Clone, Debug, PartialEq)]
pub enum Reaction {
    /// Nothing.
    Nothing,
    /// The overlay looks different.
    Changed,
    /// Closes the overlay.
    Close,
    /// Passes keys to the layer below.
    Pass(Vec<KeyEvent>),
    /// Closes the overlay and goes to a session, or to an entry of it.
    Resume {
        /// Session id.
        id: SessionId,
        /// Entry to scroll to.
        at: Option<Seq>,
    },
    /// Forks a session after an entry, or at its end, and resumes the fork.
    Fork(SessionId, Option<Seq>),
    /// Renames a session.
    Rename(SessionId, String),
    /// Changes the tags of a session.
    Tag {
        /// Session id.
        id: SessionId,
        /// Tags to add.
        add: Vec<String>,
        /// Tags to remove.
        remove: Vec<String>,
    },
    /// Moves a session to the trash.
    Trash(SessionId),
    /// Takes the last rename, tag or trash back.
    Undo,
    /// Closes the overlay and resumes a fork that ends before this message, with its text in the
    /// input.
    Rewind(Seq),
    /// Copies text.
    Copy(String),
    /// Answers a permission request.
    Answer(Verdict),
    /// Closes the overlay and lets this agent answer.
    UseAgent(String),
    /// Closes the overlay and uses this model.
    UseModel(String),
    /// Closes the overlay and asks whether to use a model that the agent does not list.
    AskModel(String),
    /// Answers a dialog with yes.
    Continue,
    /// Resumes the earlier session that was offered.
    ResumeEarlier(SessionId),
    /// Opens a session although another program has it open.
    Open(SessionId, IfOpen),
    /// Starts a new session instead of the earlier one that was offered.
    StartNew,
    /// Returns to the previous session without a decision.
    Return,
}

/// True if the overlay looks different.
impl From<bool> for Reaction {
    fn from(changed: bool) -> Reaction {
        match changed {
            true => Reaction::Changed,
            false => Reaction::Nothing,
        }
    }
}
