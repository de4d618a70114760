//! Everything that happens in a live session, as serialisable data: it feeds frontends in the same
//! process and behind a socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia_agents::approval::{PermissionState, ToolRequest, Verdict};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Entry, Intent, Message, Speaker};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;

use crate::error::ErrorBody;
use crate::pair::PairEvent;
use crate::team::events::Output;

/// What happened in a talk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
#[schemars(rename = "Happening")]
pub enum SessionEvent {
    /// A session begins or is resumed; the first event. Not sent over a socket.
    Started {
        /// Which.
        #[schemars(with = "String")]
        id: SessionId,
        /// Number of its messages, if it is resumed.
        resumed: Option<u64>,
    },
    /// The talk is open; this is how it stands.
    Opened {
        /// How it stands.
        floor: Box<SessionState>,
    },
    /// It could not be opened. Nothing follows but `gone`.
    NotOpened {
        /// Why.
        error: ErrorBody,
    },
    /// Somebody begins to be answered, whoever asked.
    Began,
    /// More of what is being said, as it is shown.
    Text {
        /// The text.
        text: String,
    },
    /// More of what an agent thinks.
    Thought {
        /// The text.
        text: String,
    },
    /// An agent did something else.
    Heard {
        /// What.
        #[schemars(with = "serde_json::Value")]
        event: AgentEvent,
    },
    /// An entry is durable now.
    Durable {
        /// Its line in the log, byte for byte.
        line: String,
    },
    /// A message is said and held in memory: it cannot be saved now.
    Held {
        /// The message.
        #[schemars(with = "serde_json::Value")]
        message: Box<Message>,
    },
    /// Somebody of several is asked now.
    Asked {
        /// Who.
        #[schemars(with = "serde_json::Value")]
        speaker: Speaker,
    },
    /// Somebody of several could not answer.
    Failed {
        /// Who.
        #[schemars(with = "serde_json::Value")]
        speaker: Speaker,
        /// Why.
        #[schemars(with = "serde_json::Value")]
        error: AgentError,
    },
    /// What followed from what was said among several.
    Routed {
        /// What.
        #[schemars(with = "serde_json::Value")]
        output: Output,
    },
    /// What followed between an instructor and a worker.
    Pair {
        /// What.
        #[schemars(with = "serde_json::Value")]
        event: PairEvent,
    },
    /// Something that the person should know.
    Notice {
        /// How urgent it is.
        tone: Tone,
        /// The words.
        text: String,
        /// The error, if words were not taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorBody>,
    },
    /// May a tool be used? A `verdict` tells, from whoever answers first.
    MayI {
        /// The tool, and what it would do.
        #[schemars(with = "serde_json::Value")]
        request: Box<ToolRequest>,
    },
    /// The question was answered, or nobody waits for the answer any more.
    Settled {
        /// Which call.
        tool_id: String,
        /// The answer.
        #[schemars(with = "serde_json::Value")]
        verdict: Verdict,
    },
    /// The tool permissions in force, when the session is opened and whenever they change.
    Permissions {
        /// The mode, and what is always allowed.
        #[schemars(with = "serde_json::Value")]
        state: PermissionState,
    },
    /// Nobody is asked any more, and the talk stands like this.
    Over {
        /// How it stands.
        floor: Box<SessionState>,
    },
    /// The talk goes on in another session: a fork, because somebody else writes to this one.
    Moved {
        /// Which.
        #[schemars(with = "String")]
        to: SessionId,
    },
    /// The talk has ended; nothing follows until it is opened again.
    Gone {
        /// What is left to say.
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
            line: entry.line().to_owned(),
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
            | SessionEvent::Notice { text, .. } => text.len(),
            SessionEvent::Durable { line } => line.len(),
            SessionEvent::Held { message } => message.content.len(),
            SessionEvent::MayI { request } => request.preview.len(),
            SessionEvent::Heard {
                event: AgentEvent::ToolCompleted { output, .. },
            } => output.len(),
            SessionEvent::Heard {
                event: AgentEvent::ToolStarted(call),
            } => call.arguments.to_string().len(),
            SessionEvent::Opened { floor } | SessionEvent::Over { floor } => floor.weight(),
            _ => 256,
        };
        text + 128
    }
}

/// How a talk stands while a person has the floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Floor")]
pub struct SessionState {
    /// Which session it is in.
    #[schemars(with = "String")]
    pub id: SessionId,
    /// The session, once something was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    #[serde(rename = "summary")]
    pub meta: Option<SessionMeta>,
    /// Who answers and why, for people.
    pub introduction: String,
    /// Who writes, as people know them.
    pub writer: String,
    /// Which agent answers, in a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Which model answers, in a chat, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether something is held in memory only.
    pub unsaved: bool,
    /// Who still waits to speak.
    pub waiting: Vec<QueuedMember>,
    /// What a pair left undone, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<String>,
    /// Whether that cannot go on before more calls of the worker are allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spent: bool,
    /// Whether it ended because somebody failed.
    pub failed: bool,
}

impl SessionState {
    /// Creates the state of a session of which nothing is known yet.
    pub fn blank(id: SessionId) -> SessionState {
        SessionState {
            id,
            meta: None,
            introduction: String::new(),
            writer: "you".to_owned(),
            agent: None,
            model: None,
            unsaved: false,
            waiting: Vec::new(),
            undone: None,
            is_spent: false,
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

/// Somebody who waits to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Waiting")]
pub struct QueuedMember {
    /// As people know them.
    pub name: String,
    /// How urgently: `P1`, `P2` or `P3`.
    #[schemars(with = "String")]
    pub intent: Intent,
    /// Whether it is the person at the screen.
    pub is_you: bool,
}

/// How urgent a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Good to know.
    Note,
    /// Worth a look.
    Warning,
    /// Something went wrong.
    Error,
}

/// What is left to say when a talk has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Farewell")]
pub struct SessionEnd {
    /// Whether something could not be saved.
    pub unsaved: bool,
    /// Whether that is because another program holds the store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked_out: bool,
    /// What the person should read.
    pub told: Vec<UserMessage>,
    /// The session itself, if it could be written nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// Something that the person should read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct UserMessage {
    /// How urgent it is.
    pub tone: Tone,
    /// The words.
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

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
pub enum TurnStatus {
    /// It was answered.
    Completed,
    /// Somebody stopped it.
    Cancelled,
    /// An agent failed; an `error` said why.
    Failed,
    /// The words were not taken; a notice said why.
    Refused,
    /// A person is to say how it goes on.
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
