//! A store that could not be opened yet, because the disk is full or its path is not writable.
//! Every write tries to open it again; until that succeeds nothing is acknowledged.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{
    CheckMode, Draft, Info, NewSession, Patience, Progress, Rebuilt, Report, SessionLock, Store,
    StoreError, StoreResult,
};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;

type Open = Box<dyn Fn() -> StoreResult<Arc<dyn Store>> + Send + Sync>;

/// A store that is opened as soon as possible.
pub struct LateStore {
    open: Open,
    opened: Mutex<Option<Arc<dyn Store>>>,
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
            open: Box::new(open),
            opened: Mutex::default(),
            patience: patience.clone(),
        }
    }

    fn known(&self) -> Option<Arc<dyn Store>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.clone()
    }

    /// Returns the store, after trying to open it if necessary.
    fn store(&self) -> StoreResult<Arc<dyn Store>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        match &*opened {
            Some(store) => Ok(store.clone()),
            None => Ok(opened.insert((self.open)()?).clone()),
        }
    }
}

#[async_trait]
impl Store for LateStore {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        self.store()?.create(new).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.store()?.append(id, after, entries).await
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
        self.store()?.search(query, progress).await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        self.store()?.index(progress).await
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

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        self.store()?.claim(id).await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        self.store()?.purge(id).await
    }

    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        self.store()?.check(mode, progress).await
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.store()?.rebuild(progress).await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.store()?.info().await
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }
}
