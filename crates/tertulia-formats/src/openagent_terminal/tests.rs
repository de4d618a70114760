//! Tests of the documented file, its index, and irregular content.

use serde_json::{Value, json};

use super::*;

/// The session file of the program's documentation, with corrected counts.
fn document() -> Value {
    json!({
        "metadata": {
            "session_id": "2025-10-04_114203", "created_at": "2025-10-04T11:42:03Z",
            "updated_at": "2025-10-04T12:15:30Z", "message_count": 2, "total_tokens": 168,
            "title": "Debug authentication issue", "tags": ["bug", "auth"]
        },
        "messages": [
            { "role": "user", "content": "Help me debug this", "timestamp": "2025-10-04T11:42:03Z",
              "token_count": 12, "metadata": {} },
            { "role": "assistant", "content": "Let me check the logs", "timestamp": "2025-10-04T11:42:05Z",
              "token_count": 156, "tool_calls": [{ "tool": "read_file", "args": { "path": "/var/log/auth.log" } }],
              "metadata": {} }
        ]
    })
}

fn talk(document: &Value) -> Foreign {
    let text = document.to_string();
    assert!(is_one(text.as_bytes()));
    SessionFile::read(text.as_bytes()).unwrap().talk().unwrap()
}

#[test]
fn a_session_file_is_kept_whole() {
    let talk = talk(&document());
    assert_eq!(talk.changes, Changes::default());
    assert_eq!(talk.title.as_deref(), Some("Debug authentication issue"));
    assert_eq!(talk.source.original, "2025-10-04_114203");
    assert_eq!(talk.source.tags, ["bug", "auth"]);
    assert_eq!(talk.source.saved_at, "2025-10-04T12:15:30Z".parse().ok());
    let [asked, answered] = talk.said.as_slice() else {
        panic!("{:?}", talk.said);
    };
    assert_eq!(asked.message.role, Role::User);
    assert_eq!(asked.at, "2025-10-04T11:42:03Z".parse().unwrap());
    assert_eq!(answered.message.usage.unwrap().output, 156);
    let call = &answered.message.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), call.name.as_str()),
        ("call-2-1", "read_file")
    );
    assert_eq!(call.arguments, json!({ "path": "/var/log/auth.log" }));
}

#[test]
fn what_is_odd_is_named() {
    let mut document = document();
    document["metadata"]["message_count"] = json!(12);
    document["messages"][0]["timestamp"] = json!("2025-10-04T11:42:03.123456");
    document["messages"][0]["metadata"] = json!({ "query_id": 7 });
    let more = [
        json!({ "role": "tool", "content": "a line", "timestamp": "2025-10-04T11:42:06Z" }),
        json!({ "role": "narrator", "content": "x" }),
        json!(5),
        json!({ "role": "user", "content": "cut\u{0}off", "timestamp": "yesterday" }),
    ];
    document["messages"].as_array_mut().unwrap().extend(more);
    let talk = talk(&document);
    assert_eq!(
        talk.said[2].message.tool_call_id.as_deref(),
        Some("call-2-1")
    );
    assert_eq!(
        talk.said[0].at,
        "2025-10-04T11:42:03.123456Z".parse().unwrap()
    );
    assert_eq!(talk.said[3].at, talk.said[2].at);
    let kept = |place: usize| talk.said[place].message.metadata.clone();
    assert_eq!((kept(0), kept(1)), (Some(json!({ "query_id": 7 })), None));
    assert_eq!(
        talk.changes.changed(),
        [
            "times without an offset read as UTC (1)",
            "NUL characters replaced in 1 message"
        ]
    );
    assert_eq!(
        talk.changes.lost(),
        [
            "messages that cannot be read: 4, 5 (2)",
            "message_count, which says 12 where the file has 6",
            "times that cannot be read (1)",
        ]
    );
}

#[test]
fn an_index_lists_its_sessions() {
    let index = json!({ "version": "1.0", "sessions": [
        { "session_id": "2025-10-04_160312", "title": "a" }, { "session_id": "2025-10-04_153045" }] });
    let marked = format!("\u{feff}{index}");
    assert!(
        listed(marked.as_bytes()).is_some(),
        "with a byte order mark"
    );
    let ids = listed(index.to_string().as_bytes()).unwrap();
    assert_eq!(ids, ["2025-10-04_160312", "2025-10-04_153045"]);
    assert!(!is_one(index.to_string().as_bytes()));
    let empty = json!({ "sessions": [], "version": "1.0" }).to_string();
    assert_eq!(listed(empty.as_bytes()), Some(Vec::new()));
    for other in ["", "{}", "[]", "{\"sessions\":1,\"version\":2}"] {
        assert_eq!(listed(other.as_bytes()), None, "{other}");
        assert!(!is_one(other.as_bytes()), "{other}");
    }
}

#[test]
fn what_is_no_session_is_told() {
    for other in ["", "[]", "{\"metadata\":{},\"messages\":[]}"] {
        assert!(SessionFile::read(other.as_bytes()).is_err(), "{other}");
    }
    let timeless = json!({ "metadata": { "session_id": "a" }, "messages": [] }).to_string();
    let file = SessionFile::read(timeless.as_bytes()).unwrap();
    assert_eq!(file.talk().unwrap_err(), SessionFileError::Timeless);
}
