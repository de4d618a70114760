//! Sealed entries as they are stored: the words are ciphertext, counts and times are visible. The
//! module `seal` encrypts and decrypts them.

use serde::{Deserialize, Serialize};

use super::body::Body;
use super::message::{Message, Role, SpeakerKind, Usage};
use crate::id::{EntryId, SessionId};
use crate::seal::HIDDEN_PROJECT;

/// Seal of a session, in its opening entry: the wrapped key, and the words of that entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Version of the encryption.
    pub v: u32,
    /// Session in which the key was made. Its forks share its entries, and so its key.
    pub origin: SessionId,
    /// The key of the entries, encrypted for recipients or a passphrase: an age file in base64.
    pub key: String,
    /// Key of the hashes that entries show of other programs' ids, in hexadecimal digits. It hides them
    /// only from who does not guess; seals of version 1 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finder: Option<String>,
    /// Ciphertext of the opening entry's words, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// A sealed entry: what lists and counts need, and ciphertext.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// Type of the entry.
    pub of: String,
    /// Role of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether an answer is due after this entry; `None` if the entry does not change that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<bool>,
    /// Id of the command that changed a title or tags, so that it can be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<EntryId>,
    /// Hashes of the ids that another program has for the session or its requests, so that its file is
    /// recognised without the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Ciphertext of the entry's own fields, in base64.
    pub data: String,
}

/// A change of those who can read a sealed session. The key before it proves that its author could read
/// the session; an unsealed session keeps only the entry's place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    /// The key of the entries from here on, encrypted for recipients or a passphrase: age files in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The key before, encrypted with the new one, if one starts here: who has the newest key can read all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What changes, encrypted with the key before, which authenticates all of the entry.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proof: String,
}

impl Keyed {
    /// Returns true if the entry only keeps a place, as in an unsealed session.
    pub fn is_empty(&self) -> bool {
        *self == Keyed::default()
    }
}

impl Sealed {
    /// Returns the visible part of an entry, without ciphertext.
    pub(crate) fn visible(body: &Body) -> Sealed {
        let (role, usage, due, operation) = match body {
            Body::Message(message) => (Some(message.role), message.usage, due(message), None),
            Body::Compacted(compacted) => (None, compacted.usage, None, None),
            Body::Failed(_) => (None, None, Some(false), None),
            Body::Renamed(renamed) => (None, None, None, Some(renamed.operation)),
            Body::Tagged(tagged) => (None, None, None, Some(tagged.operation)),
            _ => (None, None, None, None),
        };
        Sealed {
            of: body.kind().to_owned(),
            role,
            usage,
            due,
            operation,
            ids: Vec::new(),
            data: String::new(),
        }
    }

    /// Returns true if the entry is housekeeping such as a title, as [`Body::is_tidying`] says.
    pub(super) fn is_tidying(&self) -> bool {
        matches!(self.of.as_str(), "renamed" | "tagged" | "imported")
    }
}

/// Returns whether an answer is due after a message.
fn due(message: &Message) -> Option<bool> {
    match message.speaker.kind {
        SpeakerKind::Human => {
            let mut addressees = message.addressees.iter();
            Some(message.addressees.is_empty() || addressees.any(|one| one.member.is_some()))
        }
        SpeakerKind::Ai => Some(!message.tool_calls.is_empty()),
        SpeakerKind::System | SpeakerKind::Tool => None,
    }
}

impl Body {
    /// Returns true if the body is stored as it is in a sealed session too: it shows no words, and
    /// stores write or need it without the key. In a sealed session, every other body is damage.
    pub fn is_wordless(&self) -> bool {
        match self {
            Body::Trashed(_)
            | Body::Restored(_)
            | Body::Undone(_)
            | Body::Lost(_)
            | Body::Repaired(_)
            | Body::Merged(_)
            | Body::Keyed(_)
            | Body::Sealed(_) => true,
            Body::Created(created) => {
                let shown = [&created.title, &created.team, &created.cwd];
                self.has_sealed_words()
                    && created.terms.is_none()
                    && shown.iter().all(|text| text.is_none())
                    && hides(created.project.as_ref(), &created.project_ids)
            }
            // A fork without a title and terms of its own has no words, so that it can be made without the
            // key.
            Body::Forked(forked) => {
                let shown = [&forked.title, &forked.cwd];
                forked.terms.is_none()
                    && shown.iter().all(|text| text.is_none())
                    && hides(forked.project.as_ref(), &forked.project_ids)
            }
            _ => false,
        }
    }

    /// Returns true if the body has ciphertext.
    pub(super) fn has_sealed_words(&self) -> bool {
        let in_opening = self.seal().is_some_and(|seal| seal.data.is_some());
        match self {
            Body::Sealed(_) => true,
            Body::Keyed(keyed) => !keyed.is_empty(),
            _ => in_opening,
        }
    }

    /// Returns the seal, if the body opens a sealed session.
    pub fn seal(&self) -> Option<&Seal> {
        match self {
            Body::Created(created) => created.seal.as_deref(),
            Body::Forked(forked) => forked.seal.as_deref(),
            _ => None,
        }
    }
}

/// Returns true if the ids of a project cannot be read.
fn hides(project: Option<&String>, ids: &[String]) -> bool {
    let mut all = project.into_iter().chain(ids);
    all.all(|id| id.starts_with(HIDDEN_PROJECT))
}

/// Whether a log is sealed, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SealState {
    /// The entry that tells it is not among those that were read.
    #[default]
    Unknown,
    /// The session is not sealed.
    Plain,
    /// The session is sealed.
    Sealed,
}

impl SealState {
    /// Returns the state after an entry as it is stored.
    #[must_use]
    pub fn after(self, body: &Body) -> SealState {
        match body {
            _ if body.seal().is_some() => SealState::Sealed,
            Body::Created(_) => SealState::Plain,
            _ => self,
        }
    }

    /// Returns true if an entry with words stands in plain in a sealed session: a writer without the key
    /// could have written it.
    pub fn is_foreign(self, body: &Body) -> bool {
        self == SealState::Sealed && !body.is_wordless()
    }
}
