//! Keys of sealed sessions: unlocked ones are kept in the memory of the process, others come from a
//! [`KeySource`].

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::worker::on_thread;
use crate::{StoreError, StoreResult};
use tertulia_core::entry::Seal;
use tertulia_core::id::SessionId;
use tertulia_core::seal::{KeyBytes, SessionKeys};
use tertulia_core::session::SessionMeta;

/// Maximum number of sessions of which it is remembered whether they are sealed.
const REMEMBERED: usize = 10_000;

/// How much a key is worth: a list must neither ask nor wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlocking {
    /// Only with what is at hand at once, such as an identity file.
    Quietly,
    /// Also with what takes time, but without asking the user.
    Unattended,
    /// Also with what takes time, or asks the user.
    Ask,
}

/// Why a key is not available.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub String);

/// Wraps and unwraps the keys of sealed sessions. Its methods may block.
pub trait KeySource: Debug + Send + Sync {
    /// Makes a key, and wraps it for those who may read the session. Returns the key and its wrapped
    /// form, which the seal keeps.
    fn make(&self) -> Result<(KeyBytes, String), KeyError>;

    /// Unwraps the key of a session.
    fn unwrap_key(&self, wrapped: &str, unlocking: Unlocking) -> Result<KeyBytes, KeyError>;
}

/// The keys that a process knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    source: Option<Arc<dyn KeySource>>,
    known: Arc<Mutex<Known>>,
}

/// The session in which a key was made, and its wrapped form.
type KeyName = (SessionId, String);

fn name(seal: &Seal) -> KeyName {
    (seal.origin, seal.key.clone())
}

#[derive(Debug, Default)]
struct Known {
    /// Seals of sessions; `None` for sessions that are not sealed.
    seals: HashMap<SessionId, Option<Seal>>,
    /// Unlocked keys. A session that was unsealed and sealed again has another one.
    keys: HashMap<KeyName, Arc<SessionKeys>>,
    /// Wrapped keys that were not at hand.
    locked: HashSet<KeyName>,
}

impl From<Arc<dyn KeySource>> for Keys {
    fn from(source: Arc<dyn KeySource>) -> Keys {
        Keys {
            source: Some(source),
            known: Arc::default(),
        }
    }
}

impl Keys {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers whether a session is sealed.
    pub(super) fn note(&self, meta: &SessionMeta) {
        self.note_seal(meta.id, meta.seal.as_deref().cloned());
    }

    pub(crate) fn note_seal(&self, id: SessionId, seal: Option<Seal>) {
        let mut known = self.known();
        if known.seals.len() >= REMEMBERED {
            // Seals of new sessions are in no store yet.
            let Known { seals, keys, .. } = &mut *known;
            seals.retain(|_, seal| {
                let seal = seal.as_ref();
                seal.is_some_and(|seal| keys.contains_key(&name(seal)))
            });
        }
        known.seals.insert(id, seal);
    }

    /// Returns the seal of a session, as far as it is known whether there is one.
    pub(super) fn seal_of(&self, id: SessionId) -> Option<Option<Seal>> {
        self.known().seals.get(&id).cloned()
    }

    /// Returns the key of a session that is known to be sealed, if it is unlocked.
    pub(crate) fn unlocked(&self, id: SessionId) -> Option<Arc<SessionKeys>> {
        let known = self.known();
        let seal = known.seals.get(&id)?.as_ref()?;
        known.keys.get(&name(seal)).cloned()
    }

    /// Returns the key of a session that begins, if it is to be sealed. Remembers the answer: the store
    /// may be out of reach when the session goes on.
    pub(crate) fn of_new(&self, id: SessionId) -> Option<Arc<SessionKeys>> {
        let key = self.unlocked(id);
        if key.is_none() {
            self.note_seal(id, None);
        }
        key
    }

    /// Makes the key of a new session. All its entries are sealed from then on.
    pub(crate) async fn make(&self, id: SessionId) -> StoreResult<Arc<SessionKeys>> {
        let refused = move |reason: String| StoreError::NoKey { id, reason };
        let source = self.source(id)?;
        let (key, wrapped) = on_thread("tertulia-key", move || {
            source.make().map_err(|error| refused(error.0))
        })
        .await?;
        let key = SessionKeys::of_new(id, &key, wrapped);
        let seal = key.seal().clone();
        let key = Arc::new(key);
        self.known().keys.insert(name(&seal), key.clone());
        self.note_seal(id, Some(seal));
        Ok(key)
    }

    /// Returns the key of a sealed session.
    pub(super) async fn unlock(
        &self,
        id: SessionId,
        seal: &Seal,
        unlocking: Unlocking,
    ) -> StoreResult<Arc<SessionKeys>> {
        let refused = move |reason: String| StoreError::Sealed { id, reason };
        {
            let known = self.known();
            if let Some(key) = known.keys.get(&name(seal)) {
                return Ok(key.clone());
            }
            if unlocking == Unlocking::Quietly && known.locked.contains(&name(seal)) {
                return Err(refused("its key is not at hand".to_owned()));
            }
        }
        let source = self.source(id)?;
        let wrapped = seal.key.clone();
        let unwrap = move || {
            let key = source.unwrap_key(&wrapped, unlocking);
            key.map_err(|error| refused(error.0))
        };
        let key = match on_thread("tertulia-key", unwrap).await {
            Ok(key) => key,
            Err(error) => {
                self.known().locked.insert(name(seal));
                return Err(error);
            }
        };
        let key = SessionKeys::new(&key, seal).map_err(|error| refused(error.to_string()))?;
        let key = Arc::new(key);
        self.known().keys.insert(name(seal), key.clone());
        Ok(key)
    }

    fn source(&self, id: SessionId) -> StoreResult<Arc<dyn KeySource>> {
        self.source.clone().ok_or_else(|| StoreError::Sealed {
            id,
            reason: "no source of keys is set up".to_owned(),
        })
    }
}
