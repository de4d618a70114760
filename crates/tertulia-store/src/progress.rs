//! Progress of long operations, and when they pause.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Progress callback of a long operation (step, done, total), with an optional time limit for work
/// that a later call can finish.
#[derive(Clone)]
pub struct Progress {
    tell: Arc<dyn Fn(&'static str, u64, u64) + Send + Sync>,
    patience: Option<Duration>,
}

impl Progress {
    /// Creates a `Progress` that calls `tell`.
    pub fn new(tell: impl Fn(&'static str, u64, u64) + Send + Sync + 'static) -> Progress {
        Progress {
            tell: Arc::new(tell),
            patience: None,
        }
    }

    /// Creates a `Progress` that reports nothing.
    pub fn unseen() -> Progress {
        Progress::new(|_, _, _| {})
    }

    /// Sets the time limit for work that a later call can finish.
    #[must_use]
    pub fn within(self, patience: Duration) -> Progress {
        Progress {
            patience: Some(patience),
            ..self
        }
    }

    /// Reports that `done` of `total` units of the step `what` are finished.
    pub fn at(&self, what: &'static str, done: u64, total: u64) {
        (self.tell)(what, done, total);
    }

    /// Returns the deadline for work that starts now.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline(self.patience.map(|patience| Instant::now() + patience))
    }
}

/// When resumable work pauses, if ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Deadline of work that never pauses.
    pub(crate) const NEVER: Deadline = Deadline(None);

    pub(crate) fn has_passed(self) -> bool {
        self.0.is_some_and(|moment| Instant::now() >= moment)
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}
