//! Tests with databases of both generations, of forks, and of damage.

use std::fs;

use rusqlite::Connection;
use serde_json::json;
use tertulia_core::entry::{ImportedRelation, Role};
use tertulia_core::foreign::Beginning;

use super::*;
use crate::importer::damage::{flipped, is_read_in_time};

const RESPONSES: &str = include_str!("../../fixtures/llm/logs.sql");
const THREADS: &str = include_str!("../../fixtures/llm/threads.sql");

fn database(sql: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(DATABASE);
    let database = Connection::open(&path).unwrap();
    database
        .execute_batch("PRAGMA page_size = 1024; PRAGMA foreign_keys = OFF")
        .unwrap();
    for sql in sql {
        database.execute_batch(sql).unwrap();
    }
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
    Llm.read(&input, take).map(|()| sessions)
}

fn of_database(sql: &[&str]) -> Vec<Foreign> {
    let (_folder, path) = database(sql);
    assert!(Llm.is_candidate(&path));
    assert!(Llm.recognises(&path, &fs::read(&path).unwrap()));
    read(&path).unwrap()
}

fn find<'a>(sessions: &'a [Foreign], original: &str) -> &'a Foreign {
    let mut all = sessions.iter();
    all.find(|session| session.source.original == original)
        .unwrap()
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
fn responses_have_prompts_tools_and_usage() {
    let sessions = of_database(&[RESPONSES]);
    assert_eq!(sessions.len(), 3);
    let session = find(&sessions, "01jm0000000000000000000001");
    assert_eq!(
        texts(session),
        [
            (Role::System, "Be brief."),
            (
                Role::User,
                "The office is in Lisbon.\nWhat time is it?\n[attachment: /tmp/clock.png]"
            ),
            (Role::Assistant, ""),
            (Role::Tool, "10:00"),
            (Role::Assistant, "It is ten."),
        ]
    );
    let said = &session.said;
    let call = &said[2].message.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), &call.arguments),
        ("call_1", &json!({ "zone": "Lisbon" }))
    );
    assert_eq!(said[3].message.speaker.name, "llm_time");
    assert_eq!(said[4].thought.as_deref(), Some("The tool says ten."));
    assert_eq!(
        said[2].message.model.as_deref(),
        Some("gpt-4o-mini-2024-07-18")
    );
    let usage = said[2].message.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cache_read),
        (120, 15, 100)
    );
    assert_eq!(session.title.as_deref(), Some("What time is it?"));
    assert_eq!(session.created_at, "2025-02-14T10:00:00Z".parse().unwrap());
    assert_eq!(said[2].at, "2025-02-14T10:00:01.5Z".parse().unwrap());
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("attachments (1)"), "{lost}");
    let usage = find(&sessions, "01jm0000000000000000000009").said[1]
        .message
        .usage;
    let usage = usage.unwrap();
    assert_eq!(
        (usage.input, usage.cache_read, usage.cache_written),
        (54, 30, 20)
    );
    let alone = find(&sessions, "01jm0000000000000000000011");
    assert_eq!(
        texts(alone),
        [(Role::User, "Alone"), (Role::Assistant, "Yes.")]
    );
}

#[test]
fn threads_have_the_same() {
    let sessions = of_database(&[RESPONSES, THREADS]);
    let session = find(&sessions, "01kf0000000000000000000001");
    assert_eq!(
        texts(session),
        [
            (Role::System, "Be brief."),
            (
                Role::User,
                "The office is in Lisbon.\nWhat time is it there?\n[attachment: a1]"
            ),
            (Role::Assistant, ""),
            (Role::Tool, "ValueError: no clock"),
            (Role::Assistant, "I do not know."),
            (Role::User, "Guess."),
            (Role::Assistant, "Ten."),
        ]
    );
    let said = &session.said;
    assert_eq!(said[2].thought.as_deref(), Some("I need the clock."));
    assert_eq!(said[2].message.tool_calls[0].name, "llm_time");
    assert_eq!(said[3].message.outcome.unwrap().name(), "failed");
    assert_eq!(said[2].message.model.as_deref(), Some("gpt-5.6-luna-1"));
    let usage: Vec<_> = said
        .iter()
        .filter_map(|said| said.message.usage)
        .map(|usage| (usage.input, usage.output, usage.cache_read))
        .collect();
    assert_eq!(usage, [(200, 20, 150), (230, 4, 0), (240, 2, 0)]);
    assert_eq!(said[5].at, "2026-08-05T09:05:00Z".parse().unwrap());
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("encrypted thinking (1)"), "{lost}");
}

#[test]
fn a_fork_shares_the_beginning_of_its_origin() {
    let sessions = of_database(&[RESPONSES, THREADS]);
    let origin = find(&sessions, "01kf0000000000000000000001");
    let fork = find(&sessions, "01kf0000000000000000000005");
    assert_eq!(ids(origin)[..5], ids(fork)[..5]);
    assert_eq!(
        texts(fork)[5..],
        [(Role::User, "Never mind."), (Role::Assistant, "Fine.")]
    );
    let beginning = fork.fork.as_ref().unwrap();
    assert_eq!(
        (beginning.from, &beginning.beginning),
        (origin.id, &Beginning::Copied(5))
    );
    let parent = fork.source.parent.as_ref().unwrap();
    assert_eq!(parent.relation, ImportedRelation::Fork);
    // Two conversations that only begin alike are no fork.
    let copied = "INSERT INTO threads VALUES ('01kg', 'x', 'b2:05', NULL, '2026-08-06 09:00:00');
                  INSERT INTO turns (id, thread_id, parent_message_hash, tip_message_hash)
                      VALUES ('01kh', '01kg', 'b2:02', 'b2:03')";
    let sessions = of_database(&[RESPONSES, THREADS, copied]);
    let alike = find(&sessions, "01kg");
    assert_eq!(alike.said.len(), 5);
    assert!(alike.fork.is_none() && ids(alike)[0] != ids(origin)[0]);
}

#[test]
fn an_older_conversation_goes_on_with_what_is_new() {
    let older = of_database(&[RESPONSES]);
    let newer = of_database(&[RESPONSES, THREADS]);
    let id = "01jm0000000000000000000009";
    let (older, newer) = (find(&older, id), find(&newer, id));
    assert_eq!(
        texts(newer),
        [
            (Role::User, "Hello"),
            (Role::Assistant, "Hi!"),
            (Role::User, "And now?"),
            (Role::Assistant, "Later."),
        ]
    );
    assert!(ids(newer).starts_with(&ids(older)));
}

#[test]
fn a_history_that_was_sent_again_in_other_words_is_not_repeated() {
    let again = "INSERT INTO messages VALUES ('b2:30', NULL, 'user', NULL),
            ('b2:31', 'b2:30', 'assistant', NULL), ('b2:32', 'b2:31', 'user', NULL),
            ('b2:33', 'b2:32', 'assistant', NULL);
        INSERT INTO parts (message_hash, position, type, text) VALUES
            ('b2:30', 0, 'text', 'sent again'), ('b2:32', 0, 'text', 'Sure?'),
            ('b2:33', 0, 'text', 'Yes.');
        INSERT INTO turns (id, thread_id, parent_message_hash, tip_message_hash)
            VALUES ('01kf00000000000000000000041', '01kf0000000000000000000001', 'b2:32', 'b2:33')";
    let sessions = of_database(&[RESPONSES, THREADS, again]);
    let session = find(&sessions, "01kf0000000000000000000001");
    assert_eq!(
        texts(session)[7..],
        [(Role::User, "Sure?"), (Role::Assistant, "Yes.")]
    );
}

#[test]
fn a_database_that_grew_keeps_earlier_ids() {
    let whole = of_database(&[RESPONSES, THREADS]);
    for turn in 2..=7 {
        let more = format!(
            "DELETE FROM turns WHERE id > '01kf000000000000000000000{turn}';
             DELETE FROM threads WHERE id NOT IN (SELECT thread_id FROM turns);
             UPDATE threads SET tip_message_hash =
                 (SELECT tip_message_hash FROM turns WHERE thread_id = threads.id
                  ORDER BY id DESC LIMIT 1)"
        );
        for earlier in of_database(&[RESPONSES, THREADS, &more]) {
            let later = find(&whole, &earlier.source.original);
            assert!(ids(later).starts_with(&ids(&earlier)), "{turn}");
        }
    }
    for response in 2..=3 {
        let more =
            format!("DELETE FROM responses WHERE id > '01jm000000000000000000000{response}'");
        let earlier = of_database(&[RESPONSES, &more]).remove(0);
        assert!(ids(&whole[0]).starts_with(&ids(&earlier)), "{response}");
    }
}

#[test]
fn first_versions_lack_tables_and_columns() {
    let first = "CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
        CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT,
            prompt_json TEXT, options_json TEXT, response TEXT, response_json TEXT,
            conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT);
        INSERT INTO conversations VALUES ('c', 'Old', 'm');
        INSERT INTO responses VALUES ('r', 'm', 'Hello', NULL, NULL, NULL, 'Hi!', NULL, 'c', 5,
            '2023-07-20T10:00:00.000000')";
    let session = of_database(&[first]).remove(0);
    assert_eq!(
        texts(&session),
        [(Role::User, "Hello"), (Role::Assistant, "Hi!")]
    );
    assert_eq!(session.said[1].message.usage, None);
}

#[test]
fn damaged_rows_are_named_and_cycles_end() {
    let sessions = of_database(&[
        RESPONSES,
        THREADS,
        "UPDATE parts SET payload = '{' WHERE id = 5;
         UPDATE parts SET payload = '[]', text = 7 WHERE id = 6;
         UPDATE parts SET payload = '{\"text_ref\": [{\"fragment\": 99}, 7]}' WHERE id = 2;
         UPDATE messages SET parent_hash = 'b2:07' WHERE hash = 'b2:01';
         UPDATE messages SET parent_hash = 'b2:99' WHERE hash = 'b2:20';
         UPDATE threads SET forked_from = id WHERE id = '01kf0000000000000000000001';
         UPDATE turns SET input_tokens = 'x', datetime_utc = 'never', duration_ms = 1e300;
         UPDATE responses SET token_details = 7, prompt = x'ff', duration_ms = -9e18",
    ]);
    let session = find(&sessions, "01kf0000000000000000000001");
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("damaged rows of parts: 6, 5"), "{lost}");
    assert!(lost.contains("missing fragments (1)"), "{lost}");
    let session = find(&sessions, "01jm0000000000000000000009");
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("missing messages (1)"), "{lost}");
}

#[test]
fn damaged_databases_are_errors() {
    let (_folder, path) = database(&[RESPONSES, THREADS]);
    let whole = fs::read(&path).unwrap();
    let mut failed = 0;
    for seed in 0..300 {
        fs::write(&path, flipped(&whole, seed)).unwrap();
        let outcome = is_read_in_time(|| read(&path));
        failed += usize::from(outcome.is_err());
    }
    assert!((20..300).contains(&failed), "{failed}");
}
