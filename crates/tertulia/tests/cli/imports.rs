//! What an import keeps of other programs' sessions, what it reports about the rest, and its
//! limits.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tertulia_core::entry::{Body, Created, Entry, Head, Kind, NewEntry};
use tertulia_core::id::{EntryId, SessionId};
use uuid::Uuid;

use crate::home::{Backend, Home, Output, finish, messages};
use crate::saves::{import, talk};

fn write(home: &Home, name: &str, document: &Value) -> String {
    let path = home.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, serde_json::to_string_pretty(document).unwrap()).unwrap();
    path.display().to_string()
}

/// The session file from openagent-terminal's own documentation.
fn session_file(id: &str) -> Value {
    json!({
        "metadata": {
            "session_id": id, "created_at": "2025-10-04T11:42:03Z", "updated_at": "2025-10-04T12:15:30Z",
            "message_count": 2, "total_tokens": 168, "title": format!("Debug {id}"), "tags": ["bug", "auth"]
        },
        "messages": [
            { "role": "user", "content": "Help me debug", "timestamp": "2025-10-04T11:42:03Z", "token_count": 12,
              "metadata": {} },
            { "role": "assistant", "content": "Let me check", "timestamp": "2025-10-04T11:42:05Z",
              "token_count": 156, "metadata": {},
              "tool_calls": [{ "tool": "read_file", "args": { "path": "/var/log/auth.log" } }] }
        ]
    })
}

/// The state of a claude-master session.
fn state(home: &Home, id: &str) -> Value {
    json!({
        "sessionId": id, "createdAt": "2025-11-08T15:30:00.000Z", "lastUpdatedAt": "2025-11-08T15:40:00.000Z",
        "version": "1.0.0",
        "config": { "instructorModel": "m", "workerModel": "m", "maxRounds": 20, "useThinking": true,
            "workDir": home.project() },
        "currentRound": 3, "remainingRounds": 17,
        "instructor": { "systemPrompt": "You lead.", "conversationHistory": [
            { "role": "user", "content": "build the thing" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hmm, first the base" },
                { "type": "text", "text": "Tell worker: step-1" }] } ] },
        "worker": { "conversationHistory": [] },
        "lastInstruction": "step-1", "lastInstructorResponse": null,
    })
}

#[test]
fn original_ids_name_sessions_in_every_command() {
    let home = &Home::new();
    talk("session-456")
        .says("ana", "human", "hello there")
        .at(5)
        .write(home);
    let imported = import(home);
    assert_eq!(imported[0]["original"], "session-456");
    assert_eq!(imported[0]["lost"], json!([]));
    let id = imported[0]["session"].as_str().unwrap();
    assert_eq!(home.show("session-456")["id"], id);
    assert_eq!(home.show("session-456")["source"]["id"], "session-456");
    home.run(&["search", "--all", "session-456"])
        .ok()
        .notes("1 hit");
    // Exports return the original id, with the time of the last save.
    let args = ["export", "session-456", "--format", "snapshot"];
    let document: Value = serde_json::from_str(&home.run(&args).ok().stdout).unwrap();
    assert_eq!(document["sessionId"], "session-456");
    assert_eq!(document["updatedAt"], "2025-11-25T10:05:00Z");
    // A fork is a session of its own.
    home.run(&["fork", "session-456"]).ok();
    assert_eq!(home.show("session-456")["id"], id);
    home.run(&["rename", "session-456", "first"]).ok();
    home.run(&["rm", "-y", "session-456"]).ok();
    home.run(&["restore", "session-456"]).ok();
    home.run(&["doctor"]).ok();
    home.run(&["store", "rebuild"]).ok();
    assert_eq!(home.show("session-456")["id"], id);
    // A second import adds nothing; the export itself is the same session.
    assert_eq!(import(home)[0]["result"], "known");
    let file = home.path().join("out.json");
    fs::write(&file, document.to_string()).unwrap();
    home.run(&["import".as_ref(), file.as_os_str()])
        .ok()
        .says("nothing new");
    home.run(&["show", "session-45"]).code(3);
}

#[test]
fn two_sessions_of_one_original_id_are_ambiguous() {
    let home = Home::new();
    for team in ["review", "release"] {
        talk("session-456")
            .team(team)
            .says("ana", "human", "hello")
            .write(&home);
    }
    import(&home);
    home.run(&["show", "session-456"])
        .code(3)
        .notes("2 sessions");
}

#[test]
fn a_uuid_stays_the_id_and_is_an_alias_where_it_is_taken() {
    let home = &Home::new();
    let uuid = "5c0ffee0-1111-4222-8333-444455556666";
    let file = write(home, "a.json", &state(home, uuid));
    let document = home.run(&["import", "--json", &file]).ok().json();
    assert_eq!(document["imported"][0]["session"], uuid);
    let session = home.show(uuid);
    assert_eq!(session["updated_at"], "2025-11-08T15:40:00Z");
    assert_eq!(session["cwd"], json!(home.project()));
    // Another program's session has the same id.
    let file = write(home, "b.json", &session_file(uuid));
    let document = home.run(&["import", "--json", &file]).ok().json();
    let other = document["imported"][0]["session"].as_str().unwrap();
    assert_ne!(other, uuid);
    assert_eq!(home.show(uuid)["kind"], "pair");
    assert_eq!(home.show(other)["source"]["id"], uuid);
}

#[test]
fn everything_that_claude_master_kept_is_kept_or_named() {
    let home = &Home::new();
    let file = write(home, "a.json", &state(home, "first"));
    let document = home.run(&["import", "--json", &file]).ok().json();
    let report = &document["imported"][0];
    assert_eq!(
        report["lost"],
        json!(["the worker's history, which the file does not have"])
    );
    let session = home.show("first");
    let entries = session["entries"].as_array().unwrap();
    let of = |kind: &str| entries.iter().find(|entry| entry["type"] == kind).unwrap();
    let source = of("imported");
    assert_eq!(
        (
            &source["version"],
            &source["max_rounds"],
            &source["saved_at"]
        ),
        (
            &json!("1.0.0"),
            &json!({ "calls": 20 }),
            &json!("2025-11-08T15:40:00Z")
        )
    );
    let said = messages(&session);
    assert_eq!(said[1]["content"], "Tell worker: step-1");
    assert_eq!(said[1]["reasoning"], "hmm, first the base");
    assert_eq!(
        session["pair"]["last_reply"]["thinking"],
        "hmm, first the base"
    );
    // It belongs to the project of its folder, where -c finds it.
    let listed = home.run(&["list", "--json"]).ok().json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    let mut newer = state(home, "second");
    newer["version"] = json!("9.0.0");
    let file = write(home, "b.json", &newer);
    home.run(&["import", &file]).code(5).notes("9.0.0");
    assert_eq!(home.all().len(), 1);
}

#[test]
fn what_was_changed_is_counted_by_cause() {
    let home = &Home::new();
    talk("session-1")
        .says("ana", "human", "a\u{0}b")
        .says("ada", "ai", &"x".repeat(1_500_000))
        .says(
            "ana",
            "human",
            "My key: sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ",
        )
        .write(home);
    let report = import(home).remove(0);
    let changed = report["changed"].to_string();
    assert!(
        changed.contains("NUL characters replaced in 1 message"),
        "{changed}"
    );
    let cut = "1 message cut at 1000000 bytes, full size: 1500000 bytes";
    assert!(changed.contains(cut), "{changed}");
    let redacted = report["redacted"].as_object().unwrap();
    assert_eq!(
        redacted.values().map(|n| n.as_u64().unwrap()).sum::<u64>(),
        1
    );
}

#[test]
fn a_speaker_of_the_older_form_needs_no_title() {
    let home = Home::new();
    let mut save = talk("session-1").says("ana", "human", "hello");
    save.messages[0]["speaker"] = json!({ "roleId": "r1", "roleName": "ana", "type": "human" });
    save.write(&home);
    let report = import(&home).remove(0);
    assert!(
        report["changed"]
            .to_string()
            .contains("without a roleTitle")
    );
    let said = messages(&home.show("session-1"));
    assert_eq!(said[0]["speaker"]["displayName"], "ana");
}

#[test]
fn sessions_of_openagent_terminal_are_read_with_their_index() {
    let home = &Home::new();
    let folder = "openagent-terminal/sessions";
    let ids = ["2025-10-04_114203", "2025-10-04_153045"];
    for id in ids {
        write(home, &format!("{folder}/{id}.json"), &session_file(id));
    }
    let listed = |id: &str| json!({ "session_id": id, "title": "x" });
    let index =
        json!({ "version": "1.0", "sessions": [listed(ids[0]), listed(ids[1]), listed("gone")] });
    let index = write(home, &format!("{folder}/index.json"), &index);
    let path = home.path().join(folder).display().to_string();
    let output = home.run(&["import", &path]).ok();
    output.says("2 messages").notes("gone.json");
    assert_eq!(home.all().len(), 2);
    let session = home.show(ids[0]);
    assert_eq!(
        (&session["kind"], &session["title"], &session["tags"]),
        (
            &json!("chat"),
            &json!("Debug 2025-10-04_114203"),
            &json!(["auth", "bug"])
        )
    );
    assert_eq!(session["created_at"], "2025-10-04T11:42:03Z");
    assert_eq!(session["tokens"], json!({ "input": 12, "output": 156 }));
    let said = messages(&session);
    assert_eq!(said[1]["tool_calls"][0]["name"], "read_file");
    assert_eq!(said[1]["at"], "2025-10-04T11:42:05Z");
    // A second import, also by the index alone or with `--from`, adds nothing and succeeds.
    home.run(&["import", &path]).ok().says("nothing new");
    home.run(&["import", &index]).ok().says("nothing new");
    home.run(&["import", "--from", "openagent-terminal", &path])
        .ok()
        .says("nothing new");
    home.run(&["doctor"]).ok();
}

#[test]
fn an_import_that_takes_nothing_in_is_no_success() {
    let home = Home::new();
    let folder = home.folder("empty").display().to_string();
    home.run(&["import", &folder])
        .code(5)
        .notes("no .json or .jsonl file");
    write(&home, "other/a.json", &json!({ "a": 1 }));
    write(&home, "other/b.json", &json!([]));
    let folder = home.path().join("other").display().to_string();
    home.run(&["import", &folder])
        .code(5)
        .notes("none of the 2 files is a session")
        .notes("a.json")
        .notes("openagent-terminal");
    home.run(&["import", "--dry-run", &folder]).code(5);
    let file = write(&home, "claude.json", &state(&home, "x"));
    home.run(&["import", "--from", "nonsense", &file])
        .code(2)
        .notes("claude-master")
        .notes("claude-code");
    home.run(&["import", "--from", "claude-code", &file])
        .code(5)
        .notes("it contains no message");
}

#[test]
fn damaged_lines_are_counted_and_named() {
    let home = Home::new();
    let message = json!({ "type": "instructor-message", "timestamp": "2025-11-08T15:30:01.000Z",
        "message": { "role": "user", "content": "build" } });
    let metadata = json!({ "type": "session-metadata", "sessionId": "logged",
        "createdAt": "2025-11-08T15:30:00.000Z", "lastUpdatedAt": "2025-11-08T15:31:00.000Z",
        "currentRound": 1, "remainingRounds": null, "workDir": home.project(), "config": {} });
    let log = format!("{message}\n{{torn\n{metadata}\nnonsense\n{{\"type\":\"instr");
    let file = home.path().join("session-logged.jsonl");
    fs::write(&file, log).unwrap();
    let output = home.run(&["import".as_ref(), file.as_os_str()]).ok();
    output.says("lost: 3 damaged lines: 2, 4, 5");
}

/// Runs an import, and returns its peak memory in kilobytes.
fn peak(home: &Home, path: &Path, more: &[&str]) -> (u64, Output) {
    let mut args = vec!["import".as_ref(), path.as_os_str()];
    args.extend(more.iter().map(OsStr::new));
    let prepared = home.prepare(&args);
    let command = prepared.command();
    let told = home.path().join("peak");
    let child = Command::new("python3")
        .args(["-c", MEASURE])
        .arg(&told)
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(home.project())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(child, &format!("import {}", path.display()));
    (fs::read_to_string(told).unwrap().parse().unwrap(), output)
}

/// Runs a program, and writes its peak memory to a file.
const MEASURE: &str = "
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
";

#[test]
fn what_is_endless_is_read_as_far_as_a_session_goes() {
    let home = Home::with(Backend::Sqlite);
    let zero = home.path().join("zero.json");
    symlink("/dev/zero", &zero).unwrap();
    let long = home.path().join("long.jsonl");
    let file = fs::File::create(&long).unwrap();
    file.set_len(1_000_000_000).unwrap();
    for path in [&zero, &long] {
        for more in [&[][..], &["--dry-run"]] {
            let (kilobytes, output) = peak(&home, path, more);
            output.code(5).notes("more than 100 MB");
            assert!(kilobytes < 300_000, "{kilobytes} kB for {}", path.display());
        }
    }
    // A pipe without a writer is empty, and does not block.
    let pipe = home.path().join("pipe.json");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (_, output) = peak(&home, &pipe, &[]);
    output.code(5).notes("it is empty");
}

/// A log with valid hashes whose last entry announces more entries of the same append.
fn unfinished(home: &Home) -> String {
    let opening = Body::Created(Created {
        session: SessionId::new(Uuid::from_u128(0x77)),
        kind: Kind::Chat,
        title: Some("unfinished".to_owned()),
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    });
    let new_entry = (0..8).map(|n| NewEntry {
        id: EntryId::new(Uuid::from_u128(n + 1)),
        at: "2026-11-15T20:46:27.5Z".parse().unwrap(),
        body: opening.clone(),
        redacted: BTreeMap::new(),
        author: None,
    });
    let chained = Entry::chain(&Head::START, new_entry.collect()).unwrap();
    assert!(chained[0].line().contains("\"then\":7"));
    let path = home.path().join("unfinished.jsonl");
    fs::write(&path, format!("{}\n", chained[0].line())).unwrap();
    path.display().to_string()
}

#[test]
fn a_log_that_announces_more_than_it_has_is_refused() {
    let home = &Home::new();
    let file = unfinished(home);
    for more in [&[][..], &["--dry-run"]] {
        let args = [&["import", file.as_str()], more].concat();
        home.run(&args).code(5).notes("announces 7 more");
    }
    assert!(home.all().is_empty());
    home.run(&["doctor"]).ok();
}

/// Removes the end of an append, as an import once could before this was checked.
fn cut_last_append(home: &Home, id: &str) {
    let id: SessionId = id.parse().unwrap();
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let cut = database
        .execute(
            "DELETE FROM entry WHERE seq > 1 AND session = (SELECT no FROM session WHERE id = ?1)",
            [id.uuid().as_bytes()],
        )
        .unwrap();
    assert!(cut > 0);
    drop(database);
    home.run(&["store", "rebuild"]).ok();
}

#[test]
fn an_unfinished_append_is_found_by_doctor_and_keeps_no_other_session_back() {
    let (source, target) = (Home::with(Backend::Sqlite), Home::with(Backend::Files));
    let cut = source.say("echo cut");
    let whole = source.say("echo whole");
    cut_last_append(&source, &cut);
    source.run(&["doctor"]).code(5).says("announces 1 more");
    let urls = [source.store_url(), target.store_url()];
    let copy = ["store", "copy", &urls[0], &urls[1]];
    let output = source.run(&copy).code(5);
    output.notes(&cut).notes("not copied: 1 session");
    assert_eq!(target.all().len(), 1);
    assert_eq!(target.show(&whole)["id"], whole);
    source.run(&["doctor", "--repair"]).repaired();
    source.run(&["doctor"]).ok();
    source.run(&copy).ok();
    assert_eq!(target.all().len(), 2);
}

#[test]
fn a_copy_goes_on_when_one_session_cannot_be_copied() {
    let id = "01936f5e-6c5a-7b3a-9d2f-5f3a9c1e0b7d";
    for (from, to) in [
        (Backend::Sqlite, Backend::Files),
        (Backend::Files, Backend::Sqlite),
    ] {
        let (source, target) = (Home::with(from), Home::with(to));
        for (home, words) in [(&source, "echo one"), (&target, "echo other")] {
            home.run(&["-p", words, "--session-id", id]).ok();
        }
        source.say("echo two");
        source.say("echo three");
        let urls = [source.store_url(), target.store_url()];
        let args = ["store", "copy", &urls[0], &urls[1], "--json"];
        let output = source.run(&args).code(5);
        assert_eq!(output.json()["failed"], json!([id]));
        assert_eq!(output.json()["copied"], 2);
        output.notes(id);
        assert_eq!(target.all().len(), 3);
    }
}
