//! Tests with databases of the published schema, the list of projects, and damage.

use std::fs;

use rusqlite::Connection;
use serde_json::json;
use tertulia_core::entry::Role;

use super::*;
use crate::importer::damage::{flipped, is_read_in_time};

const TABLES: &str = include_str!("../../fixtures/crush/crush.sql");

/// Creates a project with a database, and returns its folder and the database.
fn project(more: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FOLDER).join(DATABASE);
    fs::create_dir(path.parent().unwrap()).unwrap();
    let database = Connection::open(&path).unwrap();
    database.execute_batch("PRAGMA page_size = 1024").unwrap();
    database.execute_batch(TABLES).unwrap();
    database.execute_batch(more).unwrap();
    (folder, path)
}

fn read(path: &Path) -> Result<Vec<Foreign>, ReadError> {
    let mut sessions = Vec::new();
    let take = &mut |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    };
    let input = Input {
        path,
        content: None,
    };
    Crush.read(&input, take).map(|()| sessions)
}

fn of_database(more: &str) -> Vec<Foreign> {
    let (_folder, path) = project(more);
    assert!(Crush.is_candidate(&path));
    assert!(Crush.recognises(&path, &fs::read(&path).unwrap()));
    read(&path).unwrap()
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
fn a_session_has_tools_thinking_faults_and_usage() {
    let (folder, path) = project("");
    let sessions = read(&path).unwrap();
    let session = &sessions[0];
    assert_eq!(
        texts(session),
        [
            (
                Role::User,
                "Where is the greeting?\n[binary: /home/user/app/a.png]"
            ),
            (Role::Assistant, "I'll look."),
            (Role::Tool, "app.py:1"),
            (Role::Tool, "User denied permission"),
            (Role::Assistant, "In app.py, li"),
            (Role::User, "! cat app.py\nprint(1)\n[exit status 3]"),
            (Role::System, "Overloaded: try again later"),
            (Role::Assistant, "In line 1."),
            (Role::System, "The greeting is in line 1 of app.py."),
        ]
    );
    let said = &session.said;
    assert_eq!(said[1].thought.as_deref(), Some("Two ways to look."));
    assert_eq!(said[1].message.model.as_deref(), Some("claude-sonnet-4"));
    let call = &said[1].message.tool_calls[0];
    assert_eq!(
        (call.name.as_str(), &call.arguments),
        ("grep", &json!({ "pattern": "hello" }))
    );
    let outcomes: Vec<_> = said
        .iter()
        .filter_map(|said| said.message.outcome.map(|outcome| outcome.name()))
        .collect();
    assert_eq!(outcomes, ["ok", "denied"]);
    assert_eq!(said[3].message.speaker.name, "agent");
    assert!(said[4].message.interrupted && !said[7].message.interrupted);
    assert_eq!(said[7].message.usage, Some(Usage::told(5_200, 21)));
    assert_eq!(session.title.as_deref(), Some("Greeting in app.py"));
    assert_eq!(session.source.cwd.as_deref(), folder.path().to_str());
    let time = "2026-01-02T09:00:00Z".parse().unwrap();
    assert_eq!((session.created_at, said[0].at), (time, time));
    let lost = session.changes.lost().join("; ");
    assert!(
        lost.contains("binary parts (1), versions of files (1)"),
        "{lost}"
    );
    assert!(lost.contains("all answers but the last"), "{lost}");
    let parent = sessions[1].source.parent.as_ref().unwrap();
    assert_eq!(parent.original, session.source.original);
    assert_eq!(parent.relation, ImportedRelation::Subagent);
    assert_eq!(sessions[1].said[1].message.usage, Some(Usage::told(800, 9)));
}

#[test]
fn times_in_milliseconds_and_older_tables_are_read() {
    let sessions = of_database(
        "UPDATE messages SET created_at = created_at * 1000;
         UPDATE sessions SET created_at = created_at * 1000;
         ALTER TABLE messages DROP COLUMN is_summary_message;
         ALTER TABLE messages DROP COLUMN provider;
         DROP TABLE files",
    );
    let time = "2026-01-02T09:00:00Z".parse().unwrap();
    assert_eq!(sessions[0].said[0].at, time);
    assert_eq!(
        sessions[0].said.last().unwrap().message.role,
        Role::Assistant
    );
}

#[test]
fn an_answer_that_grows_is_left_for_the_next_import() {
    let growing = "UPDATE messages SET parts = '[{\"type\":\"text\",\"data\":{\"text\":\"In\"}}]'
                   WHERE id = ";
    let session = of_database(&format!("{growing} 'm8'")).remove(0);
    assert_eq!(session.said.last().unwrap().message.content, "In line 1.");
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("not complete yet (1)"), "{lost}");
    let session = of_database(&format!("{growing} 'm7'")).remove(0);
    let answer = &session.said[7].message;
    assert!(answer.interrupted && answer.content == "In");
}

#[test]
fn a_database_that_grew_keeps_earlier_ids() {
    let whole = ids(&of_database("")[0]);
    for count in 1..=8 {
        let more = format!("DELETE FROM messages WHERE id > 'm{count}'");
        let earlier = ids(&of_database(&more)[0]);
        assert!(
            whole.starts_with(&earlier) && !earlier.is_empty(),
            "{count}"
        );
    }
}

#[test]
fn listed_projects_are_read_and_missing_ones_skipped() {
    let (one, _) = project("");
    let (two, damaged) = project("");
    fs::write(&damaged, b"SQLite format 3\0and nothing else").unwrap();
    let data = one.path().join(FOLDER);
    let list = json!({ "projects": [
        { "path": "/removed", "data_dir": "/removed/.crush", "last_accessed": "2026-01-02T09:00:00Z" },
        { "path": two.path(), "data_dir": ".crush" },
        { "path": one.path(), "data_dir": data },
        { "path": 7 },
    ]});
    let path = one.path().join(PROJECTS);
    fs::write(&path, list.to_string()).unwrap();
    assert!(Crush.recognises(&path, list.to_string().as_bytes()));
    assert!(!Crush.recognises(&path, b"{\"projects\":[]}"));
    let mut folders = Vec::new();
    let take = &mut |session: Foreign| {
        folders.push(session.source.cwd.unwrap());
        ControlFlow::Continue(())
    };
    let input = Input {
        path: &path,
        content: None,
    };
    let error = Crush.read(&input, take).unwrap_err().to_string();
    assert!(error.contains(damaged.to_str().unwrap()), "{error}");
    assert_eq!(folders, [one.path().to_str().unwrap(); 2]);
}

#[test]
fn damaged_rows_are_named_and_wrong_types_read() {
    let sessions = of_database(
        "UPDATE messages SET parts = '{}' WHERE id = 'm1';
         UPDATE messages SET parts = x'ff' WHERE id = 'm2';
         UPDATE messages SET parts = '[7, {\"type\": 3}, {\"type\": \"text\", \"data\": []},
             {\"type\": \"tool_call\"}, {\"type\": \"tool_result\", \"data\": 1},
             {\"type\": \"shell_command\", \"data\": null}]' WHERE id = 'm4';
         UPDATE messages SET role = 'x', created_at = 'never' WHERE id = 'm5'",
    );
    let lost = sessions[0].changes.lost().join("; ");
    assert!(lost.contains("damaged rows of messages: 1, 2"), "{lost}");
    assert!(lost.contains("messages without a role (1)"), "{lost}");
}

#[test]
fn damaged_databases_are_errors() {
    let (_folder, path) = project("");
    let whole = fs::read(&path).unwrap();
    let mut failed = 0;
    for seed in 0..300 {
        fs::write(&path, flipped(&whole, seed)).unwrap();
        let outcome = is_read_in_time(|| read(&path));
        failed += usize::from(outcome.is_err());
    }
    assert!((20..300).contains(&failed), "{failed}");
}
