//! Imports a log from a file or another store, byte for byte. Importing the same log again adds
//! nothing; a log that diverged from the stored session becomes a fork.

use uuid::Uuid;

use super::sessions::chain_sealed;
use super::{Doing, NewSession, Sessions, Store, StoreError, StoreResult, Unlocking, check_whole};
use tertulia_core::entry::{Body, Entry, Forked, Head, NewEntry, Origin, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl::Imported;
use tertulia_core::query::Lookup;

/// Approximate number of entries per write.
pub(super) const CHUNK: usize = 2000;

/// Result of importing a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// A new session.
    Created {
        /// Its id.
        id: SessionId,
        /// Number of entries written.
        entries: usize,
    },
    /// The log continues a stored session.
    Extended {
        /// Its id.
        id: SessionId,
        /// Number of entries written.
        entries: usize,
    },
    /// All entries were stored already.
    Known {
        /// The session that has them.
        id: SessionId,
    },
    /// The log diverged from the stored session and became a fork of it.
    Forked {
        /// The fork.
        id: SessionId,
        /// The stored session.
        from: SessionId,
        /// Number of entries written.
        entries: usize,
    },
}

impl Adopted {
    /// Returns the session that holds the imported log.
    pub fn id(&self) -> SessionId {
        match *self {
            Adopted::Created { id, .. }
            | Adopted::Extended { id, .. }
            | Adopted::Known { id }
            | Adopted::Forked { id, .. } => id,
        }
    }
}

impl Sessions {
    /// Returns what [`Sessions::adopt`] would do, without writing.
    pub async fn preview(&self, log: &Imported) -> StoreResult<Adopted> {
        self.take_in(log, Doing::Preview).await
    }

    /// Imports a log.
    pub async fn adopt(&self, log: &Imported) -> StoreResult<Adopted> {
        self.take_in(log, Doing::Write).await
    }

    async fn take_in(&self, log: &Imported, doing: Doing) -> StoreResult<Adopted> {
        check_whole(&log.entries)?;
        let store = self.store();
        let Some(row) = store.find(&Lookup::Id(log.id), 1).await?.pop() else {
            return create(store, log, doing).await;
        };
        let head = row.meta.head;
        let last = log.entries.last().map_or(Head::START, Entry::head);
        if last.seq <= head.seq && head_at(store, log.id, last.seq).await? == Some(last) {
            return Ok(Adopted::Known { id: log.id });
        }
        let joined = log.entries.iter().position(|entry| entry.head() == head);
        if let Some(at) = joined
            .map(|at| at + 1)
            .or_else(|| (log.after == head.seq && continues(log, &head)).then_some(0))
        {
            let rest = &log.entries[at..];
            if doing == Doing::Write {
                append(store, log.id, head, rest).await?;
            }
            return Ok(Adopted::Extended {
                id: log.id,
                entries: rest.len(),
            });
        }
        self.take_in_as_fork(log, doing).await
    }

    /// Finds the last entry that the log shares with the stored session and imports the rest as a
    /// fork.
    async fn take_in_as_fork(&self, log: &Imported, doing: Doing) -> StoreResult<Adopted> {
        let store = self.store();
        let mut shared = None;
        for (at, entry) in log.entries.iter().enumerate().rev() {
            if head_at(store, log.id, entry.seq).await? == Some(entry.head()) {
                shared = Some((at + 1, entry.head()));
                break;
            }
        }
        if let (None, Some(parent)) = (shared, log.parent)
            && head_at(store, log.id, parent.seq).await? == Some(parent)
        {
            shared = Some((0, parent));
        }
        let (at, head) = shared.ok_or(StoreError::Exists(log.id))?;
        // The id is derived from the content, so that importing the log again finds the fork.
        let last = log.entries.last().map_or(Head::START, Entry::head);
        let id = SessionId::new(Uuid::new_v8(
            last.hash.bytes()[..16].try_into().unwrap_or_default(),
        ));
        if !store.find(&Lookup::Id(id), 1).await?.is_empty() {
            return Ok(Adopted::Known { id });
        }
        let from = Origin {
            id: log.id,
            seq: head.seq,
            hash: head.hash,
        };
        let opening = Forked {
            session: id,
            from: from.clone(),
            relation: Relation::Conflict,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            seal: None,
        };
        // A sealed entry can be read only at its place, and a fork moves it by one.
        let rest = &log.entries[at..];
        let key = match rest.iter().any(Entry::is_sealed) {
            true => self.sealed_store().key_of(log.id, Unlocking::Ask).await?,
            false => None,
        };
        let opened = rest.iter().cloned().map(|entry| match &key {
            Some(key) => key.open(entry),
            None => Ok(entry),
        });
        let rest: Vec<Entry> = opened
            .collect::<Result<_, _>>()
            .map_err(|error| StoreError::damaged("the log", error.to_string()))?;
        let first = rest.first().or(log.entries.last());
        let (entry_id, when) = first
            .map_or((self.clock().entry_id(), self.clock().now()), |entry| {
                (entry.id, entry.at)
            });
        let mut new = vec![new_entry(entry_id, when, Body::Forked(opening))];
        new.extend(rest.iter().map(|entry| NewEntry {
            redacted: entry.redacted.clone(),
            author: entry.author.clone(),
            ..new_entry(entry.id, entry.at, entry.body.clone())
        }));
        let entries = chain_sealed(key.as_deref(), &head, new)?;
        if doing == Doing::Write {
            store
                .create(&NewSession {
                    id,
                    base: Some(from),
                    entries,
                })
                .await?;
        }
        Ok(Adopted::Forked {
            id,
            from: log.id,
            entries: rest.len(),
        })
    }
}

fn new_entry(id: tertulia_core::id::EntryId, at: jiff::Timestamp, body: Body) -> NewEntry {
    NewEntry {
        id,
        at,
        body,
        redacted: std::collections::BTreeMap::new(),
        author: None,
    }
}

fn continues(log: &Imported, head: &Head) -> bool {
    log.entries.first().is_some_and(|entry| entry.follows(head))
}

/// Creates the session, on top of its base if this store has that entry.
async fn create(store: &dyn Store, log: &Imported, doing: Doing) -> StoreResult<Adopted> {
    let base = match &log.fork {
        Some(origin)
            if head_at(store, origin.id, origin.seq).await?
                == Some(Head {
                    seq: origin.seq,
                    hash: origin.hash,
                }) =>
        {
            Some(origin.clone())
        }
        _ => None,
    };
    let after = base.as_ref().map_or(Seq::START, |origin| origin.seq);
    if log.after > after {
        return Err(StoreError::Refused(format!(
            "the log begins at entry {}, and the session that it continues is not in this store",
            log.after.next()
        )));
    }
    let shared = log.entries.partition_point(|entry| entry.seq <= after);
    let own = &log.entries[shared..];
    if doing == Doing::Write {
        let first = chunks(own).next().unwrap_or_default();
        let rest = &own[first.len()..];
        let head = store
            .create(&NewSession {
                id: log.id,
                base,
                entries: first.to_vec(),
            })
            .await?;
        append(store, log.id, head, rest).await?;
    }
    Ok(Adopted::Created {
        id: log.id,
        entries: own.len(),
    })
}

pub(super) async fn append(
    store: &dyn Store,
    id: SessionId,
    mut head: Head,
    entries: &[Entry],
) -> StoreResult<()> {
    for chunk in chunks(entries) {
        head = store.append(id, head, chunk).await?;
    }
    Ok(())
}

/// Splits entries into chunks that can be written one by one; an append is never split.
pub(super) fn chunks(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let ends = |(at, entry): (usize, &Entry)| at + 1 >= CHUNK && entry.then == 0;
        let end = rest.iter().enumerate().position(ends);
        let (chunk, later) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
        rest = later;
        (!chunk.is_empty()).then_some(chunk)
    })
}

async fn head_at(store: &dyn Store, id: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
    if seq == Seq::START {
        return Ok(None);
    }
    let lines = match store.read(id, seq.back(1), 1).await {
        Ok(lines) => lines,
        Err(StoreError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(lines
        .first()
        .filter(|line| line.seq == seq)
        .and_then(|line| Entry::decode(&line.bytes).ok())
        .map(|entry| entry.head()))
}
