//! What an import says of each file.

use std::path::Path;

use serde_json::{Value, json};
use tertulia_core::entry::Body;
use tertulia_core::jsonl::SecretCounts;
use tertulia_store::{Adopted, Taken};

use tertulia_engine::notice::redaction_counts;

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
            true => (
                "redacted",
                format!("redacted: {}", redaction_counts(secrets)),
            ),
            false => (
                "secrets",
                format!(
                    "secrets kept as they are: {} (--redact replaces them)",
                    redaction_counts(secrets)
                ),
            ),
        };
        self.object[key] = json!(secrets);
        if !secrets.is_empty() {
            self.details.push(detail);
        }
        self
    }

    /// Adds what was kept, changed and lost of another program's session. Of one that was there already
    /// only scripts are told.
    pub fn with_report(
        mut self,
        taken: &Taken,
        kept: &Value,
        changed: &[String],
        lost: &[String],
    ) -> Outcome {
        let redacted = taken.redacted();
        if !matches!(taken.adopted, Adopted::Known { .. }) {
            let changed = changed.iter().map(|what| format!("changed: {what}"));
            let lost = lost.iter().map(|what| format!("lost: {what}"));
            self.details.extend(changed);
            if !redacted.is_empty() {
                self.details
                    .push(format!("redacted: {}", redaction_counts(&redacted)));
            }
            self.details.extend(lost);
        }
        let source = taken.entries.iter().find_map(|entry| match &entry.body {
            Body::Imported(source) => Some(source),
            _ => None,
        });
        self.object["original"] = json!(source.map(|source| &source.original));
        self.object["project"] = json!(source.and_then(|source| source.project.as_ref()));
        self.object["kept"] = kept.clone();
        self.object["changed"] = json!(changed);
        self.object["lost"] = json!(lost);
        self.object["redacted"] = json!(redacted);
        self
    }
}

/// What became of a session; `kept` is what a new one has kept.
pub fn words(adopted: Adopted, dry_run: bool, kept: &str) -> String {
    let would = if dry_run { "would be " } else { "" };
    match adopted {
        Adopted::Created { id, .. } => format!("{would}imported as {} ({kept})", id.short()),
        Adopted::Extended { id, entries } => {
            format!("{entries} new entries {would}added to {}", id.short())
        }
        Adopted::Known { id } => format!("nothing new: already imported as {}", id.short()),
        Adopted::Forked { id, from, entries } => {
            format!(
                "{} has diverged; {entries} entries {would}imported as its fork {}",
                from.short(),
                id.short()
            )
        }
    }
}
