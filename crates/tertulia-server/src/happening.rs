//! Everything that happens in a talk, as data in both directions: a screen is fed with it, be the talk in the
//! same program or behind a socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia::agent::{AgentError, AgentEvent};
use tertulia::approval::{ToolRequest, Verdict};
use tertulia::conversation::pair::PairEvent;
use tertulia::conversation::team::events::Output;
use tertulia::entry::{Entry, Intent, Message, Speaker};
use tertulia::id::SessionId;
use tertulia::session::Summary;

use crate::protocol::Trouble;

/// What happened in a talk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Happening {
    /// The talk is open; this is how it stands.
    Opened {
        /// How it stands.
        floor: Box<Floor>,
    },
    /// It could not be opened. Nothing follows but `gone`.
    NotOpened {
        /// Why.
        error: Trouble,
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
    /// Nobody is asked any more, and the talk stands like this.
    Over {
        /// How it stands.
        floor: Box<Floor>,
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
        farewell: Farewell,
    },
}

impl Happening {
    /// A durable entry.
    pub fn durable(entry: &Entry) -> Happening {
        Happening::Durable {
            line: entry.line().to_owned(),
        }
    }

    /// The entry that became durable, if that is what happened.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Happening::Durable { line } => Entry::decode(line.as_bytes()).ok(),
            _ => None,
        }
    }

    /// About how many bytes it has as a line.
    pub fn weight(&self) -> usize {
        let text = match self {
            Happening::Text { text }
            | Happening::Thought { text }
            | Happening::Notice { text, .. } => text.len(),
            Happening::Durable { line } => line.len(),
            Happening::Held { message } => message.content.len(),
            Happening::MayI { request } => request.preview.len(),
            Happening::Heard {
                event: AgentEvent::ToolCompleted { output, .. },
            } => output.len(),
            Happening::Heard {
                event: AgentEvent::ToolStarted(call),
            } => call.arguments.to_string().len(),
            Happening::Opened { floor } | Happening::Over { floor } => floor.weight(),
            _ => 256,
        };
        text + 128
    }
}

/// How a talk stands while a person has the floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// Which session it is in.
    #[schemars(with = "String")]
    pub id: SessionId,
    /// The session, once something was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub summary: Option<Summary>,
    /// Who answers and why, for people.
    pub introduction: String,
    /// Who writes, as people know them.
    pub writer: String,
    /// Whether something is held in memory only.
    pub unsaved: bool,
    /// Who still waits to speak.
    pub waiting: Vec<Waiting>,
    /// What a pair left undone, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<String>,
    /// Whether it ended because somebody failed.
    pub failed: bool,
}

impl Floor {
    /// How a talk stands of which nothing is known yet.
    pub fn blank(id: SessionId) -> Floor {
        Floor {
            id,
            summary: None,
            introduction: String::new(),
            writer: "you".to_owned(),
            unsaved: false,
            waiting: Vec::new(),
            undone: None,
            failed: false,
        }
    }

    fn weight(&self) -> usize {
        // A pair keeps its last reply in its summary.
        let pair = self.summary.as_ref().and_then(|summary| {
            let pair = summary.pair.as_ref()?;
            Some(pair.last_instruction.len() * 2)
        });
        2048 + pair.unwrap_or(0)
    }
}

/// Somebody who waits to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
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
pub struct Farewell {
    /// Whether something could not be saved.
    pub unsaved: bool,
    /// What the person should read.
    pub told: Vec<Told>,
}

/// Something that the person should read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// How urgent it is.
    pub tone: Tone,
    /// The words.
    pub text: String,
}
