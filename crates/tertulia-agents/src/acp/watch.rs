//! How long an answer may take, who may stop it, and why it may have to be given up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::live::{Live, Unanswered};
use crate::{AgentError, AgentEvent, AgentSink, Patience};

/// Why an answer ended early.
#[derive(Debug)]
pub(super) enum End {
    /// The agent says so, and can be asked again.
    Told(AgentError),
    /// The agent cannot be asked again: its process is to be ended.
    Lost(Lost),
}

/// Why an agent cannot be asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The person stopped it, and it did not stop in time.
    Cancelled,
    /// It was silent for too long.
    Idle(Duration),
    /// It took too long.
    Total(Duration),
    /// Its process has ended, or it writes something else than the protocol.
    Gone,
    /// It does not keep to the protocol, in words.
    Unfit(String),
}

/// Holds one answer to its limits.
pub(super) struct Watch<'a> {
    pub(super) sink: &'a AgentSink,
    pub(super) patience: Patience,
    began: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn begin(sink: &'a AgentSink, patience: Patience) -> Watch<'a> {
        Watch {
            sink,
            patience,
            began: Instant::now(),
        }
    }

    /// Does something with the agent for as long as patience lasts and nobody stops it.
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

    /// Returns when the whole answer has taken too long.
    pub(super) async fn total(&self) {
        match self.began.checked_add(self.patience.total) {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Tells the person something, if there is something to tell.
    pub(super) async fn remark(&self, words: Option<String>) -> Result<(), End> {
        match words {
            Some(words) => self.say(AgentEvent::Remark(words)).await,
            None => Ok(()),
        }
    }

    /// Says something. Nobody listening is the same as being stopped.
    pub(super) async fn say(&self, event: AgentEvent) -> Result<(), End> {
        tokio::select! {
            biased;
            said = self.sink.say(event) => said.map_err(|_| End::Lost(Lost::Cancelled)),
            () = self.sink.cancel().cancelled() => Err(End::Lost(Lost::Cancelled)),
        }
    }
}
