//! `export` to the formats of other programs, of parts of a session, and without secrets.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Backend, Home, files_below, messages};
use crate::saves::{import, talk};

/// Imports a recorded session of Claude Code with tool calls, and returns its id.
fn with_tools(home: &Home) -> String {
    let recorded =
        include_str!("../../../tertulia-formats/fixtures/claude-code/tool-write-read.jsonl");
    let path = home.path().join("recorded.jsonl");
    fs::write(&path, recorded).unwrap();
    let imported = home.run(&["import", "--json", path.to_str().unwrap()]);
    let imported = imported.ok().json();
    imported["imported"][0]["session"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn export(home: &Home, id: &str, format: &str) -> String {
    home.run(&["export", id, "-f", format]).ok().stdout
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// Returns a fake key, assembled here so that no scanner finds it in this file.
fn key() -> String {
    format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5")
}

#[test]
fn html_is_one_page_in_which_text_stays_text() {
    let home = &Home::new();
    let id = home.say("echo <script>alert(1)</script> [x](javascript:alert(2))");
    let page = export(home, &id, "html");
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(!page.contains("<script") && !page.contains("href=\"javascript"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for part in [&id[..], "id=\"e2\"", "href=\"#e2\"", "demo-1", "<time "] {
        assert!(page.contains(part), "{part}");
    }
    let rust = home.say("echo ```rust\nlet a = 1;\n```");
    let page = export(home, &rust, "html");
    assert!(page.contains("<span class=\"k\">let</span>"), "{page}");
}

#[test]
fn an_export_for_claude_code_is_imported_as_the_same_messages() {
    let home = &Home::new();
    let id = with_tools(home);
    let output = home.run(&["export", &id, "-f", "claude-code"]).ok();
    let session = lines(&output.stdout)[0]["sessionId"].clone();
    let session = session.as_str().unwrap();
    output
        .notes("~/.claude/projects/-home-user-work-claude/")
        .notes(&format!("claude --resume {session}"));
    let other = Home::with(Backend::Files);
    let content = export(home, &id, "claude-code");
    other.prepare(&["import", "-"]).stdin(&content).run().ok();
    let said = |home: &Home, id: &str| -> Vec<Value> {
        let kept = [
            "at",
            "role",
            "content",
            "speaker",
            "tool_calls",
            "tool_call_id",
            "usage",
            "model",
            "outcome",
        ];
        let messages = messages(&home.show(id));
        let pick = |message: Value| kept.map(|key| message[key].clone());
        messages
            .into_iter()
            .map(|message| json!(pick(message)))
            .collect()
    };
    assert_eq!(said(&other, session), said(home, &id));
    // Where the session is, it is recognised.
    let imported = home.prepare(&["import", "-"]).stdin(&content).run().ok();
    imported.says("nothing new: exported from");
    assert_eq!(home.all().len(), 1);
}

#[test]
fn an_export_for_codex_has_calls_with_their_results() {
    let home = &Home::new();
    let id = with_tools(home);
    let output = home.run(&["export", &id, "-f", "codex"]).ok();
    let all = lines(&output.stdout);
    let meta = &all[0]["payload"];
    let session = meta["id"].as_str().unwrap();
    assert_eq!(
        (&all[0]["type"], &meta["cwd"]),
        (&json!("session_meta"), &json!("/home/user/work-claude"))
    );
    // Codex refuses to resume a session with another provider than its own.
    assert!(meta.get("model_provider").is_none());
    let kinds: Vec<&str> = all
        .iter()
        .filter(|line| line["type"] == "response_item")
        .map(|line| line["payload"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "function_call",
            "function_call_output",
            "function_call",
            "function_call_output",
            "message",
        ]
    );
    output
        .notes("~/.codex/sessions/2026/11/15/rollout-2026-11-15T")
        .notes(&format!("codex resume {session}"))
        .notes("left out: names of models (3)");
}

#[test]
fn a_trajectory_reports_what_it_lacks() {
    let home = &Home::new();
    let id = home.say("count to 3");
    home.run(&["chat", "-r", &id, "-p", "fail"]).code(6);
    let output = home.run(&["export", &id, "-f", "atif"]).ok();
    let document = output.json();
    assert_eq!(document["schema_version"], "ATIF-v1.7");
    assert_eq!(document["session_id"], id.as_str());
    let sources: Vec<&Value> = document["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["source"])
        .collect();
    assert_eq!(sources, ["user", "agent", "user"]);
    output.notes("left out: failures of agents (1)");
    let file = home.project().join("t.json").display().to_string();
    let report = home.run(&["export", &id, "-f", "atif", "-o", &file, "--json"]);
    let report = report.ok().json();
    assert_eq!(
        report["left_out"],
        json!([{ "what": "failures of agents", "count": 1 }])
    );
}

#[test]
fn in_a_team_other_agents_are_users_with_names() {
    let home = &Home::new();
    let save = talk("session-1")
        .says("ana", "human", "Who? [NEXT: ada]")
        .says("ada", "ai", "Ben. [NEXT: ben]")
        .says("ben", "ai", "Me.")
        .says("ada", "ai", "Yes.");
    save.write(home);
    let id = import(home)[0]["session"].as_str().unwrap().to_owned();
    let said: Vec<Value> = lines(&export(home, &id, "claude-code"))
        .into_iter()
        .map(|line| line["message"]["content"].clone())
        .collect();
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let expected = [
        json!("Who? "),
        text("Ben. "),
        json!("BEN: Me."),
        text("Yes."),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_part_is_chosen_by_entries_or_times() {
    let home = &Home::new();
    let id = home.say("echo one");
    home.say_in(&id, "echo two");
    home.say_in(&id, "echo three");
    let part = |args: &[&str]| {
        let all = [&["export", &id, "-f", "json"], args].concat();
        let session = home.run(&all).ok().json();
        let said: Vec<String> = messages(&session)
            .iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect();
        said.join(" ")
    };
    assert_eq!(part(&["--from", "4", "--to", "5"]), "echo two two");
    assert_eq!(part(&["--from", "6"]), "echo three three");
    assert_eq!(part(&["--to", "3"]), "echo one one");
    let times: Vec<String> = messages(&home.show(&id))
        .iter()
        .map(|message| message["at"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(part(&["--from", &times[4]]), "echo three three");
    assert_eq!(part(&["--to", &times[1]]), "echo one one");
    assert_eq!(part(&["--from", "1h"]), part(&[]));
    // The heading counts the part.
    let text = home.run(&["export", &id, "--from", "6"]).ok().stdout;
    assert!(
        text.contains("- messages: 2\n") && !text.contains("two"),
        "{text}"
    );
    let output = home.run(&["export", &id, "-f", "jsonl", "--from", "4"]);
    output.ok().notes("only a part of the log");
    let whole = home.run(&["export", &id, "-f", "jsonl", "--to", "3"]).ok();
    assert_eq!(whole.stderr, "");
    let other = Home::new();
    other
        .prepare(&["import", "-"])
        .stdin(&whole.stdout)
        .run()
        .ok();
    assert_eq!(other.said(&id), ["echo one", "one"]);
}

#[test]
fn wrong_parts_are_refused() {
    let home = &Home::new();
    let id = home.say("echo one");
    for args in [
        &["--from", "5", "--to", "2"][..],
        &["--from", "2026-02-01", "--to", "2026-01-01"],
        &["--from", "someday"],
        &["--to", "-1x"],
        &["--from", "99"],
        &["--to", "2001-01-01"],
        &["--from", ""],
    ] {
        let all = [&["export", &id], args].concat();
        let output = home.run(&all).code(2);
        assert_eq!(output.stdout, "", "{args:?}");
    }
    home.run(&["export", &id, "--from", "99"])
        .code(2)
        .notes("it has entries 1 to 3");
    // Nothing that these formats could contain.
    for format in ["claude-code", "codex", "atif"] {
        let args = ["export", &id, "-f", format, "--to", "1"];
        let output = home.run(&args).code(2).notes("no messages");
        assert_eq!(output.stdout, "");
    }
}

#[test]
fn secrets_are_replaced_in_every_format() {
    let home = &Home::new();
    home.settings("redact = false\n");
    let id = home.say(&format!("echo {}", key()));
    for format in [
        "md",
        "html",
        "json",
        "jsonl",
        "claude-code",
        "codex",
        "atif",
    ] {
        assert!(export(home, &id, format).contains(&key()), "{format}");
        let output = home.run(&["export", &id, "-f", format, "--redact"]).ok();
        let clean = output.notes("redacted: 2 github-token").lacks(&key());
        assert!(clean.stdout.contains("[redacted:github-token]"), "{format}");
    }
    // The log is one that can be imported, and the session has not changed.
    let log = home.run(&["export", &id, "-f", "jsonl", "--redact"]).ok();
    let other = Home::new();
    other
        .prepare(&["import", "-"])
        .stdin(&log.stdout)
        .run()
        .ok();
    assert_eq!(other.said(&id)[1], "[redacted:github-token]");
    assert!(home.said(&id)[1].contains(&key()));
    // Also in a folder, where titles are part of names.
    home.run(&["export", &id, "-f", "html", "--redact", "-o", "pages/"])
        .ok();
    for file in files_below(&home.project().join("pages")) {
        let content = fs::read_to_string(&file).unwrap();
        assert!(!content.contains(&key()) && !file.display().to_string().contains("ghp"));
    }
    let save = talk("s").says("ana", "human", &key());
    save.write(home);
    let team = import(home)[0]["session"].as_str().unwrap().to_owned();
    home.run(&["export", &team, "-f", "snapshot", "--redact"])
        .ok()
        .says("[redacted:github-token]")
        .lacks(&key());
}

#[test]
fn own_rules_count_and_must_be_readable() {
    let home = &Home::new();
    let id = home.say("echo the badge is ZZ-12345-QQ");
    let rules = home.path().join("rules.toml");
    let rule = "[[rules]]\nid = \"badge\"\nregex = '''ZZ-[0-9]+-QQ'''\nkeywords = [\"zz-\"]\n";
    fs::write(&rules, rule).unwrap();
    home.settings(&format!(
        "[redact]\nrules = {:?}\n",
        rules.display().to_string()
    ));
    home.run(&["export", &id, "--redact"])
        .ok()
        .says("[redacted:badge]")
        .lacks("ZZ-12345");
    // Exporting with fewer rules than asked for would leak.
    fs::remove_file(&rules).unwrap();
    let refused = home.run(&["export", &id, "--redact"]);
    assert_ne!(refused.status.code(), Some(0));
    assert_eq!(refused.stdout, "");
    home.run(&["export", &id]).ok();
}
