//! Messages of clients that wait for the conversation: which client sent each, and its end.

use jiff::Timestamp;
use tertulia_engine::error::{ErrorBody, ErrorKind};
use tertulia_engine::message_queue::{MessageQueue, WithdrawReason};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::state::Running;
use super::{ClientId, HostedSession, Queued, ReplyTo, SessionAction, SessionRequest};
use crate::reply_stream::ReplyStream;

/// Tells when a conversation is open.
pub struct Opening(pub(super) watch::Receiver<Option<Result<MessageQueue, ErrorBody>>>);

impl Opening {
    /// Waits until the conversation is open, and returns the messages that wait for it. Fails if it could
    /// not be opened.
    pub async fn messages(mut self) -> Result<MessageQueue, ErrorBody> {
        let opened = self.0.wait_for(Option::is_some).await;
        let opened = opened.ok().and_then(|opened| opened.clone());
        opened.unwrap_or_else(|| Err(gone()))
    }
}

/// The error for a conversation that has ended.
pub fn gone() -> ErrorBody {
    ErrorBody::new(ErrorKind::NotFound, "this session has ended")
}

impl HostedSession {
    /// Returns true if a message with this id is queued, being answered, held or saved.
    pub fn has_message(&self, client_id: &str) -> bool {
        self.state().has_message(client_id)
    }

    /// Notes the client of a message that is about to be queued. Returns false for a message that the
    /// session has already.
    pub fn expect(&self, client_id: &str, client: ClientId, asker: Option<ReplyTo>) -> bool {
        let mut state = self.state();
        if state.has_message(client_id) {
            return false;
        }
        let Some(task) = &mut state.task else {
            return true;
        };
        task.queued.push(Queued {
            client,
            cancel: CancellationToken::new(),
            client_id: Some(client_id.to_owned()),
            asker,
        });
        true
    }

    /// Forgets the client of a message that was not queued.
    pub fn forget(&self, client_id: &str) {
        let is_it = |queued: &Queued| queued.client_id.as_deref() == Some(client_id);
        self.state().take_queued(is_it);
    }

    /// Lets the conversation take the next queued message when it is free.
    pub fn wake(&self, client: ClientId) {
        let state = self.state();
        if let Some(task) = &state.task {
            let request = SessionRequest {
                action: SessionAction::Next,
                client,
                asker: None,
                cancel: CancellationToken::new(),
            };
            // A conversation that is gone has withdrawn its messages.
            let _ = task.requests.send(request);
        }
    }

    /// Returns what tells when the conversation is open.
    pub fn opening(&self) -> Option<Opening> {
        let task = self.task()?;
        Some(Opening(task.messages.subscribe()))
    }

    /// Returns the messages that wait for the conversation, if it is open.
    pub fn open_messages(&self) -> Option<MessageQueue> {
        let task = self.task()?;
        let messages = task.messages.borrow().clone();
        messages?.ok()
    }

    /// Marks a queued message as running. Returns what cancels it.
    pub fn begin_message(&self, client_id: &str, now: Timestamp) -> CancellationToken {
        let mut state = self.state();
        let is_it = |queued: &Queued| queued.client_id.as_deref() == Some(client_id);
        let queued = state.take_queued(is_it);
        let cancel = queued.as_ref().map(|queued| queued.cancel.clone());
        let cancel = cancel.unwrap_or_default();
        state.since = now;
        state.running = Some(Running {
            client: queued
                .as_ref()
                .map_or(ClientId::MAX, |queued| queued.client),
            asker: queued.and_then(|queued| queued.asker),
            telling: ReplyStream::default(),
            cancel: cancel.clone(),
            client_id: Some(client_id.to_owned()),
        });
        cancel
    }

    /// Cancels the running turn and this client's queued requests, and withdraws all messages that wait.
    /// Returns true if there were any.
    pub fn cancel(&self, client: ClientId) -> bool {
        let messages = self.open_messages();
        let mut any = messages
            .as_ref()
            .is_some_and(|messages| !messages.is_empty());
        {
            let state = self.state();
            for queued in state.task.iter().flat_map(|task| &task.queued) {
                if queued.client == client && queued.client_id.is_none() {
                    queued.cancel.cancel();
                    any = true;
                }
            }
            if let Some(running) = &state.running {
                any = true;
                running.cancel.cancel();
            }
        }
        // Not under the lock: it publishes the end of each message.
        if let Some(messages) = messages {
            messages.withdraw(WithdrawReason::Cancelled);
        }
        any
    }
}
