//! [`Sessions`], the handle around a [`Store`]: what all frontends need and no backend should
//! repeat. All writes pass through here to get their ids and times, a size check and redaction.

mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Draft, NewSession, Store, StoreError, StoreResult};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{
    Author, Body, Created, Entry, Forked, Head, Kind, MESSAGE_LIMIT, Message, NewEntry, Origin,
    Relation, Role, SpeakerKind,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Lookup, Row};
use tertulia_core::redact::{redact, redact_unfinished};
use tertulia_core::session::{Log, SessionMeta, Status};

/// Lines per read when reading backwards.
const STRIDE: u64 = 200;

/// The sessions of a store.
#[derive(Clone, Debug)]
pub struct Sessions {
    store: Arc<dyn Store>,
    clock: Clock,
    redaction: Redaction,
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
            store,
            clock,
            redaction,
            author: None,
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

    /// Returns the wrapped store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Returns the source of time and ids.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Turns bodies into chained entries: adds ids and times, rejects invalid messages, replaces
    /// secrets.
    pub fn chain(&self, head: &Head, bodies: Vec<Body>) -> StoreResult<Vec<Entry>> {
        let new = bodies
            .into_iter()
            .map(|body| self.new_entry(body))
            .collect::<StoreResult<Vec<_>>>()?;
        Entry::chain(head, new).map_err(|error| StoreError::failed("cannot write an entry", error))
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
        let entries = self.chain(
            &Head::START,
            std::iter::once(start.opening()).chain(bodies).collect(),
        )?;
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
        let entries = self.chain(&head, bodies)?;
        self.store.append(id, head, &entries).await?;
        Ok(entries)
    }

    /// Saves a partial answer, without its last word if secrets are replaced: the word may be half
    /// a key.
    pub async fn keep_draft(&self, id: SessionId, mut draft: Draft) -> StoreResult<()> {
        if self.redaction == Redaction::On {
            draft.content = redact_unfinished(&draft.content).text.into_owned();
        }
        self.store.keep_draft(id, &draft).await
    }

    /// Returns the unfinished answer as the interrupted message that it becomes on resume. The
    /// result is the same entry every time, before and after.
    pub async fn unfinished(&self, meta: &SessionMeta) -> StoreResult<Option<Entry>> {
        let Some(draft) = self.store.draft(meta.id).await? else {
            return Ok(None);
        };
        let message = Message {
            speaker: draft.speaker,
            role: Role::Assistant,
            content: draft.content,
            thread: draft.thread,
            tool_calls: Vec::new(),
            tool_call_id: None,
            usage: None,
            usage_id: None,
            model: draft.model,
            addressees: Vec::new(),
            asked: None,
            interrupted: true,
            outcome: None,
        };
        let new = NewEntry {
            id: draft.id,
            at: draft.at,
            body: Body::Message(message),
            redacted: BTreeMap::new(),
            author: None,
        };
        let chained = Entry::chain(&meta.head, vec![new])
            .map_err(|error| StoreError::failed("cannot read a draft", error))?;
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
        let opening = Body::Forked(Forked {
            session: fork.id,
            from: from.clone(),
            relation: fork.relation,
            title: fork.title.clone(),
            project: None,
            project_ids: Vec::new(),
            cwd: None,
        });
        let entries = self.chain(&head, std::iter::once(opening).chain(bodies).collect())?;
        let new = NewSession {
            id: fork.id,
            base: Some(from),
            entries,
        };
        self.store.create(&new).await?;
        let row = self.row(fork.id).await?;
        Ok((row.meta, new.entries))
    }

    /// Returns the last entry before the turn that another process is running in a session: a fork
    /// that shared half of the turn would begin with an unanswered message.
    pub async fn turn_border(&self, meta: &SessionMeta) -> StoreResult<Option<Seq>> {
        if meta.status != Status::Active {
            return Ok(None);
        }
        let log = self
            .load_back(meta, |log| turn_start(log).is_some())
            .await?;
        let first = log.messages().next().map(|(entry, _)| entry.seq);
        Ok(turn_start(&log).or(first).map(|seq| seq.back(1)))
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

    /// Reads a whole log.
    pub async fn load(&self, id: SessionId) -> StoreResult<Log> {
        let lines = self.store.read(id, Seq::START, usize::MAX).await?;
        Ok(Log::read(id, Some(Head::START), Seq::START, &lines))
    }

    /// Reads the next entries of a log after `after`, at most `count`, since all together may be
    /// large. `before` is the head at `after`, if that entry could be read. If sequence numbers are
    /// missing or out of order, reads all the rest instead.
    pub async fn load_next(
        &self,
        id: SessionId,
        after: Seq,
        before: Option<Head>,
        count: usize,
    ) -> StoreResult<Option<(Log, Seq)>> {
        let mut lines = self.store.read(id, after, count).await?;
        let Some(mut last) = lines.last().map(|line| line.seq) else {
            return Ok(None);
        };
        // With sequence numbers missing or out of order, paging would never end.
        let in_order = (after.0.saturating_add(1)..)
            .zip(&lines)
            .all(|(seq, line)| line.seq.0 == seq);
        if !in_order {
            lines = self.store.read(id, after, usize::MAX).await?;
            last = Seq(u64::MAX);
        }
        Ok(Some((Log::read(id, before, after, &lines), last)))
    }

    /// Reads one entry of a log, after the entry before it.
    pub async fn load_one(&self, meta: &SessionMeta, seq: Seq) -> StoreResult<Log> {
        // The entry before it proves its hash.
        let after = seq.back(2);
        let lines = self
            .store
            .read(
                meta.id,
                after,
                usize::try_from(seq.0 - after.0).unwrap_or(2),
            )
            .await?;
        let before = (after == Seq::START).then_some(Head::START);
        Ok(Log::read(meta.id, before, after, &lines))
    }

    /// Reads the end of a log backwards until `enough` returns true, without reading the rest.
    pub async fn load_back(
        &self,
        meta: &SessionMeta,
        mut enough: impl FnMut(&Log) -> bool,
    ) -> StoreResult<Log> {
        let mut log = Log::default();
        let mut upto = meta.head.seq;
        while upto > Seq::START {
            let after = upto.back(STRIDE);
            let count = usize::try_from(upto.0 - after.0).unwrap_or(usize::MAX);
            let lines = self.store.read(meta.id, after, count).await?;
            let before = (after == Seq::START).then_some(Head::START);
            let mut earlier = Log::read(meta.id, before, after, &lines);
            earlier.entries.append(&mut log.entries);
            earlier.damage.append(&mut log.damage);
            log = earlier;
            upto = after;
            if enough(&log) {
                break;
            }
        }
        Ok(log)
    }

    /// Reads the last `count` messages with the entries between them.
    pub async fn last_messages(&self, meta: &SessionMeta, count: usize) -> StoreResult<Log> {
        let mut log = self
            .load_back(meta, |log| log.messages().count() >= count)
            .await?;
        log.keep_last_messages(count);
        Ok(log)
    }
}

/// Returns the human message that began the last turn, if the log goes back beyond it.
fn turn_start(log: &Log) -> Option<Seq> {
    let is_human = |message: &Message| message.speaker.kind == SpeakerKind::Human;
    let mut start = None;
    let messages: Vec<(Seq, bool)> = log
        .messages()
        .map(|(entry, message)| (entry.seq, is_human(message)))
        .collect();
    for (seq, human) in messages.into_iter().rev() {
        match (human, start) {
            (true, _) => start = Some(seq),
            (false, Some(_)) => return start,
            (false, None) => {}
        }
    }
    None
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
