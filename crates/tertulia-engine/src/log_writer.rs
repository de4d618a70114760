//! [`LogWriter`] appends to the log of a running session, forks it on conflict with another writer,
//! and holds entries in memory while they cannot be saved.

mod unsaved;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use tertulia_core::entry::{Body, Entry, Head, Relation, SpeakerKind, Terms};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{SESSION_LIMIT, SessionMeta};
use tertulia_store::{
    Draft, Fork, LockHolder, SessionLock, Sessions, Start, StoreError, StoreResult,
};

/// Size in bytes from which on the user is warned: 80 % of the limit.
const NEAR_LIMIT: u64 = SESSION_LIMIT / 100 * 80;
/// How often a session is opened anew because another program replaced its log meanwhile.
const ATTEMPTS: usize = 5;

/// Reaction to another writer in the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Continue in a fork.
    Fork,
    /// Return the conflict as an error.
    Refuse,
    /// Take the session over when it is opened; later, continue in a fork.
    TakeOver,
}

/// Writes a session to a file outside the store.
#[async_trait]
pub trait SessionMirror: std::fmt::Debug + Send + Sync {
    /// Writes the file. An error is a message for the user: the session itself is saved.
    async fn copy(&self, sessions: &Sessions, meta: &SessionMeta) -> Result<(), String>;
}

/// Appends to the log of one session.
#[derive(Debug)]
pub struct LogWriter {
    sessions: Sessions,
    log: LogState,
    lock: Option<SessionLock>,
    unsaved: Vec<Body>,
    /// First entries, chained, of a session whose creation failed. A retry uses the same entries, so
    /// that a store that has some of them recognises them.
    begun: Vec<Entry>,
    /// Whether the last write failed because another process holds the store.
    locked_out: bool,
    on_conflict: OnConflict,
    warned_of_size: bool,
    mirror: Option<Arc<dyn SessionMirror>>,
    /// Whether the mirror is out of date.
    ahead: AtomicBool,
    /// Whether another program had the session open, and may still run.
    took_over: bool,
}

#[derive(Debug)]
enum LogState {
    /// The session has no entries and is not created yet: an empty session is never saved.
    Unborn(Start),
    Open(Box<SessionMeta>),
}

/// Result of recording entries.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Entries that are now durable.
    pub entries: Vec<Entry>,
    /// The previous session, if the writer continued in a fork.
    pub left: Option<SessionId>,
    /// Why the entries are held in memory instead.
    pub trouble: Option<StoreError>,
    /// Size of the log in bytes, the first time that it is close to the limit.
    pub near_limit: Option<u64>,
}

impl LogWriter {
    /// Creates a writer for a new session, which is created with its first entries.
    pub fn begin(sessions: Sessions, start: Start, on_conflict: OnConflict) -> LogWriter {
        LogWriter {
            sessions,
            log: LogState::Unborn(start),
            lock: None,
            unsaved: Vec::new(),
            begun: Vec::new(),
            locked_out: false,
            on_conflict,
            warned_of_size: false,
            mirror: None,
            ahead: AtomicBool::new(false),
            took_over: false,
        }
    }

    /// Returns true if the session was taken over from a program that is still running.
    pub fn took_over(&self) -> bool {
        self.took_over
    }

    /// Returns the program that has a session open, if it is known.
    pub async fn holder_of(&self, id: SessionId) -> Option<LockHolder> {
        self.sessions.store().holder(id).await.ok().flatten()
    }

    /// Sets the mirror, which [`copy`](LogWriter::copy) writes.
    pub fn set_mirror(&mut self, mirror: Arc<dyn SessionMirror>) {
        self.mirror = Some(mirror);
    }

    /// Creates a writer for an existing session. If another process has the session open, forks it
    /// at once and also returns the original.
    pub async fn resume(
        sessions: Sessions,
        meta: SessionMeta,
        on_conflict: OnConflict,
    ) -> StoreResult<(LogWriter, Option<SessionId>)> {
        let mut attempts = 1;
        loop {
            let resumed = LogWriter::resume_now(&sessions, &meta, on_conflict).await;
            match resumed {
                // A program that seals or unseals the session replaces its log, and is soon done.
                Err(StoreError::Conflict { .. } | StoreError::Sealed { .. })
                    if attempts < ATTEMPTS =>
                {
                    attempts += 1;
                }
                resumed => return resumed,
            }
        }
    }

    async fn resume_now(
        sessions: &Sessions,
        meta: &SessionMeta,
        on_conflict: OnConflict,
    ) -> StoreResult<(LogWriter, Option<SessionId>)> {
        let mut took_over = false;
        let (lock, taken) = match sessions.store().claim(meta.id).await {
            Ok(None) if on_conflict == OnConflict::TakeOver => {
                took_over = true;
                (Some(sessions.store().take_over(meta.id).await?), false)
            }
            Ok(None) if on_conflict == OnConflict::Refuse => {
                return Err(sessions.is_open_elsewhere(meta.id).await);
            }
            Ok(lock) => {
                let taken = lock.is_none();
                (lock, taken)
            }
            // Without a lock nothing can be written either, which the first write reports.
            Err(error) if is_passing(&error) => (None, false),
            Err(error) => return Err(error),
        };
        // The log may have changed between reading its metadata and taking its lock.
        let meta = match sessions.reread(meta).await {
            Err(error) if is_passing(&error) => meta.clone(),
            read => read?,
        };
        // The fork does not include the turn that the other process is running.
        let at = match taken {
            true => sessions.turn_border(&meta).await?,
            false => None,
        };
        let mut writer = LogWriter {
            sessions: sessions.clone(),
            log: LogState::Open(Box::new(meta)),
            lock,
            unsaved: Vec::new(),
            begun: Vec::new(),
            locked_out: false,
            on_conflict,
            warned_of_size: false,
            mirror: None,
            ahead: AtomicBool::new(false),
            took_over,
        };
        let left = if taken {
            Some(writer.continue_in_fork(at, Vec::new()).await?.0)
        } else {
            None
        };
        Ok((writer, left))
    }

    /// Marks a session that has no entries yet as open, for words that are kept outside of its log.
    pub async fn hold(&mut self) {
        if let (LogState::Unborn(start), None) = (&self.log, &self.lock) {
            self.lock = self.sessions.store().claim(start.id).await.ok().flatten();
        }
    }

    /// Returns the project of the session.
    pub fn project(&self) -> Option<&str> {
        match &self.log {
            LogState::Unborn(start) => start.project.as_deref(),
            LogState::Open(meta) => meta.project.as_deref(),
        }
    }

    /// Returns the id of the session.
    pub fn id(&self) -> SessionId {
        match &self.log {
            LogState::Unborn(start) => start.id,
            LogState::Open(meta) => meta.id,
        }
    }

    /// Sets the terms with which a session begins that has no entries yet.
    pub fn begin_with(&mut self, terms: Terms) {
        if let LogState::Unborn(start) = &mut self.log {
            start.terms = Some(Box::new(terms));
        }
    }

    /// Returns the session's metadata, or `None` before the first entries.
    pub fn meta(&self) -> Option<&SessionMeta> {
        match &self.log {
            LogState::Unborn(_) => None,
            LogState::Open(meta) => Some(meta),
        }
    }

    /// Returns the store.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Writes entries, after those held before. Entries that cannot be written now are held for the
    /// next call; only entries that the log refuses are an error.
    pub async fn record(&mut self, bodies: Vec<Body>) -> StoreResult<Recorded> {
        let held = self.unsaved.clone();
        let answered = bodies.iter().any(|body| !is_human(body));
        let mut pending = held.clone();
        pending.extend(bodies);
        if pending.is_empty() {
            return Ok(Recorded::default());
        }
        // Set before the write: a user who forces the exit does not wait for the write, and
        // entries that may not be durable must count as held.
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
            // Answers are never dropped: only new messages of a human can be refused.
            Err(error) if answered || is_passing(&error) || self.is_overtaken(&error) => {
                self.locked_out = matches!(error, StoreError::Held(_) | StoreError::Locked { .. });
                Ok(Recorded {
                    trouble: Some(error),
                    ..Recorded::default()
                })
            }
            Err(error) => {
                self.unsaved = held;
                // One more than held, because the first chained entry is the opening.
                match self.unsaved.len() {
                    0 => self.begun.clear(),
                    held => self.begun.truncate(held + 1),
                }
                Err(error)
            }
        }
    }

    /// Returns true if words have no place because the log was replaced, not because of what they are:
    /// they are held, and offered as a file in the end. Who wants no fork is told at once.
    fn is_overtaken(&self, error: &StoreError) -> bool {
        match error {
            StoreError::Sealed { .. } => true,
            StoreError::Conflict { .. } => self.on_conflict != OnConflict::Refuse,
            _ => false,
        }
    }

    async fn write(&mut self, bodies: Vec<Body>) -> StoreResult<(Vec<Entry>, Option<SessionId>)> {
        let meta = match &self.log {
            LogState::Unborn(start) => {
                let start = start.clone();
                self.hold().await;
                self.begin_log(&start, bodies).await?;
                let meta = self.sessions.create_chained(start.id, &self.begun).await?;
                self.log = LogState::Open(Box::new(meta));
                return Ok((std::mem::take(&mut self.begun), None));
            }
            LogState::Open(meta) => meta,
        };
        let (id, head, size) = (meta.id, meta.head, meta.bytes);
        let entries = self.sessions.chain(id, &head, bodies.clone()).await?;
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
                let (left, entries) = self.continue_in_fork(None, bodies).await?;
                Ok((entries, Some(left)))
            }
            Err(error) => Err(error),
        }
    }

    /// Chains the first entries of the session, and keeps those that were chained before.
    async fn begin_log(&mut self, start: &Start, bodies: Vec<Body>) -> StoreResult<()> {
        let (head, bodies) = match self.begun.last() {
            Some(last) => (last.head(), bodies[self.begun.len() - 1..].to_vec()),
            None => {
                let opening = std::iter::once(start.opening());
                (Head::START, opening.chain(bodies).collect())
            }
        };
        let entries = self.sessions.chain(start.id, &head, bodies).await?;
        let size = self.begun.iter().map(|entry| entry.line().len() as u64 + 1);
        check_size(size.sum(), &entries)?;
        self.begun.extend(entries);
        Ok(())
    }

    /// Applies entries that another process appended, if all are housekeeping such as titles and
    /// tags, which do not conflict with a conversation. Returns whether it did.
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

    /// Decides whether a second writer of a session continues in a fork of the log as it knows it, up
    /// to `at` if given, or is refused. Returns the previous session and the fork's entries.
    async fn continue_in_fork(
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
        // Its log may have been replaced by the sealed or the plain one, in which the same entries have
        // other hashes: the fork begins with the log as it is now.
        let base = self.sessions.reread(&meta).await?;
        let fork = Fork {
            id: self.sessions.clock().session_id(),
            at: at.or(Some(meta.head.seq.min(base.head.seq))),
            title: None,
            relation: Relation::Conflict,
        };
        let lock = self.sessions.store().claim(fork.id).await?;
        let (forked, entries) = self.sessions.fork(&base, &fork, bodies).await?;
        // The lock of the session that is left is held until the fork exists.
        self.lock = lock;
        self.log = LogState::Open(Box::new(forked));
        Ok((meta.id, entries))
    }

    /// Writes the mirror, if there is one and it is out of date. It is written as a whole, so this
    /// should be called once per turn, not per message. An error is a message for the user, and the
    /// next call tries again.
    pub async fn copy(&self) -> Result<(), String> {
        let (Some(mirror), Some(meta)) = (&self.mirror, self.meta()) else {
            return Ok(());
        };
        if !self.ahead.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let copied = mirror.copy(&self.sessions, meta).await;
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
        if size < NEAR_LIMIT || self.warned_of_size {
            return None;
        }
        self.warned_of_size = true;
        Some(size)
    }

    /// Saves a partial answer as a draft.
    pub async fn keep_draft(&self, draft: Draft) -> StoreResult<()> {
        self.sessions.keep_draft(self.id(), draft).await
    }

    /// Appends the draft of an unfinished answer as an interrupted message.
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
            // Not possible now; the draft remains.
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if entries are held in memory because they could not be saved.
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Returns true if entries are held because another process holds the store.
    pub fn is_locked_out(&self) -> bool {
        self.has_unsaved() && self.locked_out
    }
}

/// Returns true if a later attempt may succeed, because the entries are valid and the store is the
/// problem.
fn is_passing(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::TooLarge { .. }
            | StoreError::Refused(_)
            | StoreError::Sealed { .. }
            | StoreError::NoKey { .. }
            | StoreError::Conflict { .. }
            | StoreError::Opened { .. }
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
