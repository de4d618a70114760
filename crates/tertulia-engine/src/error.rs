//! Errors as frontends receive them: in a live session's events and in a server's replies.

use std::error::Error;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::team::events::SenderError;
use tertulia_agents::{AgentError, FailureKind};
use tertulia_store::StoreError;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
#[schemars(rename = "Trouble")]
pub struct ErrorBody {
    /// Kind of error.
    pub kind: ErrorKind,
    /// What failed and why, for the user.
    pub message: String,
    /// What to do about the error, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorBody {
    /// Creates an error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorBody {
        ErrorBody {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// Returns message and hint in one line.
    pub fn sentence(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ErrorBody {
        self.hint = Some(hint.into());
        self
    }
}

/// Kinds of errors: those of `--json`, and those that only a server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The operation failed for another reason.
    Failed,
    /// The disk is full.
    NoSpace,
    /// The request is wrong: a field is missing, has a wrong value or does not fit the others.
    Usage,
    /// The session, team, agent, turn or permission request does not exist.
    NotFound,
    /// The reference matches several sessions or permission requests.
    Ambiguous,
    /// The request conflicts with another program, another user or a running turn.
    Conflict,
    /// The data is invalid or damaged.
    Invalid,
    /// An agent failed or is not available.
    Agent,
    /// The turn, the session or the server was stopped.
    Interrupted,
    /// The line is not a request: not UTF-8, not JSON, not an object, or without a `type`.
    Malformed,
    /// There is no request of this `type`.
    UnknownType,
    /// The line is too long, or the reply would be: at most 10 MB, less while other clients send
    /// long lines.
    TooLarge,
    /// The client does not read its replies and is disconnected.
    TooSlow,
    /// Too many clients, open sessions or queued requests.
    Busy,
    /// The client may only read.
    Forbidden,
    /// The client has not authenticated, or its login has ended.
    Unauthorized,
}

impl From<&AgentError> for ErrorBody {
    fn from(error: &AgentError) -> ErrorBody {
        let kind = match error.kind {
            FailureKind::Cancelled => ErrorKind::Interrupted,
            _ => ErrorKind::Agent,
        };
        let hint = error.hint.clone().unwrap_or_else(|| {
            "`tertulia agents` lists the agents that are ready; choose one with --agent, or with /agents in a session"
                .to_owned()
        });
        ErrorBody::new(kind, &error.message).hint(hint)
    }
}

impl From<&SenderError> for ErrorBody {
    fn from(error: &SenderError) -> ErrorBody {
        ErrorBody::new(ErrorKind::Usage, error.to_string())
            .hint("name the speaker with --as NAME or [FROM: name] in the prompt")
    }
}

impl From<&StoreError> for ErrorBody {
    fn from(error: &StoreError) -> ErrorBody {
        let (kind, hint) = match error {
            StoreError::NotFound(_) => (ErrorKind::NotFound, Some("`tertulia list --all` lists the sessions of all projects".to_owned())),
            StoreError::Exists(_) => (ErrorKind::Conflict, Some("`tertulia --resume ID` continues that session; a new one needs another id".to_owned())),
            StoreError::Conflict { .. } => (ErrorKind::Conflict, Some("resume it again, or omit --no-fork to continue in a fork".to_owned())),
            StoreError::Held(_) => (ErrorKind::Conflict, Some("wait until that program is done, or stop it, and try again".to_owned())),
            StoreError::Locked { .. } => (ErrorKind::Conflict, Some("wait for the other program, or stop it".to_owned())),
            StoreError::Opened { .. } => (ErrorKind::Conflict, Some("close it there and run the command again; without --no-fork, a chat continues in a fork".to_owned())),
            StoreError::NotAStore { .. } => (ErrorKind::Invalid, Some("choose another place with --store; nothing was changed".to_owned())),
            StoreError::NewerFormat { .. } => (ErrorKind::Invalid, Some("upgrade tertulia; nothing was changed".to_owned())),
            StoreError::Damaged { .. } => (ErrorKind::Invalid, Some("`tertulia doctor` lists the damage, `tertulia doctor --repair` salvages what is readable".to_owned())),
            StoreError::Unreachable { .. } => (ErrorKind::Failed, Some("run the command again when it can be reached".to_owned())),
            StoreError::Unsalvageable { place, .. } => (ErrorKind::Invalid, Some(moved_away(place))),
            StoreError::TooLarge { what: "the session", .. } => {
                (ErrorKind::Invalid, Some("start a new session, or fork an earlier part: `tertulia fork REF:N`".to_owned()))
            }
            StoreError::TooLarge { .. } => (ErrorKind::Invalid, Some("put the text into a file and name the file, or send it in parts".to_owned())),
            StoreError::Sealed { .. } => (ErrorKind::Invalid, Some("[seal] in your settings names an identity file or a passphrase command: see docs/sealed.md".to_owned())),
            StoreError::NoKey { .. } => (ErrorKind::Invalid, Some("`tertulia seal --new-identity FILE` writes a key file; name it as `identity` of [seal] in your settings".to_owned())),
            StoreError::SealedTwice { .. } => (ErrorKind::Invalid, Some("both copies stay as they are; with both keys at hand, `tertulia sync` on each machine gives them one key: see docs/sealed.md".to_owned())),
            StoreError::SealedInOne { .. } => (ErrorKind::Invalid, Some("both copies stay as they are; with the session's key at hand, `tertulia sync` seals the plain one, too: see docs/sealed.md".to_owned())),
            StoreError::Refused(_) => (ErrorKind::Invalid, None),
            StoreError::Full { .. } => (ErrorKind::NoSpace, Some("make room, or choose another place with --store".to_owned())),
            StoreError::ReadOnly { .. } => (ErrorKind::Failed, Some("choose another place with --store or --data-dir, or keep nothing with --ephemeral".to_owned())),
            StoreError::Failed { .. } => (ErrorKind::Failed, None),
        };
        let mut message = error.to_string();
        if let Some(source) = error.source().map(ToString::to_string)
            && !message.contains(&source)
        {
            message.push_str(&format!(": {source}"));
        }
        ErrorBody {
            kind,
            message,
            hint,
        }
    }
}

/// Returns the hint for a database that cannot be salvaged. The files beside it go with it: its
/// write-ahead log may hold words.
fn moved_away(place: &str) -> String {
    let quoted = |path: &str| format!("'{}'", path.replace('\'', r"'\''"));
    let folder = std::path::Path::new(place).with_file_name("damaged-store");
    let (file, folder) = (quoted(place), quoted(&folder.display().to_string()));
    format!(
        "restore {place} from a backup, or move it away to begin with an empty store: mkdir {folder} && mv {file}* {folder}"
    )
}
