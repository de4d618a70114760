//! Search: updates the index, queries it for candidates, and checks those against the log.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::engine::SqliteEngine;
use super::rows::{Found, Say, find_no};
use crate::index::{COUNTED, Document, Index, Pace, RANKED, Reached, Step};
use crate::{Deadline, Progress, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Hash};
use tertulia_core::query::{Filter, Hits, SearchQuery};
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
        let pending = catch_up(connection, index, &say, progress)?;
        let expression = query.words.match_expression();
        let mut hits = Hits {
            pending,
            ..Hits::default()
        };
        let mut owners = Owners {
            connection,
            say: &say,
            filter: &query.filter,
            known: HashMap::new(),
        };
        let mut documents = index.matching(&expression, COUNTED + 1)?;
        hits.more = documents.len() > COUNTED;
        documents.truncate(COUNTED);
        for document in documents {
            judge(&mut hits, query, &mut owners, document)?;
        }
        hits.rank(query.limit);
        Ok(hits)
    }
}

fn judge(
    hits: &mut Hits,
    query: &SearchQuery,
    owners: &mut Owners<'_>,
    document: u64,
) -> StoreResult<()> {
    let connection = owners.connection;
    let say = owners.say;
    let Some((session, seq)) = place_of(connection, document).map_err(say.of("cannot search"))?
    else {
        return Ok(());
    };
    let Some(owner) = owners.of(session, seq)? else {
        return Ok(());
    };
    let counted_only = hits.hits.len() >= RANKED;
    let picky = query.speaker.is_some() || query.role.is_some();
    if counted_only && !picky && matches!(owner, Owner::Shown(_)) {
        // Counting the hit does not need its text.
        hits.total += 1;
        return Ok(());
    }
    let line = line_of(connection, document).map_err(say.of("cannot search"))?;
    // Purged meanwhile by another process.
    let Some(Ok(entry)) = line.map(|line| Entry::decode(&line)) else {
        return Ok(());
    };
    match owner {
        _ if !query.admits(&entry) => {}
        Owner::Elsewhere => hits.elsewhere += 1,
        Owner::Shown(meta) => hits.add(query, &entry, meta, counted_only),
    }
    Ok(())
}

fn place_of(connection: &Connection, document: u64) -> rusqlite::Result<Option<(i64, u64)>> {
    connection
        .prepare_cached("SELECT session, seq FROM entry WHERE n = ?1 AND session > 0")?
        .query_row([document.cast_signed()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })
        .optional()
}

fn line_of(connection: &Connection, document: u64) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT line FROM entry WHERE n = ?1")?
        .query_row([document.cast_signed()], |row| {
            Ok(row
                .get_ref(0)?
                .as_bytes_or_null()?
                .unwrap_or_default()
                .to_vec())
        })
        .optional()
}

/// Which session shows an entry, under the search filter.
enum Owner<'a> {
    Shown(&'a SessionMeta),
    /// Only the filter's project hides the entry.
    Elsewhere,
}

/// Cache of sessions, since hits of one session are often adjacent.
struct Owners<'a> {
    connection: &'a Connection,
    say: &'a Say,
    filter: &'a Filter,
    known: HashMap<i64, Option<Found>>,
}

impl Owners<'_> {
    /// Returns which session shows the entry: its own, or else a fork that shares it.
    fn of(&mut self, no: i64, seq: u64) -> StoreResult<Option<Owner<'_>>> {
        let filter = self.filter;
        let everywhere = Filter {
            project: None,
            ..filter.clone()
        };
        let mut family = vec![no];
        let mut elsewhere = false;
        while let Some(no) = family.pop() {
            let found = self.found(no)?;
            let shown = found.is_some_and(|found| {
                found.state != super::rows::PURGED && filter.matches(&found.meta)
            });
            if shown {
                return Ok(self
                    .known
                    .get(&no)
                    .and_then(Option::as_ref)
                    .map(|found| Owner::Shown(&found.meta)));
            }
            elsewhere |= found.is_some_and(|found| {
                found.state != super::rows::PURGED && everywhere.matches(&found.meta)
            });
            family.extend(
                forks_with(self.connection, no, seq).map_err(self.say.of("cannot search"))?,
            );
        }
        Ok(elsewhere.then_some(Owner::Elsewhere))
    }

    fn found(&mut self, no: i64) -> StoreResult<Option<&Found>> {
        if !self.known.contains_key(&no) {
            let found = find_no(self.connection, self.say, no)?;
            self.known.insert(no, found);
        }
        Ok(self.known.get(&no).and_then(Option::as_ref))
    }
}

fn forks_with(connection: &Connection, no: i64, seq: u64) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare_cached("SELECT no FROM session WHERE base = ?1 AND base_seq >= ?2")?
        .query_map(params![no, seq], |row| row.get(0))?
        .collect()
}

/// Updates the index within the time limit of `progress`. Returns the number of pending entries.
pub(super) fn catch_up(
    connection: &Connection,
    index: &mut Index,
    say: &Say,
    progress: &Progress,
) -> StoreResult<u64> {
    let newest: u64 = connection
        .query_row("SELECT coalesce(max(n), 0) FROM entry", [], |row| {
            row.get::<_, i64>(0)
        })
        .map(i64::cast_unsigned)
        .map_err(say.of("cannot search"))?;
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
    let line: Option<Vec<u8>> = connection
        .prepare_cached("SELECT CAST(line AS BLOB) FROM entry WHERE n = ?1")?
        .query_row([reached.upto.cast_signed()], |row| row.get(0))
        .optional()?;
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
    let mut select =
        connection.prepare_cached("SELECT n, line FROM entry WHERE n > ?1 ORDER BY n LIMIT ?2")?;
    let mut rows = select.query(params![from.upto, pace.entries()])?;
    let mut documents = Vec::new();
    let mut at = None;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let n = row.get::<_, i64>(0)?.cast_unsigned();
        let line = row.get_ref(1)?.as_bytes_or_null()?.unwrap_or_default();
        bytes += line.len();
        let entry = Entry::decode(line).ok();
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
