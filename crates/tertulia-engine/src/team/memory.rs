//! What a team remembers of its talk: the last messages, and those that somebody is still to reply to.
//! However long the talk, that stays little.

#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};

use super::super::withdrawn::marked;
use tertulia_core::id::EntryId;

/// So many other replies to the same message are recalled.
pub const RELATED: usize = 5;

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Its id in the log.
    pub id: EntryId,
    /// The speaker's id.
    pub by: String,
    /// The speaker's name that people read.
    pub from: String,
    /// The names that people read of whom it addressed; none means all.
    pub to: Vec<String>,
    /// The message that it replies to.
    pub replies_to: Option<EntryId>,
    /// The text without markers, see [`shown`](tertulia_core::team::markers::shown).
    pub text: String,
}

/// The last messages, and those that somebody is still to reply to.
#[derive(Clone, Debug)]
pub struct Memory {
    window: usize,
    max_bytes: usize,
    /// In the order in which they were said.
    recent: VecDeque<Spoken>,
    /// The bytes of text in `recent`.
    bytes: usize,
    /// Older ones that are awaited. They stand apart: between them and the recent ones others are missing.
    kept: Vec<Spoken>,
}

/// What somebody is given who is asked to speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled<'a> {
    /// What was said last.
    pub message: &'a Spoken,
    /// What was said before it, oldest first, without `parent`.
    pub context: Vec<&'a Spoken>,
    /// What they were given the floor by, if that is not `message`.
    pub parent: Option<&'a Spoken>,
    /// How many of `context` were said before `parent`.
    pub parent_at: usize,
    /// Other replies to what they were given the floor by, oldest first, without `message`.
    pub related: Vec<&'a Spoken>,
}

impl Memory {
    /// Remembers nothing yet. It will remember the newest message, `window` messages before it, and of
    /// these together `max_bytes` of text.
    pub fn new(window: usize, max_bytes: usize) -> Memory {
        Memory {
            window,
            max_bytes,
            recent: VecDeque::new(),
            bytes: 0,
            kept: Vec::new(),
        }
    }

    /// Takes in a message.
    pub fn hear(&mut self, spoken: Spoken) {
        self.bytes += spoken.text.len();
        self.recent.push_back(spoken);
    }

    /// Puts other words in place of a message's.
    pub fn reword(&mut self, id: EntryId, text: String) {
        self.change(id, |_| text);
    }

    /// Marks a message as withdrawn.
    pub fn withdraw(&mut self, id: EntryId) {
        self.change(id, marked);
    }

    fn change(&mut self, id: EntryId, change: impl FnOnce(&str) -> String) {
        let mut recent = self.recent.iter_mut().rev();
        if let Some(spoken) = recent.find(|spoken| spoken.id == id) {
            let text = change(&spoken.text);
            self.bytes = self.bytes + text.len() - spoken.text.len();
            spoken.text = text;
        } else if let Some(spoken) = self.kept.iter_mut().find(|spoken| spoken.id == id) {
            spoken.text = change(&spoken.text);
        }
    }

    /// Forgets what is older than the window, but for what is awaited: what somebody who waits, or is
    /// being asked, is to reply to.
    pub fn forget(&mut self, awaited: &[EntryId]) {
        let awaited: HashSet<&EntryId> = awaited.iter().collect();
        let is_awaited = |spoken: &Spoken| awaited.contains(&spoken.id);
        self.kept.retain(is_awaited);
        for old in self.recent.drain(..self.older()) {
            self.bytes -= old.text.len();
            if is_awaited(&old) {
                self.kept.push(old);
            }
        }
    }

    /// What somebody is given who is asked because of `parent`. Nothing, if nothing was said.
    pub fn recall(&self, parent: EntryId) -> Option<Recalled<'_>> {
        let message = self.recent.back()?;
        let before = || {
            let end = self.recent.len() - 1;
            self.recent.range(self.older()..end)
        };
        let place = before().position(|spoken| spoken.id == parent);
        let mut related: Vec<&Spoken> = self
            .newest_first()
            .skip(1)
            .filter(|spoken| spoken.replies_to == Some(parent))
            .take(RELATED)
            .collect();
        related.reverse();
        Some(Recalled {
            message,
            context: before().filter(|spoken| spoken.id != parent).collect(),
            parent: self
                .newest_first()
                .find(|spoken| spoken.id == parent)
                .filter(|_| message.id != parent),
            parent_at: place.unwrap_or(0),
            related,
        })
    }

    /// How many messages it remembers.
    pub fn len(&self) -> usize {
        self.kept.len() + self.recent.len()
    }

    /// Whether it remembers nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of the recent messages are older than the window. Looks at no others, so that a large
    /// window costs nothing when each message is heard.
    fn older(&self) -> usize {
        let newest = self.recent.len().saturating_sub(1);
        let mut bytes = self.bytes;
        let is_older = |(place, spoken): &(usize, &Spoken)| {
            let older = newest - place > self.window || bytes > self.max_bytes;
            bytes -= spoken.text.len();
            older
        };
        let before = self.recent.iter().take(newest).enumerate();
        before.take_while(is_older).count()
    }

    fn newest_first(&self) -> impl Iterator<Item = &Spoken> {
        self.recent.iter().rev().chain(self.kept.iter().rev())
    }
}
