//! `export --format snapshot`, and what `show` prints for team sessions only.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tertulia_formats::snapshot::Snapshot;

use crate::home::{Backend, Home, keys};
use crate::saves::{import, talk};

/// Code as agents write it: indented, with blank lines, with lines that begin with a brace, and
/// with text that would be markers elsewhere.
const CODE: &str = "Look:\n\n```rust\nfn main() {\n\n    if x {\n\ty();\n    }\n}\n{ \"a\": 1 }\n[NEXT: ben]\n[TEAM_TASK: none]\n```\n\n   \n{\"type\":\"done\"}\n[DROP: ALL]  ";

fn snapshot(home: &Home, reference: &str) -> String {
    let args = ["export", reference, "--format", "snapshot"];
    home.run(&args).ok().stdout
}

/// Imports a team session into this home and returns its id.
fn a_talk(home: &Home) -> String {
    let mut save = talk("session-1").task("Ship it");
    save = save.says("ana", "human", "Show me. [NEXT: Ada, nobody]");
    save = save.says("ada", "ai", CODE);
    save.messages[0]["routing"] = json!({
        "rawNextMarkers": ["Ada", "nobody"],
        "resolvedAddressees": [
            {"identifier": "Ada", "memberId": "ada", "memberName": "ada"},
            {"identifier": "nobody", "memberId": null, "memberName": null},
        ],
    });
    save.at(30).write(home);
    import(home)[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn code_survives_export_and_import_and_export_byte_for_byte() {
    for (from, to) in [
        (Backend::Sqlite, Backend::Files),
        (Backend::Files, Backend::Sqlite),
    ] {
        let (from, to) = (Home::with(from), Home::with(to));
        let id = a_talk(&from);
        assert_eq!(from.said(&id)[1], CODE);
        let first = snapshot(&from, &id);
        let import = to.prepare(&["import", "-"]).stdin(&first).run().ok();
        import.says("imported as");
        assert_eq!(to.said(&id)[1], CODE);
        assert_eq!(snapshot(&to, &id), first);
        // Both are one log, however often it is exported and imported.
        let raw = |home: &Home| home.run(&["show", &id, "--raw"]).ok().stdout;
        assert_eq!(raw(&to), raw(&from));
        let back = from.prepare(&["import", "-"]).stdin(&first).run().ok();
        back.says("nothing new");
    }
}

#[test]
fn the_document_is_valid_and_has_what_the_form_has() {
    let home = &Home::new();
    let id = a_talk(home);
    let text = snapshot(home, &id);
    Snapshot::read(&text, "the export").unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let fields = [
        "context",
        "createdAt",
        "metadata",
        "schemaVersion",
        "sessionId",
        "teamId",
        "updatedAt",
    ];
    assert_eq!(keys(&document), fields);
    assert!(
        text.starts_with("{\n  \"schemaVersion\": \"1.0\""),
        "{text}"
    );
    assert_eq!(
        (&document["teamId"], &document["sessionId"]),
        (&json!("review"), &json!("session-1"))
    );
    assert_eq!(document["createdAt"], "2025-11-25T10:00:00Z");
    assert_eq!(document["updatedAt"], "2025-11-25T10:30:00Z");
    assert_eq!(document["context"]["teamTask"], "Ship it");
    assert_eq!(
        document["context"]["messages"][0]["routing"],
        json!({
            "rawNextMarkers": ["Ada", "nobody"],
            "resolvedAddressees": [
                {"identifier": "Ada", "memberId": "ada", "memberName": "ada"},
                {"identifier": "nobody", "memberId": null, "memberName": null},
            ],
        })
    );
    assert_eq!(document["metadata"]["messageCount"], 2);
}

#[test]
fn only_a_team_has_a_snapshot() {
    let home = &Home::new();
    let id = home.say("echo hello");
    let output = home.run(&["export", &id, "--format", "snapshot"]).code(2);
    output
        .notes("only a team session")
        .notes("is a chat")
        .notes("jsonl");
    let file = home.project().join("talk.json");
    let path = file.display().to_string();
    home.run(&["export", &id, "--format", "snapshot", "-o", &path])
        .code(2);
    assert!(!file.exists());
}

/// agent-chatter left its files readable for all users if the umask allowed it.
#[test]
fn a_snapshot_is_for_its_owner_whatever_the_umask() {
    let home = &Home::new();
    let id = a_talk(home);
    let args = ["export", &id, "-f", "snapshot", "-o", "talk.json"];
    home.prepare(&args).umask("000").run().ok();
    let file = home.project().join("talk.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), snapshot(home, &id));
}

#[test]
fn show_says_who_spoke_how_often_and_for_how_long() {
    let home = &Home::new();
    let mut save = talk("s-1");
    for n in 0..13 {
        let (name, kind) = if n % 3 == 0 {
            ("ana", "human")
        } else {
            ("ada", "ai")
        };
        save = save.says(name, kind, "words");
    }
    save.says("system", "system", "over").write(home);
    let id = import(home)[0]["session"].as_str().unwrap().to_owned();
    let text = home.run(&["show", &id]).ok().stdout;
    let third = text.lines().nth(2).unwrap();
    assert_eq!(third, "ANA 5, ADA 8, within 2 minutes");
    let session = home.show(&id);
    assert_eq!(session["duration_ms"], 130_000);
    let nothing = json!({"input": 0, "output": 0});
    assert_eq!(
        session["speakers"],
        json!([
            {"id": "ana", "name": "ana", "displayName": "ANA", "type": "human", "messages": 5, "tokens": nothing},
            {"id": "ada", "name": "ada", "displayName": "ADA", "type": "ai", "messages": 8, "tokens": nothing},
        ])
    );
    // `list` keeps its documented fields, and a chat has no such line.
    assert!(!keys(&home.all()[0]).contains(&"speakers".to_owned()));
    assert!(!keys(&home.all()[0]).contains(&"duration_ms".to_owned()));
    let chat = home.say("count to 3");
    assert_eq!(
        home.run(&["show", &chat]).ok().stdout.lines().nth(2),
        Some("")
    );
    assert_eq!(home.show(&chat)["speakers"][1]["messages"], 1);
}

#[test]
fn what_a_fork_shares_is_counted_in_it() {
    let home = &Home::new();
    let id = a_talk(home);
    let fork = home.run(&["fork", &format!("{id}:3")]).ok().stdout;
    let speakers = home.show(fork.trim())["speakers"].take();
    let counted: Vec<(&Value, &Value)> = speakers
        .as_array()
        .unwrap()
        .iter()
        .map(|spoke| (&spoke["id"], &spoke["messages"]))
        .collect();
    assert_eq!(counted, [(&json!("ana"), &json!(1))]);
    // A fork is a session of its own, also as a snapshot.
    let document: Value = serde_json::from_str(&snapshot(home, fork.trim())).unwrap();
    assert_eq!(document["sessionId"], fork.trim());
    let import = home.prepare(&["import", "-"]).stdin(document.to_string());
    import.run().ok().says("nothing new");
}
