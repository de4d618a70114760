//! Reading along: a hosted session without a conversation publishes what another program writes.

use tertulia_engine::event::SessionEvent;
use tokio_util::sync::CancellationToken;

use super::{HostedSession, ReplyTo};
use crate::protocol::Detail;

impl HostedSession {
    /// Begins to read what another program writes, if a client follows and no conversation is running
    /// here. Returns the token that ends it.
    pub fn begin_reading(&self) -> Option<CancellationToken> {
        let mut state = self.state();
        let is_followed = |(_, detail): &(ReplyTo, Detail)| *detail == Detail::Full;
        if state.task.is_some()
            || state.reading.is_some()
            || !state.followers.iter().any(is_followed)
        {
            return None;
        }
        let end = CancellationToken::new();
        state.reading = Some(end.clone());
        Some(end)
    }

    /// Publishes what another program has written. Returns false if nothing reads it any more.
    pub fn publish_read(&self, end: &CancellationToken, events: Vec<SessionEvent>) -> bool {
        let mut state = self.state();
        if end.is_cancelled() || state.task.is_some() {
            return false;
        }
        events.into_iter().for_each(|event| state.publish(event));
        true
    }

    /// Ends reading if `end` is the token of it.
    pub fn end_reading(&self, end: &CancellationToken) {
        let mut state = self.state();
        if !end.is_cancelled() {
            end.cancel();
            state.reading = None;
        }
    }

    /// Returns the name of the agent that answers, or answered last.
    pub fn speaker(&self) -> String {
        self.state().moment.speaker()
    }

    /// Returns the beginning of the last answer.
    pub fn last_answer(&self) -> String {
        self.state().moment.last_answer().to_owned()
    }
}
