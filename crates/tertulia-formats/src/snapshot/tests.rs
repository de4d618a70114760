use std::collections::BTreeMap;

use serde_json::json;
use uuid::Uuid;

use super::*;
use tertulia_core::entry::{Body, Created, Head, Kind, NewEntry, Tasked, ToolCall};
use tertulia_core::id::{EntryId, SessionId};

const CODE: &str = "Look:\n\n\tfn main() {\n{ \"a\": 1 }\n  }\n\n\"quoted\" … 日本 😀 ";

fn session() -> SessionId {
    SessionId::new(Uuid::from_u128(1))
}

fn said(name: &str, kind: SpeakerKind, content: &str) -> Body {
    let remembered = Remembered {
        id: String::new(),
        at: Timestamp::UNIX_EPOCH,
        speaker: Speaker::plain(name, kind),
        content: content.to_owned(),
        routing: None,
    };
    Body::Message(remembered.message())
}

fn calling(content: &str) -> Body {
    let mut body = said("ada", SpeakerKind::Ai, content);
    if let Body::Message(message) = &mut body {
        message.tool_calls.push(ToolCall {
            id: "1".into(),
            name: "shell".into(),
            arguments: json!({}),
        });
    }
    body
}

/// The snapshot of a team session with these entries, one per second.
fn snapshot(bodies: Vec<Body>, team_task: Option<&str>) -> Snapshot {
    let tasked = team_task.map(|task| {
        Body::Tasked(Tasked {
            task: task.to_owned(),
        })
    });
    let created = Body::Created(Created {
        session: session(),
        kind: Kind::Team,
        title: None,
        team: Some("review".into()),
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    });
    let new = std::iter::once(created)
        .chain(bodies)
        .chain(tasked)
        .zip(1_i64..)
        .map(|(body, second)| NewEntry {
            id: EntryId::new(Uuid::from_u128(second as u128)),
            at: Timestamp::from_second(second).unwrap(),
            body,
            redacted: BTreeMap::new(),
            author: None,
        })
        .collect();
    let entries = Entry::chain(&Head::START, new).unwrap();
    let summary = SessionMeta::of(session(), &entries);
    let log = Log {
        entries,
        damage: Vec::new(),
    };
    Snapshot::of(&summary, &log)
}

fn talk() -> Snapshot {
    let bodies = vec![
        said("you", SpeakerKind::Human, "Please look at this."),
        calling(""),
        said("shell", SpeakerKind::Tool, "output"),
        calling(CODE),
        said("tertulia", SpeakerKind::System, "ben has left."),
    ];
    snapshot(bodies, Some("ship it"))
}

#[test]
fn what_is_written_is_read_again_word_for_word() {
    let snapshot = talk();
    let text = snapshot.write().unwrap();
    assert_eq!(Snapshot::read(&text, "again").unwrap(), snapshot);
    let contents: Vec<&str> = snapshot
        .messages
        .iter()
        .map(|m| m.content.as_str())
        .collect();
    assert_eq!(contents, ["Please look at this.", CODE, "ben has left."]);
}

#[test]
fn the_document_has_the_fields_of_the_form_and_no_others() {
    let document: Value = serde_json::from_str(&talk().write().unwrap()).unwrap();
    let you = json!({"id": "you", "name": "you", "displayName": "you", "type": "human"});
    let ada = json!({"id": "ada", "name": "ada", "displayName": "ada", "type": "ai"});
    let program = json!({
        "id": "tertulia", "name": "tertulia", "displayName": "tertulia", "type": "system"
    });
    let message = |n: u32, speaker: &Value, content: &str| {
        json!({
            "id": format!("00000000-0000-0000-0000-{n:012x}"),
            "timestamp": format!("1970-01-01T00:00:{n:02}Z"),
            "speaker": speaker,
            "content": content,
        })
    };
    let expected = json!({
        "schemaVersion": "1.0",
        "teamId": "review",
        "sessionId": "00000000-0000-0000-0000-000000000001",
        "createdAt": "1970-01-01T00:00:01Z",
        "updatedAt": "1970-01-01T00:00:06Z",
        "context": {
            "messages": [
                message(2, &you, "Please look at this."),
                message(5, &ada, CODE),
                message(6, &program, "ben has left."),
            ],
            "teamTask": "ship it",
            "timestamp": 6000,
            "version": 1,
        },
        "metadata": {
            "messageCount": 3,
            "lastSpeakerId": "tertulia",
            "summary": "3 messages - \"Please look at this.\"",
        },
    });
    assert_eq!(document, expected);
}

#[test]
fn a_talk_in_which_nothing_was_said_is_a_snapshot_too() {
    let empty = snapshot(Vec::new(), None);
    let text = empty.write().unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        document["metadata"],
        json!({"messageCount": 0, "summary": "Empty conversation"})
    );
    assert_eq!(document["context"]["teamTask"], Value::Null);
    assert_eq!(Snapshot::read(&text, "again").unwrap(), empty);
}

#[test]
fn a_session_without_a_team_is_none() {
    let mut lonely = talk();
    lonely.team.clear();
    assert_eq!(lonely.write().unwrap_err().problems()[0].path, "/teamId");
}

#[test]
fn the_summary_counts_characters_and_not_bytes() {
    let long = snapshot(
        vec![said("you", SpeakerKind::Human, &"日".repeat(60))],
        None,
    );
    assert_eq!(
        long.summary(),
        format!("1 messages - \"{}...\"", "日".repeat(50))
    );
}

fn document(speaker: &Value, addressee: &Value) -> String {
    json!({
        "schemaVersion": "1.0",
        "teamId": "review",
        "sessionId": "session-1700000000000-abc123xyz",
        "createdAt": "2025-11-25T10:00:00.000Z",
        "updatedAt": "2025-11-25T12:05:00.000+01:00",
        "context": {
            "messages": [{
                "id": "msg-1",
                "timestamp": "2025-11-25T10:00:00.000Z",
                "speaker": speaker,
                "content": "Hello",
                "routing": {"rawNextMarkers": ["ben"], "resolvedAddressees": [addressee]},
            }],
            "teamTask": null,
            "timestamp": 1_764_068_700_000.5,
            "version": 1,
        },
        "metadata": {"messageCount": 7},
    })
    .to_string()
}

#[test]
fn older_names_of_speakers_and_addressees_mean_the_same() {
    let newer = document(
        &json!({"type": "ai", "id": "r1", "name": "ada", "displayName": "Ada"}),
        &json!({"identifier": "ben", "memberId": "r2", "memberName": null}),
    );
    let older = document(
        &json!({"type": "ai", "roleId": "r1", "roleName": "ada", "roleTitle": "Ada"}),
        &json!({"identifier": "ben", "roleId": "r2", "roleName": null}),
    );
    let newer = Snapshot::read(&newer, "newer").unwrap();
    assert_eq!(Snapshot::read(&older, "older").unwrap(), newer);
    assert_eq!(newer.updated_at.to_string(), "2025-11-25T11:05:00Z");

    let message = newer.messages[0].message();
    assert_eq!(
        (message.speaker.id.as_str(), message.role),
        ("r1", Role::Assistant)
    );
    assert_eq!(message.speaker.display_name, "Ada");
    let routing = newer.messages[0].routing.as_ref().unwrap();
    assert_eq!(
        routing.resolved_addressees[0].member_id.as_deref(),
        Some("r2")
    );
    assert_eq!(routing.resolved_addressees[0].member_name, None);

    let again = newer.write().unwrap();
    assert_eq!(Snapshot::read(&again, "again").unwrap(), newer);
    assert!(!again.contains("roleId"));
}

#[test]
fn half_an_emoji_in_a_summary_does_not_cost_the_talk() {
    let text = document(
        &json!({"type": "human", "id": "you", "name": "you", "displayName": "You"}),
        &json!({"identifier": "ben", "memberId": "ben", "memberName": "ben"}),
    );
    let text = text.replace(
        "\"messageCount\":7",
        r#""messageCount":1,"summary":"1 messages - \"\ud83d...\"""#,
    );
    assert!(text.contains(r"\ud83d"));
    assert_eq!(Snapshot::read(&text, "cut").unwrap().messages.len(), 1);
}

/// A message to Ada, who has spoken under a name other than her id, to Ben, who has not spoken, and
/// to an unknown name.
fn addressing() -> Body {
    let mut body = said(
        "you",
        SpeakerKind::Human,
        "Who knows? [NEXT: ada, BEN!P1, who]",
    );
    if let Body::Message(message) = &mut body {
        message.addressees = [("ada", Some("a1")), ("BEN", Some("b1")), ("who", None)]
            .map(|(identifier, member)| entry::Addressee {
                identifier: identifier.into(),
                member: member.map(str::to_owned),
                intent: Intent::P2,
            })
            .to_vec();
    }
    body
}

#[test]
fn addressees_are_routing_and_routing_is_addressees() {
    let mut ada = said("a1", SpeakerKind::Ai, "I do.");
    if let Body::Message(message) = &mut ada {
        message.speaker.name = "ada".into();
    }
    let snapshot = snapshot(vec![addressing(), ada], None);
    let document: Value = serde_json::from_str(&snapshot.write().unwrap()).unwrap();
    assert_eq!(
        document["context"]["messages"][0]["routing"],
        json!({
            "rawNextMarkers": ["ada", "BEN", "who"],
            "resolvedAddressees": [
                {"identifier": "ada", "memberId": "a1", "memberName": "ada"},
                {"identifier": "BEN", "memberId": "b1", "memberName": "b1"},
                {"identifier": "who", "memberId": null, "memberName": null},
            ],
        })
    );
    assert!(document["context"]["messages"][1].get("routing").is_none());
    let Body::Message(addressing) = addressing() else {
        unreachable!()
    };
    let again = Snapshot::read(&document.to_string(), "again").unwrap();
    assert_eq!(
        again.messages[0].message().addressees,
        addressing.addressees
    );
}

#[test]
fn markers_that_nobody_resolved_are_addressees_too() {
    let check = |markers: &[&str], expected: &[(&str, Intent)]| {
        let routing = Routing {
            raw_next_markers: markers.iter().map(|marker| (*marker).into()).collect(),
            resolved_addressees: Vec::new(),
        };
        let found = routing.addressees();
        let found: Vec<(&str, Intent)> = found
            .iter()
            .map(|addressee| (addressee.identifier.as_str(), addressee.intent))
            .collect();
        assert_eq!(found, expected);
    };
    check(&[], &[]);
    check(&["ada"], &[("ada", Intent::P2)]);
    check(
        &["[NEXT:ada, ben!P1]"],
        &[("ada", Intent::P2), ("ben", Intent::P1)],
    );
}

#[test]
fn what_failed_does_not_make_a_talk_newer() {
    let failed = Body::Failed(tertulia_core::entry::Failed {
        agent: "ada".into(),
        kind: "failed".into(),
        message: "no".into(),
        retry_at: None,
        withdrawn: false,
    });
    let snapshot = snapshot(vec![said("you", SpeakerKind::Human, "hi"), failed], None);
    assert_eq!(snapshot.updated_at, Timestamp::from_second(2).unwrap());
}

#[test]
fn a_snapshot_is_known_by_its_look_also_when_damaged() {
    let whole = talk().write().unwrap();
    let bytes = whole.as_bytes();
    assert!(Snapshot::is_one(bytes));
    assert!(Snapshot::is_one(&bytes[..bytes.len() / 2]));
    assert!(Snapshot::is_one(format!("\u{feff} {whole}").as_bytes()));
    for other in [
        "",
        "[]",
        "{\"schemaVersion\": \"1.2\", \"team\": {}}",
        "{\"text\": \"\\\"teamId\\\" \\\"sessionId\\\" \\\"context\\\"\"}",
    ] {
        assert!(!Snapshot::is_one(other.as_bytes()), "{other}");
    }
}

#[test]
fn ids_are_kept_where_this_program_made_them_and_derived_where_not() {
    let own = "01936f5e-6c5a-7b3a-9d2f-5f3a9c1e0b7d";
    let named = |team: &str, session: &str| Snapshot {
        team: team.into(),
        session: session.into(),
        ..talk()
    };
    assert_eq!(named("t", own).session_id().to_string(), own);
    let derived = named("t", "session-1").session_id();
    assert_eq!(named("t", "session-1").session_id(), derived);
    for (team, session) in [("u", "session-1"), ("t", "session-2"), ("ts", "ession-1")] {
        assert_ne!(named(team, session).session_id(), derived);
    }
    let mut one = named("t", "session-1");
    one.messages[0].id = own.into();
    one.messages[1].id = own.into();
    one.messages[2].id = "msg-3".into();
    let ids = |snapshot: &Snapshot| -> Vec<EntryId> {
        snapshot.talk().said.iter().map(|said| said.id).collect()
    };
    let first = ids(&one);
    assert_eq!(first, ids(&one));
    assert_eq!(first[0].to_string(), own);
    // A repeated id, or another text at the same position, gives another entry id.
    assert_ne!(first[1], first[0]);
    one.messages[2].content.push('!');
    assert_ne!(ids(&one)[2], first[2]);
}

#[test]
fn what_cannot_be_kept_as_it_is_is_changed_and_told() {
    let long = "é".repeat(tertulia_core::entry::MESSAGE_LIMIT);
    let mut told = talk();
    told.messages[0].content = "a\0b".into();
    told.messages[1].content = long;
    let said = told.talk().said;
    assert_eq!(said[0].message.content, "a\u{fffd}b");
    let cut = &said[1].message.content;
    assert!(cut.len() <= tertulia_core::entry::MESSAGE_LIMIT);
    assert!(cut.ends_with("more bytes]"), "{}", &cut[cut.len() - 40..]);
    assert_eq!(said[2].message.content, told.messages[2].content);
}
