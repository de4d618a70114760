//! Who answers. One trait, one file per way to reach an agent, one set of events that all of them
//! stream and all doors show.

pub mod command;
pub mod demo;
pub mod process;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::entry::{Role, Usage};

/// Something that answers.
#[async_trait]
pub trait Agent: std::fmt::Debug + Send + Sync {
    /// The name under which it speaks.
    fn name(&self) -> &str;

    /// The model that it uses, if it has one.
    fn model(&self) -> Option<&str>;

    /// Whether it could answer now, found out without asking it anything.
    async fn readiness(&self) -> Readiness;

    /// Answers, streaming what it says. Returns when it is done, has failed, or was cancelled and
    /// nothing of it is running any more.
    async fn answer(
        &self,
        question: &Question,
        events: mpsc::Sender<AgentEvent>,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError>;
}

/// What an agent is asked: the talk so far, the last words last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The talk, oldest first. The last one is what is to be answered.
    pub messages: Vec<Utterance>,
    /// How many messages the whole talk has, where not all of them are given.
    pub total: u64,
    /// A name that no other question has: it marks the processes that belong to the answer.
    pub marker: String,
}

/// One message as an agent reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utterance {
    /// In which role.
    pub role: Role,
    /// Who said it.
    pub speaker: String,
    /// The words.
    pub content: String,
}

/// What happens while an agent answers.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// More of the answer.
    Text(String),
    /// More of what it thinks before it answers.
    Reasoning(String),
    /// What the answer cost so far.
    Usage(Usage),
}

/// Whether an agent could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It could; with its version or another remark, if there is one.
    Ready(Option<String>),
    /// It could not, and why.
    NotReady(String),
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From its beginning to its end.
    pub total: Duration,
    /// Between two signs of life.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            total: Duration::from_secs(30 * 60),
            idle: Duration::from_secs(10 * 60),
        }
    }
}

/// What kind of failure: each is something that a person does differently about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It is not there, or does not start.
    Unavailable,
    /// It took too long.
    Timeout,
    /// It ran and said that it failed.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

impl FailureKind {
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Unavailable => "unavailable",
            FailureKind::Timeout => "timeout",
            FailureKind::Failed => "failed",
            FailureKind::Cancelled => "cancelled",
        }
    }
}

/// Why an agent did not finish its answer.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct AgentError {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened, in words.
    pub message: String,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
}

impl AgentError {
    /// Somebody stopped it.
    pub fn cancelled() -> AgentError {
        AgentError {
            kind: FailureKind::Cancelled,
            message: "the answer was stopped".into(),
            hint: None,
        }
    }
}
