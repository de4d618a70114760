//! Tests of both formats, intact and damaged.

use serde_json::{Value, json};

use super::*;
use tertulia_core::entry::{Entry, Head, NewEntry};
use tertulia_core::id::EntryId;
use tertulia_core::pair::{Next, Pair};

fn state(remaining: Value) -> Value {
    json!({
        "sessionId": "abc", "createdAt": "2025-11-08T15:30:00.000Z", "lastUpdatedAt": "2025-11-08T15:40:00.000Z",
        "version": "1.0.0",
        "config": { "instructorModel": "claude-sonnet-4-5", "workerModel": "claude-haiku-4-5", "maxRounds": null,
            "useThinking": false, "workDir": "/w", "apiKey": "sk-ant-api03-never", "authToken": "never-this" },
        "currentRound": 7, "remainingRounds": remaining,
        "instructor": { "systemPrompt": "You lead.", "conversationHistory": [
            { "role": "user", "content": "build it" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm" },
                { "type": "text", "text": "Tell worker (use opus): step one" }] },
            { "role": "user", "content": "Worker says: did one" },
            { "role": "assistant", "content": [
                { "type": "text", "text": "let me look" },
                { "type": "tool_use", "id": "t1", "name": "read_file", "input": { "path": "a" } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "in a" }] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "t2", "name": "tell_worker", "input": { "message": "step two" } }] },
        ] },
        "worker": { "conversationHistory": [
            { "role": "user", "content": "step zero" }, { "role": "assistant", "content": "did zero" },
            { "role": "user", "content": "step one" }, { "role": "assistant", "content": "did one" },
        ] },
        "lastInstruction": "step two", "lastInstructorResponse": null
    })
}

fn fold(kept: &Kept) -> Pair {
    let talk = kept.talk();
    let said = talk.said.iter().map(|said| talk.saying(said));
    let said = said.map(|new| new.body);
    let mut pair = Pair::default();
    let mut head = Head::START;
    for body in said.chain(talk.closing.iter().cloned()) {
        let new = NewEntry {
            id: EntryId::new(uuid::Uuid::nil()),
            at: kept.created_at,
            body,
            redacted: std::collections::BTreeMap::new(),
            author: None,
        };
        let entry = Entry::chain(&head, vec![new]).unwrap().remove(0);
        head = entry.head();
        pair.apply(&entry);
    }
    pair
}

#[test]
fn a_state_becomes_two_threads_at_its_round() {
    let text = serde_json::to_string_pretty(&state(json!(4))).unwrap();
    assert!(is_one(text.as_bytes()));
    let kept = Kept::read(text.as_bytes()).unwrap();
    assert_eq!(kept.talk().changes, Changes::default());
    let said: Vec<String> = kept
        .talk()
        .said
        .iter()
        .map(|said| {
            let message = &said.message;
            let thread = message.thread.clone().unwrap();
            format!(
                "{thread} {} {}: {}",
                message.speaker.id,
                message.role.name(),
                message.content
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "worker instructor user: step zero",
            "worker worker assistant: did zero",
            "instructor human user: build it",
            "instructor instructor assistant: Tell worker (use opus): step one",
            "worker instructor user: step one",
            "worker worker assistant: did one",
            "instructor worker user: Worker says: did one",
            "instructor instructor assistant: let me look",
            "instructor tool tool: in a",
            "instructor instructor assistant: Tell worker: step two",
        ]
    );
    let pair = fold(&kept);
    assert_eq!(
        (pair.round, pair.remaining, pair.next),
        (7, Budget::Calls(4), Next::Handover)
    );
    assert_eq!(pair.last_instruction, "step two");
    assert_eq!((pair.work_dir.as_str(), pair.thinking), ("/w", false));
    assert_eq!(pair.worker.model.as_deref(), Some("claude-haiku-4-5"));
    // API keys are not imported.
    let all = format!("{:?} {:?}", kept, kept.talk());
    assert!(!all.contains("never"), "{all}");
}

#[test]
fn no_limit_is_no_limit() {
    let remaining = |value: Value| {
        let text = state(value).to_string();
        Kept::read(text.as_bytes()).unwrap().remaining
    };
    assert_eq!(remaining(Value::Null), Budget::Unlimited);
    assert_eq!(remaining(json!(0)), Budget::Calls(0));
    assert_eq!(remaining(json!(-1)), Budget::Calls(0));
}

fn log(remaining: Value) -> Vec<String> {
    let message = |second: u32, role: &str, content: &str| {
        json!({ "type": "instructor-message", "timestamp": format!("2025-11-08T15:30:{second:02}.000Z"),
            "message": { "role": role, "content": content } })
    };
    let metadata = |round: u32| {
        json!({ "type": "session-metadata", "timestamp": "2025-11-08T15:31:00.000Z", "sessionId": "abc",
            "createdAt": "2025-11-08T15:30:00.000Z", "currentRound": round, "remainingRounds": remaining,
            "workDir": "/w", "config": { "apiKey": "sk-ant-api03-never", "instructorModel": "m" } })
    };
    let lines = [
        message(1, "user", "build it"),
        message(2, "assistant", "Tell worker: one"),
        metadata(1),
        json!({ "type": "mood", "timestamp": "2025-11-08T15:31:00.000Z" }),
        message(3, "user", "Worker says: did one"),
        message(4, "assistant", "DONE"),
        metadata(2),
    ];
    lines.iter().map(Value::to_string).collect()
}

#[test]
fn a_log_counts_by_its_last_state_and_may_be_torn() {
    let whole = log(Value::Null).join("\n");
    assert!(is_one(whole.as_bytes()));
    let kept = Kept::read(whole.as_bytes()).unwrap();
    assert_eq!(kept.changes.lost, ["line 4, of the type mood"]);
    let pair = fold(&kept);
    assert_eq!(
        (pair.round, pair.remaining, pair.next),
        (2, Budget::Unlimited, Next::Human)
    );
    assert_eq!(
        kept.talk().said[1].at,
        "2025-11-08T15:30:02Z".parse().unwrap()
    );
    // A log cut within its last line equals the log without that line.
    let torn = &whole[..whole.len() - 30];
    let kept = Kept::read(torn.as_bytes()).unwrap();
    assert_eq!(kept.changes.damaged, [7]);
    assert_eq!((kept.instructor.len(), kept.round), (4, 1));
    assert!(!format!("{kept:?}").contains("never"));
}

#[test]
fn what_is_no_such_file_is_told() {
    for other in [
        "",
        "{}",
        "{\"sessionId\":\"a\",\"teamId\":\"b\"}",
        "[1]",
        "{\"type\":\"message\"}",
    ] {
        assert!(!is_one(other.as_bytes()), "{other}");
        assert!(Kept::read(other.as_bytes()).is_err(), "{other}");
    }
    let messages_only = log(Value::Null)[..2].join("\n");
    let error = Kept::read(messages_only.as_bytes()).unwrap_err();
    assert_eq!(error, ClaudeMasterError::Lacks("state (session-metadata)"));
}

#[test]
fn what_the_state_says_beside_the_messages_is_kept() {
    let text = state(json!(4)).to_string();
    let talk = Kept::read(text.as_bytes()).unwrap().talk();
    assert_eq!(talk.said[3].thought.as_deref(), Some("hm"));
    let saved = "2025-11-08T15:40:00Z".parse().ok();
    let source = &talk.source;
    assert_eq!(
        (source.program.as_str(), source.original.as_str()),
        ("claude-master", "abc")
    );
    assert_eq!((source.saved_at, source.spoken_at), (saved, saved));
    assert_eq!(source.version.as_deref(), Some("1.0.0"));
    assert_eq!(source.cwd.as_deref(), Some("/w"));
    // The thinking of the last reply may be only in the state.
    let mut other = state(json!(4));
    other["config"]["maxRounds"] = json!(20);
    other["lastInstructorResponse"] = json!({ "thinking": "almost" });
    other["instructor"]["conversationHistory"][0]["content"] =
        json!([{ "type": "text", "text": "build it" }, { "type": "image" }]);
    let kept = Kept::read(other.to_string().as_bytes()).unwrap();
    let talk = kept.talk();
    assert_eq!(talk.said[9].thought.as_deref(), Some("almost"));
    assert_eq!(fold(&kept).last_reply.unwrap().thinking, "almost");
    assert_eq!(talk.source.max_rounds, Some(Budget::Calls(20)));
    assert_eq!(
        talk.changes.lost,
        ["a block of the type image in the instructor's history"]
    );
}

#[test]
fn a_version_that_is_too_new_is_refused() {
    for (version, refused) in [
        ("1.0.0", false),
        ("1.9", false),
        ("9.0.0", true),
        ("2", true),
    ] {
        let mut state = state(json!(1));
        state["version"] = json!(version);
        let read = Kept::read(state.to_string().as_bytes());
        let is_refused = matches!(read, Err(ClaudeMasterError::TooNew(_)));
        assert_eq!(is_refused, refused, "{version}");
    }
}
