//! Tests of the exporters: snapshots, what is left out, and that an importer reads the same
//! messages again.

mod round_trip;
pub(crate) mod sample;

use std::collections::BTreeMap;

use serde_json::Value;
use tertulia_core::entry::{
    Body, Entry, Environment, Forked, Hash, Head, Kind, Message, NewEntry, Origin, Relation,
    ToolOutcome,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::session::{Damage, Log, SessionMeta};
use uuid::Uuid;

use super::*;
use sample::{Sample, agent, call, result, user};

fn claude(sample: &Sample) -> ProgramFile {
    let place = claude_code::place(&sample.meta, "/elsewhere");
    claude_code::file(&sample.meta, &sample.log, &place)
}

fn codex_file(sample: &Sample) -> ProgramFile {
    let place = codex::place(&sample.meta, "/elsewhere");
    codex::file(&sample.meta, &sample.log, &place)
}

fn lines(content: &str) -> Vec<Value> {
    let lines = content.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_chat_for_claude_code() {
    let sample = sample::chat();
    let file = claude(&sample);
    insta::assert_snapshot!(file.content);
    assert_eq!(
        file.left_out.listed(),
        "failures of agents (1), withdrawn prompts (1), reasoning (1), estimated token counts (1)"
    );
    let place = claude_code::place(&sample.meta, "/elsewhere");
    assert_eq!(
        place.path,
        format!("-home-ana-parser/{}.jsonl", place.session)
    );
    place.session.parse::<Uuid>().unwrap();
}

#[test]
fn claude_code_gets_the_last_known_branch() {
    let git = |git: &str| {
        Body::Environment(Environment {
            date: "2026-11-15".parse().unwrap(),
            git: Some(git.to_owned()),
            approve: "ask".to_owned(),
            thread: None,
        })
    };
    let mut said = vec![Body::Message(user("hello"))];
    let branches = |said: &[Body]| {
        let file = claude(&sample::session(Kind::Chat, said.to_vec()));
        let lines = lines(&file.content);
        let branches = lines.iter().filter_map(|line| line["gitBranch"].as_str());
        branches.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(branches(&said), [""]);
    said.push(git("branch parser, 2 files changed"));
    assert_eq!(branches(&said), ["parser"]);
    said.push(git("no branch (detached HEAD), clean"));
    assert_eq!(branches(&said), ["parser"]);
}

#[test]
fn a_chat_for_codex() {
    let sample = sample::chat();
    let file = codex_file(&sample);
    insta::assert_snapshot!(file.content);
    assert_eq!(
        file.left_out.listed(),
        "failures of agents (1), withdrawn prompts (1), names of models (1), estimated token counts (1), titles (1)"
    );
    let place = codex::place(&sample.meta, "/elsewhere");
    let expected = format!(
        "2026/11/15/rollout-2026-11-15T18-53-29-{}.jsonl",
        place.session
    );
    assert_eq!(place.path, expected);
}

#[test]
fn a_chat_as_a_trajectory() {
    let sample = sample::chat();
    let trajectory = atif::trajectory(&sample.meta, &sample.log, "0.1.0");
    insta::assert_snapshot!(trajectory.content);
    assert_eq!(trajectory.left_out.listed(), "failures of agents (2)");
    check_trajectory(&trajectory.content);
}

/// Checks the rules of the format: known fields, numbered steps, agents' fields only on their steps,
/// and results in the step of their call.
fn check_trajectory(content: &str) {
    let document: Value = serde_json::from_str(content).unwrap();
    let has_only = |value: &Value, known: &[&str]| {
        for key in value.as_object().unwrap().keys() {
            assert!(known.contains(&key.as_str()), "{key} in {value}");
        }
    };
    has_only(
        &document,
        &[
            "schema_version",
            "session_id",
            "agent",
            "steps",
            "notes",
            "final_metrics",
            "extra",
        ],
    );
    has_only(
        &document["agent"],
        &["name", "version", "model_name", "extra"],
    );
    assert!(document["agent"]["name"].is_string() && document["agent"]["version"].is_string());
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(document["final_metrics"]["total_steps"], steps.len());
    for (place, step) in steps.iter().enumerate() {
        assert_eq!(step["step_id"], place + 1);
        assert!(step["message"].is_string());
        let mut known = vec!["step_id", "timestamp", "source", "message", "extra"];
        if step["source"] == "agent" {
            known.extend([
                "model_name",
                "reasoning_content",
                "tool_calls",
                "observation",
                "metrics",
            ]);
        }
        has_only(step, &known);
        let calls = step["tool_calls"].as_array().into_iter().flatten();
        let ids: Vec<&Value> = calls
            .map(|call| {
                has_only(call, &["tool_call_id", "function_name", "arguments"]);
                assert!(call["arguments"].is_object());
                &call["tool_call_id"]
            })
            .collect();
        let results = step["observation"]["results"].as_array();
        for result in results.into_iter().flatten() {
            has_only(result, &["source_call_id", "content", "extra"]);
            assert!(ids.contains(&&result["source_call_id"]), "{step}");
        }
    }
}

#[test]
fn in_a_team_others_are_users_with_names() {
    let sample = sample::team();
    let file = claude(&sample);
    let said: Vec<Value> = lines(&file.content)
        .into_iter()
        .map(|line| line["message"]["content"].clone())
        .collect();
    let text = |text: &str| serde_json::json!([{ "type": "text", "text": text }]);
    // The markers are for the team.
    assert_eq!(
        said,
        [
            "You: Who is right? ".into(),
            text("Ben is. "),
            "ben: Ada is right. ".into(),
            "ana: I am.".into(),
            text("So be it."),
        ]
    );
    assert_eq!(
        file.left_out.listed(),
        "tool calls of other agents (1), tool results without their call (1)"
    );
    let trajectory = atif::trajectory(&sample.meta, &sample.log, "0.1.0");
    check_trajectory(&trajectory.content);
    let document: Value = serde_json::from_str(&trajectory.content).unwrap();
    assert_eq!(document["extra"]["team"], "review");
    let ben = &document["steps"][2];
    assert_eq!(
        (&ben["source"], &ben["extra"]["speaker"]),
        (&"agent".into(), &"ben".into())
    );
    assert!(trajectory.left_out.is_empty());
}

#[test]
fn of_a_pair_the_worker_is_continued() {
    let sample = sample::pair();
    let file = codex_file(&sample);
    let said: Vec<Value> = lines(&file.content)
        .into_iter()
        .filter(|line| line["type"] == "response_item")
        .map(|line| line["payload"]["content"][0]["text"].clone())
        .collect();
    assert_eq!(said, ["instructor: Write hello.txt", "Done."]);
    assert_eq!(file.left_out.listed(), "messages of the other thread (2)");
    let trajectory = atif::trajectory(&sample.meta, &sample.log, "0.1.0");
    assert_eq!(trajectory.steps, 3);
    assert_eq!(
        trajectory.left_out.listed(),
        "messages passed on to another agent (1)"
    );
}

#[test]
fn ids_and_names_get_the_form_that_providers_accept() {
    let asking = |id: &str, name: &str| {
        Body::Message(Message {
            tool_calls: vec![call(id, name, serde_json::json!("plain"))],
            ..agent("claude", "")
        })
    };
    let answer = |id: &str| Body::Message(result("x", id, id, ToolOutcome::Ok));
    let long = "x".repeat(100);
    let sample = sample::session(
        Kind::Chat,
        vec![
            asking("call|1", "mcp.files read"),
            answer("call|1"),
            asking("call|1", "read"),
            asking("", ""),
            answer("call|1"),
            asking(&long, &long),
            asking(&long, "again"),
            answer("unknown"),
        ],
    );
    let file = claude(&sample);
    let calls: Vec<(String, String)> = lines(&file.content)
        .iter()
        .filter(|line| line["type"] == "assistant")
        .map(|line| &line["message"]["content"][0])
        .inspect(|block| assert_eq!(block["input"], serde_json::json!({ "arguments": "plain" })))
        .map(|block| (block["id"].to_string(), block["name"].to_string()))
        .collect();
    let cut = "x".repeat(64);
    let cut_again = format!("{}_2", "x".repeat(62));
    let expected = [
        ("call_1", "mcp_files_read"),
        ("call_1_2", "read"),
        ("tool", "tool"),
        (&cut, &cut),
        (&cut_again, "again"),
    ];
    let expected = expected.map(|(id, name)| (format!("\"{id}\""), format!("\"{name}\"")));
    assert_eq!(calls, expected);
    assert_eq!(
        file.left_out.listed(),
        "tool results without their call (1)"
    );
    let interrupted = file.content.matches(super::dialogue::INTERRUPTED).count();
    assert_eq!(interrupted, 3);
}

#[test]
fn only_an_untouched_export_may_be_replaced() {
    let sample = sample::chat();
    let file = claude(&sample).content;
    assert!(claude_code::is_untouched(&file));
    let theirs = "{\"type\":\"last-prompt\",\"sessionId\":\"x\"}\n";
    for other in ["", "words", &format!("{file}{theirs}")] {
        assert!(!claude_code::is_untouched(other), "{other}");
    }
    let file = codex_file(&sample).content;
    assert!(codex::is_untouched(&file));
    let theirs = "{\"type\":\"turn_context\",\"payload\":{\"model\":\"x\"}}\n";
    let continued = include_str!("../../fixtures/claude-code/multi-turn.jsonl");
    for other in ["", "words", continued, &format!("{file}{theirs}")] {
        assert!(!codex::is_untouched(other), "{other}");
    }
}

#[test]
fn a_part_is_selected_by_number_or_time() {
    let check =
        |from: Option<Bound>, to: Option<Bound>, expected: std::ops::RangeInclusive<u64>| {
            let mut log = sample::chat().log;
            let id = SessionId::new(Uuid::nil());
            log.damage = [2, 5].map(|seq| damage(id, seq)).to_vec();
            Selection { from, to }.apply(&mut log);
            let seqs: Vec<u64> = log.entries.iter().map(|entry| entry.seq.0).collect();
            assert_eq!(seqs, expected.collect::<Vec<_>>());
            log.damage.len()
        };
    let seq = |seq| Some(Bound::Seq(Seq(seq)));
    let at = |time: &str| Some(Bound::At(time.parse().unwrap()));
    assert_eq!(check(None, None, 1..=13), 2);
    assert_eq!(check(seq(3), seq(5), 3..=5), 1);
    assert_eq!(check(seq(0), seq(99), 1..=13), 2);
    // Entry 2 is a minute and a half after the first.
    assert_eq!(check(at("2026-11-15T18:54:59.724123Z"), None, 2..=13), 2);
    assert_eq!(check(None, at("2026-11-15T18:54:59.724122Z"), 1..=1), 2);
    let mut none = sample::chat().log;
    let past = Selection {
        from: seq(50),
        to: None,
    };
    past.apply(&mut none);
    assert!(none.entries.is_empty());
}

fn damage(session: SessionId, seq: u64) -> Damage {
    Damage {
        session,
        seq: Seq(seq),
        reason: "it is missing".into(),
    }
}

/// Returns a fake key, assembled here so that no scanner finds it in this file.
fn key() -> String {
    format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5")
}

#[test]
fn secrets_are_replaced_and_the_log_stays_a_log() {
    let asking = Message {
        tool_calls: vec![call(
            "c",
            "shell",
            serde_json::json!({ "env": { "T": key() } }),
        )],
        ..agent("claude", "")
    };
    let mut sample = sample::session(
        Kind::Chat,
        vec![
            Body::Message(user(&format!("use {}", key()))),
            Body::Message(asking),
            Body::Message(result("shell", "c", &key(), ToolOutcome::Ok)),
            Body::Message(agent("claude", "fine")),
        ],
    );
    assert!(sample.meta.title.as_ref().unwrap().contains(&key()));
    let counts = redact(&mut sample.meta, &mut sample.log).unwrap();
    assert_eq!(counts["github-token"], 3);
    assert_eq!(
        sample.meta.title.as_deref(),
        Some("use [redacted:github-token]")
    );
    let text: String = sample
        .log
        .entries
        .iter()
        .map(|entry| format!("{}\n", entry.line()))
        .collect();
    assert!(!text.contains(&key()));
    assert_eq!(jsonl::read(text.as_bytes()).unwrap().entries.len(), 5);
    let again = redact(&mut sample.meta, &mut sample.log).unwrap();
    assert!(again.is_empty());
}

#[test]
fn redaction_keeps_numbers_at_gaps_and_replaces_unknown_entries() {
    let mut sample = sample::session(
        Kind::Chat,
        vec![
            Body::Message(user("one")),
            Body::Message(user("lost")),
            Body::Message(user(&key())),
            Body::Message(user("four")),
        ],
    );
    sample.log.entries.remove(2);
    // An entry of a later version, of which only the line is known.
    let last = sample.log.entries.last().unwrap();
    let line = last
        .line()
        .replace("\"type\":\"message\"", "\"type\":\"novel\"");
    let line = line.replace("four", &key());
    sample.log.entries[3] = Entry::decode(line.as_bytes()).unwrap();
    redact(&mut sample.meta, &mut sample.log).unwrap();
    let entries = &sample.log.entries;
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(seqs, [1, 2, 4, 5]);
    assert!(entries.iter().all(|entry| !entry.line().contains(&key())));
    assert!(matches!(&entries[3].body, Body::Lost(lost) if lost.reason.contains("'novel'")));
    assert!(entries[3].follows(&entries[2].head()));
}

#[test]
fn a_redacted_fork_names_the_new_hash_of_its_origin() {
    let sample = sample::session(Kind::Chat, vec![Body::Message(user(&key()))]);
    let shared = sample.log.entries[1].head();
    let id = SessionId::new(Uuid::from_u128(77));
    let forked = NewEntry {
        id: EntryId::new(Uuid::from_u128(78)),
        at: jiff::Timestamp::UNIX_EPOCH,
        body: Body::Forked(Forked {
            session: id,
            from: Origin {
                id: sample.meta.id,
                seq: shared.seq,
                hash: shared.hash,
            },
            relation: Relation::Fork,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }),
        redacted: BTreeMap::new(),
        author: None,
    };
    let mut entries = sample.log.entries;
    entries.extend(Entry::chain(&shared, vec![forked]).unwrap());
    let mut meta = SessionMeta::of(id, &entries);
    let mut log = Log {
        entries,
        damage: Vec::new(),
    };
    redact(&mut meta, &mut log).unwrap();
    let new: Head = log.entries[1].head();
    assert_ne!(new.hash, shared.hash);
    let named: Option<Hash> = match &log.entries[2].body {
        Body::Forked(forked) => Some(forked.from.hash),
        _ => None,
    };
    assert_eq!(named, Some(new.hash));
}

#[test]
fn missing_entries_are_counted() {
    let mut sample = sample::chat();
    sample.log.entries.remove(3);
    // Entry 4 is missing; entry 5 was altered, but can be read.
    sample.log.damage = [4, 5].map(|seq| damage(sample.meta.id, seq)).to_vec();
    let listed = claude(&sample).left_out.listed();
    assert!(listed.contains("damaged entries (1)"), "{listed}");
}
