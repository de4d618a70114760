//! Source of time and ids, passed in so that everything else is deterministic.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use crate::id::{EntryId, SessionId};

/// Source of the current time and of new ids.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Clock {
    /// Creates a clock from functions for the time and for new UUIDs (version 7, so that they
    /// sort).
    pub fn new(
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        new_uuid: impl Fn() -> Uuid + Send + Sync + 'static,
    ) -> Self {
        Clock {
            now: Arc::new(now),
            new_uuid: Arc::new(new_uuid),
        }
    }

    /// Returns the current time, truncated to microseconds: finer digits are noise in a log.
    pub fn now(&self) -> Timestamp {
        let now = (self.now)();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// Returns a new session id.
    pub fn session_id(&self) -> SessionId {
        SessionId::new((self.new_uuid)())
    }

    /// Returns a new entry id.
    pub fn entry_id(&self) -> EntryId {
        EntryId::new((self.new_uuid)())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
