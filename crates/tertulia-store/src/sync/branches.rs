//! The branches of a store: its sessions, with the logs of those that keep a diverged branch as they
//! were written first.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::check::{check_more, check_new};
use super::kept::{Kept, Moving, damaged, may_keep};
use super::kept_heads::KeptHeads;
use super::{Branch, BranchPage, BranchSource, MergedEnd, NewBranch, Partner};
use crate::sealed::SealedStore;
use crate::{NewSession, SessionLock, Sessions, Store, StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Forked, Head, Numbering, Origin, Relation, SealState};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Cursor, DamagedSession, Filter, Lookup, Page, Row, Trash};
use tertulia_core::seal::SessionKeys;
use tertulia_core::session::{Line, SessionMeta};

/// The branches of a store.
#[derive(Debug)]
pub struct Branches<'a> {
    pub(super) store: &'a dyn Store,
    /// The same with keys, by which changes of keys are checked.
    keys: Option<&'a SealedStore>,
    /// Forks that keep a branch, as they were when they were read last.
    pub(super) kept: Mutex<HashMap<SessionId, Arc<Kept>>>,
    pub(super) heads: Mutex<KeptHeads>,
    /// Sessions of the pages that were read, from the first one on.
    listed: Mutex<HashSet<SessionId>>,
}

impl<'a> Branches<'a> {
    /// Looks at a store.
    pub fn of(store: &'a dyn Store) -> Branches<'a> {
        Branches {
            store,
            keys: None,
            kept: Mutex::default(),
            heads: Mutex::new(KeptHeads::of(store)),
            listed: Mutex::default(),
        }
    }

    /// Looks at the store of sessions, as it is at rest. What is written to it is checked with the keys that
    /// are at hand.
    pub fn of_sessions(sessions: &'a Sessions) -> Branches<'a> {
        Branches {
            keys: Some(sessions.sealed_store()),
            ..Branches::of(sessions.stored())
        }
    }

    pub(super) async fn check_keys(
        &self,
        id: SessionId,
        base: Option<(SessionId, Seq)>,
        entries: &[Entry],
    ) -> StoreResult<()> {
        let foreign = match self.keys {
            Some(keys) => keys.foreign_keys(id, base, entries).await?,
            None => None,
        };
        match foreign {
            Some((seq, reason)) => Err(damaged(id, seq, &reason)),
            None => Ok(()),
        }
    }

    pub(super) async fn row(&self, id: SessionId) -> StoreResult<Option<SessionMeta>> {
        let mut rows = self.store.find(&Lookup::Id(id), 1).await?;
        Ok(rows.pop().map(|row| row.meta))
    }

    pub(super) async fn entry(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Entry>> {
        if seq == Seq::START {
            return Ok(None);
        }
        let lines = match self.store.read(id, seq.back(1), 1).await {
            Err(StoreError::NotFound(_)) => return Ok(None),
            lines => lines?,
        };
        let line = lines.into_iter().next().filter(|line| line.seq == seq);
        Ok(line.and_then(|line| Entry::decode(&line.bytes).ok()))
    }

    pub(super) async fn branch(&self, meta: &SessionMeta) -> StoreResult<Branch> {
        let kept = self.kept_head(meta).await?;
        let (root, head) = kept.unwrap_or((meta.id, meta.head));
        Ok(Branch {
            base: meta.parent.as_ref().map(|parent| parent.id),
            sealed: Some(meta.seal.is_some()),
            ..Branch::new(meta.id, root, head)
        })
    }

    pub(super) async fn stored_head(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
        Ok(self.entry(id, seq).await?.map(|entry| entry.head()))
    }

    /// Marks a session as open, unless a program has it open.
    pub(super) async fn unopened(&self, id: SessionId) -> StoreResult<SessionLock> {
        let lock = self.store.claim(id).await?;
        lock.ok_or_else(|| StoreError::Locked {
            place: format!("session {id}"),
        })
    }

    async fn append_unopened(
        &self,
        id: SessionId,
        after: Head,
        entries: &[Entry],
    ) -> StoreResult<Head> {
        let _lock = self.unopened(id).await?;
        self.store.append(id, after, entries).await
    }
}

impl Branches<'_> {
    /// Counts a page, and after the last one forgets the forks that are gone.
    fn note_listed(&self, is_first: bool, is_last: bool, rows: &[SessionId]) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if is_first {
            listed.clear();
        }
        listed.extend(rows);
        if is_last {
            self.known_heads().retain(&listed);
        }
    }

    /// Returns the branch with the session's own id, if there is one.
    pub(crate) async fn root(&self, root: SessionId) -> StoreResult<Vec<Branch>> {
        Ok(match self.row(root).await? {
            Some(meta) => vec![self.branch(&meta).await?],
            None => Vec::new(),
        })
    }
}

#[async_trait]
impl BranchSource for Branches<'_> {
    async fn head_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
        match self.kept_by(id).await? {
            Some(kept) if seq > kept.numbering.shared() => Ok(kept.head_at(seq)),
            _ => self.stored_head(id, seq).await,
        }
    }

    async fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        let Some(kept) = self.kept_by(id).await? else {
            return self.store.read(id, after, limit).await;
        };
        let numbering = &kept.numbering;
        if after < numbering.shared() {
            let count = usize::try_from(numbering.shared().0 - after.0).unwrap_or(limit);
            return self.store.read(id, after, limit.min(count)).await;
        }
        let missing = || damaged(id, after, "it is missing");
        let original = self.head_at(id, after).await?.ok_or_else(missing)?;
        let stored = self.stored_head(id, numbering.stored(after)).await?;
        let mut moving = Moving::after(id, numbering, stored.ok_or_else(missing)?, original);
        let mut found = Vec::new();
        while found.is_empty() {
            let lines = self.store.read(id, moving.stored.seq, limit).await?;
            if lines.is_empty() {
                break;
            }
            for line in &lines {
                match moving.next(line) {
                    Ok(entry) => found.extend(entry.as_ref().map(Line::from)),
                    // What stands before damage is readable.
                    Err(_) if !found.is_empty() => return Ok(found),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    async fn origins(&self, id: SessionId) -> StoreResult<Vec<Origin>> {
        let mut found: Vec<Origin> = Vec::new();
        let root = self.kept_by(id).await?.map_or(id, |kept| kept.root);
        let mut at = self.row(root).await?;
        while let Some(meta) = at {
            let end = found.last().map_or(meta.head.seq, |origin| origin.seq);
            let Some(forked) = self.fork_opening(&meta, end).await? else {
                break;
            };
            at = self.row(forked.from.id).await?;
            // Imported data may refer to itself.
            if found.iter().any(|origin| origin.id == forked.from.id) {
                break;
            }
            found.push(forked.from);
        }
        Ok(found)
    }

    async fn fixed(&self, id: SessionId) -> StoreResult<Seq> {
        self.last_referred(id).await
    }

    async fn keys(&self, branch: &Branch) -> StoreResult<Option<Arc<SessionKeys>>> {
        let Some(keys) = self.keys else {
            return Ok(None);
        };
        match keys.keys_of_branch(self, branch).await {
            Err(StoreError::Sealed { .. }) => Ok(None),
            keys => keys,
        }
    }
}

impl Branches<'_> {
    /// Returns the opening of a fork, unless it stands after `end`.
    async fn fork_opening(&self, meta: &SessionMeta, end: Seq) -> StoreResult<Option<Forked>> {
        let opening = match meta.parent.as_ref().map(|parent| parent.relation) {
            None | Some(Relation::Replay | Relation::Subagent) => None,
            // A merge names the ends of both sessions, not where the first one is left.
            Some(Relation::Merge) => {
                let last = self.last_opening(meta.id, meta.head.seq).await?;
                last.map(|(entry, _)| entry)
            }
            Some(Relation::Fork | Relation::Conflict) => {
                let place = meta.parent.as_ref().map(|parent| parent.seq.next());
                self.entry(meta.id, place.unwrap_or_default()).await?
            }
        };
        Ok(match opening.map(|entry| (entry.seq, entry.body)) {
            Some((seq, Body::Forked(forked))) if seq <= end => Some(forked),
            _ => None,
        })
    }
}

#[async_trait]
impl Partner for Branches<'_> {
    async fn page(&self, cursor: Option<Cursor>, limit: usize) -> StoreResult<BranchPage> {
        let filter = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let is_first = cursor.is_none();
        let listing = self.store.list(&filter, &Page { limit, cursor }).await?;
        let mut page = BranchPage {
            next: listing.next,
            ..BranchPage::default()
        };
        let mut rows: Vec<SessionId> = Vec::new();
        for Row { meta, .. } in &listing.rows {
            rows.push(meta.id);
            match self.branch(meta).await {
                Ok(branch) => page.branches.push(branch),
                Err(error) if error.is_damage() => page.damaged.push(DamagedSession {
                    id: Some(meta.id),
                    reason: error.to_string(),
                }),
                Err(error) => return Err(error),
            }
        }
        // The damaged sessions of the whole store are in every listing.
        if is_first {
            for session in listing.damaged {
                let is_listed = match session.id {
                    Some(id) => rows.contains(&id) || self.row(id).await?.is_some(),
                    None => false,
                };
                // Reading will show how much of it can be moved.
                if !is_listed {
                    page.damaged.push(session);
                }
            }
        }
        self.note_listed(is_first, page.next.is_none(), &rows);
        Ok(page)
    }

    async fn family(&self, root: SessionId) -> StoreResult<Vec<Branch>> {
        let mut found = self.root(root).await?;
        let mut waiting: Vec<SessionId> = found.iter().map(|branch| branch.id).collect();
        while let Some(parent) = waiting.pop() {
            let filter = Filter {
                parent: Some(parent),
                trash: Trash::With,
                ..Filter::default()
            };
            let page = Page::first(usize::MAX >> 1);
            for row in self.store.list(&filter, &page).await?.rows {
                let is_new = found.iter().all(|branch| branch.id != row.meta.id);
                if is_new && may_keep(&row.meta) {
                    let branch = self.branch(&row.meta).await?;
                    if branch.root == root {
                        waiting.push(branch.id);
                        found.push(branch);
                    }
                }
            }
        }
        Ok(found)
    }

    async fn has(&self, origin: &Origin) -> StoreResult<bool> {
        let head = self.stored_head(origin.id, origin.seq).await?;
        Ok(head.is_some_and(|head| head.hash == origin.hash))
    }

    async fn create(&self, new: &NewBranch) -> StoreResult<Branch> {
        let Some(first) = new.entries.first() else {
            return Err(StoreError::Refused("a branch begins with an entry".into()));
        };
        check_new(new)?;
        let beside = new.beside.map(|(sibling, _)| sibling);
        let shared = beside.or(new.base.as_ref().map(|base| base.id));
        let shared = match shared {
            Some(id) => self.row(id).await?,
            None => None,
        };
        check_sealed(new.root, shared.as_ref(), &new.entries)?;
        let Some((sibling, common)) = new.beside else {
            let base = new.base.clone();
            let shared = base.as_ref().map(|base| (base.id, base.seq));
            self.check_keys(new.root, shared, &new.entries).await?;
            let session = NewSession {
                id: new.root,
                base: base.clone(),
                entries: new.entries.clone(),
            };
            let head = self.store.create(&session).await?;
            return Ok(Branch {
                base: base.map(|base| base.id),
                ..Branch::new(new.root, new.root, head)
            });
        };
        let kept = self.kept_by(sibling).await?;
        let numbering = kept.map_or(Numbering::default(), |kept| kept.numbering.clone());
        let place = numbering.stored(common.seq);
        let Some(stored) = self.stored_head(sibling, place).await? else {
            return Err(StoreError::NotFound(sibling));
        };
        let shared = Some((sibling, stored.seq));
        self.check_keys(new.root, shared, &new.entries).await?;
        let from = Origin {
            id: sibling,
            seq: stored.seq,
            hash: stored.hash,
        };
        let unwritable = |error| StoreError::failed("cannot write a branch", error);
        let opening = Entry::open_branch(new.root, from.clone(), first).map_err(unwritable)?;
        let id = SessionId::new(opening.id.uuid());
        let numbering = numbering.forked_after(stored.seq);
        let mut end = opening.head();
        let mut entries = vec![opening];
        for entry in &new.entries {
            let entry = numbering.to_stored(entry, &end).map_err(unwritable)?;
            end = entry.head();
            entries.push(entry);
        }
        let session = NewSession {
            id,
            base: Some(from),
            entries,
        };
        self.store.create(&session).await?;
        let meta = self.row(id).await?.ok_or(StoreError::NotFound(id))?;
        self.branch(&meta).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        check_more(id, entries)?;
        let Some(meta) = self.row(id).await? else {
            return Err(StoreError::NotFound(id));
        };
        check_sealed(id, Some(&meta), entries)?;
        self.check_keys(id, Some((id, meta.head.seq)), entries)
            .await?;
        let Some(kept) = self.kept(&meta).await? else {
            return self.append_unopened(id, after, entries).await;
        };
        if kept.head() != Some(after) {
            let head = kept.head().unwrap_or(Head::START);
            return Err(StoreError::Conflict { id, head });
        }
        let (mut end, mut stored) = (kept.end, Vec::new());
        for entry in entries {
            let entry = kept.numbering.to_stored(entry, &end);
            let entry =
                entry.map_err(|error| StoreError::failed("cannot write a branch", error))?;
            end = entry.head();
            stored.push(entry);
        }
        self.append_unopened(id, kept.end, &stored).await?;
        let mut hashes = kept.hashes.clone();
        hashes.extend(entries.iter().map(|entry| entry.hash));
        let grown = Arc::new(Kept {
            root: kept.root,
            end,
            numbering: kept.numbering.clone(),
            hashes,
        });
        self.remember(id, &grown);
        Ok(grown.head().unwrap_or(after))
    }

    async fn merge_end(&self, id: SessionId, end: &MergedEnd) -> StoreResult<Head> {
        self.replace_end(id, end).await
    }
}

/// Refuses entries with words in plain for a sealed session: `after` is the session that they continue.
pub(super) fn check_sealed(
    id: SessionId,
    after: Option<&SessionMeta>,
    entries: &[Entry],
) -> StoreResult<()> {
    let mut state = match after.map(|meta| meta.seal.is_some()) {
        Some(true) => SealState::Sealed,
        Some(false) => SealState::Plain,
        None => SealState::Unknown,
    };
    for entry in entries {
        state = state.after(&entry.body);
        if state.is_foreign(&entry.body) {
            return Err(damaged(
                id,
                entry.seq,
                "it is not sealed, in a session that is",
            ));
        }
    }
    Ok(())
}
