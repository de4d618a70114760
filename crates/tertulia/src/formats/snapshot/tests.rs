use std::collections::BTreeMap;

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::entry::{Body, Created, Head, Kind, Tasked, ToolCall, Unsealed};
use crate::id::{EntryId, SessionId};

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

/// A team's session in which these things happened, one per second.
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
        cwd: None,
    });
    let new = std::iter::once(created)
        .chain(bodies)
        .chain(tasked)
        .zip(1_i64..)
        .map(|(body, second)| Unsealed {
            id: EntryId::new(Uuid::from_u128(second as u128)),
            at: Timestamp::from_second(second).unwrap(),
            body,
            redacted: BTreeMap::new(),
        })
        .collect();
    let entries = Entry::seal(&Head::START, new).unwrap();
    let summary = Summary::of(session(), &entries);
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
            "summary": "3 messages - \"Please look at this.…\"",
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
        format!("1 messages - \"{}…\"", "日".repeat(50))
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
