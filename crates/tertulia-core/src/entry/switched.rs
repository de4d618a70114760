//! A switch of the agent of a chat.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A switch to another agent or another model of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// Name of the agent that answers from here on.
    pub agent: String,
    /// Its model, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// True if the user named the model: the session then keeps it when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// Writes who answers: `sage answers from here on (claude-sonnet-4-5)`.
impl fmt::Display for Switched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers from here on", self.agent)?;
        match &self.model {
            Some(model) => write!(f, " ({model})"),
            None => Ok(()),
        }
    }
}
