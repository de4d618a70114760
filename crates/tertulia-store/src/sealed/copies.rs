//! Sessions that are sealed in one store and plain in the other: sealing replaces a log from its first
//! entry on, so that neither store can take that of the other. With the key, the plain copy is sealed
//! with it: sealing the same entry with the same key gives the same bytes.

use super::swap::{refused, rewritten};
use super::{KeyEntries, Openings, Unlocking, has_keys};
use crate::sync::{Branch, BranchSource, Branches, Heads, Partner};
use crate::{Adopted, Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::seal::KeyEntry;
use tertulia_core::session::Log;

/// A plain copy whose entries are sealed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedCopy {
    /// The session.
    pub session: SessionId,
    /// Number of entries that only the plain copy had.
    pub entries: u64,
    /// True if the copy of this store was sealed; false if the entries of the other one's copy, which
    /// stays plain, were sealed here.
    pub is_ours: bool,
    /// The fork that keeps the entries, if the sealed session was continued, too.
    pub fork: Option<SessionId>,
}

impl Sessions {
    /// Seals what this store or `there` has in plain of sessions that the other one has sealed, where
    /// the key is at hand. Others stay as they are.
    pub async fn seal_copies(
        &self,
        there: &dyn Partner,
        (ours, theirs): (&Heads, &Heads),
    ) -> StoreResult<Vec<SealedCopy>> {
        let mut done = Vec::new();
        for (our, their) in ours.sealed_in_one(theirs) {
            let sealed = match our.sealed {
                Some(true) => self.seal_theirs(there, &our, &their).await,
                _ => self.seal_ours(there, &our, &their).await,
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
                ) => {}
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Seals the plain copy of this store with the key of the other one's.
    async fn seal_ours(
        &self,
        there: &dyn Partner,
        our: &Branch,
        their: &Branch,
    ) -> StoreResult<Option<SealedCopy>> {
        let here = Branches::of(self.stored());
        let common = common_entries(&here, our, there, their).await?;
        let Some(copy) = key_entries(there, their.id, common).await? else {
            return Ok(None);
        };
        self.seal_like(our.id, copy).await?;
        Ok(Some(SealedCopy {
            session: our.id,
            entries: our.head.seq.0 - common,
            is_ours: true,
            fork: None,
        }))
    }

    /// Seals the entries that only the other store's plain copy has, and keeps them here.
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
        let lines = there.lines(their.id, Seq::START, usize::MAX).await?;
        let log = Log::read(their.id, Some(Head::START), Seq::START, &lines);
        if let Some(damage) = log.damage.first() {
            return Err(StoreError::damaged("the plain copy", damage.to_string()));
        }
        let openings = Openings::of(&log.entries);
        let sealed = rewritten(&log.entries, |head, entry| {
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
            fork,
        }))
    }
}

/// Returns the number of entries at the beginning that a sealed and a plain copy of a session have in
/// common. They keep their ids when they are sealed.
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

/// Returns what the keys of a sealed copy are found by, up to the entry `common`.
async fn key_entries(
    source: &dyn BranchSource,
    id: SessionId,
    common: u64,
) -> StoreResult<Option<KeyEntries>> {
    let common = usize::try_from(common).unwrap_or(usize::MAX);
    let lines = source.lines(id, Seq::START, common.max(1)).await?;
    let log = Log::read(id, Some(Head::START), Seq::START, &lines);
    let openings = Openings::of(&log.entries);
    let keyed = log.entries.iter().filter(|entry| has_keys(entry));
    let keyed = keyed.map(|entry| KeyEntry {
        entry: entry.clone(),
        numbering: openings.numbering_at(entry.seq),
    });
    let keyed = keyed.collect();
    let opening = log.entries.first().cloned();
    Ok(opening.map(|opening| KeyEntries { opening, keyed }))
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
