//! [`Sessions`], the handle around a [`Store`]: what all frontends need and no backend should
//! repeat. All writes pass through here to get their ids and times, a size check and redaction.

mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::sealed::{SealedStore, Sealing};
use super::{Draft, KeySource, NewSession, Store, StoreError, StoreResult, Unlocking};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{
    Author, Body, Created, Entry, Forked, Head, Kind, MESSAGE_LIMIT, Message, NewEntry, Numbering,
    Origin, Relation, Renamed, Role, Terms, Thought, plain,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Lookup, Row};
use tertulia_core::redact::{redact, redact_unfinished};
use tertulia_core::seal::SessionKeys;
use tertulia_core::session::SessionMeta;

/// The sessions of a store.
#[derive(Clone, Debug)]
pub struct Sessions {
    store: SealedStore,
    clock: Clock,
    pub(super) redaction: Redaction,
    author: Option<Author>,
}

/// Whether secrets are replaced before writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// Replaces text that looks like a secret.
    On,
    /// Writes text unchanged, on the user's request.
    Off,
}

/// Parameters of a new session.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Session id.
    pub id: SessionId,
    /// Kind of conversation.
    pub kind: Kind,
    /// Title, if set from the start.
    pub title: Option<String>,
    /// Team, for team sessions.
    pub team: Option<String>,
    /// Project id.
    pub project: Option<String>,
    /// All current ids of that project.
    pub project_ids: Vec<String>,
    /// Working directory at the start.
    pub cwd: Option<String>,
    /// Terms that the user set before the first message.
    pub terms: Option<Box<Terms>>,
}

impl Start {
    /// Builds the session's opening entry.
    pub fn opening(&self) -> Body {
        Body::Created(Created {
            session: self.id,
            kind: self.kind,
            title: self.title.clone(),
            team: self.team.clone(),
            project: self.project.clone(),
            project_ids: self.project_ids.clone(),
            cwd: self.cwd.clone(),
            terms: self.terms.clone(),
            seal: None,
        })
    }
}

/// Parameters of a fork.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// Id of the fork.
    pub id: SessionId,
    /// Last entry to share; `None` shares all.
    pub at: Option<Seq>,
    /// Title, if it differs from the original's.
    pub title: Option<String>,
    /// Reason for the fork.
    pub relation: Relation,
}

/// Result of resolving a session reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// Exactly one session.
    One(Box<Row>),
    /// No session.
    None,
    /// Several candidates.
    Several(Vec<Row>),
}

impl Sessions {
    /// Wraps a store.
    pub fn new(store: Arc<dyn Store>, clock: Clock, redaction: Redaction) -> Sessions {
        Sessions {
            store: SealedStore::new(store),
            clock,
            redaction,
            author: None,
        }
    }

    /// Sets where the keys of sealed sessions come from.
    #[must_use]
    pub fn with_keys(self, source: Arc<dyn KeySource>) -> Sessions {
        Sessions {
            store: self.store.with_source(source),
            ..self
        }
    }

    /// Names the author of all entries that are written through this handle.
    #[must_use]
    pub fn written_by(self, author: Author) -> Sessions {
        Sessions {
            author: Some(author),
            ..self
        }
    }

    /// Returns the store. Its sealed sessions show words where their keys are at hand.
    pub fn store(&self) -> &dyn Store {
        &self.store
    }

    /// Returns the store as it is at rest: for copies, and for everything that is derived on disk.
    pub fn stored(&self) -> &dyn Store {
        self.store.stored()
    }

    pub(super) fn sealed_store(&self) -> &SealedStore {
        &self.store
    }

    /// Seals a session that is about to be created: makes its key.
    pub async fn seal_new(&self, id: SessionId) -> StoreResult<()> {
        self.store.keys().make(id).await.map(|_| ())
    }

    /// Returns true if a new session will be sealed.
    pub fn is_to_be_sealed(&self, id: SessionId) -> bool {
        self.store.keys().unlocked(id).is_some()
    }

    /// Returns the metadata of a session with its words: if it is sealed, gets its key, and asks for
    /// it if need be.
    pub async fn unlocked(&self, meta: SessionMeta) -> StoreResult<SessionMeta> {
        self.store.with_words(meta, Unlocking::Ask).await
    }

    /// Returns the metadata of a session as the store has it now, with its words.
    pub async fn reread(&self, meta: &SessionMeta) -> StoreResult<SessionMeta> {
        let now = self.row(meta.id).await?.meta;
        match now.head == meta.head {
            true => Ok(meta.clone()),
            false => self.unlocked(now).await,
        }
    }

    /// Returns the error for a session that another program has open, with its name.
    pub async fn is_open_elsewhere(&self, id: SessionId) -> StoreError {
        let holder = self.store.holder(id).await.ok().flatten().map(Box::new);
        StoreError::Opened { id, holder }
    }

    /// Returns the source of time and ids.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Turns bodies into chained entries of a session: adds ids and times, rejects invalid messages,
    /// replaces secrets, and encrypts those of a sealed session.
    pub async fn chain(
        &self,
        id: SessionId,
        head: &Head,
        bodies: Vec<Body>,
    ) -> StoreResult<Vec<Entry>> {
        let new = bodies
            .into_iter()
            .map(|body| self.new_entry(body))
            .collect::<StoreResult<Vec<_>>>()?;
        self.chain_new(id, head, new).await
    }

    /// Chains new entries of a session, and encrypts them if it is sealed.
    pub(super) async fn chain_new(
        &self,
        id: SessionId,
        head: &Head,
        new: Vec<NewEntry>,
    ) -> StoreResult<Vec<Entry>> {
        let key = match new.iter().all(|new| new.body.is_wordless()) {
            true => None,
            // A session that begins is in no store, and sealed only if it was said.
            false if *head == Head::START => self.store.keys().of_new(id),
            false => self.store.key_at(id, head).await?,
        };
        let opens = |new: &NewEntry| matches!(new.body, Body::Created(_) | Body::Forked(_));
        let numbering = match &key {
            Some(_) if !new.first().is_some_and(opens) => {
                self.store.numbering_after(id, head).await?
            }
            _ => Numbering::default(),
        };
        chain_sealed(key.as_deref(), head, &numbering, new)
    }

    pub(super) fn new_entry(&self, body: Body) -> StoreResult<NewEntry> {
        let new = self.kept(self.clock.entry_id(), self.clock.now(), body)?;
        Ok(NewEntry {
            author: self.author.clone(),
            ..new
        })
    }

    /// Prepares a body for writing: checks its size and replaces secrets. Names no author: what is
    /// imported has the same hashes on every machine.
    pub(super) fn kept(&self, id: EntryId, at: Timestamp, mut body: Body) -> StoreResult<NewEntry> {
        // Checked before redaction, which may lengthen the text: that is no reason to reject it.
        if let Body::Message(message) = &body {
            check_message(&message.content)?;
        }
        let mut redacted = BTreeMap::new();
        if self.redaction == Redaction::On {
            body.for_each_text(&mut |text| {
                let clean = redact(text);
                for (kind, count) in clean.found {
                    *redacted.entry(kind).or_insert(0) += count;
                }
                if let std::borrow::Cow::Owned(clean) = clean.text {
                    *text = clean;
                }
            });
        }
        Ok(NewEntry {
            id,
            at,
            body,
            redacted,
            author: None,
        })
    }

    /// Creates a session with its first entries. Durable on return.
    pub async fn create(
        &self,
        start: &Start,
        bodies: Vec<Body>,
    ) -> StoreResult<(SessionMeta, Vec<Entry>)> {
        let bodies = std::iter::once(start.opening()).chain(bodies).collect();
        let entries = self.chain(start.id, &Head::START, bodies).await?;
        let meta = self.create_chained(start.id, &entries).await?;
        Ok((meta, entries))
    }

    /// Creates a session with entries that are already chained. Durable on return.
    pub async fn create_chained(
        &self,
        id: SessionId,
        entries: &[Entry],
    ) -> StoreResult<SessionMeta> {
        let new = NewSession {
            id,
            base: None,
            entries: entries.to_vec(),
        };
        self.store.create(&new).await?;
        Ok(SessionMeta::of(id, entries))
    }

    /// Appends to a session that ends at `head`. Durable on return.
    pub async fn append(
        &self,
        id: SessionId,
        head: Head,
        bodies: Vec<Body>,
    ) -> StoreResult<Vec<Entry>> {
        let entries = self.chain(id, &head, bodies).await?;
        self.store.append(id, head, &entries).await?;
        Ok(entries)
    }

    /// Saves a partial answer, without its last word if secrets are replaced: the word may be half
    /// a key.
    pub async fn keep_draft(&self, id: SessionId, mut draft: Draft) -> StoreResult<()> {
        if self.redaction == Redaction::On {
            draft.content = redact_unfinished(&draft.content).text.into_owned();
            let reasoning = draft.reasoning.as_deref().map(redact_unfinished);
            draft.reasoning = reasoning.map(|reasoning| reasoning.text.into_owned());
        }
        self.store.keep_draft(id, &draft).await
    }

    /// Returns the unfinished answer as the interrupted message, or the reasoning, that it becomes on resume. The
    /// result is the same entry every time, before and after.
    pub async fn unfinished(&self, meta: &SessionMeta) -> StoreResult<Option<Entry>> {
        let Some(draft) = self.store.draft(meta.id).await? else {
            return Ok(None);
        };
        let body = match draft.reasoning {
            Some(text) if draft.content.is_empty() => Body::Thought(Thought {
                thread: draft.thread.unwrap_or_default(),
                text,
            }),
            reasoning => Body::Message(Message {
                reasoning,
                thread: draft.thread,
                model: draft.model,
                interrupted: true,
                ..plain(&draft.speaker, Role::Assistant, draft.content)
            }),
        };
        let new = NewEntry {
            id: draft.id,
            at: draft.at,
            body,
            redacted: BTreeMap::new(),
            author: None,
        };
        let chained = self.chain_new(meta.id, &meta.head, vec![new]).await?;
        Ok(chained.into_iter().next())
    }

    /// Appends the unfinished answer as an interrupted message. Returns `None` if there is none, or
    /// if another process has appended meanwhile.
    pub async fn recover(&self, meta: &SessionMeta) -> StoreResult<Option<Entry>> {
        let Some(entry) = self.unfinished(meta).await? else {
            return Ok(None);
        };
        match self
            .store
            .append(meta.id, meta.head, std::slice::from_ref(&entry))
            .await
        {
            Ok(_) => Ok(Some(entry)),
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a fork, with its first own entries if there are any.
    pub async fn fork(
        &self,
        base: &SessionMeta,
        fork: &Fork,
        bodies: Vec<Body>,
    ) -> StoreResult<(SessionMeta, Vec<Entry>)> {
        let head = match fork.at {
            Some(seq) if seq != base.head.seq => self.head_at(base, seq).await?,
            _ => base.head,
        };
        let from = Origin {
            id: base.id,
            seq: head.seq,
            hash: head.hash,
        };
        // What was shared may end before the terms changed.
        let terms = (head != base.head).then(|| base.terms());
        let terms = terms.filter(|terms| !terms.is_empty());
        let opening = |title: Option<String>, terms: Option<Terms>| {
            // Sealing gives an opening with words its seal.
            let is_wordless = title.is_none() && terms.is_none();
            let seal = base.seal.clone().filter(|_| is_wordless);
            Body::Forked(Forked {
                session: fork.id,
                from: from.clone(),
                relation: fork.relation,
                title,
                project: None,
                project_ids: Vec::new(),
                cwd: None,
                terms: terms.map(Box::new),
                seal,
            })
        };
        // A fork shares entries, and so the keys.
        let keys = match base.seal {
            Some(_) => self.keys_of_fork(base, &head, fork, &bodies).await?,
            None => None,
        };
        self.store.share_keys(Sealing::of(base), fork.id, &head);
        let entries = match keys.filter(|keys| keys.changes_after(head.seq)) {
            // Who was removed from the original must not read what is new in the fork.
            Some(keys) => {
                let opening = self
                    .chain(fork.id, &head, vec![opening(None, None)])
                    .await?;
                let recipients = keys.recipients().clone();
                let renewed = self.renewed_after(fork.id, &keys, recipients, &opening);
                let new_key = renewed.await?;
                let head = new_key.head();
                let renamed = fork.title.clone().map(|title| self.renamed(title));
                let words = renamed.into_iter().chain(terms.map(Body::Terms));
                let bodies = words.chain(bodies).collect();
                let rest = self.chain(fork.id, &head, bodies).await?;
                [opening, vec![new_key], rest].concat()
            }
            None => {
                let opening = opening(fork.title.clone(), terms);
                let bodies = std::iter::once(opening).chain(bodies).collect();
                self.chain(fork.id, &head, bodies).await?
            }
        };
        let new = NewSession {
            id: fork.id,
            base: Some(from),
            entries,
        };
        self.store.create(&new).await?;
        let row = self.row(fork.id).await?;
        Ok((row.meta, new.entries))
    }

    pub(super) fn renamed(&self, title: String) -> Body {
        Body::Renamed(Renamed {
            title,
            operation: self.clock.entry_id(),
        })
    }

    async fn head_at(&self, base: &SessionMeta, seq: Seq) -> StoreResult<Head> {
        let outside = || {
            StoreError::Refused(format!(
                "session {} has entries 1 to {}, so there is no entry {seq} to fork at",
                base.id.short(),
                base.head.seq
            ))
        };
        if seq == Seq::START || seq > base.head.seq {
            return Err(outside());
        }
        let lines = self.store.read(base.id, seq.back(1), 1).await?;
        let line = lines.first().ok_or_else(outside)?;
        Entry::decode(&line.bytes)
            .map(|entry| entry.head())
            .map_err(|error| {
                StoreError::damaged(
                    format!("entry {seq} of session {}", base.id),
                    error.to_string(),
                )
            })
    }

    /// Returns the list row of a session.
    pub async fn row(&self, id: SessionId) -> StoreResult<Row> {
        let mut rows = self.store.find(&Lookup::Id(id), 1).await?;
        rows.pop().ok_or(StoreError::NotFound(id))
    }
}

/// Chains entries, and encrypts them if there is a key.
pub(super) fn chain_sealed(
    key: Option<&SessionKeys>,
    head: &Head,
    numbering: &Numbering,
    new: Vec<NewEntry>,
) -> StoreResult<Vec<Entry>> {
    const WHAT: &str = "cannot write an entry";
    match key {
        Some(key) => key
            .chain(head, numbering, new)
            .map_err(|error| StoreError::failed(WHAT, error)),
        None => Entry::chain(head, new).map_err(|error| StoreError::failed(WHAT, error)),
    }
}

/// Rejects a message that cannot be stored unchanged.
pub fn check_message(content: &str) -> StoreResult<()> {
    if content.len() > MESSAGE_LIMIT {
        return Err(StoreError::TooLarge {
            what: "the message",
            size: content.len() as u64,
            limit: MESSAGE_LIMIT as u64,
        });
    }
    if let Some(at) = content.find('\0') {
        return Err(StoreError::Refused(format!(
            "the message has a NUL byte at position {at}; text has none"
        )));
    }
    Ok(())
}
