//! Which sessions changed the lines of a file.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::home::{Home, both};

/// Writes a session of Claude Code with these tool calls, each with its result.
fn history(home: &Home, session: &str, calls: &[(&str, Value, &str)]) -> String {
    let mut lines = vec![json!({
        "type": "user", "uuid": format!("{session}-p"), "parentUuid": null, "sessionId": session,
        "timestamp": "2026-01-02T03:04:05Z", "cwd": home.project(),
        "message": { "role": "user", "content": format!("work of {session}") },
    })];
    for (n, (tool, input, output)) in calls.iter().enumerate() {
        let id = format!("{session}-{n}");
        let time = format!("2026-01-02T03:04:{:02}Z", 10 + n);
        lines.push(json!({
            "type": "assistant", "uuid": format!("{id}-a"), "parentUuid": null, "sessionId": session,
            "timestamp": time, "message": { "id": id, "role": "assistant", "model": "m",
                "content": [{ "type": "tool_use", "id": id, "name": tool, "input": input }] },
        }));
        lines.push(json!({
            "type": "user", "uuid": format!("{id}-r"), "parentUuid": null, "sessionId": session,
            "timestamp": time, "message": { "role": "user",
                "content": [{ "type": "tool_result", "tool_use_id": id, "content": output }] },
        }));
    }
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let file = home.path().join(format!("{session}.jsonl"));
    fs::write(&file, text.join("\n")).unwrap();
    file.display().to_string()
}

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lines_belong_to_the_calls_that_wrote_them() {
    both(|home| {
        let file = home.project().join("code.rs");
        let path = file.display().to_string();
        let whole = json!({ "file_path": path, "content": "fn main() {\n    first();\n}\n" });
        let edit = json!({ "file_path": path, "old_string": "    first();",
            "new_string": "    first();\n    second();" });
        let one = history(home, "one", &[("Write", whole, "written")]);
        let two = history(home, "two", &[("Edit", edit, "edited")]);
        home.run(&["import", &one, &two]).ok();
        fs::write(
            &file,
            "fn main() {\n    first();\n    second();\n}\n// by hand\n",
        )
        .unwrap();
        let found = home.run(&["blame", &path, "--json"]).ok().json();
        let changes = found["changes"].as_array().unwrap();
        let of = |title: &str| {
            let mut all = changes.iter();
            all.find(|change| change["title"] == title).unwrap()
        };
        assert_eq!(of("work of one")["lines"], json!([[1, 2]]));
        assert_eq!(of("work of two")["lines"], json!([[3, 3]]));
        assert_eq!(of("work of two")["tool"], "Edit");
        assert_eq!(found["unknown"], json!([[4, 5]]));
        let place = format!("{path}:3");
        let line = home.run(&["blame", &place]).ok();
        line.says("line 3").says("work of two").notes("fork");
        let place = format!("{path}:5");
        let output = home.run(&["blame", &place]).ok();
        output.says("not known: line 5").notes("a person, a script");
        for (wrong, words) in [
            (":9", "5 lines"),
            (":3-2", "FROM comes before TO"),
            (":0", "counted from 1"),
        ] {
            let place = format!("{path}{wrong}");
            home.run(&["blame", &place]).code(2).notes(words);
        }
        home.run(&["blame", "nowhere.rs"]).code(3);
        fs::write(home.project().join("short.rs"), "one\n").unwrap();
        home.run(&["blame", "short.rs:9"])
            .code(2)
            .notes("short.rs has 1 line\n");
    });
}

#[test]
fn the_hint_names_the_store_once() {
    let home = Home::new();
    let data = home.path().join("other").display().to_string();
    let writes = r#"use file_write {"path":"made.rs","content":"a line of its own\n"}"#;
    let said = [
        "chat",
        "--data-dir",
        &data,
        "--approve",
        "all",
        "-p",
        writes,
    ];
    home.run(&said).ok();
    let output = home.run(&["blame", "made.rs", "--data-dir", &data]).ok();
    let command = format!("`tertulia --data-dir {data} show ");
    output.says("line 1").notes(&command);
}

#[test]
fn commits_that_a_session_made_lead_to_it() {
    let home = Home::new();
    let folder = home.project();
    git(&folder, &["init", "-q", "-b", "main"]);
    fs::write(folder.join("made.txt"), "by a script\n").unwrap();
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "x"]);
    let short = git(&folder, &["rev-parse", "--short=7", "HEAD"]);
    let output = format!("[main (root-commit) {}] x\n 1 file changed", short.trim());
    let calls = [(
        "Bash",
        json!({ "command": "git commit -m x" }),
        output.as_str(),
    )];
    let file = history(&home, "script", &calls);
    home.run(&["import", &file]).ok();
    let path = folder.join("made.txt").display().to_string();
    let found = home.run(&["blame", &path, "--json"]).ok().json();
    assert_eq!(found["changes"][0]["via"], "commit", "{found}");
    assert_eq!(found["changes"][0]["title"], "work of script");
    assert_eq!(found["unknown"], json!([]));
}
