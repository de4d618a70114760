//! What only a pair records: its two agents, its budget, and the thinking of an agent.

use serde::{Deserialize, Serialize};

use crate::pair::Budget;

/// Participants and settings of a pair session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paired {
    /// The instructor.
    pub instructor: PairedAgent,
    /// The worker.
    pub worker: PairedAgent,
    /// True if the instructor thinks before it answers, where its model can.
    pub thinking: bool,
    /// Working directory of both.
    pub work_dir: String,
    /// System prompt of the instructor.
    pub system: String,
    /// Current round, if the session was imported from a program that counted rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
}

/// Agent of the instructor or worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedAgent {
    /// Name of the agent.
    pub agent: String,
    /// Model, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Budget of worker calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgeted {
    /// The budget from this entry on.
    pub budget: Budget,
}

/// An agent's thinking before its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// Thread of the agent.
    pub thread: String,
    /// The thinking text.
    pub text: String,
}
