//! PostgreSQL backend: a database that many machines and people share.
//!
//! ```text
//! tertulia_store      format and id of the store
//! tertulia_session    one row per session, derived from its log, with its unfinished answer
//! tertulia_entry      the log lines; tertulia_part has the rest of very long ones
//! tertulia_snapshot   metadata every so many entries, so that a fork need not fold all
//! tertulia_lease      who has which session open
//! tertulia_damaged    originals of logs that a repair changed
//! ```
//!
//! An append compares and moves the head of its session in one statement (`write`). Nothing
//! depends on the state of a connection, so that a pooler in transaction mode can stand between. The
//! full-text index is a local file that follows the server.

mod address;
mod candidates;
mod check;
mod draft;
mod follow;
mod lease;
mod list;
mod metas;
mod planned;
mod purge;
mod repair;
mod rows;
mod runner;
mod schema;
mod search;
mod server;
mod sizes;
mod tls;
mod unsent;
mod write;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::index::Index;
use super::ledger::{self, Ledger};
use super::salvage::derived_id;
use super::session_lock::SessionLock;
use super::worker::Worker;
use super::{
    CheckMode, Compressed, Draft, Info, LockHolder, Maintenance, NewSession, Patience, Progress,
    Rebuilt, Report, Store, StoreError, StoreResult, Unsent,
};
use runner::Runner;
use search::Searcher;
use server::Server;
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;

pub use address::{PostgresAddress, SslMode};
pub use schema::FORMAT;
pub use server::Limits;

/// Name of the local index file.
const INDEX: &str = "search";

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Where the database is.
    pub address: PostgresAddress,
    /// Time limits.
    pub limits: Limits,
    /// How long operations wait for a server that was reached before, and who holds session locks.
    pub patience: Patience,
    /// Folder for local derived data of all databases; without one it is in memory.
    pub derived: Option<PathBuf>,
    /// A new id: that of this handle, and of a database that has none yet.
    pub new_id: Uuid,
}

/// A store in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    runner: Arc<Runner>,
    patience: Patience,
    /// Folder for local derived data of this database.
    folder: Option<PathBuf>,
    new_id: Uuid,
    locks: AtomicU64,
    searcher: OnceCell<Worker<Searcher>>,
}

impl PostgresStore {
    /// Connects to a database, and creates the tables of a store in an empty one. Blocks.
    pub fn open(options: PostgresOptions) -> StoreResult<PostgresStore> {
        let PostgresOptions {
            address,
            limits,
            patience,
            derived,
            new_id,
        } = options;
        let theirs = patience.clone();
        let runner = Runner::start(move || Server::new(address, limits, theirs))?;
        let id = runner.call_blocking(None, move |server: Rc<Server>| async move {
            server.identify(new_id).await
        })?;
        Ok(PostgresStore {
            runner: Arc::new(runner),
            patience,
            folder: derived.map(|folder| folder.join(format!("postgres-{id}"))),
            new_id,
            locks: AtomicU64::new(0),
            searcher: OnceCell::new(),
        })
    }

    /// Returns what tells a lock that this store takes from all others.
    fn lock_token(&self) -> Uuid {
        let number = self.locks.fetch_add(1, Ordering::Relaxed);
        derived_id(&format!("{} {number}", self.new_id))
    }

    /// Removes what was derived from logs on this machine.
    async fn forget_derived(&self, id: SessionId, logs: Vec<Uuid>) -> StoreResult<()> {
        let ledger = self.derived_file(ledger::NAME);
        let searcher = self.searcher().await?;
        searcher
            .call(move |searcher| {
                if let Some(ledger) = ledger {
                    Ledger::forget(&ledger, id);
                }
                searcher.forget_logs(&logs)
            })
            .await
    }

    async fn searcher(&self) -> StoreResult<&Worker<Searcher>> {
        let make = || async {
            let searcher = Searcher::new(self.runner.clone(), self.derived_file(INDEX));
            Worker::start("tertulia-search", searcher)
        };
        self.searcher.get_or_try_init(make).await
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        let new = new.clone();
        self.runner
            .call(|server| async move { server.create(new).await })
            .await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        let entries = entries.to_vec();
        self.runner
            .call(move |server| async move { server.append(id, after, entries).await })
            .await
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.runner
            .call(move |server| async move { server.read(id, after, limit).await })
            .await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let (filter, page) = (filter.clone(), page.clone());
        self.runner
            .call(|server| async move { server.list(filter, page).await })
            .await
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let lookup = lookup.clone();
        self.runner
            .call(move |server| async move { server.find(lookup, limit).await })
            .await
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        let (query, progress) = (query.clone(), progress.clone());
        let searcher = self.searcher().await?;
        searcher
            .call(move |searcher| searcher.search(&query, &progress))
            .await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        let progress = progress.clone();
        let searcher = self.searcher().await?;
        searcher
            .call(move |searcher| searcher.catch_up(&progress))
            .await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let draft = draft.clone();
        self.runner
            .call(move |server| async move { server.keep_draft(id, draft).await })
            .await
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        self.runner
            .call(move |server| async move { server.draft(id).await })
            .await
    }

    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        let unsent = unsent.clone();
        self.runner
            .call(move |server| async move { server.keep_unsent(id, unsent).await })
            .await
    }

    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        self.runner
            .call(move |server| async move { server.unsent(id).await })
            .await
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        lease::claim(&self.runner, id, self.lock_token(), false).await
    }

    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        self.runner
            .call(move |server| async move { server.lease_holder(id).await })
            .await
    }

    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock> {
        let taken = lease::claim(&self.runner, id, self.lock_token(), true).await?;
        taken.ok_or(StoreError::NotFound(id))
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        let changed = self
            .runner
            .call(move |server| async move { server.purge(id).await })
            .await?;
        self.forget_derived(id, changed).await
    }

    async fn replace(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        let log = self
            .runner
            .call(move |server| async move { server.log_of(id).await })
            .await?;
        // Derived words go first: a kill in between leaves nothing of a log that is replaced.
        self.forget_derived(id, vec![log]).await?;
        let entries = entries.to_vec();
        self.runner
            .call(move |server| async move { server.replace(id, after, entries).await })
            .await?;
        // What was indexed meanwhile.
        self.forget_derived(id, vec![log]).await
    }

    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        let entries = entries.to_vec();
        let replace = move |server: Rc<Server>| async move {
            server.replace_end(id, (after, keep), entries).await
        };
        let log = self.runner.call(replace).await?;
        let searcher = self.searcher().await?;
        searcher
            .call(move |searcher| searcher.forget_logs(&[log]))
            .await
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }

    fn derived_file(&self, name: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(name))
    }
}

#[async_trait]
impl Maintenance for PostgresStore {
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        let ours = progress.clone();
        let mut report = self
            .runner
            .call(move |server| async move {
                match mode {
                    CheckMode::Look => server.look(ours).await,
                    CheckMode::Repair(now) => server.check_and_repair(now, ours).await,
                }
            })
            .await?;
        let searcher = self.searcher().await?;
        let fault = searcher.call(|searcher| Ok(searcher.fault())).await?;
        if let (Some(fault), CheckMode::Repair(_)) = (&fault, mode) {
            let progress = progress.clone();
            searcher
                .call(move |searcher| searcher.rebuild(&progress))
                .await?;
            report.repaired.push("rebuilt the search index".to_owned());
            report.faults.push(fault.clone());
            return Ok(report);
        }
        report.faults.extend(fault);
        Ok(report)
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        let ours = progress.clone();
        let sessions = self
            .runner
            .call(move |server| async move { server.derive_rows(ours).await })
            .await?;
        let theirs = progress.clone();
        let searcher = self.searcher().await?;
        searcher
            .call(move |searcher| searcher.rebuild(&theirs))
            .await?;
        let info = self.info().await?;
        Ok(Rebuilt {
            sessions,
            entries: info.entries,
        })
    }

    async fn info(&self) -> StoreResult<Info> {
        let info = self
            .runner
            .call(|server| async move { server.info().await })
            .await?;
        Ok(Info {
            index_bytes: Index::bytes(self.derived_file(INDEX).as_deref()),
            ..info
        })
    }

    async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        self.runner
            .call(|server| async move { server.sizes().await })
            .await
    }

    async fn compress(&self, ids: &[SessionId], _progress: &Progress) -> StoreResult<Compressed> {
        let reason = "PostgreSQL compresses long lines itself";
        Ok(Compressed {
            skipped: ids.iter().map(|id| (*id, reason.to_owned())).collect(),
            ..Compressed::default()
        })
    }
}
