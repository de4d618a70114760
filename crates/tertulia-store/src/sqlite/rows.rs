//! Database rows: sessions with their metadata, and lines read through the bases of forks.

use std::collections::HashSet;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, params};

use super::{pack, trouble};
use crate::chain::{self, Logs};
use crate::selection::{id_from, reversed, state_of};
use crate::{StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Line, SessionMeta};

impl Found {
    pub(super) fn log(&self) -> Log {
        (self.no, self.base)
    }
}

/// A session's row.
pub(super) struct Found {
    pub(super) no: i64,
    pub(super) base: Option<(i64, Seq)>,
    pub(super) state: i64,
    pub(super) meta: SessionMeta,
}

/// Converts SQLite errors to `StoreError`, with the path.
pub(super) struct Say(pub(super) PathBuf);

impl Say {
    pub(super) fn of<'a>(&'a self, what: &'a str) -> impl Fn(rusqlite::Error) -> StoreError + 'a {
        move |error| trouble(&self.0, what, error)
    }
}

/// Inserts a new session on top of its base and returns its number and head. The recorded base is
/// the owner of the entry that the session continues, so that reading never goes through sessions
/// that share nothing with it.
pub(super) fn insert_log(
    transaction: &Connection,
    say: &Say,
    id: SessionId,
    base: Option<(Found, Head)>,
    entries: &[Entry],
) -> StoreResult<(i64, Head)> {
    let (base, mut meta) = match base {
        None => (None, SessionMeta::blank(id)),
        Some((found, head)) => {
            let meta = summary_at(transaction, say, &found, head.seq)?;
            if meta.head != head {
                return Err(StoreError::Conflict {
                    id: found.meta.id,
                    head: found.meta.head,
                });
            }
            let owner = owner_of(transaction, say, &found, head.seq)?;
            (Some((owner, head.seq)), meta)
        }
    };
    let mut snapshots = Vec::new();
    for entry in entries {
        meta.apply(entry);
        if chain::is_snapshot_due(&meta, entry.seq) {
            snapshots.push(meta.clone());
        }
    }
    meta.id = id;
    let write = || -> rusqlite::Result<i64> {
        let no = insert_session(transaction, base, &meta)?;
        insert_entries(transaction, no, entries)?;
        for snapshot in &snapshots {
            put_snapshot_if_due(transaction, no, snapshot, snapshot.head.seq)?;
        }
        Ok(no)
    };
    let no = write().map_err(say.of("cannot create a session"))?;
    Ok((no, meta.head))
}

/// Returns the session whose own log holds an entry.
fn owner_of(connection: &Connection, say: &Say, found: &Found, seq: Seq) -> StoreResult<i64> {
    let mut owner = (found.no, found.base);
    while let Some((base, _)) = owner.1.filter(|(_, base_seq)| seq <= *base_seq) {
        owner = (base, base_of(connection, say, base)?);
    }
    Ok(owner.0)
}

/// Returns the row of a session. A purged session is no longer found by its id.
pub(super) fn find(
    connection: &Connection,
    say: &Say,
    id: SessionId,
) -> StoreResult<Option<Found>> {
    find_where(connection, say, "id = ?1", id.uuid().as_bytes())
}

pub(super) fn find_no(connection: &Connection, say: &Say, no: i64) -> StoreResult<Option<Found>> {
    find_where(connection, say, "no = ?1", no)
}

fn find_where(
    connection: &Connection,
    say: &Say,
    condition: &str,
    key: impl rusqlite::ToSql,
) -> StoreResult<Option<Found>> {
    let sql = format!("SELECT no, base, base_seq, state, row, id FROM session WHERE {condition}");
    let found = connection
        .prepare_cached(&sql)
        .and_then(|mut select| {
            select
                .query_row([key], |row| {
                    let base: Option<i64> = row.get(1)?;
                    let base_seq: Option<i64> = row.get(2)?;
                    let json = row
                        .get_ref(4)?
                        .as_bytes_or_null()?
                        .unwrap_or_default()
                        .to_vec();
                    let id: [u8; 16] = row.get(5)?;
                    Ok((row.get(0)?, base.zip(base_seq), row.get(3)?, json, id))
                })
                .optional()
        })
        .map_err(say.of("cannot look up a session"))?;
    let Some((no, base, state, json, id)) = found else {
        return Ok(None);
    };
    let base = base.map(|(no, seq): (i64, i64)| (no, Seq(seq.cast_unsigned())));
    let id = id_from(id);
    // The row is derived: if it is damaged, the log still has the data.
    let meta = match SessionMeta::from_json(&json) {
        Ok(meta) => meta,
        Err(_) => refold(connection, say, (no, base), id)?,
    };
    Ok(Some(Found {
        no,
        base,
        state,
        meta,
    }))
}

/// Folds a session's whole log, with what it shares.
fn refold(connection: &Connection, say: &Say, log: Log, id: SessionId) -> StoreResult<SessionMeta> {
    refold_from(connection, say, log, SessionMeta::blank(id), id, |_, _| {
        Ok(())
    })
}

/// Folds the lines of a log after `start` onto it, and passes the metadata after each entry to
/// `seen`.
pub(super) fn refold_from(
    connection: &Connection,
    say: &Say,
    log: Log,
    start: SessionMeta,
    id: SessionId,
    seen: impl Fn(&SessionMeta, Seq) -> rusqlite::Result<()>,
) -> StoreResult<SessionMeta> {
    let after = start.head.seq;
    let lines = read_lines(connection, say, log, after, Seq(u64::MAX), usize::MAX)?;
    let mut meta = start;
    for line in &lines {
        chain::apply(&mut meta, line);
        seen(&meta, line.seq).map_err(say.of("cannot fold a log"))?;
    }
    meta.id = id;
    Ok(meta)
}

/// Returns the metadata at an earlier entry.
pub(super) fn summary_at(
    connection: &Connection,
    say: &Say,
    found: &Found,
    seq: Seq,
) -> StoreResult<SessionMeta> {
    if seq == found.meta.head.seq {
        return Ok(found.meta.clone());
    }
    let owner = owner_of(connection, say, found, seq)?;
    let mut meta = nearest_snapshot(connection, say, owner, seq)?
        .unwrap_or_else(|| SessionMeta::blank(found.meta.id));
    let log = (owner, base_of(connection, say, owner)?);
    let lines = read_lines(connection, say, log, meta.head.seq, seq, usize::MAX)?;
    chain::fold(&mut meta, &lines);
    Ok(meta)
}

/// Returns the last snapshot up to an entry, of a log or of the logs that it continues.
fn nearest_snapshot(
    connection: &Connection,
    say: &Say,
    log: i64,
    seq: Seq,
) -> StoreResult<Option<SessionMeta>> {
    let (mut log, mut seq) = (log, seq);
    let mut passed = HashSet::new();
    // Logs that continue each other in a circle have no beginning.
    while passed.insert(log) {
        let row: Option<String> = connection
            .prepare_cached(
                "SELECT row FROM snapshot WHERE session = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
            )
            .and_then(|mut select| {
                select
                    .query_row(params![log, seq.0], |row| row.get(0))
                    .optional()
            })
            .map_err(say.of("cannot read a summary"))?;
        if let Some(meta) = row.and_then(|row| SessionMeta::from_json(row.as_bytes()).ok()) {
            return Ok(Some(meta));
        }
        match base_of(connection, say, log)? {
            Some((base, base_seq)) => (log, seq) = (base, seq.min(base_seq)),
            None => break,
        }
    }
    Ok(None)
}

pub(super) fn base_of(
    connection: &Connection,
    say: &Say,
    no: i64,
) -> StoreResult<Option<(i64, Seq)>> {
    connection
        .prepare_cached("SELECT base, base_seq FROM session WHERE no = ?1 AND base IS NOT NULL")
        .and_then(|mut select| {
            select
                .query_row([no], |row| {
                    Ok((row.get(0)?, Seq(row.get::<_, i64>(1)?.cast_unsigned())))
                })
                .optional()
        })
        .map_err(say.of("cannot look up a session"))
}

/// A log: the number of its session, and what it continues.
pub(super) type Log = (i64, Option<(i64, Seq)>);

/// The logs in a database.
struct Entries<'a>(&'a Connection, &'a Say);

impl Logs for Entries<'_> {
    type Log = Log;

    fn base(&mut self, (_, base): &Log, after: Seq) -> StoreResult<Option<(Log, Seq)>> {
        let Some((no, seq)) = base.filter(|(_, seq)| after < *seq) else {
            return Ok(None);
        };
        Ok(Some(((no, base_of(self.0, self.1, no)?), seq)))
    }

    fn own_lines(
        &mut self,
        (no, _): &Log,
        after: Seq,
        upto: Seq,
        limit: usize,
    ) -> StoreResult<Vec<Line>> {
        read_own(self.0, *no, after, upto, limit).map_err(self.1.of("cannot read entries"))
    }
}

/// Reads lines after `after` up to `upto`, through all bases.
pub(super) fn read_lines(
    connection: &Connection,
    say: &Say,
    log: Log,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> StoreResult<Vec<Line>> {
    chain::read_lines(&mut Entries(connection, say), log, after, upto, limit)
}

fn read_own(
    connection: &Connection,
    no: i64,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> rusqlite::Result<Vec<Line>> {
    let mut select = connection.prepare_cached(
        "SELECT seq, line FROM entry WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
    )?;
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    let upto = i64::try_from(upto.0).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![no, after, upto, limit])?;
    let mut lines = pack::Lines::new(connection);
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = Seq(row.get::<_, i64>(0)?.cast_unsigned());
        let bytes = lines.line(no, seq, row.get_ref(1)?)?;
        found.push(Line { seq, bytes });
    }
    Ok(found)
}

pub(super) fn row_of(meta: &SessionMeta) -> rusqlite::Result<String> {
    serde_json::to_string(meta)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

pub(super) fn insert_session(
    transaction: &Connection,
    base: Option<(i64, Seq)>,
    meta: &SessionMeta,
) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO session(id, id_end, base, base_seq, kind, team, project, title, state, updated, changed, row)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            meta.id.uuid().as_bytes(),
            reversed(meta.id),
            base.map(|(no, _)| no),
            base.map(|(_, seq)| seq.0),
            meta.kind.name(),
            meta.team,
            meta.project,
            meta.title,
            state_of(meta),
            meta.updated_at.as_microsecond(),
            meta.changed_at().map(jiff::Timestamp::as_microsecond),
            row_of(meta)?,
        ])?;
    let no = transaction.last_insert_rowid();
    tally(transaction, meta, 1)?;
    Ok(no)
}

pub(super) fn insert_entries(
    transaction: &Connection,
    no: i64,
    entries: &[Entry],
) -> rusqlite::Result<()> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO entry(session, seq, line) VALUES(?1, ?2, ?3)")?;
    for entry in entries {
        insert.execute(params![no, entry.seq.0, entry.line()])?;
    }
    Ok(())
}

/// Keeps a metadata snapshot, if one is due after this entry.
pub(super) fn put_snapshot_if_due(
    transaction: &Connection,
    no: i64,
    meta: &SessionMeta,
    seq: Seq,
) -> rusqlite::Result<()> {
    if chain::is_snapshot_due(meta, seq) {
        transaction
            .prepare_cached("INSERT OR REPLACE INTO snapshot VALUES(?1, ?2, ?3)")?
            .execute(params![no, seq.0, row_of(meta)?])?;
    }
    Ok(())
}

/// Updates the session's row, touching only the indexes whose columns have changed.
pub(super) fn update_session(
    transaction: &Connection,
    no: i64,
    before: &SessionMeta,
    after: &SessionMeta,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE session SET updated = ?2, row = ?3 WHERE no = ?1")?
        .execute(params![
            no,
            after.updated_at.as_microsecond(),
            row_of(after)?
        ])?;
    let same = before.title == after.title
        && before.project == after.project
        && before.changed_at() == after.changed_at()
        && state_of(before) == state_of(after);
    if !same {
        transaction
            .prepare_cached("UPDATE session SET title = ?2, project = ?3, state = ?4, changed = ?5 WHERE no = ?1")?
            .execute(params![
                no,
                after.title,
                after.project,
                state_of(after),
                after.changed_at().map(jiff::Timestamp::as_microsecond)
            ])?;
        tally(transaction, before, -1)?;
        tally(transaction, after, 1)?;
    }
    Ok(())
}

/// Adjusts the counts per project, from which a list knows how many sessions it hides.
pub(super) fn tally(transaction: &Connection, meta: &SessionMeta, by: i64) -> rusqlite::Result<()> {
    let trashed = state_of(meta);
    transaction
        .prepare_cached(
            "INSERT INTO tally VALUES(?1, ?2, ?3)
             ON CONFLICT(project) DO UPDATE SET live = live + excluded.live, trashed = trashed + excluded.trashed",
        )?
        .execute(params![
            meta.project.as_deref().unwrap_or_default(),
            (1 - trashed) * by,
            trashed * by
        ])?;
    Ok(())
}
