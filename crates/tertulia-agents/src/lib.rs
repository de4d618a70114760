//! Who answers. One trait, one file per way to reach an agent, one set of events that all of them
//! stream and all doors show.

pub mod acp;
pub mod api;
pub mod approval;
pub mod command;
pub mod demo;
mod failure;
mod folder;
mod mention;
pub mod opencode;
pub mod process;
mod prompt;
pub mod scratch;
mod sink;
pub mod tool;
pub mod vendor;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::Approval;
pub use sink::{AgentSink, AgentStream, Permission};
use tertulia_core::entry::{Role, ToolCall, Usage};
use tertulia_core::pair::PairRole;

/// Something that answers.
#[async_trait]
pub trait Agent: std::fmt::Debug + Send + Sync {
    /// The name under which it speaks.
    fn name(&self) -> &str;

    /// The model that it uses, if it has one.
    fn model(&self) -> Option<&str>;

    /// Who runs the tools that it uses.
    fn tools(&self) -> ToolSide;

    /// The folder in which it works, if it is a program.
    fn work_dir(&self) -> Option<&Path> {
        None
    }

    /// Whether it could answer now, found out without asking it anything.
    async fn readiness(&self) -> Readiness;

    /// The models that it could use, where it can tell.
    async fn models(&self) -> Result<Vec<String>, AgentError>;

    /// Answers, streaming what it says. Returns when it is done, wants tools to be run, has failed,
    /// or was cancelled and nothing of it is running any more.
    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError>;

    /// What a user should know at the start of a session: what it cannot ask for under this policy, and what it
    /// keeps although nothing is to be kept.
    fn notices(&self, _approval: Approval, _ephemeral: bool) -> Vec<String> {
        Vec::new()
    }

    /// Ends what it has running between two answers, and lets it put its things away. Most have nothing.
    async fn leave(&self) {}
}

/// Who runs the tools that an agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSide {
    /// It asks for ours, and waits for what came out.
    Ours,
    /// It brings and runs its own, and tells what it does.
    Its,
    /// It uses none.
    Nobody,
}

/// What an agent is asked: the talk so far, the last words last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentRequest {
    /// The talk, oldest first. The last one is what is to be answered. Every tool call in it is
    /// followed by its result.
    pub messages: Vec<PromptMessage>,
    /// How many messages the whole talk has, where not all of them are given.
    pub total: u64,
    /// A name that no other question has: it marks the processes that belong to the answer.
    pub marker: String,
    /// The tools that it may ask for.
    pub tools: Vec<ToolSpec>,
    /// What an agent that runs its own tools may do with them.
    pub approval: Approval,
    /// Whether the agent is to keep nothing of it either, where it can be told so.
    pub ephemeral: bool,
    /// The session in which the agent itself remembers a part of this talk.
    pub native: Option<NativeSession>,
    /// The part that the agent plays, where several take part.
    pub part: Option<Part>,
}

/// The part that an agent plays among others. [`AgentRequest::messages`] tells all of it in words; this is for
/// agents that have a place for a piece of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What it is told about itself.
    pub system: String,
    /// Who spoke last.
    pub from: String,
    /// What they said.
    pub words: String,
    /// Whom its instructions tell it to hand over to.
    pub next: Vec<String>,
    /// Its role in a pair; none in a team.
    pub role: Option<PairRole>,
}

/// An agent's own session, in its own store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeSession {
    /// The id that the agent gave it.
    pub id: String,
    /// The folder in which the agent works there, where it is known.
    pub cwd: Option<PathBuf>,
    /// How many of [`AgentRequest::messages`] it has seen, counted from the oldest.
    pub known: usize,
    /// What its answers in this talk have cost so far, for those that only tell sums.
    pub spent: Usage,
}

/// One message as an agent reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// In which role.
    pub role: Role,
    /// Who said it.
    pub speaker: String,
    /// The words.
    pub content: String,
    /// The tools that it calls.
    pub calls: Vec<ToolCall>,
    /// The call that it answers, in the role `tool`.
    pub answers: Option<String>,
    /// What the agent wants back together with its calls while the turn lasts. Never kept.
    pub memo: Option<Value>,
    /// Whether it was cut off before its end.
    pub cut_off: bool,
    /// The agent that was asked when a person withdrew these words. Their content says so, too.
    pub withdrawn: Option<String>,
}

impl PromptMessage {
    /// A message that is nothing but words.
    pub fn plain(role: Role, speaker: &str, content: impl Into<String>) -> PromptMessage {
        PromptMessage {
            role,
            speaker: speaker.to_owned(),
            content: content.into(),
            calls: Vec::new(),
            answers: None,
            memo: None,
            cut_off: false,
            withdrawn: None,
        }
    }
}

/// A tool as an agent is told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// How an answer ended that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Everything is said.
    Done,
    /// These tools are to be run; then it goes on.
    Calls {
        /// The calls, in order.
        calls: Vec<ToolCall>,
        /// What it wants back with them, see [`PromptMessage::memo`].
        memo: Option<Value>,
    },
}

/// What happens while an agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// More of the answer.
    Text(String),
    /// More of what it thinks before it answers.
    Reasoning(String),
    /// It began to use a tool of its own.
    ToolStarted(ToolCall),
    /// A tool of its own is done.
    ToolCompleted {
        /// Which call.
        id: String,
        /// What came out.
        output: String,
        /// Whether it did what it was asked to.
        ok: bool,
    },
    /// What it means to do, the whole list each time.
    Todos(Vec<Todo>),
    /// What the answer cost so far.
    Usage(Usage),
    /// The id of its own session, so that it can be asked to remember.
    Session(String),
    /// The model that answers, where it was not known before.
    Model(String),
    /// It was refused or not reached, and is tried again.
    Retrying(Retry),
    /// Something that the person should know.
    Remark(String),
    /// Something that this version does not know, as it came.
    Unknown(Value),
}

/// One thing that an agent means to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// What.
    pub text: String,
    /// How far it is.
    pub state: TodoState,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

impl TodoState {
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            TodoState::Pending => "pending",
            TodoState::InProgress => "in_progress",
            TodoState::Completed => "completed",
            TodoState::Cancelled => "cancelled",
        }
    }
}

/// Another attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Which one, from 1.
    pub attempt: u32,
    /// How many there are at most.
    pub of: u32,
    /// How long until then.
    pub wait: Duration,
    /// Why the last one failed.
    pub reason: String,
}

/// The result of a tool that was not allowed, with what was said about it. Logs and screens know it by its beginning.
fn denied(why: &str) -> String {
    format!("[not run: {}]", why.trim())
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

/// Where a person sets how an agent is run. What a hint names must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whence {
    /// Its name in the settings, `[agents.NAME]`. In a team it speaks under another.
    pub section: String,
    /// What to do about the program, where it is not the settings that name it.
    pub program: Option<String>,
    /// What sets how long an answer may take, where it is not the settings.
    pub limit: Option<String>,
}

impl Whence {
    /// From the settings of this name.
    pub fn settings(name: &str) -> Whence {
        Whence {
            section: name.to_owned(),
            program: None,
            limit: None,
        }
    }

    /// A setting of it, where it stands.
    fn setting(&self, key: &str) -> String {
        format!("`{key}` in [agents.{}]", self.section)
    }

    /// What sets how long an answer may take.
    fn limit(&self) -> String {
        let limit = self.limit.clone();
        limit.unwrap_or_else(|| self.setting("timeout"))
    }

    /// What to do if the program is another.
    fn program(&self) -> String {
        let program = self.program.clone();
        program.unwrap_or_else(|| format!("set {}", self.setting("command")))
    }
}

/// What kind of failure: each is something that a person does differently about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// It does not know who asks, or does not let them.
    Auth,
    /// Too much was asked of it for now.
    RateLimit,
    /// The talk is longer than it can read.
    TooLong,
    /// It is not there, does not start, or does not work at the moment.
    Unavailable,
    /// It does not want to answer this.
    Refused,
    /// It answered something that cannot be understood.
    Protocol,
    /// It took too long.
    Timeout,
    /// It ran and said that it failed.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

impl FailureKind {
    /// The kind of a name as it is written; one that is not known is a failure like any other.
    pub fn of_name(name: &str) -> FailureKind {
        use FailureKind as Kind;
        let known = [
            Kind::Auth,
            Kind::RateLimit,
            Kind::TooLong,
            Kind::Unavailable,
            Kind::Refused,
            Kind::Protocol,
            Kind::Timeout,
            Kind::Cancelled,
        ];
        let named = known.into_iter().find(|kind| kind.name() == name);
        named.unwrap_or(Kind::Failed)
    }

    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Auth => "auth",
            FailureKind::RateLimit => "rate_limit",
            FailureKind::TooLong => "too_long",
            FailureKind::Unavailable => "unavailable",
            FailureKind::Refused => "refused",
            FailureKind::Protocol => "protocol",
            FailureKind::Timeout => "timeout",
            FailureKind::Failed => "failed",
            FailureKind::Cancelled => "cancelled",
        }
    }
}

/// Why an agent did not finish its answer.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq, Serialize, Deserialize)]
#[error("{message}")]
pub struct AgentError {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened, in words.
    pub message: String,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
    /// When it may be tried again, where the agent said so.
    pub retry_after: Option<Duration>,
}

impl AgentError {
    /// A failure without a hint.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> AgentError {
        AgentError {
            kind,
            message: message.into(),
            hint: None,
            retry_after: None,
        }
    }

    /// The same with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> AgentError {
        self.hint = Some(hint.into());
        self
    }

    /// Somebody stopped it.
    pub fn cancelled() -> AgentError {
        AgentError::new(FailureKind::Cancelled, "the answer was stopped")
    }
}
