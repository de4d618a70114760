//! [`Host`], what the program around the server provides: sessions, agents, and user-facing
//! messages.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use tertulia_agents::approval::Permissions;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::frontend::{Frontend, Notice};
use tokio_util::sync::CancellationToken;

use crate::protocol::{ErrorBody, SessionInfo, TurnStatus};
use tertulia_engine::event::{SessionEnd, SessionState, UserMessage};

/// The agent that a client chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Agent name, if one was chosen.
    pub agent: Option<String>,
}

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

/// An opened conversation.
pub struct Seated {
    /// The conversation.
    pub talk: Box<dyn HostedTalk>,
    /// Messages for the user from its preparation.
    pub told: Vec<UserMessage>,
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

    /// Converts a notice to a message for the user.
    fn notice(&self, notice: &Notice) -> UserMessage;

    /// Returns the name of the agent for this choice; fails if it is not available.
    async fn agent(&self, choice: &Choice) -> HostResult<String>;

    /// Opens a conversation. Events while it opens are shown in `frontend`.
    async fn open(
        &self,
        which: Which,
        choice: &Choice,
        frontend: &mut dyn Frontend,
    ) -> HostResult<Seated>;

    /// Finds a session by id, part of an id, title, or `@`.
    async fn find(&self, name: &str) -> HostResult<Row>;

    /// Finds a session, and the entry that `NAME:12` names.
    async fn find_place(&self, name: &str) -> HostResult<(Row, Option<u64>)>;

    /// Creates a session without messages.
    async fn create(&self, title: Option<String>) -> HostResult<SessionId>;

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

/// A conversation that the server runs.
#[async_trait]
pub trait HostedTalk: Send {
    /// Returns the kind of conversation.
    fn kind(&self) -> Kind;

    /// Returns the current state.
    fn floor(&self) -> SessionState;

    /// Returns the tool permissions, which can be changed while it runs.
    fn permissions(&self) -> Permissions;

    /// Sends a message of the user and runs the turn that answers it.
    async fn say(
        &mut self,
        words: String,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Ended;

    /// Sets the team member as whom the user writes. Fails with a message for the user.
    fn take_seat(&mut self, name: Option<String>) -> Result<(), String>;

    /// Compacts the older part of the context. Returns a message if it could not.
    async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<String>;

    /// Tries to save held messages. Returns true if everything is saved.
    async fn save(&mut self, frontend: &mut dyn Frontend) -> bool;

    /// Ends the agents' processes, gracefully if `gently`.
    async fn leave(&mut self, gently: bool) -> SessionEnd;
}

/// Result of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The status.
    pub status: TurnStatus,
    /// Why the turn failed or was rejected, if not reported yet.
    pub trouble: Option<ErrorBody>,
    /// Further messages for the user.
    pub notices: Vec<UserMessage>,
}
