//! Waits for a file lock that another writer holds; announced after a second, given up after a
//! limit or on request.
//!
//! The kernel decides the order of many writers (polling alone starves some), and a thread blocked by
//! it can neither watch the clock nor be told to give up. So a separate thread blocks in the writer's
//! place. Each lock has one such thread, started by its first wait. A wait that is given up leaves the
//! thread blocked; the next wait for the same lock takes it over.
//!
//! Passing a lock from that thread to the writer takes time in which no process writes. A lock that
//! many processes want therefore has a turnstile, a second lock that the next writer holds: the order
//! is made there, and the turnstile passes to the writer while the previous one still writes. Only
//! the next writer polls.

mod holder;
mod patience;

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{StoreError, StoreResult, place};
use tertulia_core::id::SessionId;

pub use holder::LockHolder;
pub(super) use holder::Record;
pub use patience::{GivenUp, HeldLock, Patience, Waits};

/// A wait longer than this is announced.
pub(super) const ANNOUNCED_AFTER: Duration = Duration::from_secs(1);
/// Number of tries for a lock without a turnstile, before the writer queues.
const TRIES: usize = 8;
/// Interval between tries.
const BETWEEN_TRIES: Duration = Duration::from_micros(50);
/// How long the next writer polls without sleeping: an ordinary write is shorter, and sleeping costs
/// as much as a third of it.
const SPIN: Duration = Duration::from_millis(1);
/// How often a waiting writer checks whether to give up.
const GLANCE: Duration = Duration::from_millis(40);

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
    /// Lock of the writer that is next.
    turnstile: Option<Arc<File>>,
    waiter: Arc<(Mutex<Waiter>, Condvar)>,
    /// Where the holder is recorded.
    record: Record,
}

/// Watches the clock of a wait.
struct Watch<'a> {
    lock: &'a QueueLock,
    guarded: &'a Path,
    asked: Asked,
    patience: &'a Patience,
    began: Instant,
    announced: bool,
}

impl Watch<'_> {
    /// Announces a long wait. Returns an error if the wait is to be given up.
    fn look(&mut self) -> StoreResult<()> {
        let limit = self.patience.limit(self.asked.session);
        let limit = self.asked.limit.map_or(limit, |own| own.min(limit));
        // An operation that spent its time behind others of this process still tries for a moment.
        let waited = self.asked.since.elapsed();
        if waited >= limit && (limit.is_zero() || self.began.elapsed() >= GLANCE) {
            if self.asked.limit.is_none() {
                self.patience.tire();
            }
            return Err(StoreError::Held(Box::new(self.held(limit))));
        }
        if !self.announced && waited >= ANNOUNCED_AFTER {
            self.announced = true;
            self.patience.announce(Some(self.held(limit)));
        }
        Ok(())
    }

    fn held(&self, limit: Duration) -> HeldLock {
        HeldLock {
            place: self.guarded.display().to_string(),
            holder: self.lock.record.holder(&self.lock.file),
            limit,
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.announced {
            self.patience.announce(None);
        }
    }
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
            turnstile: None,
            waiter: Arc::default(),
            record,
        }
    }

    /// Gives the lock a turnstile. All processes must use the same file.
    #[must_use]
    pub(super) fn with_turnstile(mut self, file: File) -> QueueLock {
        self.turnstile = Some(Arc::new(file));
        self
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
        let mut watch = Watch {
            lock: self,
            guarded,
            asked,
            patience,
            began: Instant::now(),
            announced: false,
        };
        self.line_up(&mut watch, failed)?;
        if let Some(turnstile) = &self.turnstile {
            let taken = self.poll(&mut watch, failed);
            let _ = turnstile.unlock();
            taken?;
        }
        drop(watch);
        self.taken(patience);
        Ok(())
    }

    /// Takes the turnstile, or the lock if there is none, in the order of arrival.
    fn line_up(
        &self,
        watch: &mut Watch<'_>,
        failed: impl Fn(io::Error) -> StoreError,
    ) -> StoreResult<()> {
        let mut waiter = self.waiter();
        if matches!(*waiter, Waiter::None | Waiter::Idle) && self.try_briefly().map_err(&failed)? {
            return Ok(());
        }
        if matches!(*waiter, Waiter::None) {
            self.start_waiter().map_err(&failed)?;
        }
        *waiter = Waiter::Blocks { wanted: true };
        self.waiter.1.notify_all();
        loop {
            (waiter, _) = self
                .waiter
                .1
                .wait_timeout(waiter, GLANCE)
                .unwrap_or_else(PoisonError::into_inner);
            if let Waiter::Done(result) = &mut *waiter {
                let result = std::mem::replace(result, Ok(()));
                *waiter = Waiter::Idle;
                return result.map_err(failed);
            }
            if let Err(given_up) = watch.look() {
                *waiter = Waiter::Blocks { wanted: false };
                return Err(given_up);
            }
        }
    }

    /// Takes the lock as the next writer: the one before is about to release it.
    fn poll(
        &self,
        watch: &mut Watch<'_>,
        failed: impl Fn(io::Error) -> StoreError,
    ) -> StoreResult<()> {
        let began = Instant::now();
        while !try_lock(&self.file).map_err(&failed)? {
            // A holder that takes long is not about to release it.
            match began.elapsed() {
                moment if moment < SPIN => std::thread::yield_now(),
                short if short < GLANCE => std::thread::sleep(BETWEEN_TRIES),
                _ => std::thread::sleep(BETWEEN_TRIES * 20),
            }
            watch.look()?;
        }
        Ok(())
    }

    /// Releases the lock.
    pub(super) fn release(&self) {
        let _ = self.file.unlock();
    }

    fn waiter(&self) -> MutexGuard<'_, Waiter> {
        self.waiter.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lock at which writers line up.
    fn line(&self) -> &Arc<File> {
        self.turnstile.as_ref().unwrap_or(&self.file)
    }

    /// Tries to be the next at once. A lock without a turnstile is tried for as long as an ordinary
    /// write holds it, which saves passing it from the waiting thread to the writer.
    fn try_briefly(&self) -> io::Result<bool> {
        let tries = match self.turnstile {
            Some(_) => 1,
            None => TRIES,
        };
        for attempt in 0..tries {
            if attempt > 0 {
                std::thread::sleep(BETWEEN_TRIES);
            }
            if try_lock(self.line())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn start_waiter(&self) -> io::Result<()> {
        let (file, shared) = (self.line().clone(), self.waiter.clone());
        let thread = std::thread::Builder::new().name("tertulia-queue".to_owned());
        thread.spawn(move || wait_in_turn(&file, &shared)).map(drop)
    }

    fn taken(&self, patience: &Patience) {
        self.record.write(&self.file, &patience.renewed());
    }
}

impl Drop for QueueLock {
    fn drop(&mut self) {
        *self.waiter() = Waiter::Ends;
        self.waiter.1.notify_all();
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
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
    use jiff::Timestamp;
    use tertulia_testkit::waiting::wait_until;

    use super::patience::TIRED_LIMIT;
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
        assert!(waits.has_changed());
        // The next wait is short, and takes over the thread that still blocks.
        let began = Instant::now();
        assert!(other.acquire(&path, Asked::now(None), &patience).is_err());
        assert!(began.elapsed() >= TIRED_LIMIT);
        one.release();
        other.acquire(&path, Asked::now(None), &patience).unwrap();
        assert!(one.file().try_lock().is_err());
        assert_eq!(waits.current(), None);
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
        let patience = patience(Duration::from_secs(3600));
        one.acquire(&path, Asked::now(None), &patience).unwrap();
        let session = Some(SessionId::new(uuid::Uuid::from_u128(5)));
        let announced = patience.waits();
        std::thread::scope(|scope| {
            let _other = patience.give_up(Some(SessionId::new(uuid::Uuid::from_u128(6))));
            let waits = scope.spawn(|| other.acquire(&path, Asked::now(session), &patience));
            // A wait that is announced has looked many times whether to give up.
            wait_until("it waits", || announced.has_changed());
            assert!(!waits.is_finished());
            let _given_up = patience.give_up(session);
            assert!(waits.join().unwrap().is_err());
        });
        assert_eq!(patience.limit(session), TIRED_LIMIT);
    }
}
