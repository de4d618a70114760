//! Errors as frontends receive them: in a live session's events and in a server's replies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
#[schemars(rename = "Trouble")]
pub struct ErrorBody {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What went wrong, in words.
    pub message: String,
    /// What to do about it, if that is known.
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

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ErrorBody {
        self.hint = Some(hint.into());
        self
    }
}

/// The kinds of failures: those of `--json`, and what only a server meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// It failed.
    Failed,
    /// A disk is full.
    NoSpace,
    /// It was asked for in a wrong way.
    Usage,
    /// There is no such session, team or agent.
    NotFound,
    /// Several are meant.
    Ambiguous,
    /// Somebody else writes, or holds it.
    Conflict,
    /// The data is invalid or damaged.
    Invalid,
    /// An agent failed or is unavailable.
    Agent,
    /// It was stopped.
    Interrupted,
    /// The line is no request: no UTF-8, no JSON, no object.
    Malformed,
    /// There is no request of this type.
    UnknownType,
    /// The line is longer than 10 MB.
    TooLarge,
    /// This client does not read what it is told, and is hung up on.
    TooSlow,
    /// Too many already.
    Busy,
}
