//! Records in replies: errors, sessions, live sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
}

/// A session as `session_list` shows it. Times are RFC 3339 with an offset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Its id. The last 8 characters are what people see.
    pub session_id: String,
    /// Its title: as given, or the beginning of the first message; none before that.
    pub title: Option<String>,
    /// When it began.
    pub created_at: String,
    /// When somebody last spoke in it.
    pub updated_at: String,
    /// How many messages it has.
    pub message_count: u64,
    /// Their tokens, read and written.
    pub total_tokens: u64,
    /// Its tags.
    pub tags: Vec<String>,
}

/// The server as `ps` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// The program's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Since when it serves.
    pub since: String,
    /// How many clients are connected.
    pub clients: usize,
    /// How many lines were no requests.
    pub malformed: u64,
}

/// A talk as `ps` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TalkInfo {
    /// Which session.
    pub session_id: String,
    /// Its title, once it has one.
    pub title: Option<String>,
    /// `chat`, `team` or `pair`, once something was said.
    pub kind: Option<String>,
    /// Who spoke in it.
    pub agents: Vec<String>,
    /// What it is doing.
    pub state: TalkState,
    /// Since when.
    pub since: String,
    /// How many queries wait.
    pub queued: usize,
    /// How many clients follow it.
    pub followers: usize,
}

/// What a talk is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TalkState {
    /// It is being opened.
    Opening,
    /// A person has the floor.
    Waiting,
    /// Somebody answers.
    Answering,
    /// A tool waits to be allowed.
    Asking,
    /// It is being closed.
    Leaving,
}

impl TalkState {
    /// Returns its serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            TalkState::Opening => "opening",
            TalkState::Waiting => "waiting",
            TalkState::Answering => "answering",
            TalkState::Asking => "asking",
            TalkState::Leaving => "leaving",
        }
    }
}
