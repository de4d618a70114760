//! Time limits and cancellation of an answer, and the reasons to give an agent up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::live::{Live, Unanswered};
use crate::{AgentError, AgentEvent, AgentSink, Patience};

/// Why an answer ended early.
#[derive(Debug)]
pub(super) enum End {
    /// The agent reported an error, and can be prompted again.
    Told(AgentError),
    /// The agent cannot be prompted again: its process must be ended.
    Lost(Lost),
}

/// Why an agent cannot be prompted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The user cancelled, and the agent did not stop in time.
    Cancelled,
    /// The agent was silent for too long.
    Idle(Duration),
    /// The answer took too long.
    Total(Duration),
    /// The process has ended, or its output is not the protocol.
    Gone,
    /// The agent violates the protocol, as described.
    Unfit(String),
    /// The agent ran this tool without asking.
    Unasked(String),
}

/// Enforces the limits of one answer.
pub(super) struct Watch<'a> {
    pub(super) sink: &'a AgentSink,
    pub(super) patience: Patience,
    /// Time that the agent has to end its answer after a cancellation.
    pub(super) grace: Duration,
    began: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn begin(sink: &'a AgentSink, patience: Patience, grace: Duration) -> Watch<'a> {
        Watch {
            sink,
            patience,
            grace,
            began: Instant::now(),
        }
    }

    /// Runs `work` until it ends, the time limits are reached, or the user cancels.
    pub(super) async fn over<T>(
        &self,
        live: &Live,
        work: impl Future<Output = Result<T, Unanswered>>,
    ) -> Result<T, End> {
        let lost = tokio::select! {
            biased;
            () = self.sink.cancel().cancelled() => Lost::Cancelled,
            done = work => return done.map_err(End::from),
            () = self.total() => Lost::Total(self.patience.total),
            () = live.silent(Instant::now(), self.patience.idle) => Lost::Idle(self.patience.idle),
        };
        Err(End::Lost(lost))
    }

    /// Waits until the whole answer has taken too long.
    pub(super) async fn total(&self) {
        match self.began.checked_add(self.patience.total) {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Sends a remark to the user, if there is one.
    pub(super) async fn remark(&self, words: Option<String>) -> Result<(), End> {
        match words {
            Some(words) => self.say(AgentEvent::Remark(words)).await,
            None => Ok(()),
        }
    }

    /// Sends an event. A closed channel counts as cancellation.
    pub(super) async fn say(&self, event: AgentEvent) -> Result<(), End> {
        tokio::select! {
            biased;
            said = self.sink.say(event) => said.map_err(|_| End::Lost(Lost::Cancelled)),
            () = self.sink.cancel().cancelled() => Err(End::Lost(Lost::Cancelled)),
        }
    }
}
