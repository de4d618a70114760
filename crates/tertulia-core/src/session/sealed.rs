//! The fold over sealed entries: counts and times, without words.

use super::{Before, SessionMeta, Status};
use crate::entry::{Entry, Seal, Sealed};
use crate::seal::HIDDEN_PROJECT;

impl SessionMeta {
    /// Counts a sealed entry. Its words come with [`SessionMeta::of`] over decrypted entries.
    pub(super) fn count_sealed(&mut self, entry: &Entry, sealed: &Sealed) {
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
