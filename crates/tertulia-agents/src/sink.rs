//! What an agent that answers is given: where it speaks, whom it asks for leave, and how it hears
//! that it shall stop.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::process::StderrLine;
use super::{AgentError, AgentEvent};
use crate::approval::{ToolRequest, Verdict};

/// How many events may wait for the listener before the speaker has to.
const ROOM: usize = 256;

/// The floor, from the agent's side.
#[derive(Clone, Debug)]
pub struct AgentSink {
    events: mpsc::Sender<AgentEvent>,
    permissions: mpsc::Sender<Permission>,
    cancel: CancellationToken,
    stderr: Stderr,
}

/// Where the standard error of the agent's program is found, if it is one.
type Stderr = Arc<Mutex<Option<StderrLine>>>;

/// The floor, from the listener's side.
#[derive(Debug)]
pub struct AgentStream {
    /// What the agent says. It ends when the agent has let go of the floor.
    pub events: mpsc::Receiver<AgentEvent>,
    /// What the agent asks leave for.
    pub permissions: mpsc::Receiver<Permission>,
    stderr: Stderr,
}

impl AgentStream {
    /// The last line that the agent's program wrote to standard error, if it is a program and wrote one
    /// since this was asked last.
    pub fn stderr(&self) -> Option<String> {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        stderr.as_ref()?.take()
    }
}

/// A request for leave that waits for its answer. Dropped unanswered, it is a no.
#[derive(Debug)]
pub struct Permission {
    /// What for.
    pub request: ToolRequest,
    answer: oneshot::Sender<Verdict>,
}

impl Permission {
    /// Answers it.
    pub fn settle(self, verdict: Verdict) {
        // Nobody waits any more when the agent has ended meanwhile.
        let _ = self.answer.send(verdict);
    }
}

impl AgentSink {
    /// A floor and its listener. The agent shall stop when `cancel` is cancelled.
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

    /// Says something. Nobody listening means that nobody wants the rest.
    pub async fn say(&self, event: AgentEvent) -> Result<(), AgentError> {
        self.events
            .send(event)
            .await
            .map_err(|_| AgentError::cancelled())
    }

    /// Asks for leave to use a tool of its own.
    pub async fn ask(&self, request: ToolRequest) -> Verdict {
        let (answer, answered) = oneshot::channel();
        let permission = Permission { request, answer };
        if self.permissions.send(permission).await.is_err() {
            return Verdict::No;
        }
        answered.await.unwrap_or(Verdict::No)
    }

    /// Tells where the standard error of its program is found while it answers.
    pub fn show_stderr(&self, line: &StderrLine) {
        let mut stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        *stderr = Some(line.clone());
    }

    /// How it hears that it shall stop.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whether it shall stop.
    pub fn check(&self) -> Result<(), AgentError> {
        if self.cancel.is_cancelled() {
            return Err(AgentError::cancelled());
        }
        Ok(())
    }
}
