//! Seals a plain session, or unseals a sealed one, each with its forks: their logs are replaced as a
//! whole, under the same ids.

use std::sync::Arc;

use super::{KeyEntries, Openings, Sealing, Unlocking};
use crate::{Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head, Relation, Seal};
use tertulia_core::id::SessionId;
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

    /// Encrypts a session that is stored in plain, with its forks. Nothing of their words is left in
    /// the store. They share a key, as they share entries.
    pub async fn seal(&self, id: SessionId) -> StoreResult<SessionMeta> {
        if self.row(id).await?.meta.seal.is_some() {
            return Err(refused(id, "is sealed already"));
        }
        let forks = self.forks_of(id).await?;
        let plain: Vec<SessionId> = forks
            .iter()
            .filter(|fork| fork.seal.is_none())
            .map(|fork| fork.id)
            .chain([id])
            .collect();
        let _locks = self.claimed_all(&plain).await?;
        let keys = self.sealed_store().keys();
        // An earlier attempt may have been cut off between two of them.
        let mut cut_off = forks.iter();
        let shared = match cut_off.find(|fork| is_sealed_by(fork, id)) {
            Some(fork) => self.sealed_store().key_of(fork.id, Unlocking::Ask).await?,
            None => None,
        };
        let shared = match shared {
            Some(key) => key,
            None => keys.make(id).await?,
        };
        for one in plain {
            let (meta, log) = self.whole_log(one).await?;
            let root = entry_root(&forks, one).unwrap_or(id);
            let key = match shared.for_session(root) {
                Some(key) => Arc::new(key),
                None => keys.make(root).await?,
            };
            let replaced = match sealed_log(one, &key, &log) {
                Ok(sealed) => self.replace(&meta, &sealed).await,
                Err(error) => Err(error),
            };
            if let Err(error) = replaced {
                keys.note_at(id, Head::START, None);
                return Err(error);
            }
            keys.note_keys(one, Head::START, &key);
        }
        Ok(self.row(id).await?.meta)
    }

    /// Encrypts a session that is stored in plain with the keys of its sealed copy in another store, of
    /// which these are the first entry and the key entries that the two have in common.
    pub(super) async fn seal_like(&self, id: SessionId, copy: KeyEntries) -> StoreResult<()> {
        let other = || refused(id, "is another one than its sealed copy");
        let hash = copy.opening.hash;
        let seal = copy.opening.body.seal().ok_or_else(other)?.clone();
        let sealing = Sealing {
            seal: Seal { data: None, ..seal },
            keyed: copy.keyed.iter().map(|keyed| keyed.entry.head()).collect(),
        };
        let keys = self.sealed_store().keys();
        let entries = Some(copy).filter(|copy| !copy.keyed.is_empty());
        let key = keys.unlock(id, &sealing, entries, Unlocking::Unattended);
        let key = key.await?;
        let _lock = self.claimed(id).await?;
        let (meta, plain) = self.whole_log(id).await?;
        let sealed = sealed_log(id, &key, &plain)?;
        if sealed.first().map(|entry| entry.hash) != Some(hash) {
            return Err(other());
        }
        self.replace(&meta, &sealed).await?;
        keys.note_at(id, Head::START, Some(sealing));
        Ok(())
    }

    /// Stores a sealed session in plain, with its forks.
    pub async fn unseal(&self, id: SessionId) -> StoreResult<SessionMeta> {
        let store = self.sealed_store();
        if self.row(id).await?.meta.seal.is_none() {
            return Err(refused(id, "is not sealed"));
        }
        let forks = self.forks_of(id).await?;
        let sealed: Vec<SessionId> = forks
            .iter()
            .filter(|fork| fork.seal.is_some())
            .map(|fork| fork.id)
            .chain([id])
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
            let openings = Openings::of(&log);
            let plain = rewritten(&log, |head, entry| {
                key.unseal_entry(head, &openings.numbering_at(entry.seq), entry)
            })?;
            self.replace(&meta, &plain).await?;
            store.keys().note_at(one, Head::START, None);
        }
        Ok(self.row(id).await?.meta)
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

/// Returns the session among `forks` whose entries a session begins with, if an agent of another program
/// delegated a task to it: it shares no entries with its parent.
fn entry_root(forks: &[SessionMeta], mut id: SessionId) -> Option<SessionId> {
    // No longer than the list, which is that of a tree.
    for _ in forks {
        let meta = forks.iter().find(|fork| fork.id == id)?;
        let parent = meta.parent.as_ref()?;
        if parent.relation == Relation::Subagent {
            return Some(id);
        }
        id = parent.id;
    }
    None
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
