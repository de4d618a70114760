//! The comfortable handle around a [`Store`]: what every door needs and no backend should repeat.
//! Everything that is written passes through here: it is stamped, measured and cleaned of secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Draft, NewSession, Store, StoreError, StoreResult};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{
    Body, Created, Entry, Forked, Head, Kind, MESSAGE_LIMIT, Message, Origin, Relation, Role,
    SpeakerKind, Unsealed,
};
use tertulia_core::id::{EntryId, Reference, Seq, SessionId};
use tertulia_core::query::{Filter, Lookup, Page, Row};
use tertulia_core::redact::{redact, redact_unfinished};
use tertulia_core::session::{Log, SessionMeta, Status};

/// How many lines are read at a time when reading backwards.
const STRIDE: u64 = 200;

/// The sessions of a store.
#[derive(Clone, Debug)]
pub struct Sessions {
    store: Arc<dyn Store>,
    clock: Clock,
    redaction: Redaction,
}

/// Whether what looks like a secret is replaced before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// It is.
    On,
    /// It is not: somebody asked for that.
    Off,
}

/// How a session begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Its id.
    pub id: SessionId,
    /// What kind of conversation.
    pub kind: Kind,
    /// Its title, if it has one from the start.
    pub title: Option<String>,
    /// The team, for team sessions.
    pub team: Option<String>,
    /// The project it belongs to.
    pub project: Option<String>,
    /// Every identity of that project now.
    pub project_ids: Vec<String>,
    /// The folder it begins in.
    pub cwd: Option<String>,
}

impl Start {
    /// The entry that opens the session.
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

/// How a fork begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// Its own id.
    pub id: SessionId,
    /// The last entry to share; all of them if none is named.
    pub at: Option<Seq>,
    /// Its title, if it is not to be the original's.
    pub title: Option<String>,
    /// Why it is made.
    pub relation: Relation,
}

/// What a reference names.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// This one.
    One(Box<Row>),
    /// None.
    None,
    /// Any of these.
    Several(Vec<Row>),
}

impl Sessions {
    /// A handle around a store.
    pub fn new(store: Arc<dyn Store>, clock: Clock, redaction: Redaction) -> Sessions {
        Sessions {
            store,
            clock,
            redaction,
        }
    }

    /// The store inside.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Where new ids and the time come from.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Makes entries of bodies: stamps them, refuses what cannot be kept, replaces secrets.
    pub fn seal(&self, head: &Head, bodies: Vec<Body>) -> StoreResult<Vec<Entry>> {
        let new = bodies
            .into_iter()
            .map(|body| self.unsealed(body))
            .collect::<StoreResult<Vec<_>>>()?;
        Entry::seal(head, new).map_err(|error| StoreError::failed("cannot write an entry", error))
    }

    fn unsealed(&self, body: Body) -> StoreResult<Unsealed> {
        self.kept(self.clock.entry_id(), self.clock.now(), body)
    }

    /// What is about to be written: measured, and without secrets.
    pub(super) fn kept(&self, id: EntryId, at: Timestamp, mut body: Body) -> StoreResult<Unsealed> {
        // Before secrets are replaced: that may make a text longer, and is no reason to refuse it.
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
        Ok(Unsealed {
            id,
            at,
            body,
            redacted,
        })
    }

    /// Begins a session with its first words. They are durable when this returns.
    pub async fn create(
        &self,
        start: &Start,
        bodies: Vec<Body>,
    ) -> StoreResult<(SessionMeta, Vec<Entry>)> {
        let entries = self.seal(
            &Head::START,
            std::iter::once(start.opening()).chain(bodies).collect(),
        )?;
        let meta = self.create_sealed(start.id, &entries).await?;
        Ok((meta, entries))
    }

    /// Begins a session with entries that are sealed already. They are durable when this returns.
    pub async fn create_sealed(
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

    /// Appends to a session that ends at `head`. Durable when this returns.
    pub async fn append(
        &self,
        id: SessionId,
        head: Head,
        bodies: Vec<Body>,
    ) -> StoreResult<Vec<Entry>> {
        let entries = self.seal(&head, bodies)?;
        self.store.append(id, head, &entries).await?;
        Ok(entries)
    }

    /// Keeps a half-written answer, without its last word: that may be half a key.
    pub async fn keep_draft(&self, id: SessionId, mut draft: Draft) -> StoreResult<()> {
        if self.redaction == Redaction::On {
            draft.content = redact_unfinished(&draft.content).text.into_owned();
        }
        self.store.keep_draft(id, &draft).await
    }

    /// The answer that nobody finished, as the interrupted message that it becomes when the session is
    /// resumed: the same entry whoever asks, before and after.
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
            model: draft.model,
            addressees: Vec::new(),
            asked: None,
            interrupted: true,
            outcome: None,
        };
        let new = Unsealed {
            id: draft.id,
            at: draft.at,
            body: Body::Message(message),
            redacted: BTreeMap::new(),
        };
        let sealed = Entry::seal(&meta.head, vec![new])
            .map_err(|error| StoreError::failed("cannot read a draft", error))?;
        Ok(sealed.into_iter().next())
    }

    /// Makes an answer that nobody finished an interrupted message. `None` if there is none, or if somebody
    /// else has written since.
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

    /// Makes a fork, with its first own words if there are any.
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
            cwd: None,
        });
        let entries = self.seal(&head, std::iter::once(opening).chain(bodies).collect())?;
        let new = NewSession {
            id: fork.id,
            base: Some(from),
            entries,
        };
        self.store.create(&new).await?;
        let row = self.row(fork.id).await?;
        Ok((row.meta, new.entries))
    }

    /// The last entry before the turn that another program has under way in a session: a fork that shared half
    /// of it would begin with words that nobody answers.
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

    /// The list row of a session.
    pub async fn row(&self, id: SessionId) -> StoreResult<Row> {
        let mut rows = self.store.find(&Lookup::Id(id), 1).await?;
        rows.pop().ok_or(StoreError::NotFound(id))
    }

    /// Finds what a person named. `scope` says among which sessions `@` counts back: those of its project,
    /// or all of them if the project has none.
    pub async fn resolve(&self, reference: &Reference, scope: &Filter) -> StoreResult<Resolved> {
        let rows = match reference {
            Reference::Id(id) => match self.store.find(&Lookup::Id(*id), 1).await? {
                // The id of another program's session that was not free when it was imported.
                none if none.is_empty() => self.original(&id.to_string()).await?,
                found => found,
            },
            Reference::Latest(back) => {
                let mut rows = self.newest(*back, scope).await?;
                if rows.is_empty() && scope.project.is_some() {
                    let everywhere = Filter {
                        project: None,
                        ..scope.clone()
                    };
                    rows = self.newest(*back, &everywhere).await?;
                }
                rows.into_iter().skip(*back).collect()
            }
            Reference::Words(words) => {
                let mut rows = self.store.find(&Lookup::Title(words.clone()), 10).await?;
                if let Some(part) = reference.id_part() {
                    for row in self.store.find(&Lookup::Part(part), 10).await? {
                        if !rows.iter().any(|known| known.meta.id == row.meta.id) {
                            rows.push(row);
                        }
                    }
                }
                if rows.is_empty() {
                    rows = self.original(words).await?;
                }
                prefer_live(rows)
            }
        };
        Ok(match rows.len() {
            0 => Resolved::None,
            1 => rows
                .into_iter()
                .next()
                .map_or(Resolved::None, |row| Resolved::One(Box::new(row))),
            _ => Resolved::Several(rows),
        })
    }

    /// The sessions that were imported under an original id.
    async fn original(&self, id: &str) -> StoreResult<Vec<Row>> {
        self.store.find(&Lookup::Original(id.to_owned()), 10).await
    }

    /// The newest sessions, up to the one that is `back` before the newest.
    async fn newest(&self, back: usize, scope: &Filter) -> StoreResult<Vec<Row>> {
        let page = Page::first(back.saturating_add(1));
        Ok(self.store.list(scope, &page).await?.rows)
    }

    /// A whole log.
    pub async fn load(&self, id: SessionId) -> StoreResult<Log> {
        let lines = self.store.read(id, Seq::START, usize::MAX).await?;
        Ok(Log::read(id, Some(Head::START), Seq::START, &lines))
    }

    /// The next entries of a log after those that were read up to `after`, of which the last was `before` if it
    /// could be read, at most `count`: together they may be large. Of a log that is damaged there, all the rest.
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
        // Where places are missing or out of order, the next page would begin anywhere, for ever.
        let in_order = (after.0.saturating_add(1)..)
            .zip(&lines)
            .all(|(seq, line)| line.seq.0 == seq);
        if !in_order {
            lines = self.store.read(id, after, usize::MAX).await?;
            last = Seq(u64::MAX);
        }
        Ok(Some((Log::read(id, before, after, &lines), last)))
    }

    /// One entry of a log.
    pub async fn load_one(&self, meta: &SessionMeta, seq: Seq) -> StoreResult<Log> {
        // With the one before it, which proves its hash.
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

    /// The end of a log, back to where `enough` says that it is, without reading the rest.
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

    /// The last `count` messages with what happened between them.
    pub async fn last_messages(&self, meta: &SessionMeta, count: usize) -> StoreResult<Log> {
        let mut log = self
            .load_back(meta, |log| log.messages().count() >= count)
            .await?;
        log.keep_last_messages(count);
        Ok(log)
    }
}

/// The human message that began the last turn, if the log goes back beyond it.
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

/// What is in the trash is meant only if nothing else is.
fn prefer_live(rows: Vec<Row>) -> Vec<Row> {
    if rows.iter().any(|row| row.meta.trashed_at.is_none()) {
        rows.into_iter()
            .filter(|row| row.meta.trashed_at.is_none())
            .collect()
    } else {
        rows
    }
}

/// Refuses a message that cannot be kept as it is.
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
