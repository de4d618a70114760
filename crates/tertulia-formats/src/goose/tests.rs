//! Tests with a session file, with databases of several versions, and of damage.

use std::ops::ControlFlow;

use serde_json::json;
use tertulia_core::entry::Role;

use super::*;

const FILE: &str = include_str!("../../fixtures/goose/20250301_090000.jsonl");

fn read(path: &Path, content: Option<&[u8]>) -> Result<Vec<Foreign>, ReadError> {
    let mut sessions = Vec::new();
    let take = &mut |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    };
    Goose
        .read(&Input { path, content }, take)
        .map(|()| sessions)
}

fn of_file(content: &str) -> Vec<Foreign> {
    read(Path::new("-"), Some(content.as_bytes())).unwrap()
}

fn texts(session: &Foreign) -> Vec<(Role, &str)> {
    let said = session.said.iter();
    said.map(|said| (said.message.role, said.message.content.as_str()))
        .collect()
}

fn ids(session: &Foreign) -> Vec<String> {
    session
        .said
        .iter()
        .map(|said| said.id.to_string())
        .collect()
}

#[test]
fn a_session_file_keeps_tools_place_and_the_last_usage() {
    assert!(Goose.recognises(Path::new("a.jsonl"), FILE.as_bytes()));
    let session = of_file(FILE).remove(0);
    assert_eq!(
        texts(&session),
        [
            (Role::User, "How many files are here?"),
            (Role::Assistant, "I'll look."),
            (Role::Tool, "12\n"),
            (Role::Assistant, "There are 12 files."),
        ]
    );
    assert_eq!(session.title.as_deref(), Some("Count the files"));
    assert_eq!(session.source.cwd.as_deref(), Some("/home/user/app"));
    let call = &session.said[1].message.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), &call.arguments["command"]),
        ("call_1", &json!("ls | wc -l"))
    );
    assert_eq!(session.said[2].message.speaker.name, "developer__shell");
    assert_eq!(session.said[3].message.usage, Some(Usage::told(1_500, 30)));
    assert!(
        session
            .changes
            .lost()
            .join(";")
            .contains("all answers but the last")
    );
    let time = "2025-03-01T09:00:00Z".parse().unwrap();
    assert_eq!((session.created_at, session.said[0].at), (time, time));
}

#[test]
fn a_file_that_grew_keeps_earlier_ids() {
    let whole = ids(&of_file(FILE)[0]);
    for cut in 0..FILE.len() {
        if let Some(session) = of_file(&FILE[..cut]).first() {
            assert!(whole.starts_with(&ids(session)), "{cut}");
        }
    }
}

#[test]
fn wrong_types_and_damaged_lines_are_counted() {
    let lines = [
        json!({ "working_dir": 7, "description": [], "input_tokens": "x" }).to_string(),
        json!({ "role": "user", "created": "x", "content": [{ "type": "text", "text": "one" }] })
            .to_string(),
        json!({ "role": "assistant", "created": -1, "content": "text" }).to_string(),
        json!({ "role": "assistant", "created": 1, "content": [7, null, { "type": "toolRequest" },
            { "type": "toolResponse" }, { "type": 3 }] })
        .to_string(),
        json!({ "role": "user", "content": [{ "type": "toolResponse", "toolResult": 7 }] })
            .to_string(),
        json!({ "role": 7 }).to_string(),
        "{\"role\":".to_owned(),
    ];
    let session = of_file(&lines.join("\n")).remove(0);
    assert_eq!(texts(&session)[0], (Role::User, "one"));
    assert_eq!(session.changes.damaged, [7]);
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("messages without a role (1)"), "{lost}");
    assert!(of_file("{\"working_dir\":\"/w\"}").is_empty());
}

#[cfg(feature = "sqlite")]
mod in_a_database {
    use std::fs;

    use rusqlite::Connection;

    use super::*;
    use crate::importer::damage::{flipped, is_read_in_time};
    use tertulia_core::entry::{ImportedRelation, SpeakerKind, ToolOutcome};

    const TABLES: &str = include_str!("../../fixtures/goose/sessions.sql");

    fn database(more: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let database = Connection::open(folder.path().join(DATABASE)).unwrap();
        database.execute_batch("PRAGMA page_size = 1024").unwrap();
        database.execute_batch(TABLES).unwrap();
        database.execute_batch(more).unwrap();
        folder
    }

    fn of_database(more: &str) -> Vec<Foreign> {
        let folder = database(more);
        let path = folder.path().join(DATABASE);
        assert!(Goose.is_candidate(&path));
        assert!(Goose.recognises(&path, &fs::read(&path).unwrap()));
        read(&path, None).unwrap()
    }

    #[test]
    fn sessions_have_thinking_tools_and_notices() {
        let sessions = of_database("");
        let session = &sessions[1];
        assert_eq!(
            texts(session),
            [
                (Role::User, "Run the tests"),
                (Role::Assistant, ""),
                (Role::Tool, "1 failed"),
                (Role::Assistant, "One test fails."),
                (Role::System, "Compaction complete"),
                (Role::System, "Summary: one test fails."),
                (Role::Assistant, "[invalid tool call: no such tool]"),
                (
                    Role::Tool,
                    "The user has declined to run this tool. DO NOT attempt to call this tool again."
                ),
                (Role::Tool, "-32603: no such tool"),
                (Role::User, "[image: image/png]"),
            ]
        );
        let said = &session.said;
        assert_eq!(said[1].thought.as_deref(), Some("The suite first."));
        assert_eq!(said[3].thought, None);
        assert_eq!(said[1].message.model.as_deref(), Some("claude-sonnet-4"));
        let outcomes: Vec<_> = said
            .iter()
            .filter_map(|said| said.message.outcome)
            .collect();
        assert_eq!(
            outcomes,
            [
                ToolOutcome::Failed,
                ToolOutcome::Denied,
                ToolOutcome::Failed
            ]
        );
        assert_eq!(said[6].message.usage, Some(Usage::told(900, 10)));
        assert_eq!(session.title.as_deref(), Some("Fix the test"));
        let time = "2026-01-15T09:00:00Z".parse().unwrap();
        assert_eq!(session.created_at, time);
        let lost = session.changes.lost().join("; ");
        assert!(lost.contains("image parts (1)"), "{lost}");
    }

    #[test]
    fn a_session_that_the_program_converted_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("20250301_090000.jsonl");
        fs::write(&path, FILE).unwrap();
        let (older, newer) = (read(&path, None).unwrap(), of_database(""));
        assert_eq!(older[0].id, newer[0].id);
        assert_eq!(ids(&older[0]), ids(&newer[0]));
    }

    #[test]
    fn a_copy_has_the_ids_of_its_origin() {
        let sessions = of_database(
            "INSERT INTO sessions (id, working_dir) VALUES ('20260116_1', '/home/user/app');
             INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp)
                 SELECT message_id || 'x', '20260116_1', role, content_json, created_timestamp
                 FROM messages WHERE session_id = '20260115_1' AND created_timestamp < 1768467608",
        );
        let (origin, copy) = (ids(&sessions[1]), ids(&sessions[2]));
        assert!(origin.starts_with(&copy) && copy.len() == 4);
    }

    #[test]
    fn newer_databases_have_usage_of_each_request_and_subagents() {
        let sessions = of_database(
            "ALTER TABLE sessions ADD COLUMN parent_session_id TEXT;
             CREATE TABLE usage_ledger (
                 id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, created_timestamp INTEGER,
                 model TEXT, input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER,
                 cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL,
                 cost_source TEXT, is_compaction INTEGER);
             INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens,
                 output_tokens, cache_read_tokens, cache_write_tokens) VALUES
                 ('20260115_1', 1768467602, 'opus', 700, 40, 600, 50),
                 ('20260115_1', 1768467606, NULL, 900, 50, NULL, NULL),
                 ('20260115_1', 1768467619, 'opus', 910, 10, 900, 0),
                 ('20260115_1', 1768467623, 'opus', 1, 1, 0, 0);
             INSERT INTO sessions (id, session_type, working_dir, parent_session_id)
                 VALUES ('20260115_2', 'sub_agent', '/w', '20260115_1');
             INSERT INTO messages (session_id, role, content_json, created_timestamp)
                 VALUES ('20260115_2', 'user', '[{\"type\":\"text\",\"text\":\"look\"}]', 1768467603)",
        );
        let session = &sessions[1];
        let figures: Vec<_> = session
            .said
            .iter()
            .filter(|said| said.message.speaker.kind == SpeakerKind::Ai)
            .map(|said| {
                let usage = said.message.usage.unwrap();
                (usage.input, usage.cache_read, usage.cache_written)
            })
            .collect();
        assert_eq!(figures, [(700, 600, 50), (900, 0, 0), (910, 900, 0)]);
        let models: Vec<_> = session
            .said
            .iter()
            .map(|said| said.message.model.as_deref())
            .collect();
        assert_eq!(models[1], Some("opus"));
        assert_eq!(models[3], Some("claude-sonnet-4"));
        let lost = session.changes.lost().join("; ");
        assert!(lost.contains("requests without an answer (1)"), "{lost}");
        let parent = sessions[2].source.parent.as_ref().unwrap();
        assert_eq!(
            (parent.original.as_str(), parent.relation),
            ("20260115_1", ImportedRelation::Subagent)
        );
    }

    #[test]
    fn older_databases_lack_columns() {
        let sessions = of_database(
            "DROP INDEX idx_messages_message_id;
             ALTER TABLE messages DROP COLUMN message_id;
             ALTER TABLE messages DROP COLUMN metadata_json;
             ALTER TABLE sessions DROP COLUMN model_config_json;
             UPDATE sessions SET description = 'Older', name = ''; ",
        );
        assert_eq!(sessions[1].title.as_deref(), Some("Older"));
        assert_eq!(sessions[1].said.len(), 11);
    }

    #[test]
    fn a_database_that_grew_keeps_earlier_ids() {
        let whole = ids(&of_database("")[1]);
        for count in 5..=14 {
            let sessions = of_database(&format!("DELETE FROM messages WHERE id > {count}"));
            let ids = ids(&sessions[1]);
            // The last answer may be a piece of a streamed one.
            assert!(whole.starts_with(&ids) || count == 9, "{count}");
        }
    }

    #[test]
    fn damaged_rows_are_named_and_wrong_types_read() {
        let sessions = of_database(
            "UPDATE messages SET content_json = 'not json' WHERE id = 5;
             UPDATE messages SET content_json = x'ff00', role = 7 WHERE id = 6;
             UPDATE messages SET created_timestamp = 'late', metadata_json = '[' WHERE id = 8;
             UPDATE sessions SET created_at = 7.5, input_tokens = 'x', output_tokens = -3",
        );
        let lost = sessions[1].changes.lost().join("; ");
        assert!(lost.contains("damaged rows of messages: 5, 6"), "{lost}");
    }

    #[test]
    fn damaged_databases_are_errors() {
        let folder = database("");
        let path = folder.path().join(DATABASE);
        let whole = fs::read(&path).unwrap();
        let mut failed = 0;
        for seed in 0..300 {
            fs::write(&path, flipped(&whole, seed)).unwrap();
            let outcome = is_read_in_time(|| read(&path, None));
            failed += usize::from(outcome.is_err());
        }
        assert!((20..300).contains(&failed), "{failed}");
    }
}
