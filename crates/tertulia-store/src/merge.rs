//! What two sessions share, and the session that a merge of them makes.

use std::sync::Arc;

use super::sessions::chain_sealed;
use super::{NewSession, Sessions, Start, StoreError, StoreResult, Unlocking};
use tertulia_core::entry::{Body, Entry, Forked, Head, Merged, Numbering, Origin, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::merge::{MergedEntries, contains};
use tertulia_core::query::{Filter, Page, Row};
use tertulia_core::seal::{Recipients, SessionKeys};
use tertulia_core::session::{Log, SESSION_LIMIT, SessionMeta};

/// Lines per read, so that raw lines of a long log are never all in memory beside its entries.
const PAGE: usize = 2000;
/// Maximum number of entries for which room is made before they are read: a damaged row may claim any
/// number.
const MOST_RESERVED: usize = 500_000;

/// Two sessions after their last common entry.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The last common entry, or [`Head::START`].
    pub shared: Head,
    /// Entries of the first session after it.
    pub ours: Log,
    /// Entries of the second session after it.
    pub theirs: Log,
}

/// Beginning of a merged session.
#[derive(Clone, Debug)]
pub enum MergeBase {
    /// The entries that both sessions share.
    Shared {
        /// The last of them.
        head: Head,
        /// Their size in bytes.
        bytes: u64,
    },
    /// A session of its own: the two share no entry.
    New(Start),
}

/// Parameters of a merge.
#[derive(Clone, Debug)]
pub struct NewMerge {
    /// Id of the new session.
    pub id: SessionId,
    /// Title of the new session.
    pub title: Option<String>,
    /// Beginning of the new session.
    pub base: MergeBase,
    /// End of the first session. The new session shares entries with it.
    pub ours: Origin,
    /// End of the second session.
    pub theirs: Origin,
}

impl Sessions {
    /// Reads two sessions after their last common entry.
    pub async fn diverge(
        &self,
        ours: &SessionMeta,
        theirs: &SessionMeta,
    ) -> StoreResult<Divergence> {
        let shared = self.shared_head(ours, theirs).await?;
        Ok(Divergence {
            shared,
            ours: self.load_after(ours, shared).await?,
            theirs: self.load_after(theirs, shared).await?,
        })
    }

    /// Returns the last entry that two sessions share. Hashes are chained: an equal entry at the same
    /// place proves that all before it are equal, so that a binary search finds the last one without
    /// reading the logs.
    pub async fn shared_head(&self, one: &SessionMeta, other: &SessionMeta) -> StoreResult<Head> {
        let mut shared = Head::START;
        let (mut low, mut high) = (0, one.head.seq.min(other.head.seq).0 + 1);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            let [one, other] = [
                self.line_at(one.id, Seq(middle)).await?,
                self.line_at(other.id, Seq(middle)).await?,
            ];
            let equal = one.filter(|line| Some(line) == other.as_ref());
            match equal.and_then(|line| Entry::decode(&line).ok()) {
                Some(entry) => (low, shared) = (middle, entry.head()),
                None => high = middle,
            }
        }
        Ok(shared)
    }

    async fn line_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Vec<u8>>> {
        let lines = self.store().read(id, seq.back(1), 1).await?;
        let line = lines.into_iter().next().filter(|line| line.seq == seq);
        Ok(line.map(|line| line.bytes))
    }

    /// Reads a log after one of its entries.
    pub async fn load_after(&self, meta: &SessionMeta, head: Head) -> StoreResult<Log> {
        let mut log = Log::default();
        // A list that grows by doubling would take up to twice the memory.
        let count = meta.head.seq.0.saturating_sub(head.seq.0);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        log.entries.reserve_exact(count.min(MOST_RESERVED));
        let (mut after, mut before) = (head.seq, Some(head));
        while let Some((page, last)) = self.load_next(meta.id, after, before, PAGE).await? {
            let end = page.entries.last().filter(|entry| entry.seq == last);
            (after, before) = (last, end.map(Entry::head));
            log.entries.extend(page.entries);
            log.damage.extend(page.damage);
        }
        Ok(log)
    }

    /// Returns a merge of two sessions that has all their messages, if there is one outside the trash.
    pub async fn existing_merge(
        &self,
        (ours, theirs): (SessionId, SessionId),
        divergence: &Divergence,
    ) -> StoreResult<Option<Row>> {
        let filter = Filter {
            parent: Some(ours),
            ..Filter::default()
        };
        let mut page = Page::first(500);
        loop {
            let listing = self.store().list(&filter, &page).await?;
            for row in listing.rows {
                let is_merge = row.meta.merged.is_some() && row.meta.comes_from(theirs);
                if is_merge && self.has_both(&row.meta, divergence).await? {
                    return Ok(Some(row));
                }
            }
            match listing.next {
                Some(next) => page.cursor = Some(next),
                None => return Ok(None),
            }
        }
    }

    async fn has_both(&self, merge: &SessionMeta, divergence: &Divergence) -> StoreResult<bool> {
        let shared = divergence.shared;
        let line = self.line_at(merge.id, shared.seq).await?;
        let entry = line.and_then(|line| Entry::decode(&line).ok());
        let is_shared = entry.is_some_and(|entry| entry.head() == shared);
        let from = if is_shared { shared } else { Head::START };
        let log = self.load_after(merge, from).await?;
        let mut sides = [&divergence.ours, &divergence.theirs].into_iter();
        Ok(sides.all(|side| contains(&log.entries, &side.entries)))
    }

    /// Creates a merged session in one append: all of it is there, or nothing. Durable on return.
    pub async fn merge(
        &self,
        merge: &NewMerge,
        entries: MergedEntries,
    ) -> StoreResult<SessionMeta> {
        let (head, base, opening) = opening(merge);
        let joins = Body::Merged(Merged {
            ours: merge.ours.clone(),
            theirs: merge.theirs.clone(),
        });
        let mut new = vec![self.new_entry(opening)?, self.new_entry(joins)?];
        for copy in entries.copies {
            let mut kept = self.kept(copy.id, copy.at, copy.body)?;
            for (kind, count) in copy.redacted {
                *kept.redacted.entry(kind).or_insert(0) += count;
            }
            new.push(kept);
        }
        for body in entries.closing {
            new.push(self.new_entry(body)?);
        }
        let entries = match self.keys_of_merge(merge).await? {
            MergeKeys::Same(keys) => {
                chain_sealed(keys.as_deref(), &head, &Numbering::default(), new)?
            }
            // Who was removed from one of the two must not read what the merge has of it.
            MergeKeys::Renewed(keys, recipients) => {
                let mut rest = new.split_off(1);
                if let Some(Body::Forked(forked)) = new.first_mut().map(|new| &mut new.body)
                    && let Some(title) = forked.title.take()
                {
                    rest.insert(0, self.new_entry(self.renamed(title))?);
                }
                let opening = chain_sealed(None, &head, &Numbering::default(), new)?;
                let renewed = self.renewed_after(merge.id, &keys, recipients, &opening);
                let new_key = renewed.await?;
                let rest = self.chain_new(merge.id, &new_key.head(), rest).await?;
                [opening, vec![new_key], rest].concat()
            }
        };
        let own: u64 = entries
            .iter()
            .map(|entry| entry.line().len() as u64 + 1)
            .sum();
        let shared = match &merge.base {
            MergeBase::Shared { bytes, .. } => *bytes,
            MergeBase::New(_) => 0,
        };
        if shared + own > SESSION_LIMIT {
            return Err(StoreError::TooLarge {
                what: "the merged session",
                size: shared + own,
                limit: SESSION_LIMIT,
            });
        }
        let new = NewSession {
            id: merge.id,
            base,
            entries,
        };
        self.store().create(&new).await?;
        Ok(self.row(merge.id).await?.meta)
    }
}

/// Keys of a merged session.
enum MergeKeys {
    /// Those of the shared entries, or a new one; none if the session is not sealed.
    Same(Option<Arc<SessionKeys>>),
    /// Those of the first session, followed by a new one for these.
    Renewed(Arc<SessionKeys>, Recipients),
}

impl Sessions {
    /// Returns the keys of a merged session: those of the shared entries, or a new one if they share
    /// none and one of them is sealed.
    async fn keys_of_merge(&self, merge: &NewMerge) -> StoreResult<MergeKeys> {
        let store = self.sealed_store();
        let ours = store.key_of(merge.ours.id, Unlocking::Ask).await?;
        let theirs = store.key_of(merge.theirs.id, Unlocking::Ask).await?;
        let MergeBase::Shared { head, .. } = &merge.base else {
            return Ok(MergeKeys::Same(match ours.is_some() || theirs.is_some() {
                true => Some(store.keys().make(merge.id).await?),
                false => None,
            }));
        };
        let sealing = store.sealing_of(merge.ours.id).await?;
        store.share_keys(sealing, merge.id, head);
        let mut both = ours.iter().chain(&theirs);
        let is_before = both.any(|keys| keys.changes_after(head.seq));
        Ok(match (ours, theirs) {
            (Some(ours), Some(theirs)) if is_before => {
                let mut recipients = ours.recipients().clone();
                let removed = theirs.recipients().removed.iter().cloned();
                recipients.removed.extend(removed);
                recipients.removed.dedup();
                MergeKeys::Renewed(ours, recipients)
            }
            (ours, _) => MergeKeys::Same(ours),
        })
    }
}

/// Returns the head that a merged session continues, its base, and its first entry.
fn opening(merge: &NewMerge) -> (Head, Option<Origin>, Body) {
    match &merge.base {
        MergeBase::New(start) => {
            let start = Start {
                id: merge.id,
                title: merge.title.clone(),
                ..start.clone()
            };
            (Head::START, None, start.opening())
        }
        MergeBase::Shared { head, .. } => {
            let from = Origin {
                id: merge.ours.id,
                seq: head.seq,
                hash: head.hash,
            };
            let opening = Body::Forked(Forked {
                session: merge.id,
                from: from.clone(),
                relation: Relation::Merge,
                title: merge.title.clone(),
                project: None,
                project_ids: Vec::new(),
                cwd: None,
                terms: None,
                seal: None,
            });
            (*head, Some(from), opening)
        }
    }
}
