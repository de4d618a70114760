//! Seals a plain session, or unseals a sealed one, each with its forks: their logs are replaced as a
//! whole, under the same ids.

use std::sync::Arc;

use super::{KeyEntries, Openings, Unlocking};
use crate::{Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Page, Trash};
use tertulia_core::seal::{SealError, SessionKeys};
use tertulia_core::session::{SESSION_LIMIT, SessionMeta};

impl Sessions {
    /// Returns the sessions that were forked from one, and from its forks, in the order in which they
    /// can be replaced: no session before its forks, whose beginnings it holds. Tasks that an agent of it
    /// delegated hold words of the same conversation, so they are among them.
    pub async fn forks_of(&self, id: SessionId) -> StoreResult<Vec<SessionMeta>> {
        let root = self.row(id).await?.meta;
        let sealed = match root.seal {
            Some(_) => self.sealed_rows().await?,
            None => Vec::new(),
        };
        let mut found: Vec<SessionMeta> = Vec::new();
        let mut waiting = vec![id];
        while let Some(parent) = waiting.pop() {
            let filter = Filter {
                parent: Some(parent),
                trash: Trash::With,
                ..Filter::default()
            };
            let page = Page::first(usize::MAX >> 1);
            let rows = self.stored().list(&filter, &page).await?.rows;
            let children = rows.into_iter().map(|row| row.meta);
            let tasks = sealed.iter().filter(|one| is_task(one, &root, parent));
            for meta in children.chain(tasks.cloned()) {
                let relation = meta.parent.as_ref().map(|parent| parent.relation);
                let is_known = meta.id == id || found.iter().any(|it| it.id == meta.id);
                // A replay copies nothing but what a person said.
                if !is_known && relation != Some(Relation::Replay) {
                    waiting.push(meta.id);
                    found.push(meta);
                }
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Returns the sealed sessions, with their words where the key is at hand.
    async fn sealed_rows(&self) -> StoreResult<Vec<SessionMeta>> {
        let filter = Filter {
            sealed: true,
            trash: Trash::With,
            ..Filter::default()
        };
        let page = Page::first(usize::MAX >> 1);
        let rows = self.store().list(&filter, &page).await?.rows;
        Ok(rows.into_iter().map(|row| row.meta).collect())
    }

    /// Returns the sessions that are sealed and unsealed together with one: its forks, and those of the
    /// session that it continues if it is a branch that sync kept.
    pub async fn sealed_together(&self, id: SessionId) -> StoreResult<Vec<SessionMeta>> {
        let mut family = self.seal_family(id).await?.1;
        family.retain(|one| one.id != id);
        Ok(family)
    }

    /// Returns the session that a branch continues, which other machines may know by that id, or the
    /// session itself; and what is sealed with it, in the order in which it can be replaced: the session
    /// comes last.
    async fn seal_family(&self, id: SessionId) -> StoreResult<(SessionId, Vec<SessionMeta>)> {
        let mut first = self.row(id).await?.meta;
        let mut seen = vec![id];
        while let Some(parent) = &first.parent {
            let is_branch = parent.relation == Relation::Conflict && !seen.contains(&parent.id);
            let above = match is_branch {
                true => self.row(parent.id).await,
                false => break,
            };
            match above {
                Ok(row) => first = row.meta,
                Err(StoreError::NotFound(_)) => break,
                Err(error) => return Err(error),
            }
            seen.push(first.id);
        }
        let mut family = self.forks_of(first.id).await?;
        let root = first.id;
        family.push(first);
        Ok((root, family))
    }

    /// Encrypts a session that is stored in plain, with its forks. Nothing of their words is left in
    /// the store. They share a key, as they share entries.
    pub async fn seal(&self, id: SessionId) -> StoreResult<SessionMeta> {
        if self.row(id).await?.meta.seal.is_some() {
            return Err(refused(id, "is sealed already"));
        }
        let (root, mut family) = self.seal_family(id).await?;
        loop {
            match self.seal_with(root, &family).await {
                // A fork that was made meanwhile shares entries, too. What is sealed by now stays so.
                Err(StoreError::Refused(reason)) => {
                    let before = std::mem::replace(&mut family, self.seal_family(id).await?.1);
                    if family.len() <= before.len() {
                        return Err(StoreError::Refused(reason));
                    }
                }
                done => break done?,
            }
        }
        Ok(self.row(id).await?.meta)
    }

    async fn seal_with(&self, root: SessionId, family: &[SessionMeta]) -> StoreResult<()> {
        let plain: Vec<SessionId> = family
            .iter()
            .filter(|one| one.seal.is_none())
            .map(|one| one.id)
            .collect();
        let _locks = self.claimed_all(&plain).await?;
        let keys = self.sealed_store().keys();
        // An earlier attempt may have been cut off between two of them.
        let mut cut_off = family.iter();
        let shared = match cut_off.find(|one| is_sealed_by(one, root)) {
            Some(one) => self.sealed_store().key_of(one.id, Unlocking::Ask).await?,
            None => None,
        };
        let shared = match shared {
            Some(key) => key,
            None => keys.make(root).await?,
        };
        for one in plain {
            let (meta, log) = self.whole_log(one).await?;
            let entry_root = entry_root(family, root, one).unwrap_or(root);
            let key = match shared.for_session(entry_root) {
                Some(key) => Arc::new(key),
                None => keys.make(entry_root).await?,
            };
            let replaced = match sealed_log(one, &key, &log) {
                Ok(sealed) => self.replace(&meta, &sealed).await,
                Err(error) => Err(error),
            };
            if let Err(error) = replaced {
                keys.note_at(root, Head::START, None);
                return Err(error);
            }
            keys.note_keys(one, Head::START, &key);
            self.keep_unsent_again(one, None).await?;
        }
        Ok(())
    }

    /// Encrypts a session, with its forks, with the keys of its sealed copy in another store, of which
    /// these are the first entry and the key entries that the two have in common. It is stored in plain,
    /// or sealed with another key. Tasks that were delegated have copies of their own there.
    pub(super) async fn seal_like(&self, id: SessionId, copy: KeyEntries) -> StoreResult<()> {
        let other = || refused(id, "is another one than its sealed copy");
        let hash = copy.opening.hash;
        let sealing = copy.sealing().ok_or_else(other)?;
        let store = self.sealed_store();
        let keys = store.keys();
        let entries = Some(copy).filter(|copy| !copy.keyed.is_empty());
        let key = keys.unlock(id, &sealing, entries, Unlocking::Unattended);
        let key = key.await?;
        let own = self.row(id).await?.meta.seal;
        // A fork that was sealed for itself shares no entries with it any more.
        let is_like_it = |fork: &SessionMeta| match (&fork.seal, &own) {
            (Some(fork), Some(own)) => (fork.origin, &fork.key) == (own.origin, &own.key),
            (fork, own) => fork.is_none() && own.is_none(),
        };
        let forks = self.forks_of(id).await?;
        let alike: Vec<SessionId> = forks
            .iter()
            .filter(|fork| is_like_it(fork) && entry_root(&forks, id, fork.id).is_none())
            .map(|fork| fork.id)
            .chain([id])
            .collect();
        // All keys before the first session is changed.
        let mut before = Vec::new();
        for one in &alike {
            before.push(store.key_of(*one, Unlocking::Unattended).await?);
        }
        let _locks = self.claimed_all(&alike).await?;
        for (one, before) in alike.into_iter().zip(before) {
            let upto = shared_upto(&forks, one);
            let (meta, log) = self.whole_log(one).await?;
            let plain = match &before {
                Some(before) => unsealed_log(before, &log)?,
                None => log,
            };
            let sealed = sealed_log(one, &key.until(upto), &plain)?;
            if sealed.first().map(|entry| entry.hash) != Some(hash) {
                return Err(other());
            }
            self.replace(&meta, &sealed).await?;
            keys.note_at(one, Head::START, Some(sealing.clone().until(upto)));
            self.keep_unsent_again(one, before.as_ref()).await?;
        }
        Ok(())
    }

    /// Stores a sealed session in plain, with its forks.
    pub async fn unseal(&self, id: SessionId) -> StoreResult<SessionMeta> {
        let store = self.sealed_store();
        if self.row(id).await?.meta.seal.is_none() {
            return Err(refused(id, "is not sealed"));
        }
        let (_, family) = self.seal_family(id).await?;
        let sealed: Vec<SessionId> = family
            .iter()
            .filter(|one| one.seal.is_some())
            .map(|one| one.id)
            .collect();
        // All keys before the first session is changed.
        let mut keys = Vec::new();
        for one in &sealed {
            let key = store.key_of(*one, Unlocking::Ask).await?;
            keys.push(key.ok_or_else(|| refused(*one, "is not sealed"))?);
        }
        let _locks = self.claimed_all(&sealed).await?;
        for (one, key) in sealed.into_iter().zip(keys) {
            let (meta, log) = self.whole_log(one).await?;
            // Before: in a session that is plain by then nothing could read them.
            for (_, unsent) in self.stored().unsent(Some(one)).await? {
                let unsent = unsent.opened_with(&key, one)?;
                self.stored().keep_unsent(one, &unsent).await?;
            }
            self.replace(&meta, &unsealed_log(&key, &log)?).await?;
            store.keys().note_at(one, Head::START, None);
        }
        Ok(self.row(id).await?.meta)
    }

    /// Encrypts the words that are not in the log yet with the key of a session that had another one, or
    /// none.
    async fn keep_unsent_again(
        &self,
        id: SessionId,
        before: Option<&Arc<SessionKeys>>,
    ) -> StoreResult<()> {
        for (_, unsent) in self.stored().unsent(Some(id)).await? {
            let unsent = match before {
                Some(before) => unsent.opened_with(before, id)?,
                None => unsent,
            };
            self.store().keep_unsent(id, &unsent).await?;
        }
        Ok(())
    }

    async fn claimed_all(&self, ids: &[SessionId]) -> StoreResult<Vec<crate::SessionLock>> {
        let mut locks = Vec::new();
        for id in ids {
            locks.push(self.claimed(*id).await?);
        }
        Ok(locks)
    }

    pub(super) async fn claimed(&self, id: SessionId) -> StoreResult<crate::SessionLock> {
        match self.stored().claim(id).await? {
            Some(lock) => Ok(lock),
            None => Err(self.is_open_elsewhere(id).await),
        }
    }

    /// Reads a session as it is stored, with an unfinished answer saved as an interrupted message.
    pub(super) async fn whole_log(&self, id: SessionId) -> StoreResult<(SessionMeta, Vec<Entry>)> {
        let meta = self.row(id).await?.meta;
        self.recover(&meta).await?;
        let meta = self.row(id).await?.meta;
        let log = self.load_stored(id).await?;
        match log.damage.first() {
            None => Ok((meta, log.entries)),
            Some(damage) => Err(StoreError::damaged(
                format!("session {id}"),
                format!("entry {}: {}", damage.seq, damage.reason),
            )),
        }
    }

    async fn replace(&self, meta: &SessionMeta, entries: &[Entry]) -> StoreResult<()> {
        let bytes = entries.iter().map(|entry| entry.line().len() as u64 + 1);
        let size: u64 = bytes.sum();
        if size > SESSION_LIMIT {
            return Err(StoreError::TooLarge {
                what: "the session",
                size,
                limit: SESSION_LIMIT,
            });
        }
        self.stored().replace(meta.id, meta.head, entries).await
    }
}

/// Returns true if a sealed session is a task that an agent of `parent` delegated. What says so is sealed,
/// too; without the key it is known by the wrapped key that it has in common with `root`.
fn is_task(one: &SessionMeta, root: &SessionMeta, parent: SessionId) -> bool {
    let is_told = one
        .parent
        .as_ref()
        .is_some_and(|origin| origin.id == parent && origin.relation == Relation::Subagent);
    let has_key_of_root = match (&one.seal, &root.seal) {
        (Some(seal), Some(of_root)) => seal.key == of_root.key && seal.origin == one.id,
        _ => false,
    };
    is_told || has_key_of_root && one.is_locked()
}

/// Returns true if a session was sealed together with the session `id`, whose entries it shares.
fn is_sealed_by(fork: &SessionMeta, id: SessionId) -> bool {
    fork.seal.as_ref().is_some_and(|seal| seal.origin == id)
}

/// Returns the session among the `forks` of `root` whose entries a session begins with, if an agent of
/// another program delegated a task to it: it shares no entries with its parent.
fn entry_root(forks: &[SessionMeta], root: SessionId, mut id: SessionId) -> Option<SessionId> {
    // No longer than the list, which is that of a tree.
    for _ in forks {
        if id == root {
            return None;
        }
        let meta = forks.iter().find(|fork| fork.id == id)?;
        let parent = meta.parent.as_ref()?;
        if parent.relation == Relation::Subagent {
            return Some(id);
        }
        id = parent.id;
    }
    None
}

/// Returns the last entry that a session among `forks` shares with the one that all were made from.
fn shared_upto(forks: &[SessionMeta], mut id: SessionId) -> Seq {
    let mut upto = Seq(u64::MAX);
    for _ in forks {
        let meta = forks.iter().find(|fork| fork.id == id);
        let Some(parent) = meta.and_then(|meta| meta.parent.as_ref()) else {
            break;
        };
        upto = upto.min(parent.seq);
        id = parent.id;
    }
    upto
}

/// Returns the plain entries of a sealed log.
pub(super) fn unsealed_log(key: &SessionKeys, sealed: &[Entry]) -> StoreResult<Vec<Entry>> {
    let openings = Openings::of(sealed);
    rewritten(sealed, |head, entry| {
        key.unseal_entry(head, &openings.numbering_at(entry.seq), entry)
    })
}

/// Seals the entries of a plain log. It may go only when it can be made again from the sealed one, byte
/// for byte.
fn sealed_log(id: SessionId, key: &SessionKeys, plain: &[Entry]) -> StoreResult<Vec<Entry>> {
    let openings = Openings::of(plain);
    let sealed = rewritten(plain, |head, entry| {
        key.seal_entry(head, &openings.numbering_at(entry.seq), entry)
    })?;
    let again = rewritten(&sealed, |head, entry| {
        key.unseal_entry(head, &openings.numbering_at(entry.seq), entry)
    })?;
    let lines = again.iter().map(Entry::line);
    match lines.eq(plain.iter().map(Entry::line)) {
        true => Ok(sealed),
        false => Err(refused(id, "has entries that cannot be sealed unchanged")),
    }
}

/// Writes entries anew, one after the other.
pub(super) fn rewritten(
    entries: &[Entry],
    write: impl Fn(&Head, &Entry) -> Result<Entry, SealError>,
) -> StoreResult<Vec<Entry>> {
    let mut head = Head::START;
    let mut written = Vec::with_capacity(entries.len());
    for entry in entries {
        let place = || format!("entry {}", entry.seq);
        let new =
            write(&head, entry).map_err(|error| StoreError::damaged(place(), error.to_string()))?;
        head = new.head();
        written.push(new);
    }
    Ok(written)
}

pub(super) fn refused(id: SessionId, why: &str) -> StoreError {
    StoreError::Refused(format!("session {} {why}", id.short()))
}
