//! Seals a plain session, or unseals a sealed one: its log is replaced as a whole, under the same id.

use super::{Openings, Unlocking};
use crate::{Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::SessionId;
use tertulia_core::seal::SealError;
use tertulia_core::session::{SESSION_LIMIT, SessionMeta};

impl Sessions {
    /// Encrypts a session that is stored in plain. Nothing of its words is left in the store.
    pub async fn seal(&self, id: SessionId) -> StoreResult<SessionMeta> {
        if self.row(id).await?.meta.seal.is_some() {
            return Err(refused(id, "is sealed already"));
        }
        let _lock = self.claimed(id).await?;
        let (meta, plain) = self.whole_log(id).await?;
        let store = self.sealed_store();
        let key = store.keys().make(id).await?;
        let openings = Openings::of(&plain);
        let sealed = rewritten(&plain, |head, entry| {
            key.seal_entry(head, &openings.numbering_at(entry.seq), entry)
        });
        // The plain log goes only when it can be made again from the sealed one, byte for byte.
        let checked = sealed.and_then(|sealed| {
            let again = rewritten(&sealed, |head, entry| {
                key.unseal_entry(head, &openings.numbering_at(entry.seq), entry)
            })?;
            match again
                .iter()
                .map(Entry::line)
                .eq(plain.iter().map(Entry::line))
            {
                true => Ok(sealed),
                false => Err(refused(id, "has entries that cannot be sealed unchanged")),
            }
        });
        let replaced = match checked {
            Ok(sealed) => self.replace(&meta, &sealed).await,
            Err(error) => Err(error),
        };
        if let Err(error) = replaced {
            store.keys().note_seal(id, None);
            return Err(error);
        }
        Ok(self.row(id).await?.meta)
    }

    /// Stores a sealed session in plain.
    pub async fn unseal(&self, id: SessionId) -> StoreResult<SessionMeta> {
        let store = self.sealed_store();
        if self.row(id).await?.meta.seal.is_none() {
            return Err(refused(id, "is not sealed"));
        }
        let Some(key) = store.key_of(id, Unlocking::Ask).await? else {
            return Err(refused(id, "is not sealed"));
        };
        let _lock = self.claimed(id).await?;
        let (meta, sealed) = self.whole_log(id).await?;
        let openings = Openings::of(&sealed);
        let plain = rewritten(&sealed, |head, entry| {
            key.unseal_entry(head, &openings.numbering_at(entry.seq), entry)
        })?;
        self.replace(&meta, &plain).await?;
        store.keys().note_seal(id, None);
        Ok(self.row(id).await?.meta)
    }

    async fn claimed(&self, id: SessionId) -> StoreResult<crate::SessionLock> {
        if let Some(lock) = self.stored().claim(id).await? {
            return Ok(lock);
        }
        let holder = self.stored().holder(id).await?.unwrap_or_default();
        let place = format!("session {} (open in {holder})", id.short());
        Err(StoreError::Locked { place })
    }

    /// Reads a session as it is stored, with an unfinished answer saved as an interrupted message.
    async fn whole_log(&self, id: SessionId) -> StoreResult<(SessionMeta, Vec<Entry>)> {
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

/// Writes entries anew, one after the other.
fn rewritten(
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

fn refused(id: SessionId, why: &str) -> StoreError {
    StoreError::Refused(format!("session {} {why}", id.short()))
}
