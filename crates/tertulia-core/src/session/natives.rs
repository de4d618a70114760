//! The agents' own (native) sessions of a session, as part of the metadata.

use serde::{Deserialize, Serialize};

use super::SessionMeta;
use crate::entry::{Linked, Message, Usage};
use crate::id::Seq;

/// Number of replaced sessions that are remembered: some agents begin one with every process.
const PAST: usize = 100;
/// Number of requests that are remembered: a copy begins with the first ones.
const REQUESTS: usize = 4;

/// An agent's own session, in the agent's own store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Native {
    /// Name of the agent.
    pub agent: String,
    /// Id that the agent gave its session.
    pub id: String,
    /// Working directory of the native session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The entry that recorded the native session; 0 if that holds the messages before it, too.
    pub since: Seq,
    /// Tokens that the agent's answers have used since then.
    pub spent: Usage,
}

/// An agent's own session that another one replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastNative {
    /// Name of the agent.
    pub agent: String,
    /// Id that the agent gave its session.
    pub id: String,
}

impl SessionMeta {
    pub(super) fn note_requests(&mut self, message: &Message) {
        let room = REQUESTS.saturating_sub(self.requests.len());
        self.requests
            .extend(message.requests.iter().take(room).cloned());
    }

    pub(super) fn link(&mut self, linked: &Linked, since: Seq) {
        self.answered_by = Some(linked.agent.clone());
        let (replaced, others) = std::mem::take(&mut self.natives)
            .into_iter()
            .partition::<Vec<_>, _>(|native| native.agent == linked.agent);
        self.natives = others;
        for native in replaced {
            let Native { agent, id, .. } = native;
            let past = PastNative { agent, id };
            if past.id != linked.native && !self.past_natives.contains(&past) {
                self.past_natives.push(past);
            }
        }
        let excess = self.past_natives.len().saturating_sub(PAST);
        self.past_natives.drain(..excess);
        self.natives.push(Native {
            agent: linked.agent.clone(),
            id: linked.native.clone(),
            cwd: linked.cwd.clone(),
            since: linked.inherited.map_or(since, |_| Seq::START),
            spent: linked.inherited.unwrap_or_default(),
        });
    }
}
