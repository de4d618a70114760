//! What happens in a team's talk, and what follows from it, as data.

use serde::{Deserialize, Serialize};

use super::queue::{Change, Item, Stats};
use tertulia_core::id::EntryId;
use tertulia_core::team::markers::TeamTask;

/// One asking of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Turn(pub(super) u64);

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// A person, by the member's id; see [`Router::sender`](super::routing::Router::sender).
    Human(String),
    /// The agent that was asked.
    Ai(Turn),
}

/// How an agent's turn ended. In each case the talk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It said what it had to say, be it nothing.
    Finished,
    /// It failed.
    Failed,
    /// It alone was stopped.
    Cancelled,
}

/// What happens in a talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody said something, and it is in the log.
    Said {
        /// Who.
        by: Voice,
        /// The message's id in the log.
        id: EntryId,
        /// All of its text.
        text: String,
    },
    /// An agent's turn is over. What it said came before.
    Ended {
        /// Which turn.
        turn: Turn,
        /// How.
        how: Ending,
    },
    /// A person stopped the agent that is being asked, and all who wait.
    CancelledAll,
    /// The talk goes on after a restart.
    Restored {
        /// The last message.
        last: Option<EntryId>,
        /// The team's task.
        task: Option<String>,
    },
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// The team has a new task.
    TeamTask(TeamTask),
    /// Names that are nobody's.
    Unresolved(Unresolved),
    /// The queue, after it changed.
    Queue(QueueUpdate),
    /// A person stopped the queue.
    Stopped {
        /// Who was being asked.
        cut_off: Option<String>,
        /// Who did not get to speak, each once.
        unheard: Vec<String>,
    },
    /// Something was said by somebody who does not have the floor, or is not in the team: its markers
    /// do not count.
    NotRouted(EntryId),
    /// Who has the floor now.
    Next(Next),
}

/// Names that are nobody's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    /// As they were written.
    pub names: Vec<String>,
    /// Who is there, by name.
    pub available: Vec<String>,
    /// What becomes of it.
    pub what: Missed,
}

/// What becomes of names that are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nobody else was addressed: unless an agent is being asked, a human is waited for.
    All,
    /// The others that were addressed speak.
    Some,
    /// They were to be dropped: nothing.
    Drop,
}

/// The queue, after it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUpdate {
    /// What changed, with reasons. Empty if somebody just left the queue to speak.
    pub changes: Vec<Change>,
    /// Who waits, in the order of arrival.
    pub pending: Vec<Item>,
    /// Who is being asked.
    pub asked: Option<Item>,
    /// How full it is.
    pub stats: Stats,
}

/// Who has the floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// An agent is to be asked.
    Ask {
        /// Which asking: it comes back with what the agent says.
        turn: Turn,
        /// Whom, and in reply to what.
        item: Item,
    },
    /// A human has the floor. Who waits in the queue goes on waiting.
    WaitFor {
        /// The member's id.
        human: String,
        /// Why.
        why: Why,
    },
    /// The agents have had as many turns as they may have without a human.
    Paused {
        /// The member's id of the human who has the floor.
        human: String,
        /// How many turns that were.
        rounds: u32,
    },
}

/// Why a human has the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// They were addressed by this message.
    Addressed(EntryId),
    /// Nobody was addressed, and nobody waits.
    NobodyNext,
    /// Whoever was addressed does not exist.
    Unresolved,
    /// The agent that was asked failed, and nobody waits.
    Failed,
    /// A human stopped the agent that was asked, and nobody waits any more.
    Stopped,
    /// The talk goes on after a restart.
    Restored,
}

/// Why nobody can be taken for the sender of a person's words. Each names the humans.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenderError {
    /// The name is nobody's.
    #[error("no person is called '{name}'; the people are {}", .humans.join(", "))]
    Unknown {
        /// As it was given.
        name: String,
        /// The humans, by name.
        humans: Vec<String>,
    },
    /// The name is an agent's.
    #[error("'{name}' is an agent and cannot be spoken for; the humans are {}", .humans.join(", "))]
    NotHuman {
        /// As it was given.
        name: String,
        /// The humans, by name.
        humans: Vec<String>,
    },
    /// Nobody is waited for, and there are several humans.
    #[error("who is speaking? Begin with [FROM: name]; the humans are {}", .humans.join(", "))]
    Ambiguous {
        /// The humans, by name.
        humans: Vec<String>,
    },
}

/// Why a team cannot talk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// Nobody could be waited for.
    #[error("a team needs at least one human")]
    NoHuman,
    /// It would not be known who speaks.
    #[error("two members of the team have the id '{0}'")]
    SameId(String),
}
