//! The fold over sealed entries: counts and times, without words.

use serde::{Deserialize, Serialize};

use super::{Before, SessionMeta, Status};
use crate::entry::{Entry, Keyed, Seal, Sealed};
use crate::seal::{HIDDEN_PROJECT, SEAL_VERSION};

/// Ids of another program's sessions that are remembered: some agents begin one with every process.
const SESSIONS: usize = 100;
/// Ids of usage that are remembered since each of these began: its file begins with them, and so do copies.
const USAGES_EACH: usize = 8;

/// Ids of other programs as a sealed session shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenIds {
    /// Sessions that hold this one in another program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// First usage in each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usages: Vec<String>,
    /// Number of usages since the last session began.
    #[serde(default)]
    since: usize,
}

impl HiddenIds {
    /// Returns true if nothing is shown.
    pub fn is_empty(&self) -> bool {
        *self == HiddenIds::default()
    }

    fn note(&mut self, sealed: &Sealed) {
        let is_message = sealed.of == "message";
        for id in &sealed.ids {
            match is_message {
                false if !self.sessions.contains(id) => {
                    self.sessions.push(id.clone());
                    self.since = 0;
                }
                true if self.since < USAGES_EACH && !self.usages.contains(id) => {
                    self.usages.push(id.clone());
                    self.since += 1;
                }
                _ => {}
            }
        }
        let excess = self.sessions.len().saturating_sub(SESSIONS);
        self.sessions.drain(..excess);
        let excess = self.usages.len().saturating_sub(SESSIONS * USAGES_EACH);
        self.usages.drain(..excess);
    }
}

impl SessionMeta {
    /// Counts a sealed entry. Its words come with [`SessionMeta::of`] over decrypted entries.
    pub(super) fn count_sealed(&mut self, entry: &Entry, sealed: &Sealed) {
        self.hidden_ids.note(sealed);
        if sealed.of == "message" {
            self.messages += 1;
        }
        if let Some(usage) = sealed.usage {
            self.tokens = self.tokens.plus(usage);
        }
        if let Some(due) = sealed.due {
            self.status = if due { Status::Active } else { Status::Paused };
        }
        if matches!(sealed.of.as_str(), "message" | "failed") {
            self.updated_at = self.updated_at.max(entry.at);
        }
        if let Some(operation) = sealed.operation {
            let before = match sealed.of.as_str() {
                "renamed" => Before::Title(self.title.clone(), self.titled),
                _ => Before::Tags(self.tags.clone()),
            };
            self.remember(entry, operation, before);
        }
    }

    pub(super) fn note_keys(&mut self, entry: &Entry, keyed: &Keyed) {
        if !keyed.is_empty() {
            self.keyed.push(entry.head());
            self.refuse_older_programs();
        }
    }

    /// Gives the seal the version of one with key entries, which a program refuses that does not know them:
    /// it would go on writing with the first key.
    pub(super) fn refuse_older_programs(&mut self) {
        if let Some(seal) = self.seal.as_mut().filter(|_| !self.keyed.is_empty()) {
            seal.v = seal.v.max(SEAL_VERSION);
        }
    }

    /// Returns true if the session is sealed, and the words of this metadata are not decrypted.
    pub fn is_locked(&self) -> bool {
        let hidden = |project: &String| project.starts_with(HIDDEN_PROJECT);
        self.seal.is_some() && self.project.as_ref().is_some_and(hidden)
    }
}

/// Returns a seal without the words of the entry that it came with.
pub(super) fn wrapped_key(seal: Option<&Seal>) -> Option<Box<Seal>> {
    seal.map(|seal| {
        Box::new(Seal {
            data: None,
            ..seal.clone()
        })
    })
}
