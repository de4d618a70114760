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
use super::log::{Last, Tail, line_before, place_named, start_of_append};
use super::log_file::{LogBytes, held_by};
use super::names::{INDEX_FOLDER, LogName, is_shared_prefix};
use crate::{StoreResult, ledger, place};
use tertulia_core::entry::Entry;
use tertulia_core::id::{Seq, SessionId};

/// Most unreadable lines of one append; the bytes of a line can look like many.
const MOST_UNREADABLE: usize = 20_000;
/// Bytes of a line that hold the fields before its body: number, id, time, and what follows it.
const LONGEST_BEGINNING: usize = 160;

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

impl Tail {
    /// Returns the end before the last append, if a line of that append is unreadable. `None` if
    /// that is not certain, or if nothing is before it.
    fn before_unreadable_append(&self, file: &dyn LogBytes) -> Option<Tail> {
        let (mut start, line) = line_before(file, self.end).ok()?;
        let last = Entry::decode(&line).ok();
        if let Some(last) = &last {
            start = start_of_append(file, start, last.then).ok()?;
        }
        let mut unreadable = usize::from(last.is_none());
        // A whole last line may be an append of its own, unless a line before it announces it.
        let mut is_certain = last.is_none();
        while start > 0 && unreadable <= MOST_UNREADABLE {
            let (at, line) = line_before(file, start).ok()?;
            let entry = Entry::decode(&line);
            let announced = match &entry {
                Ok(entry) => last_announced(entry.seq, entry.then),
                Err(_) => announced_by_beginning(&line),
            };
            is_certain |= last.as_ref().is_some_and(|last| announced == last.seq);
            match entry {
                Ok(entry) if entry.then == 0 => {
                    return (is_certain && unreadable > 0).then_some(Tail {
                        end: start,
                        size: self.size,
                        last: Last::Entry(entry.head()),
                    });
                }
                Ok(entry) => start = start_of_append(file, at, entry.then).ok()?,
                Err(_) => {
                    unreadable += 1;
                    start = at;
                }
            }
        }
        None
    }
}

/// Returns the last entry of an append that has this entry, with `then` more to follow.
fn last_announced(seq: Seq, then: u32) -> Seq {
    Seq(seq.0.saturating_add(then.into()))
}

/// Returns the last entry of the append that an unreadable line is of, if the line's beginning says
/// so; else the start.
fn announced_by_beginning(line: &[u8]) -> Seq {
    let beginning = &line[..line.len().min(LONGEST_BEGINNING)];
    let beginning = String::from_utf8_lossy(beginning);
    let then = beginning.split_once(",\"then\":").and_then(|(_, rest)| {
        let digits = rest.split(|next: char| !next.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    match (place_named(line), then) {
        (Some(seq), Some(then)) => last_announced(seq, then),
        _ => Seq::START,
    }
}
