//! Keys of sealed sessions: unlocked ones are kept in the memory of the process, others come from a
//! [`KeySource`].

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::worker::on_thread;
use crate::{StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Hash, Head, Seal};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::seal::{KeyBytes, KeyEntry, NewKey, Recipients, Ring, SessionKeys};
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

    /// Makes the key that follows another one, and wraps it for those who may still read the session:
    /// the recorded recipients and the user's own, but none that was removed. `wrapped` are the forms of the
    /// key before: who had it by a passphrase keeps that.
    fn renew(&self, recipients: &Recipients, wrapped: &[String]) -> Result<NewKey, KeyError>;

    /// Wraps a key for one recipient.
    fn wrap(&self, key: &KeyBytes, recipient: &str) -> Result<String, KeyError>;

    /// Unwraps the key of a session.
    fn unwrap_key(&self, wrapped: &str, unlocking: Unlocking) -> Result<KeyBytes, KeyError>;
}

/// The keys that a process knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    source: Option<Arc<dyn KeySource>>,
    known: Arc<Mutex<Known>>,
}

/// How a session is sealed: its seal, and its key entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealing {
    pub(super) seal: Seal,
    pub(super) keyed: Vec<Head>,
}

impl Sealing {
    pub(crate) fn of(meta: &SessionMeta) -> Option<Sealing> {
        Some(Sealing {
            seal: meta.seal.as_deref()?.clone(),
            keyed: meta.keyed.clone(),
        })
    }

    /// Returns how a session is sealed that leaves this one after an entry.
    pub(crate) fn until(mut self, seq: Seq) -> Sealing {
        self.keyed.retain(|head| head.seq <= seq);
        self
    }

    fn name(&self) -> KeyName {
        let keyed = self.keyed.iter().map(|head| head.hash).collect();
        (self.seal.origin, self.seal.key.clone(), keyed)
    }
}

impl From<&SessionKeys> for Sealing {
    fn from(keys: &SessionKeys) -> Sealing {
        Sealing {
            seal: keys.seal().clone(),
            keyed: keys.entries().collect(),
        }
    }
}

/// The session in which a key was made, its wrapped form, and the key entries after it.
type KeyName = (SessionId, String, Vec<Hash>);

/// A session of which it is known whether it is sealed.
#[derive(Debug)]
struct Noted {
    sealing: Option<Sealing>,
    /// End of the log when it was known.
    head: Head,
}

#[derive(Debug, Default)]
struct Known {
    sessions: HashMap<SessionId, Noted>,
    /// Unlocked keys. A session that was unsealed and sealed again has another one.
    keys: HashMap<KeyName, Arc<SessionKeys>>,
    /// Sessions whose keys were not at hand.
    locked: HashSet<KeyName>,
}

/// What a session's keys are found by, beside its seal: its first entry, and its key entries.
#[derive(Clone, Debug)]
pub(super) struct KeyEntries {
    pub(super) opening: Entry,
    pub(super) keyed: Vec<KeyEntry>,
}

impl KeyEntries {
    /// Returns how the session is sealed, if it is.
    pub(super) fn sealing(&self) -> Option<Sealing> {
        let seal = self.opening.body.seal()?.clone();
        Some(Sealing {
            seal: Seal { data: None, ..seal },
            keyed: self.keyed.iter().map(|keyed| keyed.entry.head()).collect(),
        })
    }
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
        self.note_at(meta.id, meta.head, Sealing::of(meta));
    }

    /// Remembers whether a session is sealed, as long as its log ends here.
    pub(crate) fn note_at(&self, id: SessionId, head: Head, sealing: Option<Sealing>) {
        let mut known = self.known();
        if known.sessions.len() >= REMEMBERED {
            // Seals of new sessions are in no store yet.
            let Known { sessions, keys, .. } = &mut *known;
            sessions.retain(|_, noted| {
                let sealing = noted.sealing.as_ref();
                sealing.is_some_and(|sealing| keys.contains_key(&sealing.name()))
            });
        }
        known.sessions.insert(id, Noted { sealing, head });
    }

    /// Remembers that a session was continued.
    pub(super) fn note_append(&self, id: SessionId, after: Head, entries: &[Entry]) {
        let mut known = self.known();
        let (Some(noted), Some(last)) = (known.sessions.get_mut(&id), entries.last()) else {
            return;
        };
        if noted.head == after {
            noted.head = last.head();
            if let Some(sealing) = &mut noted.sealing {
                let keyed = entries.iter().filter(|entry| has_keys(entry));
                sealing.keyed.extend(keyed.map(Entry::head));
            }
        }
    }

    /// Returns how a session is sealed, as far as it is known whether it is.
    pub(super) fn sealing_of(&self, id: SessionId) -> Option<Option<Sealing>> {
        let known = self.known();
        Some(known.sessions.get(&id)?.sealing.clone())
    }

    /// Returns true if what is known of a session holds where its log ends at `head`.
    pub(super) fn knows(&self, id: SessionId, head: &Head) -> bool {
        let known = self.known();
        let noted = known.sessions.get(&id);
        // A session that is not sealed has no keys to be changed.
        noted.is_some_and(|noted| noted.head == *head || noted.sealing.is_none())
    }

    /// Returns the keys of a session that is known to be sealed, if they are unlocked.
    pub(crate) fn unlocked(&self, id: SessionId) -> Option<Arc<SessionKeys>> {
        let known = self.known();
        let sealing = known.sessions.get(&id)?.sealing.as_ref()?;
        known.keys.get(&sealing.name()).cloned()
    }

    /// Returns the key of a session that begins, if it is to be sealed. Remembers the answer: the store
    /// may be out of reach when the session goes on.
    pub(crate) fn of_new(&self, id: SessionId) -> Option<Arc<SessionKeys>> {
        let key = self.unlocked(id);
        if key.is_none() {
            self.note_at(id, Head::START, None);
        }
        key
    }

    /// Remembers the keys of a session whose log ends at `head`.
    pub(crate) fn note_keys(&self, id: SessionId, head: Head, keys: &Arc<SessionKeys>) {
        let sealing = Sealing::from(&**keys);
        self.known().keys.insert(sealing.name(), keys.clone());
        self.note_at(id, head, Some(sealing));
    }

    /// Makes the key of a new session. All its entries are sealed from then on.
    pub(crate) async fn make(&self, id: SessionId) -> StoreResult<Arc<SessionKeys>> {
        let made = self.ask(id, |source| source.make());
        let (key, wrapped) = made.await.map_err(|error| no_key(id, error))?;
        let keys = Arc::new(SessionKeys::of_new(id, &key, wrapped));
        self.note_keys(id, Head::START, &keys);
        Ok(keys)
    }

    /// Makes the key that follows those of a session, for those who may still read it.
    pub(super) async fn renew(
        &self,
        id: SessionId,
        recipients: Recipients,
        wrapped: Vec<String>,
    ) -> StoreResult<NewKey> {
        let made = self.ask(id, move |source| source.renew(&recipients, &wrapped));
        made.await.map_err(|error| no_key(id, error))
    }

    /// Wraps a key for one recipient.
    pub(super) async fn wrap(
        &self,
        id: SessionId,
        key: KeyBytes,
        recipient: String,
    ) -> StoreResult<String> {
        let wrapped = self.ask(id, move |source| source.wrap(&key, &recipient));
        wrapped.await.map_err(|error| no_key(id, error))
    }

    /// Lets the source of keys do what may block.
    async fn ask<T: Send + 'static>(
        &self,
        id: SessionId,
        ask: impl FnOnce(&dyn KeySource) -> Result<T, KeyError> + Send + 'static,
    ) -> StoreResult<T> {
        let source = self.source(id)?;
        let refused = move |error: KeyError| StoreError::Sealed {
            id,
            reason: error.0,
        };
        on_thread("tertulia-key", move || ask(&*source).map_err(refused)).await
    }

    pub(super) fn insert(&self, sealing: &Sealing, keys: Arc<SessionKeys>) {
        self.known().keys.insert(sealing.name(), keys);
    }

    /// Returns the keys of a sealed session, if they are known.
    pub(super) fn of(&self, sealing: &Sealing) -> Option<Arc<SessionKeys>> {
        self.known().keys.get(&sealing.name()).cloned()
    }

    /// Returns the keys of a sealed session. `entries` are those with keys, if it has some.
    pub(super) async fn unlock(
        &self,
        id: SessionId,
        sealing: &Sealing,
        entries: Option<KeyEntries>,
        unlocking: Unlocking,
    ) -> StoreResult<Arc<SessionKeys>> {
        {
            let known = self.known();
            if let Some(key) = known.keys.get(&sealing.name()) {
                return Ok(key.clone());
            }
            if unlocking == Unlocking::Quietly && known.locked.contains(&sealing.name()) {
                let reason = "its key is not at hand".to_owned();
                return Err(StoreError::Sealed { id, reason });
            }
        }
        let seal = sealing.seal.clone();
        let unlocked = self.ask(id, move |source| match &entries {
            None => {
                let key = source.unwrap_key(&seal.key, unlocking)?;
                SessionKeys::new(&key, &seal).map_err(|error| KeyError(error.to_string()))
            }
            Some(entries) => unlock_all(source, &seal, entries, unlocking),
        });
        let keys = match unlocked.await {
            Ok(keys) => Arc::new(keys),
            Err(error) => {
                self.known().locked.insert(sealing.name());
                return Err(error);
            }
        };
        self.known().keys.insert(sealing.name(), keys.clone());
        Ok(keys)
    }

    fn source(&self, id: SessionId) -> StoreResult<Arc<dyn KeySource>> {
        self.source.clone().ok_or_else(|| StoreError::Sealed {
            id,
            reason: "no source of keys is set up".to_owned(),
        })
    }
}

fn no_key(id: SessionId, error: StoreError) -> StoreError {
    match error {
        StoreError::Sealed { reason, .. } => StoreError::NoKey { id, reason },
        other => other,
    }
}

/// Returns true if an entry has keys.
pub(super) fn has_keys(entry: &Entry) -> bool {
    matches!(&entry.body, Body::Keyed(keyed) if !keyed.is_empty())
}

/// Unwraps the keys of a session that has key entries. What is at hand at once comes first: another of its
/// wrapped keys may be for a passphrase that the user need not know.
fn unlock_all(
    source: &dyn KeySource,
    seal: &Seal,
    entries: &KeyEntries,
    unlocking: Unlocking,
) -> Result<SessionKeys, KeyError> {
    let KeyEntries { opening, keyed } = entries;
    let files: Vec<&[String]> = keyed.iter().map(wrapped_keys).collect();
    let mut pool = Vec::new();
    let quietly = [Unlocking::Quietly].into_iter();
    let levels = quietly.chain((unlocking != Unlocking::Quietly).then_some(unlocking));
    let mut reason = KeyError("its key is not at hand".to_owned());
    for level in levels {
        let mut tried = HashSet::new();
        let mut first_error = None;
        loop {
            let ring = Ring::of(seal, opening, keyed, &pool);
            let locked = match ring.map_err(|error| KeyError(error.to_string()))? {
                Ring::Whole(keys) => return Ok(*keys),
                Ring::LockedAt(at) => Some(at),
                Ring::Locked => None,
            };
            let first = std::slice::from_ref(&seal.key);
            let mut next: Box<dyn Iterator<Item = &String>> = match locked {
                Some(at) => Box::new(files[at..].iter().copied().flatten()),
                None => Box::new(first.iter().chain(files.iter().rev().copied().flatten())),
            };
            let Some(file) = next.find(|file| !tried.contains(*file)) else {
                reason = why_locked(locked.map(|at| keyed[at].entry.seq), first_error, reason);
                break;
            };
            tried.insert(file.clone());
            match source.unwrap_key(file, level) {
                Ok(key) => pool.push(key),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
    }
    Err(reason)
}

fn wrapped_keys(entry: &KeyEntry) -> &[String] {
    match &entry.entry.body {
        Body::Keyed(keyed) => &keyed.keys,
        _ => &[],
    }
}

/// Says why a session cannot be read: its own key is not at hand, or that from entry `from` on.
fn why_locked(from: Option<Seq>, error: Option<KeyError>, otherwise: KeyError) -> KeyError {
    let error = error.unwrap_or(otherwise);
    match from {
        Some(from) => KeyError(format!("it has a new key from entry {from} on: {error}")),
        None => error,
    }
}
