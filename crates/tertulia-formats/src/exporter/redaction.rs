//! Redacts a session for an export. The store is not changed.

use std::collections::BTreeMap;

use serde_json::Value;
use tertulia_core::entry::{Body, Entry, EntryError, Hash, Head, Lost};
use tertulia_core::id::Seq;
use tertulia_core::jsonl::SecretCounts;
use tertulia_core::redact::redact as redact_text;
use tertulia_core::session::{Log, SessionMeta};

/// Reasons why a session cannot be redacted.
#[derive(Debug, thiserror::Error)]
pub enum RedactionError {
    /// An entry cannot be written again.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The metadata cannot be converted.
    #[error("the metadata of the session cannot be redacted: {0}")]
    Meta(#[from] serde_json::Error),
}

/// Replaces apparent secrets in a session by `[redacted:KIND]` and returns how many there were.
/// Entries have new hashes from the first changed one on.
pub fn redact(meta: &mut SessionMeta, log: &mut Log) -> Result<SecretCounts, RedactionError> {
    let mut counts = SecretCounts::new();
    let mut entries: Vec<Entry> = Vec::with_capacity(log.entries.len());
    let mut hashes: BTreeMap<Seq, Hash> = BTreeMap::new();
    for entry in std::mem::take(&mut log.entries) {
        let last = entries.last().map(Entry::head);
        let before = last.filter(|head| head.seq.next() == entry.seq);
        let (mut body, found) = redacted(&entry);
        // A fork refers to the hash of the entry that it continues, which may have changed.
        if let Body::Forked(forked) = &mut body
            && let Some(hash) = hashes.get(&forked.from.seq)
        {
            forked.from.hash = *hash;
        }
        let entry = match before {
            _ if body != entry.body => {
                // Entries before a part or a gap are not in the export.
                let unknown = Head {
                    seq: entry.seq.back(1),
                    ..Head::START
                };
                let mut marked = entry.redacted.clone();
                add(&mut marked, &found);
                entry.with_body(&before.unwrap_or(unknown), body, marked)?
            }
            Some(before) if !entry.follows(&before) => entry.continuing(&before),
            _ => entry,
        };
        add(&mut counts, &found);
        hashes.insert(entry.seq, entry.hash);
        entries.push(entry);
    }
    log.entries = entries;
    let mut value = serde_json::to_value(&*meta)?;
    redact_strings(&mut value);
    *meta = serde_json::from_value(value)?;
    Ok(counts)
}

/// Returns the redacted body of an entry. Only the line is known of an entry whose type this version
/// does not know, and a part of it cannot be replaced: it becomes a placeholder.
fn redacted(entry: &Entry) -> (Body, SecretCounts) {
    let mut found = SecretCounts::new();
    if let Body::Unknown(kind) = &entry.body {
        add(
            &mut found,
            &redact_text(&entry.readable_line().unwrap_or(entry.line().into())).found,
        );
        let reason = format!("an entry of type '{kind}' with secrets was left out");
        return match found.is_empty() {
            true => (entry.body.clone(), found),
            false => (Body::Lost(Lost { reason }), found),
        };
    }
    let mut body = entry.body.clone();
    body.for_each_text(&mut |text| {
        let clean = redact_text(text);
        add(&mut found, &clean.found);
        if !clean.found.is_empty() {
            let clean = clean.text.into_owned();
            *text = clean;
        }
    });
    (body, found)
}

fn add(counts: &mut SecretCounts, more: &SecretCounts) {
    for (kind, count) in more {
        *counts.entry(kind.clone()).or_insert(0) += count;
    }
}

fn redact_strings(value: &mut Value) {
    match value {
        Value::String(text) => {
            let clean = redact_text(text).text.into_owned();
            *text = clean;
        }
        Value::Array(values) => values.iter_mut().for_each(redact_strings),
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(_, value)| redact_strings(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
