//! Writes rows, and decides which copy of an event counts.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::Ledger;
use super::coverage::{cover, note_natives};
use super::facts::{EntryFacts, Event, LinkFacts};
use super::state::removals;
use crate::StoreResult;
use crate::sqlite::trouble;
use tertulia_core::entry::{Hash, Head};
use tertulia_core::foreign::Foreign;
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
    pub(super) links: Vec<LinkFacts>,
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

    /// Writes steps in one transaction. Skips a session that another process has advanced, and new
    /// ones if sessions were removed since there were `expected` removals: a new one may have been
    /// purged after it was read. Returns true if it skipped any.
    pub(super) fn record(&mut self, steps: &[Step], expected: u64) -> StoreResult<bool> {
        self.write(|connection| {
            let mut touched = Touched::default();
            let mut skipped = false;
            let takes_new = removals(connection)? == expected;
            for step in steps {
                let is_next = watermark(connection, step.meta.id)? == step.from;
                if is_next && (takes_new || step.from.is_some()) {
                    record_step(connection, step, &mut touched)?;
                } else {
                    skipped = true;
                }
            }
            touched.settle(connection)?;
            Ok(skipped)
        })
    }

    /// Removes sessions.
    pub(super) fn remove(&mut self, ids: &[SessionId]) -> StoreResult<()> {
        self.write(|connection| {
            let mut touched = Touched::default();
            for id in ids {
                if let Some(no) = number(connection, *id)? {
                    note_natives(connection, no, &mut touched.natives)?;
                    remove_rows(connection, no, &mut touched.events)?;
                    connection
                        .prepare_cached("DELETE FROM session WHERE no = ?1")?
                        .execute([no])?;
                }
            }
            connection.execute("UPDATE state SET removals = removals + 1", [])?;
            touched.settle(connection)
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

/// What has to be decided again after rows were written.
#[derive(Default)]
struct Touched {
    /// Events that several entries have.
    events: HashSet<Event>,
    /// Sessions of programs that were run or imported.
    natives: HashSet<String>,
}

impl Touched {
    fn settle(mut self, connection: &Connection) -> rusqlite::Result<()> {
        for native in &self.natives {
            cover(connection, native, &mut self.events)?;
        }
        recount(connection, &self.events)
    }
}

fn record_step(
    connection: &Connection,
    step: &Step,
    touched: &mut Touched,
) -> rusqlite::Result<()> {
    let meta = &step.meta;
    note_new_source(connection, meta, &mut touched.events)?;
    if step.afresh
        && let Some(no) = number(connection, meta.id)?
    {
        note_natives(connection, no, &mut touched.natives)?;
        remove_rows(connection, no, &mut touched.events)?;
    }
    let tags: String = meta
        .tags
        .iter()
        .map(|tag| format!("{TAG_BORDER}{tag}{TAG_BORDER}"))
        .collect();
    let no: i64 = connection
        .prepare_cached(
            "INSERT INTO session VALUES(NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,0,NULL,NULL,0,?12,?13,
               ?14)
             ON CONFLICT(id) DO UPDATE SET seq=?2, hash=?3, base=?4, created=?5, kind=?6, team=?7,
               project=?8, cwd=?9, tags=?10, trashed=?11, program=?12, original=?13, exported=?14
             RETURNING no",
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
                meta.source.as_ref().map(|source| &source.program),
                meta.source.as_ref().map(|source| &source.id),
                meta.source.as_ref().is_some_and(|source| source.exported),
            ],
            |row| row.get(0),
        )?;
    for entry in &step.entries {
        record_entry(connection, no, entry, &mut touched.events)?;
    }
    for link in &step.links {
        connection
            .prepare_cached("INSERT OR REPLACE INTO link VALUES(?1,?2,?3,?4)")?
            .execute(params![
                no,
                link.seq.0,
                number_of(connection, "name", &link.agent)?,
                link.native,
            ])?;
    }
    note_natives(connection, no, &mut touched.natives)?;
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
    if has_copy || is_of_another(connection, &entry.event)? {
        shared.insert(entry.event);
    }
    for request in &entry.requests {
        connection
            .prepare_cached("INSERT OR IGNORE INTO request VALUES(?1,?2,?3)")?
            .execute(params![&request[..], session, entry.seq.0])?;
        shared.insert(*request);
    }
    let name = |text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| number_of(connection, "name", text))
            .transpose()
    };
    let usage = entry.usage;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO entry VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,0)",
        )?
        .execute(params![
            session,
            entry.seq.0,
            entry.at,
            &entry.event[..],
            entry.own,
            entry.is_message,
            name(&entry.agent)?,
            name(&entry.model)?,
            usage.map(|usage| usage.input),
            usage.map(|usage| usage.output),
            usage.map(|usage| usage.cache_read),
            usage.map(|usage| usage.cache_written),
            usage.map(|usage| usage.estimated),
            ALONE,
            entry.prompt,
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
    let mut select = connection.prepare_cached("SELECT event FROM request WHERE session = ?1")?;
    for event in select.query_map([session], |row| row.get::<_, Event>(0))? {
        shared.insert(event?);
    }
    let mut select =
        connection.prepare_cached("SELECT DISTINCT path FROM file WHERE session = ?1")?;
    let paths = select.query_map([session], |row| row.get(0))?;
    let paths: Vec<i64> = paths.collect::<rusqlite::Result<_>>()?;
    for table in ["link", "entry", "request", "call", "file"] {
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

/// Notes the shared events of a session whose origin was not known when its entries were recorded.
fn note_new_source(
    connection: &Connection,
    meta: &SessionMeta,
    shared: &mut HashSet<Event>,
) -> rusqlite::Result<()> {
    let source = meta.source.as_ref();
    let mut select = connection.prepare_cached(
        "SELECT e.event FROM session s JOIN entry e ON e.session = s.no
         WHERE s.id = ?1 AND e.counts <> ?2 AND (s.original IS NOT ?3 OR s.exported <> ?4)",
    )?;
    let id = meta.id.uuid();
    let original = source.map(|source| &source.id);
    let exported = source.is_some_and(|source| source.exported);
    let values = params![id.as_bytes(), ALONE, original, exported];
    for event in select.query_map(values, |row| row.get::<_, Event>(0))? {
        shared.insert(event?);
    }
    Ok(())
}

/// An entry that has an event.
struct EventCopy {
    session: i64,
    seq: i64,
    created: i64,
    id: SessionId,
    own: bool,
    /// Program and id of the session that its session was imported from.
    source: Option<(String, String)>,
    exported: bool,
    covered: bool,
}

impl EventCopy {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<EventCopy> {
        let (program, original): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
        Ok(EventCopy {
            session: row.get(0)?,
            seq: row.get(1)?,
            created: row.get(2)?,
            id: id_of(row.get(3)?),
            own: row.get(4)?,
            source: program.zip(original),
            exported: row.get(7)?,
            covered: row.get(8)?,
        })
    }

    /// Returns the rank among copies of the same event: an answer that tertulia recorded, a copy, an
    /// export of another one.
    fn rank(&self, copies: &[EventCopy]) -> u8 {
        let is_export_of = |other: &EventCopy| {
            let source = self.source.as_ref();
            source.is_some_and(|(program, original)| {
                Foreign::export_id(program, other.id) == *original
            })
        };
        match self.own {
            true => 0,
            false if self.exported || copies.iter().any(is_export_of) => 2,
            false => 1,
        }
    }
}

/// Returns true if an event is part of what a recorded answer used: that one counts.
fn is_of_another(connection: &Connection, event: &Event) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM request WHERE event = ?1 LIMIT 1")?
        .exists([&event[..]])
}

/// Decides again which entries count for the given events.
fn recount(connection: &Connection, events: &HashSet<Event>) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(
        "SELECT e.session, e.seq, s.created, s.id, e.own, s.program, s.original, s.exported,
           e.covered
         FROM entry e JOIN session s ON s.no = e.session WHERE e.event = ?1",
    )?;
    let mut update = connection
        .prepare_cached("UPDATE entry SET counts = ?3 WHERE session = ?1 AND seq = ?2")?;
    for event in events {
        let rows = select.query_map([&event[..]], EventCopy::read)?;
        let rows: Vec<EventCopy> = rows.collect::<rusqlite::Result<_>>()?;
        let is_of_another = is_of_another(connection, event)?;
        let (covered, mut ranked): (Vec<&EventCopy>, Vec<&EventCopy>) =
            rows.iter().partition(|copy| copy.covered || is_of_another);
        ranked.sort_by_cached_key(|copy| (copy.rank(&rows), copy.created, copy.id, copy.seq));
        let owner = ranked.first().map(|copy| copy.session);
        for (place, copy) in ranked.iter().enumerate() {
            let counts = match place {
                _ if rows.len() == 1 => ALONE,
                0 => OWNER,
                _ if owner == Some(copy.session) => SHARED,
                _ => COPY,
            };
            update.execute(params![copy.session, copy.seq, counts])?;
        }
        for copy in covered {
            update.execute(params![copy.session, copy.seq, COPY])?;
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
