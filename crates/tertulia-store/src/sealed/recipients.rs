//! Who can read a sealed session: its key is wrapped for one more recipient, or a new key starts without
//! one. Both are entries of the log.

use std::sync::Arc;

use super::swap::refused;
use super::{KeyEntries, SealedStore, Sealing, Unlocking, has_keys};
use crate::sessions::Fork;
use crate::{Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Head, Keyed, Numbering};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::seal::{KeyBytes, KeyEntry, Recipients, Ring, SealError, SessionKeys};
use tertulia_core::session::SessionMeta;

impl SealedStore {
    /// Returns a change of keys among new entries of a session that was not written with its key, and why
    /// it is refused. `base` is what the entries continue, and where. Without the key it cannot be told.
    pub(crate) async fn foreign_keys(
        &self,
        id: SessionId,
        base: Option<(SessionId, Seq)>,
        entries: &[Entry],
    ) -> StoreResult<Option<(Seq, String)>> {
        let new: Vec<KeyEntry> = entries
            .iter()
            .filter(|entry| has_keys(entry))
            .map(|entry| KeyEntry {
                entry: entry.clone(),
                numbering: Numbering::default(),
            })
            .collect();
        if new.is_empty() {
            return Ok(None);
        }
        let sealing = match base {
            Some((base, at)) => self.sealing_now(base).await?.map(|it| it.until(at)),
            None => None,
        };
        let (mut sealing, mut known) = match (base, sealing) {
            (Some((base, _)), Some(sealing)) => {
                let known = self.key_entries(base, &sealing.keyed).await?;
                (sealing, known)
            }
            _ => match entries.first().map(|first| (first, first.body.seal())) {
                Some((opening, Some(seal))) => {
                    let opening = opening.clone();
                    let (seal, keyed) = (seal.clone(), Vec::new());
                    (
                        Sealing { seal, keyed },
                        KeyEntries {
                            opening,
                            keyed: Vec::new(),
                        },
                    )
                }
                _ => return Ok(None),
            },
        };
        sealing.keyed.extend(new.iter().map(|it| it.entry.head()));
        known.keyed.extend(new.iter().cloned());
        let unlocked = self
            .keys
            .unlock(id, &sealing, Some(known), Unlocking::Unattended);
        let keys = match unlocked.await {
            Err(StoreError::Sealed { .. }) => return Ok(None),
            keys => keys?,
        };
        let authentic: Vec<Head> = keys.entries().collect();
        let mut new = new.iter().map(|it| it.entry.head());
        let foreign = new.find(|head| !authentic.contains(head));
        Ok(foreign.map(|head| (head.seq, SealError::ForeignKey.to_string())))
    }
}

/// The key in force of a sealed session, by the wrapped form under which the log has it.
#[derive(Clone, Debug)]
pub struct SealedKey {
    /// A wrapped form of the key in the log.
    pub wrapped: String,
    /// Its secret bytes.
    pub key: KeyBytes,
}

impl Sessions {
    /// Wraps the key of a sealed session for one more recipient, who can then read all of it.
    pub async fn add_recipient(&self, id: SessionId, recipient: &str) -> StoreResult<SessionMeta> {
        let (_lock, meta, keys) = self.to_change(id).await?;
        if keys.recipients().known.iter().any(|one| one == recipient) {
            return Err(refused(
                id,
                &format!("has its key wrapped for {recipient} already"),
            ));
        }
        let store = self.sealed_store();
        let newest = keys.newest().clone();
        let wrapped = store.keys().wrap(id, newest, recipient.to_owned()).await?;
        let numbering = store.numbering_after(id, &meta.head).await?;
        let new = self.new_entry(Body::Keyed(Keyed::default()))?;
        let place = (&meta.head, &numbering);
        let added = keys.add(place, new, recipient.to_owned(), wrapped);
        let (entry, keys) = added.map_err(unwritable)?;
        self.append_keys(&meta, entry, keys).await
    }

    /// Starts a new key of a sealed session for later entries, for those who could read it so far, but for
    /// these recipients.
    pub async fn remove_recipients(
        &self,
        id: SessionId,
        removed: &[String],
    ) -> StoreResult<SessionMeta> {
        let (_lock, meta, keys) = self.to_change(id).await?;
        let mut recipients = keys.recipients().clone();
        let is_unknown = |one: &&String| !recipients.known.contains(one);
        let unknown = removed.iter().find(is_unknown);
        if let Some(unknown) = unknown.filter(|_| recipients.is_complete) {
            return Err(refused(id, &format!("has no key for {unknown}")));
        }
        recipients.removed.extend(removed.iter().cloned());
        let (entry, keys) = self.renewed(&meta, &keys, recipients).await?;
        self.append_keys(&meta, entry, keys).await
    }

    /// Returns the key in force of a sealed session, to hand it on; `None` if it is not sealed.
    pub async fn sealed_key(&self, id: SessionId) -> StoreResult<Option<SealedKey>> {
        let keys = self.sealed_store().key_of(id, Unlocking::Ask).await?;
        Ok(keys.and_then(|keys| {
            Some(SealedKey {
                wrapped: keys.wrapped().into_iter().next()?,
                key: keys.newest().clone(),
            })
        }))
    }

    /// Returns true if a key opens a sealed session whose log has it wrapped like this.
    pub async fn is_opened_by(
        &self,
        id: SessionId,
        wrapped: &str,
        key: &KeyBytes,
    ) -> StoreResult<bool> {
        let store = self.sealed_store();
        let Some(sealing) = store.sealing_of(id).await? else {
            return Ok(false);
        };
        let KeyEntries { opening, keyed } = store.key_entries(id, &sealing.keyed).await?;
        let pool = std::slice::from_ref(key);
        let ring = Ring::of(&sealing.seal, &opening, &keyed, pool);
        Ok(match ring.map_err(unwritable)? {
            Ring::Whole(keys) => keys.wrapped().iter().any(|form| form == wrapped),
            Ring::LockedAt(_) | Ring::Locked => false,
        })
    }

    /// Locks a sealed session whose keys are to be changed, saves an unfinished answer, and gets its keys.
    async fn to_change(
        &self,
        id: SessionId,
    ) -> StoreResult<(crate::SessionLock, SessionMeta, Arc<SessionKeys>)> {
        if self.row(id).await?.meta.seal.is_none() {
            return Err(refused(id, "is not sealed"));
        }
        let lock = self.claimed(id).await?;
        let (meta, _) = self.whole_log(id).await?;
        let keys = self.sealed_store().key_at(id, &meta.head).await?;
        let keys = keys.ok_or_else(|| refused(id, "is not sealed"))?;
        Ok((lock, meta, keys))
    }

    async fn append_keys(
        &self,
        meta: &SessionMeta,
        entry: Entry,
        keys: SessionKeys,
    ) -> StoreResult<SessionMeta> {
        let head = entry.head();
        self.store().append(meta.id, meta.head, &[entry]).await?;
        let store = self.sealed_store();
        if let Some(mut sealing) = Sealing::of(meta) {
            sealing.keyed.push(head);
            store.keys().insert(&sealing, Arc::new(keys));
        }
        Ok(self.row(meta.id).await?.meta)
    }

    /// Makes the entry that starts a new key of a session.
    async fn renewed(
        &self,
        meta: &SessionMeta,
        keys: &SessionKeys,
        recipients: Recipients,
    ) -> StoreResult<(Entry, SessionKeys)> {
        let store = self.sealed_store();
        let numbering = store.numbering_after(meta.id, &meta.head).await?;
        self.renewed_at(
            meta.id,
            (&meta.head, &numbering),
            keys,
            recipients,
            keys.wrapped(),
        )
        .await
    }

    async fn renewed_at(
        &self,
        id: SessionId,
        place: (&Head, &Numbering),
        keys: &SessionKeys,
        recipients: Recipients,
        wrapped: Vec<String>,
    ) -> StoreResult<(Entry, SessionKeys)> {
        let removed = recipients.removed.clone();
        let started = self
            .sealed_store()
            .keys()
            .renew(id, recipients, wrapped)
            .await?;
        let new = self.new_entry(Body::Keyed(Keyed::default()))?;
        keys.renew(place, new, started, removed).map_err(unwritable)
    }

    /// Returns the keys of a session that is forked, if the fork needs them: for words of its own, or because
    /// a key was started after `head`.
    pub(crate) async fn keys_of_fork(
        &self,
        base: &SessionMeta,
        head: &Head,
        fork: &Fork,
        bodies: &[Body],
    ) -> StoreResult<Option<Arc<SessionKeys>>> {
        let has_words = fork.title.is_some() || bodies.iter().any(|body| !body.is_wordless());
        let is_before = base.keyed.iter().any(|keyed| keyed.seq > head.seq);
        let store = self.sealed_store();
        match (has_words || is_before, Sealing::of(base)) {
            (true, Some(sealing)) => {
                let keys = store.unlock(base.id, &sealing, Unlocking::Ask).await?;
                Ok(Some(keys))
            }
            _ => Ok(None),
        }
    }

    /// Starts a new key in a session that leaves another one before its last key was started, after its
    /// opening. `keys` are those of the other one.
    pub(crate) async fn renewed_after(
        &self,
        id: SessionId,
        keys: &SessionKeys,
        recipients: Recipients,
        opening: &[Entry],
    ) -> StoreResult<Entry> {
        let last = opening.last().ok_or(StoreError::NotFound(id))?;
        let head = last.head();
        let shared = keys.until(head.seq);
        let numbering = Numbering::default();
        let wrapped = keys.wrapped();
        let renewed = self.renewed_at(id, (&head, &numbering), &shared, recipients, wrapped);
        let (entry, keys) = renewed.await?;
        let store = self.sealed_store().keys();
        if let Some(Some(mut sealing)) = store.sealing_of(id) {
            sealing.keyed.push(entry.head());
            store.insert(&sealing, Arc::new(keys));
            store.note_at(id, entry.head(), Some(sealing));
        }
        Ok(entry)
    }
}

fn unwritable(error: SealError) -> StoreError {
    StoreError::failed("cannot write an entry", error)
}
