//! Agents: the [`Agent`] trait, one module per way to reach an agent, and the [`AgentEvent`]s that
//! all of them stream and all frontends show.
//!
//! ```
//! use std::time::Duration;
//! use tertulia_agents::demo::Demo;
//! use tertulia_agents::{Agent, AgentEvent, AgentRequest, AgentSink, PromptMessage};
//! use tertulia_core::entry::Role;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let agent = Demo::new("demo", Duration::ZERO);
//! let (sink, mut stream) = AgentSink::open(&CancellationToken::new());
//! let request = AgentRequest {
//!     messages: vec![PromptMessage::plain(Role::User, "you", "echo hello")],
//!     ..AgentRequest::default()
//! };
//! let answer = tokio::spawn(async move { agent.answer(&request, &sink).await });
//! let mut text = String::new();
//! while let Some(event) = stream.events.recv().await {
//!     if let AgentEvent::Text(more) = event {
//!         text.push_str(&more);
//!     }
//! }
//! answer.await.unwrap().unwrap();
//! assert_eq!(text.trim(), "hello");
//! # }
//! ```

pub mod acp;
#[cfg(feature = "api")]
pub mod api;
pub mod approval;
mod attached;
pub mod bypass;
pub mod command;
pub mod demo;
mod failure;
mod folder;
mod mention;
mod obeyed;
pub mod opencode;
mod plain_text;
pub mod process;
mod program_name;
mod prompt;
pub mod scratch;
pub mod session_files;
mod sink;
pub mod system_prompt;
pub mod tool;
pub mod vendor;
mod whence;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::Approval;
use crate::system_prompt::SystemTexts;
pub use sink::{AgentSink, AgentStream, Permission};
use tertulia_core::entry::{Attachment, Role, ToolCall, Usage};
use tertulia_core::pair::PairRole;
pub use whence::Whence;

/// An agent that answers prompts.
#[async_trait]
pub trait Agent: std::fmt::Debug + Send + Sync {
    /// Name under which the agent speaks.
    fn name(&self) -> &str;

    /// Model that the agent uses, if it has one.
    fn model(&self) -> Option<&str>;

    /// Returns which side runs the tools that the agent uses.
    fn tools(&self) -> ToolSide;

    /// Folder in which the agent works, if it is a program.
    fn work_dir(&self) -> Option<&Path> {
        None
    }

    /// Returns the program whose own sessions the agent can continue, as `import --from` names it.
    fn history(&self) -> Option<&'static str> {
        None
    }

    /// Returns the texts for its system prompt, if the agent is to have one built by tertulia.
    /// Programs bring their own prompts and read the project's instructions themselves.
    fn system_texts(&self) -> Option<SystemTexts<'_>> {
        None
    }

    /// Returns whether the agent could answer now, without prompting it.
    async fn readiness(&self) -> Readiness;

    /// Lists the models that the agent could use, if it can list them.
    async fn models(&self) -> Result<Vec<String>, AgentError>;

    /// Answers the request and streams events to `sink`. Returns when the answer is complete, when
    /// tools are to be run, on failure, or after cancellation, when none of its processes is
    /// running any more.
    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError>;

    /// Returns notices for the user at the start of a session: what the agent cannot ask permission
    /// for under this mode, and what it saves although the session is ephemeral.
    fn notices(&self, _approval: Approval, _ephemeral: bool) -> Vec<String> {
        Vec::new()
    }

    /// Ends what the agent keeps running between two answers. Most agents have nothing to end.
    async fn leave(&self) {}
}

/// Side that runs the tools that an agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSide {
    /// The agent requests tertulia's tools and waits for their results.
    Ours,
    /// The agent brings and runs its own tools, and reports what it does.
    Its,
    /// The agent uses no tools.
    None,
}

/// One request to an agent: the conversation so far, newest message last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentRequest {
    /// Messages, oldest first. The last one is to be answered. Every tool call is followed by its
    /// result.
    pub messages: Vec<PromptMessage>,
    /// Number of messages in the whole conversation, of which `messages` may hold only a part.
    pub total: u64,
    /// System prompt for an agent with [`Agent::system_texts`]. Without one, as in a request for a
    /// summary, the agent uses these texts alone.
    pub system: Option<String>,
    /// When the agent is asked.
    pub asked_at: Option<Timestamp>,
    /// Unique id of the request: it marks the processes that belong to the answer.
    pub marker: String,
    /// Tools that the agent may request.
    pub tools: Vec<ToolSpec>,
    /// Permission mode for an agent that runs its own tools.
    pub approval: Approval,
    /// Whether the agent should save nothing of the session either, where it has such an option.
    pub ephemeral: bool,
    /// The agent's own session that already holds a part of this conversation.
    pub native: Option<NativeSession>,
    /// The agent's part in a team or a pair.
    pub part: Option<Part>,
}

/// The part of an agent in a team or a pair. [`AgentRequest::messages`] contains all of it as text;
/// these fields are for agents that take a piece of it separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// System instructions of the agent.
    pub system: String,
    /// Previous speaker.
    pub from: String,
    /// Text of the previous speaker's message.
    pub words: String,
    /// Members that the agent's instructions tell it to hand over to.
    pub next: Vec<String>,
    /// Role in a pair; `None` in a team.
    pub role: Option<PairRole>,
}

/// An agent's own session, in its own store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeSession {
    /// Id that the agent gave the session.
    pub id: String,
    /// Folder in which the agent works in that session, if known.
    pub cwd: Option<PathBuf>,
    /// Number of [`AgentRequest::messages`] that the session has seen, counted from the oldest.
    pub known: usize,
    /// Usage of the agent's answers in this conversation so far, for agents that only report sums.
    pub spent: Usage,
    /// Whether to continue in a copy, where the agent can: the session is also used without tertulia.
    pub fork: bool,
}

/// One message as an agent receives it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Role of the message.
    pub role: Role,
    /// Name of the speaker.
    pub speaker: String,
    /// Text of the message.
    pub content: String,
    /// Tool calls that the message makes.
    pub calls: Vec<ToolCall>,
    /// Id of the tool call that the message answers, in the role `tool`.
    pub answers: Option<String>,
    /// Data that the agent wants back together with its calls while the turn lasts. Never saved.
    pub memo: Option<Value>,
    /// Whether the message was cut off before its end.
    pub cut_off: bool,
    /// The agent that was prompted when the user withdrew this message. `content` says so, too.
    pub withdrawn: Option<String>,
    /// Attached files. An agent gets them as part of the text, see [`PromptMessage::with_files`].
    pub attachments: Vec<Attachment>,
    /// What has changed in the environment until this message, for agents whose system prompt
    /// describes it. They get it as part of the text, too.
    pub note: Option<String>,
}

impl PromptMessage {
    /// Creates a message that consists of text only.
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
            attachments: Vec::new(),
            note: None,
        }
    }
}

/// A tool as it is described to an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// How an answer ended that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The answer is complete.
    Done,
    /// The agent waits for the results of these tool calls.
    Calls {
        /// The calls, in order.
        calls: Vec<ToolCall>,
        /// Data to return together with the results, see [`PromptMessage::memo`].
        memo: Option<Value>,
    },
}

/// An event while an agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// More text of the answer.
    Text(String),
    /// More reasoning text.
    Reasoning(String),
    /// The agent started one of its own tools.
    ToolStarted(ToolCall),
    /// One of the agent's own tools has finished.
    ToolCompleted {
        /// Id of the call.
        id: String,
        /// Output of the tool.
        output: String,
        /// Whether the tool succeeded.
        ok: bool,
    },
    /// Output of a tool that is still running: its last lines, complete each time. Never saved.
    ToolOutput {
        /// Id of the call.
        id: String,
        /// The last lines.
        tail: String,
    },
    /// The agent's to-do list, complete each time.
    Todos(Vec<Todo>),
    /// Usage of the answer so far.
    Usage(Usage),
    /// Requests that the usage of the answer is of, each named as an import of the program's own file
    /// names it.
    Requests(Vec<String>),
    /// Id of the agent's own session, with which that session can be resumed.
    Session(String),
    /// Model that answers, if it was not known before.
    Model(String),
    /// A request was refused or did not arrive, and is tried again.
    Retrying(Retry),
    /// A remark for the user.
    Remark(String),
    /// An event that this version does not know, as received.
    Unknown(Value),
}

/// One item of an agent's to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// Text of the item.
    pub text: String,
    /// State of the item.
    pub state: TodoState,
}

/// State of a to-do item.
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
    /// Name of the state as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            TodoState::Pending => "pending",
            TodoState::InProgress => "in_progress",
            TodoState::Completed => "completed",
            TodoState::Cancelled => "cancelled",
        }
    }
}

/// A retry that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub of: u32,
    /// Time until the attempt.
    pub wait: Duration,
    /// Why the previous attempt failed.
    pub reason: String,
}

/// Stands before the user's words in the reason of a denial.
const INSTEAD: &str = ", and says what to do instead: ";

/// Tells an agent that a tool was denied because no user could be asked.
pub const UNANSWERED: &str = "this tool needs permission, and nobody could be asked for it: do not try again, say what you would have done";

/// Formats the reason of a denial that the user gave words for.
pub fn denial(words: &str) -> String {
    format!("the user does not want this{INSTEAD}{words}")
}

/// Returns the user's words in the result of a denied tool call, if it has any.
pub fn denial_words(result: &str) -> Option<&str> {
    result.split_once(INSTEAD)?.1.trim_end().strip_suffix(']')
}

/// Formats the result of a tool call that was denied, with the reason. Logs and frontends recognise
/// it by its prefix.
fn denied(why: &str) -> String {
    format!("[not run: {}]", why.trim())
}

/// Whether an agent could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Ready; with its version or another remark, if there is one.
    Ready(Option<String>),
    /// Not ready, and why.
    NotReady(String),
}

/// Time limits of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the beginning of the answer to its end.
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

/// Kind of failure, one for each way in which the user can react.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The agent does not know the user, or does not admit them.
    Auth,
    /// Too many requests or tokens for now.
    RateLimit,
    /// The conversation does not fit into the context window.
    TooLong,
    /// The agent is missing, does not start, or is out of service at the moment.
    Unavailable,
    /// The agent refuses to answer this.
    Refused,
    /// The agent's output does not follow its protocol.
    Protocol,
    /// The answer took too long.
    Timeout,
    /// The agent ran and reported a failure.
    Failed,
    /// The answer was cancelled.
    Cancelled,
}

impl FailureKind {
    /// Returns the kind with a serialised name; an unknown name counts as `Failed`.
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

    /// Name of the kind as it is serialised.
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
    /// Kind of failure.
    pub kind: FailureKind,
    /// What happened, for the user.
    pub message: String,
    /// What the user can do about it, if known.
    pub hint: Option<String>,
    /// When to try again, if the agent said so.
    pub retry_after: Option<Duration>,
}

impl AgentError {
    /// Creates a failure without a hint.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> AgentError {
        AgentError {
            kind,
            message: message.into(),
            hint: None,
            retry_after: None,
        }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> AgentError {
        self.hint = Some(hint.into());
        self
    }

    /// Creates the failure of a cancelled answer.
    pub fn cancelled() -> AgentError {
        AgentError::new(FailureKind::Cancelled, "the answer was stopped")
    }
}
