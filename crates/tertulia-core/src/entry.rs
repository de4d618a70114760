//! One line of a session's log: the only form at rest.
//!
//! ```text
//! {"v":1,"seq":2,"id":"…","at":"2026-11-15T20:46:27.5Z","type":"message",…,"hash":"…"}
//! ```
//!
//! Every backend keeps exactly these bytes. The hash covers the parent's hash and everything on the
//! line before the hash itself, so that it can be checked without writing the entry anew: fields that
//! a later version adds survive in the hands of this one.

mod body;
mod imported;
mod message;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use body::{
    Body, Budgeted, Compacted, Created, Failed, Forked, Kind, Linked, Lost, Origin, Paired,
    PairedAgent, Relation, Renamed, Repaired, Seated, Tagged, Tasked, Thought, Touched, Undone,
};
pub use imported::Imported;
pub use message::{
    Addressee, Intent, Message, NOT_RUN_MARK, Role, Speaker, SpeakerKind, ToolCall, ToolOutcome,
    Usage, human, plain,
};

use crate::id::{EntryId, Seq};

/// The version of the line format that this program writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// The most that one message may weigh.
pub const MESSAGE_LIMIT: usize = 1_000_000;

/// What stands between an entry's fields and its hash.
const HASH_FIELD: &str = ",\"hash\":\"";
/// The length of the hash field with its value and the closing brace.
const HASH_TAIL: usize = HASH_FIELD.len() + 64 + 2;

/// A BLAKE3 hash over the parent's hash and the entry's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The parent's hash of a first entry.
    pub const NONE: Hash = Hash([0; 32]);

    /// The hash of a text by itself.
    pub fn of_text(text: &str) -> Hash {
        Hash::of(&Hash::NONE, text.as_bytes())
    }

    /// The bytes of the hash.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A hash from its bytes, if there are 32 of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Hash> {
        bytes.try_into().ok().map(Hash)
    }

    fn of(parent: &Hash, content: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&parent.0);
        hasher.update(content);
        Hash(*hasher.finalize().as_bytes())
    }

    fn from_hex(hex: &str) -> Option<Hash> {
        blake3::Hash::from_hex(hex)
            .ok()
            .map(|hash| Hash(*hash.as_bytes()))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Hash::from_hex(&hex)
            .ok_or_else(|| serde::de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

/// The end of a log as a writer knows it: what the next entry continues from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// The last entry's place.
    pub seq: Seq,
    /// The last entry's hash.
    pub hash: Hash,
}

impl Head {
    /// The head of a log without entries.
    pub const START: Head = Head {
        seq: Seq::START,
        hash: Hash::NONE,
    };
}

/// What is about to become an entry: it has no place in a log yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsealed {
    /// The entry's own name.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub body: Body,
    /// How many secrets of each kind were replaced in it.
    pub redacted: BTreeMap<String, u32>,
}

/// One entry of a log, with its line as it is at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its place.
    pub seq: Seq,
    /// Its name.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// How many entries after this one belong to the same append: all are there, or none counts.
    pub then: u32,
    /// What happened.
    pub body: Body,
    /// How many secrets of each kind were replaced in it.
    pub redacted: BTreeMap<String, u32>,
    /// The hash over the parent's hash and this line.
    pub hash: Hash,
    line: Box<str>,
}

/// The fields in front of the body, in the order in which they are written.
#[derive(Serialize)]
struct Fields<'a> {
    v: u32,
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    #[serde(skip_serializing_if = "is_zero")]
    then: u32,
    #[serde(flatten)]
    body: &'a Body,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    redacted: &'a BTreeMap<String, u32>,
}

/// What every line has, whatever its type. Read first, so that the type decides how the rest is read.
#[derive(Deserialize)]
struct Envelope<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    #[serde(default)]
    then: u32,
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    redacted: BTreeMap<String, u32>,
}

/// Only the version: a line of a later version may differ in everything else.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Entry {
    /// Gives each of `new` its place after `parent`, its hash and its line. Together they are one append.
    pub fn seal(parent: &Head, new: Vec<Unsealed>) -> Result<Vec<Entry>, EntryError> {
        let mut head = *parent;
        let mut then = u32::try_from(new.len()).unwrap_or(u32::MAX);
        let mut sealed = Vec::with_capacity(new.len());
        for unsealed in new {
            then -= 1;
            let entry = Self::seal_one(&head, then, unsealed)?;
            head = entry.head();
            sealed.push(entry);
        }
        Ok(sealed)
    }

    fn seal_one(parent: &Head, then: u32, new: Unsealed) -> Result<Entry, EntryError> {
        let seq = parent.seq.next();
        let mut line = serde_json::to_string(&Fields {
            v: VERSION,
            seq,
            id: new.id,
            at: new.at,
            then,
            body: &new.body,
            redacted: &new.redacted,
        })
        .map_err(|source| EntryError::Unwritable { seq, source })?;
        line.pop(); // the closing brace: the hash stands before it
        let hash = Hash::of(&parent.hash, line.as_bytes());
        line.push_str(HASH_FIELD);
        line.push_str(&hash.to_string());
        line.push_str("\"}");
        Ok(Entry {
            seq,
            id: new.id,
            at: new.at,
            then,
            body: new.body,
            redacted: new.redacted,
            hash,
            line: line.into(),
        })
    }

    /// Reads a line. Whether its hash continues its parent's is for [`Entry::follows`] to say.
    pub fn decode(line: &[u8]) -> Result<Entry, EntryError> {
        let line = std::str::from_utf8(line).map_err(|_| EntryError::NotUtf8)?;
        let (_, hash) = split_hash(line).ok_or_else(|| unreadable_or_newer(line))?;
        let envelope: Envelope<'_> =
            serde_json::from_str(line).map_err(|_| unreadable_or_newer(line))?;
        // The version is looked at only where it can differ: at the front, where it is written.
        if !line.starts_with("{\"v\":1,") {
            return Err(unreadable_or_newer(line));
        }
        let body = Body::decode(&envelope.kind, line).map_err(|source| EntryError::Unreadable {
            reason: source.to_string(),
        })?;
        Ok(Entry {
            seq: envelope.seq,
            id: envelope.id,
            at: envelope.at,
            then: envelope.then,
            body,
            redacted: envelope.redacted,
            hash,
            line: line.into(),
        })
    }

    /// The line as it is at rest, without a line feed.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The head of a log that ends with this entry.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            hash: self.hash,
        }
    }

    /// Whether this entry, unaltered, continues a log that ends at `parent`.
    pub fn follows(&self, parent: &Head) -> bool {
        self.seq == parent.seq.next() && line_follows(&self.line, &parent.hash) == Some(self.hash)
    }

    /// The same entry at the end of another log: its content stays, its hash is made anew. For repairs.
    #[must_use]
    pub fn continuing(self, parent: &Head) -> Entry {
        let content = &self.line[..self.line.len() - HASH_TAIL];
        let hash = Hash::of(&parent.hash, content.as_bytes());
        let line = format!("{content}{HASH_FIELD}{hash}\"}}");
        Entry {
            hash,
            line: line.into(),
            ..self
        }
    }

    /// The same entry with another body, after `parent`.
    pub fn with_body(
        self,
        parent: &Head,
        body: Body,
        redacted: BTreeMap<String, u32>,
    ) -> Result<Entry, EntryError> {
        let new = Unsealed {
            id: self.id,
            at: self.at,
            body,
            redacted,
        };
        Self::seal_one(parent, self.then, new)
    }

    /// The message, if this entry is one.
    pub fn message(&self) -> Option<&Message> {
        match &self.body {
            Body::Message(message) => Some(message),
            _ => None,
        }
    }
}

/// The hash that a line carries, if the line is whole and continues `parent`.
pub fn line_follows(line: &str, parent: &Hash) -> Option<Hash> {
    let (content, hash) = split_hash(line)?;
    (Hash::of(parent, content.as_bytes()) == hash).then_some(hash)
}

fn split_hash(line: &str) -> Option<(&str, Hash)> {
    let at = line.len().checked_sub(HASH_TAIL)?;
    let tail = line
        .get(at..)?
        .strip_prefix(HASH_FIELD)?
        .strip_suffix("\"}")?;
    Some((&line[..at], Hash::from_hex(tail)?))
}

fn unreadable_or_newer(line: &str) -> EntryError {
    match serde_json::from_str::<Versioned>(line) {
        Ok(Versioned { v }) if v > VERSION => EntryError::Newer { found: v },
        Ok(_) => EntryError::Unreadable {
            reason: "it lacks fields that every entry has".into(),
        },
        Err(error) => EntryError::Unreadable {
            reason: error.to_string(),
        },
    }
}

/// Why a line is not an entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// A later version of the program wrote it.
    #[error("the entry has format {found}, this program reads up to {VERSION}")]
    Newer {
        /// The version that the line names.
        found: u32,
    },
    /// The bytes are no text.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The text is no entry.
    #[error("the line is not an entry: {reason}")]
    Unreadable {
        /// What the reader stumbled over.
        reason: String,
    },
    /// The entry cannot be put on a line.
    #[error("entry {seq} cannot be written")]
    Unwritable {
        /// Its place.
        seq: Seq,
        /// Why.
        source: serde_json::Error,
    },
}
