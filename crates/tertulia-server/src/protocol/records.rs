//! Records in replies: errors, sessions, live sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

/// A session in the reply to `session_list`. Times are RFC 3339 with an offset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Id of the session. Its last 8 characters are the short id that users see.
    pub session_id: String,
    /// Title of the session: the given one, else the beginning of the first message, else none.
    pub title: Option<String>,
    /// When the session was created.
    pub created_at: String,
    /// When the last message was sent or an agent last failed.
    pub updated_at: String,
    /// Number of messages.
    pub message_count: u64,
    /// Tokens of all messages, input and output.
    pub total_tokens: u64,
    /// Tags of the session.
    pub tags: Vec<String>,
}

/// The server in the reply to `ps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// Version of the program.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// When the server was started.
    pub since: String,
    /// Number of connected clients.
    pub clients: usize,
    /// Number of received lines that were not requests.
    pub malformed: u64,
}

/// A live session in the reply to `ps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TalkInfo")]
pub struct LiveSessionInfo {
    /// Id of the session.
    pub session_id: String,
    /// Title of the session, if it has one.
    pub title: Option<String>,
    /// `chat`, `team` or `pair`. None while the session has no entries.
    pub kind: Option<String>,
    /// Agents that have answered; in a pair, instructor and worker.
    pub agents: Vec<String>,
    /// What the session is doing.
    pub state: LivePhase,
    /// When this state began. For `asking`, when the turn began.
    pub since: String,
    /// Number of queued requests.
    pub queued: usize,
    /// Number of clients that follow the session.
    pub followers: usize,
}

/// What a live session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TalkState")]
pub enum LivePhase {
    /// The session is being opened.
    Opening,
    /// The session waits for a message.
    Waiting,
    /// A turn is running.
    Answering,
    /// A turn waits for the answer to a permission request.
    Asking,
    /// The session is being closed.
    Leaving,
}

impl LivePhase {
    /// Returns its serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            LivePhase::Opening => "opening",
            LivePhase::Waiting => "waiting",
            LivePhase::Answering => "answering",
            LivePhase::Asking => "asking",
            LivePhase::Leaving => "leaving",
        }
    }
}
