//! Inputs and outputs of a team's router, as data.

use serde::{Deserialize, Serialize};

use super::queue::{Change, Item, Stats};
use tertulia_core::id::EntryId;
use tertulia_core::team::markers::TeamTask;

/// Id of one prompt to one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Turn(pub(super) u64);

/// Speaker of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// A person, by the member's id; see [`Router::sender`](super::routing::Router::sender).
    Human(String),
    /// The agent that was prompted.
    Ai(Turn),
}

/// How an agent's turn ended. The conversation continues in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent finished, possibly without a message.
    Finished,
    /// The agent failed.
    Failed,
    /// Only this agent was stopped.
    Cancelled,
}

/// An input of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A member sent a message, which is in the log.
    Said {
        /// Speaker.
        by: Voice,
        /// Id of the message in the log.
        id: EntryId,
        /// Full text.
        text: String,
    },
    /// An agent's turn is over. Its messages came before.
    Ended {
        /// The turn.
        turn: Turn,
        /// How it ended.
        how: Ending,
    },
    /// The user stopped the agent that was prompted, and the whole queue.
    CancelledAll,
    /// The session was resumed after a restart.
    Restored {
        /// The last message.
        last: Option<EntryId>,
        /// The team's task.
        task: Option<String>,
    },
}

/// An output of the router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// The team has a new task.
    TeamTask(TeamTask),
    /// Names that no member has.
    Unresolved(Unresolved),
    /// The queue has changed.
    Queue(QueueUpdate),
    /// The user stopped the queue.
    Stopped {
        /// The agent that was answering.
        cut_off: Option<String>,
        /// Members that did not get their turn, each once.
        unheard: Vec<String>,
    },
    /// A message by a member without the turn, or by a speaker outside the team: its markers are
    /// ignored.
    NotRouted(EntryId),
    /// Whose turn is next.
    Next(Next),
}

/// Names that no member has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    /// The names as written.
    pub names: Vec<String>,
    /// Names of all members.
    pub available: Vec<String>,
    /// Consequence.
    pub what: Missed,
}

/// Consequence of names that no member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// No other member was addressed: unless an agent is answering, a human has the turn.
    All,
    /// The other addressed members get their turns.
    Some,
    /// The names were to be dropped: no consequence.
    Drop,
}

/// The queue after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUpdate {
    /// Changes, with reasons. Empty if a member just left the queue to speak.
    pub changes: Vec<Change>,
    /// Queued requests, in the order of arrival.
    pub pending: Vec<Item>,
    /// The request that is being answered.
    pub asked: Option<Item>,
    /// Size of the queue.
    pub stats: Stats,
}

/// Whose turn is next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// An agent must be prompted.
    Ask {
        /// Id of the turn, which the agent's messages carry.
        turn: Turn,
        /// The agent, and the message to reply to.
        item: Item,
    },
    /// A human has the turn. The queue is kept.
    WaitFor {
        /// Id of the member.
        human: String,
        /// The reason.
        why: Why,
    },
    /// The agents have had their maximum number of turns without a human.
    Paused {
        /// Id of the human member who has the turn.
        human: String,
        /// Number of those turns.
        rounds: u32,
    },
}

/// Why a human has the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// This message addressed them.
    Addressed(EntryId),
    /// No member was addressed, and the queue is empty.
    #[serde(rename = "nobody_next")]
    QueueEmpty,
    /// The addressed names do not exist.
    Unresolved,
    /// The agent failed, and the queue is empty.
    Failed,
    /// The user stopped the agent, and the queue is empty.
    Stopped,
    /// The session was resumed after a restart.
    Restored,
}

/// Why no sender can be determined for a person's message. Each variant lists the humans.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenderError {
    /// No member has the name.
    #[error("no person is called '{name}'; the people are {}", .humans.join(", "))]
    Unknown {
        /// The name as given.
        name: String,
        /// Names of the humans.
        humans: Vec<String>,
    },
    /// The name is an agent's.
    #[error("'{name}' is an agent and cannot be spoken for; the humans are {}", .humans.join(", "))]
    NotHuman {
        /// The name as given.
        name: String,
        /// Names of the humans.
        humans: Vec<String>,
    },
    /// No human has the turn, and there are several.
    #[error("who is speaking? Begin with [FROM: name]; the humans are {}", .humans.join(", "))]
    Ambiguous {
        /// Names of the humans.
        humans: Vec<String>,
    },
}

/// Why a team cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// There is no human to wait for.
    #[error("a team needs at least one human")]
    NoHuman,
    /// Speakers would be ambiguous.
    #[error("two members of the team have the id '{0}'")]
    SameId(String),
}
