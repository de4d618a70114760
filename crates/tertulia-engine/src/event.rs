//! Everything that happens in a live session, as serialisable data: it feeds frontends in the same
//! process and behind a socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia_agents::approval::{PermissionState, ToolRequest, Verdict};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Entry, Intent, Message, Speaker};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_store::UnsentMessage;

use crate::error::ErrorBody;
use crate::message_queue::WithdrawReason;
use crate::pair::PairEvent;
use crate::team::events::Output;

/// An event of a live session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
#[schemars(rename = "Happening")]
pub enum SessionEvent {
    /// The session is created or resumed: the first event. Not sent to clients of a server.
    Started {
        /// Id of the session.
        #[schemars(with = "String")]
        id: SessionId,
        /// Number of messages, if the session is resumed.
        resumed: Option<u64>,
    },
    /// The session is open.
    Opened {
        /// State of the session.
        floor: Box<SessionState>,
    },
    /// The session could not be opened, or its task crashed. Only `gone` follows.
    NotOpened {
        /// Reason.
        error: ErrorBody,
    },
    /// A turn or a compaction begins, whichever client requested it.
    Began,
    /// More text of the answer, as it is shown to the user.
    Text {
        /// The text.
        text: String,
    },
    /// More reasoning text of the agent.
    Thought {
        /// The text.
        text: String,
    },
    /// Another event of an agent, such as a tool call or a to-do list.
    Heard {
        /// The agent's event.
        #[schemars(with = "serde_json::Value")]
        event: AgentEvent,
    },
    /// A shell command of the user has printed more. The complete output is in an entry.
    Printed {
        /// The text.
        text: String,
    },
    /// An entry is durable: written to the log.
    Durable {
        /// Line of the entry in the log, byte for byte.
        line: String,
    },
    /// A message cannot be saved now and is held in memory.
    Held {
        /// The message.
        #[schemars(with = "serde_json::Value")]
        message: Box<Message>,
    },
    /// In a team or pair: an agent is prompted.
    Asked {
        /// The prompted agent, as a speaker.
        #[schemars(with = "serde_json::Value")]
        speaker: Speaker,
    },
    /// In a team or pair: an agent could not answer.
    Failed {
        /// The agent, as a speaker.
        #[schemars(with = "serde_json::Value")]
        speaker: Speaker,
        /// Reason.
        #[schemars(with = "serde_json::Value")]
        error: AgentError,
    },
    /// In a team: a result of routing, such as a new task, a changed queue or the next speaker.
    Routed {
        /// The result.
        #[schemars(with = "serde_json::Value")]
        output: Output,
    },
    /// In a pair: an event besides the messages, such as a new round or a failure of the worker.
    Pair {
        /// The event.
        #[schemars(with = "serde_json::Value")]
        event: PairEvent,
    },
    /// A notice for the user.
    Notice {
        /// Severity of the notice.
        tone: Tone,
        /// The text.
        text: String,
        /// The error, if the store rejected a message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorBody>,
    },
    /// A permission request. The first `verdict` of any client answers it.
    MayI {
        /// The tool call, its risk and a preview.
        #[schemars(with = "serde_json::Value")]
        request: Box<ToolRequest>,
    },
    /// A permission request was answered or withdrawn.
    Settled {
        /// Id of the tool call.
        tool_id: String,
        /// The answer. A withdrawn request counts as denied.
        #[schemars(with = "serde_json::Value")]
        verdict: Verdict,
    },
    /// The tool permissions in force: sent when the session is opened, and after each change
    /// request.
    Permissions {
        /// The tool policy, and the permissions given with `always`.
        #[schemars(with = "serde_json::Value")]
        state: PermissionState,
    },
    /// Messages that wait for the running turn, and drafts: sent after each change.
    Unsent {
        /// Queued messages in their order, and drafts.
        #[schemars(with = "serde_json::Value")]
        messages: Vec<UnsentMessage>,
        /// Id of the queued message that a frontend edits: it and those after it wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        editing: Option<String>,
    },
    /// A queued message is not sent, by anything but the user again.
    Withdrawn {
        /// Id that its frontend gave it.
        client_id: String,
        /// Its words.
        text: String,
        /// Why.
        reason: WithdrawReason,
    },
    /// No turn is running any more: the session waits for a message.
    Over {
        /// State of the session.
        floor: Box<SessionState>,
    },
    /// The conversation continues in a fork, because another program writes to this session.
    Moved {
        /// Id of the fork.
        #[schemars(with = "String")]
        to: SessionId,
    },
    /// The session is closed. No events follow until it is opened again.
    Gone {
        /// How the session ended.
        farewell: SessionEnd,
    },
}

impl SessionEvent {
    /// Creates the event of an agent's event.
    pub fn agent(event: AgentEvent) -> SessionEvent {
        match event {
            AgentEvent::Text(text) => SessionEvent::Text { text },
            AgentEvent::Reasoning(text) => SessionEvent::Thought { text },
            event => SessionEvent::Heard { event },
        }
    }

    /// Creates a notice without an error.
    pub fn notice(tone: Tone, text: impl Into<String>) -> SessionEvent {
        SessionEvent::Notice {
            tone,
            text: text.into(),
            error: None,
        }
    }

    /// Creates the event of a durable entry.
    pub fn durable(entry: &Entry) -> SessionEvent {
        SessionEvent::Durable {
            // Frontends and clients have no key: they are sent the words of a sealed session.
            line: entry
                .readable_line()
                .unwrap_or(entry.line().into())
                .into_owned(),
        }
    }

    /// Returns the entry of a `Durable` event.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            SessionEvent::Durable { line } => Entry::decode(line.as_bytes()).ok(),
            _ => None,
        }
    }

    /// Returns the approximate size of its line in bytes.
    pub fn weight(&self) -> usize {
        let text = match self {
            SessionEvent::Text { text }
            | SessionEvent::Thought { text }
            | SessionEvent::Printed { text }
            | SessionEvent::Notice { text, .. } => text.len(),
            SessionEvent::Durable { line } => line.len(),
            SessionEvent::Held { message } => message.content.len(),
            SessionEvent::MayI { request } => request.preview.len(),
            SessionEvent::Heard {
                event: AgentEvent::ToolCompleted { output, .. },
            } => output.len(),
            SessionEvent::Heard {
                event: AgentEvent::ToolOutput { tail, .. },
            } => tail.len(),
            SessionEvent::Heard {
                event: AgentEvent::ToolStarted(call),
            } => call.arguments.to_string().len(),
            SessionEvent::Opened { floor } | SessionEvent::Over { floor } => floor.weight(),
            SessionEvent::Unsent { messages, .. } => messages
                .iter()
                .map(|message| message.text.len() + 128)
                .sum(),
            SessionEvent::Withdrawn { text, .. } => text.len(),
            _ => 256,
        };
        text + 128
    }
}

/// State of a session between turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Floor")]
pub struct SessionState {
    /// Id of the session.
    #[schemars(with = "String")]
    pub id: SessionId,
    /// Metadata of the session, once it has entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    #[serde(rename = "summary")]
    pub meta: Option<SessionMeta>,
    /// Describes the agents and why they were chosen, for the user.
    pub introduction: String,
    /// Folder that the session works in; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Whether it is another folder than that of the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_elsewhere: bool,
    /// Display name of the person who writes the next message.
    pub writer: String,
    /// Name of the agent, in a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Name of the model, in a chat, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How full the agent's context is, in a chat, if the agent has counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// Whether messages are held in memory because they could not be saved.
    pub unsaved: bool,
    /// Queued members of a team.
    pub waiting: Vec<QueuedMember>,
    /// Unfinished work of a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedWork>,
    /// Whether the last turn ended because an agent failed.
    pub failed: bool,
}

/// Unfinished work of a pair. It is never repeated without asking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnfinishedWork {
    /// The question to the user, in one line.
    pub question: String,
    /// What is unfinished.
    pub text: String,
    /// Whether more worker calls must be allowed first; then there is nothing to ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spent: bool,
}

impl SessionState {
    /// Creates the state of a session of which nothing is known yet.
    pub fn blank(id: SessionId) -> SessionState {
        SessionState {
            id,
            meta: None,
            introduction: String::new(),
            folder: String::new(),
            is_elsewhere: false,
            writer: "you".to_owned(),
            agent: None,
            model: None,
            context: None,
            unsaved: false,
            waiting: Vec::new(),
            unfinished: None,
            failed: false,
        }
    }

    fn weight(&self) -> usize {
        // A pair keeps its last instruction in its metadata.
        let pair = self.meta.as_ref().and_then(|meta| {
            let pair = meta.pair.as_ref()?;
            Some(pair.last_instruction.len() * 2)
        });
        2048 + pair.unwrap_or(0)
    }
}

/// How full an agent's context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextUse {
    /// Tokens of the last prompt.
    pub tokens: u64,
    /// Number of tokens above which older messages are summarised.
    pub limit: u64,
}

impl ContextUse {
    /// Returns the used part in percent, rounded down.
    pub fn percent(self) -> u64 {
        self.tokens.saturating_mul(100) / self.limit.max(1)
    }
}

/// A queued member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Waiting")]
pub struct QueuedMember {
    /// Display name of the member.
    pub name: String,
    /// Priority: `P1` (first), `P2` (normal) or `P3` (last).
    #[schemars(with = "String")]
    pub intent: Intent,
    /// Whether the member is the user. Always false in events from a server.
    pub is_you: bool,
}

/// Severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Information.
    Note,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

/// How a session ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Farewell")]
pub struct SessionEnd {
    /// Whether messages could not be saved.
    pub unsaved: bool,
    /// Whether they could not be saved because another program holds a lock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked_out: bool,
    /// Messages for the user.
    pub told: Vec<UserMessage>,
    /// The session as JSON Lines, if the unsaved messages could not be written to a file either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// A message for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct UserMessage {
    /// Severity of the message.
    pub tone: Tone,
    /// The text.
    pub text: String,
}

impl UserMessage {
    /// Creates a message of tone `Note`.
    pub fn note(text: impl Into<String>) -> UserMessage {
        UserMessage {
            tone: Tone::Note,
            text: text.into(),
        }
    }

    /// Creates a message of tone `Warning`.
    pub fn warning(text: impl Into<String>) -> UserMessage {
        UserMessage {
            tone: Tone::Warning,
            text: text.into(),
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
pub enum TurnStatus {
    /// The turn was completed.
    Completed,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed. An `error` or a `notice` gives the reason.
    Failed,
    /// The message was rejected. A `notice` gives the reason.
    Refused,
    /// The turn is paused until a person sends a message.
    Paused,
}

impl TurnStatus {
    /// Returns its serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            TurnStatus::Completed => "completed",
            TurnStatus::Cancelled => "cancelled",
            TurnStatus::Failed => "failed",
            TurnStatus::Refused => "refused",
            TurnStatus::Paused => "paused",
        }
    }
}
