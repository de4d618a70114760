//! Messages for new users: they name what exists, count correctly, and warn only when something is
//! wrong.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, short};

/// Writes a team file of `me` and `ada`, a demo agent, modified by the test.
fn team(home: &Home, change: impl Fn(&mut Value)) {
    let member = |name: &str, kind: &str| {
        json!({
            "name": name, "displayName": name, "role": "r", "type": kind, "agentType": "demo",
            "baseDir": ".", "systemInstruction": "",
        })
    };
    let members = [
        member("me", "human"),
        member("ada", "ai"),
        member("ben", "ai"),
    ];
    let mut file = json!({
        "schemaVersion": "1.2",
        "team": { "name": "t", "description": "d", "members": members },
    });
    change(&mut file);
    fs::write(home.project().join("t.json"), file.to_string()).unwrap();
}

#[test]
fn members_with_one_display_name_are_told_apart_by_name() {
    let home = Home::new();
    team(&home, |file| {
        for member in [1, 2] {
            file["team"]["members"][member]["displayName"] = json!("Doc");
        }
    });
    home.run(&["team", "check", "t.json"]).ok();
    let speaker = |words: &str| {
        let args = ["team", "t.json", words, "--output-format", "json"];
        let document = home.run(&args).ok().json();
        document["messages"][1]["speaker"]["id"].clone()
    };
    // A display name means the first member that has it.
    assert_eq!(speaker("[NEXT: Doc] hello"), "ada");
    assert_eq!(speaker("[NEXT: ben] hello"), "ben");
}

#[test]
fn a_key_that_a_team_file_has_twice_is_told() {
    let home = Home::new();
    team(&home, |_| {});
    let file = home.project().join("t.json");
    let text = fs::read_to_string(&file).unwrap();
    home.run(&["team", "check", "t.json"]).ok().lacks("twice");
    let text = text.replacen("\"name\":\"ada\"", "\"name\":\"eve\",\"name\":\"ada\"", 1);
    fs::write(&file, text).unwrap();
    let expected = "the team file has /team/members/1/name twice; the last value counts";
    home.run(&["team", "check", "t.json"]).ok().notes(expected);
    home.run(&["team", "t.json", "[NEXT: ada] hello"])
        .ok()
        .notes(expected);
}

#[test]
fn variables_that_only_change_what_is_printed_alarm_nobody() {
    let home = Home::new();
    let with = |name: &'static str| {
        team(&home, |file| {
            file["team"]["members"][1]["env"] = json!({ name: "true" })
        });
        home.run(&["team", "check", "t.json"]).ok()
    };
    with("DEBUG").lacks("warning").lacks("DEBUG");
    with("HTTPS_PROXY").notes("sets HTTPS_PROXY for ada");
}

#[test]
fn a_home_that_is_no_absolute_path_is_refused() {
    let home = Home::new();
    for args in [&["list"][..], &["chat", "-p", "hi"]] {
        let output = home.prepare(args).env("HOME", "relative").run().code(2);
        output.notes("HOME is 'relative'").notes("--data-dir");
    }
    assert!(!home.project().join("relative").exists());
    let args = ["--data-dir", "here", "list"];
    home.prepare(&args).env("HOME", "relative").run().ok();
}

#[test]
fn one_thing_is_not_several() {
    let home = &Home::new();
    home.script_agent("failer", "echo boom >&2; exit 7");
    home.run(&["chat", "--agent", "failer", "-p", "hi"]).code(6);
    let shown = home.run(&["show", "@"]).ok();
    shown
        .says(" · 1 message\n")
        .says("failer failed: ")
        .lacks("(failed)");
    home.run(&["show", "@", "--entries"]).ok().lacks("(failed)");
    home.run(&["export", "@"])
        .ok()
        .says("> failer failed: ")
        .lacks("(failed)");
    home.run(&["log", "@"]).ok().lacks("1 messages");
    home.run(&["doctor"])
        .ok()
        .says("OK: 1 session, ")
        .says("all hashes valid");
    home.run(&["rm", "-y", "@"])
        .ok()
        .notes("Moved 1 session to the trash");
}

#[test]
fn entries_are_named_in_plain_words() {
    let home = Home::new();
    home.run(&["team", "init", "-q"]).ok();
    home.run(&["team", "demo", "[NEXT: ada] one"]).ok();
    home.run(&["team", "demo", "-c", "[NEXT: ada] two"]).ok();
    let team = home.run(&["show", "@", "--entries"]).ok();
    team.says("team started from ")
        .lacks("sat down")
        .lacks("seated");
    // Its budget is used up.
    home.run(&["pair", "plan a bird table", "-r", "1"]).code(1);
    let pair = home.run(&["show", "@", "--entries"]).ok();
    pair.says("instructor demo (demo-1), worker demo (demo-1), in /")
        .lacks("paired")
        .lacks("budgeted");
    // JSON output uses the names of the log.
    let entries = home.show("@")["entries"].clone();
    let is_paired = |entry: &Value| entry["type"] == "paired";
    assert!(entries.as_array().unwrap().iter().any(is_paired));
}

#[test]
fn the_list_has_tokens_and_projects_in_columns_of_their_own() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["tag", "@", "+urgent"]).ok();
    let row = |args: &[&str]| {
        let output = home.run(args).ok().stdout;
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        (lines[0].clone(), lines[1].clone())
    };
    let (headings, cells) = row(&["list"]);
    let words: Vec<&str> = headings.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "ID", "TITLE", "UPDATED", "MSGS", "TOKENS", "KIND", "WITH", "TAGS"
        ]
    );
    assert!(
        cells.starts_with(&short(&id)) && cells.ends_with("#urgent"),
        "{cells}"
    );
    let (headings, cells) = row(&["list", "--all"]);
    let at = headings.find("PROJECT").unwrap();
    assert!(
        cells[at..].starts_with('/') && cells.ends_with("#urgent"),
        "{cells}"
    );
    let session = &home.all()[0]["tokens"];
    let tokens = session["input"].as_u64().unwrap() + session["output"].as_u64().unwrap();
    let at = headings.find("TOKENS").unwrap();
    assert!(cells[at..].starts_with(&format!("{tokens} ")), "{cells}");
}

#[test]
fn a_page_says_how_long_it_is_and_who_speaks() {
    let home = &Home::new();
    home.say("echo so:\n\n## You · 2026-01-01T00:00:00Z\n\nfake");
    let page = home.run(&["export", "@"]).ok().stdout;
    let session = home.show("@");
    let text = |key: &str| session[key].as_str().unwrap().to_owned();
    let of = |key: &str| session["tokens"][key].as_u64().unwrap();
    let (input, output) = (of("input"), of("output"));
    for line in [
        format!("- created: {}", text("created_at")),
        format!("- updated: {}", text("updated_at")),
        "- messages: 2".to_owned(),
        format!("- tokens: {} ({input} in, {output} out)", input + output),
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    let speakers: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(speakers.len(), 2, "{page}");
    assert!(page.contains("#### You · 2026-01-01T00:00:00Z"), "{page}");
}

#[test]
fn a_summary_ends_in_dots_only_where_it_is_cut() {
    let home = Home::new();
    home.run(&["team", "init", "-q"]).ok();
    let meta = |words: &str| {
        home.run(&["team", "demo", words]).ok();
        let snapshot = home
            .run(&["export", "@", "--format", "snapshot"])
            .ok()
            .json();
        let meta = snapshot["metadata"]["summary"].as_str().unwrap();
        meta.split_once(" - ").unwrap().1.to_owned()
    };
    assert_eq!(meta("plan a bird table"), "\"plan a bird table\"");
    let fifty = "x".repeat(50);
    assert_eq!(meta(&fifty), format!("\"{fifty}\""));
    assert_eq!(meta(&format!("{fifty}y")), format!("\"{fifty}...\""));
}

#[test]
fn what_is_not_near_is_not_suggested() {
    let home = Home::new();
    let merge = home.run(&["merging", "a", "b"]).code(2);
    merge.notes("no command 'merging'").lacks("did you mean");
    home.run(&["expotr"])
        .code(2)
        .notes("did you mean `tertulia export`?");
    let rename = home.run(&["--rename", "x"]).code(2);
    rename
        .lacks("--resume")
        .notes("'rename' is a command: tertulia rename");
    home.run(&["list", "--limti", "3"])
        .code(2)
        .notes("'--limit'");
    let flags = home.run(&["--agent", "demo", "list"]).code(2);
    flags.notes("chat options cannot precede another command");
}

#[test]
fn an_ephemeral_session_is_not_called_saved() {
    let home = Home::new();
    let output = home.run(&["chat", "--ephemeral", "-p", "hello"]).ok();
    output
        .says("Nothing that we say is kept")
        .lacks("on your disk");
}
