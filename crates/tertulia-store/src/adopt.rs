//! Imports a log from a file or another store, byte for byte. Importing the same log again adds
//! nothing; a log that diverged from the stored session becomes a fork.

use async_trait::async_trait;

pub(super) use super::sync::CHUNK;
use super::sync::{
    Branch, BranchSource, Branches, Partner, Placing, opens_another, other_opened, place,
};
use super::{Doing, Sessions, Store, StoreError, StoreResult, check_whole};
use tertulia_core::entry::{Body, Created, Entry, Forked, Head, Numbering, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl::Imported;
use tertulia_core::session::Line;

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
        // A log goes under the id that it was found under, never under that of another session.
        if let Some(other) = other_opened(log.id, &log.entries) {
            return Err(opens_another(log.id, other));
        }
        let branches = Branches::of_sessions(self);
        let (source, branch) = LogSource::of(log, &branches).await?;
        let placing = Placing {
            source: &source,
            branch: &branch,
            target: &branches,
            doing,
        };
        // Most logs are new or continue their session: only a diverged one needs all its branches.
        let mut members = branches.root(branch.root).await?;
        if placing.diverges(&members).await? {
            members = branches.family(branch.root).await?;
        }
        place(&placing, &mut members, &mut 0).await
    }
}

/// A log in memory, as a branch.
struct LogSource<'a> {
    entries: Vec<Entry>,
    /// Entry before the first one, and the session here that has it, if the log lacks its beginning.
    before: Head,
    beginning: Option<(&'a Branches<'a>, SessionId)>,
    fork: Option<Origin>,
}

impl<'a> LogSource<'a> {
    async fn of(log: &Imported, here: &'a Branches<'a>) -> StoreResult<(LogSource<'a>, Branch)> {
        let (before, beginning, numbering, mut root) = if log.after == Seq::START {
            (Head::START, None, Numbering::default(), log.id)
        } else {
            let found = here.beginning(log.id, log.after).await?;
            let found = found.filter(|found| {
                let first = log.entries.first();
                first.is_some_and(|first| first.follows(&found.stored))
            });
            let found = found.ok_or_else(|| {
                StoreError::Refused(format!(
                    "the log begins at entry {}, and the session that it continues is not in this store",
                    log.after.next()
                ))
            })?;
            let beginning = Some((here, log.id));
            (found.original, beginning, found.numbering, found.root)
        };
        let mut openings = Vec::new();
        for entry in &log.entries {
            match (&entry.body, entry.opened_branch()) {
                (_, Some(forked)) => {
                    if openings.is_empty() {
                        root = forked.from.id;
                    }
                    openings.push(entry.seq);
                }
                // What stands before the opening of a session belongs to another one.
                (Body::Created(Created { session, .. }), None)
                | (Body::Forked(Forked { session, .. }), None) => {
                    openings.clear();
                    root = *session;
                }
                _ => {}
            }
        }
        let numbering = numbering.with(openings);
        let (mut entries, mut end) = (Vec::new(), before);
        for entry in &log.entries {
            if !numbering.has(entry.seq) {
                let entry = numbering.to_original(entry, &end);
                let entry =
                    entry.map_err(|error| StoreError::failed("cannot read a log", error))?;
                end = entry.head();
                entries.push(entry);
            }
        }
        let fork = log.fork.clone().filter(|_| root == log.id);
        let branch = Branch::new(log.id, root, end);
        Ok((
            LogSource {
                entries,
                before,
                beginning,
                fork,
            },
            branch,
        ))
    }
}

#[async_trait]
impl BranchSource for LogSource<'_> {
    async fn head_at(&self, _: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
        if seq <= self.before.seq {
            return match self.beginning {
                Some((here, id)) => here.head_at(id, seq).await,
                None => Ok(None),
            };
        }
        let at = usize::try_from(seq.0 - self.before.seq.0 - 1).unwrap_or(usize::MAX);
        Ok(self.entries.get(at).map(Entry::head))
    }

    async fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        if after < self.before.seq {
            return match self.beginning {
                Some((here, session)) => {
                    let count = usize::try_from(self.before.seq.0 - after.0).unwrap_or(limit);
                    here.lines(session, after, limit.min(count)).await
                }
                None => Err(StoreError::NotFound(id)),
            };
        }
        let at = usize::try_from(after.0 - self.before.seq.0).unwrap_or(usize::MAX);
        let rest = self.entries.get(at..).unwrap_or_default();
        Ok(rest.iter().take(limit).map(Line::from).collect())
    }

    async fn origins(&self, _: SessionId) -> StoreResult<Vec<Origin>> {
        Ok(self.fork.iter().cloned().collect())
    }

    async fn fixed(&self, _: SessionId) -> StoreResult<Seq> {
        Ok(Seq::START)
    }
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
