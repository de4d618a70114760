//! [`Host`], what the program around the server provides: sessions, agents, and user-facing
//! messages.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::notification::Occasion;
use tertulia_engine::setup::{ChatAgent, Setup};
use tertulia_engine::spec::SessionSpec;

use tertulia_store::Sessions;
use tokio::sync::watch;

use crate::protocol::{AgentInfo, ErrorBody, ProjectInfo, Selection, TeamInfo};

/// The session of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// A new session with this id.
    New(SessionId),
    /// An existing session.
    Known(SessionId),
}

impl Which {
    /// Returns the session id.
    pub fn id(self) -> SessionId {
        match self {
            Which::New(id) | Which::Known(id) => id,
        }
    }
}

/// A page of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The sessions.
    pub rows: Vec<Row>,
    /// Cursor of the next page.
    pub next: Option<String>,
    /// Number of sessions in the trash, if the trash was not asked for.
    pub hidden: u64,
}

/// What a session can be made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// The agents.
    pub agents: Vec<AgentInfo>,
    /// The teams.
    pub teams: Vec<TeamInfo>,
    /// Folders in which a session can begin: that of the server, then those of known projects.
    pub folders: Vec<String>,
}

/// What a client searches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The search terms.
    pub words: String,
    /// Maximum number of hits.
    pub limit: usize,
    /// Only in this session.
    pub session: Option<SessionId>,
    /// Only in these sessions.
    pub selection: Selection,
}

/// Tells when the store may have changed. Watching ends when it is dropped.
pub struct StoreChanges {
    changed: watch::Receiver<()>,
    /// Keeps the watcher alive.
    _watcher: std::sync::Arc<dyn std::any::Any + Send + Sync>,
}

impl StoreChanges {
    /// Creates it from a channel and what feeds it.
    pub fn new(
        changed: watch::Receiver<()>,
        watcher: std::sync::Arc<dyn std::any::Any + Send + Sync>,
    ) -> StoreChanges {
        StoreChanges {
            changed,
            _watcher: watcher,
        }
    }

    /// Waits for a change since the last call.
    pub async fn next(&mut self) {
        if self.changed.changed().await.is_err() {
            // The watcher is gone, and with it all changes.
            std::future::pending().await
        }
    }
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The hits, as in `search --json`.
    pub hits: Vec<Value>,
    /// Total number of hits.
    pub total: u64,
    /// Number of entries that are not indexed yet, and so not searched.
    pub pending: u64,
}

/// Result of a host operation.
pub type HostResult<T> = Result<T, ErrorBody>;

/// The program around the server.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Returns the program's version.
    fn version(&self) -> String;

    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns the zone of times for people.
    fn zone(&self) -> TimeZone;

    /// Returns the sessions of the store.
    fn sessions(&self) -> &Sessions;

    /// Watches the store. Returns `None` for a store that does not tell of changes.
    fn changes(&self) -> Option<StoreChanges>;

    /// Tells the user that a session needs them, if they wish so; with content of the session only if
    /// they wish that, too.
    fn notify(&self, session: SessionId, occasion: Occasion, who: &str, text: &str);

    /// Returns an id for a new session.
    fn new_id(&self) -> SessionId;

    /// Completes the commands in a message, so that they work for this server's sessions.
    fn complete_hints(&self, text: &str) -> String;

    /// Returns the name of the agent that answers in chats; fails if it is not available.
    async fn agent(&self, agent: Option<&str>) -> HostResult<String>;

    /// Prepares a session: chooses its agents, and collects messages for the user.
    async fn prepare(&self, which: Which, spec: &SessionSpec) -> HostResult<Setup>;

    /// Prepares the agent of a chat that is open.
    async fn chat_agent(&self, which: Which, spec: &SessionSpec) -> HostResult<ChatAgent>;

    /// Fails if a session cannot be opened with these participants.
    async fn check(&self, which: Which, spec: &SessionSpec) -> HostResult<()>;

    /// Finds a session by id, part of an id, title, or `@`.
    async fn find(&self, name: &str) -> HostResult<Row>;

    /// Finds a session, and the entry that `NAME:12` names.
    async fn find_place(&self, name: &str) -> HostResult<(Row, Option<u64>)>;

    /// Creates a session without messages; fails if its participants are not available.
    async fn create(&self, title: Option<String>, spec: &SessionSpec) -> HostResult<SessionId>;

    /// Returns the last messages of a session, as in `show --json`.
    async fn last(&self, row: &Row, count: usize) -> HostResult<Vec<Value>>;

    /// Lists sessions, newest first.
    async fn list(
        &self,
        selection: &Selection,
        limit: usize,
        cursor: Option<&str>,
    ) -> HostResult<Listed>;

    /// Returns all projects and tags.
    async fn facets(&self) -> HostResult<(Vec<ProjectInfo>, Vec<String>)>;

    /// Searches sessions.
    async fn search(&self, search: &Search) -> HostResult<Found>;

    /// Gives a session a title.
    async fn rename(&self, row: &Row, title: &str) -> HostResult<Row>;

    /// Changes the tags of a session.
    async fn tag(&self, row: &Row, add: Vec<String>, remove: Vec<String>) -> HostResult<Row>;

    /// Takes a session out of the trash.
    async fn restore(&self, name: &str) -> HostResult<Row>;

    /// Takes the last change back. Returns the sessions that changed, each with a sentence.
    async fn undo(&self) -> HostResult<Vec<(SessionId, String)>>;

    /// Returns the family of a session, as in `log --json`.
    async fn family(&self, row: &Row) -> HostResult<Vec<Value>>;

    /// Returns usage statistics, as in `stats --json`.
    async fn stats(&self, since: Option<String>, by: Option<String>) -> HostResult<Value>;

    /// Returns the agents and teams that a session can be created with.
    async fn catalog(&self) -> HostResult<Catalog>;

    /// Returns the models of an agent.
    async fn models(&self, agent: &str) -> HostResult<Vec<String>>;

    /// Forks a session at `seq`, or at its end.
    async fn fork(&self, row: &Row, seq: Option<u64>) -> HostResult<SessionId>;

    /// Moves a session to the trash.
    async fn trash(&self, row: &Row) -> HostResult<()>;

    /// Exports a session in another format.
    async fn export(&self, row: &Row, format: &str) -> HostResult<String>;
}
