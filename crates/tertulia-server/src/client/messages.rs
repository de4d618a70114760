//! Messages of a client. A client that does not know whether its message arrived sends it again under
//! the same id, and it is said once.

use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Page, Trash};
use tertulia_engine::event::SessionEvent;
use tertulia_engine::message_queue::{MessageQueue, Put, WithdrawReason};
use tertulia_store::UnsentMessage;

use super::{Client, accepted};
use crate::host::{HostResult, Which};
use crate::hosted::{ReplyTo, SessionAction};
use crate::protocol::{
    Answer, Ask, ErrorBody, ErrorKind, Id, LONGEST_CLIENT_ID, Tokens, TurnStatus,
};

/// Number of forks of a session that are asked for a message: the conversation continues in a fork if
/// another program wrote to the session.
const FORKS: usize = 20;

/// How often a session is opened again that closes while a message is sent to it.
const ATTEMPTS: usize = 3;

/// A message that a client sends.
struct Outgoing {
    text: String,
    /// Whether `@path` in it attaches files.
    attach: bool,
    client_id: Option<String>,
    /// Whether the client was told before that it is accepted.
    again: bool,
}

impl Client {
    /// Sends a message to the current session. The reply comes as a stream.
    pub(super) async fn query(
        &mut self,
        id: Option<Id>,
        query: String,
        client_id: Option<String>,
    ) -> HostResult<Option<Answer>> {
        if query.trim().is_empty() {
            return Err(ErrorBody::new(ErrorKind::Usage, "there is nothing to say"));
        }
        check(client_id.as_deref())?;
        let which = match self.guest.current() {
            Some(which) => which,
            None => Which::New(self.host().new_id()),
        };
        if let Some(session) = self.has_said(which.id(), client_id.as_deref()).await? {
            return Ok(Some(self.completed(session).await));
        }
        // Set before the message is queued: the conversation may move to a fork, and moves the client
        // with it.
        self.guest.set_current(Some(which));
        let message = Outgoing {
            text: query,
            attach: false,
            client_id,
            again: false,
        };
        Ok(
            match self.put(which, message, Some(self.reply_to(id))).await {
                // The asker has been told what is wrong.
                Err(_) | Ok((_, Put::Queued)) => None,
                Ok((_, Put::Duplicate)) => Some(self.completed(which.id()).await),
                Ok((client_id, Put::Withdrawn(reason))) => {
                    Some(withdrawn(which.id(), client_id, reason))
                }
            },
        )
    }

    /// Executes a request about a message of the user.
    pub(super) async fn about_messages(&self, ask: Ask) -> HostResult<Answer> {
        match ask {
            Ask::Say {
                session_id,
                text,
                attach,
                client_id,
                again,
            } => {
                let message = Outgoing {
                    text,
                    attach,
                    client_id,
                    again,
                };
                self.say(&session_id, message).await
            }
            Ask::EditQueued {
                session_id,
                client_id,
                text,
            } => self.edit_queued(&session_id, &client_id, text).await,
            Ask::Withdraw {
                session_id,
                client_id,
            } => self.withdraw(&session_id, &client_id).await,
            Ask::KeepDraft {
                session_id,
                client_id,
                text,
            } => self.keep_draft(&session_id, &client_id, text).await,
            _ => Err(ErrorBody::new(
                ErrorKind::Failed,
                "internal error: no request about a message",
            )),
        }
    }

    /// Sends a message to a session. The answer comes as events.
    async fn say(&self, session: &str, message: Outgoing) -> HostResult<Answer> {
        check(message.client_id.as_deref())?;
        let which = self.known(session).await?;
        let duplicate = |id: SessionId| Answer::Accepted {
            session_id: id.to_string(),
            duplicate: true,
        };
        let client_id = message.client_id.as_deref();
        if let Some(session) = self.has_said(which.id(), client_id).await? {
            return Ok(duplicate(session));
        }
        if message.text.trim().is_empty() {
            let request = self.session_request(SessionAction::GoOn);
            self.hub
                .submit(&self.guest, which, &self.participants, request)?;
            return Ok(accepted(which.id()));
        }
        Ok(match self.put(which, message, None).await? {
            (_, Put::Queued) => accepted(which.id()),
            (_, Put::Duplicate) => duplicate(which.id()),
            (client_id, Put::Withdrawn(reason)) => withdrawn(which.id(), client_id, reason),
        })
    }

    /// Queues a message, and opens the session if necessary. Returns the id of the message and what became
    /// of it.
    async fn put(
        &self,
        which: Which,
        message: Outgoing,
        asker: Option<ReplyTo>,
    ) -> HostResult<(String, Put)> {
        let new_id = || self.host().new_id().to_string();
        let client_id = message.client_id.unwrap_or_else(new_id);
        let unsent = UnsentMessage {
            client_id: client_id.clone(),
            at: self.host().now(),
            text: message.text,
            is_command: false,
            attaches: message.attach,
            is_queued: true,
        };
        let mut attempts = 1;
        let error = loop {
            let opened = self
                .hub
                .open(&self.guest, which, &self.participants, asker.clone());
            let (hosted, opening) = match opened {
                Ok(opened) => opened,
                Err(error) => break error,
            };
            let queue = match opening.messages().await {
                Ok(queue) => queue,
                Err(error) => break error,
            };
            if message.again {
                let put = match queue.end_of(&client_id) {
                    _ if queue.has(&client_id) => Put::Duplicate,
                    Some(reason) => Put::Withdrawn(reason),
                    None => Put::Withdrawn(WithdrawReason::Removed),
                };
                return Ok((client_id, put));
            }
            if !hosted.expect(&client_id, self.guest.client, asker.clone()) {
                return Ok((client_id, Put::Duplicate));
            }
            let put = queue.put(unsent.clone()).await;
            match put {
                Ok(Put::Queued) => hosted.wake(self.guest.client),
                _ => hosted.forget(&client_id),
            }
            match put {
                // It closed meanwhile: it is opened again.
                Err(error) if error.kind == ErrorKind::NotFound && attempts < ATTEMPTS => {
                    attempts += 1;
                }
                Err(error) => break error,
                Ok(put) => return Ok((client_id, put)),
            }
        };
        if let Some(asker) = &asker {
            asker.tell(Answer::Error(error.clone()));
            asker.tell(self.failed(which.id()).await);
        }
        Err(error)
    }

    /// Lets this client edit a queued message, or replaces its words.
    async fn edit_queued(
        &self,
        session: &str,
        client_id: &str,
        text: Option<String>,
    ) -> HostResult<Answer> {
        let (which, queue) = self.queue_of(session).await?;
        let waits = match text {
            Some(text) => {
                tertulia_store::check_message(&text).map_err(|error| ErrorBody::from(&error))?;
                queue.edit(client_id, text).await?
            }
            None => queue.begin_editing(client_id, self.guest.client),
        };
        match waits {
            true => Ok(accepted(which.id())),
            false => Err(not_waiting()),
        }
    }

    /// Removes a queued message or a draft.
    async fn withdraw(&self, session: &str, client_id: &str) -> HostResult<Answer> {
        let (which, queue) = self.queue_of(session).await?;
        match queue.remove(client_id).await {
            true => Ok(accepted(which.id())),
            false => Err(not_waiting()),
        }
    }

    /// Keeps what the user types at this client.
    async fn keep_draft(&self, session: &str, client_id: &str, text: String) -> HostResult<Answer> {
        check(Some(client_id))?;
        tertulia_store::check_message(&text).map_err(|error| ErrorBody::from(&error))?;
        let (which, queue) = self.queue_of(session).await?;
        queue.set_typed(client_id, text);
        queue.save_typed().await;
        Ok(accepted(which.id()))
    }

    async fn queue_of(&self, session: &str) -> HostResult<(Which, MessageQueue)> {
        let which = self.known(session).await?;
        let (_, opening) = self
            .hub
            .open(&self.guest, which, &self.participants, None)?;
        Ok((which, opening.messages().await?))
    }

    /// Shows the followers of a session that is not open here what the user has not sent in it.
    pub(super) async fn show_drafts(&self, which: Which) {
        let sessions = self.host().sessions();
        let id = which.id();
        let hosted = self.hub.hosted(id).filter(|hosted| hosted.task().is_none());
        let Some(hosted) = hosted else { return };
        let holder = sessions.store().holder(id).await.ok().flatten();
        let patience = sessions.store().patience();
        if holder.is_some_and(|holder| patience.is_other(&holder)) {
            return;
        }
        let meta = sessions.row(id).await.ok().map(|row| row.meta);
        let drafts = sessions.unsent(id, meta.as_ref()).await;
        let drafts = drafts.unwrap_or_default().into_iter();
        let messages: Vec<UnsentMessage> = drafts
            .map(|draft| UnsentMessage {
                is_queued: false,
                ..draft
            })
            .collect();
        if !messages.is_empty() && hosted.task().is_none() {
            hosted.publish(SessionEvent::Unsent {
                messages,
                editing: None,
            });
        }
    }

    /// Returns the session in which a message of this id was said: this one, or a fork of it.
    async fn has_said(
        &self,
        id: SessionId,
        client_id: Option<&str>,
    ) -> HostResult<Option<SessionId>> {
        let Some(client_id) = client_id else {
            return Ok(None);
        };
        let hosted = self.hub.hosted(id);
        if hosted.is_some_and(|hosted| hosted.has_message(client_id)) {
            return Ok(Some(id));
        }
        let sessions = self.host().sessions();
        let Ok(row) = sessions.row(id).await else {
            // It is not in the store yet.
            return Ok(None);
        };
        let has = |ids: &[String]| ids.iter().any(|known| known == client_id);
        if has(&row.meta.client_ids) {
            return Ok(Some(id));
        }
        let forks = Filter {
            parent: Some(id),
            trash: Trash::With,
            ..Filter::default()
        };
        let forks = sessions.store().list(&forks, &Page::first(FORKS)).await;
        let forks = forks.map_err(|error| ErrorBody::from(&error))?;
        let fork = forks.rows.iter().find(|row| has(&row.meta.client_ids));
        Ok(fork.map(|row| row.meta.id))
    }

    /// Returns the last reply to a query that was sent before.
    async fn completed(&self, id: SessionId) -> Answer {
        self.ended(id, TurnStatus::Completed).await
    }

    /// Returns the last reply to a query that could not be queued.
    async fn failed(&self, id: SessionId) -> Answer {
        self.ended(id, TurnStatus::Failed).await
    }

    async fn ended(&self, id: SessionId, status: TurnStatus) -> Answer {
        let row = self.host().sessions().row(id).await;
        Answer::Complete {
            status,
            session_id: id.to_string(),
            message_count: row.map_or(0, |row| row.meta.messages),
            usage: Tokens::default(),
        }
    }
}

fn withdrawn(id: SessionId, client_id: String, reason: WithdrawReason) -> Answer {
    Answer::Withdrawn {
        session_id: id.to_string(),
        client_id,
        reason,
    }
}

fn not_waiting() -> ErrorBody {
    let words = "this message does not wait any more: it was sent or removed";
    ErrorBody::new(ErrorKind::NotFound, words)
}

/// Checks an id that a client gave its message.
fn check(client_id: Option<&str>) -> HostResult<()> {
    let fits = |id: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=LONGEST_CLIENT_ID).contains(&id.len()) && id.bytes().all(known)
    };
    match client_id.is_none_or(fits) {
        true => Ok(()),
        false => Err(ErrorBody::new(
            ErrorKind::Usage,
            format!("a `client_id` has 1 to {LONGEST_CLIENT_ID} letters, digits, `-` and `_`"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_messages_are_short_words() {
        for fits in [None, Some("a"), Some("0aZ_-"), Some(&*"x".repeat(64))] {
            assert!(check(fits).is_ok(), "{fits:?}");
        }
        for wrong in ["", "a b", "\"", "é", &"x".repeat(65)] {
            assert!(check(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
