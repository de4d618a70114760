//! Forks that keep a diverged branch: the log of the branch as it was written first, computed from the
//! log of the fork.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::kept_heads::{KeptHead, KeptHeads};
use super::{BranchSource, Branches, CHUNK};
use crate::{StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Hash, Head, Numbering, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Line, SessionMeta};

/// A fork that keeps a branch.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) root: SessionId,
    /// End of the fork.
    pub(super) end: Head,
    pub(super) numbering: Numbering,
    /// Hashes that the branch's entries have in the log where they were written, from the first
    /// entry after [`Numbering::shared`].
    pub(super) hashes: Vec<Hash>,
}

impl Kept {
    pub(super) fn head(&self) -> Option<Head> {
        let seq = Seq(self.numbering.shared().0 + self.hashes.len() as u64);
        let hash = self.hashes.last().copied();
        hash.map(|hash| Head { seq, hash })
    }

    pub(super) fn head_at(&self, seq: Seq) -> Option<Head> {
        let at = seq.0.checked_sub(self.numbering.shared().0 + 1)?;
        let hash = self.hashes.get(usize::try_from(at).ok()?).copied();
        hash.map(|hash| Head { seq, hash })
    }
}

impl Branches<'_> {
    /// Returns the branch that a session keeps; `None` if it is a session of its own.
    pub(super) async fn kept(&self, meta: &SessionMeta) -> StoreResult<Option<Arc<Kept>>> {
        if !may_keep(meta) {
            return Ok(None);
        }
        let known = self.known(meta.id);
        if let Some(kept) = known.filter(|kept| kept.end == meta.head) {
            return Ok(Some(kept));
        }
        let Some((root, openings)) = self.openings(meta).await? else {
            return Ok(None);
        };
        let numbering = Numbering::new(openings);
        let hashes = self.original_hashes(meta, &numbering).await?;
        let kept = Arc::new(Kept {
            root,
            end: meta.head,
            numbering,
            hashes,
        });
        self.remember(meta.id, &kept);
        Ok(Some(kept))
    }

    /// Returns the session that a fork's branch continues, and the branch's last entry; `None` if the
    /// session keeps no branch.
    pub(super) async fn kept_head(
        &self,
        meta: &SessionMeta,
    ) -> StoreResult<Option<(SessionId, Head)>> {
        if !may_keep(meta) {
            return Ok(None);
        }
        let known = self.known_heads().get(meta.id, meta.head);
        if let Some(KeptHead { root, head, .. }) = known {
            return Ok(Some((root, head)));
        }
        let kept = self.kept(meta).await?;
        Ok(kept.and_then(|kept| Some((kept.root, kept.head()?))))
    }

    pub(super) fn known_heads(&self) -> MutexGuard<'_, KeptHeads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn kept_by(&self, id: SessionId) -> StoreResult<Option<Arc<Kept>>> {
        match self.known(id) {
            Some(kept) => Ok(Some(kept)),
            None if !is_derived(id) => Ok(None),
            None => match self.row(id).await? {
                Some(meta) => self.kept(&meta).await,
                None => Ok(None),
            },
        }
    }

    fn known(&self, id: SessionId) -> Option<Arc<Kept>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&id).cloned()
    }

    pub(super) fn forget(&self, id: SessionId) {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&id);
    }

    pub(super) fn remember(&self, id: SessionId, kept: &Arc<Kept>) {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(id, kept.clone());
        if let Some(head) = kept.head() {
            let (end, root) = (kept.end, kept.root);
            self.known_heads().insert(id, KeptHead { end, root, head });
        }
    }

    /// Returns the session that a fork's branch continues and the places of the openings in the
    /// fork's log; `None` if the fork keeps no branch.
    async fn openings(&self, meta: &SessionMeta) -> StoreResult<Option<(SessionId, Vec<Seq>)>> {
        let mut found = Vec::new();
        let mut root = meta.id;
        let mut above = meta.parent.clone();
        let mut end = meta.head.seq;
        while let Some(parent) = above {
            let place = parent.seq.next();
            // A fork that leaves another one before its opening does not have that opening.
            if place <= end {
                let opening = self.entry(meta.id, place).await?;
                let Some(from) = opening.as_ref().and_then(Entry::opened_branch) else {
                    break;
                };
                found.push(place);
                root = from.from.id;
                end = parent.seq;
            } else {
                root = parent.id;
            }
            above = match self.row(parent.id).await? {
                Some(row) if may_keep(&row) => row.parent,
                Some(_) => None,
                // Purged: what it shared with the fork tells the same.
                None => return self.scan(meta, found, root, end).await,
            };
        }
        Ok((!found.is_empty()).then_some((root, found)))
    }

    /// Finds the openings up to `end` by reading the log backwards.
    async fn scan(
        &self,
        meta: &SessionMeta,
        mut found: Vec<Seq>,
        mut root: SessionId,
        mut end: Seq,
    ) -> StoreResult<Option<(SessionId, Vec<Seq>)>> {
        while let Some((opening, seq)) = self.last_opening(meta.id, end).await? {
            let Some(forked) = opening.opened_branch() else {
                break;
            };
            found.push(seq);
            root = forked.from.id;
            end = seq.back(1);
        }
        Ok((!found.is_empty()).then_some((root, found)))
    }

    /// Returns the last entry up to `end` that opens a session.
    pub(super) async fn last_opening(
        &self,
        id: SessionId,
        end: Seq,
    ) -> StoreResult<Option<(Entry, Seq)>> {
        let mut end = end;
        while end > Seq::START {
            let after = end.back(CHUNK as u64);
            let count = usize::try_from(end.0 - after.0).unwrap_or(CHUNK);
            let lines = self.store.read(id, after, count).await?;
            let entries = lines
                .iter()
                .rev()
                .filter_map(|line| Some((Entry::decode(&line.bytes).ok()?, line.seq)));
            let mut openings = entries
                .filter(|(entry, _)| matches!(entry.body, Body::Forked(_) | Body::Created(_)));
            if let Some(found) = openings.next() {
                return Ok(Some(found));
            }
            end = after;
        }
        Ok(None)
    }

    /// Reads the entries after the first opening and computes the hashes that they had first.
    async fn original_hashes(
        &self,
        meta: &SessionMeta,
        numbering: &Numbering,
    ) -> StoreResult<Vec<Hash>> {
        let shared = self.entry(meta.id, numbering.shared()).await?;
        let shared = shared.ok_or_else(|| damaged(meta.id, numbering.shared(), "it is missing"))?;
        let mut moving = Moving::after(meta.id, numbering, shared.head(), shared.head());
        let mut hashes = Vec::new();
        while moving.stored.seq < meta.head.seq {
            let lines = self.store.read(meta.id, moving.stored.seq, CHUNK).await?;
            if lines.is_empty() {
                return Err(damaged(meta.id, moving.stored.seq.next(), "it is missing"));
            }
            for line in &lines {
                hashes.extend(moving.next(line)?.map(|entry| entry.hash));
            }
        }
        Ok(hashes)
    }

    /// Returns the entry `seq` of a stored session, if it is there.
    pub(crate) async fn beginning(
        &self,
        id: SessionId,
        seq: Seq,
    ) -> StoreResult<Option<Beginning>> {
        let Some(stored) = self.stored_head(id, seq).await? else {
            return Ok(None);
        };
        let Some(kept) = self.kept_by(id).await? else {
            return Ok(Some(Beginning {
                stored,
                original: stored,
                root: id,
                numbering: Numbering::default(),
            }));
        };
        let original = self.head_at(id, kept.numbering.original(seq)).await?;
        Ok(original.map(|original| Beginning {
            stored,
            original,
            root: kept.root,
            numbering: kept.numbering.clone(),
        }))
    }
}

/// The entry after which a part of a log continues a stored session.
pub(crate) struct Beginning {
    /// The entry as the session has it.
    pub(crate) stored: Head,
    /// The entry as the branch has it.
    pub(crate) original: Head,
    /// Session that the branch continues.
    pub(crate) root: SessionId,
    /// Numbering of the session up to there.
    pub(crate) numbering: Numbering,
}

/// Turns the lines of a fork into entries of the branch that it keeps.
pub(super) struct Moving<'a> {
    id: SessionId,
    numbering: &'a Numbering,
    /// Last entry as the fork has it.
    pub(super) stored: Head,
    /// Last entry as the branch has it.
    original: Head,
}

impl<'a> Moving<'a> {
    pub(super) fn after(
        id: SessionId,
        numbering: &'a Numbering,
        stored: Head,
        original: Head,
    ) -> Moving<'a> {
        Moving {
            id,
            numbering,
            stored,
            original,
        }
    }

    /// Returns the entry of a line; `None` for an opening. An altered line is an error: its new hash
    /// would hide that.
    pub(super) fn next(&mut self, line: &Line) -> StoreResult<Option<Entry>> {
        let wrong = |reason: &str| damaged(self.id, line.seq, reason);
        let entry = Entry::decode(&line.bytes).map_err(|error| wrong(&error.to_string()))?;
        if !entry.follows(&self.stored) {
            return Err(wrong("it does not match its hash"));
        }
        self.stored = entry.head();
        if self.numbering.has(entry.seq) {
            return Ok(None);
        }
        let moved = self.numbering.to_original(&entry, &self.original);
        let moved = moved.map_err(|error| wrong(&error.to_string()))?;
        self.original = moved.head();
        Ok(Some(moved))
    }
}

/// Returns true if the row of a session is that of a fork that may keep a branch.
pub(super) fn may_keep(meta: &SessionMeta) -> bool {
    let parent = meta.parent.as_ref();
    is_derived(meta.id) && parent.is_some_and(|parent| parent.relation == Relation::Conflict)
}

pub(super) fn is_derived(id: SessionId) -> bool {
    id.uuid().get_version_num() == 8
}

pub(super) fn damaged(id: SessionId, seq: Seq, reason: &str) -> StoreError {
    StoreError::damaged(format!("session {id}"), format!("entry {seq}: {reason}"))
}
