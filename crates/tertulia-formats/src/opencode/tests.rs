//! Tests with exported sessions, a folder of files, and a database that is in use.

use std::fs;
use std::ops::ControlFlow;

use serde_json::json;

use super::*;
use crate::importer::tests::{counted, fixtures, ids, read, recorded, texts};
use tertulia_core::entry::ToolOutcome;
use tertulia_core::foreign::Foreign;

fn one(name: &str) -> Foreign {
    recorded(&Opencode, name).remove(0)
}

fn export(name: &str) -> Value {
    let fixtures = fixtures("opencode");
    let mut found = fixtures
        .iter()
        .filter(|fixture| fixture.path.ends_with(name));
    serde_json::from_slice(&found.next().unwrap().content).unwrap()
}

fn of(document: &Value) -> Option<Foreign> {
    let content = document.to_string().into_bytes();
    let mut sessions = read(&Opencode, Path::new("a.json"), &content).unwrap();
    sessions.pop()
}

fn from_disk(path: &Path) -> Result<Vec<Foreign>, ReadError> {
    let mut sessions = Vec::new();
    Opencode.read(&Input::of(path), &mut |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    })?;
    Ok(sessions)
}

#[test]
fn an_export_keeps_messages_usage_and_place() {
    let session = one("export-multi-1.json");
    assert_eq!(session.said.len(), 6);
    assert_eq!(
        session.said[1].message.content,
        "echo #1: \"first message\""
    );
    assert_eq!(session.said[1].message.model.as_deref(), Some("fake-model"));
    assert_eq!(session.title.as_deref(), Some("Fake title"));
    assert_eq!(
        session.source.cwd.as_deref(),
        Some("/home/user/work-opencode")
    );
    assert_eq!(session.source.version.as_deref(), Some("1.18.33"));
    assert_eq!(counted(&[session]), (2393 + 2404 + 2414, 0, 12));
}

#[test]
fn a_fork_has_the_ids_and_the_usage_of_its_origin() {
    let origin = one("export-multi-1.json");
    let fork = one("export-multi-4-fork.json");
    assert_eq!(ids(&origin), ids(&fork)[..6]);
    assert_eq!(fork.said.len(), 8);
    assert_ne!(origin.id, fork.id);
    assert_eq!(counted(&[origin, fork]).0, 2393 + 2404 + 2414 + 2425);
}

#[test]
fn steps_have_calls_results_and_thoughts() {
    let session = one("export-tool-write.json");
    let names: Vec<&str> = session
        .said
        .iter()
        .map(|said| said.message.speaker.name.as_str())
        .collect();
    let expected = ["you", "opencode", "write", "opencode", "read", "opencode"];
    assert_eq!(names, expected);
    // A title that the program made up is no title.
    assert_eq!(session.title, None);
    let denied = one("export-tool-ask.json");
    assert_eq!(denied.said[2].message.outcome, Some(ToolOutcome::Denied));
    let thinking = one("export-thinking.json");
    assert_eq!(
        thinking.said[1].thought.as_deref(),
        Some("pondering this deeply")
    );
}

/// A session grows by messages and parts; the program rewrites its files.
#[test]
fn a_session_that_grew_keeps_all_earlier_messages() {
    for fixture in fixtures("opencode") {
        let whole: Value = serde_json::from_slice(&fixture.content).unwrap();
        let later = ids(&of(&whole).unwrap());
        let messages = whole["messages"].as_array().unwrap();
        for count in 0..messages.len() {
            let parts = messages[count]["parts"].as_array().unwrap();
            for kept in 0..=parts.len() {
                let mut earlier = whole.clone();
                let list = earlier["messages"].as_array_mut().unwrap();
                list.truncate(count + 1);
                let last = &mut list[count];
                last["parts"].as_array_mut().unwrap().truncate(kept);
                if last["info"]["role"] == "assistant" {
                    last["info"]["time"]
                        .as_object_mut()
                        .unwrap()
                        .remove("completed");
                }
                let earlier = of(&earlier).map_or_else(Vec::new, |session| ids(&session));
                assert_eq!(later[..earlier.len()], earlier[..], "{count}, {kept}");
            }
        }
    }
}

#[test]
fn an_answer_waits_until_it_is_complete() {
    let mut document = export("export-multi-1.json");
    let messages = document["messages"].as_array_mut().unwrap();
    messages.truncate(4);
    let answer = &mut messages[1];
    answer["info"]["time"]
        .as_object_mut()
        .unwrap()
        .remove("completed");
    answer["parts"].as_array_mut().unwrap().truncate(2);
    // The last answer began later: the earlier one was interrupted.
    let session = of(&document).unwrap();
    assert_eq!(session.said.len(), 4);
    assert!(session.said[1].message.interrupted);
    // A prompt may wait while the agent answers.
    document["messages"].as_array_mut().unwrap().truncate(3);
    let session = of(&document).unwrap();
    assert_eq!(texts(&session), ["\"first message\""]);
    let lost = session.changes.lost().join("; ");
    assert!(
        lost.contains("not complete yet, with what follows it (2)"),
        "{lost}"
    );
}

#[test]
fn errors_and_interruptions_are_kept() {
    let mut document = export("export-thinking.json");
    let answer = &mut document["messages"][1];
    answer["info"]["error"] = json!({ "name": "APIError", "data": { "message": "overloaded" } });
    let session = of(&document).unwrap();
    assert_eq!(texts(&session)[1..], ["thought answer", "overloaded"]);
    assert!(!session.said[1].message.interrupted);
    let error = json!({ "name": "MessageAbortedError", "data": { "message": "aborted" } });
    document["messages"][1]["info"]["error"] = error;
    let session = of(&document).unwrap();
    assert_eq!(texts(&session)[1..], ["thought answer"]);
    assert!(session.said[1].message.interrupted);
    document["messages"][1]["parts"] = json!([]);
    assert_eq!(texts(&of(&document).unwrap())[1..], ["aborted"]);
}

#[test]
fn what_the_program_added_for_the_model_is_counted() {
    let mut document = export("export-thinking.json");
    let parts = document["messages"][0]["parts"].as_array_mut().unwrap();
    parts.push(json!({ "type": "text", "text": "content of a file", "synthetic": true }));
    parts.push(json!({ "type": "file", "mime": "image/png", "filename": "a.png", "url": "data:" }));
    let session = of(&document).unwrap();
    assert!(session.said[0].message.content.ends_with("\n[file: a.png]"));
    let lost = session.changes.lost().join("; ");
    assert!(
        lost.contains("context for the model (1), file parts (1)"),
        "{lost}"
    );
}

#[test]
fn reasoning_is_part_of_the_output_in_all_versions() {
    let tokens = |total: Value| {
        json!({ "input": 10, "output": 5, "reasoning": 3, "total": total,
            "cache": { "read": 100, "write": 20 } })
    };
    let newer = message::usage(Some(&tokens(json!(138)))).unwrap();
    assert_eq!((newer.input, newer.output), (130, 8));
    assert_eq!((newer.cache_read, newer.cache_written), (100, 20));
    let older = message::usage(Some(&tokens(Value::Null))).unwrap();
    assert_eq!((older.input, older.output), (130, 5));
}

/// Writes an exported session as the files of the older storage. Returns the session's file.
fn write_tree(storage: &Path, document: &Value) -> PathBuf {
    let write = |path: PathBuf, value: &Value| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, value.to_string()).unwrap();
        path
    };
    let session = id_of(&document["info"]);
    for message in document["messages"].as_array().unwrap() {
        let id = id_of(&message["info"]);
        let folder = storage.join("message").join(session);
        write(folder.join(format!("{id}.json")), &message["info"]);
        for part in message["parts"].as_array().unwrap() {
            let folder = storage.join("part").join(id);
            write(folder.join(format!("{}.json", id_of(part))), part);
        }
    }
    let file = storage
        .join("session/global")
        .join(format!("{session}.json"));
    write(file, &document["info"])
}

#[test]
fn the_older_storage_has_the_same_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let storage = folder.path().join("storage");
    for name in [
        "export-multi-1.json",
        "export-multi-4-fork.json",
        "export-tool-write.json",
    ] {
        let file = write_tree(&storage, &export(name));
        assert_eq!(from_disk(&file).unwrap(), [one(name)]);
        let content = fs::read(&file).unwrap();
        assert!(Opencode.recognises(&file, &content));
    }
    // Everything else in the storage belongs to sessions, and says nothing by itself.
    let part = storage.join("part/msg_1/prt_1.json");
    assert!(Opencode.recognises(&part, b"{}"));
    assert!(!Opencode.recognises(Path::new("part/prt_1.json"), b"{}"));
}

#[test]
fn a_damaged_storage_counts_what_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let storage = folder.path().join("storage");
    let document = export("export-multi-1.json");
    let file = write_tree(&storage, &document);
    let message = id_of(&document["messages"][0]["info"]).to_owned();
    let parts = storage.join("part").join(message);
    fs::write(parts.join("prt_0.json"), "{").unwrap();
    let session = from_disk(&file).unwrap().remove(0);
    assert_eq!(session.said.len(), 6);
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("damaged parts (1)"), "{lost}");
    // An id cannot lead out of the storage.
    let mut info = document["info"].clone();
    info["id"] = json!("ses_/../../../etc");
    fs::write(&file, info.to_string()).unwrap();
    assert_eq!(from_disk(&file).unwrap(), []);
}

#[cfg(feature = "sqlite")]
mod database {
    use rusqlite::{Connection, params};

    use super::*;
    use tertulia_core::entry::ImportedRelation;

    const TABLES: &str = "
        CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
            slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL);
        CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
        CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);";

    fn create(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .unwrap();
        connection.execute_batch(TABLES).unwrap();
        connection
    }

    fn insert(connection: &Connection, document: &Value, parent: Option<&str>) {
        let info = &document["info"];
        let session = id_of(info);
        let text = |field: &str| info[field].as_str().unwrap().to_owned();
        connection
            .execute(
                "INSERT INTO session VALUES (?1, 'global', ?2, 'slug', ?3, ?4, ?5, ?6, 0)",
                params![
                    session,
                    parent,
                    text("directory"),
                    text("title"),
                    text("version"),
                    info["time"]["created"].as_i64()
                ],
            )
            .unwrap();
        let data = |value: &Value| {
            let mut value = value.clone();
            let fields = value.as_object_mut().unwrap();
            fields.retain(|name, _| !["id", "sessionID", "messageID"].contains(&name.as_str()));
            value.to_string()
        };
        for message in document["messages"].as_array().unwrap() {
            let info = &message["info"];
            let created = info["time"]["created"].as_i64();
            let row = params![id_of(info), session, created, data(info)];
            connection
                .execute("INSERT INTO message VALUES (?1, ?2, ?3, 0, ?4)", row)
                .unwrap();
            for part in message["parts"].as_array().unwrap() {
                let row = params![id_of(part), id_of(info), session, data(part)];
                connection
                    .execute("INSERT INTO part VALUES (?1, ?2, ?3, 0, 0, ?4)", row)
                    .unwrap();
            }
        }
    }

    fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        // The index of the log beside the database is shared memory.
        let paths = entries.filter(|path| !path.to_string_lossy().ends_with("-shm"));
        let mut files: Vec<_> = paths
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_database_in_use_is_read_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let program = create(&path);
        // The fork comes first in the table.
        insert(&program, &export("export-multi-4-fork.json"), None);
        insert(&program, &export("export-multi-1.json"), None);
        insert(
            &program,
            &export("export-tool-write.json"),
            Some("ses_parent"),
        );
        program.execute_batch("BEGIN IMMEDIATE").unwrap();
        program.execute("DELETE FROM part", []).unwrap();
        let before = files(folder.path());
        assert!(before.iter().any(|(path, content)| {
            path.to_string_lossy().ends_with("-wal") && !content.is_empty()
        }));
        let sessions = from_disk(&path).unwrap();
        assert_eq!(files(folder.path()), before);
        let [origin, fork, subagent] = &sessions[..] else {
            panic!("{sessions:?}");
        };
        assert_eq!(*origin, one("export-multi-1.json"));
        assert_eq!(*fork, one("export-multi-4-fork.json"));
        let parent = subagent.source.parent.as_ref().unwrap();
        assert_eq!(parent.relation, ImportedRelation::Subagent);
        assert_eq!(parent.original, "ses_parent");
        // The program goes on.
        program.execute_batch("COMMIT").unwrap();
        assert_eq!(from_disk(&path).unwrap(), []);
    }

    #[test]
    fn a_database_that_rests_gets_no_files_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode #1?.db");
        let program = create(&path);
        insert(&program, &export("export-multi-1.json"), None);
        drop(program);
        let before = files(folder.path());
        assert_eq!(before.len(), 1);
        assert_eq!(from_disk(&path).unwrap(), [one("export-multi-1.json")]);
        assert_eq!(files(folder.path()), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_program_left_is_read_and_not_moved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let program = create(&path);
        insert(&program, &export("export-multi-1.json"), None);
        let copy = tempfile::tempdir().unwrap();
        for (path, content) in files(folder.path()) {
            fs::write(copy.path().join(path.file_name().unwrap()), content).unwrap();
        }
        let before = files(copy.path());
        assert_eq!(before.len(), 2, "the database and its log");
        let sessions = from_disk(&copy.path().join("opencode.db")).unwrap();
        assert_eq!(sessions, [one("export-multi-1.json")]);
        assert_eq!(files(copy.path()), before);
    }

    #[test]
    fn messages_in_a_newer_form_are_an_error_after_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let program = create(&path);
        let mut empty = export("export-multi-1.json");
        empty["messages"] = json!([]);
        insert(&program, &empty, None);
        insert(&program, &export("export-thinking.json"), None);
        program
            .execute_batch("CREATE TABLE session_message (id text, session_id text, data text)")
            .unwrap();
        let row = [id_of(&empty["info"])];
        program
            .execute("INSERT INTO session_message VALUES ('m', ?1, '{}')", row)
            .unwrap();
        let mut sessions = Vec::new();
        let read = Opencode.read(&Input::of(&path), &mut |session| {
            sessions.push(session);
            ControlFlow::Continue(())
        });
        let error = read.unwrap_err().to_string();
        assert!(
            error.contains("not supported yet (1)") && error.contains("opencode export"),
            "{error}"
        );
        assert_eq!(sessions, [one("export-thinking.json")]);
    }

    #[test]
    fn flipped_bytes_never_stop_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let program = create(&path);
        insert(&program, &export("export-multi-1.json"), None);
        drop(program);
        let content = fs::read(&path).unwrap();
        let mut number: usize = 1;
        let mut kept = 0;
        for _ in 0..500 {
            let mut damaged = content.clone();
            for _ in 0..8 {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // The first bytes say that it is a database.
                let place = 16 + (number >> 33) % (damaged.len() - 16);
                damaged[place] ^= 1 << (number >> 60 & 7);
            }
            fs::write(&path, damaged).unwrap();
            kept += usize::from(from_disk(&path).is_ok_and(|sessions| !sessions.is_empty()));
        }
        assert!(kept > 50, "{kept}");
    }

    #[test]
    fn damaged_rows_and_damaged_databases_are_errors_or_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let program = create(&path);
        insert(&program, &export("export-multi-1.json"), None);
        program
            .execute("UPDATE part SET data = '{' WHERE rowid = 1", [])
            .unwrap();
        let session = from_disk(&path).unwrap().remove(0);
        let lost = session.changes.lost().join("; ");
        assert!(lost.contains("damaged parts (1)"), "{lost}");
        drop(program);
        let content = fs::read(&path).unwrap();
        for (place, cut) in [100, 4096, 5000, content.len() / 2].into_iter().enumerate() {
            let path = folder.path().join(format!("opencode{place}.db"));
            fs::write(&path, &content[..cut]).unwrap();
            let error = from_disk(&path).unwrap_err().to_string();
            assert!(error.starts_with("the database "), "{error}");
        }
        // A session that cannot be read does not prevent the others.
        let program = Connection::open(&path).unwrap();
        insert(&program, &export("export-thinking.json"), None);
        let row = [id_of(&export("export-multi-1.json")["info"]).to_owned()];
        let words = "UPDATE message SET data = x'ff' WHERE session_id = ?1";
        program.execute(words, row).unwrap();
        let mut sessions = Vec::new();
        let read = Opencode.read(&Input::of(&path), &mut |session| {
            sessions.push(session);
            ControlFlow::Continue(())
        });
        let error = read.unwrap_err().to_string();
        assert!(
            error.contains("session ses_e1f66cd56ffeheka7C4m8vAPFf"),
            "{error}"
        );
        assert_eq!(sessions, [one("export-thinking.json")]);
        let other = folder.path().join("opencode-other.db");
        Connection::open(&other)
            .unwrap()
            .execute_batch("CREATE TABLE a (b)")
            .unwrap();
        assert!(
            from_disk(&other)
                .unwrap_err()
                .to_string()
                .contains("no such table")
        );
        let input = Input {
            path: Path::new("-"),
            content: Some(DATABASE),
        };
        let error = Opencode.read(&input, &mut |_| ControlFlow::Continue(()));
        assert!(error.unwrap_err().to_string().contains("standard input"));
    }
}

#[test]
fn a_summary_is_a_compaction() {
    let answer = |id: &str, time: u64, text: &str, more: Value| {
        let mut info = json!({
            "id": id, "role": "assistant", "modelID": "m", "tokens": { "input": 7, "output": 2 },
            "time": { "created": time, "completed": time },
        });
        info.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "info": info, "parts": [{ "type": "text", "text": text }] })
    };
    let prompt = |time: u64, text: &str| {
        json!({
            "info": { "id": text, "role": "user", "time": { "created": time } },
            "parts": [{ "type": "text", "text": text }],
        })
    };
    let document = json!({
        "info": { "id": "ses_1", "time": { "created": 1 } },
        "messages": [
            prompt(1, "one"),
            answer("a", 2, "first", json!({})),
            answer("b", 3, "what was said", json!({ "summary": true })),
            prompt(4, "two"),
        ],
    });
    let sessions = read(
        &Opencode,
        Path::new("a.json"),
        document.to_string().as_bytes(),
    )
    .unwrap();
    let said = &sessions[0].said;
    let compacts: Vec<bool> = said.iter().map(|said| said.compacts.is_some()).collect();
    assert_eq!(compacts, [false, false, true, false]);
    assert_eq!(said[2].message.usage.map(|usage| usage.input), Some(7));
}
