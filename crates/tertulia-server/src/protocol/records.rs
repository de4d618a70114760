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
    /// `chat`, `team` or `pair`.
    pub kind: String,
    /// Name of the team.
    pub team: Option<String>,
    /// Agents that have answered; in a pair, instructor and worker.
    pub agents: Vec<String>,
    /// Name of the project, for people.
    pub project: Option<String>,
    /// Id of the project.
    pub project_id: Option<String>,
    /// The session that this one was made from.
    pub parent: Option<ParentInfo>,
    /// `active` if an answer is due, `paused`, or `trashed`.
    pub status: String,
    /// Whether a running program has the session open.
    pub open: bool,
    /// What the session is doing, if it is live on this server.
    pub live: Option<LivePhase>,
    /// Whether the session is sealed.
    pub sealed: bool,
}

/// The session that another one was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParentInfo {
    /// Id of the session.
    pub id: String,
    /// Sequence number of the last common entry; 0 if there is none.
    pub seq: u64,
    /// How: `fork`, `conflict`, `replay`, `merge`, `subagent`.
    pub relation: String,
}

/// A project in the reply to `session_list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectInfo {
    /// Id of the project.
    pub id: String,
    /// Name of the project, for people.
    pub name: String,
}

/// An entry in the reply to `session_page`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageEntry {
    /// Sequence number.
    pub seq: u64,
    /// Id of the entry.
    pub id: String,
    /// When it was written.
    pub at: String,
    /// Type of the entry: `message`, or another one.
    #[serde(rename = "type")]
    pub kind: String,
    /// Role of a message: `user`, `assistant`, `system` or `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Speaker of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<PageSpeaker>,
    /// One element, `<article class="entry …" id="eSEQ">`. Text in it is escaped.
    pub html: String,
    /// Text of a message, for copying and editing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the message was cut off before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Id that the client gave the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// The speaker of a message in the reply to `session_page`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageSpeaker {
    /// Name used in commands and markers.
    pub name: String,
    /// Name for people.
    pub display: String,
    /// `human`, `ai`, `system` or `tool`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// An agent in the reply to `catalog`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Name of the agent.
    pub name: String,
    /// Kind of the agent, such as `demo`, `anthropic` or `claude`.
    pub kind: String,
    /// Whether the agent can answer.
    pub ready: bool,
    /// Why not, or a remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its model, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it answers in chats that name no agent.
    pub is_default: bool,
}

/// A team in the reply to `catalog`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeamInfo {
    /// Name of the team, for `session_create`.
    pub name: String,
    /// Path of its file.
    pub path: String,
    /// Names of its members.
    pub members: Vec<String>,
    /// Why its file cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
