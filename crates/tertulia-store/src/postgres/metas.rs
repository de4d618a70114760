//! Metadata of the sessions that this store wrote last, so that an append need not read it first. The
//! server compares the head in any case.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

use tertulia_core::entry::Head;
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;

/// Number of sessions to remember.
const MOST: usize = 128;

/// The sessions that were written last.
#[derive(Debug, Default)]
pub(super) struct Metas {
    known: HashMap<SessionId, (Uuid, SessionMeta)>,
    oldest_first: VecDeque<SessionId>,
}

impl Metas {
    /// Returns log and metadata of a session that ends at `head`.
    pub(super) fn get(&self, id: SessionId, head: Head) -> Option<(Uuid, SessionMeta)> {
        let known = self.known.get(&id)?;
        (known.1.head == head).then(|| known.clone())
    }

    /// Remembers a session.
    pub(super) fn put(&mut self, id: SessionId, log: Uuid, meta: SessionMeta) {
        if self.known.insert(id, (log, meta)).is_none() {
            self.oldest_first.push_back(id);
        }
        if self.oldest_first.len() > MOST
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Forgets a session.
    pub(super) fn forget(&mut self, id: SessionId) {
        if self.known.remove(&id).is_some() {
            self.oldest_first.retain(|known| *known != id);
        }
    }

    /// Forgets all sessions.
    pub(super) fn clear(&mut self) {
        *self = Metas::default();
    }
}
