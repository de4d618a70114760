//! Commands in hints work as printed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::{Home, Output, finish, short};

/// Returns the commands in the hints and notes of an output, without the program name.
pub fn commands(output: &Output) -> Vec<String> {
    let parts = output.stderr.split('`').skip(1).step_by(2);
    let commands = parts.filter_map(|part| part.strip_prefix("tertulia"));
    commands.map(str::to_owned).collect()
}

/// Runs the command of a hint through a shell, in the project's folder and without other flags.
pub fn follow(home: &Home, command: &str) -> Output {
    let shell = format!("exec \"$0\" {command}");
    let child = Command::new("sh")
        .args(["-c", &shell, env!("CARGO_BIN_EXE_tertulia")])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    finish(child.unwrap(), command)
}

const ELSEWHERE: [&[&str]; 3] = [
    &["--store", "files:a folder"],
    &["--store", "sqlite:it's.db"],
    &["--data-dir", "moved here"],
];

#[test]
fn a_hint_works_in_the_store_that_was_named() {
    for flags in ELSEWHERE {
        let home = Home::new();
        home.say("one");
        home.run(&["rename", "@", "mine"]).ok();
        let run = |args: &[&str]| home.run(&[flags, args].concat());
        let talk = [
            "chat",
            "--agent",
            "demo",
            "--output-format",
            "json",
            "-p",
            "two",
        ];
        let id = run(&talk).ok().json()["session_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let removed = run(&["rm", "-y", "@"]).ok();
        assert_eq!(
            run(&["list", "--json"]).ok().json()["sessions"]
                .as_array()
                .unwrap()
                .len(),
            0
        );
        follow(&home, &commands(&removed)[0])
            .ok()
            .notes("restored from the trash");
        assert_eq!(home.show("@")["title"], "mine");
        assert_eq!(run(&["show", &id, "--json"]).ok().json()["title"], "two");
        let missing = run(&["show", "nosuch"]).code(3);
        follow(&home, &commands(&missing)[0]).ok().says(&short(&id));
        let wrong = run(&["rm", "-y", "@:2"]).code(2);
        follow(&home, &commands(&wrong)[0]).ok().notes("Forked");
        let wrong = run(&["pair", "--resume", &id, "x"]).code(2);
        let command = &commands(&wrong)[0];
        follow(&home, &format!("{command} -p hello --agent demo")).ok();
    }
}

#[test]
fn a_hint_names_the_socket_that_was_named() {
    let home = Home::new();
    let output = home.run(&["stop", "--all", "--socket", "a b.sock"]).code(3);
    let socket = home.project().join("a b.sock");
    output.notes(&format!(
        "`tertulia serve --socket '{}' --detach`",
        socket.display()
    ));
}

#[test]
fn a_hint_under_json_is_the_same() {
    let home = Home::new();
    let error = home
        .run(&["--store", "files:x", "show", "nosuch", "--json"])
        .code(3)
        .error();
    let place = home.project().join("x");
    let expected = format!("`tertulia --store files:{} list --all`", place.display());
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains(&expected), "{hint}");
}

#[test]
fn the_hint_for_a_database_beyond_repair_moves_all_of_it() {
    let home = Home::new();
    home.say("one");
    let database = home.database();
    let header = std::fs::read(&database).unwrap()[..4096].to_vec();
    std::fs::write(&database, &header).unwrap();
    let output = home.run(&["doctor", "--repair"]).code(5);
    // As a program leaves it that is killed.
    let wal = database.with_file_name("tertulia.db-wal");
    std::fs::write(&wal, "words").unwrap();
    let hint = output.stderr.split("empty store: ").nth(1).unwrap();
    let command = hint.lines().next().unwrap();
    let moved = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(moved.status.success(), "{command}: {moved:?}");
    let folder = database.with_file_name("damaged-store");
    let kept = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(kept("tertulia.db"), header);
    assert_eq!(kept("tertulia.db-wal"), b"words");
    assert!(!database.exists() && !wal.exists());
    home.say("two");
    assert_eq!(home.all().len(), 1);
}

#[test]
fn a_server_names_the_store_that_unsaved_words_belong_to() {
    let home = Home::new();
    let flags = ["--store", "files:a folder"];
    let serve = home.prepare(&[&flags[..], &["serve", "--stdio"]].concat());
    let mut serve = serve.command();
    serve.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = serve.stderr(Stdio::piped()).spawn().unwrap();
    let mut ask = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let place = home.project().join("a folder");
    let aside = home.path().join("aside");
    for words in ["echo one", "echo two"] {
        let query = json!({ "type": "query", "query": words });
        writeln!(ask, "{query}").unwrap();
        loop {
            let mut line = String::new();
            assert!(answers.read_line(&mut line).unwrap() > 0, "no answer");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["type"] == "complete" {
                break;
            }
        }
        if words == "echo one" {
            std::fs::rename(&place, &aside).unwrap();
            std::fs::write(&place, "in the way").unwrap();
        }
    }
    drop(ask);
    child.stdout = Some(answers.into_inner());
    let ended = finish(child, "serve").code(1);
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    let commands = commands(&ended);
    let import = commands.iter().find(|it| it.contains(" import ")).unwrap();
    follow(&home, import).ok();
    let hits = home.run(&[&flags[..], &["search", "--all", "two", "--json"]].concat());
    assert!(hits.ok().json()["total"].as_u64().unwrap() > 0, "{import}");
}
