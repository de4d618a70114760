//! Metadata changes (rename, tag, trash, restore) and undo. Each is one entry.

use super::{Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Body, Renamed, Tagged, Touched, Undone};
use tertulia_core::id::{EntryId, SessionId};
use tertulia_core::query::{Filter, Order, Page, Row, Trash};
use tertulia_core::session::SessionMeta;

/// Retries of a change when other writers append to the same session.
const TRIES: usize = 20;
/// Page size of the search for the sessions that one operation changed.
const OPERATION_SPAN: usize = 500;

impl Sessions {
    /// Sets a session's title.
    pub async fn rename(
        &self,
        id: SessionId,
        title: &str,
        operation: EntryId,
    ) -> StoreResult<SessionMeta> {
        self.change(id, |_| {
            Some(Body::Renamed(Renamed {
                title: title.to_owned(),
                operation,
            }))
        })
        .await
    }

    /// Adds and removes tags. Writes nothing if the tags stay the same.
    pub async fn tag(
        &self,
        id: SessionId,
        add: &[String],
        remove: &[String],
        operation: EntryId,
    ) -> StoreResult<SessionMeta> {
        self.change(id, |meta| {
            let add: Vec<String> = add
                .iter()
                .filter(|tag| !meta.tags.contains(tag))
                .cloned()
                .collect();
            let remove: Vec<String> = remove
                .iter()
                .filter(|tag| meta.tags.contains(tag))
                .cloned()
                .collect();
            (!add.is_empty() || !remove.is_empty()).then(|| {
                Body::Tagged(Tagged {
                    add,
                    remove,
                    operation,
                })
            })
        })
        .await
    }

    /// Moves a session to the trash.
    pub async fn trash(&self, id: SessionId, operation: EntryId) -> StoreResult<SessionMeta> {
        self.change(id, |meta| {
            meta.trashed_at
                .is_none()
                .then(|| Body::Trashed(Touched { operation }))
        })
        .await
    }

    /// Takes a session out of the trash.
    pub async fn restore(&self, id: SessionId, operation: EntryId) -> StoreResult<SessionMeta> {
        self.change(id, |meta| {
            meta.trashed_at
                .is_some()
                .then(|| Body::Restored(Touched { operation }))
        })
        .await
    }

    /// Undoes the last operation on all sessions that it changed. Returns each session's metadata
    /// before and after the undo; empty if there is nothing to undo.
    pub async fn undo(&self) -> StoreResult<Vec<(SessionMeta, SessionMeta)>> {
        let filter = Filter {
            trash: Trash::With,
            order: Order::Changed,
            ..Filter::default()
        };
        let operation_of = |row: &Row| row.meta.changes.last().map(|change| change.operation);
        let mut page = Page::first(OPERATION_SPAN);
        let mut last = None;
        let mut touched = Vec::new();
        // Sessions changed by one operation are adjacent in this order: a page without any is past
        // them.
        loop {
            let listing = self.store().list(&filter, &page).await?;
            last = last.or_else(|| listing.rows.first().and_then(operation_of));
            let before = touched.len();
            touched.extend(
                listing
                    .rows
                    .into_iter()
                    .filter(|row| last.is_some() && operation_of(row) == last),
            );
            match listing.next {
                Some(next) if touched.len() > before => page.cursor = Some(next),
                _ => break,
            }
        }
        let Some(last) = last else {
            return Ok(Vec::new());
        };
        let operation = self.clock().entry_id();
        let mut undone = Vec::new();
        for row in &touched {
            let now = self
                .change(row.meta.id, |meta| {
                    let change = meta
                        .changes
                        .last()
                        .filter(|change| change.operation == last)?;
                    Some(Body::Undone(Undone {
                        change: change.seq,
                        operation,
                    }))
                })
                .await?;
            undone.push((row.meta.clone(), now));
        }
        Ok(undone)
    }

    /// Appends the entry that `decide` derives from the current metadata; retries on conflict.
    async fn change(
        &self,
        id: SessionId,
        decide: impl Fn(&SessionMeta) -> Option<Body>,
    ) -> StoreResult<SessionMeta> {
        let mut tries = 0;
        loop {
            let mut meta = self.row(id).await?.meta;
            if meta.is_locked() && decide(&meta).is_some_and(|body| !body.is_wordless()) {
                // Tags are added to those that the session has, and these are sealed.
                meta = self.unlocked(meta).await?;
            }
            let Some(body) = decide(&meta) else {
                return Ok(meta);
            };
            match self.append(id, meta.head, vec![body]).await {
                Err(StoreError::Conflict { .. }) if tries < TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(entries) => {
                    entries.iter().for_each(|entry| meta.apply(entry));
                    return Ok(meta);
                }
            }
        }
    }
}
