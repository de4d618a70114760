//! Waits for programs that lock the database without the writers' queue, such as a database browser.
//!
//! SQLite calls a plain function while the database is busy: what the wait belongs to is therefore
//! kept per thread, and a connection is used by one thread.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::queue::{ANNOUNCED_AFTER, HeldLock, Patience};
use tertulia_core::id::SessionId;

/// Longest wait.
const LIMIT: Duration = Duration::from_secs(10);

/// How often SQLite tries again.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

struct Wait {
    path: PathBuf,
    session: Option<SessionId>,
    patience: Patience,
    announced: bool,
}

thread_local! {
    static WAIT: RefCell<Option<Wait>> = const { RefCell::new(None) };
    static SINCE: RefCell<Option<Instant>> = const { RefCell::new(None) };
}

/// Runs a job; if it has to wait for another program, that is announced, and given up as every wait.
pub(super) fn during<R>(
    path: &Path,
    session: Option<SessionId>,
    patience: &Patience,
    job: impl FnOnce() -> R,
) -> R {
    WAIT.set(Some(Wait {
        path: path.to_owned(),
        session,
        patience: patience.clone(),
        announced: false,
    }));
    let done = job();
    if WAIT.take().is_some_and(|wait| wait.announced) {
        patience.announce(None);
    }
    done
}

/// SQLite's busy handler: returns true to try again. `tries` counts those of the same lock.
pub(super) fn try_again(tries: i32) -> bool {
    let now = Instant::now();
    if tries == 0 {
        SINCE.set(Some(now));
    }
    let waited = SINCE.with_borrow(|since| since.map_or(Duration::ZERO, |since| now - since));
    let limit = WAIT.with_borrow_mut(|wait| wait.as_mut().map_or(LIMIT, |wait| wait.limit(waited)));
    if waited < limit {
        std::thread::sleep(BETWEEN_TRIES);
    }
    waited < limit
}

impl Wait {
    /// Returns how long the wait may take, and announces it after a second.
    fn limit(&mut self, waited: Duration) -> Duration {
        let limit = self.patience.limit(self.session).min(LIMIT);
        if waited >= ANNOUNCED_AFTER && !self.announced {
            self.announced = true;
            self.patience.announce(Some(HeldLock {
                place: self.path.display().to_string(),
                holder: None,
                limit,
            }));
        }
        limit
    }
}
