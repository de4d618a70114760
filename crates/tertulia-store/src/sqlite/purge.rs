//! Purges a session: removes entries that no fork shares, and shared ones with their last fork.

use rusqlite::{Connection, OptionalExtension, params};

use super::engine::SqliteEngine;
use super::pack;
use super::rows::{
    Found, Say, find, insert_entries, insert_log, put_snapshot_if_due, row_of, summary_at, tally,
    update_session,
};
use super::unsent;
use crate::salvage::derived_id;
use crate::selection::{PURGED, reversed};
use crate::{StoreError, StoreResult, check_whole, has_words, shared_with_forks};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

impl SqliteEngine {
    pub(super) fn remove_session(&mut self, id: SessionId) -> StoreResult<()> {
        let removed = self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            remove(transaction, say, &found)
        })?;
        // The WAL still holds the old pages until they are checkpointed.
        self.connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(self.say().of("cannot purge"))?;
        self.index()?.remove(&removed)
    }
}

impl SqliteEngine {
    pub(super) fn replace_session(
        &mut self,
        id: SessionId,
        after: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        check_whole(entries)?;
        let say = self.say();
        let found = replaceable(&self.connection, &say, id, after)?;
        let numbers = numbers_of(&self.connection, found.no).map_err(say.of("cannot read"))?;
        // The index goes first: a kill in between must leave no words of the old log in it.
        self.index()?.remove(&numbers)?;
        let removed = self.write(|transaction, say| {
            let found = replaceable(transaction, say, id, after)?;
            let removed = remove(transaction, say, &found)?;
            insert_log(transaction, say, id, None, entries)?;
            Ok(removed)
        })?;
        // The WAL still holds the old pages until they are checkpointed.
        self.connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(self.say().of("cannot replace a log"))?;
        self.index()?.remove(&removed)
    }
}

impl SqliteEngine {
    pub(super) fn replace_end_of_session(
        &mut self,
        id: SessionId,
        (after, keep): (Head, Head),
        entries: &[Entry],
    ) -> StoreResult<()> {
        check_whole(entries)?;
        let removed = self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            let head = found.meta.head;
            pack::unpack(transaction, say, found.no)?;
            let mut meta = summary_at(transaction, say, &found, keep.seq)?;
            if head != after || meta.head != keep {
                return Err(StoreError::Conflict { id, head });
            }
            let shared = shared_upto(transaction, found.no).map_err(say.of("cannot look"))?;
            let base = found.base.map(|(_, base)| base);
            if shared.max(base).is_some_and(|shared| shared > keep.seq) {
                return Err(shared_with_forks(id));
            }
            let mut write = || -> rusqlite::Result<Vec<u64>> {
                let mut removed = Vec::new();
                cut_after(transaction, found.no, keep.seq, &mut removed)?;
                keep_number(transaction, &removed)?;
                for entry in entries {
                    meta.apply(entry);
                    put_snapshot_if_due(transaction, found.no, &meta, entry.seq)?;
                }
                insert_entries(transaction, found.no, entries)?;
                update_session(transaction, found.no, &found.meta, &meta)?;
                if has_words(entries) {
                    transaction.execute("DELETE FROM draft WHERE session = ?1", [found.no])?;
                }
                Ok(removed)
            };
            write().map_err(say.of("cannot replace the end of a log"))
        })?;
        self.index()?.remove(&removed)
    }
}

/// Returns the last entry of a session's own log that a fork shares.
fn shared_upto(transaction: &Connection, no: i64) -> rusqlite::Result<Option<Seq>> {
    let sql = "SELECT max(base_seq) FROM session WHERE base = ?1";
    let shared = transaction.query_row(sql, [no], |row| row.get::<_, Option<i64>>(0))?;
    Ok(shared.map(|seq| Seq(seq.cast_unsigned())))
}

/// Removes the entries of a session's own log after one of them, and adds their numbers to `removed`.
fn cut_after(
    transaction: &Connection,
    no: i64,
    kept: Seq,
    removed: &mut Vec<u64>,
) -> rusqlite::Result<()> {
    let values = params![no, kept.0];
    let mut select = transaction.prepare("SELECT n FROM entry WHERE session = ?1 AND seq > ?2")?;
    for n in select.query_map(values, |row| row.get::<_, i64>(0))? {
        removed.push(n?.cast_unsigned());
    }
    for table in ["entry", "snapshot"] {
        let sql = format!("DELETE FROM {table} WHERE session = ?1 AND seq > ?2");
        transaction.execute(&sql, values)?;
    }
    Ok(())
}

/// Returns a session that ends at `after` and that no fork shares.
fn replaceable(
    connection: &Connection,
    say: &Say,
    id: SessionId,
    after: Head,
) -> StoreResult<Found> {
    let found = find(connection, say, id)?.ok_or(StoreError::NotFound(id))?;
    if found.meta.head != after {
        let head = found.meta.head;
        return Err(StoreError::Conflict { id, head });
    }
    let is_shared = "SELECT EXISTS (SELECT 1 FROM session WHERE base = ?1)";
    let is_shared = connection.query_row(is_shared, [found.no], |row| row.get::<_, bool>(0));
    match is_shared.map_err(say.of("cannot look for forks"))? {
        true => Err(shared_with_forks(id)),
        false => Ok(found),
    }
}

fn numbers_of(connection: &Connection, no: i64) -> rusqlite::Result<Vec<u64>> {
    let mut select = connection.prepare("SELECT n FROM entry WHERE session = ?1")?;
    let numbers = select.query_map([no], |row| row.get::<_, i64>(0))?;
    numbers.map(|n| n.map(i64::cast_unsigned)).collect()
}

/// Removes a session and returns the numbers of its removed entries.
fn remove(transaction: &Connection, say: &Say, found: &Found) -> StoreResult<Vec<u64>> {
    let begin = || -> rusqlite::Result<()> {
        transaction.execute("DELETE FROM draft WHERE session = ?1", [found.no])?;
        unsent::remove(transaction, found.meta.id)?;
        make_shared_prefix(transaction, found)
    };
    begin().map_err(say.of("cannot purge"))?;
    let mut removed = Vec::new();
    let mut shared_prefix = Some(found.no);
    while let Some(no) = shared_prefix {
        // A block may hold lines that stay and lines that go.
        pack::unpack(transaction, say, no)?;
        shared_prefix = trim(transaction, no, &mut removed).map_err(say.of("cannot purge"))?;
    }
    // The row of a project without sessions would name its folder.
    let uncounted = "DELETE FROM tally WHERE live = 0 AND trashed = 0";
    let forgotten = transaction.execute(uncounted, []);
    forgotten.map_err(say.of("cannot purge"))?;
    keep_number(transaction, &removed).map_err(say.of("cannot purge"))?;
    Ok(removed)
}

/// Keeps the highest removed number from being used again.
fn keep_number(transaction: &Connection, removed: &[u64]) -> rusqlite::Result<()> {
    // The index follows entry numbers: a placeholder keeps the highest one from being reused.
    if let Some(last) = removed.iter().max() {
        transaction.execute(
            "INSERT INTO entry SELECT ?1, 0, ?1, '' WHERE NOT EXISTS (SELECT 1 FROM entry WHERE n >= ?1)",
            [last.cast_signed()],
        )?;
    }
    Ok(())
}

/// Turns a session's row into that of a shared prefix, under another id: a session with the
/// original id may be created again, for example by an import.
pub(super) fn make_shared_prefix(transaction: &Connection, found: &Found) -> rusqlite::Result<()> {
    tally(transaction, &found.meta, -1)?;
    let name = format!("{} {}", found.meta.id, found.no);
    let id = SessionId::new(derived_id(&name));
    transaction.execute(
        "UPDATE session SET id = ?2, id_end = ?3, state = ?4, title = NULL, project = NULL, changed = NULL,
           row = ?5 WHERE no = ?1",
        params![found.no, id.uuid().as_bytes(), reversed(id), PURGED, row_of(&SessionMeta::blank(id))?],
    )?;
    Ok(())
}

/// Trims a purged session to what is shared. If nothing is, removes it and returns its base, which
/// may have been kept for this session alone.
fn trim(
    transaction: &Connection,
    no: i64,
    removed: &mut Vec<u64>,
) -> rusqlite::Result<Option<i64>> {
    let row: Option<(i64, Option<i64>)> = transaction
        .query_row(
            "SELECT state, base FROM session WHERE no = ?1",
            [no],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((PURGED, base)) = row else {
        return Ok(None);
    };
    let shared = shared_upto(transaction, no)?;
    cut_after(transaction, no, shared.unwrap_or_default(), removed)?;
    if shared.is_none() {
        transaction.execute("DELETE FROM session WHERE no = ?1", [no])?;
        return Ok(base);
    }
    Ok(None)
}
