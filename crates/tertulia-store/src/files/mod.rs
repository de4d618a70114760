//! File backend: one JSONL log per session, for `jq` and `rg`.
//!
//! ```text
//! DIR/tertulia-store.json                  {"format":1,"backend":"files"}
//! DIR/<team or kind>/<created ms>-<id>.jsonl   a session's own entries, one per line
//! DIR/<team or kind>/<created ms>-<id>.shared  shared prefix of a purged session (….2.shared …)
//! DIR/….jsonl.base                         what a fork continues, if its parent is gone
//! DIR/….jsonl.torn-<offset>                bytes of an interrupted append
//! DIR/….jsonl.damaged-<seconds>            a log as it was before a repair
//! DIR/.index/catalogue.db, search.db       derived list rows and full-text index: may be deleted
//! DIR/.open/, DIR/.drafts/<id>.json        session locks and the lock holder; partial answers
//! ```
//!
//! A fork's log begins with its `forked` entry; its shared prefix is read from its base. The parts:
//! `open` (the marker), `names` (file names), `log` (the bytes of one log), `engine` (create, read,
//! drafts), `append`, `base` and `owners` (what forks continue), `catalogue` and `fold` (list
//! rows), `list`, `search`, `purge`, `check`, `repair`.

mod append;
mod base;
mod catalogue;
mod check;
mod engine;
mod file_stamp;
mod fold;
mod list;
mod log;
mod names;
mod open;
mod owners;
mod purge;
mod repair;
mod search;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::queue::{Asked, Patience};
use super::session_lock::{Claims, SessionLock};
use super::worker::Worker;
use super::{CheckMode, Draft, Info, NewSession, Progress, Rebuilt, Report, Store, StoreResult};
use engine::FilesEngine;
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;

pub use open::FORMAT;

/// A store in a folder of logs.
#[derive(Debug)]
pub struct FilesStore {
    dir: PathBuf,
    claims: Claims,
    patience: Patience,
    /// Performs short operations.
    writer: Worker<FilesEngine>,
    /// Performs long operations, so that they delay no append. Started at first use.
    patient: OnceCell<Worker<FilesEngine>>,
}

impl FilesStore {
    /// Opens the store in a folder; creates one if the folder is missing or empty.
    pub fn open(dir: &Path) -> StoreResult<FilesStore> {
        Self::open_with(dir, &Patience::default())
    }

    /// Opens the store with a given [`Patience`] for other processes.
    pub fn open_with(dir: &Path, patience: &Patience) -> StoreResult<FilesStore> {
        open::open(dir)?;
        let claims = Claims::Folder(dir.join(names::OPEN_FOLDER));
        let engine = FilesEngine::new(dir, &claims, patience);
        let writer = Worker::start("tertulia-store", engine)?;
        Ok(FilesStore {
            dir: dir.to_owned(),
            claims,
            patience: patience.clone(),
            writer,
            patient: OnceCell::new(),
        })
    }

    async fn patient(&self) -> StoreResult<&Worker<FilesEngine>> {
        self.patient
            .get_or_try_init(|| async {
                let engine = FilesEngine::new(&self.dir, &self.claims, &self.patience);
                Worker::start("tertulia-search", engine)
            })
            .await
    }

    /// Reads on the writer's engine, or on the second engine while a write waits for another
    /// process.
    async fn reading<R: Send + 'static>(
        &self,
        job: impl Fn(&mut FilesEngine) -> StoreResult<R> + Clone + Send + 'static,
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
impl Store for FilesStore {
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
        let asked = Asked::now(None);
        self.patient()
            .await?
            .call(move |engine| engine.asked(asked).search(&query, &progress))
            .await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        let progress = progress.clone();
        let asked = Asked::now(None);
        self.patient()
            .await?
            .call(move |engine| engine.asked(asked).index_entries(&progress))
            .await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let draft = draft.clone();
        self.writer
            .call(move |engine| engine.keep_draft(id, &draft))
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
        self.patient()
            .await?
            .call(move |engine| match mode {
                CheckMode::Look => engine.check(&progress),
                CheckMode::Repair(now) => engine.asked(asked).check_and_repair(now, &progress),
            })
            .await
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        let (progress, asked) = (progress.clone(), Asked::now(None));
        self.patient()
            .await?
            .call(move |engine| engine.asked(asked).rebuild(&progress))
            .await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.reading(FilesEngine::info).await
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }
}
