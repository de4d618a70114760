//! The clients in `examples/` work.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::stage::Server;
use crate::home::Home;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn ran(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; ./test installs what the tests need")
    });
    let words = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {words}");
    String::from_utf8(stdout).unwrap()
}

#[test]
fn the_python_client_does_everything() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let said = ran(Command::new("python3")
        .arg(example("client.py"))
        .arg(&server.path));
    let heard = r#""Look:\n```python\nif True:\n    print('\u00e9')\n```""#;
    let expected = format!(
        "with demo\nheard {heard} completed\nlisted ['From Python']\nfound True\nintact True\ndeleted True\n"
    );
    assert_eq!(said, expected);
    let trash = home
        .run(&["list", "--all", "--trash", "--json"])
        .ok()
        .json();
    assert_eq!(trash["sessions"].as_array().unwrap().len(), 1);
    server.end().ok();
}

#[test]
fn the_shell_client_asks_one_question() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let said = ran(Command::new("sh")
        .arg(example("client.sh"))
        .arg(&server.path)
        .args(["echo", "a \"quoted\" \\ word"]));
    let answers: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(super::stage::text(&answers), "a \"quoted\" \\ word");
    assert_eq!(answers.last().unwrap()["status"], "completed");
    server.end().ok();
}

#[test]
fn the_clients_say_what_they_need() {
    for (program, name) in [("python3", "client.py"), ("sh", "client.sh")] {
        let output = Command::new(program).arg(example(name)).output().unwrap();
        assert!(!output.status.success(), "{name}");
        let words = String::from_utf8(output.stderr).unwrap();
        let usage = format!("usage: {name} SOCKET");
        assert!(
            words.starts_with(&usage) && words.lines().count() == 1,
            "{words}"
        );
    }
}
