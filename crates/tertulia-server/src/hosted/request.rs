//! What clients ask a hosted session to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tertulia_agents::approval::PermissionChange;
use tertulia_engine::spec::SessionSpec;
use tokio_util::sync::CancellationToken;

use crate::outbox::Outbox;
use crate::protocol::{Answer, Id};

/// Client number.
pub type ClientId = u64;

/// A client to reply to, and the request id of its replies.
#[derive(Clone, Debug)]
pub struct ReplyTo {
    /// The client.
    pub client: ClientId,
    /// The request id.
    pub id: Option<Id>,
    /// The queue of its replies.
    pub outbox: Outbox,
    /// False after the client has closed its sending side: then it cannot answer approval requests.
    pub speaks: Arc<AtomicBool>,
}

impl ReplyTo {
    /// Sends a reply.
    pub fn tell(&self, answer: Answer) {
        self.outbox.post(self.id.as_ref(), answer);
    }

    pub(super) fn can_answer(&self) -> bool {
        self.speaks.load(Ordering::Relaxed) && self.outbox.end().is_none()
    }
}

/// A request for a conversation.
#[derive(Debug)]
pub struct SessionRequest {
    /// The command.
    pub action: SessionAction,
    /// The client that gave it.
    pub client: ClientId,
    /// The client that receives the answer as a stream, if any.
    pub asker: Option<ReplyTo>,
    /// Cancels the request, queued or running.
    pub cancel: CancellationToken,
}

/// Command for a conversation.
#[derive(Debug)]
pub enum SessionAction {
    /// Runs a turn with the next message of the queue.
    Next,
    /// Continues a pair's unfinished work, or asks a chat's agent again.
    GoOn,
    /// Sets the team member as whom the user writes.
    As(Option<String>),
    /// Compacts the older part of the context.
    Compact,
    /// Retries saving held messages and reports the result to the client.
    Save,
    /// Changes the tool permissions.
    Permit(PermissionChange),
    /// Lets the agent of this spec answer from the next turn on.
    Switch(Box<SessionSpec>),
    /// Only opens the conversation.
    Open,
}
