//! Reads the entries of a branch in chunks that can be written one by one.

use super::{Branch, BranchSource, CHUNK, CHUNK_BYTES};
use crate::{StoreError, StoreResult, unfinished_append};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::Log;

/// Entries of a branch after one of them. Every chunk ends where an append ends, and is not longer
/// than [`CHUNK_BYTES`] unless one append is.
pub(super) struct Chunks<'a> {
    source: &'a dyn BranchSource,
    id: SessionId,
    /// Last entry that was read.
    read: Head,
    end: Seq,
    /// Entries of an append that is not read to its end.
    rest: Vec<Entry>,
    failed: Option<StoreError>,
}

impl<'a> Chunks<'a> {
    pub(super) fn after(source: &'a dyn BranchSource, branch: &Branch, head: Head) -> Chunks<'a> {
        Chunks {
            source,
            id: branch.id,
            read: head,
            end: branch.head.seq,
            rest: Vec::new(),
            failed: None,
        }
    }

    /// Returns the next chunk, empty at the end. What stands before damage is returned first, then
    /// the damage as an error.
    pub(super) async fn next(&mut self) -> StoreResult<Vec<Entry>> {
        loop {
            if let Some(last) = self.chunk_end() {
                return Ok(self.rest.drain(..=last).collect());
            }
            if self.failed.is_some() || self.read.seq >= self.end {
                break;
            }
            self.read_more().await?;
        }
        let unfinished = self.rest.last().and_then(unfinished_append);
        self.rest.clear();
        match (self.failed.take(), unfinished) {
            (Some(error), _) => Err(error),
            (None, Some(reason)) => Err(self.damaged(reason)),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Returns the position of the last entry of the next chunk, if it was read.
    fn chunk_end(&self) -> Option<usize> {
        let mut bytes = 0;
        let mut end = None;
        for (at, entry) in self.rest.iter().enumerate() {
            bytes += entry.line().len();
            if bytes > CHUNK_BYTES && end.is_some() {
                break;
            }
            if entry.then == 0 {
                end = Some(at);
            }
        }
        end
    }

    /// Reads more lines and verifies them.
    async fn read_more(&mut self) -> StoreResult<()> {
        let after = self.read.seq;
        let left = usize::try_from(self.end.0 - after.0).unwrap_or(CHUNK);
        let lines = self.source.lines(self.id, after, left.min(CHUNK)).await?;
        let log = Log::read(self.id, Some(self.read), after, &lines);
        let damage = log.damage.into_iter().next();
        let bad = damage.as_ref().map(|damage| damage.seq);
        let entries = log.entries.into_iter();
        self.rest
            .extend(entries.take_while(|entry| bad.is_none_or(|bad| entry.seq < bad)));
        self.read = self.rest.last().map_or(self.read, Entry::head);
        let reason = match damage {
            Some(damage) => format!("entry {}: {}", damage.seq, damage.reason),
            None if lines.is_empty() => format!("entry {} is missing", after.next()),
            None => return Ok(()),
        };
        self.failed = Some(self.damaged(reason));
        Ok(())
    }

    fn damaged(&self, reason: String) -> StoreError {
        StoreError::damaged(format!("session {}", self.id), reason)
    }
}
