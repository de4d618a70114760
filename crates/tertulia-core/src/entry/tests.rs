//! Tests of the line format: stable serialisation, round trips, detection of every change.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::pair::Budget;

fn new_entry(body: Body) -> NewEntry {
    NewEntry {
        id: EntryId::new(Uuid::from_u128(7)),
        at: "2026-11-15T20:46:27.5Z".parse().unwrap(),
        body,
        redacted: BTreeMap::new(),
        author: None,
    }
}

fn said(content: &str) -> Body {
    Body::Message(Message {
        speaker: Speaker::plain("you", SpeakerKind::Human),
        role: Role::User,
        content: content.to_owned(),
        reasoning: None,
        thread: None,
        tool_calls: vec![],
        tool_call_id: None,
        usage: None,
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
    })
}

fn chain(body: Body) -> Entry {
    Entry::chain(&Head::START, vec![new_entry(body)])
        .unwrap()
        .remove(0)
}

/// Existing stores depend on this format: the serialised line must never change.
#[test]
fn the_line_is_written_one_way() {
    let entry = chain(said("hello\n\"you\""));
    assert_eq!(
        entry.line(),
        concat!(
            r#"{"v":1,"seq":1,"id":"00000000-0000-0000-0000-000000000007","at":"2026-11-15T20:46:27.5Z","#,
            r#""type":"message","speaker":{"id":"you","name":"you","displayName":"you","type":"human"},"#,
            r#""role":"user","content":"hello\n\"you\"","#,
            r#""hash":"3b5113349710deaadf50cee73c26cf56c429cc80c5711e0e995403e705edf0ce"}"#
        )
    );
    assert_eq!(Entry::decode(entry.line().as_bytes()).unwrap(), entry);
}

#[test]
fn an_append_of_several_says_how_many_follow() {
    let entries = Entry::chain(
        &Head::START,
        vec![new_entry(said("a")), new_entry(said("b"))],
    )
    .unwrap();
    assert_eq!(
        entries.iter().map(|entry| entry.then).collect::<Vec<_>>(),
        [1, 0]
    );
    assert!(entries[0].follows(&Head::START));
    assert!(entries[1].follows(&entries[0].head()));
    assert!(!entries[1].follows(&Head::START));
}

#[test]
fn a_later_version_is_told_from_damage() {
    let of_version = |v: &str| chain(said("x")).line().replacen("\"v\":1", v, 1);
    assert!(matches!(
        Entry::decode(of_version("\"v\":3").as_bytes()),
        Err(EntryError::Newer { found: 3 })
    ));
    // Only key entries have format 2.
    assert!(matches!(
        Entry::decode(of_version("\"v\":2").as_bytes()),
        Err(EntryError::Unreadable { .. })
    ));
    assert!(matches!(
        Entry::decode(b"{\"v\":9,\"everything\":\"else differs\"}"),
        Err(EntryError::Newer { found: 9 })
    ));
    for damaged in ["", "{", "{}", "null", "{\"v\":1}", "[1]"] {
        assert!(
            matches!(
                Entry::decode(damaged.as_bytes()),
                Err(EntryError::Unreadable { .. })
            ),
            "{damaged}"
        );
    }
    assert!(matches!(
        Entry::decode(&[0xff, 0xfe]),
        Err(EntryError::NotUtf8)
    ));
}

#[test]
fn an_unknown_type_and_unknown_fields_survive() {
    let known = chain(said("x"));
    let content = known.line()[..known.line().len() - HASH_TAIL].replacen(
        "\"type\":\"message\"",
        "\"type\":\"gesture\",\"new\":[1]",
        1,
    );
    let hash = Hash::of(&Hash::NONE, content.as_bytes());
    let line = format!("{content}{HASH_FIELD}{hash}\"}}");
    let entry = Entry::decode(line.as_bytes()).unwrap();
    assert_eq!(entry.body, Body::Unknown("gesture".into()));
    assert_eq!(entry.line(), line);
    assert!(entry.follows(&Head::START));
}

fn pair_bodies() -> impl Strategy<Value = Body> {
    let text = "\\PC{0,40}";
    prop_oneof![
        (text, any::<u64>()).prop_map(|(system, calls)| Body::Paired(Paired {
            worker: PairedAgent {
                agent: "w".into(),
                model: (calls > 9).then(|| "m".to_owned()),
            },
            thinking: calls % 2 == 0,
            system,
            round: (calls > 5).then_some(calls),
            ..Paired::default()
        })),
        any::<u64>().prop_map(|calls| Body::Budgeted(Budgeted {
            budget: match calls % 3 {
                0 => Budget::Unlimited,
                _ => Budget::Calls(calls),
            },
        })),
        text.prop_map(|text| Body::Thought(Thought {
            thread: "instructor".into(),
            text,
        })),
    ]
}

/// What is recorded about the agent of a chat.
fn agent_bodies() -> impl Strategy<Value = Body> {
    let text = "\\PC{0,20}";
    prop_oneof![
        (text, any::<bool>()).prop_map(|(model, pinned)| Body::Switched(Switched {
            agent: "a".into(),
            model: Some(model),
            pinned
        })),
        text.prop_map(|git| Body::Environment(Environment {
            date: jiff::civil::date(2026, 3, 1),
            git: Some(git),
            approve: "ask".into(),
            thread: Some("worker".into()),
        })),
        text.prop_map(|native| Body::Linked(Linked {
            agent: "a".into(),
            cwd: Some(native.clone()),
            inherited: Some(Usage::told(1, 2)),
            native
        })),
    ]
}

fn bodies() -> impl Strategy<Value = Body> {
    let operation = EntryId::new(Uuid::from_u128(9));
    let session = crate::id::SessionId::new(Uuid::from_u128(3));
    let text = "\\PC{0,20}|[\\x00-\\x7f]{0,20}|[漢字かな🙂é\\n\\t ]{0,9}";
    prop_oneof![
        (text, any::<bool>(), any::<Option<u64>>()).prop_map(|(content, interrupted, tokens)| {
            Body::Message(Message {
                interrupted,
                usage: tokens.map(|input| Usage::told(input, 1)),
                addressees: vec![Addressee {
                    identifier: content.clone(),
                    member: Some("m".into()),
                    intent: Intent::P1,
                }],
                tool_calls: vec![ToolCall {
                    id: "call".into(),
                    name: content.clone(),
                    arguments: serde_json::json!({ "z": content, "a": [1, null] }),
                }],
                ..match said(&content) {
                    Body::Message(message) => message,
                    _ => unreachable!(),
                }
            })
        }),
        text.prop_map(move |title| Body::Renamed(Renamed { title, operation })),
        text.prop_map(move |tag| Body::Tagged(Tagged {
            add: vec![tag],
            remove: vec![],
            operation
        })),
        any::<Option<u8>>().prop_map(move |title| Body::Created(Created {
            session,
            kind: Kind::Team,
            title: title.map(|n| n.to_string()),
            team: Some("a b".into()),
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        })),
        Just(Body::Trashed(Touched { operation })),
        any::<u64>().prop_map(move |n| Body::Undone(Undone {
            change: Seq(n),
            operation
        })),
        text.prop_map(|task| Body::Tasked(Tasked { task })),
        agent_bodies(),
        (text, any::<Option<u32>>()).prop_map(|(original, second)| Body::Imported(Imported {
            version: second.map(|second| second.to_string()),
            saved_at: second.and_then(|second| Timestamp::from_second(second.into()).ok()),
            max_rounds: second.map(|second| Budget::Calls(second.into())),
            ..Imported::new("claude-master", &original)
        })),
        (text, any::<u64>()).prop_map(|(summary, upto)| Body::Compacted(Compacted {
            upto: Seq(upto),
            summary,
            agent: "a".into(),
            model: None,
            usage: Some(Usage {
                input: upto,
                output: 1,
                estimated: true,
                ..Usage::default()
            }),
            thread: (upto % 2 == 0).then(|| "worker".to_owned()),
        })),
        pair_bodies(),
        text.prop_map(|message| Body::Failed(Failed {
            agent: "a".into(),
            kind: "timeout".into(),
            message,
            retry_at: None,
            withdrawn: false,
        })),
    ]
}

proptest! {
    #[test]
    fn lines_round_trip(body in bodies()) {
        let entry = chain(body);
        prop_assert!(!entry.line().contains('\n'));
        let read = Entry::decode(entry.line().as_bytes()).unwrap();
        prop_assert_eq!(&read, &entry);
        prop_assert!(read.follows(&Head::START));
    }

    #[test]
    fn every_changed_byte_is_found(body in bodies(), at: prop::sample::Index, bit in 0u8..8) {
        let entry = chain(body);
        let mut bytes = entry.line().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        // Within the hash, upper and lower case hexadecimal digits are equal.
        prop_assume!(!bytes.eq_ignore_ascii_case(entry.line().as_bytes()) || at < bytes.len() - HASH_TAIL);
        if let Ok(read) = Entry::decode(&bytes) {
            prop_assert!(!read.follows(&Head::START));
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = Entry::decode(&bytes);
    }
}

#[test]
fn what_came_of_a_tool_call_is_known_also_from_older_logs() {
    let result = |content: &str, interrupted, outcome| {
        let Body::Message(message) = said(content) else {
            panic!("no message");
        };
        Message {
            role: Role::Tool,
            interrupted,
            outcome,
            ..message
        }
    };
    let older = |content: &str| result(content, false, None).tool_outcome();
    for (content, expected) in [
        ("fine", ToolOutcome::Ok),
        ("[exit status 0]", ToolOutcome::Ok),
        ("half\n[exit status 1]", ToolOutcome::Failed),
        ("[ended by signal 9]", ToolOutcome::Failed),
        ("there is no file x.txt", ToolOutcome::Failed),
        ("there is no file x.txt\nsays the book", ToolOutcome::Ok),
        (
            "[not run: the user does not want this]",
            ToolOutcome::Denied,
        ),
    ] {
        assert_eq!(older(content), Some(expected), "{content}");
    }
    // A recorded outcome takes precedence over the text.
    let told = result("[not run: ha]", false, Some(ToolOutcome::Ok));
    assert_eq!(told.tool_outcome(), Some(ToolOutcome::Ok));
    let stopped = result("", true, None);
    assert_eq!(stopped.tool_outcome(), Some(ToolOutcome::Interrupted));
    assert_eq!(ToolOutcome::of("[not run: no]", false), ToolOutcome::Denied);
    // A human message is not a tool result.
    let Body::Message(words) = said("[not run: x]") else {
        panic!("no message");
    };
    assert_eq!(words.tool_outcome(), None);
}

/// Every text of a person or an agent is offered for redaction, names of arguments and removed tags too.
#[test]
fn no_text_escapes_redaction() {
    let mut call = said("SECRET");
    if let Body::Message(message) = &mut call {
        message.tool_calls.push(ToolCall {
            id: "c1".into(),
            name: "shell".into(),
            arguments: serde_json::json!({ "SECRET": [{ "env": { "SECRET": "SECRET" } }] }),
        });
    }
    let tagged = Body::Tagged(Tagged {
        add: vec!["SECRET".into()],
        remove: vec!["SECRET".into()],
        operation: EntryId::new(Uuid::from_u128(8)),
    });
    for mut body in [call, tagged] {
        body.for_each_text(&mut |text| *text = text.replace("SECRET", "gone"));
        let line = chain(body).line().to_owned();
        assert!(line.contains("gone") && !line.contains("SECRET"), "{line}");
    }
}
