//! What an import says of each file.

use std::path::Path;

use serde_json::{Value, json};
use tertulia::formats::jsonl::SecretCounts;
use tertulia::store::Adopted;

use crate::talk::notice::counts;

/// What became of a file.
#[derive(Debug)]
pub struct Outcome {
    /// In words, on one line.
    pub words: String,
    /// What else there is to say, a line each.
    pub details: Vec<String>,
    /// For scripts.
    pub object: Value,
}

impl Outcome {
    /// What became of a file whose session was taken in.
    pub fn of(path: &Path, adopted: Adopted, words: String) -> Outcome {
        let (result, entries) = match adopted {
            Adopted::Created { entries, .. } => ("created", entries),
            Adopted::Extended { entries, .. } => ("extended", entries),
            Adopted::Known { .. } => ("known", 0),
            Adopted::Forked { entries, .. } => ("forked", entries),
        };
        let object = json!({
            "path": path.display().to_string(),
            "result": result,
            "session": adopted.id(),
            "entries": entries,
        });
        Outcome {
            words,
            details: Vec::new(),
            object,
        }
    }

    /// Adds the secrets that a log had, and whether they were replaced or kept.
    pub fn with_secrets(mut self, secrets: &SecretCounts, replaced: bool) -> Outcome {
        let (key, detail) = match replaced {
            true => ("redacted", format!("redacted: {}", counts(secrets))),
            false => (
                "secrets",
                format!(
                    "secrets kept as they are: {} (--redact replaces them)",
                    counts(secrets)
                ),
            ),
        };
        self.object[key] = json!(secrets);
        if !secrets.is_empty() {
            self.details.push(detail);
        }
        self
    }
}

/// What became of a session; `kept` is what a new one has kept.
pub fn words(adopted: Adopted, dry_run: bool, kept: &str) -> String {
    let would = if dry_run { "would be " } else { "" };
    match adopted {
        Adopted::Created { id, .. } => format!("{would}taken in as {} ({kept})", id.short()),
        Adopted::Extended { id, entries } => {
            format!("{entries} new entries {would}added to {}", id.short())
        }
        Adopted::Known { id } => format!("nothing new: {} has it all", id.short()),
        Adopted::Forked { id, from, entries } => {
            format!(
                "{} has gone another way; its {entries} own entries {would}kept as the fork {}",
                from.short(),
                id.short()
            )
        }
    }
}
