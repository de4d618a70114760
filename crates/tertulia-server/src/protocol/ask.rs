//! [`Ask`]: the requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia_agents::approval::{Approval, Verdict};
use tertulia_core::entry::Kind;

use super::names::{ApproveName, KindName, VerdictName};
use super::{Detail, Selection};

/// The requests, by `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ask {
    /// Proves a login: the first request on a WebSocket that was opened with the cookie of a login.
    Authenticate {
        /// The secret that the reply to the login had.
        secret: String,
    },
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
        /// Id of the message, chosen by the client: at most 64 letters, digits, `-` and `_`. A message
        /// with the id of an earlier message of the session is not sent again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
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
        /// Folder that the session works in: one in which the user has worked before. Default: that of
        /// the server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
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
        /// Whether the session is created with its first message. Until then this connection alone knows
        /// its id, and nothing is left behind if nothing is said. Such a session has no title yet.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deferred: bool,
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
        /// Which sessions. Default: all, without the trash.
        #[serde(flatten)]
        selection: Selection,
        /// Whether the reply also lists all projects and tags.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        facets: bool,
    },
    /// Searches the messages of all sessions.
    SessionSearch {
        /// Search terms: `word`, `"a phrase"`, `-without`, `begin*`.
        query: String,
        /// Maximum number of hits. Default: 20. At most 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        /// Only in this session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Only in these sessions. Default: all, without the trash.
        #[serde(flatten)]
        selection: Selection,
    },
    /// Returns a part of a session as HTML, for a page with a style sheet of its own. Without a
    /// position, the end of the session.
    SessionPage {
        /// The session.
        session_id: String,
        /// The entries before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
        /// The entries after this one. An earlier entry that shows a later one, such as the result of
        /// its tool call, is among them, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
        /// This entry and those before and after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        around: Option<u64>,
        /// Maximum number of entries. Default: 60. At most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Renders Markdown as HTML, such as an answer that is being written.
    Render {
        /// The text: at most 200 kB.
        text: String,
    },
    /// Renders the preview of a permission request as HTML.
    RenderPreview {
        /// The text: at most 200 kB.
        text: String,
    },
    /// Gives a session a title.
    SessionRename {
        /// The session.
        session_id: String,
        /// The title: one line of 1 to 200 characters.
        title: String,
    },
    /// Changes the tags of a session.
    SessionTag {
        /// The session.
        session_id: String,
        /// Tags to add.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<String>,
        /// Tags to remove.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
    },
    /// Takes a session out of the trash.
    SessionRestore {
        /// The session.
        session_id: String,
    },
    /// Takes the last change of a title, of tags or of the trash back.
    SessionUndo {},
    /// Returns the family of a session: forks, replays and merges.
    SessionFamily {
        /// The session.
        session_id: String,
    },
    /// Returns usage statistics of all projects.
    Stats {
        /// Count from then on: `24h`, `30d`, `4w`, or a date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        /// What to group by. Default: `day`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Lists the agents and teams that a session can be created with.
    Catalog {},
    /// Lists the models of an agent.
    Models {
        /// Name of the agent.
        agent: String,
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
        /// With `full`: whether to open the session. If false, a session that is not live here is
        /// followed as another program writes to it, until a message opens it.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        open: bool,
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
        /// Id of the message, chosen by the client: at most 64 letters, digits, `-` and `_`. A message
        /// with the id of an earlier message of the session is not sent again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// Whether the client was told before that the message is accepted: then it is not sent again, and
        /// the reply tells what became of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// Edits a queued message: with `text`, its words are replaced; without it, it and those after it wait
    /// until this client sends the text, removes it or disconnects.
    EditQueued {
        /// The session.
        session_id: String,
        /// Id of the message.
        client_id: String,
        /// The new words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Removes a queued message, or a draft of a message that was not sent.
    Withdraw {
        /// The session.
        session_id: String,
        /// Id of the message.
        client_id: String,
    },
    /// Keeps what the user types and has not sent: after a crash it is a draft of the session.
    KeepDraft {
        /// The session.
        session_id: String,
        /// Id that the client chose for its input, with the characters of a `client_id`.
        client_id: String,
        /// The text. An empty one is forgotten.
        text: String,
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
    "authenticate",
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
    "session_page",
    "render",
    "render_preview",
    "session_rename",
    "session_tag",
    "session_restore",
    "session_undo",
    "session_family",
    "stats",
    "catalog",
    "models",
    "session_fork",
    "session_delete",
    "session_export",
    "subscribe",
    "detach",
    "say",
    "edit_queued",
    "withdraw",
    "keep_draft",
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

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(value: &bool) -> bool {
    *value
}

impl Ask {
    /// Returns true if the request changes a session, runs an agent or stops something: what a client
    /// that may only read is refused.
    pub fn writes(&self) -> bool {
        match self {
            Ask::Query { .. }
            | Ask::ToolApprove { .. }
            | Ask::Cancel { .. }
            | Ask::SessionCreate { .. }
            | Ask::SessionConfigure { .. }
            | Ask::SessionSave
            | Ask::SessionFork { .. }
            | Ask::SessionDelete { .. }
            | Ask::SessionRename { .. }
            | Ask::SessionTag { .. }
            | Ask::SessionRestore { .. }
            | Ask::SessionUndo {}
            | Ask::Say { .. }
            | Ask::EditQueued { .. }
            | Ask::Withdraw { .. }
            | Ask::KeepDraft { .. }
            | Ask::As { .. }
            | Ask::Compact { .. }
            | Ask::Verdict { .. }
            | Ask::Stop { .. }
            | Ask::Shutdown => true,
            Ask::Authenticate { .. }
            | Ask::Initialize { .. }
            | Ask::SessionLoad { .. }
            | Ask::SessionList { .. }
            | Ask::SessionSearch { .. }
            | Ask::SessionExport { .. }
            | Ask::SessionPage { .. }
            | Ask::Render { .. }
            | Ask::RenderPreview { .. }
            | Ask::SessionFamily { .. }
            | Ask::Stats { .. }
            | Ask::Catalog {}
            | Ask::Models { .. }
            | Ask::Subscribe { .. }
            | Ask::Detach { .. }
            | Ask::Ps => false,
        }
    }

    /// Returns true if the request only reads, and may take long: it is answered beside later ones.
    pub fn reads_long(&self) -> bool {
        matches!(
            self,
            Ask::SessionList { .. }
                | Ask::SessionSearch { .. }
                | Ask::SessionPage { .. }
                | Ask::SessionFamily { .. }
                | Ask::Stats { .. }
                | Ask::Catalog {}
                | Ask::Models { .. }
        )
    }
}
