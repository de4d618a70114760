//! Parts of sessions: nothing is shown twice, nothing is missing, however a session is cut.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{
    Body, Kind, Message, Role, Speaker, SpeakerKind, Thought, ToolCall, ToolOutcome, human, plain,
};
use tertulia_core::query::Row;
use tertulia_server::transcript::{Part, Wanted, read};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start};

fn sessions() -> Sessions {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let clock = Clock::new(Timestamp::now, uuid::Uuid::now_v7);
    Sessions::new(store, clock, Redaction::On)
}

fn agent() -> Speaker {
    Speaker::plain("demo", SpeakerKind::Ai)
}

fn said(text: &str) -> Body {
    Body::Message(plain(&human(), Role::User, text.to_owned()))
}

fn thought(text: &str) -> Body {
    Body::Thought(Thought {
        text: text.to_owned(),
        thread: "demo".to_owned(),
    })
}

fn calls(id: &str) -> Body {
    Body::Message(Message {
        tool_calls: vec![ToolCall {
            id: id.to_owned(),
            name: "shell".to_owned(),
            arguments: json!({ "command": "ls" }),
        }],
        ..plain(&agent(), Role::Assistant, format!("calling {id}"))
    })
}

fn result(id: &str) -> Body {
    let tool = Speaker::plain("shell", SpeakerKind::Tool);
    Body::Message(Message {
        tool_call_id: Some(id.to_owned()),
        outcome: Some(ToolOutcome::Ok),
        ..plain(&tool, Role::Tool, format!("result {id}"))
    })
}

async fn session(sessions: &Sessions, bodies: Vec<Body>) -> Row {
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    let (meta, _) = sessions.create(&start, bodies).await.unwrap();
    sessions.row(meta.id).await.unwrap()
}

async fn part(sessions: &Sessions, row: &Row, wanted: Wanted, limit: usize) -> Part {
    read(sessions, row, TimeZone::UTC, wanted, limit)
        .await
        .unwrap()
}

fn seqs(part: &Part) -> Vec<u64> {
    part.entries.iter().map(|entry| entry.seq).collect()
}

/// Turns of a prompt, a call, its result, reasoning and an answer, after the first entry.
fn turns(count: usize) -> Vec<Body> {
    let turn = |number: usize| {
        let id = format!("c{number}");
        let answer = plain(&agent(), Role::Assistant, format!("answer {number}"));
        vec![
            said(&format!("prompt {number}")),
            calls(&id),
            result(&id),
            Body::Message(answer),
            thought(&format!("thought {number}")),
        ]
    };
    (0..count).flat_map(turn).collect()
}

#[tokio::test]
async fn parts_make_the_whole_whatever_their_size() {
    let sessions = sessions();
    let row = session(&sessions, turns(60)).await;
    let head = row.meta.head.seq.0;
    assert_eq!(head, 301);
    // Of each turn, the prompt, the call with its result, and the answer with its reasoning.
    let all: Vec<u64> = (0..60)
        .flat_map(|turn| [2, 3, 5].map(|at| at + turn * 5))
        .collect();
    for limit in [1, 2, 7, 60, 500] {
        let mut found = Vec::new();
        let mut before = head + 1;
        while before > 1 {
            let part = part(&sessions, &row, Wanted::Before(before), limit).await;
            assert!(part.first < before, "{limit} {before}");
            let mut earlier = seqs(&part);
            assert!(earlier.len() <= limit, "{limit}: {earlier:?}");
            earlier.append(&mut found);
            found = earlier;
            before = part.first;
        }
        assert_eq!(found, all, "backwards by {limit}");
        let (mut found, mut after) = (Vec::new(), 0);
        while after < head {
            let part = part(&sessions, &row, Wanted::After(after), limit).await;
            assert!(part.last > after, "{limit} {after}");
            found.extend(seqs(&part));
            after = part.last;
        }
        // An entry is repeated if something that it shows came later.
        found.dedup();
        assert_eq!(found, all, "forwards by {limit}");
    }
}

#[tokio::test]
async fn results_stand_with_calls_that_are_in_another_part() {
    let sessions = sessions();
    let row = session(&sessions, turns(3)).await;
    // The call of the second turn is 8, its result 9; the first part ends between them.
    let end = part(&sessions, &row, Wanted::Before(9), 1).await;
    assert_eq!(seqs(&end), [8]);
    assert!(end.entries[0].html.contains("result c1"));
    let rest = part(&sessions, &row, Wanted::Around(10), 1).await;
    assert_eq!(seqs(&rest), [10]);
    assert!(rest.entries[0].html.contains("thought 1"));
    // What came after the call changes it.
    let later = part(&sessions, &row, Wanted::After(8), 2).await;
    assert_eq!(seqs(&later)[..2], [8, 10]);
    let last = part(&sessions, &row, Wanted::End, 2).await;
    assert_eq!(seqs(&last), [13, 15]);
    assert_eq!((last.first, last.last), (13, 16));
    let entry = &last.entries[1];
    assert_eq!(entry.text.as_deref(), Some("answer 2"));
    assert_eq!(
        entry.speaker.as_ref().map(|one| one.kind.as_str()),
        Some("ai")
    );
}

#[tokio::test]
async fn odd_positions_are_no_errors() {
    let sessions = sessions();
    let row = session(&sessions, turns(1)).await;
    for (wanted, expected) in [
        (Wanted::Before(0), &[][..]),
        (Wanted::Before(1), &[]),
        (Wanted::Before(u64::MAX), &[2, 3, 5]),
        (Wanted::After(u64::MAX), &[]),
        (Wanted::After(6), &[]),
        (Wanted::Around(0), &[2]),
        (Wanted::Around(u64::MAX), &[5]),
    ] {
        let limit = if matches!(wanted, Wanted::Around(_)) {
            2
        } else {
            60
        };
        let part = part(&sessions, &row, wanted, limit).await;
        let found = seqs(&part);
        assert!(
            expected.iter().all(|seq| found.contains(seq)),
            "{wanted:?}: {found:?}"
        );
        assert!(
            !expected.is_empty() || found.is_empty(),
            "{wanted:?}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_large_session_is_cut_by_its_size() {
    let sessions = sessions();
    let large = "x ".repeat(400_000);
    let row = session(&sessions, (0..12).map(|_| said(&large)).collect()).await;
    let end = part(&sessions, &row, Wanted::End, 60).await;
    let size: usize = end.entries.iter().map(|entry| entry.html.len()).sum();
    assert!(!end.entries.is_empty() && size < 5_000_000, "{size}");
    assert!(end.first > 2 && end.last == 13);
    let begin = part(&sessions, &row, Wanted::After(0), 60).await;
    assert!(begin.last < 13 && seqs(&begin)[0] == 2);
}
