//! Secrets in an imported log: counted, or redacted on request. Redaction changes hashes and is
//! therefore never done unasked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Imported;
use crate::entry::{Body, EntryError, Head};
use crate::id::Seq;
use crate::redact::redact;

/// Number of secrets by kind.
pub type SecretCounts = BTreeMap<String, u32>;

impl Imported {
    /// Counts apparent secrets in the log, by kind.
    pub fn secrets(&self) -> SecretCounts {
        let mut counts = SecretCounts::new();
        for entry in &self.entries {
            redact_body(&mut entry.body.clone(), &mut counts);
        }
        counts
    }

    /// Redacts apparent secrets. Hashes are recomputed from the first changed entry on. The result
    /// is deterministic, so that a second import adds nothing.
    pub fn redact(&mut self) -> Result<SecretCounts, EntryError> {
        let mut counts = SecretCounts::new();
        let mut head = self.parent.unwrap_or_else(|| self.head_before());
        let mut changed = false;
        let mut heads: BTreeMap<Seq, Head> = BTreeMap::new();
        let mut entries = Vec::with_capacity(self.entries.len());
        for entry in std::mem::take(&mut self.entries) {
            let mut found = SecretCounts::new();
            let mut body = entry.body.clone();
            redact_body(&mut body, &mut found);
            // A fork refers to the hash of the entry that it continues, which may have changed.
            if let Body::Forked(forked) = &mut body
                && let Some(shared) = heads.get(&forked.from.seq)
            {
                forked.from.hash = shared.hash;
                if self.id == forked.session {
                    self.fork = Some(forked.from.clone());
                }
            }
            let entry = if body != entry.body {
                changed = true;
                let mut redacted = entry.redacted.clone();
                add(&mut redacted, &found);
                entry.with_body(&head, body, redacted)?
            } else if changed {
                entry.continuing(&head)
            } else {
                entry
            };
            add(&mut counts, &found);
            head = entry.head();
            heads.insert(entry.seq, head);
            entries.push(entry);
        }
        self.entries = entries;
        Ok(counts)
    }
}

impl Imported {
    /// Returns the head that the first entry continues, as far as the file without a heading tells.
    /// The store that the entries are appended to verifies it.
    fn head_before(&self) -> Head {
        match self.entries.first().map(|entry| &entry.body) {
            Some(Body::Forked(forked)) => Head {
                seq: forked.from.seq,
                hash: forked.from.hash,
            },
            _ => Head {
                seq: self.after,
                ..Head::START
            },
        }
    }
}

fn redact_body(body: &mut Body, counts: &mut SecretCounts) {
    body.for_each_text(&mut |text| {
        let clean = redact(text);
        for (kind, count) in clean.found {
            *counts.entry(kind).or_insert(0) += count;
        }
        if let Cow::Owned(clean) = clean.text {
            *text = clean;
        }
    });
}

fn add(counts: &mut SecretCounts, more: &SecretCounts) {
    for (kind, count) in more {
        *counts.entry(kind.clone()).or_insert(0) += count;
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use crate::entry::{Entry, Forked, Hash, NewEntry, Origin, Relation};
    use crate::id::{EntryId, SessionId};

    fn log(words: &[&str]) -> Vec<u8> {
        let id = SessionId::new(uuid::Uuid::from_u128(7));
        let at = jiff::Timestamp::from_second(1).unwrap();
        let bodies = std::iter::once(Body::Created(crate::entry::Created {
            session: id,
            kind: crate::entry::Kind::Chat,
            title: None,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }))
        .chain(words.iter().map(|words| {
            Body::Renamed(crate::entry::Renamed {
                title: (*words).to_owned(),
                operation: EntryId::new(uuid::Uuid::from_u128(9)),
            })
        }));
        let new = bodies.enumerate().map(|(n, body)| NewEntry {
            id: EntryId::new(uuid::Uuid::from_u128(n as u128 + 1)),
            at,
            body,
            redacted: BTreeMap::new(),
            author: None,
        });
        let entries = Entry::chain(&Head::START, new.collect()).unwrap();
        let lines: Vec<&str> = entries.iter().map(Entry::line).collect();
        lines.join("\n").into_bytes()
    }

    #[test]
    fn a_log_without_secrets_keeps_its_bytes() {
        let mut imported = read(&log(&["one", "two"])).unwrap();
        let before = imported.entries.clone();
        assert!(imported.secrets().is_empty());
        assert!(imported.redact().unwrap().is_empty());
        assert_eq!(imported.entries, before);
    }

    #[test]
    fn replacing_secrets_gives_a_valid_log_and_always_the_same() {
        let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5");
        let content = log(&["one", &format!("use {token}"), "three"]);
        let mut imported = read(&content).unwrap();
        assert_eq!(imported.secrets()["github-token"], 1);
        assert_eq!(imported.redact().unwrap()["github-token"], 1);
        let lines: Vec<&str> = imported.entries.iter().map(Entry::line).collect();
        let text = lines.join("\n");
        assert!(!text.contains(&token) && text.contains("[redacted:github-token]"));
        assert_eq!(imported.entries[2].redacted["github-token"], 1);
        let again = read(text.as_bytes()).unwrap();
        assert_eq!(again.entries, imported.entries);
        let mut twice = read(&content).unwrap();
        twice.redact().unwrap();
        assert_eq!(twice.entries, imported.entries);
    }

    /// The file of a fork that begins with its own first entry, whose title is redacted.
    #[test]
    fn a_fork_without_its_parent_still_continues_it() {
        let session = |n| SessionId::new(uuid::Uuid::from_u128(n));
        let shared = Head {
            seq: Seq(6),
            hash: Hash::of_text("shared"),
        };
        let from = Origin {
            id: session(1),
            seq: shared.seq,
            hash: shared.hash,
        };
        let forked = NewEntry {
            id: EntryId::new(uuid::Uuid::nil()),
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
            body: Body::Forked(Forked {
                session: session(2),
                from: from.clone(),
                relation: Relation::Fork,
                title: Some(format!(
                    "key ghp_{}",
                    "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
                )),
                project: None,
                project_ids: Vec::new(),
                cwd: None,
                terms: None,
                seal: None,
            }),
            redacted: BTreeMap::new(),
            author: None,
        };
        let entries = Entry::chain(&shared, vec![forked]).unwrap();
        let mut imported = Imported {
            id: session(2),
            fork: Some(from),
            after: entries[0].seq.back(1),
            parent: None,
            entries,
        };
        assert_eq!(imported.redact().unwrap().values().sum::<u32>(), 1);
        assert!(imported.entries[0].follows(&shared));
    }
}
