//! Every recorded file and database is recognised by one importer only.

use std::path::Path;

use crate::importer::{IMPORTERS, importer};

#[test]
fn recorded_files_are_recognised_by_one_importer() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for (file, program) in [
        ("aider/chat.history.md", "aider"),
        ("claude-code/forked.jsonl", "claude-code"),
        ("claude-code/tool-write-read.jsonl", "claude-code"),
        (
            "copilot/history-session-state/session_5b1e_1759957816398.json",
            "copilot",
        ),
        (
            "copilot/session-state/3f0c2a52-0000-4000-8000-000000000001/events.jsonl",
            "copilot",
        ),
        ("goose/20250301_090000.jsonl", "goose"),
    ] {
        let path = fixtures.join(file);
        let content = std::fs::read(&path).unwrap();
        let found: Vec<&str> = IMPORTERS
            .iter()
            .filter(|importer| importer.recognises(&path, &content))
            .map(|importer| importer.name())
            .collect();
        assert_eq!(found, [program], "{file}");
        assert_eq!(importer(program).unwrap().name(), program);
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn databases_are_recognised_by_one_importer() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for (files, program) in [
        (&["crush/crush.sql"][..], "crush"),
        (&["goose/sessions.sql"], "goose"),
        (&["llm/logs.sql"], "llm"),
        (&["llm/logs.sql", "llm/threads.sql"], "llm"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // The name of a copy says nothing.
        let path = folder.path().join("copy.db");
        let database = rusqlite::Connection::open(&path).unwrap();
        let pragma = "PRAGMA foreign_keys = OFF";
        database.execute_batch(pragma).unwrap();
        for file in files {
            let sql = std::fs::read_to_string(fixtures.join(file)).unwrap();
            database.execute_batch(&sql).unwrap();
        }
        drop(database);
        let content = std::fs::read(&path).unwrap();
        let found: Vec<&str> = IMPORTERS
            .iter()
            .filter(|importer| importer.recognises(&path, &content))
            .map(|importer| importer.name())
            .collect();
        assert_eq!(found, [program], "{files:?}");
    }
}
