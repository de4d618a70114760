//! A store that could not be opened yet, because the disk is full or its path is not writable.
//! Every write tries to open it again; until that succeeds nothing is acknowledged.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::worker::on_thread;
use super::{
    CheckMode, Compressed, Draft, Info, LockHolder, Maintenance, NewSession, Patience, Progress,
    Rebuilt, Report, SessionLock, Store, StoreError, StoreResult, Unsent,
};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;

type Open = Arc<dyn Fn() -> StoreResult<Arc<dyn Store>> + Send + Sync>;

/// A store that is opened as soon as possible.
pub struct LateStore {
    open: Open,
    opened: OnceCell<Arc<dyn Store>>,
    patience: Patience,
}

impl std::fmt::Debug for LateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LateStore")
    }
}

impl LateStore {
    /// Creates a store for an `open` that just failed; `patience` is that of the stores it opens.
    pub fn new(
        open: impl Fn() -> StoreResult<Arc<dyn Store>> + Send + Sync + 'static,
        patience: &Patience,
    ) -> LateStore {
        // The store may just have been found locked: later waits are short.
        patience.tire();
        LateStore {
            open: Arc::new(open),
            opened: OnceCell::new(),
            patience: patience.clone(),
        }
    }

    fn known(&self) -> Option<&Arc<dyn Store>> {
        self.opened.get()
    }

    /// Returns the store, after trying to open it if necessary: on a thread of its own, because
    /// opening blocks, possibly for seconds.
    async fn store(&self) -> StoreResult<&Arc<dyn Store>> {
        let open = || {
            let open = self.open.clone();
            on_thread("tertulia-open", move || open())
        };
        self.opened.get_or_try_init(open).await
    }
}

#[async_trait]
impl Store for LateStore {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        self.store().await?.create(new).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.store().await?.append(id, after, entries).await
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        match self.known() {
            Some(store) => store.read(id, after, limit).await,
            None => Err(StoreError::NotFound(id)),
        }
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        match self.known() {
            Some(store) => store.list(filter, page).await,
            None => Ok(Listing::default()),
        }
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        match self.known() {
            Some(store) => store.find(lookup, limit).await,
            None => Ok(Vec::new()),
        }
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.store().await?.search(query, progress).await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        self.store().await?.index(progress).await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        match self.known() {
            Some(store) => store.keep_draft(id, draft).await,
            None => Err(StoreError::NotFound(id)),
        }
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        match self.known() {
            Some(store) => store.draft(id).await,
            None => Ok(None),
        }
    }

    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        self.store().await?.keep_unsent(id, unsent).await
    }

    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        match self.known() {
            Some(store) => store.unsent(id).await,
            None => Ok(Vec::new()),
        }
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        self.store().await?.claim(id).await
    }

    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        self.store().await?.holder(id).await
    }

    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock> {
        self.store().await?.take_over(id).await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        self.store().await?.purge(id).await
    }

    async fn replace(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        self.store().await?.replace(id, after, entries).await
    }

    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        let store = self.store().await?;
        store.replace_end(id, after, keep, entries).await
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }

    fn derived_file(&self, name: &str) -> Option<PathBuf> {
        self.known().and_then(|store| store.derived_file(name))
    }
}

#[async_trait]
impl Maintenance for LateStore {
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        self.store().await?.check(mode, progress).await
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.store().await?.rebuild(progress).await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.store().await?.info().await
    }

    async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        self.store().await?.sizes().await
    }

    async fn compress(&self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        self.store().await?.compress(ids, progress).await
    }
}

#[cfg(test)]
mod tests {
    use tertulia_testkit::waiting::DEADLINE;

    use super::*;
    use crate::sqlite::SqliteStore;

    #[tokio::test]
    async fn opening_does_not_block_other_tasks() {
        let (done, other_ran) = std::sync::mpsc::channel();
        let other_ran = std::sync::Mutex::new(other_ran);
        let open = move || {
            let other_ran = other_ran.lock().unwrap();
            other_ran.recv_timeout(DEADLINE).unwrap();
            Ok(Arc::new(SqliteStore::in_memory()?) as Arc<dyn Store>)
        };
        let store = LateStore::new(open, &Patience::default());
        let other = async { done.send(()).unwrap() };
        let (info, ()) = tokio::join!(store.info(), other);
        assert_eq!(info.unwrap().sessions, 0);
    }
}
