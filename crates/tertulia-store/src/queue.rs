//! Waits for a file lock that another writer holds; announced after a second, given up after a
//! limit or on request.
//!
//! A writer first tries the lock, a few times within the length of an ordinary write. If it is still
//! taken, a separate thread blocks on it, so that the kernel decides the order (polling alone starves
//! some of many writers), while the writer watches the clock. Each lock has one such thread, started
//! by its first wait. A wait that is given up leaves the thread blocked; the next wait for the same
//! lock takes it over.

mod holder;

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use super::{StoreError, StoreResult, place};
use tertulia_core::id::SessionId;

pub use holder::LockHolder;
pub(super) use holder::Record;

/// A wait longer than this is announced.
pub(super) const ANNOUNCED_AFTER: Duration = Duration::from_secs(1);
/// Limit of the waits after one that was given up, until one succeeds.
const TIRED_LIMIT: Duration = Duration::from_secs(1);
/// Number and interval of the first tries. A lock that is taken by one of them saves passing it from
/// the waiting thread to the writer, which costs eight writers a tenth of their turns.
const TRIES: usize = 8;
const BETWEEN_TRIES: Duration = Duration::from_micros(50);
/// How often a waiting writer checks whether to give up.
const GLANCE: Duration = Duration::from_millis(40);
/// The limit if none is set.
const DEFAULT_LIMIT: Duration = Duration::from_secs(30);

/// A lock that another process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The store or log that it guards.
    pub place: String,
    /// Its holder, if known.
    pub holder: Option<LockHolder>,
    /// The total time limit of the wait.
    pub limit: Duration,
}

impl fmt::Display for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is being written by ", self.place)?;
        match &self.holder {
            Some(holder) => write!(f, "{holder}"),
            None => f.write_str("another program"),
        }
    }
}

impl HeldLock {
    /// Says what a writer waits for, and how long.
    pub fn waiting_text(&self) -> String {
        let limit = self.limit.as_secs();
        format!("waiting to save: {self}; giving up after {limit} s")
    }
}

/// How long the writers of a store wait for other processes. Clones share one state.
#[derive(Clone)]
pub struct Patience(Arc<Shared>);

struct Shared {
    limit: Duration,
    /// This process, as shown to processes that wait for it.
    me: LockHolder,
    now: Option<Box<dyn Fn() -> Timestamp + Send + Sync>>,
    state: Mutex<PatienceState>,
    waits: watch::Sender<Option<HeldLock>>,
}

#[derive(Default)]
struct PatienceState {
    /// Sessions whose writes must not wait, with the number of guards; `None` stands for all
    /// sessions.
    hurried: HashMap<Option<SessionId>, usize>,
    /// True if the last wait was given up.
    tired: bool,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::of(DEFAULT_LIMIT, LockHolder::default(), None)
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Patience({:?})", self.0.limit)
    }
}

impl Patience {
    /// Creates a `Patience` with this limit; other processes see the given program and host as the
    /// holder.
    pub fn new(
        limit: Duration,
        program: &str,
        host: Option<&str>,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Patience {
        let me = LockHolder {
            program: Some(program.to_owned()),
            host: host.map(str::to_owned),
            ..LockHolder::default()
        };
        Patience::of(limit, me, Some(Box::new(now)))
    }

    fn of(
        limit: Duration,
        me: LockHolder,
        now: Option<Box<dyn Fn() -> Timestamp + Send + Sync>>,
    ) -> Patience {
        Patience(Arc::new(Shared {
            limit,
            me: LockHolder {
                pid: std::process::id(),
                ..me
            },
            now,
            state: Mutex::default(),
            waits: watch::Sender::new(None),
        }))
    }

    /// Subscribes to waits of more than a second.
    pub fn waits(&self) -> Waits {
        Waits(self.0.waits.subscribe())
    }

    /// Makes writes of this session, or all writes, fail instead of waiting, until the guard is
    /// dropped.
    #[must_use]
    pub fn give_up(&self, session: Option<SessionId>) -> GivenUp {
        *self.state().hurried.entry(session).or_default() += 1;
        GivenUp {
            patience: self.clone(),
            session,
        }
    }

    /// Limits waits to `TIRED_LIMIT` until one succeeds, as after a wait that was given up.
    pub(super) fn tire(&self) {
        self.state().tired = true;
    }

    fn state(&self) -> MutexGuard<'_, PatienceState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long a write of this session may wait now.
    pub(super) fn limit(&self, session: Option<SessionId>) -> Duration {
        let state = self.state();
        if state.hurried.contains_key(&None) || state.hurried.contains_key(&session) {
            Duration::ZERO
        } else if state.tired {
            TIRED_LIMIT.min(self.0.limit)
        } else {
            self.0.limit
        }
    }

    /// Announces a wait, or its end.
    pub(super) fn announce(&self, wait: Option<HeldLock>) {
        self.0.waits.send_if_modified(|known| {
            let changed = *known != wait;
            *known = wait;
            changed
        });
    }
}

/// Receives waits of more than a second.
#[derive(Debug)]
pub struct Waits(watch::Receiver<Option<HeldLock>>);

impl Waits {
    /// Returns the current wait, or the next one.
    pub async fn next(&mut self) -> HeldLock {
        loop {
            if let Some(held) = self.0.borrow_and_update().clone() {
                return held;
            }
            if self.0.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns the next wait after the one just returned.
    pub async fn another(&mut self) -> HeldLock {
        match self.0.changed().await {
            Ok(()) => self.next().await,
            Err(_) => std::future::pending().await,
        }
    }
}

/// While this guard exists, writes do not wait.
#[derive(Debug)]
pub struct GivenUp {
    patience: Patience,
    session: Option<SessionId>,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        let mut state = self.patience.state();
        if let Some(count) = state.hurried.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                state.hurried.remove(&self.session);
            }
        }
    }
}

/// A requested operation: its session, and since when it waits.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub(super) session: Option<SessionId>,
    since: Instant,
    /// Limit of this operation's wait.
    limit: Option<Duration>,
}

impl Asked {
    pub(super) fn now(session: Option<SessionId>) -> Asked {
        Asked {
            session,
            since: Instant::now(),
            limit: None,
        }
    }

    /// Sets a limit for this operation's wait.
    pub(super) fn within(self, limit: Duration) -> Asked {
        Asked {
            limit: Some(limit),
            ..self
        }
    }
}

/// A lock file with a queue.
#[derive(Debug)]
pub(super) struct QueueLock {
    file: Arc<File>,
    waiter: Arc<(Mutex<Waiter>, Condvar)>,
    /// Where the holder is recorded.
    record: Record,
}

/// What the waiting thread of a lock does.
#[derive(Debug, Default)]
enum Waiter {
    /// It was not started yet.
    #[default]
    None,
    /// It waits for the next wait.
    Idle,
    /// It blocks on the lock; `wanted` is false after the wait was given up.
    Blocks { wanted: bool },
    /// It has the lock, or has failed.
    Done(io::Result<()>),
    /// The lock is dropped: it ends.
    Ends,
}

impl QueueLock {
    pub(super) fn new(file: File, record: Record) -> QueueLock {
        QueueLock {
            file: Arc::new(file),
            waiter: Arc::default(),
            record,
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Takes the lock, or fails with its holder.
    pub(super) fn acquire(
        &self,
        guarded: &Path,
        asked: Asked,
        patience: &Patience,
    ) -> StoreResult<()> {
        let failed = |error| place::trouble(guarded, "cannot queue for", error);
        let mut waiter = self.waiter();
        if matches!(*waiter, Waiter::None | Waiter::Idle) && self.try_briefly().map_err(failed)? {
            drop(waiter);
            self.taken(patience);
            return Ok(());
        }
        if matches!(*waiter, Waiter::None) {
            self.start_waiter().map_err(failed)?;
        }
        *waiter = Waiter::Blocks { wanted: true };
        self.waiter.1.notify_all();
        let began = Instant::now();
        let mut announced = false;
        let taken = loop {
            (waiter, _) = self
                .waiter
                .1
                .wait_timeout(waiter, GLANCE)
                .unwrap_or_else(PoisonError::into_inner);
            if let Waiter::Done(result) = &mut *waiter {
                let result = std::mem::replace(result, Ok(()));
                *waiter = Waiter::Idle;
                break result.map_err(failed);
            }
            let limit = patience.limit(asked.session);
            let limit = asked.limit.map_or(limit, |own| own.min(limit));
            // An operation that spent its time behind others of this process still tries for a
            // moment.
            let waited = asked.since.elapsed();
            if waited >= limit && (limit.is_zero() || began.elapsed() >= GLANCE) {
                *waiter = Waiter::Blocks { wanted: false };
                let holder = self.record.holder(&self.file);
                if asked.limit.is_none() {
                    patience.tire();
                }
                break Err(StoreError::Held(Box::new(HeldLock {
                    place: guarded.display().to_string(),
                    holder,
                    limit,
                })));
            }
            if !announced && waited >= ANNOUNCED_AFTER {
                announced = true;
                patience.announce(Some(HeldLock {
                    place: guarded.display().to_string(),
                    holder: self.record.holder(&self.file),
                    limit,
                }));
            }
        };
        drop(waiter);
        if announced {
            patience.announce(None);
        }
        taken?;
        self.taken(patience);
        Ok(())
    }

    /// Releases the lock.
    pub(super) fn release(&self) {
        let _ = self.file.unlock();
    }

    fn waiter(&self) -> MutexGuard<'_, Waiter> {
        self.waiter.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to take the lock for as long as an ordinary write holds it.
    fn try_briefly(&self) -> io::Result<bool> {
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(BETWEEN_TRIES);
            }
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    fn start_waiter(&self) -> io::Result<()> {
        let (file, shared) = (self.file.clone(), self.waiter.clone());
        let thread = std::thread::Builder::new().name("tertulia-queue".to_owned());
        thread.spawn(move || wait_in_turn(&file, &shared)).map(drop)
    }

    fn taken(&self, patience: &Patience) {
        patience.state().tired = false;
        let mut me = patience.0.me.clone();
        me.since = patience.0.now.as_ref().map(|now| now());
        self.record.write(&self.file, &me);
    }
}

impl Drop for QueueLock {
    fn drop(&mut self) {
        *self.waiter() = Waiter::Ends;
        self.waiter.1.notify_all();
    }
}

/// Blocks on the lock whenever a writer wants it, until the lock is dropped.
fn wait_in_turn(file: &File, (state, changed): &(Mutex<Waiter>, Condvar)) {
    let mut waiter = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match *waiter {
            Waiter::Ends => return,
            Waiter::Blocks { .. } => {
                drop(waiter);
                let result = file.lock();
                waiter = state.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*waiter, Waiter::Blocks { wanted: true }) {
                    *waiter = Waiter::Done(result);
                    // The writer wakes up to a free mutex: the lock is held, and others wait.
                    drop(waiter);
                    changed.notify_all();
                    waiter = state.lock().unwrap_or_else(PoisonError::into_inner);
                } else {
                    let _ = file.unlock();
                    if !matches!(*waiter, Waiter::Ends) {
                        *waiter = Waiter::Idle;
                    }
                }
            }
            Waiter::None | Waiter::Idle | Waiter::Done(_) => {
                waiter = changed.wait(waiter).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(path: &Path) -> QueueLock {
        QueueLock::new(place::lock_file(path).unwrap(), Record::Inside)
    }

    fn patience(limit: Duration) -> Patience {
        Patience::new(limit, "tertulia", Some("here"), || Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_wait_is_announced_and_given_up_with_the_holders_name() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let (one, other) = (lock(&path), lock(&path));
        let patience = patience(Duration::from_millis(1200));
        one.acquire(&path, Asked::now(None), &patience).unwrap();
        let mut waits = patience.waits();
        let refused = other.acquire(&path, Asked::now(None), &patience);
        let Err(StoreError::Held(held)) = refused else {
            panic!("{refused:?}");
        };
        let holder = held.holder.unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(
            holder.to_string(),
            format!(
                "tertulia (process {} on here, since 1970-01-01T00:00:00Z)",
                holder.pid
            )
        );
        assert!(waits.0.has_changed().unwrap());
        // The next wait is short, and takes over the thread that still blocks.
        let began = Instant::now();
        assert!(other.acquire(&path, Asked::now(None), &patience).is_err());
        assert!(began.elapsed() >= TIRED_LIMIT);
        one.release();
        other.acquire(&path, Asked::now(None), &patience).unwrap();
        assert!(one.file().try_lock().is_err());
        assert_eq!(waits.0.borrow_and_update().clone(), None);
        other.release();
        one.file().try_lock().unwrap();
    }

    #[test]
    fn patience_returns_with_the_first_lock_that_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let patience = patience(Duration::from_secs(60));
        patience.tire();
        assert_eq!(patience.limit(None), TIRED_LIMIT);
        lock(&path)
            .acquire(&path, Asked::now(None), &patience)
            .unwrap();
        assert_eq!(patience.limit(None), Duration::from_secs(60));
    }

    #[test]
    fn whoever_is_asked_to_give_up_does_so_at_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let (one, other) = (lock(&path), lock(&path));
        let patience = patience(Duration::from_secs(60));
        one.acquire(&path, Asked::now(None), &patience).unwrap();
        let session = Some(SessionId::new(uuid::Uuid::from_u128(5)));
        let began = Instant::now();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.acquire(&path, Asked::now(session), &patience));
            std::thread::sleep(Duration::from_millis(100));
            let _other = patience.give_up(Some(SessionId::new(uuid::Uuid::from_u128(6))));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waits.is_finished());
            let _given_up = patience.give_up(session);
            assert!(waits.join().unwrap().is_err());
        });
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(patience.limit(session), TIRED_LIMIT);
    }
}
