//! SQLite backend, the default: one database.
//!
//! ```text
//! tertulia.db          session (one row each, derived), entry (the log lines), draft, snapshot, tally
//! tertulia.db-search   the full-text index, derived: may be deleted
//! tertulia.db-lock     the queue of writers
//! tertulia.db-open/    a lock file per open session
//! ```
//!
//! Writers queue on an operating-system lock before `BEGIN IMMEDIATE`: SQLite's own busy handler
//! polls, and with eight writers it starves some of them. Pages are small (see `open::PAGE_SIZE`),
//! because an append writes whole pages. The search index is a separate file, so that an append
//! neither waits for it nor pays for it.

mod check;
mod engine;
mod list;
mod open;
mod pages;
mod purge;
mod remains;
mod repair;
mod rescue;
mod rows;
mod search;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::queue::{Asked, Patience};
use super::session_lock::{Claims, SessionLock};
use super::worker::Worker;
use super::{
    CheckMode, Draft, Info, NewSession, Progress, Rebuilt, Report, Store, StoreError, StoreResult,
};
use engine::Engine;
use open::Company;
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;

pub use open::FORMAT;

/// Location of a database.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// In this file.
    File(PathBuf),
    /// In the memory of this process.
    Memory,
}

impl Location {
    fn path(&self) -> &Path {
        match self {
            Location::File(path) => path,
            Location::Memory => Path::new(":memory:"),
        }
    }

    /// Returns the path beside the database whose name ends in `-suffix`.
    fn beside(&self, suffix: &str) -> Option<PathBuf> {
        match self {
            Location::Memory => None,
            Location::File(path) => {
                let mut name = path.as_os_str().to_owned();
                name.push("-");
                name.push(suffix);
                Some(PathBuf::from(name))
            }
        }
    }
}

/// A store in an SQLite database.
#[derive(Debug)]
pub struct SqliteStore {
    location: Location,
    claims: Claims,
    company: Company,
    patience: Patience,
    /// Owns the connection that writes.
    writer: Arc<Worker<Engine>>,
    /// Owns the connection for long operations, so that they delay no append. Started at first use;
    /// a database that allows only one connection uses the writer's.
    patient: OnceCell<Arc<Worker<Engine>>>,
}

impl SqliteStore {
    /// Opens the database in a file; creates it if there is none.
    pub fn open(path: &Path) -> StoreResult<SqliteStore> {
        Self::open_with(path, &Patience::default())
    }

    /// Opens the database with a given [`Patience`] for other processes.
    pub fn open_with(path: &Path, patience: &Patience) -> StoreResult<SqliteStore> {
        Self::start(Location::File(path.to_owned()), patience)
    }

    /// Creates a store that ends with the process.
    pub fn in_memory() -> StoreResult<SqliteStore> {
        Self::start(Location::Memory, &Patience::default())
    }

    fn start(location: Location, patience: &Patience) -> StoreResult<SqliteStore> {
        let claims = match location.beside("open") {
            Some(folder) => Claims::Folder(folder),
            None => Claims::memory(),
        };
        let engine = Engine::open(&location, &claims)?.waiting_with(patience);
        let company = engine.company;
        let writer = Arc::new(Worker::start("tertulia-store", engine)?);
        Ok(SqliteStore {
            location,
            claims,
            company,
            patience: patience.clone(),
            writer,
            patient: OnceCell::new(),
        })
    }

    async fn patient(&self) -> StoreResult<&Worker<Engine>> {
        let made = self
            .patient
            .get_or_try_init(|| async {
                if self.company == Company::Alone {
                    return Ok(self.writer.clone());
                }
                let engine = Engine::open(&self.location, &self.claims)?;
                let engine = engine.waiting_with(&self.patience);
                Worker::start("tertulia-search", engine).map(Arc::new)
            })
            .await?;
        Ok(made)
    }

    /// Reads on the writer's connection, or on the second one while a write waits for another
    /// process.
    async fn reading<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Engine) -> StoreResult<R> + Clone + Send + 'static,
    ) -> StoreResult<R> {
        let mut waits = self.patience.waits();
        tokio::select! {
            biased;
            done = self.writer.call(job.clone()) => done,
            _ = waits.next() => self.patient().await?.call(job).await,
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        let (new, asked) = (new.clone(), Asked::now(Some(new.id)));
        self.writer
            .call(move |engine| engine.asked(asked).create(&new))
            .await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        let (entries, asked) = (entries.to_vec(), Asked::now(Some(id)));
        self.writer
            .call(move |engine| engine.asked(asked).append(id, after, &entries))
            .await
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.reading(move |engine| engine.read(id, after, limit))
            .await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let (filter, page) = (filter.clone(), page.clone());
        self.reading(move |engine| engine.list(&filter, &page))
            .await
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let lookup = lookup.clone();
        self.reading(move |engine| engine.find(&lookup, limit))
            .await
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        let (query, progress) = (query.clone(), progress.clone());
        self.patient()
            .await?
            .call(move |engine| engine.search(&query, &progress))
            .await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        let progress = progress.clone();
        self.patient()
            .await?
            .call(move |engine| engine.index_entries(&progress))
            .await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let (draft, asked) = (draft.clone(), Asked::now(Some(id)));
        self.writer
            .call(move |engine| engine.asked(asked).keep_draft(id, &draft))
            .await
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        self.reading(move |engine| engine.draft(id)).await
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        let claims = self.claims.clone();
        self.reading(move |_| claims.claim(id)).await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        let asked = Asked::now(Some(id));
        self.writer
            .call(move |engine| engine.asked(asked).purge(id))
            .await
    }

    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        let (progress, asked) = (progress.clone(), Asked::now(None));
        match mode {
            CheckMode::Look => {
                self.patient()
                    .await?
                    .call(move |engine| engine.check(&progress))
                    .await
            }
            CheckMode::Repair(now) => {
                // On the writer's connection, because the repaired file replaces the old one.
                self.writer
                    .call(move |engine| engine.asked(asked).check_and_repair(now, &progress))
                    .await
            }
        }
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        let (progress, asked) = (progress.clone(), Asked::now(None));
        self.patient()
            .await?
            .call(move |engine| engine.asked(asked).rebuild(&progress))
            .await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.reading(|engine| engine.info()).await
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }
}

/// Maps an SQLite error to the `StoreError` variant that callers handle.
pub(super) fn trouble(path: &Path, what: &str, error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    let place = path.to_owned();
    let code = error.sqlite_error_code();
    let io_failed = matches!(
        code,
        Some(Code::SystemIoFailure | Code::CannotOpen | Code::FileLockingProtocolFailed)
    );
    if code == Some(Code::CannotOpen) && super::place::is_out_of_files() {
        return StoreError::failed(
            format!("{what} in {}", place.display()),
            "too many files are open; `ulimit -n 1024` allows more",
        );
    }
    match code {
        Some(Code::DiskFull) => StoreError::Full { place },
        // SQLite reports a disk that fills up during its housekeeping as a failed write.
        _ if io_failed && open::no_space_left(path) => StoreError::Full { place },
        Some(Code::ReadOnly | Code::PermissionDenied | Code::CannotOpen) => StoreError::ReadOnly {
            place,
            reason: error.to_string(),
        },
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreError::Locked { place },
        Some(Code::DatabaseCorrupt) => {
            StoreError::damaged(place.display().to_string(), error.to_string())
        }
        Some(Code::NotADatabase) => StoreError::NotAStore {
            place,
            reason: "it is not an SQLite database, or its first page is damaged".into(),
        },
        // This program never writes a value of another type.
        _ if is_wrong_value(&error) => {
            StoreError::damaged(place.display().to_string(), error.to_string())
        }
        _ => StoreError::failed(format!("{what} in {}", place.display()), error),
    }
}

fn is_wrong_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as Wrong;
    matches!(
        error,
        Wrong::InvalidColumnType(..)
            | Wrong::FromSqlConversionFailure(..)
            | Wrong::IntegralValueOutOfRange(..)
            | Wrong::Utf8Error(..)
    )
}
