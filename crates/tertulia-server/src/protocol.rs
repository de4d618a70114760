//! All requests and replies. Each is one line of JSON, tagged by `type`; `docs/protocol.md`
//! describes them, and `schemas/protocol-1.json` is generated from these types.

mod names;
mod records;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tertulia_agents::approval::{Approval, Verdict};
use tertulia_core::entry::Kind;

use tertulia_engine::event::{SessionEvent, Tone};

use names::{ApproveName, KindName, VerdictName};
pub use records::{LivePhase, LiveSessionInfo, ServerInfo, SessionInfo, Tokens};
pub use tertulia_engine::error::{ErrorBody, ErrorKind};
pub use tertulia_engine::event::TurnStatus;

/// Protocol version. It is raised when an existing part changes its meaning.
pub const PROTOCOL: u32 = 1;

/// Maximum line length in bytes.
pub const LONGEST_LINE: usize = 10_000_000;

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

/// The requests, by `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ask {
    /// Chooses the agent for the chats that this client opens. Optional, and allowed at any time.
    Initialize {
        /// Use the demo agent. Overrides `agent`.
        #[serde(default)]
        demo_mode: bool,
        /// Name of the agent. Without it, the agent of the session or the default one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Sends a message to the client's current session. Without a current session, creates one.
    Query {
        /// The message.
        query: String,
    },
    /// Answers a permission request (`tool_request`). There is no reply, except an `error`.
    ToolApprove {
        /// Id of the tool call, from the `tool_request`.
        tool_id: String,
        /// Whether the tool call is allowed.
        approved: bool,
        /// Allow all similar tool calls in this session, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
        /// With a denial: what the agent should do instead. It gets these words with the denial.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The session, if several sessions have a permission request with this `tool_id`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
    },
    /// Cancels the running turn of a session and this client's queued requests in it. There is no
    /// reply, except an `error`.
    Cancel {
        /// The session. Default: the current session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
    },
    /// Creates a session and makes it the current session.
    SessionCreate {
        /// Title of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// `chat`, `team` or `pair`. Without it, the other fields determine the kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<KindName>")]
        kind: Option<Kind>,
        /// Name of the agent, for a chat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Name of the model, for a chat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Path or name of the team file, for a team.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        team: Option<String>,
        /// Agent of the instructor, for a pair.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructor: Option<String>,
        /// Agent of the worker, for a pair.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// Maximum number of worker calls, for a pair.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_rounds: Option<u64>,
        /// Tool policy. Default: the policy of the server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<ApproveName>")]
        approve: Option<Approval>,
    },
    /// Changes a session: the agent and model after the running turn, the tool policy at once.
    SessionConfigure {
        /// The session. Default: the current session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Agent of the chat from the next turn on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Model of the chat from the next turn on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Tool policy while the session stays open. Revokes all permissions that were given with
        /// `always`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<ApproveName>")]
        approve: Option<Approval>,
        /// Permissions to revoke that were given with `always`, as listed in the `permissions`
        /// event.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        revoke: Vec<String>,
    },
    /// Asks whether all messages of the current session are on disk. Messages are saved when they
    /// are sent; this request waits for earlier requests and then retries saving held messages.
    SessionSave,
    /// Makes a session the current session.
    SessionLoad {
        /// The session: its id or a part of it, its title, or `@` for the newest.
        session_id: String,
        /// Number of messages to return, counted from the end. At most 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<usize>,
    },
    /// Lists sessions, newest first.
    SessionList {
        /// Maximum number of sessions. Default: 50. At most 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        /// Position to continue from: `next` of an earlier reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    /// Searches the messages of all sessions.
    SessionSearch {
        /// Search terms: `word`, `"a phrase"`, `-without`, `begin*`.
        query: String,
        /// Maximum number of hits. Default: 20. At most 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Creates a fork: a session that shares the beginning of another one. Does not change the
    /// current session.
    SessionFork {
        /// The session to fork. `REF:12` names entry 12 of a session.
        session_id: String,
        /// Number of the last entry to include. Default: all entries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    /// Moves a session to the trash.
    SessionDelete {
        /// The session.
        session_id: String,
    },
    /// Returns a session in another format.
    SessionExport {
        /// The session. Default: the current session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// `markdown` (the default), `json`, `jsonl` or `snapshot`.
        #[serde(default = "markdown")]
        format: String,
    },
    /// Follows a session: the client receives its messages or events, whichever client caused them.
    Subscribe {
        /// The session.
        session_id: String,
        /// What to receive.
        #[serde(default)]
        detail: Detail,
        /// With `full`: number of the last event that the client has received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
    },
    /// Stops following a session. The session keeps running.
    Detach {
        /// The session.
        session_id: String,
    },
    /// Sends a message to a session. The answer arrives as events, for clients that follow with
    /// `full`.
    Say {
        /// The session.
        session_id: String,
        /// The message. An empty one continues a pair's unfinished work, or asks a chat's agent again.
        text: String,
        /// Whether `@path` in the message attaches a file of the session's work folder.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        attach: bool,
    },
    /// Sets the person of a team as whom later messages are sent.
    As {
        /// The session.
        session_id: String,
        /// Name of the person. Without it, the person whose turn it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Compacts the older part of the agent's context to a summary.
    Compact {
        /// The session.
        session_id: String,
    },
    /// Answers a permission request (`may_i`).
    Verdict {
        /// The session.
        session_id: String,
        /// Id of the tool call.
        tool_id: String,
        /// The answer.
        #[schemars(with = "VerdictName")]
        verdict: Verdict,
        /// With `no`: what the agent should do instead. It gets these words with the denial.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Lists the live sessions.
    Ps,
    /// Closes a live session: cancels the running turn and ends the agents.
    Stop {
        /// The session.
        session_id: String,
    },
    /// Shuts down the server and closes all live sessions.
    Shutdown,
}

/// The request types, in the order in which they are documented.
pub const TYPES: &[&str] = &[
    "initialize",
    "query",
    "tool_approve",
    "cancel",
    "session_create",
    "session_configure",
    "session_save",
    "session_load",
    "session_list",
    "session_search",
    "session_fork",
    "session_delete",
    "session_export",
    "subscribe",
    "detach",
    "say",
    "as",
    "compact",
    "verdict",
    "ps",
    "stop",
    "shutdown",
];

fn markdown() -> String {
    "markdown".to_owned()
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

/// The replies, by `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// Reply to `initialize`.
    Initialized {
        /// Version of the program.
        version: String,
        /// Version of the protocol.
        protocol: u32,
        /// Name of the chosen agent.
        agent: String,
    },
    /// Reply to `query`: more text of the answer.
    Token {
        /// The text.
        text: String,
        /// Name of the speaker, in a team or pair.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        speaker: Option<String>,
    },
    /// Reply to `query`: a fenced code block is complete. Its text was also sent as `token`.
    Block {
        /// `code` or `diff`.
        kind: String,
        /// Language after the opening fence, if any.
        language: Option<String>,
        /// Text between the fences.
        text: String,
    },
    /// Reply to `query`: a permission request. The turn waits for `tool_approve`.
    ToolRequest {
        /// The session.
        session_id: String,
        /// Id of the tool call.
        tool_id: String,
        /// Name of the tool.
        tool: String,
        /// `low`, `medium` or `high`.
        risk: String,
        /// What the tool call would do, such as a command or a diff.
        preview: String,
    },
    /// Reply to `query`: a tool call has finished.
    ToolResult {
        /// Id of the tool call.
        tool_id: String,
        /// Name of the tool, if known.
        tool: Option<String>,
        /// Whether the tool call succeeded.
        ok: bool,
        /// Output of the tool.
        output: String,
    },
    /// Reply to `query`: a notice for the user.
    Notice {
        /// Severity of the notice.
        tone: Tone,
        /// The text.
        text: String,
    },
    /// Last reply to `query`: the turn has ended.
    Complete {
        /// How the turn ended.
        status: TurnStatus,
        /// The session. If another program wrote to it, this is the fork in which the conversation
        /// continues.
        session_id: String,
        /// Number of messages in the session.
        message_count: u64,
        /// Tokens used by this turn.
        usage: Tokens,
    },
    /// Reply to `session_create`.
    SessionCreated {
        /// Id of the new session.
        session_id: String,
    },
    /// Reply to `session_configure`.
    SessionConfigured {
        /// The session.
        session_id: String,
    },
    /// Reply to `session_save`.
    SessionSaved {
        /// Whether all messages are on disk. False without a current session.
        success: bool,
    },
    /// Reply to `session_load`.
    SessionLoaded {
        /// Id of the session.
        session_id: String,
        /// Number of messages in the session.
        message_count: u64,
        /// The last messages, as in `show --json`, if the request had `last`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<Value>>,
    },
    /// Reply to `session_list`.
    SessionListResult {
        /// The sessions, newest first.
        sessions: Vec<SessionInfo>,
        /// Value of `cursor` for the next page, if there is one.
        next: Option<String>,
    },
    /// Reply to `session_search`.
    SessionSearchResult {
        /// The hits, as in `search --json`.
        hits: Vec<Value>,
        /// Total number of hits.
        total: u64,
        /// Number of entries that are not indexed yet and were not searched. If it is not 0, search
        /// again later.
        pending: u64,
    },
    /// Reply to `session_fork`.
    SessionForked {
        /// Id of the new session.
        session_id: String,
    },
    /// Reply to `session_delete`.
    SessionDeleted {
        /// Always true: the session is in the trash, or did not exist. A failure is an `error`.
        success: bool,
    },
    /// Reply to `session_export`.
    SessionExported {
        /// The session in the requested format.
        content: String,
    },
    /// Reply to `subscribe` with `messages`: a message is durable. Has the fields of `show --json`,
    /// but the id of the message is `entry_id`.
    Message {
        /// The session.
        session_id: String,
        /// Id of the message.
        entry_id: String,
        /// The other fields of the message.
        #[serde(flatten)]
        message: Map<String, Value>,
    },
    /// First reply to `subscribe`: the client now follows the session.
    Subscribed {
        /// The session.
        session_id: String,
        /// Number of the last event so far.
        n: u64,
        /// With `full`: whether the next events recreate the state of the session. If false, they
        /// are the events after `since`.
        fresh: bool,
    },
    /// Reply to `subscribe` with `full`: an event.
    #[serde(rename = "happening")]
    Event {
        /// The session.
        session_id: String,
        /// Number of the event. Numbers increase; joined pieces of text have the number of the last
        /// piece.
        n: u64,
        /// Whether the event recreates the current state for a client that has just subscribed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
        /// The event.
        #[serde(rename = "happening")]
        event: Box<SessionEvent>,
    },
    /// Reply to `detach`.
    Detached {
        /// The session.
        session_id: String,
    },
    /// Reply to `say`, `as`, `compact` and `verdict`: the request is accepted. Its results arrive
    /// as events.
    Accepted {
        /// The session.
        session_id: String,
    },
    /// Reply to `ps`.
    PsResult {
        /// The server.
        server: ServerInfo,
        /// The live sessions.
        talks: Vec<LiveSessionInfo>,
    },
    /// Reply to `stop`: the session is closed.
    Stopped {
        /// The session.
        session_id: String,
    },
    /// The server shuts down: the last line before it closes the connection.
    Goodbye {
        /// Reason for the shutdown.
        reason: String,
    },
    /// A request or an agent failed. The connection stays open, except after `too_slow` or if the
    /// server does not admit the client.
    Error(ErrorBody),
}

#[cfg(test)]
mod tests;
