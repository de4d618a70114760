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
    let lock = fs::File::open(&file).unwrap();
    lock.lock().unwrap();
    let before = fs::read(&file).unwrap();
    home.run(&["chat", "--session-file", &file, "-p", "two"])
        .code(4)
        .notes("another program is writing to");
    assert_eq!(fs::read(&file).unwrap(), before);
    drop(lock);
    home.run(&["chat", "--session-file", &file, "-p", "two"])
        .ok();
    assert_ne!(fs::read(&file).unwrap(), before);
    let beside = fs::read_dir(home.path()).unwrap();
    let names = beside.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("shared")).count(), 1);
}

const CLAUDE_CODE: &str = include_str!("../../../../fuzz/seeds/claude_code/session.jsonl");
const CODEX: &str = include_str!("../../../../fuzz/seeds/codex/tool.jsonl");

/// Goes on in a file of another program twice. Returns the lines that it got.
fn continued(home: &Home, content: &str) -> (String, Vec<Value>) {
    let file = home.path().join("theirs.jsonl").display().to_string();
    fs::write(&file, content).unwrap();
    for words in ["next words", ASK] {
        let args = [
            "chat",
            "--agent",
            "demo",
            "--session-file",
            &file,
            "-p",
            words,
        ];
        let output = home.run(&args).ok();
        assert!(!output.stderr.contains("only read"), "{}", output.stderr);
    }
    let written = fs::read_to_string(&file).unwrap();
    let more = written.strip_prefix(content).expect("lines are appended");
    let lines = more.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines = lines.collect();
    // An import of the file knows the session.
    let imported = home.run(&["import", &file, "--json"]).ok().json();
    assert_eq!(imported["imported"][0]["result"], "known", "{imported}");
    assert_eq!(home.all().len(), 1);
    (file, lines)
}

#[test]
fn a_file_of_claude_code_gets_lines_that_follow_its_last_one() {
    let home = Home::new();
    let (_, lines) = continued(&home, CLAUDE_CODE);
    let theirs = CLAUDE_CODE
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut main = theirs.filter(|line| line["uuid"].is_string() && line["isSidechain"] != true);
    let mut before = main.next_back().unwrap();
    let said: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(said, ["user", "assistant", "user", "assistant"]);
    for line in &lines {
        assert_eq!(line["parentUuid"], before["uuid"]);
        assert_eq!(line["sessionId"], before["sessionId"]);
        before = line.clone();
    }
    assert_eq!(lines[0]["message"]["content"], "next words");
}

#[test]
fn a_file_of_codex_gets_items_and_events() {
    let home = Home::new();
    let (_, lines) = continued(&home, CODEX);
    let items = lines.iter().filter(|line| line["type"] == "response_item");
    let texts: Vec<&Value> = items
        .map(|line| &line["payload"]["content"][0]["text"])
        .collect();
    assert_eq!((texts.len(), texts[0]), (4, &Value::from("next words")));
    let last: Value = serde_json::from_str(CODEX.lines().last().unwrap()).unwrap();
    let after = last["ordinal"].as_u64().unwrap();
    let ordinals = lines.iter().map(|line| line["ordinal"].as_u64());
    assert!(ordinals.eq((after + 1..).take(lines.len()).map(Some)));
}

#[test]
fn a_file_that_its_program_continued_meanwhile_is_not_written() {
    let home = Home::new();
    let file = home.path().join("theirs.jsonl");
    fs::write(&file, CLAUDE_CODE).unwrap();
    // The agent adds a line while it answers.
    home.settings(&format!(
        "[agents.other]\ntype = \"command\"\ncommand = \"sh\"\nargs = [\"-c\", \"echo '{{}}' >> {} && echo answer\"]\nconfine = false\n",
        file.display()
    ));
    let name = file.display().to_string();
    home.run(&[
        "chat",
        "--agent",
        "other",
        "--session-file",
        &name,
        "-p",
        "two",
    ])
    .ok()
    .notes("was changed meanwhile; `tertulia import ");
    let expected = format!("{CLAUDE_CODE}{{}}\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
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
