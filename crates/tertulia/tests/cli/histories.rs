//! Imports of the histories of other agents' programs: everything arrives once, forks are forks, and
//! a file that grew continues its session.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::home::{Home, both, messages};

fn recorded(program: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tertulia-formats/fixtures")
        .join(program)
}

/// Imports files or folders. Returns what became of each session.
fn import(home: &Home, paths: &[PathBuf], more: &[&str]) -> Vec<Value> {
    let mut args = vec!["import".to_owned(), "--json".to_owned()];
    args.extend(more.iter().map(|more| (*more).to_owned()));
    args.extend(paths.iter().map(|path| path.display().to_string()));
    let document = home.run(&args).ok().json();
    document["imported"].as_array().unwrap().clone()
}

fn results(imported: &[Value]) -> Vec<&str> {
    let results = imported.iter().map(|one| one["result"].as_str().unwrap());
    results.collect()
}

/// Returns the session that was imported from a program's session of this id.
fn session(home: &Home, original: &str) -> Value {
    home.show(original)
}

/// Returns all sessions, also those after the first page.
fn all(home: &Home) -> Vec<Value> {
    let args = ["list", "--all", "--json", "--limit", "1000"];
    let document = home.run(&args).ok().json();
    document["sessions"].as_array().unwrap().clone()
}

const PROGRAMS: [&str; 4] = ["claude-code", "codex", "gemini-cli", "opencode"];

#[test]
fn everything_arrives_once_and_forks_are_forks() {
    both(|home| {
        let folders = PROGRAMS.map(recorded);
        let preview = import(home, &folders, &["--dry-run"]);
        assert!(home.all().is_empty());
        let imported = import(home, &folders, &[]);
        assert_eq!(results(&preview), results(&imported));
        let count = all(home).len();
        assert_eq!(count, imported.len());
        for again in import(home, &folders, &[]) {
            assert_eq!(again["result"], "known", "{again}");
        }
        assert_eq!(all(home).len(), count);
        home.run(&["doctor"]).ok();

        // (fork, origin, number of messages that they share)
        for (fork, origin, shared) in [
            // It refers to lines of its origin.
            (
                "01a1e094-2608-7402-9856-a23f4ebcd087",
                "01a1e094-1b23-7bb3-b1de-481e4e055140",
                6,
            ),
            // It copied them.
            (
                "0199a1b2-0000-7000-8000-00000000000b",
                "0199a1b2-0000-7000-8000-00000000000a",
                4,
            ),
            (
                "ses_e1f662e04ffeU7u24FSYwUAChU",
                "ses_e1f66cd56ffeheka7C4m8vAPFf",
                6,
            ),
        ] {
            let (fork, origin) = (session(home, fork), session(home, origin));
            assert_eq!(fork["parent"]["id"], origin["id"]);
            assert_eq!(fork["parent"]["relation"], "fork");
            let (own, theirs) = (messages(&fork), messages(&origin));
            assert_eq!(own[..shared], theirs[..shared]);
            assert!(own.len() > shared);
            let short = &fork["id"].as_str().unwrap()[28..];
            home.run(&["log", short, "--graph"]).ok().says("fork at");
        }
        // What was continued after a step back within a file.
        let main = session(home, "0b0b0b0b-1111-4111-8111-111111111111");
        let is_fork = |one: &&Value| one["parent"]["id"] == main["id"];
        assert_eq!(all(home).iter().filter(is_fork).count(), 1);
    });
}

#[test]
fn a_file_that_grew_continues_its_session() {
    let home = Home::new();
    for (program, name, original) in [
        (
            "codex",
            "multi-turn.jsonl",
            "01a1e094-1b23-7bb3-b1de-481e4e055140",
        ),
        (
            "gemini-cli",
            "session-2026-11-15T19-20-8ce2f3eb.jsonl",
            "8ce2f3eb-4a5b-43ae-aea2-95ae8dcd9086",
        ),
    ] {
        let whole = fs::read_to_string(recorded(program).join(name)).unwrap();
        let file = home.path().join(name);
        let lines: Vec<&str> = whole.lines().collect();
        for end in 1..=lines.len() {
            fs::write(&file, lines[..end].join("\n")).unwrap();
            let args = ["import", "--json", file.to_str().unwrap()];
            let output = home.run(&args);
            // The first lines have no messages.
            if output.stdout.contains("contains no message") {
                continue;
            }
            let document = output.ok().json();
            let result = &document["imported"][0]["result"];
            assert!(result != "forked", "{name}, line {end}");
        }
        let grown = session(&home, original);
        let other = Home::new();
        import(&other, &[recorded(program).join(name)], &[]);
        assert_eq!(
            messages(&grown),
            messages(&session(&other, original)),
            "{name}"
        );
    }
    assert_eq!(home.all().len(), 2);
}

/// Writes an exported session of opencode as the files of its older storage.
fn write_storage(storage: &Path, export: &Value) {
    let write = |path: PathBuf, value: &Value| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    let session = id(&export["info"]);
    let file = format!("session/global/{session}.json");
    write(storage.join(file), &export["info"]);
    for message in export["messages"].as_array().unwrap() {
        let message_id = id(&message["info"]);
        let file = format!("message/{session}/{message_id}.json");
        write(storage.join(file), &message["info"]);
        for part in message["parts"].as_array().unwrap() {
            let file = format!("part/{message_id}/{}.json", id(part));
            write(storage.join(file), part);
        }
    }
}

#[test]
fn a_storage_of_many_files_is_a_few_sessions() {
    let home = &Home::new();
    let storage = home.path().join("opencode/storage");
    for name in ["export-multi-1.json", "export-multi-4-fork.json"] {
        let export = fs::read(recorded("opencode").join(name)).unwrap();
        let mut export: Value = serde_json::from_slice(&export).unwrap();
        if name.contains("fork") {
            // Newer sessions have smaller ids, so that a fork comes first in its folder.
            export["info"]["id"] = json!("ses_0000");
        }
        write_storage(&storage, &export);
    }
    let output = home
        .run(&["import", "--json", storage.to_str().unwrap()])
        .ok();
    let document = output.json();
    assert_eq!(document["others"], 0);
    let imported = document["imported"].as_array().unwrap();
    assert_eq!(results(imported), ["created", "forked"]);
    // The export is the same session.
    let known = import(
        home,
        &[recorded("opencode").join("export-multi-1.json")],
        &[],
    );
    assert_eq!(results(&known), ["known"]);
}

#[test]
fn a_database_is_a_history() {
    let home = &Home::new();
    let folder = home.folder("share");
    let path = folder.join("opencode.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            r#"CREATE TABLE session (id, parent_id, directory, title, version, time_created);
            CREATE TABLE message (id, session_id, time_created, data);
            CREATE TABLE part (id, message_id, session_id, data);
            INSERT INTO session VALUES ('ses_1', NULL, '/w', 'A title', '1', 1700000000000);
            INSERT INTO message VALUES ('msg_1', 'ses_1', 1, '{"role":"user","time":{"created":1700000000000}}');
            INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', '{"type":"text","text":"hello there"}');"#,
        )
        .unwrap();
    let imported = import(home, &[folder], &[]);
    assert_eq!(results(&imported), ["created"]);
    assert_eq!(home.said("ses_1"), ["hello there"]);
    assert_eq!(session(home, "ses_1")["title"], "A title");
    let database = fs::read(&path).unwrap();
    let args = ["import", "--from", "opencode", "-"];
    let output = home.prepare(&args).stdin(&database).run();
    output.code(5).notes("name its file");
}

#[test]
fn a_fork_without_its_origin_says_so() {
    let home = Home::new();
    let fork = recorded("codex").join("forked.jsonl");
    let output = home.run(&["import", fork.to_str().unwrap()]).ok();
    output.says("lost: its beginning, which is in session 01a1e094-1b23-7bb3-b1de-481e4e055140");
    let home = Home::new();
    let origin = recorded("codex").join("multi-turn.jsonl");
    home.run(&["import", origin.to_str().unwrap(), fork.to_str().unwrap()])
        .ok()
        .lacks("its beginning");
}

#[test]
fn compressed_files_are_read_and_damaged_ones_named() {
    let home = &Home::new();
    let folder = home.folder("sessions");
    let name = "rollout-2026-01-02T03-04-05-01a1e094-1b23-7bb3-b1de-481e4e055140.jsonl.zst";
    let plain = recorded("codex").join("reasoning.jsonl");
    let compressed = zstd::encode_all(&fs::read(&plain).unwrap()[..], 3).unwrap();
    fs::write(folder.join(name), compressed).unwrap();
    let folder = folder.to_str().unwrap();
    home.run(&["import", folder]).ok();
    assert_eq!(home.all().len(), 1);
    home.run(&["import", plain.to_str().unwrap()])
        .ok()
        .says("nothing new");
    let damaged = "rollout-2026-01-02T03-04-06-01a1e094-1b23-7bb3-b1de-481e4e055141.jsonl.zst";
    let path = Path::new(folder).join(damaged);
    fs::write(&path, b"\x28\xb5\x2f\xfd\x00").unwrap();
    let output = home.run(&["import", folder]);
    output.code(5).notes(damaged);
    assert_eq!(home.all().len(), 1);
}

#[test]
fn an_original_that_was_removed_for_good_is_imported_anew() {
    both(|home| {
        home.settings("[retention]\ntrash = \"0s\"\n");
        let original = recorded("codex").join("multi-turn.jsonl");
        let original = original.to_str().unwrap();
        home.run(&["import", original]).ok();
        let before = home.run(&["stats", "--all", "--json"]).ok().json();
        let id = home.all()[0]["id"].as_str().unwrap().to_owned();
        home.run(&["fork", &format!("{id}:5")]).ok();
        home.run(&["rm", "-y", &id]).ok();
        home.run(&["prune", "-y"]).ok();
        assert_eq!(home.all().len(), 1);
        home.run(&["import", original]).ok().lacks("a fork of");
        // Not a fork of its own fork.
        assert_eq!(home.show(&id)["parent"], Value::Null);
        let after = home.run(&["stats", "--all", "--json"]).ok().json();
        assert_eq!(after["totals"]["tokens"], before["totals"]["tokens"]);
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn two_imports_at_once_import_once() {
    both(|home| {
        let folder = recorded("codex");
        let args = ["import", folder.to_str().unwrap(), "--json"];
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| home.run(&args));
            (home.run(&args), other.join().unwrap())
        });
        let codes = [one.status.code(), other.status.code()];
        let sessions = home.all().len();
        // What one of them says of damaged files, both say.
        assert_eq!(codes[0], codes[1], "{one:?} {other:?}");
        let again = home.run(&args);
        assert_eq!(again.status.code(), codes[0], "{again:?}");
        assert_eq!(home.all().len(), sessions);
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn usage_of_an_export_that_is_imported_again_counts_once() {
    let home = &Home::new();
    let original = recorded("codex").join("multi-turn.jsonl");
    home.run(&["import", original.to_str().unwrap()]).ok();
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    let before = home.run(&["stats", "--all", "--json"]).ok().json();
    for format in ["codex", "claude-code"] {
        let file = home.path().join(format).with_extension("jsonl");
        let file = file.to_str().unwrap();
        home.run(&["export", &id, "--format", format, "-o", file])
            .ok();
        home.run(&["import", file]).ok();
    }
    let after = home.run(&["stats", "--all", "--json"]).ok().json();
    assert_eq!(after["totals"]["tokens"], before["totals"]["tokens"]);
}

const COMPACTED: &str = "34258832-1b96-4729-b29e-86ca619db867";

#[test]
fn a_subagent_is_a_child_of_its_session() {
    both(|home| {
        // The child is imported first.
        let [child, parent] =
            ["subagent.jsonl", "compacted.jsonl"].map(|name| recorded("claude-code").join(name));
        import(home, std::slice::from_ref(&child), &[]);
        import(home, std::slice::from_ref(&parent), &[]);
        let session = session(home, COMPACTED);
        let id = session["id"].as_str().unwrap();
        let original = format!("{COMPACTED}/agent-a7b6b471962cc8550");
        let child = home.show(&original);
        assert_eq!(child["parent"]["id"], id);
        assert_eq!(child["parent"]["relation"], "subagent");
        let listed = all(home);
        let listed = listed.iter().find(|one| one["id"] == child["id"]).unwrap();
        assert_eq!(listed["parent"], child["parent"]);
        let said = format!("subagent of {}", &id[28..]);
        home.run(&["show", &original]).ok().says(&said);
        let graph = home.run(&["log", "--graph", COMPACTED]).ok();
        graph.says("└─").says("subagent · 2 messages");
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn words_of_a_program_and_its_compaction_are_what_they_are() {
    let home = &Home::new();
    import(
        home,
        &[recorded("claude-code").join("compacted.jsonl")],
        &[],
    );
    let session = session(home, COMPACTED);
    assert_eq!(session["title"], "first words");
    let entries = session["entries"].as_array().unwrap();
    let human = entries
        .iter()
        .filter(|entry| entry["speaker"]["kind"] == "human");
    let human: Vec<&str> = human
        .map(|entry| entry["content"].as_str().unwrap())
        .collect();
    assert!(
        human.iter().all(|words| !words.starts_with('<')),
        "{human:?}"
    );
    let compacted = entries
        .iter()
        .find(|entry| entry["type"] == "compacted")
        .unwrap();
    let upto = compacted["upto"].as_u64().unwrap();
    let kept = entries
        .iter()
        .find(|entry| entry["seq"] == upto + 1)
        .unwrap();
    assert_eq!(kept["content"], "tool said: echo #1: look around");
    home.run(&["show", COMPACTED])
        .ok()
        .says("summarised the session up to entry");
    // Agents of other programs are sent the summary in place of what it covers.
    for (format, mark) in [("claude-code", "isCompactSummary"), ("codex", "compacted")] {
        let file = home.path().join(format).with_extension("jsonl");
        let name = file.to_str().unwrap();
        home.run(&["export", COMPACTED, "--format", format, "-o", name])
            .ok();
        let text = fs::read_to_string(&file).unwrap();
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}"));
        assert!(place("second words") < place(mark));
        assert!(place(mark) < place("tool said: echo #1"));
        assert!(place(mark) < place("after the summary"));
    }
}

#[test]
fn what_is_no_conversation_is_counted_once_for_all_files() {
    let home = Home::new();
    let folder = recorded("claude-code").display().to_string();
    let output = home.run(&["import", &folder]).ok().lacks("not part of");
    let lines = output.stdout.lines();
    let skipped: Vec<&str> = lines.filter(|line| line.contains("skipped")).collect();
    assert_eq!(skipped.len(), 1, "{output:?}");
    assert!(
        skipped[0].starts_with("skipped (not conversation): "),
        "{skipped:?}"
    );
    assert!(skipped[0].contains("last-prompt ("), "{skipped:?}");
    // Nothing is new: nothing was skipped.
    home.run(&["import", &folder]).ok().lacks("skipped");
}
