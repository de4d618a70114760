//! The pen of a running talk: it knows where its log ends, steps aside into a fork when somebody else
//! has written there, and holds in memory what cannot be saved until it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use tertulia_core::entry::{Body, Entry, Head, Relation, SpeakerKind};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::session::{SESSION_LIMIT, SessionMeta};
use tertulia_store::{Draft, Fork, SessionLock, Sessions, Start, StoreError, StoreResult};

/// At this part of the limit a session's size is mentioned.
const NEAR_LIMIT: u64 = SESSION_LIMIT / 100 * 80;

/// What to do when somebody else writes to the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Go on in a fork.
    Fork,
    /// Stop with the conflict.
    Refuse,
}

/// Keeps a copy of a session somewhere else.
#[async_trait]
pub trait SessionMirror: std::fmt::Debug + Send + Sync {
    /// Makes the copy. What went wrong is said in words: the session itself is safe.
    async fn copy(&self, sessions: &Sessions, meta: &SessionMeta) -> Result<(), String>;
}

/// The pen.
#[derive(Debug)]
pub struct LogWriter {
    sessions: Sessions,
    log: LogState,
    claim: Option<SessionLock>,
    unsaved: Vec<Body>,
    /// The first entries of a session whose making failed: made again, they are the same, so that a store
    /// that has half of them recognises them.
    begun: Vec<Entry>,
    /// Why the last write failed, as far as callers act on it.
    locked_out: bool,
    on_conflict: OnConflict,
    told_size: bool,
    copies: Option<Arc<dyn SessionMirror>>,
    /// Whether the log has more than the copy.
    ahead: AtomicBool,
}

#[derive(Debug)]
enum LogState {
    /// Nothing has been said yet: an empty talk leaves nothing behind.
    Unborn(Start),
    Open(Box<SessionMeta>),
}

/// What became of entries.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The entries that are durable now.
    pub entries: Vec<Entry>,
    /// The session that the talk was in before it went on in a fork.
    pub left: Option<SessionId>,
    /// Why nothing is durable, though the talk goes on.
    pub trouble: Option<StoreError>,
    /// The size of the log, the first time that it nears the limit.
    pub near_limit: Option<u64>,
}

impl LogWriter {
    /// A pen for a session that begins with its first words.
    pub fn begin(sessions: Sessions, start: Start, on_conflict: OnConflict) -> LogWriter {
        LogWriter {
            sessions,
            log: LogState::Unborn(start),
            claim: None,
            unsaved: Vec::new(),
            begun: Vec::new(),
            locked_out: false,
            on_conflict,
            told_size: false,
            copies: None,
            ahead: AtomicBool::new(false),
        }
    }

    /// Has a copy kept from now on, as new as the last [`copy`](LogWriter::copy).
    pub fn keep_copies(&mut self, copies: Arc<dyn SessionMirror>) {
        self.copies = Some(copies);
    }

    /// A pen that continues a session. If another program has it open, the talk goes on in a fork
    /// from the first word on.
    pub async fn resume(
        sessions: Sessions,
        meta: SessionMeta,
        on_conflict: OnConflict,
    ) -> StoreResult<(LogWriter, Option<SessionId>)> {
        let (claim, taken) = match sessions.store().claim(meta.id).await {
            Ok(claim) => {
                let taken = claim.is_none();
                (claim, taken)
            }
            // Where no lock can be made, nothing can be written either: that is told when it is tried.
            Err(error) if is_passing(&error) => (None, false),
            Err(error) => return Err(error),
        };
        // A turn that the other one has under way is not shared.
        let at = match taken {
            true => sessions.turn_border(&meta).await?,
            false => None,
        };
        let mut writer = LogWriter {
            sessions,
            log: LogState::Open(Box::new(meta)),
            claim,
            unsaved: Vec::new(),
            begun: Vec::new(),
            locked_out: false,
            on_conflict,
            told_size: false,
            copies: None,
            ahead: AtomicBool::new(false),
        };
        let left = if taken {
            Some(writer.step_aside(at, Vec::new()).await?.0)
        } else {
            None
        };
        Ok((writer, left))
    }

    /// The session that is being written.
    pub fn id(&self) -> SessionId {
        match &self.log {
            LogState::Unborn(start) => start.id,
            LogState::Open(meta) => meta.id,
        }
    }

    /// The session as it is, once something has been said.
    pub fn meta(&self) -> Option<&SessionMeta> {
        match &self.log {
            LogState::Unborn(_) => None,
            LogState::Open(meta) => Some(meta),
        }
    }

    /// The store's handle.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Writes entries, with those that could not be written before. Only what must not be written at
    /// all is an error; what cannot be written now is held and tried again.
    pub async fn record(&mut self, bodies: Vec<Body>) -> StoreResult<Recorded> {
        let held = self.unsaved.clone();
        let answered = bodies.iter().any(|body| !is_human(body));
        let mut pending = held.clone();
        pending.extend(bodies);
        if pending.is_empty() {
            return Ok(Recorded::default());
        }
        // Said before it is so: whoever insists on leaving does not wait for the write to return, and
        // words that may not be durable are held.
        self.ahead.store(true, Ordering::Relaxed);
        self.unsaved.clone_from(&pending);
        match self.write(pending).await {
            Ok((entries, left)) => {
                self.unsaved.clear();
                self.begun.clear();
                self.locked_out = false;
                let near_limit = self.near_limit();
                Ok(Recorded {
                    entries,
                    left,
                    trouble: None,
                    near_limit,
                })
            }
            // Words that were heard are never dropped: only new ones of a human can be refused.
            Err(error) if answered || is_passing(&error) => {
                self.locked_out = matches!(error, StoreError::Held(_) | StoreError::Locked { .. });
                Ok(Recorded {
                    trouble: Some(error),
                    ..Recorded::default()
                })
            }
            Err(error) => {
                self.unsaved = held;
                // The opening belongs to the entries that were sealed with it.
                match self.unsaved.len() {
                    0 => self.begun.clear(),
                    held => self.begun.truncate(held + 1),
                }
                Err(error)
            }
        }
    }

    async fn write(&mut self, bodies: Vec<Body>) -> StoreResult<(Vec<Entry>, Option<SessionId>)> {
        let meta = match &self.log {
            LogState::Unborn(start) => {
                let start = start.clone();
                if self.claim.is_none() {
                    self.claim = self.sessions.store().claim(start.id).await.ok().flatten();
                }
                self.begin_log(&start, bodies)?;
                let meta = self.sessions.create_sealed(start.id, &self.begun).await?;
                self.log = LogState::Open(Box::new(meta));
                return Ok((std::mem::take(&mut self.begun), None));
            }
            LogState::Open(meta) => meta,
        };
        let (id, head, size) = (meta.id, meta.head, meta.bytes);
        let entries = self.sessions.seal(&head, bodies.clone())?;
        check_size(size, &entries)?;
        match self.sessions.store().append(id, head, &entries).await {
            Ok(_) => {
                self.apply(&entries);
                Ok((entries, None))
            }
            Err(StoreError::Conflict { .. }) => {
                if self.catch_up(id, head).await? {
                    return Box::pin(self.write(bodies)).await;
                }
                let (left, entries) = self.step_aside(None, bodies).await?;
                Ok((entries, Some(left)))
            }
            Err(error) => Err(error),
        }
    }

    /// Seals the first entries of the session, those that were sealed before as they are.
    fn begin_log(&mut self, start: &Start, bodies: Vec<Body>) -> StoreResult<()> {
        let (head, bodies) = match self.begun.last() {
            Some(last) => (last.head(), bodies[self.begun.len() - 1..].to_vec()),
            None => {
                let opening = std::iter::once(start.opening());
                (Head::START, opening.chain(bodies).collect())
            }
        };
        let entries = self.sessions.seal(&head, bodies)?;
        let size = self.begun.iter().map(|entry| entry.line().len() as u64 + 1);
        check_size(size.sum(), &entries)?;
        self.begun.extend(entries);
        Ok(())
    }

    /// Takes in what others have appended, if it is only tidying up: a title or a tag does not get
    /// between two speakers. Whether it was.
    async fn catch_up(&mut self, id: SessionId, head: Head) -> StoreResult<bool> {
        let lines = self.sessions.store().read(id, head.seq, usize::MAX).await?;
        let mut entries = Vec::new();
        for line in &lines {
            match Entry::decode(&line.bytes) {
                Ok(entry) if entry.body.is_tidying() => entries.push(entry),
                _ => return Ok(false),
            }
        }
        let continues = entries.first().is_some_and(|first| first.follows(&head));
        if continues {
            self.apply(&entries);
        }
        Ok(continues)
    }

    /// Goes on in a fork of what this talk knows. The session that is left.
    async fn step_aside(
        &mut self,
        at: Option<Seq>,
        bodies: Vec<Body>,
    ) -> StoreResult<(SessionId, Vec<Entry>)> {
        let LogState::Open(meta) = &self.log else {
            return Err(StoreError::Refused(
                "a session that has not begun cannot be forked".into(),
            ));
        };
        let meta = meta.as_ref().clone();
        if self.on_conflict == OnConflict::Refuse {
            return Err(StoreError::Conflict {
                id: meta.id,
                head: meta.head,
            });
        }
        let fork = Fork {
            id: self.sessions.clock().session_id(),
            at,
            title: None,
            relation: Relation::Conflict,
        };
        self.claim = self.sessions.store().claim(fork.id).await?;
        let (forked, entries) = self.sessions.fork(&meta, &fork, bodies).await?;
        self.log = LogState::Open(Box::new(forked));
        Ok((meta.id, entries))
    }

    /// Makes the copy, if one is to be kept and there is something new. It is made of the whole session, so
    /// that it belongs where a talk rests, not where each of many speaks. What went wrong is said in words,
    /// and the next time tried again.
    pub async fn copy(&self) -> Result<(), String> {
        let (Some(copies), Some(meta)) = (&self.copies, self.meta()) else {
            return Ok(());
        };
        if !self.ahead.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let copied = copies.copy(&self.sessions, meta).await;
        self.ahead.fetch_or(copied.is_err(), Ordering::Relaxed);
        copied
    }

    fn apply(&mut self, entries: &[Entry]) {
        if let LogState::Open(meta) = &mut self.log {
            entries.iter().for_each(|entry| meta.apply(entry));
        }
    }

    fn near_limit(&mut self) -> Option<u64> {
        let size = self.meta().map_or(0, |meta| meta.bytes);
        if size < NEAR_LIMIT || self.told_size {
            return None;
        }
        self.told_size = true;
        Some(size)
    }

    /// Keeps a half-written answer. Losing a draft is no reason to stop a talk.
    pub async fn keep_draft(&self, draft: Draft) -> StoreResult<()> {
        self.sessions.keep_draft(self.id(), draft).await
    }

    /// Reads back an answer that nobody finished and makes it an interrupted message.
    pub async fn recover_draft(&mut self) -> StoreResult<Option<Entry>> {
        let Some(meta) = self.meta() else {
            return Ok(None);
        };
        let recovered = self.sessions.recover(&meta.clone()).await;
        match recovered {
            Ok(Some(entry)) => {
                self.apply(std::slice::from_ref(&entry));
                self.ahead.store(true, Ordering::Relaxed);
                Ok(Some(entry))
            }
            Ok(None) => Ok(None),
            // It cannot be done now; the draft stays where it is.
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether anything is held in memory because it could not be saved.
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Whether it could not be saved because another program holds the store.
    pub fn is_locked_out(&self) -> bool {
        self.has_unsaved() && self.locked_out
    }

    /// The whole log with what could not be saved at its end, as lines that `import` takes in.
    pub async fn unsaved_log(&self) -> StoreResult<Vec<String>> {
        let mut lines = Vec::new();
        let (head, mut bodies) = match &self.log {
            LogState::Unborn(start) => match self.begun.last() {
                Some(last) => {
                    lines.extend(self.begun.iter().map(|entry| entry.line().to_owned()));
                    let rest = self.unsaved.get(self.begun.len() - 1..);
                    let rest = self
                        .sessions
                        .seal(&last.head(), rest.unwrap_or_default().to_vec())?;
                    lines.extend(rest.iter().map(|entry| entry.line().to_owned()));
                    return Ok(lines);
                }
                None => (Head::START, vec![start.opening()]),
            },
            LogState::Open(meta) => {
                let read = self
                    .sessions
                    .store()
                    .read(meta.id, Seq::START, usize::MAX)
                    .await;
                match read {
                    Ok(read) => lines.extend(
                        read.iter()
                            .filter(|line| line.seq <= meta.head.seq)
                            .map(|line| String::from_utf8_lossy(&line.bytes).into_owned()),
                    ),
                    // The store is gone; what is missing at its end can still be brought back to it.
                    Err(_) => lines.push(jsonl::heading(meta.id, meta.head)),
                }
                (meta.head, Vec::new())
            }
        };
        bodies.extend(self.unsaved.iter().cloned());
        lines.extend(
            self.sessions
                .seal(&head, bodies)?
                .iter()
                .map(|entry| entry.line().to_owned()),
        );
        Ok(lines)
    }
}

/// Whether waiting or making room may help: the words are fine, the place is not.
fn is_passing(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::TooLarge { .. }
            | StoreError::Refused(_)
            | StoreError::Conflict { .. }
            | StoreError::Exists(_)
    )
}

fn is_human(body: &Body) -> bool {
    matches!(body, Body::Message(message) if message.speaker.kind == SpeakerKind::Human)
}

fn check_size(size: u64, entries: &[Entry]) -> StoreResult<()> {
    let size = size
        + entries
            .iter()
            .map(|entry| entry.line().len() as u64 + 1)
            .sum::<u64>();
    if size > SESSION_LIMIT {
        return Err(StoreError::TooLarge {
            what: "the session",
            size,
            limit: SESSION_LIMIT,
        });
    }
    Ok(())
}
