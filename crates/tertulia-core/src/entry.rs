//! One line of a session log: the only storage format.
//!
//! ```text
//! {"v":1,"seq":2,"id":"…","at":"2026-11-15T20:46:27.5Z","type":"message",…,"hash":"…"}
//! ```
//!
//! Every backend stores exactly these bytes. The hash covers the parent's hash and all bytes of the
//! line before the hash field, so it can be verified without serialising the entry again: fields
//! added by a later version survive in this one.

mod body;
mod branch;
mod environment;
mod hash;
mod housekeeping;
mod imported;
mod lineage;
mod message;
mod numbering;
mod paired;
mod raw;
mod sealed;
mod shell;
mod switched;
mod terms;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use body::{
    Body, Compacted, Created, Failed, Kind, Linked, Lost, Renamed, Repaired, Seated, Tagged,
    Tasked, Touched, Undone,
};
pub use branch::branch_id;
pub(crate) use branch::with_references;
pub use environment::Environment;
pub use hash::Hash;
pub use housekeeping::{SealedChanges, Tail, can_be_merged, merged_tail};
pub use imported::{Imported, ImportedParent, ImportedRelation};
pub use lineage::{Forked, Merged, Origin, Relation, Replayed};
pub use message::{
    Addressee, Attachment, Intent, Message, NOT_RUN_MARK, Role, Speaker, SpeakerKind, ToolCall,
    ToolOutcome, Usage, human, plain,
};
pub use numbering::Numbering;
pub use paired::{Budgeted, Paired, PairedAgent, Thought};
pub use sealed::{Keyed, Seal, SealState, Sealed};
pub use shell::{ShellCommand, ShellOutput};
pub use switched::Switched;
pub use terms::Terms;

use crate::id::{EntryId, Seq};

/// Version of the line format of all entries but those of [`KEYED_VERSION`].
pub const VERSION: u32 = 1;
/// Version of the line format of key entries, and the newest that this program reads: a program that does
/// not know them must not take later entries for damaged ones, or write with a key that was replaced.
pub const KEYED_VERSION: u32 = 2;
/// Beginning of the lines of each version that this program reads.
const BEGINNINGS: [&str; 2] = ["{\"v\":1,", "{\"v\":2,"];

/// Maximum size of one message, in bytes.
pub const MESSAGE_LIMIT: usize = 1_000_000;

/// Separator between the fields of an entry and its hash.
const HASH_FIELD: &str = ",\"hash\":\"";
/// Length of the hash field with its value and the closing brace.
const HASH_TAIL: usize = HASH_FIELD.len() + 64 + 2;

/// End of a log as a writer knows it: the parent of the next entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// Sequence number of the last entry.
    pub seq: Seq,
    /// Hash of the last entry.
    pub hash: Hash,
}

impl Head {
    /// Head of a log without entries.
    pub const START: Head = Head {
        seq: Seq::START,
        hash: Hash::NONE,
    };
}

/// Who wrote an entry, and on which machine: several people and machines share a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Name of the user.
    pub name: Box<str>,
    /// Name of the machine.
    pub host: Box<str>,
}

/// An entry before it is appended: it has no sequence number and no hash yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Id of the entry.
    pub id: EntryId,
    /// Time of the event.
    pub at: Timestamp,
    /// The event.
    pub body: Body,
    /// Number of redacted secrets, by kind.
    pub redacted: BTreeMap<String, u32>,
    /// Who writes it, where that is known.
    pub author: Option<Author>,
}

/// One entry of a log, with its stored line.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Sequence number.
    pub seq: Seq,
    /// Id of the entry.
    pub id: EntryId,
    /// Time of the event.
    pub at: Timestamp,
    /// Number of entries that follow in the same append. An append counts only if all are present.
    pub then: u32,
    /// The event.
    pub body: Body,
    /// Number of redacted secrets, by kind.
    pub redacted: BTreeMap<String, u32>,
    /// Who wrote it; entries of imports and of earlier versions do not say.
    pub author: Option<Author>,
    /// Hash over the parent's hash and this line.
    pub hash: Hash,
    line: Box<str>,
    /// True if `body` was decrypted, so that the line has another one.
    opened: bool,
}

/// The fields in front of the hash, in the order in which they are written.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
}

/// Fields that every line has. Read first, because the type decides how the body is parsed.
#[derive(Deserialize)]
struct Envelope<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    #[serde(default)]
    then: u32,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    redacted: BTreeMap<String, u32>,
    author: Option<Box<str>>,
    host: Option<Box<str>>,
}

/// Only the version: a line of a later version may differ in all other fields.
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
    /// Gives each of `new` its sequence number after `parent`, its hash and its line. All of them
    /// form one append.
    pub fn chain(parent: &Head, new: Vec<NewEntry>) -> Result<Vec<Entry>, EntryError> {
        let mut head = *parent;
        let mut then = u32::try_from(new.len()).unwrap_or(u32::MAX);
        let mut chained = Vec::with_capacity(new.len());
        for new_entry in new {
            then -= 1;
            let entry = Self::chain_one(&head, then, new_entry)?;
            head = entry.head();
            chained.push(entry);
        }
        Ok(chained)
    }

    fn chain_one(parent: &Head, then: u32, new: NewEntry) -> Result<Entry, EntryError> {
        let seq = parent.seq.next();
        let mut entry = Entry {
            seq,
            id: new.id,
            at: new.at,
            then,
            body: new.body,
            redacted: new.redacted,
            author: new.author,
            hash: Hash::NONE,
            line: Box::default(),
            opened: false,
        };
        let mut line = entry.content()?;
        entry.hash = Hash::of(&parent.hash, line.as_bytes());
        entry.hash.append_to(&mut line);
        entry.line = line.into();
        Ok(entry)
    }

    /// Serialises the fields in front of the hash.
    fn content(&self) -> Result<String, EntryError> {
        let seq = self.seq;
        let mut line = serde_json::to_string(&Fields {
            v: self.body.line_version(),
            seq,
            id: self.id,
            at: self.at,
            then: self.then,
            body: &self.body,
            redacted: &self.redacted,
            author: self.author.as_ref().map(|author| &*author.name),
            host: self.author.as_ref().map(|author| &*author.host),
        })
        .map_err(|source| EntryError::Unwritable { seq, source })?;
        line.pop(); // removes the closing brace: the hash field comes before it
        Ok(line)
    }

    /// Parses a line. Does not verify the hash against a parent; [`Entry::follows`] does.
    pub fn decode(line: &[u8]) -> Result<Entry, EntryError> {
        let line = std::str::from_utf8(line).map_err(|_| EntryError::NotUtf8)?;
        let (_, hash) = split_hash(line).ok_or_else(|| unreadable_or_newer(line))?;
        let envelope: Envelope<'_> =
            serde_json::from_str(line).map_err(|_| unreadable_or_newer(line))?;
        let body = Body::decode(&envelope.kind, line).map_err(|source| {
            let reason = source.to_string();
            match unreadable_or_newer(line) {
                EntryError::Unreadable { .. } => EntryError::Unreadable { reason },
                newer => newer,
            }
        })?;
        // The version is always written first, so a prefix check is enough here.
        let beginning = match body.line_version() {
            KEYED_VERSION => BEGINNINGS[1],
            _ => BEGINNINGS[0],
        };
        if !line.starts_with(beginning) {
            return Err(unreadable_or_newer(line));
        }
        Ok(Entry {
            seq: envelope.seq,
            id: envelope.id,
            at: envelope.at,
            then: envelope.then,
            body,
            redacted: envelope.redacted,
            author: envelope
                .author
                .zip(envelope.host)
                .map(|(name, host)| Author { name, host }),
            hash,
            line: line.into(),
            opened: false,
        })
    }

    /// Returns the stored line, without a line feed.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Returns the entry with its decrypted words. Its line and hash stay those of the sealed entry.
    #[must_use]
    pub fn opened(self, mut body: Body, redacted: BTreeMap<String, u32>) -> Entry {
        if let Body::Created(Created { seal, .. }) | Body::Forked(Forked { seal, .. }) = &mut body {
            *seal = self.body.seal().cloned().map(Box::new);
        }
        Entry {
            body,
            redacted,
            opened: true,
            ..self
        }
    }

    /// Returns the entry as it is stored: without decrypted words.
    pub fn stored(&self) -> Result<Cow<'_, Entry>, EntryError> {
        match self.opened {
            true => Entry::decode(self.line.as_bytes()).map(Cow::Owned),
            false => Ok(Cow::Borrowed(self)),
        }
    }

    /// Returns a line with the entry's words, for readers that have no key. The line of an entry
    /// that was decrypted does not match its hash.
    pub fn readable_line(&self) -> Result<Cow<'_, str>, EntryError> {
        if !self.opened {
            return Ok(Cow::Borrowed(&self.line));
        }
        let mut line = self.content()?;
        self.hash.append_to(&mut line);
        Ok(Cow::Owned(line))
    }

    /// Returns the head of a log that ends with this entry.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            hash: self.hash,
        }
    }

    /// Returns true if this entry is unaltered and continues a log that ends at `parent`.
    pub fn follows(&self, parent: &Head) -> bool {
        self.seq == parent.seq.next() && line_follows(&self.line, &parent.hash) == Some(self.hash)
    }

    /// Returns the entry with its hash recomputed for another parent; the content stays. Used by
    /// repairs.
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

    /// Returns the entry with another body, chained after `parent`.
    pub fn with_body(
        self,
        parent: &Head,
        body: Body,
        redacted: BTreeMap<String, u32>,
    ) -> Result<Entry, EntryError> {
        let new = NewEntry {
            id: self.id,
            at: self.at,
            body,
            redacted,
            author: self.author,
        };
        Self::chain_one(parent, self.then, new)
    }

    /// Returns true if the entry has words that are not decrypted.
    pub fn is_sealed(&self) -> bool {
        !self.opened && self.body.has_sealed_words()
    }

    /// Returns true if the entry is stored with the body that it has.
    pub fn is_in_plain(&self) -> bool {
        !self.opened
    }

    /// Returns the message if this entry is one.
    pub fn message(&self) -> Option<&Message> {
        match &self.body {
            Body::Message(message) => Some(message),
            _ => None,
        }
    }
}

impl Body {
    fn line_version(&self) -> u32 {
        match self {
            Body::Keyed(_) => KEYED_VERSION,
            _ => VERSION,
        }
    }
}

/// Returns a line without what stands before its sequence number.
pub fn after_seq_name(line: &[u8]) -> Option<&[u8]> {
    let rests = BEGINNINGS.iter();
    let mut rests = rests.filter_map(|beginning| line.strip_prefix(beginning.as_bytes()));
    rests.next()?.strip_prefix(b"\"seq\":")
}

/// Returns the hash of a line if the line is complete and continues `parent`.
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
        Ok(Versioned { v }) if v > KEYED_VERSION => EntryError::Newer { found: v },
        Ok(Versioned { v: KEYED_VERSION }) => EntryError::Unreadable {
            reason: "its format is that of entries with keys, and it is none".into(),
        },
        Ok(_) => EntryError::Unreadable {
            reason: "it lacks fields that every entry has".into(),
        },
        Err(error) => EntryError::Unreadable {
            reason: error.to_string(),
        },
    }
}

/// Reasons why a line cannot be read or written as an entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// A later version of the program wrote the line.
    #[error("the entry has format {found}, this program reads up to {KEYED_VERSION}")]
    Newer {
        /// Version given in the line.
        found: u32,
    },
    /// The bytes are not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The text is not an entry.
    #[error("the line is not an entry: {reason}")]
    Unreadable {
        /// Parse error.
        reason: String,
    },
    /// The entry cannot be serialised.
    #[error("entry {seq} cannot be written")]
    Unwritable {
        /// Sequence number of the entry.
        seq: Seq,
        /// Serialisation error.
        source: serde_json::Error,
    },
}
