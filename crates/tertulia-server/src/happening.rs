//! Everything that happens in a live session, as serialisable data: it feeds frontends in the same
//! process and behind a socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia_agents::approval::{PermissionState, ToolRequest, Verdict};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Entry, Intent, Message, Speaker};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_engine::pair::PairEvent;
use tertulia_engine::team::events::Output;

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
    /// The tool permissions in force, when the session is opened and whenever they change.
    Permissions {
        /// The mode, and what is always allowed.
        #[schemars(with = "serde_json::Value")]
        state: PermissionState,
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
    /// Creates the event of a durable entry.
    pub fn durable(entry: &Entry) -> Happening {
        Happening::Durable {
            line: entry.line().to_owned(),
        }
    }

    /// Returns the entry of a `Durable` event.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Happening::Durable { line } => Entry::decode(line.as_bytes()).ok(),
            _ => None,
        }
    }

    /// Returns the approximate size of its line in bytes.
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
    #[serde(rename = "summary")]
    pub meta: Option<SessionMeta>,
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
    /// Creates the state of a session of which nothing is known yet.
    pub fn blank(id: SessionId) -> Floor {
        Floor {
            id,
            meta: None,
            introduction: String::new(),
            writer: "you".to_owned(),
            unsaved: false,
            waiting: Vec::new(),
            undone: None,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tertulia_agents::approval::{Approval, Risk};
    use tertulia_agents::{FailureKind, Retry, Todo, TodoState};
    use tertulia_core::entry::{Body, Head, Role, SpeakerKind, ToolCall, Unsealed, Usage};
    use tertulia_engine::pair::{Budget, Progress};
    use tertulia_engine::team::events::{Missed, Next, Unresolved, Why};

    use super::*;
    use crate::protocol::{Answer, ErrorKind, Id, Reply};

    fn id() -> SessionId {
        "01890000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn call() -> ToolCall {
        ToolCall {
            id: "1".into(),
            name: "shell".into(),
            arguments: json!({ "command": "ls", "n": 1.5 }),
        }
    }

    fn message() -> Message {
        Message {
            speaker: Speaker::plain("ben", SpeakerKind::Ai),
            role: Role::Assistant,
            content: "x\ny".into(),
            thread: None,
            tool_calls: vec![call()],
            tool_call_id: None,
            usage: Some(Usage::told(1, 2)),
            model: None,
            addressees: Vec::new(),
            asked: None,
            interrupted: false,
            outcome: None,
        }
    }

    fn entry() -> Entry {
        let new = Unsealed {
            id: "01890000-0000-7000-8000-000000000002".parse().unwrap(),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            body: Body::Message(message()),
            redacted: Default::default(),
        };
        Entry::seal(&Head::START, vec![new]).unwrap().remove(0)
    }

    fn heard() -> Vec<AgentEvent> {
        vec![
            AgentEvent::ToolStarted(call()),
            AgentEvent::ToolCompleted {
                id: "1".into(),
                output: "o".into(),
                ok: true,
            },
            AgentEvent::Todos(vec![Todo {
                text: "t".into(),
                state: TodoState::InProgress,
            }]),
            AgentEvent::Usage(Usage::told(1, u64::MAX)),
            AgentEvent::Retrying(Retry {
                attempt: 1,
                of: 2,
                wait: Duration::from_millis(1500),
                reason: "r".into(),
            }),
            AgentEvent::Unknown(json!({ "a": [1, null] })),
        ]
    }

    fn floor() -> Floor {
        let mut floor = Floor::blank(id());
        floor.meta = Some(SessionMeta::of(id(), &[entry()]));
        floor.waiting.push(Waiting {
            name: "Ben".into(),
            intent: Intent::P1,
            is_you: false,
        });
        floor
    }

    fn progress() -> Progress {
        Progress {
            round: 1,
            worker_calls: 2,
            remaining: Budget::Calls(3),
            tokens: Usage::told(1, 2),
            elapsed: jiff::SignedDuration::from_millis(1234),
        }
    }

    fn permissions() -> PermissionState {
        PermissionState {
            mode: Approval::Ask,
            always: vec!["file_edit".into()],
        }
    }

    fn every() -> Vec<Happening> {
        let speaker = || Speaker::plain("ben", SpeakerKind::Ai);
        let error = || AgentError {
            retry_after: Some(Duration::from_secs(3)),
            ..AgentError::new(FailureKind::RateLimit, "slowly").hint("wait")
        };
        let floor = floor();
        let unresolved = Unresolved {
            names: vec!["x".into()],
            available: vec!["ben".into()],
            what: Missed::All,
        };
        let next = Next::WaitFor {
            human: "you".into(),
            why: Why::Addressed(entry().id),
        };
        let request = ToolRequest {
            call: call(),
            risk: Risk::High,
            preview: "ls".into(),
            key: "shell ls".into(),
        };
        let mut all = vec![
            Happening::Opened {
                floor: Box::new(floor.clone()),
            },
            Happening::NotOpened {
                error: Trouble::new(ErrorKind::Agent, "gone"),
            },
            Happening::Began,
            Happening::Text { text: "a".into() },
            Happening::Thought { text: "b".into() },
            Happening::durable(&entry()),
            Happening::Held {
                message: Box::new(message()),
            },
            Happening::Asked { speaker: speaker() },
            Happening::Failed {
                speaker: speaker(),
                error: error(),
            },
            Happening::Routed {
                output: Output::Unresolved(unresolved),
            },
            Happening::Routed {
                output: Output::Next(next),
            },
            Happening::Notice {
                tone: Tone::Warning,
                text: "n".into(),
            },
            Happening::MayI {
                request: Box::new(request),
            },
            Happening::Settled {
                tool_id: "1".into(),
                verdict: Verdict::Always,
            },
            Happening::Permissions {
                state: permissions(),
            },
            Happening::Over {
                floor: Box::new(floor),
            },
            Happening::Moved { to: id() },
            Happening::Gone {
                farewell: Farewell {
                    unsaved: true,
                    told: vec![Told::note("bye")],
                },
            },
        ];
        all.extend(heard().into_iter().map(|event| Happening::Heard { event }));
        let of_pair = [
            PairEvent::Round(progress()),
            PairEvent::TakenUp,
            PairEvent::WorkerFailed(error()),
        ];
        all.extend(of_pair.map(|event| Happening::Pair { event }));
        all
    }

    #[test]
    fn everything_comes_out_as_it_went_in() {
        for happening in every() {
            let reply = Reply {
                id: Some(Id::Number(7)),
                answer: Answer::Happening {
                    session_id: id().to_string(),
                    n: 9,
                    replayed: false,
                    happening: Box::new(happening),
                },
            };
            let line = serde_json::to_string(&reply).unwrap();
            let read: Reply = serde_json::from_str(&line).unwrap();
            assert_eq!(read, reply, "{line}");
        }
    }

    #[test]
    fn a_durable_entry_is_the_line_of_the_log() {
        assert_eq!(Happening::durable(&entry()).entry(), Some(entry()));
    }
}
