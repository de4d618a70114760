//! Changes of a session's metadata that can be undone.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::SessionMeta;
use crate::entry::Entry;
use crate::id::{EntryId, Seq};

/// Number of changes that can be undone, one after the other.
pub(super) const UNDO_DEPTH: usize = 20;

/// A change that can be undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The entry that made the change.
    pub seq: Seq,
    /// Time of the change.
    pub at: Timestamp,
    /// Id of the command.
    pub operation: EntryId,
    /// The replaced value.
    pub before: Before,
}

/// The value that a change replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// The title, and whether it was given explicitly.
    Title(Option<String>, bool),
    /// The tags.
    Tags(Vec<String>),
    /// The time when the session was moved to the trash, if it was there.
    Trash(Option<Timestamp>),
}

impl SessionMeta {
    pub(super) fn remember(&mut self, entry: &Entry, operation: EntryId, before: Before) {
        if self.changes.len() == UNDO_DEPTH {
            self.changes.remove(0);
        }
        self.changes.push(Change {
            seq: entry.seq,
            at: entry.at,
            operation,
            before,
        });
    }

    pub(super) fn take_back(&mut self, change: Seq) {
        // Only the newest change can be undone; otherwise later changes would be reverted with it.
        if self.changes.last().is_none_or(|last| last.seq != change) {
            return;
        }
        match self.changes.pop().map(|change| change.before) {
            Some(Before::Title(title, titled)) => {
                self.title = title;
                self.titled = titled;
            }
            Some(Before::Tags(tags)) => self.tags = tags,
            Some(Before::Trash(trashed_at)) => self.trashed_at = trashed_at,
            None => {}
        }
    }

    /// Returns the time of the newest change that can be undone.
    pub fn changed_at(&self) -> Option<Timestamp> {
        self.changes.last().map(|change| change.at)
    }
}
