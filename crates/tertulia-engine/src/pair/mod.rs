//! An instructor and a worker, as a pure state machine. The log is the state: each entry is folded
//! into a [`Pair`], which knows the next step, so that a session that was killed anywhere resumes
//! from its last entry.
//!
//! ```text
//! human → instructor → "Tell worker: …" → worker → "Worker says: …" → instructor → … → DONE → human
//!              ↑  neither: asked to correct itself  |
//!              └────────────────────────────────────┘
//! ```
//!
//! | part | what |
//! |---|---|
//! | [`reply`] | parses the instructor's reply: thinking, an instruction, DONE |
//! | [`budget`] | remaining number of worker calls, and `[r+5]` |
//! | [`state`] | the fold: counters, the last reply, who is next |
//! | [`policy`] | carries the next step out as prompts and messages |
//! | [`roster`] | the two agents |
//! | [`text`] | events and results as text for users |
//! | [`words`] | prompts of the two agents |

pub mod policy;
pub mod roster;
#[cfg(test)]
mod tests;
pub mod text;
pub mod words;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use tertulia_agents::AgentError;
use tertulia_core::entry::Usage;
pub use tertulia_core::pair::{
    Budget, Next, Pair, PairRole, Reply, Todo, Wait, budget, reply, speakers, state,
};

/// An event of a pair besides its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairEvent {
    /// The instructor has replied.
    Round(Progress),
    /// The number of remaining worker calls was changed.
    Budgeted(Budget),
    /// The instructor's reply held neither an instruction nor DONE, and it is asked to correct
    /// itself.
    Correcting {
        /// Number of the attempt.
        attempt: u32,
    },
    /// The worker is prompted again for an instruction that it could not finish.
    TakenUp,
    /// The worker gets an instruction for a specific model.
    Chose(String),
    /// The worker could not finish, and the error is passed to the instructor.
    WorkerFailed(AgentError),
}

/// Why the user has the turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Pause {
    /// The state machine waits for the user.
    Waits(Wait),
    /// The user stopped this agent.
    Stopped(PairRole),
    /// The instructor failed.
    Failed(AgentError),
    /// The worker failed several times in a row.
    WorkerFails(AgentError),
    /// The session cannot be saved, and nothing runs that is not in the log first.
    Unsaved,
    /// The log cannot be read.
    Unreadable(String),
    /// The message was refused.
    Refused,
}

/// Progress of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of the instructor's replies.
    pub round: u64,
    /// Number of instructions given to the worker.
    pub worker_calls: u64,
    /// Remaining number of worker calls.
    pub remaining: Budget,
    /// Usage so far.
    pub tokens: Usage,
    /// Time since the run began.
    pub elapsed: SignedDuration,
}
