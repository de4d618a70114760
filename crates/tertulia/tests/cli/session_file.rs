//! `--session-file`: resuming a session from a file, and writing it back.

use std::fs;

use serde_json::Value;

use crate::home::Home;
use crate::saves::talk;

const ASK: &str = "what did I say?";

/// Writes a file with a session of another home, with the message "one".
fn elsewhere(home: &Home) -> String {
    let other = Home::new();
    other.say("one");
    let file = home.path().join("shared.jsonl").display().to_string();
    let name = file.as_str();
    let export = ["export", "@", "--format", "jsonl", "-o", name];
    other.run(&export).ok();
    file
}

#[test]
fn a_log_in_a_file_goes_on_and_is_written_back() {
    let home = &Home::new();
    let file = elsewhere(home);
    let output = home.run(&["chat", "--session-file", &file, "-p", ASK]).ok();
    assert_eq!(output.stdout, "You said:\n\n1. one\n");
    let written = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(written.lines().last().unwrap()).unwrap();
    assert_eq!(last["content"], "You said:\n\n1. one");
    // A third machine continues from there, also with a bare `--resume`.
    let third = Home::new();
    let args = ["chat", "--resume", "--session-file", &file, "-p", ASK];
    let output = third.run(&args).ok();
    assert!(output.stdout.contains("2. what did I say?"));
    assert_eq!(
        third.run(&["import", &file, "--json"]).ok().json()["imported"][0]["result"],
        "known"
    );
}

#[test]
fn a_snapshot_goes_on_as_a_snapshot() {
    let home = Home::new();
    let save = talk("session-1-abc")
        .team("demo")
        .says("you", "human", "hello")
        .says("ada", "ai", "  fn a() {\n\n  }")
        .write(&home);
    home.run(&["team", "init"]).ok();
    let file = save.display().to_string();
    let args = [
        "team",
        "demo",
        "--session-file",
        &file,
        "-p",
        "[NEXT: ada] echo x",
    ];
    let output = home.run(&args).ok();
    assert!(output.stdout.starts_with("Ada:\nx\n"));
    let written: Value = serde_json::from_str(&fs::read_to_string(&save).unwrap()).unwrap();
    assert_eq!(written["schemaVersion"], "1.0");
    let said = written["context"]["messages"].as_array().unwrap();
    assert_eq!(said[1]["content"], "  fn a() {\n\n  }");
    assert_eq!(said[3]["content"], "x\n\n[NEXT: ben]");
}

#[test]
fn a_file_that_is_none_is_told_and_left_alone() {
    let home = Home::new();
    let file = home.path().join("notes.json");
    let name = file.display().to_string();
    let args = ["chat", "--session-file", &name, "-p", "hi"];
    home.run(&args).code(3).notes("notes.json cannot be read");
    fs::write(&file, "{\"a\": 1}").unwrap();
    home.run(&args).code(5).notes("not a session");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1}");
    let both = ["chat", "--session-file", &name, "--resume", "x", "-p", "hi"];
    home.run(&both).code(2).notes("--resume names one session");
    assert!(home.all().is_empty());
}

#[test]
fn two_programs_do_not_write_one_file() {
    let home = Home::new();
    let file = elsewhere(&home);
    let lock = fs::File::create(format!("{file}.lock")).unwrap();
    lock.lock().unwrap();
    let before = fs::read(&file).unwrap();
    home.run(&["chat", "--session-file", &file, "-p", "two"])
        .code(4)
        .notes("another program is writing to");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_file_that_cannot_be_written_stops_nothing() {
    let home = Home::new();
    let folder = home.folder("gone");
    let file = elsewhere(&home);
    let moved = folder.join("talk.jsonl");
    fs::rename(&file, &moved).unwrap();
    let name = moved.display().to_string();
    let mark = home.path().join("mark").display().to_string();
    // The agent removes the folder while it answers.
    home.settings(&format!(
        "[agents.thief]\ntype = \"command\"\ncommand = \"sh\"\nargs = [\"-c\", \"rm -r {} && echo done > {mark} && echo stolen\"]\nconfine = false\n",
        folder.display()
    ));
    let args = [
        "chat",
        "--agent",
        "thief",
        "--session-file",
        &name,
        "-p",
        "two",
    ];
    let output = home.run(&args).ok();
    assert_eq!(output.stdout, "stolen\n");
    output.notes("saved, but not in the session file");
    assert!(home.run(&["show", "@"]).ok().stdout.contains("stolen"));
}
