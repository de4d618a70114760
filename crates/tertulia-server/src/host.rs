//! [`Host`], what the program around the server provides: sessions, agents, and user-facing
//! messages.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::setup::{ChatAgent, Setup};
use tertulia_engine::spec::SessionSpec;

use crate::protocol::{ErrorBody, SessionInfo};

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
    pub sessions: Vec<SessionInfo>,
    /// Cursor of the next page.
    pub next: Option<String>,
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
    async fn list(&self, limit: usize, cursor: Option<&str>) -> HostResult<Listed>;

    /// Searches all sessions.
    async fn search(&self, words: &str, limit: usize) -> HostResult<Found>;

    /// Forks a session at `seq`, or at its end.
    async fn fork(&self, row: &Row, seq: Option<u64>) -> HostResult<SessionId>;

    /// Moves a session to the trash.
    async fn trash(&self, row: &Row) -> HostResult<()>;

    /// Exports a session in another format.
    async fn export(&self, row: &Row, format: &str) -> HostResult<String>;
}
