//! Synchronous backends, and [`Threaded`], the one adapter that makes a [`Store`] of them.
//!
//! SQLite and files block: a sync takes milliseconds on a busy disk. The adapter owns their threads. One
//! engine writes; a second one, opened at first use, performs long operations, so that they delay no
//! append. A backend that is asynchronous by nature implements [`Store`] itself.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::ledger::{self, Ledger};
use super::queue::{Asked, LockHolder, Patience};
use super::session_lock::{Claims, SessionLock};
use super::worker::Worker;
use super::{
    CheckMode, Compressed, Draft, Info, Maintenance, NewSession, Progress, Rebuilt, Report, Store,
    StoreError, StoreResult, Unsent,
};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;

/// A backend whose operations block. [`Store`] and [`Maintenance`] describe the operations.
pub trait Engine: Upkeep + Debug + Sized + Send + 'static {
    /// What an engine is opened from.
    type Location: Clone + Debug + Send + Sync + 'static;

    /// Opens an engine; all engines of one store share `claims` and `patience`.
    fn open(location: &Self::Location, claims: &Claims, patience: &Patience) -> StoreResult<Self>;

    /// Returns where a derived file of that name belongs. See [`Store::derived_file`].
    fn derived_file(location: &Self::Location, name: &str) -> Option<PathBuf>;

    /// Returns true if a second engine can be open beside this one.
    fn allows_second(&self) -> bool;

    /// Sets the operation that follows, for the queue of writers.
    fn begin(&mut self, asked: Asked);

    /// See [`Store::create`].
    fn create(&mut self, new: &NewSession) -> StoreResult<Head>;

    /// See [`Store::append`].
    fn append(&mut self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head>;

    /// See [`Store::read`].
    fn read(&mut self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>>;

    /// See [`Store::list`].
    fn list(&mut self, filter: &Filter, page: &Page) -> StoreResult<Listing>;

    /// See [`Store::find`].
    fn find(&mut self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>>;

    /// See [`Store::search`].
    fn search(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits>;

    /// See [`Store::index`].
    fn index_entries(&mut self, progress: &Progress) -> StoreResult<u64>;

    /// See [`Store::keep_draft`].
    fn keep_draft(&mut self, id: SessionId, draft: &Draft) -> StoreResult<()>;

    /// See [`Store::draft`].
    fn draft(&mut self, id: SessionId) -> StoreResult<Option<Draft>>;

    /// See [`Store::keep_unsent`].
    fn keep_unsent(&mut self, id: SessionId, unsent: &Unsent) -> StoreResult<()>;

    /// See [`Store::unsent`].
    fn unsent(&mut self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>>;

    /// See [`Store::purge`].
    fn purge(&mut self, id: SessionId) -> StoreResult<()>;

    /// See [`Store::replace`].
    fn replace(&mut self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()>;

    /// See [`Store::replace_end`].
    fn replace_end(
        &mut self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()>;
}

/// Maintenance of a backend whose operations block.
pub trait Upkeep {
    /// See [`Maintenance::check`].
    fn check(&mut self, mode: CheckMode, progress: &Progress) -> StoreResult<Report>;

    /// See [`Maintenance::rebuild`].
    fn rebuild(&mut self, progress: &Progress) -> StoreResult<Rebuilt>;

    /// See [`Maintenance::info`].
    fn info(&mut self) -> StoreResult<Info>;

    /// See [`Maintenance::sizes`].
    fn sizes(&mut self) -> StoreResult<Vec<LogSize>>;

    /// See [`Maintenance::compress`].
    fn compress(&mut self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed>;
}

/// A [`Store`] around a synchronous engine.
#[derive(Debug)]
pub struct Threaded<E: Engine> {
    location: E::Location,
    claims: Claims,
    patience: Patience,
    allows_second: bool,
    /// Owns the engine that writes.
    writer: Arc<Worker<E>>,
    /// Owns the engine for long operations; the writer's if there can be only one.
    second: OnceCell<Arc<Worker<E>>>,
}

impl<E: Engine> Threaded<E> {
    /// Opens an engine and starts its thread.
    pub(super) fn start(
        location: E::Location,
        claims: Claims,
        patience: &Patience,
    ) -> StoreResult<Threaded<E>> {
        let engine = E::open(&location, &claims, patience)?;
        Ok(Threaded {
            location,
            claims,
            patience: patience.clone(),
            allows_second: engine.allows_second(),
            writer: Arc::new(Worker::start("tertulia-store", engine)?),
            second: OnceCell::new(),
        })
    }

    async fn second(&self) -> StoreResult<&Worker<E>> {
        let made = self.second.get_or_try_init(|| async {
            if !self.allows_second {
                return Ok(self.writer.clone());
            }
            let (location, claims) = (self.location.clone(), self.claims.clone());
            let patience = self.patience.clone();
            let open = move || E::open(&location, &claims, &patience);
            Worker::open("tertulia-search", open).await.map(Arc::new)
        });
        made.await.map(Arc::as_ref)
    }

    /// Runs a write of a session, or of the whole store.
    async fn write<R: Send + 'static>(
        &self,
        session: Option<SessionId>,
        job: impl FnOnce(&mut E) -> StoreResult<R> + Send + 'static,
    ) -> StoreResult<R> {
        self.writer.call(asked(session, job)).await
    }

    /// Reads on the writer's engine, or on the second one while a write waits for another process.
    async fn look_up<R: Send + 'static>(
        &self,
        job: impl Fn(&mut E) -> StoreResult<R> + Clone + Send + 'static,
    ) -> StoreResult<R> {
        let mut waits = self.patience.waits();
        tokio::select! {
            biased;
            done = self.writer.call(asked(None, job.clone())) => done,
            _ = waits.next() => self.second().await?.call(asked(None, job)).await,
        }
    }

    /// Runs a long operation, beside the writer if possible.
    async fn work<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut E) -> StoreResult<R> + Send + 'static,
    ) -> StoreResult<R> {
        self.second().await?.call(asked(None, job)).await
    }
}

/// Returns the conflict of a writer whose session another process took over.
fn taken_over<E: Engine>(engine: &mut E, id: SessionId) -> StoreResult<StoreError> {
    let row = engine.find(&Lookup::Id(id), 1)?.pop();
    Ok(match row {
        Some(row) => StoreError::Conflict {
            id,
            head: row.meta.head,
        },
        None => StoreError::NotFound(id),
    })
}

/// Tells the engine, before a job, what the job is for and that it waits from now on.
fn asked<E: Engine, R>(
    session: Option<SessionId>,
    job: impl FnOnce(&mut E) -> StoreResult<R>,
) -> impl FnOnce(&mut E) -> StoreResult<R> {
    let asked = Asked::now(session);
    move |engine| {
        engine.begin(asked);
        job(engine)
    }
}

#[async_trait]
impl<E: Engine> Store for Threaded<E> {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        let new = new.clone();
        self.write(Some(new.id), move |engine| engine.create(&new))
            .await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        let (entries, claims) = (entries.to_vec(), self.claims.clone());
        self.write(Some(id), move |engine| {
            if claims.is_fenced(id) {
                return Err(taken_over(engine, id)?);
            }
            engine.append(id, after, &entries)
        })
        .await
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.look_up(move |engine| engine.read(id, after, limit))
            .await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let (filter, page) = (filter.clone(), page.clone());
        self.look_up(move |engine| engine.list(&filter, &page))
            .await
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let lookup = lookup.clone();
        self.look_up(move |engine| engine.find(&lookup, limit))
            .await
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        let (query, progress) = (query.clone(), progress.clone());
        self.work(move |engine| engine.search(&query, &progress))
            .await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        let progress = progress.clone();
        self.work(move |engine| engine.index_entries(&progress))
            .await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let (draft, claims) = (draft.clone(), self.claims.clone());
        self.write(Some(id), move |engine| {
            if claims.is_fenced(id) {
                return Err(taken_over(engine, id)?);
            }
            engine.keep_draft(id, &draft)
        })
        .await
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        self.look_up(move |engine| engine.draft(id)).await
    }

    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        let (unsent, claims) = (unsent.clone(), self.claims.clone());
        self.write(Some(id), move |engine| {
            if claims.is_fenced(id) {
                return Err(taken_over(engine, id)?);
            }
            engine.keep_unsent(id, &unsent)
        })
        .await
    }

    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        self.look_up(move |engine| engine.unsent(id)).await
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        let (claims, me) = (self.claims.clone(), self.patience.clone());
        self.look_up(move |_| claims.claim(id, &me)).await
    }

    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        let claims = self.claims.clone();
        self.look_up(move |_| Ok(claims.holder(id))).await
    }

    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock> {
        let (claims, me) = (self.claims.clone(), self.patience.clone());
        // Among the writes, so that none of this process is under way meanwhile.
        self.write(Some(id), move |_| claims.take_over(id, &me))
            .await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        let ledger = self.derived_file(ledger::NAME);
        let purge = move |engine: &mut E| {
            let forget = || ledger.iter().for_each(|ledger| Ledger::forget(ledger, id));
            // The ledger goes first: after a kill in between it lacks a session that is there, which it
            // counts again. A session that it alone knows is one that was lost.
            forget();
            engine.purge(id)?;
            // What was counted meanwhile.
            forget();
            Ok(())
        };
        self.write(Some(id), purge).await
    }

    async fn replace(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        let ledger = self.derived_file(ledger::NAME);
        let entries = entries.to_vec();
        let replace = move |engine: &mut E| {
            // Derived words go first: a kill in between leaves nothing of a log that is replaced.
            if let Some(ledger) = &ledger {
                Ledger::forget(ledger, id);
            }
            engine.replace(id, after, &entries)
        };
        self.write(Some(id), replace).await
    }

    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        let entries = entries.to_vec();
        let replace = move |engine: &mut E| engine.replace_end(id, after, keep, &entries);
        self.write(Some(id), replace).await
    }

    fn derived_file(&self, name: &str) -> Option<PathBuf> {
        E::derived_file(&self.location, name)
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }
}

#[async_trait]
impl<E: Engine> Maintenance for Threaded<E> {
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        let progress = progress.clone();
        let check = move |engine: &mut E| engine.check(mode, &progress);
        match mode {
            CheckMode::Look => self.work(check).await,
            // A repair replaces files that the writer has open.
            CheckMode::Repair(_) => self.write(None, check).await,
        }
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        let progress = progress.clone();
        self.work(move |engine| engine.rebuild(&progress)).await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.look_up(E::info).await
    }

    async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        self.work(E::sizes).await
    }

    async fn compress(&self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        let (ids, progress) = (ids.to_vec(), progress.clone());
        self.work(move |engine| engine.compress(&ids, &progress))
            .await
    }
}
