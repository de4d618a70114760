//! Finding the histories of other programs, and following them while they grow.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::json;

use crate::home::{Home, both, until};

/// A line of Claude Code's session files.
fn line(session: &str, uuid: &str, parent: &str, words: &str) -> String {
    let line = json!({
        "type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": session, "cwd": "/w",
        "timestamp": "2026-01-02T03:04:05Z", "message": { "role": "user", "content": words },
    });
    format!("{line}\n")
}

fn projects(home: &Home) -> PathBuf {
    let folder = home.path().join(".claude/projects/w");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn append(file: &Path, text: &str) {
    let file = fs::OpenOptions::new().create(true).append(true).open(file);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

/// A process that is ended with the test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn histories_are_listed_before_anything_is_imported() {
    let home = Home::new();
    let discover = |args: &[&str]| {
        let args = [&["import", "--discover"], args].concat();
        home.prepare(&args).env("HOME", home.path()).run()
    };
    discover(&[]).code(0).notes("no history found");
    append(
        &projects(&home).join("a.jsonl"),
        &line("s", "1", "", "hello"),
    );
    discover(&[])
        .ok()
        .says("claude-code")
        .notes("--discover --yes");
    assert!(home.all().is_empty());
    let found = discover(&["--json"]).ok().json();
    assert_eq!(found["found"][0]["program"], "claude-code");
    assert_eq!(found["found"][0]["files"], 1);
    assert!(home.all().is_empty());
    discover(&["--dry-run"]).ok().says("would be imported");
    assert!(home.all().is_empty());
    discover(&["--yes"]).ok().says("imported as");
    assert_eq!(home.said("s"), ["hello"]);
    discover(&["--yes"])
        .ok()
        .says("1 session imported before, nothing new");
    discover(&["--from", "codex", "x.jsonl"]).code(2);
}

#[test]
fn a_watched_history_is_followed() {
    both(|home| {
        let folder = projects(home);
        let first = folder.join("a.jsonl");
        append(&first, &line("s", "1", "", "one"));
        let args = ["import", &folder.display().to_string(), "--watch"];
        let child = home
            .prepare(&args)
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let _watching = Watching(child.unwrap());
        let said = |session: &str, expected: &[&str]| {
            until("the import of what was added", || {
                let shown = home.run(&["show", session, "--json"]);
                let known = shown.status.success() && home.said(session) == expected;
                known.then_some(())
            });
        };
        said("s", &["one"]);
        append(&first, &line("s", "2", "1", "two"));
        said("s", &["one", "two"]);
        // Half a line is no message yet.
        let third = line("s", "3", "2", "three");
        append(&first, &third[..20]);
        let deeper = folder.join("deeper");
        fs::create_dir(&deeper).unwrap();
        append(&deeper.join("b.jsonl"), &line("t", "4", "", "other"));
        said("t", &["other"]);
        append(&first, &third[20..]);
        said("s", &["one", "two", "three"]);
    });
}

#[test]
fn a_folder_is_watched_by_a_relative_path_and_files_may_vanish() {
    let home = &Home::new();
    let folder = home.project().join("kept");
    fs::create_dir(&folder).unwrap();
    append(&folder.join("a.jsonl"), &line("s", "1", "", "one"));
    let child = home
        .prepare(&["import", "kept", "--watch"])
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _watching = Watching(child.unwrap());
    let said = |session: &str, expected: &[&str]| {
        until("the import of what was added", || {
            let shown = home.run(&["show", session, "--json"]);
            let known = shown.status.success() && home.said(session) == expected;
            known.then_some(())
        });
    };
    said("s", &["one"]);
    // Gone or renamed before the files are read.
    append(&folder.join("gone.jsonl"), &line("g", "2", "", "gone"));
    fs::remove_file(folder.join("gone.jsonl")).unwrap();
    append(&folder.join("b.jsonl"), &line("t", "3", "", "other"));
    fs::rename(folder.join("b.jsonl"), folder.join("c.jsonl")).unwrap();
    said("t", &["other"]);
    append(&folder.join("a.jsonl"), &line("s", "4", "1", "two"));
    said("s", &["one", "two"]);
}

#[test]
fn a_history_in_the_current_folder_is_found() {
    let home = Home::new();
    let history = "# aider chat started at 2025-03-01 09:00:00\n\n#### hello  \n\nHi.\n";
    fs::write(home.project().join(".aider.chat.history.md"), history).unwrap();
    let args = ["import", "--discover", "--json"];
    let found = home
        .prepare(&args)
        .env("HOME", home.path())
        .run()
        .ok()
        .json();
    assert_eq!(found["found"][0]["program"], "aider", "{found}");
    assert_eq!(found["found"].as_array().unwrap().len(), 1, "{found}");
}

#[test]
fn what_is_not_there_is_not_watched() {
    let home = Home::new();
    home.run(&["import", "--watch", "nosuch"])
        .code(3)
        .notes("nosuch");
}
