//! A team's recent messages: the newest ones, and older ones that still await a reply. Bounded,
//! however long the session is.

#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};

use super::super::withdrawn::marked;
use tertulia_core::entry::Attachment;
use tertulia_core::id::{EntryId, Seq};

/// Maximum number of other replies to the same message that are recalled.
pub const RELATED: usize = 5;

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Id in the log.
    pub id: EntryId,
    /// Sequence number in the log, once it is known.
    pub seq: Option<Seq>,
    /// Id of the speaker.
    pub by: String,
    /// Display name of the speaker.
    pub from: String,
    /// Display names of the addressees; empty means all.
    pub to: Vec<String>,
    /// Id of the message that it replies to.
    pub replies_to: Option<EntryId>,
    /// Text without markers, see [`shown`](tertulia_core::team::markers::shown).
    pub text: String,
    /// Files attached to it, as the log has them.
    pub attachments: Vec<Attachment>,
}

/// The newest messages, and older ones that still await a reply.
#[derive(Clone, Debug)]
pub struct Memory {
    window: usize,
    max_bytes: usize,
    /// In the order of the log.
    recent: VecDeque<Spoken>,
    /// Number of text bytes in `recent`.
    bytes: usize,
    /// Older messages that await a reply. Kept separately: messages between them and `recent` are
    /// missing.
    kept: Vec<Spoken>,
    /// Redacted texts of this turn's messages with secrets.
    redacted: Vec<(EntryId, String)>,
}

/// Messages for a member that is prompted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled<'a> {
    /// The newest message.
    pub message: &'a Spoken,
    /// Messages before it, oldest first, without `parent`.
    pub context: Vec<&'a Spoken>,
    /// The message to reply to, if it is not `message`.
    pub parent: Option<&'a Spoken>,
    /// Number of messages in `context` that came before `parent`.
    pub parent_at: usize,
    /// Other replies to the message to reply to, oldest first, without `message`.
    pub related: Vec<&'a Spoken>,
}

impl Recalled<'_> {
    /// Returns the attached files of the messages, the newest version of each, as many as fit in
    /// `room` bytes, the newest first.
    pub fn files(&self, room: usize) -> Vec<Attachment> {
        let newest = [Some(self.message), self.parent].into_iter().flatten();
        files_of(newest.chain(self.context.iter().rev().copied()), room)
    }
}

/// Returns the attached files of messages, given newest first: the newest version of each file, as
/// many as fit in `room` bytes.
pub(super) fn files_of<'a>(
    messages: impl Iterator<Item = &'a Spoken>,
    mut room: usize,
) -> Vec<Attachment> {
    let mut files: Vec<Attachment> = Vec::new();
    for file in messages.flat_map(|spoken| &spoken.attachments) {
        let known = files.iter().any(|known| known.path == file.path);
        if !known && file.content.len() <= room {
            room -= file.content.len();
            files.push(file.clone());
        }
    }
    files
}

impl Memory {
    /// Creates an empty memory for the newest message, `window` messages before it, and `max_bytes`
    /// of text of all these together.
    pub fn new(window: usize, max_bytes: usize) -> Memory {
        Memory {
            window,
            max_bytes,
            recent: VecDeque::new(),
            bytes: 0,
            kept: Vec::new(),
            redacted: Vec::new(),
        }
    }

    /// Adds a message. `redacted` is its text from the next turn on, if that differs.
    pub fn add(&mut self, spoken: Spoken, redacted: Option<String>) {
        self.redacted.extend(redacted.map(|text| (spoken.id, text)));
        self.bytes += spoken.text.len();
        self.recent.push_back(spoken);
    }

    /// Ends the turn: from now on its messages are recalled as the log has them.
    pub fn end_turn(&mut self) {
        for (id, text) in std::mem::take(&mut self.redacted) {
            self.change(id, |_| text);
        }
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

    /// Drops messages older than the window, except the awaited ones: those to which a queued or
    /// prompted member is to reply. Returns the messages that left the window, oldest first, with
    /// their text as the log has it.
    pub fn forget(&mut self, awaited: &[EntryId]) -> Vec<Spoken> {
        let awaited: HashSet<&EntryId> = awaited.iter().collect();
        let is_awaited = |spoken: &Spoken| awaited.contains(&spoken.id);
        self.kept.retain(is_awaited);
        let mut left = Vec::new();
        for mut old in self.recent.drain(..self.older()) {
            self.bytes -= old.text.len();
            if is_awaited(&old) {
                self.kept.push(old.clone());
            }
            if let Some((_, logged)) = self.redacted.iter().find(|(id, _)| *id == old.id) {
                old.text.clone_from(logged);
            }
            left.push(old);
        }
        left
    }

    /// Returns the messages for a member that replies to `parent`, or `None` if there are none.
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

    /// Returns the id of the newest message.
    pub fn newest(&self) -> Option<EntryId> {
        self.recent.back().map(|spoken| spoken.id)
    }

    /// Number of messages held.
    pub fn len(&self) -> usize {
        self.kept.len() + self.recent.len()
    }

    /// Returns whether it holds no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the recent messages that are older than the window. Visits no others, so that a large
    /// window costs nothing per message.
    fn older(&self) -> usize {
        let newest = self.recent.len().saturating_sub(1);
        let mut bytes = self.bytes;
        let is_older = |(place, spoken): &(usize, &Spoken)| {
            let older = is_too_old(newest - place, bytes, self.window, self.max_bytes);
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

/// Returns true if a memory that is given messages of these sizes, the newest ones of a log, has room
/// for none before them.
pub fn is_filled(sizes: impl Iterator<Item = usize>, window: usize, max_bytes: usize) -> bool {
    let (count, bytes) = sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size));
    is_too_old(count, bytes, window, max_bytes)
}

/// Returns true if a message is outside the window: `newer` messages came after it, and with them
/// it has at least this many bytes.
fn is_too_old(newer: usize, bytes: usize, window: usize, max_bytes: usize) -> bool {
    newer > window || bytes > max_bytes
}
