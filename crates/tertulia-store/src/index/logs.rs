//! Following logs that have numbers: a document is a log's number and the entry's sequence number,
//! `no << 32 | seq`, and every log is a source of its own.

use std::ops::Range;

use super::{Document, Index, Reached, Step};
use crate::StoreResult;
use tertulia_core::entry::{Entry, Hash, Head};
use tertulia_core::id::Seq;
use tertulia_core::session::Line;

/// A log as the index follows it.
pub(crate) trait NumberedLog {
    /// Returns its number.
    fn no(&self) -> u64;

    /// Returns the last entry that it shares with the log it continues.
    fn base_seq(&self) -> Seq;

    /// Returns its last entry.
    fn head(&self) -> Head;
}

/// Returns the documents of a log.
pub(crate) fn documents_of(no: u64) -> Range<u64> {
    (no << 32)..((no + 1) << 32)
}

/// Returns the document of an entry.
pub(crate) fn document(no: u64, seq: Seq) -> u64 {
    no << 32 | seq.0
}

/// Returns the log's number and the entry of a document.
pub(crate) fn place_of(document: u64) -> (u64, Seq) {
    (document >> 32, Seq(document & 0xffff_ffff))
}

/// Returns the logs with entries that are not indexed yet, and how far each is indexed.
pub(crate) fn stale<L: NumberedLog>(logs: Vec<L>, index: &Index) -> StoreResult<Vec<(L, Reached)>> {
    let reached = index.all_reached()?;
    let logs = logs.into_iter().map(|log| {
        let reached = reached.get(&log.no()).copied();
        (log, reached.unwrap_or(Reached::NOTHING))
    });
    Ok(logs
        .filter(|(log, reached)| *reached != end_of(log.head()))
        .collect())
}

/// Returns how many entries of a log are not indexed yet.
pub(crate) fn behind<L: NumberedLog>((log, reached): &(L, Reached)) -> u64 {
    let from = reached.upto.max(log.base_seq().0);
    log.head().seq.0.saturating_sub(from)
}

/// Returns how far a log is indexed that ends at `head`.
pub(crate) fn end_of(head: Head) -> Reached {
    Reached {
        upto: head.seq.0,
        mark: head.hash,
    }
}

/// Converts lines to documents. Without lines the index has reached the log's end.
pub(crate) fn step_of(log: &impl NumberedLog, from: Reached, lines: &[Line]) -> Step {
    let mut documents = Vec::new();
    let mut reached = end_of(log.head());
    for line in lines {
        let entry = Entry::decode(&line.bytes).ok();
        let mark = entry.as_ref().map_or(Hash::NONE, |entry| entry.hash);
        reached = Reached {
            upto: line.seq.0,
            mark,
        };
        let number = document(log.no(), line.seq);
        documents.extend(entry.and_then(|entry| Document::of(number, &entry, reached)));
    }
    if reached.upto >= log.head().seq.0 {
        reached = end_of(log.head());
    }
    Step {
        source: log.no(),
        from,
        documents,
        reached,
    }
}
