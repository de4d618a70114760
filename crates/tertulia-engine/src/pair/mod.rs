//! An instructor and a worker, as a pure machine. The log is the state: each entry is folded into a
//! [`Pair`], which knows what is to be done next, so that a talk that was killed anywhere goes on from
//! its last entry.
//!
//! ```text
//! human → instructor → "Tell worker: …" → worker → "Worker says: …" → instructor → … → DONE → human
//!              ↑  neither: asked to correct itself  |
//!              └────────────────────────────────────┘
//! ```
//!
//! | part | what |
//! |---|---|
//! | [`reply`] | what the instructor's reply says: thinking, an instruction, DONE |
//! | [`budget`] | how often the worker may still be called, and `[r+5]` |
//! | [`state`] | the fold: counters, the last reply, who is next |
//! | [`words`] | what the two are told |

#[cfg(test)]
mod tests;
pub mod words;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use tertulia_agents::AgentError;
use tertulia_core::entry::Usage;
pub use tertulia_core::pair::{
    Budget, Next, Pair, PairRole, Reply, Todo, Wait, budget, reply, speakers, state,
};

/// What a pair shows beside what is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairEvent {
    /// The instructor has replied.
    Round(Progress),
    /// The worker may be called so often from now on.
    Budgeted(Budget),
    /// The instructor's reply told nobody anything, and it is asked to correct itself.
    Correcting {
        /// For the how many-eth time.
        attempt: u32,
    },
    /// The worker is asked again for an instruction that it could not finish.
    TakenUp,
    /// The worker gets an instruction for a model of its own.
    Chose(String),
    /// The worker could not finish, and the instructor is told why.
    WorkerFailed(AgentError),
}

/// How far a pair is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// How often the instructor has replied.
    pub round: u64,
    /// How often the worker was given an instruction.
    pub worker_calls: u64,
    /// How often the worker may still be called.
    pub remaining: Budget,
    /// What it has cost so far.
    pub tokens: Usage,
    /// Since the run began.
    pub elapsed: SignedDuration,
}
