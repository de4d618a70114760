//! Search: updates the index, queries it for candidates, and checks those against the log.

use rusqlite::{Connection, OptionalExtension, params};

use super::engine::SqliteEngine;
use super::pack::Lines;
use super::places::{Places, place_of};
use super::rows::{Say, find_no};
use crate::index::{Document, Index, Pace, Reached, Step};
use crate::judge::{self, Candidates};
use crate::selection::PURGED;
use crate::{Deadline, Progress, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Hash};
use tertulia_core::id::Seq;
use tertulia_core::query::{Hits, SearchQuery};
use tertulia_core::session::SessionMeta;

/// The whole database is one index source.
const SOURCE: u64 = 0;
impl SqliteEngine {
    pub(super) fn search_patiently(
        &mut self,
        query: &SearchQuery,
        progress: &Progress,
    ) -> StoreResult<Hits> {
        let found = self.search_once(query, progress);
        if matches!(
            found,
            Err(StoreError::ReadOnly { .. } | StoreError::Full { .. })
        ) {
            // If no index can be written, uses one in memory.
            self.index_in_memory()?;
            let mut hits = self.search_once(query, progress)?;
            hits.unindexed = true;
            return Ok(hits);
        }
        if found.is_err() && self.index()?.fault().is_some() {
            // The index is derived: a damaged one is rebuilt instead of reported.
            self.index()?.clear()?;
            return self.search_once(query, progress);
        }
        found
    }

    fn search_once(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        let (connection, index, say) = self.with_index()?;
        let mut rows = Entries {
            connection,
            say: &say,
            lines: Lines::new(connection),
            places: Places::default(),
        };
        judge::steadily(|| {
            let before = index.removals()?;
            let pending = catch_up(connection, index, &say, progress)?;
            let hits = judge::search(index, query, &mut rows)?;
            Ok((Hits { pending, ..hits }, index.removals()? == before))
        })
    }
}

/// The entries of a database, which are numbered in the order of arrival.
struct Entries<'a> {
    connection: &'a Connection,
    say: &'a Say,
    lines: Lines<'a>,
    places: Places,
}

impl Candidates for Entries<'_> {
    fn expect(&mut self, documents: &[u64]) -> StoreResult<()> {
        self.places =
            Places::read(self.connection, documents).map_err(self.say.of("cannot search"))?;
        Ok(())
    }

    fn place(&mut self, document: u64) -> StoreResult<Option<(i64, Seq)>> {
        if let Some(place) = self.places.get(document) {
            return Ok(place);
        }
        place_of(self.connection, document).map_err(self.say.of("cannot search"))
    }

    fn meta(&mut self, log: i64) -> StoreResult<Option<SessionMeta>> {
        let found = find_no(self.connection, self.say, log)?;
        Ok(found
            .filter(|found| found.state != PURGED)
            .map(|found| found.meta))
    }

    fn forks(&mut self, log: i64) -> StoreResult<Vec<(i64, Seq)>> {
        forks_of(self.connection, log).map_err(self.say.of("cannot search"))
    }

    fn entry(&mut self, document: u64, _: i64, _: Seq) -> StoreResult<Option<Entry>> {
        let line = line_of(&mut self.lines, self.connection, document)
            .map_err(self.say.of("cannot search"))?;
        Ok(line.and_then(|line| Entry::decode(&line).ok()))
    }
}

/// Returns the line of an entry.
fn line_of(
    lines: &mut Lines<'_>,
    connection: &Connection,
    n: u64,
) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT session, seq, line FROM entry WHERE n = ?1")?
        .query_row([n.cast_signed()], |row| line_in(lines, row))
        .optional()
}

/// Returns the line in a row of session, sequence number and value.
fn line_in(lines: &mut Lines<'_>, row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<u8>> {
    let seq = Seq(row.get::<_, i64>(1)?.cast_unsigned());
    match row.get(0)? {
        // What keeps the number of a purged entry from being used again.
        0 => Ok(Vec::new()),
        no => lines.line(no, seq, row.get_ref(2)?),
    }
}

fn forks_of(connection: &Connection, no: i64) -> rusqlite::Result<Vec<(i64, Seq)>> {
    connection
        .prepare_cached("SELECT no, base_seq FROM session WHERE base = ?1")?
        .query_map([no], |row| {
            Ok((row.get(0)?, Seq(row.get::<_, i64>(1)?.cast_unsigned())))
        })?
        .collect()
}

/// Returns how many entries the index has seen that the database lacks, if any. Numbers of entries
/// are never used again, so that the highest never falls.
pub(super) fn index_is_ahead(
    connection: &Connection,
    index: &Index,
    say: &Say,
) -> StoreResult<Option<u64>> {
    let newest = newest(connection).map_err(say.of("cannot compare the index"))?;
    let ahead = index.reached(SOURCE)?.upto.saturating_sub(newest);
    Ok((ahead > 0).then_some(ahead))
}

/// Returns the highest number of an entry.
fn newest(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .query_row("SELECT coalesce(max(n), 0) FROM entry", [], |row| {
            row.get::<_, i64>(0)
        })
        .map(i64::cast_unsigned)
}

/// Updates the index within the time limit of `progress`. Returns the number of pending entries.
pub(super) fn catch_up(
    connection: &Connection,
    index: &mut Index,
    say: &Say,
    progress: &Progress,
) -> StoreResult<u64> {
    let newest = newest(connection).map_err(say.of("cannot search"))?;
    let mut start = index.reached(SOURCE)?;
    // An index that is ahead followed a database that was restored from a backup since.
    if start.upto > newest || !is_ours(connection, start).map_err(say.of("cannot search"))? {
        index.clear()?;
        start = Reached::NOTHING;
    } else if start.upto >= newest {
        return Ok(0);
    }
    let deadline = match index.is_in_memory() {
        true => Deadline::NEVER,
        false => progress.deadline(),
    };
    let total = newest - start.upto;
    let mut from = start;
    let mut any = true;
    while any && from.upto < newest {
        any = false;
        index.follow(deadline, |steps| {
            let mut pace = Pace::START;
            let done = |at: Reached| at.upto.clamp(start.upto, newest) - start.upto;
            progress.at("indexing", done(from), total);
            while let Some(step) =
                read_step(connection, from, &pace).map_err(say.of("cannot index entries"))?
            {
                from = step.reached;
                any = true;
                if !steps.send(vec![step]) {
                    break;
                }
                progress.at("indexing", done(from), total);
                pace.speed_up();
            }
            Ok(())
        })?;
        // Another process may have indexed some of what was read here.
        from = index.reached(SOURCE)?;
        any &= !deadline.has_passed();
    }
    progress.at("indexing", total, total);
    Ok(newest.saturating_sub(from.upto))
}

/// Returns true if the index followed this database, not one since replaced by a backup.
fn is_ours(connection: &Connection, reached: Reached) -> rusqlite::Result<bool> {
    if reached == Reached::NOTHING {
        return Ok(true);
    }
    let line = line_of(&mut Lines::new(connection), connection, reached.upto)?;
    Ok(line.is_none_or(|line| line.is_empty() || mark(&line) == reached.mark))
}

fn mark(line: &[u8]) -> Hash {
    Entry::decode(line).map_or(Hash::NONE, |entry| entry.hash)
}

/// Reads the next entries after `from`; `None` at the end.
fn read_step(
    connection: &Connection,
    from: Reached,
    pace: &Pace,
) -> rusqlite::Result<Option<Step>> {
    let mut select = connection.prepare_cached(
        "SELECT session, seq, line, n FROM entry WHERE n > ?1 ORDER BY n LIMIT ?2",
    )?;
    let mut lines = Lines::new(connection);
    let mut rows = select.query(params![from.upto, pace.entries()])?;
    let mut documents = Vec::new();
    let mut at = None;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let n = row.get::<_, i64>(3)?.cast_unsigned();
        let line = line_in(&mut lines, row)?;
        bytes += line.len();
        let entry = Entry::decode(&line).ok();
        let reached = Reached {
            upto: n,
            mark: entry.as_ref().map_or(Hash::NONE, |entry| entry.hash),
        };
        at = Some(reached);
        documents.extend(entry.and_then(|entry| Document::of(n, &entry, reached)));
        if pace.is_reached(0, bytes) {
            break;
        }
    }
    Ok(at.map(|reached| Step {
        source: SOURCE,
        from,
        documents,
        reached,
    }))
}
