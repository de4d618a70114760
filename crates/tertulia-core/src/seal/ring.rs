//! The keys of a session: the one that its seal wraps, and those that key entries start. Each key entry is
//! authenticated by the key before it, so that only who can read the session decides who else can.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::key::Key;
use super::{KEY_BYTES, KeyBytes, Place, SEAL_VERSION, SealError, SessionKeys};
use crate::entry::{Body, Entry, Head, KEYED_VERSION, Keyed, NewEntry, Numbering, Seal};
use crate::id::{EntryId, Seq, SessionId};

/// A key entry as it is stored, with the numbering at its place.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// The entry.
    pub entry: Entry,
    /// Numbering of the branch to which it belongs.
    pub numbering: Numbering,
}

/// Keys of a session, as far as some of them are known.
#[derive(Debug)]
pub enum Ring {
    /// All keys are known.
    Whole(Box<SessionKeys>),
    /// Entries after this key entry have a key that is not known. The index is that in the list of key
    /// entries.
    LockedAt(usize),
    /// No known key is one of the session.
    Locked,
}

/// A key, and the entry that started it: later entries are sealed with it.
#[derive(Clone)]
pub(super) struct PlacedKey {
    pub(super) from: Seq,
    pub(super) key: Key,
}

/// A key entry that is authentic.
#[derive(Clone)]
pub(super) struct KnownKeyEntry {
    id: EntryId,
    head: Head,
    body: Keyed,
}

/// Who can read a session, as far as its key entries say. Those of its first key are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// Recipients that were added, or for whom the key in force was made.
    pub known: Vec<String>,
    /// Recipients that were removed.
    pub removed: Vec<String>,
    /// True if the key in force was made for the known ones alone.
    pub is_complete: bool,
}

/// A key that starts with an entry.
#[derive(Debug)]
pub struct NewKey {
    /// Its secret bytes.
    pub key: KeyBytes,
    /// Its wrapped forms.
    pub wrapped: Vec<String>,
    /// The recipients for whom it is wrapped.
    pub recipients: Vec<String>,
}

/// What a key entry changes, encrypted with the key before it.
#[derive(Serialize, Deserialize)]
struct KeyChange {
    /// Recipients of the wrapped key.
    recipients: Vec<String>,
    /// Recipients who were removed so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
    /// Hash of the new key, if one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// What is authenticated with a change of keys.
#[derive(Serialize)]
struct ShownKeys<'a> {
    keyed: u32,
    session: SessionId,
    seq: Seq,
    id: EntryId,
    at: jiff::Timestamp,
    author: Option<(&'a str, &'a str)>,
    keys: &'a [String],
    before: Option<&'a str>,
}

impl Ring {
    /// Puts the keys of a session together. `pool` are keys that may be among them, `opening` is the first
    /// entry of the log, `keyed` are its key entries. Those that are not authentic do not count.
    pub fn of(
        seal: &Seal,
        opening: &Entry,
        keyed: &[KeyEntry],
        pool: &[KeyBytes],
    ) -> Result<Ring, SealError> {
        if seal.v > SEAL_VERSION {
            return Err(SealError::Newer { found: seal.v });
        }
        let mut pool: Vec<Key> = pool.iter().map(Key::new).collect();
        for one in keyed.iter().rev() {
            let older = pool.iter().find_map(|key| key_before(seal, one, key));
            pool.extend(older.as_ref().map(Key::new));
        }
        // The key must open what the session began with: a key entry can be forged together with keys that
        // lead to it.
        let is_first = |key: &&Key| {
            let keys = SessionKeys::of_key((*key).clone(), seal);
            keys.words_of(opening, &Numbering::default())
                .is_ok_and(|words| words.is_some())
        };
        let Some(first) = pool.iter().find(is_first) else {
            return Ok(Ring::Locked);
        };
        let mut ring = SessionKeys::of_key(first.clone(), seal);
        for (index, one) in keyed.iter().enumerate() {
            let Some((keyed, change)) = ring.change_of(one)? else {
                continue;
            };
            if let Some(name) = &change.key {
                let Some(key) = pool.iter().find(|key| key.name() == *name) else {
                    return Ok(Ring::LockedAt(index));
                };
                let key = key.clone();
                ring.start(one.entry.seq, key);
            }
            ring.note(&one.entry, keyed, change);
        }
        Ok(Ring::Whole(Box::new(ring)))
    }
}

/// Returns the key before that of a key entry, if `key` is that of the entry.
fn key_before(seal: &Seal, keyed: &KeyEntry, key: &Key) -> Option<KeyBytes> {
    let Body::Keyed(Keyed { before, .. }) = &keyed.entry.body else {
        return None;
    };
    let place = Place::of(&keyed.entry, &keyed.numbering);
    let shown = shown(seal, &place, &[], None).ok()?;
    let bytes = key.decrypt(&shown, before.as_ref()?).ok()?;
    let bytes: [u8; KEY_BYTES] = bytes.as_slice().try_into().ok()?;
    Some(Zeroizing::new(bytes))
}

fn shown(
    seal: &Seal,
    place: &Place<'_>,
    keys: &[String],
    before: Option<&str>,
) -> Result<Vec<u8>, SealError> {
    let author = place.author.map(|author| (&*author.name, &*author.host));
    let shown = ShownKeys {
        keyed: KEYED_VERSION,
        session: seal.origin,
        seq: place.seq,
        id: place.id,
        at: place.at,
        author,
        keys,
        before,
    };
    serde_json::to_vec(&shown).map_err(|_| SealError::Failed)
}

impl SessionKeys {
    /// Returns what an entry changes; `None` if it is not authentic, or changes nothing.
    fn change_of<'a>(
        &self,
        one: &'a KeyEntry,
    ) -> Result<Option<(&'a Keyed, KeyChange)>, SealError> {
        let Body::Keyed(keyed) = &one.entry.body else {
            return Ok(None);
        };
        let place = Place::of(&one.entry, &one.numbering);
        let shown = shown(&self.seal, &place, &keyed.keys, keyed.before.as_deref())?;
        let change = self.last().decrypt(&shown, &keyed.proof).ok();
        let change = change.and_then(|change| serde_json::from_slice::<KeyChange>(&change).ok());
        // A new key comes with the one before it.
        let change = change.filter(|change| change.key.is_some() == keyed.before.is_some());
        Ok(change.map(|change| (keyed, change)))
    }

    fn start(&mut self, from: Seq, key: Key) {
        self.keys.push(PlacedKey { from, key });
    }

    fn note(&mut self, entry: &Entry, keyed: &Keyed, change: KeyChange) {
        let recipients = &mut self.recipients;
        if change.key.is_some() {
            *recipients = Recipients {
                known: change.recipients,
                removed: change.removed,
                is_complete: true,
            };
        } else {
            let added = change.recipients;
            recipients.removed.retain(|one| !added.contains(one));
            recipients.known.extend(added);
        }
        self.entries.push(KnownKeyEntry {
            id: entry.id,
            head: entry.head(),
            body: keyed.clone(),
        });
    }

    pub(super) fn last(&self) -> &Key {
        self.at(Seq(u64::MAX))
    }

    /// Returns the key of the entry at a place. A key entry is authenticated by the key before it.
    pub(super) fn at(&self, seq: Seq) -> &Key {
        let later = self.keys.partition_point(|placed| placed.from < seq);
        &self.keys[later.saturating_sub(1)].key
    }

    /// Returns the keys that a log has which leaves this one after an entry.
    #[must_use]
    pub fn until(&self, seq: Seq) -> SessionKeys {
        let mut keys = self.clone();
        keys.keys
            .retain(|placed| placed.from <= seq || placed.from == Seq::START);
        keys.entries.retain(|known| known.head.seq <= seq);
        keys
    }

    /// Returns true if a key starts after an entry: later ones are not for all who can read it.
    pub fn changes_after(&self, seq: Seq) -> bool {
        self.keys.iter().any(|placed| placed.from > seq)
    }

    /// Returns who can read the session, as far as it is recorded.
    pub fn recipients(&self) -> &Recipients {
        &self.recipients
    }

    /// Returns the secret bytes of the key in force, to wrap them.
    pub fn newest(&self) -> &KeyBytes {
        self.last().bytes()
    }

    /// Returns the wrapped forms of the key in force.
    pub fn wrapped(&self) -> Vec<String> {
        let entries = self.entries.iter();
        let started = self
            .entries
            .iter()
            .rposition(|known| known.body.before.is_some());
        let mut wrapped: Vec<String> = match started {
            Some(_) => Vec::new(),
            None => vec![self.seal.key.clone()],
        };
        for known in entries.skip(started.unwrap_or_default()) {
            wrapped.extend(known.body.keys.iter().cloned());
        }
        wrapped
    }

    /// Returns the heads of the authentic key entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = Head> {
        self.entries.iter().map(|known| known.head)
    }

    /// Returns true if a key entry is authentic.
    pub(super) fn has(&self, entry: &Entry) -> bool {
        let head = entry.head();
        self.entries.iter().any(|known| known.head == head)
    }

    /// Returns the key entry that stands at this place of a log, if that is known to keep it.
    pub(super) fn keyed_like(&self, entry: &Entry) -> Option<&Keyed> {
        let mut known = self.entries.iter();
        let known = known.find(|known| known.id == entry.id && known.head.seq == entry.seq)?;
        Some(&known.body)
    }

    /// Makes the entry after `parent` that wraps the key in force for one more recipient. Returns it, and the
    /// keys with it.
    pub fn add(
        &self,
        (parent, numbering): (&Head, &Numbering),
        new: NewEntry,
        recipient: String,
        wrapped: String,
    ) -> Result<(Entry, SessionKeys), SealError> {
        let change = KeyChange {
            recipients: vec![recipient],
            removed: Vec::new(),
            key: None,
        };
        let keyed = Keyed {
            keys: vec![wrapped],
            ..Keyed::default()
        };
        self.change((parent, numbering), new, keyed, change, None)
    }

    /// Makes the entry after `parent` that starts a new key. Returns it, and the keys with it. `removed` are
    /// the recipients who were removed so far.
    pub fn renew(
        &self,
        (parent, numbering): (&Head, &Numbering),
        new: NewEntry,
        started: NewKey,
        removed: Vec<String>,
    ) -> Result<(Entry, SessionKeys), SealError> {
        let key = Key::new(&started.key);
        let place = Place::of_new(parent, numbering, &new);
        let shown = shown(&self.seal, &place, &[], None)?;
        let before = key.encrypt(&shown, self.last().bytes().as_slice())?;
        let change = KeyChange {
            recipients: started.recipients,
            removed,
            key: Some(key.name()),
        };
        let keyed = Keyed {
            keys: started.wrapped,
            before: Some(before),
            proof: String::new(),
        };
        self.change((parent, numbering), new, keyed, change, Some(key))
    }

    fn change(
        &self,
        (parent, numbering): (&Head, &Numbering),
        new: NewEntry,
        mut keyed: Keyed,
        change: KeyChange,
        key: Option<Key>,
    ) -> Result<(Entry, SessionKeys), SealError> {
        let words = Zeroizing::new(serde_json::to_vec(&change).map_err(|_| SealError::Failed)?);
        let place = Place::of_new(parent, numbering, &new);
        let shown = shown(&self.seal, &place, &keyed.keys, keyed.before.as_deref())?;
        keyed.proof = self.last().encrypt(&shown, &words)?;
        let new = NewEntry {
            body: Body::Keyed(keyed.clone()),
            ..new
        };
        let chained = Entry::chain(parent, vec![new])?;
        let entry = chained.into_iter().next().ok_or(SealError::Failed)?;
        let mut keys = self.clone();
        if let Some(key) = key {
            keys.start(entry.seq, key);
        }
        keys.note(&entry, &keyed, change);
        Ok((entry, keys))
    }
}
