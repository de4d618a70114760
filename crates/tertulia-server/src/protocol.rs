//! All requests and replies. Each is one line of JSON, tagged by `type`; `docs/protocol.md`
//! describes them, and `schemas/protocol-1.json` is generated from these types.

mod answer;
mod ask;
mod names;
mod records;
mod selection;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::Answer;
pub use ask::{Ask, TYPES};
pub use records::{
    AgentInfo, LivePhase, LiveSessionInfo, PageEntry, PageSpeaker, ParentInfo, ProjectInfo,
    ServerInfo, SessionInfo, TeamInfo, Tokens,
};
pub use selection::Selection;
pub use tertulia_engine::error::{ErrorBody, ErrorKind};
pub use tertulia_engine::event::TurnStatus;

/// Protocol version. It is raised when an existing part changes its meaning.
pub const PROTOCOL: u32 = 1;

/// Maximum line length in bytes.
pub const LONGEST_LINE: usize = 10_000_000;

/// Maximum length of a client id in bytes.
pub const LONGEST_CLIENT_ID: usize = 64;

/// Maximum length of a textual request id in bytes.
pub const LONGEST_ID: usize = 200;

/// A request: one line from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Request id, repeated in every reply to this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// The request itself.
    #[serde(flatten)]
    pub ask: Ask,
}

/// Request id, chosen by the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Id {
    /// An integer.
    Number(i64),
    /// A string of at most 200 bytes.
    Text(String),
}

/// What a client receives from a session that it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Each message, once it is durable.
    #[default]
    Messages,
    /// All events.
    Full,
}

/// What a client may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Everything.
    #[default]
    Full,
    /// Nothing that changes a session, runs an agent or stops something.
    ReadOnly,
}

/// A reply: one line to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Id of the request, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// The reply itself.
    #[serde(flatten)]
    pub answer: Answer,
}

#[cfg(test)]
mod tests;
