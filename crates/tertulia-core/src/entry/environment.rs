//! The environment of a session, as its agents were told.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// The changing part of an agent's environment, complete each time. Agents get the first one that
/// their context has in the system prompt and each change together with the message before the entry: so
/// a request begins with the bytes of the one before it, also after a resume, and providers can cache it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Date where the user is.
    pub date: Date,
    /// State of the git repository, if there is one and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// Name of the tool policy. Nothing but the words to the agent depends on it.
    pub approve: String,
    /// Thread of the agent, if the session has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// Writes the environment on one line.
impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "date {}", self.date)?;
        if let Some(git) = &self.git {
            write!(f, ", git {git}")?;
        }
        write!(f, ", tools {}", self.approve)
    }
}
