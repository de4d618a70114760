//! [`Policy`]: decides what happens next in a conversation. Each policy is a pure state machine that
//! turns an [`Event`] into one [`Effect`]; [`Conversation`](crate::conversation::Conversation)
//! carries the effects of all of them out.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::answer::TurnEnd;
use crate::chat::Chat;
use crate::context::{Context, Thread};
use crate::conversation::TurnResult;
use crate::event::SessionEvent;
use crate::pair::policy::PairPolicy;
use crate::prompt::Prompt;
use crate::setup::ToolAccess;
use crate::team::events::SenderError;
use crate::team::policy::Team;
use crate::team::summary::{SummaryRequest, SummaryResult};
use tertulia_agents::{Agent, AgentError, Part, PromptMessage};
use tertulia_core::entry::{Body, Entry, Kind, Message, ShellOutput, Speaker};
use tertulia_core::id::{EntryId, Seq};
use tertulia_core::session::SessionMeta;

/// Who is asked next, and with what, in a conversation of a certain kind.
#[derive(Debug)]
pub enum Policy {
    /// One agent.
    Chat(Chat),
    /// A team.
    Team(Box<Team>),
    /// An instructor and a worker.
    Pair(Box<PairPolicy>),
}

/// An input of a policy.
#[derive(Debug)]
pub enum Event {
    /// The user sent a message; in a team, as this member. An empty one continues what is unfinished:
    /// the unanswered message of a chat, the work of a pair.
    Said {
        /// Id of the member.
        by: Option<String>,
        /// The message.
        prompt: Prompt,
    },
    /// The entries are in the log, or held in memory because they cannot be saved now. These are
    /// the messages among them.
    Saved(Vec<LoggedMessage>),
    /// The log refuses the entries.
    Refused,
    /// The prompted agent is done.
    Answered(Answered),
    /// The contexts are loaded.
    Loaded,
    /// The entry that was to be read, and the worker's last words.
    Recalled(Option<Box<Entry>>, String),
    /// The log cannot be read.
    Unreadable(String),
    /// How the summary ended that was to be made.
    Summarised(SummaryResult),
}

/// An output of a policy. Each is followed by one event.
#[derive(Debug)]
pub enum Effect {
    /// Append these entries to the log.
    Append(Vec<Body>),
    /// Prompt an agent.
    Ask(Box<Ask>),
    /// Let an agent summarise what fell out of the context (team).
    Summarise(Box<SummaryRequest>),
    /// Load the contexts from the log.
    Load,
    /// Read an entry of the log, and the worker's text since the last message to it.
    Recall {
        /// The entry.
        at: Option<Seq>,
        /// Whether the worker's text is needed.
        worker: bool,
    },
    /// Give the user the turn.
    WaitFor(TurnResult),
}

/// What a policy may look at when it decides.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Metadata of the session, once it has entries.
    pub meta: Option<&'a SessionMeta>,
    /// Whether entries are held in memory because they could not be saved.
    pub unsaved: bool,
    /// Whether the user has stopped the turn.
    pub cancelled: bool,
    /// The current time.
    pub now: Timestamp,
    /// The contexts of the agents.
    pub contexts: &'a Contexts,
}

/// One context per thread. A team's has a context only while a member answers; a resumed pair's are
/// loaded before the first prompt.
pub type Contexts = BTreeMap<Thread, Context>;

/// Creates an agent with the named model.
pub type Maker = Arc<dyn Fn(&str) -> Result<Arc<dyn Agent>, AgentError> + Send + Sync>;

/// A prompt for a participant.
pub struct Ask {
    /// The agent, or why there is none.
    pub agent: Result<Arc<dyn Agent>, AgentError>,
    /// A model to answer with instead of the agent's own.
    pub other_model: Option<(String, Maker)>,
    /// Speaker of its messages.
    pub speaker: Speaker,
    /// The model of its last answer, for an agent that does not report it every time.
    pub model: Option<String>,
    /// Thread of the messages.
    pub thread: Thread,
    /// Prompt that replaces the context for this answer (team).
    pub prompt: Option<PromptMessage>,
    /// The agent's part in the team or pair.
    pub part: Option<Part>,
    /// Tool access; `None` for that of the session.
    pub access: Option<ToolAccess>,
    /// Number of tokens above which the context is compacted.
    pub compact_at: Option<u64>,
}

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask")
            .field("agent", &self.agent)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// Result of a prompt.
#[derive(Debug)]
pub struct Answered {
    /// How the answer ended.
    pub end: TurnEnd,
    /// The agent's messages with text, in order, without tool results.
    pub said: Vec<LoggedMessage>,
    /// The model that answered, if it is known.
    pub model: Option<String>,
}

/// A message with its id, in the log or held in memory until it can be saved.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedMessage {
    /// The id.
    pub id: EntryId,
    /// Sequence number, if it is in the log.
    pub seq: Option<Seq>,
    /// The message before redaction.
    pub message: Message,
    /// Redacted text in the log, if it differs.
    pub logged: Option<String>,
}

impl Policy {
    /// Returns the kind of conversation.
    pub fn kind(&self) -> Kind {
        match self {
            Policy::Chat(_) => Kind::Chat,
            Policy::Team(_) => Kind::Team,
            Policy::Pair(_) => Kind::Pair,
        }
    }

    /// Processes an event. Adds what frontends are to show to `shown`.
    pub fn step(&mut self, event: Event, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        match self {
            Policy::Chat(chat) => chat.step(event, view, shown),
            Policy::Team(team) => team.step(event, view, shown),
            Policy::Pair(pair) => pair.step(event, view, shown),
        }
    }

    /// Returns the id of the member who sends a message, in a team.
    pub fn sender(&self, name: Option<&str>, text: &str) -> Result<Option<String>, SenderError> {
        match self {
            Policy::Team(team) => Ok(Some(team.router().sender(name, text)?.id.clone())),
            Policy::Chat(_) | Policy::Pair(_) => Ok(None),
        }
    }

    /// Completes entries before they are written: a team's messages name their addressees.
    pub fn complete(&self, bodies: Vec<Body>) -> Vec<Body> {
        match self {
            Policy::Team(team) => team.addressed(bodies),
            Policy::Chat(_) | Policy::Pair(_) => bodies,
        }
    }

    /// Returns the entries that are to be saved before the first message.
    pub fn opening(&mut self) -> Vec<Body> {
        match self {
            Policy::Chat(chat) => chat.opening().clone(),
            Policy::Team(team) => team.opening(),
            Policy::Pair(pair) => pair.opening().clone(),
        }
    }

    /// The entries of [`Policy::opening`] are saved.
    pub fn opened(&mut self) {
        match self {
            Policy::Chat(chat) => chat.opening().clear(),
            Policy::Team(team) => team.opened(),
            Policy::Pair(pair) => pair.opening().clear(),
        }
    }

    /// Remembers a shell command of the user, where the context does not.
    pub fn ran(&mut self, seq: Option<Seq>, command: &str, output: &ShellOutput) {
        if let Policy::Team(team) = self {
            team.ran(seq, command, output);
        }
    }

    /// Returns all agents.
    pub fn agents(&self) -> Vec<Arc<dyn Agent>> {
        match self {
            Policy::Chat(chat) => vec![chat.agent().clone()],
            Policy::Team(team) => team.agents(),
            Policy::Pair(pair) => pair.agents(),
        }
    }
}
