use std::time::Duration;

use serde_json::json;
use tertulia_agents::approval::{Approval, Risk};
use tertulia_agents::{FailureKind, Retry, Todo, TodoState};
use tertulia_core::entry::{Body, Head, NewEntry, Role, SpeakerKind, ToolCall, Usage};
use tertulia_engine::pair::{Budget, Progress};
use tertulia_engine::team::events::{Missed, Next, Unresolved, Why};

use tertulia_agents::approval::{PermissionState, ToolRequest, Verdict};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Entry, Intent, Message, Speaker};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_engine::error::{ErrorBody, ErrorKind};
use tertulia_engine::event::{
    QueuedMember, SessionEnd, SessionEvent, SessionState, Tone, UserMessage,
};
use tertulia_engine::pair::PairEvent;
use tertulia_engine::team::events::Output;

use super::*;

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
        reasoning: None,
        thread: None,
        tool_calls: vec![call()],
        tool_call_id: None,
        usage: Some(Usage::told(1, 2)),
        usage_id: None,
        requests: Vec::new(),
        model: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    }
}

fn entry() -> Entry {
    let new = NewEntry {
        id: "01890000-0000-7000-8000-000000000002".parse().unwrap(),
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        body: Body::Message(message()),
        redacted: Default::default(),
        author: None,
    };
    Entry::chain(&Head::START, vec![new]).unwrap().remove(0)
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

fn floor() -> SessionState {
    let mut floor = SessionState::blank(id());
    floor.meta = Some(SessionMeta::of(id(), &[entry()]));
    floor.waiting.push(QueuedMember {
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

fn request() -> ToolRequest {
    ToolRequest {
        call: call(),
        risk: Risk::High,
        preview: "ls".into(),
        folder: "/work".into(),
        key: "shell ls".into(),
        is_edit: false,
    }
}

fn every() -> Vec<SessionEvent> {
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
    let mut all = vec![
        SessionEvent::Opened {
            floor: Box::new(floor.clone()),
        },
        SessionEvent::NotOpened {
            error: ErrorBody::new(ErrorKind::Agent, "gone"),
        },
        SessionEvent::Began,
        SessionEvent::Text { text: "a".into() },
        SessionEvent::Thought { text: "b".into() },
        SessionEvent::durable(&entry()),
        SessionEvent::Held {
            message: Box::new(message()),
        },
        SessionEvent::Asked { speaker: speaker() },
        SessionEvent::Failed {
            speaker: speaker(),
            error: error(),
        },
        SessionEvent::Routed {
            output: Output::Unresolved(unresolved),
        },
        SessionEvent::Routed {
            output: Output::Next(next),
        },
        SessionEvent::Notice {
            tone: Tone::Warning,
            text: "n".into(),
            error: Some(ErrorBody::new(ErrorKind::Invalid, "too long")),
        },
        SessionEvent::MayI {
            request: Box::new(request()),
        },
        SessionEvent::Settled {
            tool_id: "1".into(),
            verdict: Verdict::Always,
        },
        SessionEvent::Permissions {
            state: permissions(),
        },
        SessionEvent::Over {
            floor: Box::new(floor),
        },
        SessionEvent::Gone {
            farewell: SessionEnd {
                unsaved: true,
                locked_out: true,
                content: None,
                told: vec![UserMessage::note("bye")],
            },
        },
    ];
    all.extend(
        heard()
            .into_iter()
            .map(|event| SessionEvent::Heard { event }),
    );
    all.push(SessionEvent::Moved { to: id() });
    let of_pair = [
        PairEvent::Round(progress()),
        PairEvent::TakenUp,
        PairEvent::WorkerFailed(error()),
    ];
    all.extend(of_pair.map(|event| SessionEvent::Pair { event }));
    all
}

#[test]
fn everything_comes_out_as_it_went_in() {
    for event in every() {
        let reply = Reply {
            id: Some(Id::Number(7)),
            answer: Answer::Event {
                session_id: id().to_string(),
                n: 9,
                replayed: false,
                event: Box::new(event),
            },
        };
        let line = serde_json::to_string(&reply).unwrap();
        let read: Reply = serde_json::from_str(&line).unwrap();
        assert_eq!(read, reply, "{line}");
    }
}

#[test]
fn a_durable_entry_is_the_line_of_the_log() {
    assert_eq!(SessionEvent::durable(&entry()).entry(), Some(entry()));
}
