//! Time and chance, handed in from outside so that everything inside is repeatable.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use crate::id::{EntryId, SessionId};

/// Where new ids and the present moment come from.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Clock {
    /// A stamp that asks these two for the time and for fresh UUIDs (version 7, so that they sort).
    pub fn new(
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        new_uuid: impl Fn() -> Uuid + Send + Sync + 'static,
    ) -> Self {
        Clock {
            now: Arc::new(now),
            new_uuid: Arc::new(new_uuid),
        }
    }

    /// The present moment, in microseconds: finer digits are noise in a log.
    pub fn now(&self) -> Timestamp {
        let now = (self.now)();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// A fresh session id.
    pub fn session_id(&self) -> SessionId {
        SessionId::new((self.new_uuid)())
    }

    /// A fresh entry id.
    pub fn entry_id(&self) -> EntryId {
        EntryId::new((self.new_uuid)())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stamp")
    }
}
