//! [`Unsent`]: words of the user that are not in the log of a session yet.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Redaction, Sessions, StoreError, StoreResult};
use tertulia_core::id::SessionId;
use tertulia_core::redact::redact;
use tertulia_core::seal::SessionKeys;
use tertulia_core::session::SessionMeta;

/// Words of the user in a session that are not in its log yet: messages that wait for the running turn,
/// and texts that the user has not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// Project of the session: one without entries is found by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The words, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<UnsentMessage>,
    /// All of the above, encrypted, in a sealed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
}

/// A message that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsentMessage {
    /// Id that its frontend gave it.
    pub client_id: String,
    /// Time of the last change.
    pub at: Timestamp,
    /// The words as typed.
    pub text: String,
    /// Whether the words are a shell command of the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_command: bool,
    /// Whether `@path` in the words attaches files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attaches: bool,
    /// Whether the user has sent it, so that it waits for its turn. Other words are a draft.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_queued: bool,
}

impl UnsentMessage {
    /// Creates a draft of a message in which `@path` attaches files.
    pub fn typed(client_id: String, at: Timestamp, text: String) -> UnsentMessage {
        UnsentMessage {
            client_id,
            at,
            text,
            is_command: false,
            attaches: true,
            is_queued: false,
        }
    }
}

impl Unsent {
    /// Returns true if there are no words, readable or sealed.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.sealed.is_none()
    }

    /// Returns the form at rest.
    pub(crate) fn encode(&self) -> StoreResult<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| StoreError::failed("cannot write words", error))
    }

    /// Reads the form at rest.
    pub(crate) fn decode(id: SessionId, body: &[u8]) -> StoreResult<Unsent> {
        serde_json::from_slice(body).map_err(|error| {
            let place = format!("the unsent words of session {id}");
            StoreError::damaged(place, error.to_string())
        })
    }

    /// Encrypts the words. What is authenticated beside them is the session, so that they are of no use
    /// in another one.
    pub(crate) fn sealed_with(&self, key: &SessionKeys, id: SessionId) -> StoreResult<Unsent> {
        let sealed = key.encrypt(&shown(id), &self.encode()?);
        Ok(Unsent {
            sealed: Some(sealed.map_err(|error| StoreError::failed("cannot write words", error))?),
            ..Unsent::default()
        })
    }

    /// Decrypts the words.
    pub(crate) fn opened_with(&self, key: &SessionKeys, id: SessionId) -> StoreResult<Unsent> {
        let Some(sealed) = &self.sealed else {
            return Ok(self.clone());
        };
        match key.decrypt(&shown(id), sealed) {
            Ok(words) => Unsent::decode(id, &words),
            Err(error) => {
                let place = format!("the unsent words of session {id}");
                Err(StoreError::damaged(place, error.to_string()))
            }
        }
    }
}

/// What is authenticated with the words of a session.
fn shown(id: SessionId) -> Vec<u8> {
    format!("unsent {id}").into_bytes()
}

impl Sessions {
    /// Saves the words that are not in the log of a session yet, in place of earlier ones. Durable on
    /// return.
    pub async fn keep_unsent(&self, id: SessionId, mut unsent: Unsent) -> StoreResult<()> {
        if self.redaction == Redaction::On {
            for message in &mut unsent.messages {
                message.text = redact(&message.text).text.into_owned();
            }
        }
        self.store().keep_unsent(id, &unsent).await
    }

    /// Returns the words that are neither in the log of a session nor were given up.
    pub async fn unsent(
        &self,
        id: SessionId,
        meta: Option<&SessionMeta>,
    ) -> StoreResult<Vec<UnsentMessage>> {
        let unsent = self.store().unsent(Some(id)).await?;
        let messages = unsent.into_iter().flat_map(|(_, unsent)| unsent.messages);
        let is_said = |message: &UnsentMessage| {
            meta.is_some_and(|meta| meta.client_ids.contains(&message.client_id))
        };
        Ok(messages.filter(|message| !is_said(message)).collect())
    }

    /// Takes the words that the user left in other sessions of a project than `own` that have no entries,
    /// and that no process has open.
    pub async fn take_orphaned_unsent(
        &self,
        project: &str,
        own: SessionId,
    ) -> StoreResult<Vec<UnsentMessage>> {
        let mut taken = Vec::new();
        for (id, unsent) in self.store().unsent(None).await? {
            if id == own || unsent.project.as_deref() != Some(project) {
                continue;
            }
            match self.row(id).await {
                Err(StoreError::NotFound(_)) => {}
                _ => continue,
            }
            // It is released when everything is taken.
            if let Some(_lock) = self.store().claim(id).await? {
                taken.extend(unsent.messages);
                self.store().keep_unsent(id, &Unsent::default()).await?;
            }
        }
        Ok(taken)
    }
}
