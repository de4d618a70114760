//! Encryption of sealed sessions, entry by entry.
//!
//! Each session has a key of its own, and may have further ones from some entry on (`ring`). An entry's words are encrypted with XChaCha20-Poly1305. The
//! additional data is everything that the stored entry shows, and its place: the session in which
//! the key was made, its sequence number and the format version. A sealed entry that was altered or
//! moved is therefore refused, even if its hash was computed again. The sequence number is the one
//! that the entry had first: a store that keeps a diverged branch in a fork needs no key for that.
//!
//! The nonce is a keyed hash over the additional data and the words. Equal entries thus have equal
//! bytes (a draft becomes the same entry every time), and no source of chance is needed here; every
//! entry has an id of its own, so that equal words in two entries differ.

mod ids;
mod key;
mod moved;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::entry::{
    Author, Body, Created, Entry, EntryError, Forked, Head, Keyed, NewEntry, Numbering, Seal,
    Sealed, VERSION, with_references,
};
use crate::id::{EntryId, Seq, SessionId};
use crate::query::ProjectIds;

pub use ids::{HiddenId, hidden_id};
use key::Key;
pub use ring::{KeyEntry, NewKey, Recipients, Ring};
use ring::{KnownKeyEntry, PlacedKey};

/// Version of the encryption that this program writes, and the newest that it reads. Seals of version 1
/// show nothing of other programs' ids.
pub const SEAL_VERSION: u32 = 2;
/// Version of a seal without a finder.
const WITHOUT_FINDER: u32 = 1;
/// Bytes of a session's key.
pub const KEY_BYTES: usize = 32;
/// Beginning of what a sealed session shows of its project.
pub const HIDDEN_PROJECT: &str = "sealed:";
/// Hexadecimal digits of a hidden project id.
const PROJECT_DIGITS: usize = 32;

/// The secret bytes of a session's key. Overwritten in memory when dropped.
pub type KeyBytes = Zeroizing<[u8; KEY_BYTES]>;

/// The unlocked keys of a session, with its seal.
#[derive(Clone)]
pub struct SessionKeys {
    seal: Seal,
    /// The first is that of the seal.
    keys: Vec<PlacedKey>,
    /// Key entries, in order.
    entries: Vec<KnownKeyEntry>,
    recipients: Recipients,
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the bytes.
        write!(f, "SessionKeys({})", self.seal.origin)
    }
}

/// Everything about an entry that is authenticated beside its words.
#[derive(Serialize)]
struct Shown<'a> {
    seal: u32,
    v: u32,
    session: SessionId,
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    author: Option<(&'a str, &'a str)>,
    entry: &'a Sealed,
    /// That of the seal, in openings.
    #[serde(skip_serializing_if = "Option::is_none")]
    finder: Option<&'a str>,
}

/// The words of an entry: its own fields, and what was redacted in them.
#[derive(Serialize)]
struct Words<'a> {
    #[serde(flatten)]
    body: &'a Body,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    redacted: &'a BTreeMap<String, u32>,
}

/// The part of the words that is not the body.
#[derive(Deserialize)]
struct Redacted {
    #[serde(default)]
    redacted: BTreeMap<String, u32>,
}

impl SessionKeys {
    /// Creates the seal of a new session, and its keys, from the secret bytes of its key and their wrapped
    /// form.
    pub fn of_new(origin: SessionId, key: &KeyBytes, wrapped: String) -> SessionKeys {
        let key = Key::new(key);
        let seal = Seal {
            v: SEAL_VERSION,
            origin,
            key: wrapped,
            finder: Some(key.finder()),
            data: None,
        };
        SessionKeys::of_key(key, &seal)
    }

    /// Creates the keys of a session without key entries from its secret bytes and its seal.
    pub fn new(key: &KeyBytes, seal: &Seal) -> Result<SessionKeys, SealError> {
        if seal.v > SEAL_VERSION {
            return Err(SealError::Newer { found: seal.v });
        }
        Ok(SessionKeys::of_key(Key::new(key), seal))
    }

    fn of_key(key: Key, seal: &Seal) -> SessionKeys {
        let v = match seal.finder {
            Some(_) => SEAL_VERSION,
            None => WITHOUT_FINDER,
        };
        SessionKeys {
            seal: Seal {
                v,
                data: None,
                ..seal.clone()
            },
            keys: vec![PlacedKey {
                from: Seq::START,
                key,
            }],
            entries: Vec::new(),
            recipients: Recipients::default(),
        }
    }

    /// Returns the same key for a session that shares no entries with this one; `None` if it is not for all
    /// who have had one.
    pub fn for_session(&self, origin: SessionId) -> Option<SessionKeys> {
        let seal = Seal {
            origin,
            ..self.seal.clone()
        };
        match self.keys.as_slice() {
            [only] => Some(SessionKeys::of_key(only.key.clone(), &seal)),
            _ => None,
        }
    }

    /// Returns the seal that the opening entries of the session and its forks have, without words.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Encrypts a text that is no entry. `shown` is authenticated with it.
    pub fn encrypt(&self, shown: &[u8], text: &[u8]) -> Result<String, SealError> {
        self.last().encrypt(shown, text)
    }

    /// Decrypts a text that is no entry, unless it or `shown` was altered.
    pub fn decrypt(&self, shown: &[u8], data: &str) -> Result<Zeroizing<Vec<u8>>, SealError> {
        // It may have been written before the newest key was made.
        let opened = self.keys.iter().rev();
        let mut opened = opened.filter_map(|placed| placed.key.decrypt(shown, data).ok());
        opened.next().ok_or(SealError::Altered)
    }

    /// Seals an entry that becomes number `seq` of its log. Entries without words stay as they are.
    fn seal_new(
        &self,
        seq: Seq,
        numbering: &Numbering,
        new: NewEntry,
    ) -> Result<NewEntry, SealError> {
        if new.body.is_wordless() {
            return Ok(new);
        }
        let words = serde_json::to_string(&Words {
            body: &new.body,
            redacted: &new.redacted,
        });
        let words = words.map_err(|_| SealError::Failed)?;
        let words = with_places(new.body.kind(), words, numbering, |seq| {
            numbering.original(seq)
        });
        let place = Place {
            seq: numbering.original(seq),
            id: new.id,
            at: new.at,
            author: new.author.as_ref(),
        };
        let body = self.seal_body(seq, &place, &new.body, &words)?;
        Ok(NewEntry {
            body,
            redacted: BTreeMap::new(),
            ..new
        })
    }

    /// Seals entries and gives them their place after `parent`, as [`Entry::chain`] does. They keep
    /// their words in memory.
    pub fn chain(
        &self,
        parent: &Head,
        numbering: &Numbering,
        new: Vec<NewEntry>,
    ) -> Result<Vec<Entry>, SealError> {
        let mut seq = parent.seq;
        let mut words = Vec::with_capacity(new.len());
        let mut sealed = Vec::with_capacity(new.len());
        for entry in new {
            seq = seq.next();
            words.push((entry.body.clone(), entry.redacted.clone()));
            sealed.push(self.seal_new(seq, numbering, entry)?);
        }
        let chained = Entry::chain(parent, sealed)?.into_iter().zip(words);
        let with_words = chained.map(|(entry, (body, redacted))| match entry.is_sealed() {
            true => entry.opened(body, redacted),
            false => entry,
        });
        Ok(with_words.collect())
    }

    /// Seals an entry of a plain log, after `parent`. Its words keep their bytes, so that unsealing
    /// gives the plain line again.
    pub fn seal_entry(
        &self,
        parent: &Head,
        numbering: &Numbering,
        entry: &Entry,
    ) -> Result<Entry, SealError> {
        if let Some(keyed) = self.keyed_like(entry) {
            let body = Body::Keyed(keyed.clone());
            return Ok(entry.clone().with_body(parent, body, BTreeMap::new())?);
        }
        if entry.body.is_wordless() {
            return Ok(entry.clone().continuing(parent));
        }
        let words = entry.body_fields()?;
        let words = with_places(entry.body.kind(), words, numbering, |seq| {
            numbering.original(seq)
        });
        let place = Place::of(entry, numbering);
        let body = self.seal_body(entry.seq, &place, &entry.body, &words)?;
        Ok(entry.clone().with_body(parent, body, BTreeMap::new())?)
    }

    /// Returns a sealed entry as an entry of a plain log, after `parent`.
    pub fn unseal_entry(
        &self,
        parent: &Head,
        numbering: &Numbering,
        entry: &Entry,
    ) -> Result<Entry, SealError> {
        if let Body::Keyed(_) = entry.body {
            // The keys go; the place stays, since later entries refer to places.
            let body = Body::Keyed(Keyed::default());
            let redacted = entry.redacted.clone();
            return Ok(entry.clone().with_body(parent, body, redacted)?);
        }
        match self.words_of(entry, numbering)? {
            Some(words) => {
                let plain = entry.with_body_fields(parent, &words)?;
                match plain.body.seal() {
                    None => Ok(plain),
                    // Words of a fork's opening had the seal in them, once.
                    Some(_) => without_seal(parent, plain),
                }
            }
            // The opening of a fork that was made without the key.
            None if entry.body.seal().is_some() => {
                without_seal(parent, entry.stored()?.into_owned())
            }
            None => Ok(entry.clone().continuing(parent)),
        }
    }

    /// Returns an entry with its words, if it is sealed. Its line stays as it is stored. A key entry that is
    /// not authentic is an error.
    pub fn open(&self, numbering: &Numbering, entry: Entry) -> Result<Entry, SealError> {
        if !entry.is_sealed() {
            return Ok(entry);
        }
        if let Body::Keyed(_) = entry.body {
            return match self.has(&entry) {
                true => Ok(entry),
                false => Err(SealError::ForeignKey),
            };
        }
        let Some(words) = self.words_of(&entry, numbering)? else {
            return Ok(entry);
        };
        let kind = match &entry.body {
            Body::Sealed(sealed) => sealed.of.as_str(),
            body => body.kind(),
        };
        let body = Body::decode(kind, &words).map_err(|_| SealError::Altered)?;
        let redacted: Redacted = serde_json::from_str(&words).map_err(|_| SealError::Altered)?;
        Ok(entry.opened(body, redacted.redacted))
    }

    /// Decrypts the fields of an entry's body; `None` if it has no sealed words.
    fn words_of(
        &self,
        entry: &Entry,
        numbering: &Numbering,
    ) -> Result<Option<Zeroizing<String>>, SealError> {
        let stored = entry.stored()?;
        let place = Place::of(&stored, numbering);
        let (visible, data) = match &stored.body {
            Body::Sealed(sealed) => (
                Sealed {
                    data: String::new(),
                    ..sealed.clone()
                },
                &sealed.data,
            ),
            body => match body.seal().and_then(|seal| seal.data.as_ref()) {
                Some(data) => (Sealed::visible(body), data),
                None => return Ok(None),
            },
        };
        let shown = self.shown(&place, &visible)?;
        let words = self.at(stored.seq).decrypt(&shown, data)?;
        let words = std::str::from_utf8(&words).map_err(|_| SealError::Altered)?;
        let words = with_places(&visible.of, words.to_owned(), numbering, |seq| {
            numbering.stored(seq)
        });
        Ok(Some(words))
    }

    /// Seals the body of the entry that is number `seq` of its log.
    fn seal_body(
        &self,
        seq: Seq,
        place: &Place<'_>,
        body: &Body,
        words: &str,
    ) -> Result<Body, SealError> {
        let mut visible = Sealed::visible(body);
        if let Some(finder) = &self.seal.finder {
            visible.ids = ids::hidden_ids(finder, body);
        }
        let shown = self.shown(place, &visible)?;
        let data = self.at(seq).encrypt(&shown, words.as_bytes())?;
        let seal = |data| {
            Some(Box::new(Seal {
                data: Some(data),
                ..self.seal.clone()
            }))
        };
        let hidden = |ids: &[String]| ids.iter().map(|id| hidden_project(id)).collect();
        Ok(match body {
            Body::Created(created) => Body::Created(Created {
                session: created.session,
                kind: created.kind,
                title: None,
                team: None,
                // A store finds sealed sessions by it, so each has one.
                project: Some(hidden_project(
                    created.project.as_deref().unwrap_or_default(),
                )),
                project_ids: hidden(&created.project_ids),
                cwd: None,
                terms: None,
                seal: seal(data),
            }),
            Body::Forked(forked) => Body::Forked(Forked {
                session: forked.session,
                from: forked.from.clone(),
                relation: forked.relation,
                title: None,
                project: forked.project.as_deref().map(hidden_project),
                project_ids: hidden(&forked.project_ids),
                cwd: None,
                terms: None,
                seal: seal(data),
            }),
            _ => Body::Sealed(Sealed { data, ..visible }),
        })
    }

    fn shown(&self, place: &Place<'_>, entry: &Sealed) -> Result<Vec<u8>, SealError> {
        let author = place.author.map(|author| (&*author.name, &*author.host));
        let is_opening = matches!(entry.of.as_str(), "created" | "forked");
        let shown = Shown {
            seal: self.seal.v,
            v: VERSION,
            session: self.seal.origin,
            seq: place.seq,
            id: place.id,
            at: place.at,
            author,
            entry,
            finder: self.seal.finder.as_deref().filter(|_| is_opening),
        };
        serde_json::to_vec(&shown).map_err(|_| SealError::Failed)
    }
}

/// Returns the opening of a fork without the seal that it repeats.
fn without_seal(parent: &Head, entry: Entry) -> Result<Entry, SealError> {
    let mut body = entry.body.clone();
    if let Body::Forked(Forked { seal, .. }) = &mut body {
        *seal = None;
    }
    let redacted = entry.redacted.clone();
    Ok(entry.with_body(parent, body, redacted)?)
}

/// Returns the words of an entry of type `kind` with other sequence numbers where they name some.
fn with_places(
    kind: &str,
    words: String,
    numbering: &Numbering,
    place_of: impl Fn(Seq) -> Seq,
) -> Zeroizing<String> {
    Zeroizing::new(match kind {
        "compacted" if !numbering.is_empty() => with_references(words, place_of),
        _ => words,
    })
}

/// Where an entry stands, when and by whom it was written.
struct Place<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    author: Option<&'a Author>,
}

impl Place<'_> {
    fn of<'a>(entry: &'a Entry, numbering: &Numbering) -> Place<'a> {
        Place {
            seq: numbering.original(entry.seq),
            id: entry.id,
            at: entry.at,
            author: entry.author.as_ref(),
        }
    }

    /// Returns the place that an entry gets after `parent`.
    fn of_new<'a>(parent: &Head, numbering: &Numbering, new: &'a NewEntry) -> Place<'a> {
        Place {
            seq: numbering.original(parent.seq.next()),
            id: new.id,
            at: new.at,
            author: new.author.as_ref(),
        }
    }
}

/// Returns what a sealed session shows of a project id. A list of one project finds its sealed
/// sessions by it; a guess can be checked against it, but it cannot be read.
pub fn hidden_project(id: &str) -> String {
    let hash = blake3::Hasher::new_derive_key("tertulia 2026 sealed project id")
        .update(id.as_bytes())
        .finalize();
    format!("{HIDDEN_PROJECT}{}", &hash.to_hex()[..PROJECT_DIGITS])
}

/// Returns the ids of a project with what sealed sessions show of them.
pub fn with_hidden_ids(ids: &ProjectIds) -> ProjectIds {
    let hidden = ids.iter().map(hidden_project);
    ids.iter().map(str::to_owned).chain(hidden).collect()
}

/// Reasons why words cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A later version of the program sealed the session.
    #[error("it is sealed in format {found}, this program reads up to {SEAL_VERSION}")]
    Newer {
        /// Version of the seal.
        found: u32,
    },
    /// The ciphertext, or what it belongs to, is not what was written.
    #[error("its sealed words were altered, moved or sealed with another key")]
    Altered,
    /// A key entry is not by anyone who can read the session.
    #[error("this change of keys was not written with the session's key: it does not count")]
    ForeignKey,
    /// The words cannot be encrypted.
    #[error("it cannot be encrypted")]
    Failed,
    /// The entry itself cannot be read or written.
    #[error(transparent)]
    Entry(#[from] EntryError),
}
