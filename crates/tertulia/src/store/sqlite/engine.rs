//! The connection and what is done with it: create, append, read, drafts, purge.

use std::fs::File;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{Location, open, trouble};
use crate::entry::{Entry, Head};
use crate::id::{Seq, SessionId};
use crate::session::{Line, Summary};
use crate::store::claims::Claims;
use crate::store::index::Index;
use crate::store::{Draft, Info, NewSession, StoreError, StoreResult, place};

/// The summary is kept every so many entries, so that a fork anywhere folds at most as many.
const SNAPSHOT_EVERY: u64 = 256;

/// A session in the table: 0 live, 1 in the trash, 2 purged but shared.
pub(super) const PURGED: i64 = 2;

/// One connection to the database.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) location: Location,
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) claims: Claims,
    queue: Option<File>,
    index: Option<Index>,
    /// Which file is open: a repair puts another in its place.
    identity: Option<(u64, u64)>,
}

/// What the table knows of a session.
pub(super) struct Found {
    pub(super) no: i64,
    pub(super) base: Option<(i64, Seq)>,
    pub(super) state: i64,
    pub(super) summary: Summary,
}

/// Our place in the queue of writers, left when dropped.
struct Turn<'a>(Option<&'a File>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            let _ = file.unlock();
        }
    }
}

impl Engine {
    pub(super) fn open(location: &Location, claims: &Claims) -> StoreResult<Engine> {
        Ok(Engine {
            connection: open::open(location)?,
            path: location.path().to_owned(),
            location: location.clone(),
            claims: claims.clone(),
            queue: None,
            index: None,
            identity: identity_of(location),
        })
    }

    /// Lets go of the file, so that another can take its place.
    pub(super) fn close(&mut self) {
        self.index = None;
        if let Ok(nothing) = Connection::open_in_memory() {
            self.connection = nothing;
        }
    }

    /// Opens the file that has the name now.
    pub(super) fn reopen(&mut self) -> StoreResult<()> {
        self.index = None;
        self.connection = open::open(&self.location)?;
        self.identity = identity_of(&self.location);
        Ok(())
    }

    /// Runs a write as one transaction, when it is our turn.
    pub(super) fn write<R>(
        &mut self,
        job: impl FnOnce(&Transaction<'_>, &Say) -> StoreResult<R>,
    ) -> StoreResult<R> {
        if self.queue.is_none()
            && let Some(path) = self.location.beside("lock")
        {
            self.queue = Some(place::lock_file(&path)?);
        }
        let say = Say(self.path.clone());
        if let Some(queue) = &self.queue {
            queue
                .lock()
                .map_err(|error| place::trouble(&self.path, "cannot queue for", error))?;
        }
        if identity_of(&self.location) != self.identity {
            if let Some(queue) = &self.queue {
                let _ = queue.unlock();
            }
            self.reopen()?;
            return self.write(job);
        }
        let _turn = Turn(self.queue.as_ref());
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(say.of("cannot write"))?;
        let done = job(&transaction, &say)?;
        transaction.commit().map_err(say.of("cannot write"))?;
        Ok(done)
    }

    pub(super) fn say(&self) -> Say {
        Say(self.path.clone())
    }

    /// The search index, opened when it is first needed.
    pub(super) fn index(&mut self) -> StoreResult<&mut Index> {
        match &mut self.index {
            Some(index) => Ok(index),
            unopened => {
                let index = Index::open(self.location.beside("search").as_deref())?;
                Ok(unopened.insert(index))
            }
        }
    }

    /// Both at once: the connection to read from and the index to write to.
    pub(super) fn with_index(&mut self) -> StoreResult<(&Connection, &mut Index, Say)> {
        self.index()?;
        let say = self.say();
        match &mut self.index {
            Some(index) => Ok((&self.connection, index, say)),
            None => Err(StoreError::failed(
                "cannot open the index",
                "it was just closed",
            )),
        }
    }

    pub(super) fn create(&mut self, new: &NewSession) -> StoreResult<Head> {
        self.write(|transaction, say| {
            if find(transaction, say, new.id)?.is_some_and(|found| found.state != PURGED) {
                return Err(StoreError::Exists(new.id));
            }
            let (base, mut summary) = match &new.base {
                None => (None, Summary::blank(new.id)),
                Some(origin) => {
                    let found = find(transaction, say, origin.id)?
                        .ok_or(StoreError::NotFound(origin.id))?;
                    let summary = summary_at(transaction, say, &found, origin.seq)?;
                    if summary.head
                        != (Head {
                            seq: origin.seq,
                            hash: origin.hash,
                        })
                    {
                        return Err(StoreError::Conflict {
                            id: origin.id,
                            head: found.summary.head,
                        });
                    }
                    (Some((found.no, origin.seq)), summary)
                }
            };
            for entry in &new.entries {
                summary.apply(entry);
            }
            summary.id = new.id;
            let no = insert_session(transaction, base, &summary)
                .map_err(say.of("cannot create a session"))?;
            insert_entries(transaction, no, &new.entries)
                .map_err(say.of("cannot create a session"))?;
            Ok(summary.head)
        })
    }

    pub(super) fn append(
        &mut self,
        id: SessionId,
        after: Head,
        entries: &[Entry],
    ) -> StoreResult<Head> {
        self.write(|transaction, say| {
            let found = find(transaction, say, id)?
                .filter(|found| found.state != PURGED)
                .ok_or(StoreError::NotFound(id))?;
            if found.summary.head != after {
                return Err(StoreError::Conflict {
                    id,
                    head: found.summary.head,
                });
            }
            let before = found.summary;
            let mut summary = before.clone();
            let mut write = || -> rusqlite::Result<Head> {
                for entry in entries {
                    summary.apply(entry);
                    if entry.seq.0 % SNAPSHOT_EVERY == 0 {
                        transaction
                            .prepare_cached("INSERT OR REPLACE INTO snapshot VALUES(?1, ?2, ?3)")?
                            .execute(params![found.no, entry.seq.0, row_of(&summary)?])?;
                    }
                }
                insert_entries(transaction, found.no, entries)?;
                update_session(transaction, found.no, &before, &summary)?;
                transaction
                    .prepare_cached("DELETE FROM draft WHERE session = ?1")?
                    .execute([found.no])?;
                Ok(summary.head)
            };
            write().map_err(say.of("cannot append"))
        })
    }

    pub(super) fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        let say = self.say();
        let found = find(&self.connection, &say, id)?
            .filter(|found| found.state != PURGED)
            .ok_or(StoreError::NotFound(id))?;
        read_lines(
            &self.connection,
            &say,
            found.no,
            found.base,
            after,
            Seq(u64::MAX),
            limit,
        )
    }

    /// The same, of a session that only its forks still need.
    pub(super) fn read_any(
        &self,
        id: SessionId,
        after: Seq,
        limit: usize,
    ) -> StoreResult<Vec<Line>> {
        let say = self.say();
        let found = find(&self.connection, &say, id)?.ok_or(StoreError::NotFound(id))?;
        read_lines(
            &self.connection,
            &say,
            found.no,
            found.base,
            after,
            Seq(u64::MAX),
            limit,
        )
    }

    /// Marks a session as purged but shared.
    pub(super) fn hide(&mut self, id: SessionId) -> StoreResult<()> {
        self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            tally(transaction, &found.summary, -1)
                .and_then(|()| make_husk(transaction, &found))
                .map_err(say.of("cannot hide a session"))
        })
    }

    pub(super) fn keep_draft(&mut self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let body = serde_json::to_string(draft)
            .map_err(|error| StoreError::failed("cannot write a draft", error))?;
        self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            transaction
                .prepare_cached("INSERT OR REPLACE INTO draft VALUES(?1, ?2)")
                .and_then(|mut insert| insert.execute(params![found.no, body]))
                .map_err(say.of("cannot keep a draft"))?;
            Ok(())
        })
    }

    pub(super) fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        let say = self.say();
        let found = find(&self.connection, &say, id)?.ok_or(StoreError::NotFound(id))?;
        let body: Option<String> = self
            .connection
            .prepare_cached("SELECT body FROM draft WHERE session = ?1")
            .and_then(|mut select| select.query_row([found.no], |row| row.get(0)).optional())
            .map_err(say.of("cannot read a draft"))?;
        let draft: Option<Draft> = body.and_then(|body| serde_json::from_str(&body).ok());
        Ok(draft.filter(|draft| draft.after == found.summary.head))
    }

    pub(super) fn purge(&mut self, id: SessionId) -> StoreResult<()> {
        let removed = self.write(|transaction, say| {
            let found = find(transaction, say, id)?
                .filter(|found| found.state != PURGED)
                .ok_or(StoreError::NotFound(id))?;
            remove(transaction, &found).map_err(say.of("cannot purge"))
        })?;
        // The database's own log still holds the old pages until they are written back.
        self.connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(self.say().of("cannot purge"))?;
        self.index()?.remove(&removed)
    }

    pub(super) fn info(&mut self) -> StoreResult<Info> {
        let say = self.say();
        let count = |sql: &str| -> StoreResult<u64> {
            self.connection
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .map(i64::cast_unsigned)
                .map_err(say.of("cannot count"))
        };
        let file_size = |suffix: Option<PathBuf>| Index::bytes(suffix.as_deref());
        Ok(Info {
            backend: "sqlite",
            place: self.path.display().to_string(),
            format: open::FORMAT,
            sessions: count("SELECT coalesce(sum(live + trashed), 0) FROM tally")?,
            trashed: count("SELECT coalesce(sum(trashed), 0) FROM tally")?,
            entries: count("SELECT count(*) FROM entry WHERE session > 0")?,
            bytes: match &self.location {
                Location::File(path) => {
                    Index::bytes(Some(path)) + file_size(self.location.beside("wal"))
                }
                Location::Memory => 0,
            },
            index_bytes: file_size(self.location.beside("search")),
        })
    }
}

/// Turns an SQLite error into ours, knowing the place.
pub(super) struct Say(PathBuf);

impl Say {
    pub(super) fn of<'a>(&'a self, what: &'a str) -> impl Fn(rusqlite::Error) -> StoreError + 'a {
        move |error| trouble(&self.0, what, error)
    }
}

/// The row of a session, purged or not.
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
                    let json: String = row.get(4)?;
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
    let id = SessionId::new(uuid::Uuid::from_bytes(id));
    // The row is derived: where it is damaged the log still knows.
    let summary = match serde_json::from_str(&json) {
        Ok(summary) => summary,
        Err(_) => refold(connection, say, no, base, id)?,
    };
    Ok(Some(Found {
        no,
        base,
        state,
        summary,
    }))
}

/// Folds a session's whole log anew.
pub(super) fn refold(
    connection: &Connection,
    say: &Say,
    no: i64,
    base: Option<(i64, Seq)>,
    id: SessionId,
) -> StoreResult<Summary> {
    let lines = read_lines(
        connection,
        say,
        no,
        base,
        Seq::START,
        Seq(u64::MAX),
        usize::MAX,
    )?;
    let entries: Vec<Entry> = lines
        .iter()
        .filter_map(|line| Entry::decode(&line.bytes).ok())
        .collect();
    let mut summary = Summary::of(id, &entries);
    summary.id = id;
    Ok(summary)
}

/// The summary as it was at an earlier entry.
pub(super) fn summary_at(
    connection: &Connection,
    say: &Say,
    found: &Found,
    seq: Seq,
) -> StoreResult<Summary> {
    if seq == found.summary.head.seq {
        return Ok(found.summary.clone());
    }
    let mut owner = (found.no, found.base);
    // A place before the fork is the base's.
    while let Some((base, base_seq)) = owner.1.filter(|(_, base_seq)| seq <= *base_seq) {
        let _ = base_seq;
        owner = (base, base_of(connection, say, base)?);
    }
    let snapshot: Option<String> = connection
        .prepare_cached(
            "SELECT row FROM snapshot WHERE session = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
        )
        .and_then(|mut select| {
            select
                .query_row(params![owner.0, seq.0], |row| row.get(0))
                .optional()
        })
        .map_err(say.of("cannot read a summary"))?;
    let mut summary = snapshot
        .and_then(|row| serde_json::from_str::<Summary>(&row).ok())
        .unwrap_or_else(|| Summary::blank(found.summary.id));
    let lines = read_lines(
        connection,
        say,
        owner.0,
        owner.1,
        summary.head.seq,
        seq,
        usize::MAX,
    )?;
    for line in lines {
        if let Ok(entry) = Entry::decode(&line.bytes) {
            summary.apply(&entry);
        }
    }
    Ok(summary)
}

fn base_of(connection: &Connection, say: &Say, no: i64) -> StoreResult<Option<(i64, Seq)>> {
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

/// Lines after `after` up to `upto`, through all the bases.
pub(super) fn read_lines(
    connection: &Connection,
    say: &Say,
    no: i64,
    base: Option<(i64, Seq)>,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> StoreResult<Vec<Line>> {
    // From the newest owner down to the one that holds the first line wanted.
    let mut owners = vec![(no, upto)];
    let mut base = base;
    while let Some((base_no, base_seq)) = base.filter(|(_, base_seq)| after < *base_seq) {
        owners.push((base_no, base_seq.min(upto)));
        base = base_of(connection, say, base_no)?;
    }
    let mut lines = Vec::new();
    let mut after = after;
    for (owner, upto) in owners.into_iter().rev() {
        read_own(
            connection,
            owner,
            after,
            upto,
            limit - lines.len(),
            &mut lines,
        )
        .map_err(say.of("cannot read entries"))?;
        after = after.max(upto);
        if lines.len() >= limit {
            break;
        }
    }
    Ok(lines)
}

fn read_own(
    connection: &Connection,
    no: i64,
    after: Seq,
    upto: Seq,
    limit: usize,
    lines: &mut Vec<Line>,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(
        "SELECT seq, line FROM entry WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
    )?;
    let upto = i64::try_from(upto.0).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![no, after.0, upto, limit])?;
    while let Some(row) = rows.next()? {
        let bytes = row
            .get_ref(1)?
            .as_bytes_or_null()?
            .unwrap_or_default()
            .to_vec();
        lines.push(Line {
            seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
            bytes,
        });
    }
    Ok(())
}

pub(super) fn row_of(summary: &Summary) -> rusqlite::Result<String> {
    serde_json::to_string(summary)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

pub(super) fn state_of(summary: &Summary) -> i64 {
    i64::from(summary.trashed_at.is_some())
}

/// The digits of an id from the end to the beginning, so that an ending can be looked up like a beginning.
pub(super) fn reversed(id: SessionId) -> [u8; 16] {
    let mut bytes = *id.uuid().as_bytes();
    bytes.reverse();
    bytes.map(|byte| byte.rotate_left(4))
}

pub(super) fn insert_session(
    transaction: &Connection,
    base: Option<(i64, Seq)>,
    summary: &Summary,
) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO session(id, id_end, base, base_seq, kind, team, project, title, state, updated, changed, row)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT(id) DO UPDATE SET base = excluded.base, base_seq = excluded.base_seq,
               kind = excluded.kind, team = excluded.team, project = excluded.project, title = excluded.title,
               state = excluded.state, updated = excluded.updated, changed = excluded.changed, row = excluded.row",
        )?
        .execute(params![
            summary.id.uuid().as_bytes(),
            reversed(summary.id),
            base.map(|(no, _)| no),
            base.map(|(_, seq)| seq.0),
            summary.kind.name(),
            summary.team,
            summary.project,
            summary.title,
            state_of(summary),
            summary.updated_at.as_microsecond(),
            summary.changed_at().map(jiff::Timestamp::as_microsecond),
            row_of(summary)?,
        ])?;
    tally(transaction, summary, 1)?;
    transaction
        .prepare_cached("SELECT no FROM session WHERE id = ?1")?
        .query_row([summary.id.uuid().as_bytes()], |row| row.get(0))
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

/// Writes the summary back, touching only the indexes whose columns have changed.
pub(super) fn update_session(
    transaction: &Connection,
    no: i64,
    before: &Summary,
    after: &Summary,
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

/// Keeps count per project, so that a list can say how many it does not show without counting.
fn tally(transaction: &Connection, summary: &Summary, by: i64) -> rusqlite::Result<()> {
    let trashed = state_of(summary);
    transaction
        .prepare_cached(
            "INSERT INTO tally VALUES(?1, ?2, ?3)
             ON CONFLICT(project) DO UPDATE SET live = live + excluded.live, trashed = trashed + excluded.trashed",
        )?
        .execute(params![
            summary.project.as_deref().unwrap_or_default(),
            (1 - trashed) * by,
            trashed * by
        ])?;
    Ok(())
}

/// Removes what no fork shares. The numbers of the entries that are gone.
fn remove(transaction: &Connection, found: &Found) -> rusqlite::Result<Vec<u64>> {
    let shared: Option<i64> = transaction.query_row(
        "SELECT max(base_seq) FROM session WHERE base = ?1",
        [found.no],
        |row| row.get(0),
    )?;
    let kept = shared.unwrap_or(0);
    let removed = transaction
        .prepare("SELECT n FROM entry WHERE session = ?1 AND seq > ?2")?
        .query_map(params![found.no, kept], |row| {
            row.get::<_, i64>(0).map(i64::cast_unsigned)
        })?
        .collect::<rusqlite::Result<Vec<u64>>>()?;
    transaction.execute(
        "DELETE FROM entry WHERE session = ?1 AND seq > ?2",
        params![found.no, kept],
    )?;
    // The index follows the numbers of arrival: the highest must not be given out a second time.
    if let Some(last) = removed.iter().max() {
        transaction.execute(
            "INSERT INTO entry SELECT ?1, 0, ?1, '' WHERE NOT EXISTS (SELECT 1 FROM entry WHERE n >= ?1)",
            [last.cast_signed()],
        )?;
    }
    transaction.execute(
        "DELETE FROM snapshot WHERE session = ?1 AND seq > ?2",
        params![found.no, kept],
    )?;
    transaction.execute("DELETE FROM draft WHERE session = ?1", [found.no])?;
    tally(transaction, &found.summary, -1)?;
    if shared.is_none() {
        transaction.execute("DELETE FROM session WHERE no = ?1", [found.no])?;
    } else {
        make_husk(transaction, found)?;
    }
    Ok(removed)
}

fn make_husk(transaction: &Connection, found: &Found) -> rusqlite::Result<()> {
    let husk = row_of(&Summary::blank(found.summary.id))?;
    transaction.execute(
        "UPDATE session SET state = ?2, title = NULL, changed = NULL, row = ?3 WHERE no = ?1",
        params![found.no, PURGED, husk],
    )?;
    Ok(())
}

fn identity_of(location: &Location) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    match location {
        Location::Memory => None,
        Location::File(path) => std::fs::metadata(path)
            .ok()
            .map(|found| (found.dev(), found.ino())),
    }
}
