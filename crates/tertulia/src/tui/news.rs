//! What the talk tells the screen, and what the screen asks of the talk.

use tertulia_agents::approval::{PermissionState, ToolRequest};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Entry, Message, Speaker};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_engine::pair::PairEvent;
use tertulia_engine::team::events::Output as Routed;

use super::item::Tone;
use super::mailbox::Joins;
use super::queue::Waiting;
use crate::error::{CommandError, ErrorKind};
use crate::talk::conversation::LeftUndone;
use crate::ui::Told;

/// Which question of a talk is answered.
pub type Ticket = u64;

/// What the screen wants of the talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Somebody says something; nothing at all lets a pair continue unfinished work.
    Say(String),
    /// Speak as this person from now on, or as whoever is waited for.
    As(Option<String>),
    /// Sum up the older part.
    Compact,
    /// Leave: what is running here ends; on a server it goes on.
    Leave,
    /// End what is running, wherever that is, and leave.
    End,
}

/// What happened in the talk.
#[derive(Debug)]
pub enum News {
    /// The talk is open; this is how it stands.
    Opened(Box<Floor>),
    /// It could not be opened. Nothing follows but [`News::Gone`].
    NotOpened(Box<CommandError>),
    /// Somebody begins to be answered, whoever asked.
    Began,
    /// What was asked for was refused, which was told.
    Refused,
    /// The question whether a tool may be used was answered by somebody else, or nobody waits for it any more.
    Settled,
    /// The talk goes on in another session.
    Moved(SessionId),
    /// A server has put the talk away; it opens it again with the next words.
    Rested(String),
    /// More of what is being said, as it is shown.
    Text(String),
    /// More of what an agent thinks.
    Thought(String),
    /// An agent did something else.
    Heard(AgentEvent),
    /// An entry is durable now.
    Durable(Box<Entry>),
    /// A message is said and held in memory.
    Held(Box<Message>),
    /// Somebody of several is asked now.
    Asked(Speaker),
    /// Somebody of several could not answer.
    Failed(Speaker, AgentError),
    /// What followed from what was said among several.
    Routed(Routed),
    /// What followed between an instructor and a worker.
    Pair(PairEvent),
    /// Something that the person should know.
    Notice(Tone, String),
    /// Whether a tool may be used: [`super::engine::Engine::answer`] tells.
    MayI(Ticket, Box<ToolRequest>),
    /// The tool permissions in force, when the session is opened and whenever they change.
    Permissions(PermissionState),
    /// Nobody is asked any more, and the talk stands like this.
    Over(Box<Floor>),
    /// The talk has ended; nothing follows.
    Gone(Farewell),
}

/// How a talk stands while a person has the floor.
#[derive(Clone, Debug)]
pub struct Floor {
    /// Which session it is in.
    pub id: SessionId,
    /// The session, once something was said.
    pub meta: Option<SessionMeta>,
    /// Who is here and why, where that was not known before.
    pub introduction: Option<String>,
    /// Who writes, as people know them.
    pub writer: String,
    /// Whether something is held in memory only.
    pub unsaved: bool,
    /// Who still waits to speak.
    pub waiting: Vec<Waiting>,
    /// What a pair left undone.
    pub undone: Option<LeftUndone>,
    /// Whether it ended because somebody failed.
    pub failed: bool,
}

/// What is left to say when a talk has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Farewell {
    /// What kind of failure it is that something could not be saved, if so.
    pub unsaved: Option<ErrorKind>,
    /// What the person should read.
    pub told: Vec<Told>,
}

impl Joins for News {
    fn join(&mut self, later: News) -> Option<News> {
        match (self, later) {
            (News::Text(text), News::Text(more)) | (News::Thought(text), News::Thought(more)) => {
                text.push_str(&more);
                None
            }
            (_, later) => Some(later),
        }
    }
}
