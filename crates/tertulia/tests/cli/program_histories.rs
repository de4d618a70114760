//! `import` of whole histories of other programs: what is new is added once, and files in use are
//! only read.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::home::{Home, messages};

const AIDER: &str = include_str!("../../../tertulia-formats/fixtures/aider/chat.history.md");
const COPILOT: &str = include_str!(
    "../../../tertulia-formats/fixtures/copilot/session-state/3f0c2a52-0000-4000-8000-000000000001/events.jsonl"
);
const CRUSH: &str = include_str!("../../../tertulia-formats/fixtures/crush/crush.sql");
const GOOSE: &str = include_str!("../../../tertulia-formats/fixtures/goose/sessions.sql");
const LLM: &str = include_str!("../../../tertulia-formats/fixtures/llm/logs.sql");
const LLM_THREADS: &str = include_str!("../../../tertulia-formats/fixtures/llm/threads.sql");

/// Imports a file or folder and returns the report of each session.
fn import(home: &Home, path: &Path) -> Vec<Value> {
    let args = ["import".as_ref(), "--json".as_ref(), path.as_os_str()];
    let document = home.run(&args).ok().json();
    document["imported"].as_array().unwrap().clone()
}

fn results(reports: &[Value]) -> Vec<&str> {
    let reports = reports.iter();
    reports
        .map(|report| report["result"].as_str().unwrap())
        .collect()
}

/// Creates a database and leaves it open.
fn database(path: &Path, sql: &[&str]) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = Connection::open(path).unwrap();
    let mode = "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF";
    database.execute_batch(mode).unwrap();
    for sql in sql {
        database.execute_batch(sql).unwrap();
    }
    database
}

#[test]
fn a_history_of_aider_grows() {
    let home = &Home::new();
    let folder = home.folder("app");
    let path = folder.join(".aider.chat.history.md");
    fs::write(&path, AIDER).unwrap();
    fs::write(folder.join("README.md"), "# aider chat started at noon").unwrap();
    let imported = import(home, &folder);
    assert_eq!(results(&imported), ["created", "created"]);
    assert_eq!(
        imported[0]["kept"],
        json!({ "messages": 10, "tool_calls": 0, "thoughts": 1, "usage": 2 })
    );
    assert_eq!(results(&import(home, &folder)), ["known", "known"]);
    home.run(&["list", "--all"])
        .ok()
        .says("What does app.py do");
    let id = imported[1]["session"].as_str().unwrap();
    let session = home.show(id);
    assert_eq!(session["cwd"], json!(folder));
    assert_eq!(session["created_at"], "2025-03-02T10:00:00Z");
    assert_eq!(session["source"]["program"], "aider");
    home.run(&["show", id]).ok().says("It greets the user.");
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"\n#### And then?  \n\nIt ends.\n\n")
        .unwrap();
    assert_eq!(results(&import(home, &path)), ["known", "extended"]);
    assert_eq!(home.said(id)[3..], ["And then?", "It ends."]);
    // A copy in another place is the same history.
    let copy = home.folder("copy").join(".aider.chat.history.md");
    fs::copy(&path, &copy).unwrap();
    assert_eq!(results(&import(home, &copy)), ["known", "known"]);
    assert_eq!(home.all().len(), 2);
}

#[test]
fn a_database_of_crush_in_use_grows() {
    let home = &Home::new();
    let project = home.folder("app");
    let path = project.join(".crush/crush.db");
    let writer = database(&path, &[CRUSH]);
    let log = path.with_extension("db-wal");
    let files = || (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    let before = files();
    let imported = import(home, &project);
    assert_eq!(files(), before);
    assert_eq!(results(&imported), ["created", "created"]);
    let session = home.show("5a4f0d1e-0000-4000-8000-000000000001");
    assert_eq!(session["title"], "Greeting in app.py");
    assert_eq!(session["cwd"], json!(project));
    let calls = &messages(&session)[1]["tool_calls"];
    assert_eq!(calls[0]["name"], "grep");
    assert_eq!(results(&import(home, &project)), ["known", "known"]);
    writer
        .execute_batch(
            "INSERT INTO messages (id, session_id, role, parts, created_at, updated_at)
             VALUES ('s3', 'm2$$call_2', 'user', '[{\"type\":\"text\",\"data\":{\"text\":\"more\"}}]',
                 1767344450, 1767344450)",
        )
        .unwrap();
    assert_eq!(results(&import(home, &path)), ["known", "extended"]);
    assert_eq!(home.said("m2$$call_2").last().unwrap(), "more");
    drop(writer);
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..].fill(7);
    fs::write(&path, bytes).unwrap();
    let args = ["import".as_ref(), path.as_os_str()];
    let name = path.display().to_string();
    let output = home.run(&args).code(5).notes("the database is damaged");
    output.notes(&name);
    assert_eq!(home.all().len(), 2);
}

#[test]
fn every_program_is_found_and_imported_once() {
    let home = &Home::new();
    let folder = home.folder("histories");
    let put = |name: &str, sql: &[&str]| -> PathBuf {
        let path = folder.join(name);
        drop(database(&path, sql));
        path
    };
    put("crush/.crush/crush.db", &[CRUSH]);
    put("goose/sessions.db", &[GOOSE]);
    let logs = put("llm/logs.db", &[LLM, LLM_THREADS]);
    fs::write(folder.join("goose/.aider.chat.history.md"), AIDER).unwrap();
    fs::write(folder.join("events.jsonl"), COPILOT).unwrap();
    let imported = import(home, &folder);
    let count = |result: &str| {
        let reports = imported.iter();
        reports.filter(|report| report["result"] == result).count()
    };
    // The fork is the thread of llm that names another one.
    assert_eq!((count("created"), count("forked")), (12, 1));
    let mut again = results(&import(home, &folder))
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    again.dedup();
    assert_eq!(again, ["known"]);
    assert_eq!(home.all().len(), 13);
    let fork = home.show("01kf0000000000000000000005");
    assert_eq!(fork["source"]["program"], "llm");
    assert_eq!(messages(&fork).last().unwrap()["content"], "Fine.");
    // A database under another name, and one that is not the program's.
    let copy = home.path().join("copy.sqlite");
    fs::copy(&logs, &copy).unwrap();
    assert!(
        results(&import(home, &copy))
            .iter()
            .all(|result| *result == "known")
    );
    home.run(&["import", "--from", "goose", copy.to_str().unwrap()])
        .code(5)
        .notes("cannot be read");
    home.prepare(&["import", "--from", "llm", "-"])
        .stdin(fs::read(&logs).unwrap())
        .run()
        .code(5)
        .notes("standard input");
    home.run(&["doctor"]).ok();
}
