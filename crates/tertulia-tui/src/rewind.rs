//! Rewind overlay: lists the user's messages, newest first, to continue from before one of them.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::id::{Seq, SessionId};

use super::choice::Choice;
use super::geometry::{rewind_areas, whole};
use super::key_event;
use super::overlay::{Overlay, Reaction};
use super::picker::Ticket;
use super::store_service::{Answer, Request};
use super::view;
use super::view::brush::Look;

/// Messages per request.
const PAGE: usize = 100;
/// Bytes kept of a message: enough to recognise it.
const MOST_BYTES: usize = 4096;

/// A message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Log entry.
    pub seq: Seq,
    /// Time.
    pub at: Timestamp,
    /// Beginning of the text.
    pub text: String,
    /// Files that tool calls changed between this message and the next one of the user.
    pub changed: Vec<String>,
}

impl Moment {
    /// Creates a moment, truncating the text.
    pub fn new(seq: Seq, at: Timestamp, text: &str) -> Moment {
        let text = match text.floor_char_boundary(MOST_BYTES) {
            end if end < text.len() => format!("{}…", &text[..end]),
            _ => text.to_owned(),
        };
        Moment {
            seq,
            at,
            text,
            changed: Vec::new(),
        }
    }

    /// Sets the files that were changed after it.
    pub fn changing(self, changed: Vec<String>) -> Moment {
        Moment { changed, ..self }
    }
}

/// List of messages to rewind to.
#[derive(Debug)]
pub struct Rewind {
    moments: Vec<Moment>,
    has_more: bool,
    tickets: Ticket,
    asked: Option<Ticket>,
    trouble: Option<String>,
    choice: Choice,
    size: Size,
}

/// Request for messages of the user, newest first, for [`Rewind::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Only messages before this entry.
    pub before: Option<Seq>,
    /// Maximum number of messages.
    pub count: usize,
}

impl Default for Rewind {
    fn default() -> Rewind {
        Rewind {
            moments: Vec::new(),
            has_more: true,
            tickets: 0,
            asked: None,
            trouble: None,
            choice: Choice::default(),
            size: Size::new(80, 24),
        }
    }
}

impl Overlay for Rewind {
    fn resize(&mut self, size: Size) {
        self.size = size;
        let (count, seen) = (self.moments.len(), self.seen_rows());
        self.choice.choose(self.choice.chosen(), count, seen);
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        self.trouble = None;
        if key_event::leaves(key) {
            return Reaction::Close;
        }
        if key.code == KeyCode::Enter {
            let chosen = self.chosen();
            return chosen.map_or(Reaction::Nothing, |moment| Reaction::Rewind(moment.seq));
        }
        let (count, seen) = (self.moments.len(), self.seen_rows());
        self.choice.moves(key, count, seen).into()
    }

    fn number(&mut self, first: Ticket) {
        self.tickets = first;
    }

    fn wants(&mut self, session: SessionId, _now: Timestamp) -> Option<Request> {
        let (ticket, wanted) = self.wants()?;
        Some(Request::Rewind(session, ticket, wanted))
    }

    fn accept(&mut self, answer: Answer) -> Option<Answer> {
        match answer {
            Answer::Rewind(_, ticket, Ok((moments, more))) => self.put(ticket, moments, more),
            Answer::Rewind(_, ticket, Err(error)) => self.refused(ticket, error.sentence()),
            other => return Some(other),
        }
        None
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::rewind::draw(self, look, area, buffer);
        None
    }
}

impl Rewind {
    /// Returns the next request, each once. Call it after each key and each answer.
    pub fn wants(&mut self) -> Option<(Ticket, Wanted)> {
        let nears_the_end = self.choice.chosen() + 2 * self.seen_rows() >= self.moments.len();
        let is_refused = self.trouble.is_some();
        if !self.has_more || self.asked.is_some() || is_refused || !nears_the_end {
            return None;
        }
        self.tickets += 1;
        self.asked = Some(self.tickets);
        let wanted = Wanted {
            before: self.moments.last().map(|moment| moment.seq),
            count: PAGE,
        };
        Some((self.tickets, wanted))
    }

    /// Adds messages; `has_more` says whether there are earlier ones.
    pub fn put(&mut self, ticket: Ticket, moments: Vec<Moment>, has_more: bool) {
        if self.asked.take_if(|asked| *asked == ticket).is_some() {
            // An empty answer means that there is nothing more.
            self.has_more = has_more && !moments.is_empty();
            self.moments.extend(moments);
        }
    }

    /// Records that a request failed. The next key retries it.
    pub fn refused(&mut self, ticket: Ticket, why: String) {
        if self.asked.take_if(|asked| *asked == ticket).is_some() {
            self.trouble = Some(why);
        }
    }

    fn seen_rows(&self) -> usize {
        usize::from(rewind_areas(whole(self.size)).list.height)
    }

    /// Messages, newest first.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// The chosen message.
    pub fn chosen(&self) -> Option<&Moment> {
        self.moments.get(self.choice.chosen())
    }

    /// Files that tool calls changed since the chosen message, each once, the latest first.
    pub fn changed(&self) -> Vec<&str> {
        let mut files: Vec<&str> = Vec::new();
        let since = self.moments.iter().take(self.choice.chosen() + 1);
        for file in since.flat_map(|moment| &moment.changed) {
            if !files.contains(&file.as_str()) {
                files.push(file);
            }
        }
        files
    }

    /// Indices of the chosen message and of the first visible one, given the viewport height.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.moments.len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// Returns true if a request is pending.
    pub fn is_reading(&self) -> bool {
        self.asked.is_some()
    }

    /// Reason of the last failure.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}
