//! The database connection and its operations: create, append, read, drafts, info.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::open::{Company, Opened};
use super::rows::{
    Say, find, insert_entries, insert_log, put_snapshot_if_due, read_lines, update_session,
};
use super::search::catch_up;
use super::{Location, busy, open, pack};
use crate::engine::{Engine, Upkeep};
use crate::index::Index;
use crate::queue::{Asked, Patience, QueueLock, Record};
use crate::session_lock::Claims;
use crate::{
    CheckMode, Compressed, Draft, Info, NewSession, Progress, Rebuilt, Report, StoreError,
    StoreResult, Unsent, check_whole, has_words, place,
};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;

/// One connection to the database.
#[derive(Debug)]
pub struct SqliteEngine {
    pub(super) location: Location,
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) claims: Claims,
    /// Whether another connection can be open beside this one.
    pub(super) company: Company,
    queue: Option<QueueLock>,
    patience: Patience,
    /// The current operation: its session, and since when it waits.
    asked: Asked,
    index: Option<Index>,
    /// Device and inode of the open file: a repair replaces the file.
    identity: Option<(u64, u64)>,
}

/// How long saving a draft waits for other writers: it is saved again soon anyway.
const DRAFT_LOCK_TIMEOUT: Duration = Duration::from_millis(250);

/// Turn in the writers' queue, released on drop.
struct Turn<'a>(Option<&'a QueueLock>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.0 {
            queue.release();
        }
    }
}

impl SqliteEngine {
    /// Closes the file without a checkpoint, so that it can be replaced.
    pub(super) fn close(&mut self) {
        self.index = None;
        let _ = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if let Ok(nothing) = Connection::open_in_memory() {
            self.connection = nothing;
        }
    }

    /// Opens the file that has the name now.
    pub(super) fn reopen(&mut self) -> StoreResult<()> {
        if let Location::File(path) = &self.location
            && !path.exists()
        {
            // Creating a new empty database would hide that the old one is gone.
            return Err(StoreError::failed(
                format!("{} is gone", path.display()),
                "it was there a moment ago",
            ));
        }
        self.index = None;
        let (opened, identity) = open_identified(&self.location)?;
        self.connection = opened.connection;
        self.company = opened.company;
        self.identity = identity;
        Ok(())
    }

    /// Waits for the turn to write, and reopens the database if its file was replaced.
    fn queue_up(&mut self) -> StoreResult<()> {
        if self.queue.is_none()
            && let Some(path) = self.location.beside("lock")
            && let Some(turnstile) = self.location.beside("turn")
        {
            let lock = QueueLock::new(place::lock_file(&path)?, Record::Inside);
            self.queue = Some(lock.with_turnstile(place::lock_file(&turnstile)?));
            open::make_room(&self.location);
        }
        let Some(queue) = &self.queue else {
            return Ok(());
        };
        queue.acquire(&self.path, self.asked, &self.patience)?;
        if identity_of(&self.location) != self.identity
            && let Err(error) = self.reopen()
        {
            self.leave_queue();
            return Err(error);
        }
        Ok(())
    }

    fn leave_queue(&self) {
        if let Some(queue) = &self.queue {
            queue.release();
        }
    }

    /// Runs a write as one transaction, after waiting for the turn.
    pub(super) fn write<R>(
        &mut self,
        job: impl FnOnce(&Transaction<'_>, &Say) -> StoreResult<R>,
    ) -> StoreResult<R> {
        self.queue_up()?;
        let say = Say(self.path.clone());
        let _turn = Turn(self.queue.as_ref());
        let connection = &mut self.connection;
        let transaction = busy::during(&self.path, self.asked.session, &self.patience, || {
            connection.transaction_with_behavior(TransactionBehavior::Immediate)
        })
        .map_err(say.of("cannot write"))?;
        let done = job(&transaction, &say)?;
        transaction.commit().map_err(say.of("cannot write"))?;
        Ok(done)
    }

    /// Runs a write that cannot be part of a transaction, after waiting for the turn.
    pub(super) fn outside_transaction<R>(
        &mut self,
        job: impl FnOnce(&Connection) -> StoreResult<R>,
    ) -> StoreResult<R> {
        self.queue_up()?;
        let _turn = Turn(self.queue.as_ref());
        job(&self.connection)
    }

    pub(super) fn say(&self) -> Say {
        Say(self.path.clone())
    }

    /// Returns the search index, opened at first use.
    pub(super) fn index(&mut self) -> StoreResult<&mut Index> {
        match &mut self.index {
            Some(index) => Ok(index),
            unopened => {
                let index = Index::open(self.location.beside("search").as_deref())?;
                Ok(unopened.insert(index))
            }
        }
    }

    /// Switches to a search index in memory, when none can be written beside the database.
    pub(super) fn index_in_memory(&mut self) -> StoreResult<()> {
        self.index = Some(Index::open(None)?);
        Ok(())
    }

    /// Returns both the connection to read from and the index to write to.
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

    /// Reads a session's lines, through its bases.
    pub(super) fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        let say = self.say();
        let found = find(&self.connection, &say, id)?.ok_or(StoreError::NotFound(id))?;
        let end = Seq(u64::MAX);
        read_lines(&self.connection, &say, found.log(), after, end, limit)
    }

    /// Returns the used size of the WAL: the file itself is preallocated.
    fn log_bytes(&self) -> u64 {
        let pages = self
            .connection
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
                row.get::<_, i64>(1)
            });
        u64::try_from(pages.unwrap_or(0)).unwrap_or(0) * u64::from(open::PAGE_SIZE + 24)
    }
}

impl Engine for SqliteEngine {
    type Location = Location;

    fn open(location: &Location, claims: &Claims, patience: &Patience) -> StoreResult<Self> {
        let (opened, identity) = busy::during(location.path(), None, patience, || {
            open_identified(location)
        })?;
        Ok(SqliteEngine {
            connection: opened.connection,
            company: opened.company,
            path: location.path().to_owned(),
            location: location.clone(),
            claims: claims.clone(),
            queue: None,
            patience: patience.clone(),
            asked: Asked::now(None),
            index: None,
            identity,
        })
    }

    fn derived_file(location: &Location, name: &str) -> Option<PathBuf> {
        location.beside(name)
    }

    fn allows_second(&self) -> bool {
        self.company == Company::Welcome
    }

    fn begin(&mut self, asked: Asked) {
        self.asked = asked;
    }

    fn create(&mut self, new: &NewSession) -> StoreResult<Head> {
        check_whole(&new.entries)?;
        self.write(|transaction, say| {
            if find(transaction, say, new.id)?.is_some() {
                return Err(StoreError::Exists(new.id));
            }
            let base = match &new.base {
                None => None,
                Some(origin) => {
                    let found = find(transaction, say, origin.id)?
                        .ok_or(StoreError::NotFound(origin.id))?;
                    let head = Head {
                        seq: origin.seq,
                        hash: origin.hash,
                    };
                    Some((found, head))
                }
            };
            let (_, head) = insert_log(transaction, say, new.id, base, &new.entries)?;
            Ok(head)
        })
    }

    fn append(&mut self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        check_whole(entries)?;
        self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            if found.meta.head != after {
                return Err(StoreError::Conflict {
                    id,
                    head: found.meta.head,
                });
            }
            pack::unpack(transaction, say, found.no)?;
            let before = found.meta;
            let mut meta = before.clone();
            let mut write = || -> rusqlite::Result<Head> {
                for entry in entries {
                    meta.apply(entry);
                    put_snapshot_if_due(transaction, found.no, &meta, entry.seq)?;
                }
                insert_entries(transaction, found.no, entries)?;
                update_session(transaction, found.no, &before, &meta)?;
                if has_words(entries) {
                    transaction
                        .prepare_cached("DELETE FROM draft WHERE session = ?1")?
                        .execute([found.no])?;
                }
                Ok(meta.head)
            };
            write().map_err(say.of("cannot append"))
        })
    }

    fn read(&mut self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.lines(id, after, limit)
    }

    fn keep_draft(&mut self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let body = serde_json::to_string(draft)
            .map_err(|error| StoreError::failed("cannot write a draft", error))?;
        self.asked = self.asked.within(DRAFT_LOCK_TIMEOUT);
        self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            transaction
                .prepare_cached("INSERT OR REPLACE INTO draft VALUES(?1, ?2)")
                .and_then(|mut insert| insert.execute(params![found.no, body]))
                .map_err(say.of("cannot keep a draft"))?;
            Ok(())
        })
    }

    fn draft(&mut self, id: SessionId) -> StoreResult<Option<Draft>> {
        let say = self.say();
        let found = find(&self.connection, &say, id)?.ok_or(StoreError::NotFound(id))?;
        let body: Option<String> = self
            .connection
            .prepare_cached("SELECT body FROM draft WHERE session = ?1")
            .and_then(|mut select| select.query_row([found.no], |row| row.get(0)).optional())
            .map_err(say.of("cannot read a draft"))?;
        let draft: Option<Draft> = body.and_then(|body| serde_json::from_str(&body).ok());
        let Some(draft) = draft else { return Ok(None) };
        let lines = self.lines(id, draft.after.seq, usize::MAX)?;
        Ok(draft.if_current(&lines, Some(found.meta.head)))
    }

    fn keep_unsent(&mut self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        self.keep_unsent_words(id, unsent)
    }

    fn unsent(&mut self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        self.unsent_words(id)
    }

    fn list(&mut self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        self.list_page(filter, page)
    }

    fn find(&mut self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        self.look_up(lookup, limit)
    }

    fn search(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.search_patiently(query, progress)
    }

    fn index_entries(&mut self, progress: &Progress) -> StoreResult<u64> {
        let (connection, index, say) = self.with_index()?;
        catch_up(connection, index, &say, progress)
    }

    fn purge(&mut self, id: SessionId) -> StoreResult<()> {
        self.remove_session(id)
    }

    fn replace(&mut self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        self.replace_session(id, after, entries)
    }

    fn replace_end(
        &mut self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        self.replace_end_of_session(id, (after, keep), entries)
    }
}

impl Upkeep for SqliteEngine {
    fn check(&mut self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        match mode {
            CheckMode::Look => self.look(progress),
            CheckMode::Repair(now) => self.check_and_repair(now, progress),
        }
    }

    fn rebuild(&mut self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.derive_anew(progress)
    }

    fn info(&mut self) -> StoreResult<Info> {
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
            format: pack::format(&self.connection).map_err(say.of("cannot read the format"))?,
            sessions: count("SELECT coalesce(sum(live + trashed), 0) FROM tally")?,
            trashed: count("SELECT coalesce(sum(trashed), 0) FROM tally")?,
            entries: count("SELECT count(*) FROM entry WHERE session > 0")?,
            bytes: match &self.location {
                Location::File(path) => Index::bytes(Some(path)) + self.log_bytes(),
                Location::Memory => 0,
            },
            index_bytes: file_size(self.location.beside("search")),
            server: None,
            latency_ms: None,
        })
    }

    fn sizes(&mut self) -> StoreResult<Vec<LogSize>> {
        self.log_sizes()
    }

    fn compress(&mut self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        self.compress_sessions(ids, progress)
    }
}

/// Opens the database and returns the identity of its file. Repeats if the file was replaced
/// meanwhile: a repair may be in progress.
fn open_identified(location: &Location) -> StoreResult<(Opened, Option<(u64, u64)>)> {
    let mut before = identity_of(location);
    loop {
        let opened = open::open(location)?;
        let after = identity_of(location);
        if before.is_none() || before == after {
            return Ok((opened, after));
        }
        before = after;
    }
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
