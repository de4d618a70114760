//! Going back: the messages of the person, newest first, to go on from before one of them.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::id::Seq;

use super::choice::Choice;
use super::picker::Ticket;
use super::press;
use super::view::rewind::parts;

/// How many messages are read at once.
const PAGE: usize = 100;
/// How much of a message is kept, in bytes: enough to recognise it.
const MOST_BYTES: usize = 4096;

/// Something that the person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its place in the log.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// How it begins.
    pub text: String,
}

impl Moment {
    /// What is kept of a message.
    pub fn new(seq: Seq, at: Timestamp, text: &str) -> Moment {
        let text = match text.floor_char_boundary(MOST_BYTES) {
            end if end < text.len() => format!("{}…", &text[..end]),
            _ => text.to_owned(),
        };
        Moment { seq, at, text }
    }
}

/// The list of moments to go back to.
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

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but another one is chosen.
    Changed,
    /// To leave.
    Leave,
    /// To go on in a fork that ends before this message, which is to be typed anew.
    Rewind(Seq),
}

/// What is to be read: so many messages of the person, newest first, for [`Rewind::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Only those before this one.
    pub before: Option<Seq>,
    /// At most so many.
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

impl Rewind {
    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        let (count, seen) = (self.moments.len(), self.seen_rows());
        self.choice.choose(self.choice.chosen(), count, seen);
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        self.trouble = None;
        if press::leaves(key) {
            return Outcome::Leave;
        }
        if key.code == KeyCode::Enter {
            let chosen = self.chosen();
            return chosen.map_or(Outcome::Nothing, |moment| Outcome::Rewind(moment.seq));
        }
        let (count, seen) = (self.moments.len(), self.seen_rows());
        match self.choice.moves(key, count, seen) {
            true => Outcome::Changed,
            false => Outcome::Nothing,
        }
    }

    /// What is to be read next. It is asked for once: ask after each key and each answer.
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

    /// Takes in messages that were asked for, and whether there are more.
    pub fn put(&mut self, ticket: Ticket, moments: Vec<Moment>, has_more: bool) {
        if self.asked.take_if(|asked| *asked == ticket).is_some() {
            // Nothing more to come, whatever is claimed, if nothing came.
            self.has_more = has_more && !moments.is_empty();
            self.moments.extend(moments);
        }
    }

    /// Takes in that they could not be read, and why. The next key tries again.
    pub fn refused(&mut self, ticket: Ticket, why: String) {
        if self.asked.take_if(|asked| *asked == ticket).is_some() {
            self.trouble = Some(why);
        }
    }

    fn seen_rows(&self) -> usize {
        let area = Rect::from((Position::ORIGIN, self.size));
        usize::from(parts(area).list.height)
    }

    /// The messages, newest first.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// The chosen message.
    pub fn chosen(&self) -> Option<&Moment> {
        self.moments.get(self.choice.chosen())
    }

    /// The place of the chosen message, and of the first that is seen where so many fit.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.moments.len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// Whether the messages are being read.
    pub fn is_reading(&self) -> bool {
        self.asked.is_some()
    }

    /// Why they could not be read.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}
