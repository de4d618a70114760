//! Writes rows, and decides which copy of an event counts.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::Ledger;
use super::facts::{EntryFacts, Event};
use crate::StoreResult;
use crate::sqlite::trouble;
use tertulia_core::entry::{Hash, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

/// How an entry counts: not at all, because an earlier session has the event.
pub(super) const COPY: i64 = 0;
/// As a message, and with its usage: no other entry has the event.
pub(super) const ALONE: i64 = 1;
/// As a message, and with the highest figures of all entries that have the event.
pub(super) const OWNER: i64 = 2;
/// As a message only: another entry of the same session counts for the event.
pub(super) const SHARED: i64 = 3;

/// Separates tags, which cannot contain it.
pub(super) const TAG_BORDER: char = '\u{1f}';

/// How far the ledger has followed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watermark {
    /// The session's own entries follow this one.
    pub(super) base: Seq,
    /// The last entry that was read.
    pub(super) head: Head,
}

/// Entries of one session to add.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) meta: SessionMeta,
    /// Where the ledger is expected to be; `None` if it does not know the session.
    pub(super) from: Option<Watermark>,
    /// True if the session's earlier rows are replaced.
    pub(super) afresh: bool,
    pub(super) to: Watermark,
    pub(super) entries: Vec<EntryFacts>,
    /// Entries that could not be read.
    pub(super) unread: u64,
}

impl Ledger {
    /// Returns the watermarks of all sessions.
    pub(super) fn watermarks(&self) -> StoreResult<HashMap<SessionId, Watermark>> {
        let read = || {
            let mut select = self
                .connection
                .prepare_cached("SELECT id, base, seq, hash FROM session")?;
            let rows =
                select.query_map([], |row| Ok((id_of(row.get(0)?), watermark_of(row, 1)?)))?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.trouble(error))
    }

    /// Returns the watermark of a session.
    pub(super) fn watermark(&self, id: SessionId) -> StoreResult<Option<Watermark>> {
        watermark(&self.connection, id).map_err(|error| self.trouble(error))
    }

    /// Sets whether the ledger once held every session.
    pub(super) fn set_complete(&mut self, complete: bool) -> StoreResult<()> {
        let set = self.connection.execute(
            "UPDATE state SET complete = ?1 WHERE complete <> ?1",
            [complete],
        );
        set.map(drop).map_err(|error| self.trouble(error))
    }

    /// Writes steps in one transaction. Skips a session that another process has advanced; returns
    /// true if there was one.
    pub(super) fn record(&mut self, steps: &[Step]) -> StoreResult<bool> {
        self.write(|connection| {
            let mut shared = HashSet::new();
            let mut skipped = false;
            for step in steps {
                if watermark(connection, step.meta.id)? == step.from {
                    record_step(connection, step, &mut shared)?;
                } else {
                    skipped = true;
                }
            }
            recount(connection, &shared)?;
            Ok(skipped)
        })
    }

    /// Removes sessions.
    pub(super) fn remove(&mut self, ids: &[SessionId]) -> StoreResult<()> {
        self.write(|connection| {
            let mut shared = HashSet::new();
            for id in ids {
                if let Some(no) = number(connection, *id)? {
                    remove_rows(connection, no, &mut shared)?;
                    connection
                        .prepare_cached("DELETE FROM session WHERE no = ?1")?
                        .execute([no])?;
                }
            }
            recount(connection, &shared)
        })
    }

    fn write<T>(&mut self, job: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> StoreResult<T> {
        let path = self.path.clone();
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate);
        let done = transaction.and_then(|transaction| {
            let done = job(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|error| trouble(&path, "cannot write the ledger", error))
    }
}

fn record_step(
    connection: &Connection,
    step: &Step,
    shared: &mut HashSet<Event>,
) -> rusqlite::Result<()> {
    let meta = &step.meta;
    if step.afresh
        && let Some(no) = number(connection, meta.id)?
    {
        remove_rows(connection, no, shared)?;
    }
    let tags: String = meta
        .tags
        .iter()
        .map(|tag| format!("{TAG_BORDER}{tag}{TAG_BORDER}"))
        .collect();
    let no: i64 = connection
        .prepare_cached(
            "INSERT INTO session VALUES(NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,0,NULL,NULL,0)
             ON CONFLICT(id) DO UPDATE SET seq=?2, hash=?3, base=?4, created=?5, kind=?6, team=?7,
               project=?8, cwd=?9, tags=?10, trashed=?11 RETURNING no",
        )?
        .query_row(
            params![
                meta.id.uuid().as_bytes(),
                step.to.head.seq.0,
                step.to.head.hash.bytes(),
                step.to.base.0,
                meta.created_at.as_microsecond(),
                meta.kind.name(),
                meta.team,
                meta.project,
                meta.cwd,
                tags,
                meta.trashed_at.is_some(),
            ],
            |row| row.get(0),
        )?;
    for entry in &step.entries {
        record_entry(connection, no, entry, shared)?;
    }
    let messages = || step.entries.iter().filter(|entry| entry.is_message);
    connection
        .prepare_cached(
            "UPDATE session SET messages = messages + ?2, unread = unread + ?3,
               first = min(coalesce(first, ?4), coalesce(?4, first)),
               last = max(coalesce(last, ?5), coalesce(?5, last)) WHERE no = ?1",
        )?
        .execute(params![
            no,
            messages().count(),
            step.unread,
            messages().map(|entry| entry.at).min(),
            messages().map(|entry| entry.at).max(),
        ])?;
    Ok(())
}

fn record_entry(
    connection: &Connection,
    session: i64,
    entry: &EntryFacts,
    shared: &mut HashSet<Event>,
) -> rusqlite::Result<()> {
    let has_copy = connection
        .prepare_cached("SELECT 1 FROM entry WHERE event = ?1 LIMIT 1")?
        .exists([&entry.event[..]])?;
    if has_copy {
        shared.insert(entry.event);
    }
    let name = |text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| number_of(connection, "name", text))
            .transpose()
    };
    let usage = entry.usage;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO entry VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
        )?
        .execute(params![
            session,
            entry.seq.0,
            entry.at,
            &entry.event[..],
            entry.is_message,
            name(&entry.agent)?,
            name(&entry.model)?,
            usage.map(|usage| usage.input),
            usage.map(|usage| usage.output),
            usage.map(|usage| usage.cache_read),
            usage.map(|usage| usage.cache_written),
            usage.map(|usage| usage.estimated),
            ALONE,
        ])?;
    for (n, call) in entry.calls.iter().enumerate() {
        connection
            .prepare_cached("INSERT OR REPLACE INTO call VALUES(?1,?2,?3,?4,?5,NULL)")?
            .execute(params![
                session,
                entry.seq.0,
                n,
                number_of(connection, "name", &call.name)?,
                call.id
            ])?;
        for file in &call.files {
            connection
                .prepare_cached("INSERT OR REPLACE INTO file VALUES(?1,?2,?3,?4,?5)")?
                .execute(params![
                    session,
                    entry.seq.0,
                    n,
                    number_of(connection, "path", &file.path)?,
                    file.written
                ])?;
        }
    }
    if let Some((call, outcome)) = &entry.answers {
        // Ids of calls may repeat within a session: the last open one is answered.
        connection
            .prepare_cached(
                "UPDATE call SET outcome = ?3 WHERE session = ?1 AND (seq, n) =
                   (SELECT seq, n FROM call WHERE session = ?1 AND id = ?2 AND outcome IS NULL
                    ORDER BY seq DESC, n DESC LIMIT 1)",
            )?
            .execute(params![session, call, outcome.name()])?;
    }
    Ok(())
}

/// Removes the entries of a session, and notes the events that other entries have, too.
fn remove_rows(
    connection: &Connection,
    session: i64,
    shared: &mut HashSet<Event>,
) -> rusqlite::Result<()> {
    let mut select =
        connection.prepare_cached("SELECT event FROM entry WHERE session = ?1 AND counts <> ?2")?;
    let events = select.query_map(params![session, ALONE], |row| row.get::<_, Event>(0))?;
    for event in events {
        shared.insert(event?);
    }
    let mut select =
        connection.prepare_cached("SELECT DISTINCT path FROM file WHERE session = ?1")?;
    let paths = select.query_map([session], |row| row.get(0))?;
    let paths: Vec<i64> = paths.collect::<rusqlite::Result<_>>()?;
    for table in ["entry", "call", "file"] {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE session = ?1"))?
            .execute([session])?;
    }
    // A path may not outlive the sessions that named it.
    for path in paths {
        connection
            .prepare_cached(
                "DELETE FROM path WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM file WHERE path = ?1)",
            )?
            .execute([path])?;
    }
    connection
        .prepare_cached(
            "UPDATE session SET messages = 0, first = NULL, last = NULL, unread = 0 WHERE no = ?1",
        )?
        .execute([session])?;
    Ok(())
}

/// Decides again which entries count for the given events.
fn recount(connection: &Connection, events: &HashSet<Event>) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(
        "SELECT e.session, e.seq FROM entry e JOIN session s ON s.no = e.session
         WHERE e.event = ?1 ORDER BY s.created, s.id, e.seq",
    )?;
    let mut update = connection
        .prepare_cached("UPDATE entry SET counts = ?3 WHERE session = ?1 AND seq = ?2")?;
    for event in events {
        let rows = select.query_map([&event[..]], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
        let rows: Vec<(i64, i64)> = rows.collect::<rusqlite::Result<_>>()?;
        let owner = rows.first().map(|(session, _)| *session);
        for (place, (session, seq)) in rows.iter().enumerate() {
            let counts = match place {
                _ if rows.len() == 1 => ALONE,
                0 => OWNER,
                _ if owner == Some(*session) => SHARED,
                _ => COPY,
            };
            update.execute(params![session, seq, counts])?;
        }
    }
    Ok(())
}

/// Returns the number of a text in a table of texts; adds it if it is new.
fn number_of(connection: &Connection, table: &str, text: &str) -> rusqlite::Result<i64> {
    let known = connection
        .prepare_cached(&format!("SELECT no FROM {table} WHERE text = ?1"))?
        .query_row([text], |row| row.get(0))
        .optional()?;
    match known {
        Some(no) => Ok(no),
        None => {
            connection
                .prepare_cached(&format!("INSERT INTO {table}(text) VALUES(?1)"))?
                .execute([text])?;
            Ok(connection.last_insert_rowid())
        }
    }
}

fn number(connection: &Connection, id: SessionId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT no FROM session WHERE id = ?1")?
        .query_row([id.uuid().as_bytes()], |row| row.get(0))
        .optional()
}

fn watermark(connection: &Connection, id: SessionId) -> rusqlite::Result<Option<Watermark>> {
    connection
        .prepare_cached("SELECT base, seq, hash FROM session WHERE id = ?1")?
        .query_row([id.uuid().as_bytes()], |row| watermark_of(row, 0))
        .optional()
}

fn watermark_of(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Watermark> {
    Ok(Watermark {
        base: Seq(row.get(from)?),
        head: Head {
            seq: Seq(row.get(from + 1)?),
            hash: Hash::from_bytes(&row.get::<_, Vec<u8>>(from + 2)?).unwrap_or(Hash::NONE),
        },
    })
}

/// Returns the session id with these bytes.
pub(super) fn id_of(bytes: [u8; 16]) -> SessionId {
    SessionId::new(uuid::Uuid::from_bytes(bytes))
}
