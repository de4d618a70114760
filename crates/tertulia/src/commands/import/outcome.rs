//! Report of an import for each file, as text and as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tertulia_core::entry::Imported;
use tertulia_core::foreign::Provenance;
use tertulia_core::id::SessionId;
use tertulia_core::jsonl::SecretCounts;
use tertulia_store::{Adopted, Taken};

use tertulia_engine::notice::redaction_counts;

/// How an entry of `lost` begins that lists what is no part of a conversation.
const SKIPPED: &str = "not part of the conversation: ";

/// Outcome of importing one file.
#[derive(Debug)]
pub struct Outcome {
    /// Outcome on one line.
    pub words: String,
    /// Further details, one line each.
    pub details: Vec<String>,
    /// The same for `--json`.
    pub object: Value,
    /// True for a session in a whole history of which nothing is new.
    quiet: bool,
    /// The session that the file's is here.
    pub session: SessionId,
    /// The session that has to be closed before the rest of the file can be imported.
    pub waits_for: Option<SessionId>,
}

impl Outcome {
    /// Builds the outcome of a file whose session was imported or already known.
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
            quiet: false,
            session: adopted.id(),
            waits_for: None,
        }
    }

    /// Builds the outcome of an earlier save of a session that was imported from a later one.
    pub fn earlier(path: &Path, session: SessionId) -> Outcome {
        let object = json!({
            "path": path.display().to_string(),
            "result": "earlier",
            "session": session,
            "entries": 0,
        });
        Outcome {
            words: "an earlier save of a session that was imported further".to_owned(),
            details: Vec::new(),
            object,
            quiet: false,
            session,
            waits_for: None,
        }
    }

    /// Returns true if only the number of such outcomes is of interest.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Counts the outcome with the others of a history if nothing is new.
    pub fn in_history(mut self) -> Outcome {
        self.quiet = self.object["result"] == "known" && self.waits_for.is_none();
        self
    }

    /// Adds that the rest of the file can be imported once a session is closed, or its key is at hand.
    pub fn waiting(mut self, taken: &Taken) -> Outcome {
        if taken.is_sealed {
            self.object["result"] = json!("sealed");
        }
        if taken.waits {
            let id = taken.adopted.id();
            self.object["result"] = json!("waiting");
            self.waits_for = Some(id);
        }
        self
    }

    /// Adds the secrets found in a log, and whether they were redacted or kept.
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

    /// Adds what was kept, changed and lost of another program's session. For a session that was
    /// imported before only the JSON gets this.
    pub fn with_report(
        mut self,
        taken: &Taken,
        source: &Imported,
        kept: &Value,
        changed: &[String],
        lost: &[String],
    ) -> Outcome {
        let redacted = taken.redacted();
        if matches!(
            taken.adopted,
            Adopted::Created { .. } | Adopted::Forked { .. }
        ) {
            let changed = changed.iter().map(|what| format!("changed: {what}"));
            // The report as a whole counts the skipped parts.
            let lost = lost.iter().filter(|what| !what.starts_with(SKIPPED));
            let lost = lost.map(|what| format!("lost: {what}"));
            self.details.extend(changed);
            if !redacted.is_empty() {
                self.details
                    .push(format!("redacted: {}", redaction_counts(&redacted)));
            }
            self.details.extend(lost);
        }
        self.object["original"] = json!(source.original);
        self.object["project"] = json!(source.project);
        self.object["kept"] = kept.clone();
        self.object["changed"] = json!(changed);
        self.object["lost"] = json!(lost);
        self.object["redacted"] = json!(redacted);
        self
    }
}

/// Counts what was skipped in new sessions because it is no part of a conversation, in one line.
pub fn skipped(results: &[Value]) -> Option<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let is_new = |object: &&Value| object["result"] == "created" || object["result"] == "forked";
    for object in results.iter().filter(is_new) {
        let lost = object["lost"].as_array().into_iter().flatten();
        let lists = lost.filter_map(|what| what.as_str()?.strip_prefix(SKIPPED));
        for part in lists.flat_map(|list| list.split(", ")) {
            let counted = part
                .strip_suffix(')')
                .and_then(|part| part.rsplit_once(" ("));
            let counted = counted.and_then(|(what, count)| Some((what, count.parse().ok()?)));
            let (what, count) = counted.unwrap_or((part, 1));
            *counts.entry(what).or_default() += count;
        }
    }
    let listed = counts
        .iter()
        .map(|(what, count)| format!("{what} ({count})"));
    let listed: Vec<String> = listed.collect();
    let listed = listed.join(", ");
    (!listed.is_empty()).then(|| format!("skipped (not conversation): {listed}"))
}

/// Describes the outcome of importing another program's file of a session that was here already.
pub fn own_words(path: &Path, taken: &Taken, dry_run: bool) -> Option<String> {
    let id = taken.adopted.id().short();
    if taken.is_sealed {
        return Some(format!(
            "session {id} is sealed: its key is needed to import {}",
            path.display()
        ));
    }
    if taken.waits {
        return Some(format!(
            "session {id} is open: import again when it is closed"
        ));
    }
    Some(match (taken.own.as_ref()?, taken.adopted) {
        (Provenance::Run(_), Adopted::Known { .. }) => {
            format!("nothing new: tertulia ran it as {id}")
        }
        (Provenance::Export, Adopted::Known { .. }) => {
            format!("nothing new: exported from {id}")
        }
        (_, adopted) => words(adopted, dry_run, ""),
    })
}

/// Describes the outcome of an import; `kept` lists what a new session contains.
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
