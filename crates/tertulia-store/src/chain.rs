//! Logs that continue each other: a fork's own log begins with its `forked` entry, and the entries
//! before it stand in the log of its base.

use super::{StoreResult, unfinished_append};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Damage, Line, Log, SessionMeta};

/// A metadata snapshot is kept at every entry whose number is a multiple of this: the upper limit of
/// entries to fold for a fork at any entry.
const SNAPSHOT_EVERY: u64 = 256;

/// Returns true if the metadata after an entry is worth a snapshot.
pub(super) fn is_snapshot_due(meta: &SessionMeta, seq: Seq) -> bool {
    seq.0.is_multiple_of(SNAPSHOT_EVERY) && meta.head.seq == seq
}

/// The logs of a backend.
pub(super) trait Logs {
    /// One log.
    type Log: PartialEq;

    /// Returns the log that another one continues, and up to which entry, if lines after `after`
    /// are in it.
    fn base(&mut self, log: &Self::Log, after: Seq) -> StoreResult<Option<(Self::Log, Seq)>>;

    /// Returns at most `limit` lines of the log itself, after `after` up to `upto`.
    fn own_lines(
        &mut self,
        log: &Self::Log,
        after: Seq,
        upto: Seq,
        limit: usize,
    ) -> StoreResult<Vec<Line>>;
}

/// The logs that hold the wanted lines of a log: itself, and those that it continues.
pub(super) struct Owners<L> {
    /// From the newest down, each with the last entry that counts.
    logs: Vec<(L, Seq)>,
}

impl<L: PartialEq> Owners<L> {
    /// Begins with a log, up to an entry.
    pub(super) fn of(log: L, upto: Seq) -> Owners<L> {
        Owners {
            logs: vec![(log, upto)],
        }
    }

    /// Returns the oldest log so far.
    pub(super) fn oldest(&self) -> Option<&L> {
        self.logs.last().map(|(log, _)| log)
    }

    /// Adds the log that the oldest one continues, and up to which entry. Returns false for a log
    /// that is among them: logs that continue each other in a circle have no beginning.
    pub(super) fn add(&mut self, base: L, shared: Seq) -> bool {
        if self.logs.iter().any(|(log, _)| *log == base) {
            return false;
        }
        let upto = self
            .logs
            .last()
            .map_or(shared, |(_, upto)| shared.min(*upto));
        self.logs.push((base, upto));
        true
    }

    /// Returns the logs in the order of their lines, each with the last entry that counts.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = (&L, Seq)> {
        self.logs.iter().rev().map(|(log, upto)| (log, *upto))
    }
}

/// Reads at most `limit` lines after `after` up to `upto` of a log, through its bases.
pub(super) fn read_lines<L: Logs>(
    logs: &mut L,
    log: L::Log,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> StoreResult<Vec<Line>> {
    let mut owners = Owners::of(log, upto);
    while let Some(owner) = owners.oldest()
        && let Some((base, shared)) = logs.base(owner, after)?
        && owners.add(base, shared)
    {}
    let mut lines: Vec<Line> = Vec::new();
    for (owner, upto) in owners.oldest_first() {
        let after = lines.last().map_or(after, |line| line.seq).max(after);
        let own = logs.own_lines(owner, after, upto, limit - lines.len())?;
        lines.extend(own);
        if lines.len() >= limit {
            break;
        }
    }
    Ok(lines)
}

/// Verifies the own lines of a log that continues `start`. `known` is the highest entry that the log
/// ever had as far as the backend knows; `None` for a shared prefix, which was cut on purpose.
pub(super) fn verify(id: SessionId, start: Head, lines: &[Line], known: Option<Seq>) -> Log {
    let mut log = Log::read(id, Some(start), start.seq, lines);
    let Some(known) = known else {
        return log;
    };
    let is_sound = log.damage.is_empty();
    if let Some(last) = log.entries.last().filter(|_| is_sound)
        && let Some(reason) = unfinished_append(last)
    {
        log.damage.push(Damage {
            session: id,
            seq: last.seq,
            reason,
        });
    }
    let last = lines.last().map_or(start.seq, |line| line.seq);
    if last < known {
        log.note_missing(id, last.next(), known.next());
    }
    log
}

/// Folds lines onto the metadata before them. Unreadable lines are left out.
pub(super) fn fold(meta: &mut SessionMeta, lines: &[Line]) {
    for line in lines {
        apply(meta, line);
    }
}

/// Applies one line to the metadata, if it is the entry with that sequence number.
pub(super) fn apply(meta: &mut SessionMeta, line: &Line) -> Option<Entry> {
    let entry = Entry::decode(&line.bytes)
        .ok()
        .filter(|entry| entry.seq == line.seq)?;
    meta.apply(&entry);
    Some(entry)
}
