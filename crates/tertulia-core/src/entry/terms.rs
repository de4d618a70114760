//! The terms of a session: who answers, where it works, and what may run without asking.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::paired::PairedAgent;
use crate::approval::Approval;

/// Terms that hold from an entry on. What is missing stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Tool policy that the user set. A default is never recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approval>,
    /// Name of the agent that answers in a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Model that the user chose for that agent; without it, the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Instructor of a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructor: Option<PairedAgent>,
    /// Worker of a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<PairedAgent>,
    /// Folder that the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Project that the folder belongs to, if the session moved to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// All identities of that project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<String>,
    /// Member of a team as whom the user speaks; empty for whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
}

/// Names what they set: `tool policy: low, folder: /home/ada/garden`.
impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = |of: &Option<PairedAgent>| of.as_ref().map(|of| of.agent.clone());
        let parts = [
            (
                "tool policy",
                self.approve.map(|mode| mode.name().to_owned()),
            ),
            ("agent", self.agent.clone()),
            ("model", self.model.clone()),
            ("instructor", pair(&self.instructor)),
            ("worker", pair(&self.worker)),
            ("folder", self.cwd.clone()),
            (
                "speaks as",
                self.seat.clone().map(|seat| match seat.is_empty() {
                    true => "whose turn it is".to_owned(),
                    false => seat,
                }),
            ),
        ];
        let set = parts
            .into_iter()
            .filter_map(|(what, value)| Some((what, value?)));
        for (at, (what, value)) in set.enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{what}: {value}")?;
        }
        Ok(())
    }
}

impl Terms {
    /// Returns true if they say nothing.
    pub fn is_empty(&self) -> bool {
        *self == Terms::default()
    }
}
