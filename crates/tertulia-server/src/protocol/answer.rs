//! [`Answer`]: the replies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tertulia_engine::event::{SessionEvent, Tone};
use tertulia_engine::message_queue::WithdrawReason;

use super::{
    Access, AgentInfo, ErrorBody, LiveSessionInfo, PageEntry, ProjectInfo, ServerInfo, SessionInfo,
    TeamInfo, Tokens, TurnStatus,
};

/// The replies, by `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// Reply to `authenticate`: from now on, requests are answered.
    Authenticated {},
    /// Reply to `initialize`.
    Initialized {
        /// Version of the program.
        version: String,
        /// Version of the protocol.
        protocol: u32,
        /// What the client may do.
        #[serde(default)]
        access: Access,
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
        /// Folder that the agent works in.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
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
        /// Number of sessions in the trash, if the trash was not asked for.
        #[serde(default)]
        hidden: u64,
        /// All projects, if the request had `facets`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectInfo>>,
        /// All tags, if the request had `facets`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tags: Option<Vec<String>>,
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
    /// Reply to `session_page`.
    SessionPageResult {
        /// Id of the session.
        session_id: String,
        /// The session, as in the reply to `session_list`.
        session: Box<SessionInfo>,
        /// The entries that have something to show.
        entries: Vec<PageEntry>,
        /// Sequence number of the first entry that was looked at.
        first: u64,
        /// Sequence number of the last entry that was looked at.
        last: u64,
        /// Sequence number of the last entry of the session.
        head: u64,
        /// Whether there are earlier entries.
        more_before: bool,
        /// Whether there are later entries.
        more_after: bool,
    },
    /// Reply to `render` and `render_preview`.
    Rendered {
        /// The text as HTML.
        html: String,
    },
    /// Reply to `session_rename`.
    SessionRenamed {
        /// The session.
        session_id: String,
        /// Its title.
        title: String,
    },
    /// Reply to `session_tag`.
    SessionTagged {
        /// The session.
        session_id: String,
        /// All its tags.
        tags: Vec<String>,
    },
    /// Reply to `session_restore`.
    SessionRestored {
        /// The session.
        session_id: String,
    },
    /// Reply to `session_undo`.
    SessionUndone {
        /// The session that changed, or the first of several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// What was taken back.
        text: String,
    },
    /// Reply to `session_family`.
    SessionFamilyResult {
        /// The trees of the family, as in `log --json`: the one of the session first. Of a large
        /// family, the part around the session; `left_out` and `left_out_above` count the rest.
        sessions: Vec<Value>,
    },
    /// Reply to `stats`.
    StatsResult {
        /// The statistics, as in `stats --all --json`.
        stats: Value,
    },
    /// Reply to `catalog`.
    CatalogResult {
        /// The agents.
        agents: Vec<AgentInfo>,
        /// The teams.
        teams: Vec<TeamInfo>,
        /// Folders in which a session can begin: that of the server, then those of known projects.
        #[serde(default)]
        folders: Vec<String>,
    },
    /// Reply to `models`.
    ModelsResult {
        /// Names of the models; none if the agent does not list them.
        models: Vec<String>,
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
    /// Reply to `say`, `edit_queued`, `withdraw`, `keep_draft`, `as`, `compact` and `verdict`: the request is
    /// accepted, and a message is durable. Results arrive as events.
    Accepted {
        /// The session.
        session_id: String,
        /// Whether the session has this message already, so that it was not sent again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        duplicate: bool,
    },
    /// Reply to `say`: the message was accepted before and is not sent. Nothing but the user sends it again,
    /// under another id.
    Withdrawn {
        /// The session.
        session_id: String,
        /// Id of the message.
        client_id: String,
        /// Why.
        reason: WithdrawReason,
    },
    /// Reply to `ps`.
    PsResult {
        /// What the client may do.
        #[serde(default)]
        access: Access,
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
