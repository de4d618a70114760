//! How long writers wait for other processes, and whom they tell.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tertulia_core::id::SessionId;
use tokio::sync::watch;

use super::LockHolder;

/// Limit of the waits after one that was given up, until one succeeds.
pub(super) const TIRED_LIMIT: Duration = Duration::from_secs(1);
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

    /// Returns true if a lock belongs to another process than this one. An unknown holder does not.
    pub fn is_other(&self, holder: &LockHolder) -> bool {
        let me = &self.0.me;
        holder.pid != 0 && (holder.pid, &holder.host) != (me.pid, &me.host)
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

    /// Returns this process as the holder of a lock that it takes now.
    pub(crate) fn holder(&self) -> LockHolder {
        LockHolder {
            since: self.0.now.as_ref().map(|now| now()),
            ..self.0.me.clone()
        }
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

    /// Ends the short waits after one that was given up. Returns this process as a holder from now on.
    pub(super) fn renewed(&self) -> LockHolder {
        self.state().tired = false;
        LockHolder {
            since: self.0.now.as_ref().map(|now| now()),
            ..self.0.me.clone()
        }
    }

    /// Limits waits to `TIRED_LIMIT` until one succeeds, as after a wait that was given up.
    pub(crate) fn tire(&self) {
        self.state().tired = true;
    }

    fn state(&self) -> MutexGuard<'_, PatienceState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long a write of this session may wait now.
    pub(crate) fn limit(&self, session: Option<SessionId>) -> Duration {
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
    pub(crate) fn announce(&self, wait: Option<HeldLock>) {
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

    /// Returns the current wait, if any.
    #[cfg(test)]
    pub(super) fn current(&mut self) -> Option<HeldLock> {
        self.0.borrow_and_update().clone()
    }

    #[cfg(test)]
    pub(super) fn has_changed(&self) -> bool {
        self.0.has_changed().unwrap()
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
