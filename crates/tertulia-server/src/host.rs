//! What the program around the server knows and the server does not: where sessions are, who answers, and
//! how things are said to people.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use tertulia_agents::approval::Permissions;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::frontend::{Frontend, Notice};
use tokio_util::sync::CancellationToken;

use crate::happening::{Farewell, Floor, Told, Tone};
use crate::protocol::{SessionInfo, Status, Trouble};

/// Who a client wants to be answered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The agent, if one was chosen.
    pub agent: Option<String>,
}

/// Which session a talk is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// A new one of this id.
    New(SessionId),
    /// One that there is.
    Known(SessionId),
}

impl Which {
    /// Its id.
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
    /// Where the next page begins.
    pub next: Option<String>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The hits, as in `search --json`.
    pub hits: Vec<Value>,
    /// How many there are.
    pub total: u64,
    /// How many entries are not indexed yet, and so not searched.
    pub pending: u64,
}

/// A talk that was opened.
pub struct Seated {
    /// The talk.
    pub talk: Box<dyn HostedTalk>,
    /// What was said about it while it was prepared.
    pub told: Vec<Told>,
}

/// What a host answers.
pub type HostResult<T> = Result<T, Trouble>;

/// The program around the server.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// The program's version.
    fn version(&self) -> String;

    /// The time.
    fn now(&self) -> Timestamp;

    /// An id for a new session.
    fn new_id(&self) -> SessionId;

    /// A notice in words.
    fn notice(&self, notice: &Notice) -> Told;

    /// The name of who would answer, if they are there.
    async fn agent(&self, choice: &Choice) -> HostResult<String>;

    /// Opens a talk. What is told while it opens is shown at the door.
    async fn open(
        &self,
        which: Which,
        choice: &Choice,
        frontend: &mut dyn Frontend,
    ) -> HostResult<Seated>;

    /// The session of this name: an id, a part of one, a title, `@`.
    async fn find(&self, name: &str) -> HostResult<Row>;

    /// The same, and the entry of it that `NAME:12` names.
    async fn find_place(&self, name: &str) -> HostResult<(Row, Option<u64>)>;

    /// Makes a session in which nothing was said yet.
    async fn create(&self, title: Option<String>) -> HostResult<SessionId>;

    /// The last messages of a session, as in `show --json`.
    async fn last(&self, row: &Row, count: usize) -> HostResult<Vec<Value>>;

    /// Sessions, newest first.
    async fn list(&self, limit: usize, cursor: Option<&str>) -> HostResult<Listed>;

    /// Everything that was ever said.
    async fn search(&self, words: &str, limit: usize) -> HostResult<Found>;

    /// A session that shares the beginning of another.
    async fn fork(&self, row: &Row, seq: Option<u64>) -> HostResult<SessionId>;

    /// Moves a session to the trash.
    async fn trash(&self, row: &Row) -> HostResult<()>;

    /// A session in another form.
    async fn export(&self, row: &Row, format: &str) -> HostResult<String>;
}

/// A talk as the server leads it.
#[async_trait]
pub trait HostedTalk: Send {
    /// What kind of talk it is.
    fn kind(&self) -> Kind;

    /// How it stands.
    fn floor(&self) -> Floor;

    /// Its tool permissions, which are changed while it runs.
    fn permissions(&self) -> Permissions;

    /// Somebody says something, and it is answered.
    async fn say(
        &mut self,
        words: String,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Ended;

    /// Whoever writes is this person of a team from now on. Why not, in words.
    fn take_seat(&mut self, name: Option<String>) -> Result<(), String>;

    /// Sums up the older part. Why not, in words.
    async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<String>;

    /// Tries to save what is held. Whether nothing is left that is not saved.
    async fn save(&mut self, frontend: &mut dyn Frontend) -> bool;

    /// Ends what the agents have running, gently if there is time.
    async fn leave(&mut self, gently: bool) -> Farewell;
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// In a word.
    pub status: Status,
    /// Why it failed or was refused, where nobody was told yet.
    pub trouble: Option<Trouble>,
    /// What else the person should know.
    pub notices: Vec<Told>,
}

impl Told {
    /// Words that are good to know.
    pub fn note(text: impl Into<String>) -> Told {
        Told {
            tone: Tone::Note,
            text: text.into(),
        }
    }

    /// Words that are worth a look.
    pub fn warning(text: impl Into<String>) -> Told {
        Told {
            tone: Tone::Warning,
            text: text.into(),
        }
    }
}
