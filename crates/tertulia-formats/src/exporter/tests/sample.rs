//! Sessions for the tests of exporters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_core::entry::{
    Addressee, Body, Created, Entry, Failed, Head, Intent, Kind, Message, NewEntry, Renamed, Role,
    Speaker, SpeakerKind, Thought, ToolCall, ToolOutcome, Usage, human, plain,
};
use tertulia_core::id::{EntryId, SessionId};
use tertulia_core::session::{Log, SessionMeta};
use uuid::Uuid;

/// A session with its metadata.
pub(crate) struct Sample {
    pub(crate) meta: SessionMeta,
    pub(crate) log: Log,
}

/// Creates a session with these entries, 90 seconds apart.
pub(crate) fn session(kind: Kind, bodies: Vec<Body>) -> Sample {
    let id = SessionId::new(Uuid::from_u128(0x01a1_e094_40d4_7d20_9178_5d1c_7711_d944));
    let created = Body::Created(Created {
        session: id,
        kind,
        title: None,
        team: (kind == Kind::Team).then(|| "review".to_owned()),
        project: Some("dir:/home/ana/parser".into()),
        project_ids: Vec::new(),
        cwd: Some("/home/ana/parser".into()),
        terms: None,
        seal: None,
    });
    let begun: Timestamp = "2026-11-15T18:53:29.724123Z".parse().unwrap();
    let new = std::iter::once(created).chain(bodies).enumerate();
    let new = new.map(|(place, body)| NewEntry {
        id: EntryId::new(Uuid::from_u128(
            0x01a1_0000_0000_7000_8000_0000_0000_0000 + place as u128,
        )),
        at: begun + jiff::SignedDuration::from_secs(90 * place as i64),
        body,
        redacted: BTreeMap::new(),
        author: None,
    });
    // One append each, as a running session writes them.
    let mut head = Head::START;
    let mut entries = Vec::new();
    for new_entry in new {
        let entry = Entry::chain(&head, vec![new_entry]).unwrap().remove(0);
        head = entry.head();
        entries.push(entry);
    }
    Sample {
        meta: SessionMeta::of(id, &entries),
        log: Log {
            entries,
            damage: Vec::new(),
        },
    }
}

pub(crate) fn user(text: &str) -> Message {
    plain(&human(), Role::User, text.to_owned())
}

pub(crate) fn agent(name: &str, text: &str) -> Message {
    plain(
        &Speaker::plain(name, SpeakerKind::Ai),
        Role::Assistant,
        text.to_owned(),
    )
}

pub(crate) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

pub(crate) fn result(name: &str, call: &str, text: &str, outcome: ToolOutcome) -> Message {
    Message {
        tool_call_id: Some(call.to_owned()),
        outcome: Some(outcome),
        ..plain(
            &Speaker::plain(name, SpeakerKind::Tool),
            Role::Tool,
            text.to_owned(),
        )
    }
}

pub(crate) fn thought(text: &str) -> Body {
    Body::Thought(Thought {
        thread: String::new(),
        text: text.to_owned(),
    })
}

pub(crate) fn failed(withdrawn: bool) -> Body {
    Body::Failed(Failed {
        agent: "claude".into(),
        kind: if withdrawn { "cancelled" } else { "failed" }.into(),
        message: "the server is gone".into(),
        retry_at: None,
        withdrawn,
    })
}

/// A chat with everything that a chat can have.
pub(crate) fn chat() -> Sample {
    let usage = Usage {
        input: 20_144,
        output: 121,
        cache_read: 15_300,
        cache_written: 120,
        estimated: false,
    };
    let asking = Message {
        tool_calls: vec![
            call("call_1", "file_read", json!({ "path": "src/parse.rs" })),
            call(
                "call_2",
                "file_write",
                json!({ "path": "notes.txt", "overwrite": true }),
            ),
            call("call_3", "glob", json!({ "pattern": "*.rs" })),
        ],
        usage: Some(usage),
        model: Some("claude-opus-5-5".into()),
        ..agent("claude", "I look at the parser.")
    };
    let cut = Message {
        interrupted: true,
        usage: Some(Usage {
            estimated: true,
            ..Usage::told(10, 2)
        }),
        ..agent("claude", "It is the")
    };
    let renamed = Body::Renamed(Renamed {
        title: "Parser <hangs> & more".into(),
        operation: EntryId::new(Uuid::from_u128(9)),
    });
    session(
        Kind::Chat,
        vec![
            Body::Message(user("Why does it hang?\nIt is <script>alert(1)</script>.")),
            Body::Message(asking),
            thought("A loop that does not **advance**?"),
            Body::Message(result(
                "file_read",
                "call_1",
                "fn main() {\n}\n",
                ToolOutcome::Ok,
            )),
            Body::Message(result(
                "file_write",
                "call_2",
                "[not run: denied]",
                ToolOutcome::Denied,
            )),
            Body::Message(cut),
            failed(false),
            renamed,
            Body::Message(user("never mind")),
            failed(true),
            Body::Message(user("Go on.")),
            Body::Message(agent("claude", "## Cause\n\nLine 6 does *not* advance.")),
        ],
    )
}

/// A team of two agents and two people.
pub(crate) fn team() -> Sample {
    let asked = Message {
        addressees: vec![Addressee {
            identifier: "Ada".into(),
            member: Some("ada".into()),
            intent: Intent::P2,
        }],
        ..user("Who is right? [NEXT: Ada]")
    };
    let ana = Message {
        speaker: Speaker::plain("ana", SpeakerKind::Human),
        ..user("I am.")
    };
    let ben = Message {
        tool_calls: vec![call("b1", "directory_list", json!({ "path": "src" }))],
        ..agent("ben", "Ada is right. [NEXT: Ada]")
    };
    session(
        Kind::Team,
        vec![
            Body::Message(asked),
            Body::Message(agent("ada", "Ben is. [NEXT: ben]")),
            Body::Message(ben),
            Body::Message(result("directory_list", "b1", "a.txt", ToolOutcome::Ok)),
            Body::Message(ana),
            Body::Message(agent("ada", "So be it.")),
        ],
    )
}

/// A pair: the instructor's thread and the worker's.
pub(crate) fn pair() -> Sample {
    let on = |thread: &str, message: Message| {
        Body::Message(Message {
            thread: Some(thread.to_owned()),
            ..message
        })
    };
    let instruction = Message {
        role: Role::User,
        ..agent("instructor", "Write hello.txt")
    };
    session(
        Kind::Pair,
        vec![
            on("instructor", user("Make a file.")),
            on(
                "instructor",
                agent("instructor", "Tell worker: Write hello.txt"),
            ),
            on("worker", instruction),
            on("worker", agent("worker", "Done.")),
        ],
    )
}
