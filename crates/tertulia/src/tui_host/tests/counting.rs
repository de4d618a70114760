//! A store that counts what is read from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;
use tertulia_store::{
    CheckMode, Compressed, Draft, Info, LockHolder, Maintenance, NewSession, Patience, Progress,
    Rebuilt, Report, SessionLock, Store, StoreResult, Unsent,
};

/// A store that counts the lines and bytes of logs and the rows it returns.
#[derive(Debug)]
pub struct Counting {
    store: Arc<dyn Store>,
    lines: AtomicUsize,
    bytes: AtomicUsize,
    rows: AtomicUsize,
}

impl Counting {
    pub fn new(store: Arc<dyn Store>) -> Counting {
        Counting {
            store,
            lines: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            rows: AtomicUsize::new(0),
        }
    }

    /// Number of lines read since the last call.
    pub fn lines(&self) -> usize {
        self.lines.swap(0, Ordering::Relaxed)
    }

    /// Number of bytes read since the last call.
    pub fn bytes(&self) -> usize {
        self.bytes.swap(0, Ordering::Relaxed)
    }

    /// Number of rows read since the last call.
    pub fn rows(&self) -> usize {
        self.rows.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Store for Counting {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        self.store.create(new).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.store.append(id, after, entries).await
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        let lines = self.store.read(id, after, limit).await?;
        let bytes = lines.iter().map(|line| line.bytes.len()).sum();
        self.lines.fetch_add(lines.len(), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(lines)
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let listing = self.store.list(filter, page).await?;
        self.rows.fetch_add(listing.rows.len(), Ordering::Relaxed);
        Ok(listing)
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        self.store.find(lookup, limit).await
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.store.search(query, progress).await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        self.store.index(progress).await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        self.store.keep_draft(id, draft).await
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        self.store.draft(id).await
    }

    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        self.store.keep_unsent(id, unsent).await
    }

    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        self.store.unsent(id).await
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        self.store.claim(id).await
    }

    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        self.store.holder(id).await
    }

    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock> {
        self.store.take_over(id).await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        self.store.purge(id).await
    }

    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        self.store.replace_end(id, after, keep, entries).await
    }

    fn patience(&self) -> &Patience {
        self.store.patience()
    }
}

#[async_trait]
impl Maintenance for Counting {
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        self.store.check(mode, progress).await
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.store.rebuild(progress).await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.store.info().await
    }

    async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        self.store.sizes().await
    }

    async fn compress(&self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        self.store.compress(ids, progress).await
    }
}
