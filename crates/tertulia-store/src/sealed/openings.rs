//! Numbers under which entries are sealed. A store that keeps a diverged branch in a fork has openings
//! of its own among the entries; sealed words belong to the number without these, which is the same
//! in every store.

use std::sync::{Arc, PoisonError};

use super::SealedStore;
use crate::StoreResult;
use tertulia_core::entry::{Body, Entry, Head, Numbering};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Lookup;
use tertulia_core::session::Log;

/// Entries of a log that open a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Openings {
    /// Ascending, each with whether it was made for a diverged branch.
    found: Vec<(Seq, bool)>,
}

impl Openings {
    pub(super) fn of(entries: &[Entry]) -> Openings {
        let mut openings = Openings::default();
        entries.iter().for_each(|entry| openings.add(entry));
        openings
    }

    /// Notes the next entry of the log.
    pub(super) fn add(&mut self, entry: &Entry) {
        if matches!(entry.body, Body::Created(_) | Body::Forked(_)) {
            let is_branch = entry.opened_branch().is_some();
            self.found.push((entry.seq, is_branch));
        }
    }

    /// Returns the numbering of the branch to which an entry belongs. A session that is opened by its
    /// user counts what it shares as its own.
    pub(super) fn numbering_at(&self, seq: Seq) -> Numbering {
        let before = self.found.iter().rev().filter(|(at, _)| *at <= seq);
        let branches = before.take_while(|(_, is_branch)| *is_branch);
        Numbering::new(branches.map(|(at, _)| *at).collect())
    }
}

impl SealedStore {
    /// Returns the openings in the log of a session.
    pub(super) async fn openings_of(&self, id: SessionId) -> StoreResult<Arc<Openings>> {
        if let Some(known) = self.known_openings(id) {
            return Ok(known);
        }
        let row = self.stored.find(&Lookup::Id(id), 1).await?.pop();
        let openings = match row.is_some_and(|row| row.meta.parent.is_some()) {
            true => {
                let lines = self.stored.read(id, Seq::START, usize::MAX).await?;
                let log = Log::read(id, Some(Head::START), Seq::START, &lines);
                Openings::of(&log.entries)
            }
            false => Openings::default(),
        };
        let openings = Arc::new(openings);
        let mut known = self.openings.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(id, openings.clone());
        Ok(openings)
    }

    fn known_openings(&self, id: SessionId) -> Option<Arc<Openings>> {
        let known = self.openings.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).cloned()
    }

    /// Returns the numbering for entries that are appended to a session after `head`.
    pub(crate) async fn numbering_after(
        &self,
        id: SessionId,
        head: &Head,
    ) -> StoreResult<Numbering> {
        Ok(self.openings_of(id).await?.numbering_at(head.seq.next()))
    }
}
