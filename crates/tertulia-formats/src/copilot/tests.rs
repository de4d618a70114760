//! Tests with an event log and its files, a document of the first versions, and damage.

use serde_json::json;
use tertulia_core::entry::{Role, Usage};

use super::*;

const LOG: &str = include_str!(
    "../../fixtures/copilot/session-state/3f0c2a52-0000-4000-8000-000000000001/events.jsonl"
);
const DOCUMENT: &str =
    include_str!("../../fixtures/copilot/history-session-state/session_5b1e_1759957816398.json");
const SESSION: &str = "3f0c2a52-0000-4000-8000-000000000001";

fn read(path: &Path, content: Option<&[u8]>) -> Vec<Foreign> {
    let mut sessions = Vec::new();
    let take = &mut |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    };
    Copilot.read(&Input { path, content }, take).unwrap();
    sessions
}

fn of_log(content: &str) -> Vec<Foreign> {
    read(Path::new("-"), Some(content.as_bytes()))
}

/// Returns the path of a recorded file.
fn recorded(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/copilot");
    fixtures.join(name)
}

fn texts(session: &Foreign) -> Vec<(Role, &str)> {
    let said = session.said.iter();
    said.map(|said| (said.message.role, said.message.content.as_str()))
        .collect()
}

fn ids(session: &Foreign) -> Vec<String> {
    let said = session.said.iter();
    said.map(|said| said.id.to_string()).collect()
}

#[test]
fn a_log_has_tools_thinking_models_and_place() {
    let path = recorded(&format!("session-state/{SESSION}/events.jsonl"));
    assert!(Copilot.recognises(&path, LOG.as_bytes()));
    let sessions = read(&path, None);
    let session = &sessions[0];
    assert_eq!(
        texts(session),
        [
            (
                Role::User,
                "Which tests fail?\n[file: /home/user/app/app.py]"
            ),
            (Role::Assistant, ""),
            (Role::Tool, "1 failed"),
            (Role::Tool, "tests/app.rs"),
            (Role::Assistant, "One test fails."),
            (Role::User, "Delete target"),
            (Role::Assistant, ""),
            (Role::Tool, "The user rejected this tool call."),
            (Role::System, "Rate limited"),
            (Role::System, "[aborted: user_initiated]"),
            (Role::System, "One test fails; target is kept."),
            (Role::Assistant, ""),
            (Role::Tool, "app.py"),
        ]
    );
    let said = &session.said;
    assert_eq!(
        said[1].thought.as_deref(),
        Some("Run them, and let another agent look.")
    );
    assert_eq!(said[6].thought.as_deref(), Some("It asks for rm."));
    assert_eq!(said[1].message.tool_calls.len(), 2);
    assert_eq!(said[3].message.speaker.name, "task");
    let outcomes: Vec<_> = said
        .iter()
        .filter_map(|said| said.message.outcome.map(|outcome| outcome.name()))
        .collect();
    assert_eq!(outcomes, ["failed", "ok", "denied", "ok"]);
    let models: Vec<_> = said
        .iter()
        .filter_map(|said| said.message.model.as_deref())
        .collect();
    assert_eq!(models, ["claude-sonnet-4.5", "gpt-5.2", "gpt-5.2"]);
    assert_eq!(said[1].message.usage, Some(Usage::told(0, 57)));
    assert_eq!(session.source.original, SESSION);
    assert_eq!(session.title.as_deref(), Some("Failing tests"));
    assert_eq!(session.source.cwd.as_deref(), Some("/home/user/app"));
    assert_eq!(session.source.branch.as_deref(), Some("main"));
    assert_eq!(session.source.version.as_deref(), Some("1.0.41"));
    let lost = session.changes.lost().join("; ");
    for words in [
        "system.message (1)",
        "session.shutdown (1)",
        "encrypted thinking (1)",
    ] {
        assert!(lost.contains(words), "{lost}");
    }
    let subagent = &sessions[1];
    assert_eq!(
        texts(subagent),
        [
            (Role::User, "Find the tests"),
            (Role::Assistant, "tests/app.rs")
        ]
    );
    assert_eq!(subagent.title.as_deref(), Some("Explore Agent"));
    let parent = subagent.source.parent.as_ref().unwrap();
    assert_eq!(
        (parent.original.as_str(), parent.relation),
        (SESSION, ImportedRelation::Subagent)
    );
}

#[test]
fn a_log_without_its_start_is_named_by_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let line = json!({ "type": "user.message", "data": { "content": "hi" } }).to_string();
    for (name, session) in [("abc/events.jsonl", "abc"), ("def.jsonl", "def")] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &line).unwrap();
        assert_eq!(read(&path, None)[0].source.original, session);
    }
}

#[test]
fn the_first_versions_wrote_documents() {
    let path = recorded("history-session-state/session_5b1e_1759957816398.json");
    assert!(Copilot.recognises(&path, DOCUMENT.as_bytes()));
    let session = read(&path, None).remove(0);
    assert_eq!(
        texts(&session),
        [
            (Role::User, "Show app.py"),
            (Role::Assistant, ""),
            (Role::Tool, "print(1)"),
            (Role::Assistant, "It prints 1."),
            (Role::User, "Thanks"),
        ]
    );
    assert_eq!(session.said[2].message.speaker.name, "str_replace_editor");
    assert_eq!(session.source.original, "5b1e");
    assert_eq!(
        session.created_at,
        "2025-10-08T21:10:16.398Z".parse().unwrap()
    );
    let input = Input {
        path: &path,
        content: Some(&DOCUMENT.as_bytes()[..300]),
    };
    let error = Copilot.read(&input, &mut |_| ControlFlow::Continue(()));
    assert!(error.unwrap_err().to_string().contains("not JSON"));
}

#[test]
fn a_log_that_grew_keeps_earlier_ids() {
    let whole: Vec<_> = of_log(LOG).iter().map(ids).collect();
    for cut in (0..LOG.len()).step_by(7) {
        let cut = LOG.floor_char_boundary(cut);
        for (earlier, whole) in of_log(&LOG[..cut]).iter().map(ids).zip(&whole) {
            assert!(whole.starts_with(&earlier), "{cut}");
        }
    }
}

#[test]
fn wrong_types_and_repeated_messages_are_counted() {
    let lines = [
        json!({ "type": "session.start", "data": { "sessionId": "s", "context": 7 } }),
        json!({ "type": "user.message", "data": { "content": "one", "attachments": [7] } }),
        json!({ "type": "assistant.message", "id": 7, "data": { "messageId": "m",
            "content": "two", "toolRequests": [7, { "name": [] }], "outputTokens": "x" } }),
        json!({ "type": "assistant.message", "data": { "messageId": "m", "content": "two" } }),
        json!({ "type": "tool.execution_complete", "data": { "result": "plain" } }),
        json!({ "type": "tool.execution_complete", "data": null }),
        json!({ "type": "assistant.message" }),
        json!({ "type": 7 }),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let content = format!("{}\n{{\"type\":\n[1]\n", lines.join("\n"));
    let session = of_log(&content).remove(0);
    assert_eq!(
        texts(&session),
        [
            (Role::User, "one\n[attachment: unnamed]"),
            (Role::Assistant, "two"),
            (Role::Tool, "plain"),
            (Role::Tool, ""),
        ]
    );
    assert_eq!(session.changes.damaged, [9, 10]);
    let changed = session.changes.changed().join("; ");
    assert!(changed.contains("kept once (1)"), "{changed}");
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("lines without a type (1)"), "{lost}");
}

#[cfg(feature = "sqlite")]
mod usage_in_the_store {
    use std::fs;

    use rusqlite::Connection;

    use super::*;
    use crate::importer::damage::{flipped, is_read_in_time};

    /// Returns a folder like that of the program, and the log in it.
    fn home(rows: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join(format!("session-state/{SESSION}/events.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, LOG).unwrap();
        let store = Connection::open(folder.path().join("session-store.db")).unwrap();
        let tables = "CREATE TABLE assistant_usage_events (
                id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
                turn_index INTEGER, model TEXT, input_tokens INTEGER, output_tokens INTEGER,
                cache_read_tokens INTEGER, cache_write_tokens INTEGER, reasoning_tokens INTEGER,
                agent_id TEXT, parent_tool_call_id TEXT, created_at TEXT)";
        store.execute_batch(tables).unwrap();
        let rows = format!(
            "INSERT INTO assistant_usage_events (session_id, turn_index, input_tokens,
                 output_tokens, cache_read_tokens, cache_write_tokens, agent_id) VALUES {rows}"
        );
        store.execute_batch(&rows.replace('$', SESSION)).unwrap();
        (folder, path)
    }

    fn figures(session: &Foreign) -> Vec<(u64, u64, u64, u64)> {
        let usage = session.said.iter().filter_map(|said| said.message.usage);
        usage
            .map(|usage| {
                (
                    usage.input,
                    usage.output,
                    usage.cache_read,
                    usage.cache_written,
                )
            })
            .collect()
    }

    #[test]
    fn each_answer_has_its_request() {
        let (_folder, path) = home(
            "('$', 0, 900, 57, 700, 100, NULL), ('other', 0, 1, 1, 1, 1, NULL),
             ('$', 0, 300, 8, 0, 0, 'a1'), ('$', 0, 950, 12, 900, 0, NULL),
             ('$', 1, 990, 9, NULL, NULL, NULL), ('$', 1, 5, 5, 5, 5, 'a9')",
        );
        let sessions = read(&path, None);
        assert_eq!(
            figures(&sessions[0]),
            [(900, 57, 700, 100), (950, 12, 900, 0), (990, 9, 0, 0)]
        );
        assert_eq!(figures(&sessions[1]), [(300, 8, 0, 0)]);
        let lost = sessions[0].changes.lost().join("; ");
        assert!(lost.contains("unknown agents (1)"), "{lost}");
    }

    #[test]
    fn turns_tell_which_request_is_missing() {
        let (_folder, path) = home(
            "('$', 0, 900, 57, 700, 100, NULL), ('$', 1, 990, 9, 0, 0, NULL),
             ('$', 1, 1, 1, 1, 1, NULL), ('$', 7, 1, 1, 1, 1, NULL)",
        );
        let session = read(&path, None).remove(0);
        assert_eq!(figures(&session), [(900, 57, 700, 100), (990, 9, 0, 0)]);
        let lost = session.changes.lost().join("; ");
        assert!(lost.contains("requests without an answer (2)"), "{lost}");
    }

    #[test]
    fn a_damaged_store_is_named_and_the_log_read() {
        let (folder, path) = home("('$', 0, 900, 57, 700, 100, NULL)");
        let store = folder.path().join("session-store.db");
        let whole = fs::read(&store).unwrap();
        let mut failed = 0;
        for seed in 0..300 {
            fs::write(&store, flipped(&whole, seed)).unwrap();
            let session = is_read_in_time(|| read(&path, None)).remove(0);
            assert_eq!(session.said.len(), 13);
            let lost = session.changes.lost().join("; ");
            failed += usize::from(lost.contains("usage of requests: the database"));
        }
        assert!((5..300).contains(&failed), "{failed}");
    }
}

#[test]
fn usage_records_belong_to_the_answers_of_their_requests() {
    let log = include_str!(
        "../../fixtures/copilot/session-state/bd7a021c-194d-4060-80f9-dd2bf42442b7/events.jsonl"
    );
    let sessions = of_log(log);
    let [session] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    let used = session.said.iter().filter_map(|said| said.message.usage);
    let used: Vec<(u64, u64)> = used.map(|usage| (usage.input, usage.output)).collect();
    assert_eq!(used, [(5398, 15), (5409, 10)]);
    let lost = session.changes.lost().join(";");
    assert!(!lost.contains("usage"), "{lost}");
}
