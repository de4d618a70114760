//! Messages of a client. A client that does not know whether its message arrived sends it again under
//! the same id, and it is said once.

use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Page, Trash};
use tertulia_engine::prompt::Prompt;
use tokio_util::sync::CancellationToken;

use super::{Client, accepted};
use crate::host::{HostResult, Which};
use crate::hosted::{SessionAction, SessionRequest};
use crate::protocol::{Answer, ErrorBody, ErrorKind, Id, LONGEST_CLIENT_ID, Tokens, TurnStatus};

/// Number of forks of a session that are asked for a message: the conversation continues in a fork if
/// another program wrote to the session.
const FORKS: usize = 20;

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
        let prompt = Prompt::from(query).sent_as(client_id);
        let request = SessionRequest {
            action: SessionAction::Say(prompt),
            client: self.guest.client,
            asker: Some(self.reply_to(id)),
            cancel: CancellationToken::new(),
        };
        // Set before the request is given: the conversation may move to a fork, and moves the client
        // with it.
        self.guest.set_current(Some(which));
        let is_new = self
            .hub
            .submit(&self.guest, which, &self.participants, request)?;
        Ok(match is_new {
            true => None,
            false => Some(self.completed(which.id()).await),
        })
    }

    /// Sends a message to a session. The answer comes as events.
    pub(super) async fn say(
        &self,
        session: &str,
        text: String,
        attach: bool,
        client_id: Option<String>,
    ) -> HostResult<Answer> {
        check(client_id.as_deref())?;
        let which = self.known(session).await?;
        let duplicate = |id: SessionId| Answer::Accepted {
            session_id: id.to_string(),
            duplicate: true,
        };
        if let Some(session) = self.has_said(which.id(), client_id.as_deref()).await? {
            return Ok(duplicate(session));
        }
        let prompt = match attach {
            true => Prompt::typed(text),
            false => Prompt::from(text),
        };
        let prompt = prompt.sent_as(client_id);
        let request = self.session_request(SessionAction::Say(prompt));
        let is_new = self
            .hub
            .submit(&self.guest, which, &self.participants, request)?;
        Ok(match is_new {
            true => accepted(which.id()),
            false => duplicate(which.id()),
        })
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
        let row = self.host().sessions().row(id).await;
        Answer::Complete {
            status: TurnStatus::Completed,
            session_id: id.to_string(),
            message_count: row.map_or(0, |row| row.meta.messages),
            usage: Tokens::default(),
        }
    }
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
