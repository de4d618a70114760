//! Writes imported sessions: entries are chained, sealed where the session is, and written in chunks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Branch, Trail};
use crate::foreign::{Doing, Intake, Taken};
use crate::sessions::chain_sealed;
use crate::{Adopted, NewSession, StoreResult, Unlocking};
use tertulia_core::entry::{Entry, Head, NewEntry, Numbering, Origin};
use tertulia_core::foreign::Foreign;
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::seal::SessionKeys;
use tertulia_core::session::Log;

/// Number of entries after which a chunk is written.
const CHUNK: usize = 500;
/// Number of bytes after which a chunk is written.
const CHUNK_BYTES: usize = 4_000_000;

impl Intake<'_> {
    /// Returns the keys of a new session, if what it continues or belongs to is sealed.
    pub(super) async fn keys_of_new(
        &self,
        id: SessionId,
        branch: Option<&Branch>,
        head: &Head,
    ) -> StoreResult<Option<Arc<SessionKeys>>> {
        let sealed = self.sessions.sealed_store();
        let base = branch.map(|branch| branch.from.id).or(self.sealed_by);
        let Some(base) = base.filter(|_| self.doing == Doing::Write) else {
            return Ok(None);
        };
        let Some(keys) = sealed.key_of(base, Unlocking::Ask).await? else {
            return Ok(None);
        };
        if branch.is_some() {
            let sealing = sealed.sealing_of(base).await?;
            sealed.share_keys(sealing, id, head);
            return Ok(Some(keys));
        }
        match keys.for_session(id).map(Arc::new) {
            Some(keys) => {
                sealed.keys().note_keys(id, Head::START, &keys);
                Ok(Some(keys))
            }
            None => sealed.keys().make(id).await.map(Some),
        }
    }
}

/// Number of entries written, and the secrets replaced in them.
pub(super) struct Written {
    pub(super) entries: usize,
    redacted: BTreeMap<String, u32>,
}

impl Written {
    pub(super) fn taken(self, adopted: Adopted) -> Taken {
        Taken {
            replaced: self.redacted,
            ..Taken::of(adopted, Vec::new())
        }
    }
}

/// Chains entries and writes them in chunks.
pub(super) struct Writer<'a, 'b> {
    intake: &'a mut Intake<'b>,
    id: SessionId,
    pub(super) base: Option<Origin>,
    /// True until the session was created.
    pub(super) is_new: bool,
    /// End of what was written.
    written: Head,
    /// End of what was chained.
    chained: Head,
    chunk: Vec<Entry>,
    bytes: usize,
    trail: Trail,
    result: Written,
    /// Keys of a sealed session.
    pub(super) keys: Option<Arc<SessionKeys>>,
    pub(super) numbering: Numbering,
}

impl<'a, 'b> Writer<'a, 'b> {
    pub(super) fn new(intake: &'a mut Intake<'b>, id: SessionId, head: Head, trail: Trail) -> Self {
        Writer {
            intake,
            id,
            base: None,
            is_new: false,
            written: head,
            chained: head,
            chunk: Vec::new(),
            bytes: 0,
            trail,
            result: Written {
                entries: 0,
                redacted: BTreeMap::new(),
            },
            keys: None,
            numbering: Numbering::default(),
        }
    }

    /// Starts a new key: the session leaves another one before the last of its `keys` was started.
    pub(super) async fn renew(&mut self, keys: &SessionKeys) -> StoreResult<()> {
        let sessions = self.intake.sessions;
        let recipients = keys.recipients().clone();
        let renewed = sessions.renewed_after(self.id, keys, recipients, &self.chunk);
        let entry = renewed.await?;
        self.chained = entry.head();
        self.chunk.push(entry);
        self.keys = sessions.sealed_store().keys().unlocked(self.id);
        Ok(())
    }

    pub(super) async fn write_messages(
        mut self,
        talk: &Foreign,
        shared: usize,
    ) -> StoreResult<Written> {
        // Messages that a summary does not cover, and the ends of what it does.
        let kept = talk
            .said
            .iter()
            .filter_map(|said| said.compacts.as_ref()?.keeps);
        let mut before_kept: HashMap<EntryId, Option<Seq>> =
            kept.map(|id| (id, self.trail.before_message(id))).collect();
        for said in &talk.said[shared..] {
            let after = self.chained.seq;
            if let Some(before) = before_kept.get_mut(&said.id) {
                *before = Some(after);
            }
            let new = match &said.compacts {
                Some(compaction) => {
                    let kept = compaction.keeps.and_then(|kept| before_kept.get(&kept));
                    vec![talk.compacting(said, kept.copied().flatten().unwrap_or(after))]
                }
                None => vec![talk.saying(said)],
            };
            self.push(new).await?;
        }
        for closing in talk.closings(self.id) {
            self.push(vec![closing]).await?;
        }
        self.flush().await?;
        if self.intake.doing == Doing::Preview {
            self.intake.trails.insert(self.id, self.trail);
        }
        Ok(self.result)
    }

    pub(super) async fn push(&mut self, new: Vec<NewEntry>) -> StoreResult<()> {
        let sessions = self.intake.sessions;
        let kept = new
            .into_iter()
            .map(|new| sessions.kept(new.id, new.at, new.body))
            .collect::<StoreResult<Vec<_>>>()?;
        for (kind, count) in kept.iter().flat_map(|new| &new.redacted) {
            *self.result.redacted.entry(kind.clone()).or_insert(0) += count;
        }
        let keys = self.keys.as_deref();
        let entries = chain_sealed(keys, &self.chained, &self.numbering, kept)?;
        self.chained = entries.last().map_or(self.chained, Entry::head);
        self.bytes += entries
            .iter()
            .map(|entry| entry.line().len())
            .sum::<usize>();
        self.result.entries += entries.len();
        self.chunk.extend(entries);
        match self.chunk.len() >= CHUNK || self.bytes >= CHUNK_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> StoreResult<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.chunk);
        self.bytes = 0;
        if self.intake.doing == Doing::Preview {
            self.trail.read(&Log {
                entries,
                damage: Vec::new(),
            });
            return Ok(());
        }
        let store = self.intake.sessions.store();
        self.written = match std::mem::take(&mut self.is_new) {
            false => store.append(self.id, self.written, &entries).await?,
            true => {
                let base = self.base.take();
                let id = self.id;
                store.create(&NewSession { id, base, entries }).await?
            }
        };
        Ok(())
    }
}
