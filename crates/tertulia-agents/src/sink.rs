//! The channels between an agent that answers and its consumer: events, permission requests and
//! cancellation.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::process::StderrLine;
use super::{AgentError, AgentEvent};
use crate::approval::{ToolRequest, Verdict};

/// Number of events that may wait for the consumer before the agent has to wait.
const ROOM: usize = 256;

/// The agent's side of the channels.
#[derive(Clone, Debug)]
pub struct AgentSink {
    events: mpsc::Sender<AgentEvent>,
    permissions: mpsc::Sender<Permission>,
    cancel: CancellationToken,
    stderr: Stderr,
}

/// Last line of standard error of the agent's program, if it is a program.
type Stderr = Arc<Mutex<Option<StderrLine>>>;

/// The consumer's side of the channels.
#[derive(Debug)]
pub struct AgentStream {
    /// Events of the agent. The stream ends when the agent has dropped its sinks.
    pub events: mpsc::Receiver<AgentEvent>,
    /// Permission requests of the agent.
    pub permissions: mpsc::Receiver<Permission>,
    stderr: Stderr,
}

impl AgentStream {
    /// Returns the last line that the agent's program wrote to standard error, if it is a program
    /// and wrote one since the last call.
    pub fn stderr(&self) -> Option<String> {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        stderr.as_ref()?.take()
    }
}

/// A permission request that waits for its answer. Dropping it unanswered denies it.
#[derive(Debug)]
pub struct Permission {
    /// The request.
    pub request: ToolRequest,
    answer: oneshot::Sender<Verdict>,
}

impl Permission {
    /// Answers the request.
    pub fn settle(self, verdict: Verdict) {
        // The receiver is gone if the agent has ended meanwhile.
        let _ = self.answer.send(verdict);
    }
}

impl AgentSink {
    /// Creates both sides. The agent must stop when `cancel` is cancelled.
    pub fn open(cancel: &CancellationToken) -> (AgentSink, AgentStream) {
        let (events, heard) = mpsc::channel(ROOM);
        let (permissions, asked) = mpsc::channel(1);
        let stderr = Stderr::default();
        let sink = AgentSink {
            events,
            permissions,
            cancel: cancel.clone(),
            stderr: stderr.clone(),
        };
        let listener = AgentStream {
            events: heard,
            permissions: asked,
            stderr,
        };
        (sink, listener)
    }

    /// Sends an event. A closed channel counts as cancellation: the consumer does not want the
    /// rest.
    pub async fn say(&self, event: AgentEvent) -> Result<(), AgentError> {
        self.events
            .send(event)
            .await
            .map_err(|_| AgentError::cancelled())
    }

    /// Asks for permission to use one of the agent's own tools.
    pub async fn ask(&self, request: ToolRequest) -> Verdict {
        let (answer, answered) = oneshot::channel();
        let permission = Permission { request, answer };
        if self.permissions.send(permission).await.is_err() {
            return Verdict::No;
        }
        answered.await.unwrap_or(Verdict::No)
    }

    /// Makes the standard error of the agent's program available to the consumer while it answers.
    pub fn show_stderr(&self, line: &StderrLine) {
        let mut stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        *stderr = Some(line.clone());
    }

    /// Token that is cancelled when the agent must stop.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns an error if the agent must stop.
    pub fn check(&self) -> Result<(), AgentError> {
        if self.cancel.is_cancelled() {
            return Err(AgentError::cancelled());
        }
        Ok(())
    }
}
