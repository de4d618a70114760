//! Sessions that are sealed in one store and plain in the other: sealing replaces a log from its first
//! entry on, so that neither store can take that of the other. With the key, the plain copy is sealed
//! with it: sealing the same entry with the same key gives the same bytes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::swap::{refused, rewritten, unsealed_log};
use super::{KeyEntries, Openings, SealedStore, Unlocking, has_keys};
use crate::sync::{Branch, BranchSource, Branches, CHUNK, Heads, Partner};
use crate::{Adopted, Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::seal::{KeyEntry, SessionKeys};
use tertulia_core::session::Log;

/// A copy whose entries are sealed like those of the other one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedCopy {
    /// The session.
    pub session: SessionId,
    /// Number of entries that only that copy had.
    pub entries: u64,
    /// True if it is the copy of this store; false if it is that of the other one, which stays as it is:
    /// its entries were sealed here.
    pub is_ours: bool,
    /// True if the copy was sealed with another key before, and not plain.
    pub had_key: bool,
    /// The fork that keeps the entries, if the sealed session was continued, too.
    pub fork: Option<SessionId>,
}

impl SealedStore {
    /// Returns the keys of a branch as it was written first: a session that keeps it as a fork has other
    /// numbers. `None` if it is not sealed.
    pub(crate) async fn keys_of_branch(
        &self,
        source: &dyn BranchSource,
        branch: &Branch,
    ) -> StoreResult<Option<Arc<SessionKeys>>> {
        let entries = key_entries(source, branch.id, branch.head.seq).await?;
        let Some((entries, sealing)) = entries.and_then(|it| it.sealing().map(|of| (it, of)))
        else {
            return Ok(None);
        };
        let entries = Some(entries).filter(|entries| !entries.keyed.is_empty());
        let unlocked = self
            .keys()
            .unlock(branch.id, &sealing, entries, Unlocking::Unattended);
        unlocked.await.map(Some)
    }
}

impl Sessions {
    /// Seals what this store or `there` has in plain of sessions that the other one has sealed, where
    /// the key is at hand. Of two keys, all stores choose the same. Others stay as they are.
    pub async fn seal_copies(
        &self,
        there: &dyn Partner,
        (ours, theirs): (&Heads, &Heads),
    ) -> StoreResult<Vec<SealedCopy>> {
        let mut done = Vec::new();
        let mut left: Vec<SessionId> = Vec::new();
        for (our, their) in ours.sealed_otherwise(theirs) {
            // A fork with a sealed copy of its own would get another key than that.
            if !left.is_empty() {
                let forks = self.forks_of(our.id).await?;
                if forks.iter().any(|fork| left.contains(&fork.id)) {
                    continue;
                }
            }
            let sealed = match self.whose_seal(there, &our, &their).await? {
                Whose::Both => continue,
                Whose::Ours => self.seal_theirs(there, &our, &their).await,
                Whose::Theirs => self.seal_ours(there, &our, &their).await,
            };
            match sealed {
                Ok(copy) => done.extend(copy),
                // The comparison of the stores names it, and both copies stay.
                Err(
                    StoreError::Sealed { .. }
                    | StoreError::Refused(_)
                    | StoreError::Opened { .. }
                    | StoreError::Exists(_)
                    | StoreError::TooLarge { .. }
                    | StoreError::NotFound(_),
                ) => left.push(our.id),
                Err(error) if error.is_damage() => left.push(our.id),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Returns which of two copies, one of which is sealed at least, the other one is to be sealed like.
    async fn whose_seal(
        &self,
        there: &dyn Partner,
        our: &Branch,
        their: &Branch,
    ) -> StoreResult<Whose> {
        if our.sealed != Some(true) {
            return Ok(Whose::Theirs);
        }
        if their.sealed != Some(true) {
            return Ok(Whose::Ours);
        }
        let first = Seq::START.next();
        let here = Branches::of(self.stored());
        let ours = here.head_at(our.id, first).await?;
        let theirs = there.head_at(their.id, first).await?;
        // Any order will do that is the same everywhere.
        Ok(
            match ours.map(|it| it.hash).cmp(&theirs.map(|it| it.hash)) {
                Ordering::Less => Whose::Ours,
                Ordering::Equal => Whose::Both,
                Ordering::Greater => Whose::Theirs,
            },
        )
    }

    /// Seals the copy of this store with the key of the other one's.
    async fn seal_ours(
        &self,
        there: &dyn Partner,
        our: &Branch,
        their: &Branch,
    ) -> StoreResult<Option<SealedCopy>> {
        let here = Branches::of(self.stored());
        let common = common_entries(&here, our, there, their).await?;
        let Some(copy) = key_entries(there, their.id, Seq(common)).await? else {
            return Ok(None);
        };
        self.seal_like(our.id, copy).await?;
        Ok(Some(SealedCopy {
            session: our.id,
            entries: our.head.seq.0 - common,
            is_ours: true,
            had_key: our.sealed == Some(true),
            fork: None,
        }))
    }

    /// Seals the entries that only the other store's copy has with the key of this one's, and keeps them
    /// here.
    async fn seal_theirs(
        &self,
        there: &dyn Partner,
        our: &Branch,
        their: &Branch,
    ) -> StoreResult<Option<SealedCopy>> {
        let here = Branches::of(self.stored());
        let common = common_entries(&here, our, there, their).await?;
        let entries = their.head.seq.0 - common;
        let key = match entries {
            0 => None,
            _ => {
                self.sealed_store()
                    .key_of(our.id, Unlocking::Unattended)
                    .await?
            }
        };
        let Some(key) = key else {
            return Ok(None);
        };
        let key = key.until(Seq(common));
        let their_key = self.sealed_store().keys_of_branch(there, their).await?;
        let lines = there.lines(their.id, Seq::START, usize::MAX).await?;
        let log = Log::read(their.id, Some(Head::START), Seq::START, &lines);
        if let Some(damage) = log.damage.first() {
            return Err(StoreError::damaged("the other copy", damage.to_string()));
        }
        let plain = match their_key {
            Some(their_key) => unsealed_log(&their_key, &log.entries)?,
            None => log.entries,
        };
        let openings = Openings::of(&plain);
        let sealed = rewritten(&plain, |head, entry| {
            key.seal_entry(head, &openings.numbering_at(entry.seq), entry)
        })?;
        let text: String = sealed
            .iter()
            .map(|entry| format!("{}\n", entry.line()))
            .collect();
        let log =
            jsonl::read(text.as_bytes()).map_err(|error| refused(our.id, &error.to_string()))?;
        let fork = match self.adopt(&log).await? {
            Adopted::Known { .. } => return Ok(None),
            Adopted::Forked { id, .. } => Some(id),
            Adopted::Created { .. } | Adopted::Extended { .. } => None,
        };
        Ok(Some(SealedCopy {
            session: our.id,
            entries,
            is_ours: false,
            had_key: their.sealed == Some(true),
            fork,
        }))
    }
}

/// Which of two copies keeps its seal.
enum Whose {
    /// They are sealed alike.
    Both,
    Ours,
    Theirs,
}

/// Returns the number of entries at the beginning that two copies of a session have in common, which are
/// sealed differently. They keep their ids when they are sealed.
pub(crate) async fn common_entries(
    one: &dyn BranchSource,
    of: &Branch,
    other: &dyn BranchSource,
    with: &Branch,
) -> StoreResult<u64> {
    let (mut low, mut high) = (0, of.head.seq.min(with.head.seq).0 + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let ours = entry_at(one, of.id, Seq(middle)).await?;
        let theirs = entry_at(other, with.id, Seq(middle)).await?;
        let is_same = ours
            .zip(theirs)
            .is_some_and(|(ours, theirs)| ours.id == theirs.id);
        match is_same {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(low)
}

/// Returns what the keys of a sealed copy are found by, up to the entry `end`.
async fn key_entries(
    source: &dyn BranchSource,
    id: SessionId,
    end: Seq,
) -> StoreResult<Option<KeyEntries>> {
    let mut found: Option<KeyEntries> = None;
    let mut openings = Openings::default();
    let mut at = Head::START;
    loop {
        let left = usize::try_from(end.0.max(1) - at.seq.0).unwrap_or(CHUNK);
        let lines = source.lines(id, at.seq, left.min(CHUNK)).await?;
        let log = Log::read(id, Some(at), at.seq, &lines);
        let Some(last) = log.entries.last() else {
            return Ok(found);
        };
        at = last.head();
        for entry in log.entries {
            openings.add(&entry);
            if has_keys(&entry) || found.is_none() {
                let numbering = openings.numbering_at(entry.seq);
                match &mut found {
                    Some(found) => found.keyed.push(KeyEntry { entry, numbering }),
                    None => {
                        let (opening, keyed) = (entry, Vec::new());
                        found = Some(KeyEntries { opening, keyed });
                    }
                }
            }
        }
        if at.seq >= end {
            return Ok(found);
        }
    }
}

async fn entry_at(
    source: &dyn BranchSource,
    id: SessionId,
    seq: Seq,
) -> StoreResult<Option<Entry>> {
    let lines = source.lines(id, seq.back(1), 1).await?;
    let line = lines.into_iter().next().filter(|line| line.seq == seq);
    Ok(line.and_then(|line| Entry::decode(&line.bytes).ok()))
}
