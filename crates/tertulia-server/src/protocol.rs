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

use names::{ApproveName, KindName};
pub use records::{ServerInfo, SessionInfo, TalkInfo, TalkState, Tokens};
pub use tertulia_engine::error::{ErrorBody, ErrorKind};
pub use tertulia_engine::event::TurnStatus;

/// Protocol version. It is raised when an existing part changes its meaning.
pub const PROTOCOL: u32 = 1;

/// Maximum line length in bytes.
pub const LONGEST_LINE: usize = 10_000_000;

/// Maximum length of a textual request id in bytes.
pub const LONGEST_ID: usize = 200;

/// A line from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Its name, echoed in every answer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// What is asked for.
    #[serde(flatten)]
    pub ask: Ask,
}

/// The name that a client gives a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(i64),
    /// A text of at most 200 bytes.
    Text(String),
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ask {
    /// Says who is to answer in this client's talks. It need not come first, nor at all.
    Initialize {
        /// The demo answers.
        #[serde(default)]
        demo_mode: bool,
        /// The agent that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Says something in the current session, which is made if there is none.
    Query {
        /// The words.
        query: String,
    },
    /// Answers a `tool_request`.
    ToolApprove {
        /// Which.
        tool_id: String,
        /// Whether the tool may be used.
        approved: bool,
        /// Whether others like it may be used in this session, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
        /// In which session, where two ask for the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
    },
    /// Stops who is answering, in the current session or the one named.
    Cancel {
        /// In which session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
    },
    /// Makes a session, which is the current one from then on.
    SessionCreate {
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// `chat`, `team` or `pair`; without it, the other fields tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<KindName>")]
        kind: Option<Kind>,
        /// Agent of a chat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Model of a chat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// File of a team, by path or name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        team: Option<String>,
        /// Agent of a pair's instructor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructor: Option<String>,
        /// Agent of a pair's worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// Maximum number of calls of a pair's worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_rounds: Option<u64>,
        /// Tool policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<ApproveName>")]
        approve: Option<Approval>,
    },
    /// Changes the agent, the model or the tool policy of a session, after the running turn.
    SessionConfigure {
        /// Which; the current one if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// The agent that answers from now on, in a chat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The model that answers from now on, in a chat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The tool policy. What was always allowed before is asked about again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<ApproveName>")]
        approve: Option<Approval>,
        /// Tool calls that were always allowed and are asked about again, as `permissions` names them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        revoke: Vec<String>,
    },
    /// Asks whether everything that was said is on disk. It is saved as it is said.
    SessionSave,
    /// Makes a session the current one.
    SessionLoad {
        /// Its id, or a part of it.
        session_id: String,
        /// How many of its last messages to send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<usize>,
    },
    /// Lists sessions, newest first.
    SessionList {
        /// At most so many, 50 if nothing is said, never more than 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        /// Where an earlier list ended: its `next`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    /// Searches everything that was ever said.
    SessionSearch {
        /// Words, `"a phrase"`, `-without`, `begin*`.
        query: String,
        /// At most so many hits, 20 if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Makes a session that shares the beginning of another. The current session stays the current one.
    SessionFork {
        /// Which.
        session_id: String,
        /// Up to this entry; all of it if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    /// Moves a session to the trash.
    SessionDelete {
        /// Which.
        session_id: String,
    },
    /// Writes a session in another form.
    SessionExport {
        /// Which; the current one if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// `markdown`, `json`, `jsonl` or `snapshot`.
        #[serde(default = "markdown")]
        format: String,
    },
    /// Follows a session, whoever talks in it.
    Subscribe {
        /// Which.
        session_id: String,
        /// How closely.
        #[serde(default)]
        detail: Detail,
        /// With `full`: goes on after this happening.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
    },
    /// Follows a session no more. The talk goes on.
    Detach {
        /// Which.
        session_id: String,
    },
    /// Says something in a session that is followed with `full`. What comes of it are happenings.
    Say {
        /// In which.
        session_id: String,
        /// The words; none at all continue a pair's unfinished work.
        text: String,
    },
    /// Speaks as this person of a team from then on.
    As {
        /// In which session.
        session_id: String,
        /// As whom; as whoever is waited for if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Sums up the older part of a talk for its agent.
    Compact {
        /// In which session.
        session_id: String,
    },
    /// Answers the question whether a tool may be used, in a session that is followed with `full`.
    Verdict {
        /// In which session.
        session_id: String,
        /// Which call.
        tool_id: String,
        /// The answer.
        #[schemars(with = "VerdictName")]
        verdict: Verdict,
    },
    /// Lists the talks that run.
    Ps,
    /// Ends a talk: who is answering is stopped, its agents leave.
    Stop {
        /// Which.
        session_id: String,
    },
    /// Ends the server and all its talks.
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

/// How closely a session is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Every message that becomes durable.
    #[default]
    Messages,
    /// Everything that happens.
    Full,
}

/// What may be answered about a tool.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its names count: the library has the type")]
enum VerdictName {
    /// This once.
    Yes,
    /// This one, and all like it in this session.
    Always,
    /// No.
    No,
}

/// A line to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The name of the request that it answers, if that had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// To `initialize`.
    Initialized {
        /// The program's version.
        version: String,
        /// The protocol's version.
        protocol: u32,
        /// Who answers in new talks.
        agent: String,
    },
    /// To `query`: more of what is being said.
    Token {
        /// The text.
        text: String,
        /// Who says it, where several could.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        speaker: Option<String>,
    },
    /// To `query`: a block of code is complete. Its text was among the tokens, too.
    Block {
        /// `code`, or `diff`.
        kind: String,
        /// As it stands behind the fence, if anything does.
        language: Option<String>,
        /// What stands between the fences.
        text: String,
    },
    /// To `query`: may this tool be used? `tool_approve` answers, and nothing goes on before.
    ToolRequest {
        /// In which session.
        session_id: String,
        /// Which call.
        tool_id: String,
        /// The tool.
        tool: String,
        /// `low`, `medium` or `high`.
        risk: String,
        /// What it would do: a command, a diff.
        preview: String,
    },
    /// To `query`: a tool is done.
    ToolResult {
        /// Which call.
        tool_id: String,
        /// The tool, where it is known.
        tool: Option<String>,
        /// Whether it did what it was asked to.
        ok: bool,
        /// What came out.
        output: String,
    },
    /// To `query`: something that the person should know.
    Notice {
        /// How urgent it is.
        tone: Tone,
        /// The words.
        text: String,
    },
    /// To `query`: nobody is answering any more.
    Complete {
        /// How it ended.
        status: TurnStatus,
        /// In which session: another than before, if somebody else wrote there.
        session_id: String,
        /// How many messages it has.
        message_count: u64,
        /// What this query cost.
        usage: Tokens,
    },
    /// To `session_create`.
    SessionCreated {
        /// Its id.
        session_id: String,
    },
    /// To `session_configure`.
    SessionConfigured {
        /// Its id.
        session_id: String,
    },
    /// To `session_save`.
    SessionSaved {
        /// Whether everything that was said is on disk.
        success: bool,
    },
    /// To `session_load`.
    SessionLoaded {
        /// Its id.
        session_id: String,
        /// How many messages it has.
        message_count: u64,
        /// The last messages, as in `show --json`, when they were asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<Value>>,
    },
    /// To `session_list`.
    SessionListResult {
        /// The sessions, newest first.
        sessions: Vec<SessionInfo>,
        /// Where the next list begins, if there is more.
        next: Option<String>,
    },
    /// To `session_search`.
    SessionSearchResult {
        /// What was found, as in `search --json`.
        hits: Vec<Value>,
        /// How many there are.
        total: u64,
        /// How many entries are not indexed yet, and so not searched: ask again.
        pending: u64,
    },
    /// To `session_fork`.
    SessionForked {
        /// The id of the new session.
        session_id: String,
    },
    /// To `session_delete`.
    SessionDeleted {
        /// Whether it is in the trash now.
        success: bool,
    },
    /// To `session_export`.
    SessionExported {
        /// The session in that form.
        content: String,
    },
    /// To `subscribe`, and then for each message that becomes durable: the object of `show --json`, with its
    /// own id as `entry_id`.
    Message {
        /// In which session.
        session_id: String,
        /// The message's own id.
        entry_id: String,
        /// The fields of the message.
        #[serde(flatten)]
        message: Map<String, Value>,
    },
    /// To `subscribe`: it is followed from here on.
    Subscribed {
        /// Which session.
        session_id: String,
        /// The last happening so far.
        n: u64,
        /// With `full`: whether what follows first tells how the talk stands, rather than what happened since.
        fresh: bool,
    },
    /// To `subscribe` with `full`: something happened.
    Happening {
        /// In which session.
        session_id: String,
        /// Its number. They grow; pieces of text that were joined have the last one's.
        n: u64,
        /// Whether it tells how the talk stood already, for who joins in the middle.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
        /// What.
        happening: Box<SessionEvent>,
    },
    /// To `detach`.
    Detached {
        /// Which session.
        session_id: String,
    },
    /// To `say`, `as`, `compact` and `verdict`: it is taken, and what comes of it are happenings.
    Accepted {
        /// In which session.
        session_id: String,
    },
    /// To `ps`.
    PsResult {
        /// The server.
        server: ServerInfo,
        /// The talks that run.
        talks: Vec<TalkInfo>,
    },
    /// To `stop`.
    Stopped {
        /// Which session.
        session_id: String,
    },
    /// The last line before the server hangs up.
    Goodbye {
        /// Why.
        reason: String,
    },
    /// Something is wrong. The connection lives on.
    Error(ErrorBody),
}

#[cfg(test)]
mod tests;
