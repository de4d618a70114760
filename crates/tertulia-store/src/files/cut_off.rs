//! Tells an append that was cut off from damage.
//!
//! The end of an append of several blocks can reach the disk before its middle. After a power failure
//! such an append has lines that cannot be read, and was never acknowledged. Damage to an
//! acknowledged append looks the same; derived data tells them apart, because it knows acknowledged
//! entries.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::engine::FilesEngine;
use super::fold::last_known;
use super::log::{Last, Tail};
use super::log_file::{LogBytes, held_by};
use super::names::{INDEX_FOLDER, LogName, is_shared_prefix};
use crate::{StoreResult, ledger, place};
use tertulia_core::id::{Seq, SessionId};

impl FilesEngine {
    /// Finds the end of a log. Its last append does not count if a line of it is unreadable and no
    /// derived data knows it.
    pub(super) fn tail_of(&mut self, path: &Path, file: &dyn LogBytes) -> StoreResult<Tail> {
        let say = |error| place::trouble(path, "cannot read", error);
        let tail = Tail::of_log(file, is_shared_prefix(path)).map_err(say)?;
        // Shared prefixes and compressed logs were written as a whole.
        if let Some(cut) = tail.before_unreadable_append(file)
            && let Last::Entry(head) = &cut.last
            && let Some(log) = LogName::parse(path).filter(|log| !log.is_shared_prefix())
            && held_by(path) == path
            && self.last_acknowledged(&log)? <= head.seq
        {
            return Ok(cut);
        }
        Ok(tail)
    }

    /// Returns the last entry of a log that derived data knows.
    fn last_acknowledged(&mut self, log: &LogName) -> StoreResult<Seq> {
        let marked = self.marks.acknowledged(log.id);
        let stored = self.catalogue()?.record(log.id, log.shared_prefix)?;
        let listed = last_known(log, stored.as_ref().map(|(_, stored)| stored));
        let counted = self.seen_by_ledger(log.id).unwrap_or(Seq::START);
        Ok(marked.max(listed).max(counted))
    }

    /// Returns how far the ledger has followed a session, if it can be read.
    fn seen_by_ledger(&self, id: SessionId) -> Option<Seq> {
        let name = format!("{}.db", ledger::NAME);
        let path = self.dir.join(INDEX_FOLDER).join(name);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let ledger = Connection::open_with_flags(path, flags).ok()?;
        let seq = ledger.query_row(
            "SELECT seq FROM session WHERE id = ?1",
            [id.uuid().as_bytes()],
            |row| row.get::<_, i64>(0),
        );
        let seq = seq.optional().ok()??;
        Some(Seq(seq.cast_unsigned()))
    }
}
