//! Sealed sessions: [`SealedStore`] stands between [`Sessions`](crate::Sessions) and a backend, and
//! keeps words of sealed sessions from reaching it. Entries are passed on as ciphertext, drafts are
//! encrypted, lists get their titles and searches their hits from decrypted logs in memory.

mod check;
mod copies;
mod keys;
mod openings;
mod recipients;
mod rows;
mod search;
mod swap;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

pub use copies::SealedCopy;
pub(crate) use copies::common_entries;
pub(crate) use keys::Sealing;
use keys::{KeyEntries, Keys, has_keys};
pub use keys::{KeyError, KeySource, Unlocking};
use openings::Openings;
pub use recipients::SealedKey;

use super::{
    CheckMode, Compressed, Draft, Info, LockHolder, Maintenance, NewSession, Patience, Progress,
    Rebuilt, Report, SessionLock, Store, StoreError, StoreResult, Unsent,
};
use tertulia_core::entry::{Entry, Head, Speaker, SpeakerKind};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::seal::{KeyEntry, SessionKeys, with_hidden_ids};
use tertulia_core::session::{Damage, Line, Log};
use tertulia_core::sizes::LogSize;

/// A store whose sealed sessions can be read where their keys are known.
#[derive(Clone, Debug)]
pub(super) struct SealedStore {
    stored: Arc<dyn Store>,
    keys: Keys,
    /// Openings in logs. They stand at the beginning of a session's own entries, so they stay.
    openings: Arc<Mutex<HashMap<SessionId, Arc<Openings>>>>,
}

impl SealedStore {
    pub(super) fn new(stored: Arc<dyn Store>) -> SealedStore {
        SealedStore {
            stored,
            keys: Keys::default(),
            openings: Arc::default(),
        }
    }

    /// Returns the same store with a source of keys.
    pub(super) fn with_source(self, source: Arc<dyn KeySource>) -> SealedStore {
        SealedStore {
            keys: Keys::from(source),
            ..self
        }
    }

    /// Returns the wrapped store.
    pub(super) fn stored(&self) -> &dyn Store {
        self.stored.as_ref()
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns how a session is sealed; `None` if it is not sealed or not in the store.
    pub(super) async fn sealing_of(&self, id: SessionId) -> StoreResult<Option<Sealing>> {
        if let Some(known) = self.keys.sealing_of(id) {
            return Ok(known);
        }
        self.sealing_now(id).await
    }

    /// The same, as the store has it now.
    async fn sealing_now(&self, id: SessionId) -> StoreResult<Option<Sealing>> {
        let row = self.stored.find(&Lookup::Id(id), 1).await?.pop();
        let Some(row) = row else { return Ok(None) };
        self.keys.note(&row.meta);
        Ok(Sealing::of(&row.meta))
    }

    /// Returns the keys of a session; `None` if it is not sealed.
    pub(super) async fn key_of(
        &self,
        id: SessionId,
        unlocking: Unlocking,
    ) -> StoreResult<Option<Arc<SessionKeys>>> {
        match self.sealing_of(id).await? {
            Some(sealing) => self.unlock(id, &sealing, unlocking).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the keys for entries after `head`. Another program may have changed them since they were
    /// known; an append after `head` fails if it did so later.
    pub(super) async fn key_at(
        &self,
        id: SessionId,
        head: &Head,
    ) -> StoreResult<Option<Arc<SessionKeys>>> {
        if !self.keys.knows(id, head)
            && let Err(error) = self.sealing_now(id).await
            // The store may be out of reach while a session goes on.
            && self.keys.sealing_of(id).is_none()
        {
            return Err(error);
        }
        self.key_of(id, Unlocking::Ask).await
    }

    async fn unlock(
        &self,
        id: SessionId,
        sealing: &Sealing,
        unlocking: Unlocking,
    ) -> StoreResult<Arc<SessionKeys>> {
        let entries = match self.keys.of(sealing) {
            Some(known) => return Ok(known),
            None if sealing.keyed.is_empty() => None,
            None => Some(self.key_entries(id, &sealing.keyed).await?),
        };
        self.keys.unlock(id, sealing, entries, unlocking).await
    }

    /// Reads the entries that the keys of a session are found by.
    async fn key_entries(&self, id: SessionId, keyed: &[Head]) -> StoreResult<KeyEntries> {
        let openings = self.openings_of(id).await?;
        let opening = self.entry_at(id, Seq(1)).await?;
        let missing = || StoreError::damaged(format!("session {id}"), "its first entry is missing");
        let mut entries = KeyEntries {
            opening: opening.ok_or_else(missing)?,
            keyed: Vec::new(),
        };
        for head in keyed {
            if let Some(entry) = self.entry_at(id, head.seq).await? {
                let numbering = openings.numbering_at(head.seq);
                entries.keyed.push(KeyEntry { entry, numbering });
            }
        }
        Ok(entries)
    }

    async fn entry_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Entry>> {
        let lines = self.stored.read(id, seq.back(1), 1).await?;
        let line = lines.into_iter().next().filter(|line| line.seq == seq);
        Ok(line.and_then(|line| Entry::decode(&line.bytes).ok()))
    }

    /// Lets a session that begins with entries of a sealed one, up to `head`, have their keys.
    pub(super) fn share_keys(&self, sealing: Option<Sealing>, id: SessionId, head: &Head) {
        let keys = sealing.as_ref().and_then(|sealing| self.keys.of(sealing));
        let shared = sealing.map(|sealing| sealing.until(head.seq));
        if let (Some(keys), Some(shared)) = (keys, &shared) {
            self.keys.insert(shared, Arc::new(keys.until(head.seq)));
        }
        self.keys.note_at(id, *head, shared);
    }

    /// Decrypts the entries that were read of a log. An entry that cannot be decrypted with the
    /// session's key counts as damaged.
    pub(super) async fn open(&self, id: SessionId, log: Log) -> StoreResult<Log> {
        self.open_with(id, log, Unlocking::Ask).await
    }

    async fn open_with(
        &self,
        id: SessionId,
        mut log: Log,
        unlocking: Unlocking,
    ) -> StoreResult<Log> {
        let has_sealed = log.entries.iter().any(Entry::is_sealed);
        let has_plain = log.entries.iter().any(|entry| !entry.body.is_wordless());
        let known = match self.sealing_of(id).await {
            // A plain log is readable even where the session's row is not.
            Err(_) if !has_sealed => return Ok(log),
            known => known?,
        };
        let is_new = |entry: &Entry| {
            let mut keyed = known.iter().flat_map(|sealing| &sealing.keyed);
            has_keys(entry) && !keyed.any(|head| *head == entry.head())
        };
        let sealing = match known.is_some() {
            // Another program may have sealed or unsealed the session since, or changed its keys.
            true if has_plain || log.entries.iter().any(is_new) => self.sealing_now(id).await?,
            false if has_sealed => self.sealing_now(id).await?,
            _ => known,
        };
        let Some(sealing) = sealing else {
            return Ok(log);
        };
        log.reject_plain(id);
        if !has_sealed {
            return Ok(log);
        }
        let opened = self.open_by(&sealing, id, log.clone(), unlocking).await?;
        if opened.damage.len() == log.damage.len() {
            return Ok(opened);
        }
        // It may have been sealed again, with another key.
        match self.sealing_now(id).await? {
            Some(now) if now != sealing => self.open_by(&now, id, log, unlocking).await,
            _ => Ok(opened),
        }
    }

    async fn open_by(
        &self,
        sealing: &Sealing,
        id: SessionId,
        mut log: Log,
        unlocking: Unlocking,
    ) -> StoreResult<Log> {
        let key = self.unlock(id, sealing, unlocking).await?;
        let openings = self.openings_of(id).await?;
        let sealed = std::mem::take(&mut log.entries);
        for entry in sealed {
            let seq = entry.seq;
            match key.open(&openings.numbering_at(seq), entry) {
                Ok(entry) => log.entries.push(entry),
                Err(error) => log.damage.push(Damage {
                    session: id,
                    seq,
                    reason: error.to_string(),
                }),
            }
        }
        log.damage.sort_by_key(|damage| damage.seq);
        Ok(log)
    }

    async fn rows_with_words(&self, rows: &mut [Row]) -> StoreResult<()> {
        for row in rows.iter_mut().filter(|row| row.meta.seal.is_some()) {
            self.keys.note(&row.meta);
            row.meta = self
                .with_words(row.meta.clone(), Unlocking::Quietly)
                .await?;
        }
        Ok(())
    }

    /// Returns entries as they are stored, and fails if they would put words into a sealed session.
    /// `continues` is the session that they continue, if any.
    async fn guarded(
        &self,
        id: SessionId,
        continues: Option<SessionId>,
        entries: &[Entry],
    ) -> StoreResult<Vec<Entry>> {
        let mut stored = Vec::with_capacity(entries.len());
        for entry in entries {
            let entry = entry
                .stored()
                .map_err(|error| StoreError::failed("cannot write an entry", error))?;
            stored.push(entry.into_owned());
        }
        if stored.iter().all(|entry| entry.body.is_wordless()) {
            return Ok(stored);
        }
        let opens_sealed = stored.iter().any(|entry| entry.body.seal().is_some());
        let continues_sealed = match continues {
            Some(base) => self.sealing_of(base).await?.is_some(),
            None => false,
        };
        if opens_sealed || continues_sealed {
            return Err(StoreError::Sealed {
                id,
                reason:
                    "words cannot be added to it in plain; `tertulia unseal` stores it in plain"
                        .to_owned(),
            });
        }
        Ok(stored)
    }
}

/// Returns the filter with what sealed sessions show of the project's ids.
fn with_hidden_project(filter: &Filter) -> Filter {
    Filter {
        project: filter.project.as_ref().map(with_hidden_ids),
        ..filter.clone()
    }
}

/// What is authenticated with a draft beside its words.
fn shown_of(draft: &Draft) -> Vec<u8> {
    format!("draft {} {} {}", draft.after.seq, draft.id, draft.at).into_bytes()
}

/// Encrypts the words of a draft.
fn seal_draft(key: &SessionKeys, draft: &Draft) -> StoreResult<Draft> {
    const WHAT: &str = "cannot write a draft";
    let words = serde_json::to_vec(draft).map_err(|error| StoreError::failed(WHAT, error))?;
    let content = key
        .encrypt(&shown_of(draft), &words)
        .map_err(|error| StoreError::failed(WHAT, error))?;
    Ok(Draft {
        speaker: Speaker {
            id: String::new(),
            name: String::new(),
            display_name: String::new(),
            kind: SpeakerKind::Ai,
        },
        model: None,
        thread: None,
        content,
        reasoning: None,
        sealed: true,
        ..draft.clone()
    })
}

fn open_draft(key: &SessionKeys, draft: &Draft) -> Option<Draft> {
    let words = key.decrypt(&shown_of(draft), &draft.content).ok()?;
    serde_json::from_slice(&words).ok()
}

#[async_trait]
impl Store for SealedStore {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        let base = new.base.as_ref().map(|origin| origin.id);
        let stored = NewSession {
            id: new.id,
            base: new.base.clone(),
            entries: self.guarded(new.id, base, &new.entries).await?,
        };
        let head = self.stored.create(&stored).await?;
        let after = new.base.as_ref().map_or(Head::START, |origin| Head {
            seq: origin.seq,
            hash: origin.hash,
        });
        self.keys.note_append(new.id, after, &stored.entries);
        Ok(head)
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        let entries = self.guarded(id, Some(id), entries).await?;
        let head = self.stored.append(id, after, &entries).await?;
        self.keys.note_append(id, after, &entries);
        Ok(head)
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.stored.read(id, after, limit).await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let mut listing = self.stored.list(&with_hidden_project(filter), page).await?;
        self.rows_with_words(&mut listing.rows).await?;
        Ok(listing)
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let mut rows = self.stored.find(lookup, limit).await?;
        if let (Lookup::Id(_), Some(row)) = (lookup, rows.first()) {
            self.keys.note(&row.meta);
        }
        self.rows_with_words(&mut rows).await?;
        Ok(rows)
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.search_all(query, progress).await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        self.stored.index(progress).await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        let key = match draft.sealed {
            true => None,
            false => self.key_of(id, Unlocking::Quietly).await?,
        };
        match key {
            Some(key) => {
                let sealed = seal_draft(&key, draft)?;
                self.stored.keep_draft(id, &sealed).await
            }
            None => self.stored.keep_draft(id, draft).await,
        }
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        let Some(draft) = self.stored.draft(id).await? else {
            return Ok(None);
        };
        if !draft.sealed {
            return Ok(Some(draft));
        }
        let key = self.key_of(id, Unlocking::Ask).await?;
        let opened = key.and_then(|key| open_draft(&key, &draft));
        let place = || format!("the unfinished answer of session {id}");
        let altered = || StoreError::damaged(place(), "its sealed words were altered");
        opened.map(Some).ok_or_else(altered)
    }

    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        let key = match unsent.is_empty() || unsent.sealed.is_some() {
            true => None,
            false => self.key_of(id, Unlocking::Quietly).await?,
        };
        match key {
            Some(key) => {
                let sealed = unsent.sealed_with(&key, id)?;
                self.stored.keep_unsent(id, &sealed).await
            }
            None => self.stored.keep_unsent(id, unsent).await,
        }
    }

    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        let mut all = self.stored.unsent(id).await?;
        for (of, unsent) in &mut all {
            // Those of all sessions are looked at for sessions that have no entries, and so no key.
            if id.is_none() {
                continue;
            }
            match self.key_of(*of, Unlocking::Ask).await? {
                Some(key) if unsent.sealed.is_some() => *unsent = unsent.opened_with(&key, *of)?,
                // The process that sealed the session was killed.
                Some(_) => self.keep_unsent(*of, unsent).await?,
                None => {}
            }
        }
        Ok(all)
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        self.stored.claim(id).await
    }

    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        self.stored.holder(id).await
    }

    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock> {
        self.stored.take_over(id).await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        self.forget_row(id);
        self.stored.purge(id).await
    }

    async fn replace(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        self.forget_row(id);
        self.stored.replace(id, after, entries).await
    }

    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        self.stored.replace_end(id, after, keep, entries).await
    }

    fn patience(&self) -> &Patience {
        self.stored.patience()
    }

    fn derived_file(&self, name: &str) -> Option<PathBuf> {
        self.stored.derived_file(name)
    }
}

#[async_trait]
impl Maintenance for SealedStore {
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        let mut report = self.stored.check(mode, progress).await?;
        self.check_words(&mut report, progress).await?;
        Ok(report)
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.stored.rebuild(progress).await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.stored.info().await
    }

    async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        self.stored.sizes().await
    }

    async fn compress(&self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        self.stored.compress(ids, progress).await
    }
}
