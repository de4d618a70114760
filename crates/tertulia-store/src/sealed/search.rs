//! Searches sealed sessions in memory: their words are in no index.

use std::collections::HashSet;

use super::{SealedStore, Unlocking, with_hidden_project};
use crate::{Progress, StoreError, StoreResult};
use tertulia_core::entry::{Hash, Head};
use tertulia_core::id::Seq;
use tertulia_core::query::{Filter, Hits, Page, SearchQuery};
use tertulia_core::session::{Log, SessionMeta};

/// Sealed sessions per page of a list.
const PAGE: usize = 200;

impl SealedStore {
    /// Searches the index, and the sealed sessions whose keys are at hand.
    pub(super) async fn search_all(
        &self,
        query: &SearchQuery,
        progress: &Progress,
    ) -> StoreResult<Hits> {
        let mut hits = self.stored.search(query, progress).await?;
        let filter = Filter {
            sealed: true,
            // Teams, tags and folders are words, so they are compared after decrypting.
            team: None,
            tag: None,
            worktree: None,
            ..with_hidden_project(&query.filter)
        };
        let mut seen = HashSet::new();
        let mut page = Page::first(PAGE);
        loop {
            let listing = self.stored.list(&filter, &page).await?;
            for row in listing.rows {
                match self
                    .search_one(&row.meta, query, &mut seen, &mut hits)
                    .await
                {
                    Err(StoreError::Sealed { .. }) => hits.sealed += 1,
                    searched => searched?,
                }
            }
            match listing.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        hits.rank(query.limit);
        Ok(hits)
    }

    async fn search_one(
        &self,
        meta: &SessionMeta,
        query: &SearchQuery,
        seen: &mut HashSet<Hash>,
        hits: &mut Hits,
    ) -> StoreResult<()> {
        if query.said.session.is_some_and(|session| meta.id != session) {
            return Ok(());
        }
        self.keys.note(meta);
        self.key_of(meta.id, Unlocking::Quietly).await?;
        let meta = self.with_words(meta.clone(), Unlocking::Quietly).await?;
        if !query.filter.matches(&meta) {
            return Ok(());
        }
        let lines = self.stored.read(meta.id, Seq::START, usize::MAX).await?;
        let log = Log::read(meta.id, Some(Head::START), Seq::START, &lines);
        let log = self.open_with(meta.id, log, Unlocking::Quietly).await?;
        let mut count = 0;
        for entry in &log.entries {
            let text = entry.body.searchable();
            let matches =
                !text.is_empty() && query.words.matches(&text) && query.said.admits(entry);
            // Forks share entries, which are found once.
            if matches && seen.insert(entry.hash) {
                count += 1;
                hits.add(query, entry, &meta);
            }
        }
        if count > 0 {
            hits.count(meta.id, count);
        }
        Ok(())
    }
}
