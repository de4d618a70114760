//! Properties: an importer reads back the messages of an export, and whatever a session contains,
//! each call has one result.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tertulia_core::entry::{Body, Kind, Message, ToolOutcome, Usage};

use super::sample::{Sample, agent, call, result, session, user};
use super::{claude, codex_file, lines};
use crate::claude_code::ClaudeCode;
use crate::importer::{Importer, Input};

fn text() -> impl Strategy<Value = String> {
    // Markdown, line ends, quotes, other scripts; never blank.
    "[a-zA-Z<>`#\\[\\]\\\\\"'\n \t:éß日🎉]{0,30}[a-z!]"
}

fn usage() -> impl Strategy<Value = Option<(Usage, String)>> {
    let counted = (
        0..1_000_000_u64,
        0..1_000_000_u64,
        0..5_000_u64,
        0..5_000_u64,
    );
    let counted = counted.prop_map(|(fresh, output, cache_read, cache_written)| Usage {
        input: fresh + cache_read + cache_written,
        output,
        cache_read,
        cache_written,
        estimated: false,
    });
    proptest::option::of((counted, "msg_[a-z]{8}(:req_[a-z]{4})?"))
}

fn outcome() -> impl Strategy<Value = ToolOutcome> {
    prop_oneof![
        Just(ToolOutcome::Ok),
        Just(ToolOutcome::Failed),
        Just(ToolOutcome::Denied),
        Just(ToolOutcome::Interrupted),
    ]
}

/// A prompt, answers with tool calls and their results, a last answer.
fn turn() -> impl Strategy<Value = Vec<Message>> {
    let answer = (
        proptest::option::of(text()),
        proptest::collection::vec((text(), outcome()), 1..4),
        usage(),
        proptest::option::of("[a-z]{1,8}-[0-9]"),
        any::<bool>(),
    );
    (text(), proptest::collection::vec(answer, 0..3), text()).prop_map(|(asked, answers, last)| {
        let mut messages = vec![user(&asked)];
        for (text, results, usage, model, backwards) in answers {
            let names = ["shell", "file_read", "grep"];
            let tools: Vec<_> = names.iter().zip(results).collect();
            messages.push(Message {
                tool_calls: tools
                    .iter()
                    .map(|(name, (text, _))| call("", name, json!({ "a": text, "n": [1, null] })))
                    .collect(),
                usage: usage.as_ref().map(|(usage, _)| *usage),
                usage_id: usage.map(|(_, id)| id),
                model,
                ..agent("claude", &text.unwrap_or_default())
            });
            let mut results: Vec<Message> = tools
                .iter()
                .map(|(name, (text, outcome))| result(name, "", text, *outcome))
                .collect();
            // Calls that run at once end in any order.
            if backwards {
                results.reverse();
            }
            messages.extend(results);
        }
        messages.push(agent("claude", &last));
        messages
    })
}

/// Gives each call an id of its own, and each result the id of its call.
fn with_ids(mut messages: Vec<Message>) -> Vec<Message> {
    let mut open: Vec<(String, String)> = Vec::new();
    for (place, message) in messages.iter_mut().enumerate() {
        for call in &mut message.tool_calls {
            call.id = format!("call_{place}_{}", call.name);
            open.push((call.name.clone(), call.id.clone()));
        }
        if message.tool_call_id.is_some() {
            let name = &message.speaker.name;
            let place = open.iter().rposition(|(open, _)| open == name).unwrap();
            message.tool_call_id = Some(open.remove(place).1);
        }
    }
    messages
}

fn sample(messages: Vec<Message>) -> Sample {
    session(
        Kind::Chat,
        messages.into_iter().map(Body::Message).collect(),
    )
}

fn imported(content: &str) -> Vec<tertulia_core::foreign::Foreign> {
    let input = Input {
        path: Path::new("x.jsonl"),
        content: Some(content.as_bytes()),
    };
    assert!(ClaudeCode.recognises(input.path, content.as_bytes()));
    let mut sessions = Vec::new();
    ClaudeCode
        .read(&input, &mut |session| {
            sessions.push(session);
            ControlFlow::Continue(())
        })
        .unwrap();
    sessions
}

/// Messages with ids that repeat, results without calls and calls without results.
fn messy() -> impl Strategy<Value = Vec<Message>> {
    let id = "[ab|]{0,2}";
    let one = prop_oneof![
        text().prop_map(|text| user(&text)),
        Just(user("  \n")),
        ("[ \na]{0,3}", proptest::collection::vec(id, 0..3)).prop_map(|(text, ids)| Message {
            tool_calls: ids.iter().map(|id| call(id, "t.x", json!([1]))).collect(),
            ..agent("claude", &text)
        }),
        (id, outcome()).prop_map(|(id, outcome)| result("t.x", &id, "", outcome)),
    ];
    proptest::collection::vec(one, 0..20)
}

fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&id.len()) && id.chars().all(plain)
}

proptest! {
    #[test]
    fn claude_codes_importer_reads_the_same_messages(turns in proptest::collection::vec(turn(), 1..5)) {
        let messages = with_ids(turns.concat());
        let sample = sample(messages.clone());
        let file = claude(&sample);
        prop_assert!(file.left_out.is_empty(), "{:?}", file.left_out);
        let sessions = imported(&file.content);
        prop_assert_eq!(sessions.len(), 1);
        let read: Vec<Message> = sessions[0].said.iter().map(|said| said.message.clone()).collect();
        prop_assert_eq!(read, messages);
        let times: Vec<_> = sessions[0].said.iter().map(|said| said.at).collect();
        let written: Vec<_> = sample.log.messages().map(|(entry, _)| entry.at).collect();
        prop_assert_eq!(times, written);
        let cwd = sessions[0].source.cwd.as_deref();
        prop_assert_eq!(cwd, Some("/home/ana/parser"));
    }

    #[test]
    fn every_call_of_a_claude_code_file_has_one_result_right_after_it(messages in messy()) {
        let file = claude(&sample(messages));
        let mut ids = BTreeSet::new();
        let mut open: BTreeSet<String> = BTreeSet::new();
        let mut parent = Value::Null;
        for line in lines(&file.content) {
            prop_assert_eq!(&line["parentUuid"], &parent);
            parent = line["uuid"].clone();
            let blocks = line["message"]["content"].as_array().cloned().unwrap_or_default();
            let results = blocks.iter().filter(|block| block["type"] == "tool_result").count();
            prop_assert!(open.is_empty() || results == 1, "{}", line);
            for block in &blocks {
                match block["type"].as_str() {
                    Some("tool_use") => {
                        let id = block["id"].as_str().unwrap().to_owned();
                        prop_assert!(is_plain(&id) && is_plain(block["name"].as_str().unwrap()));
                        prop_assert!(ids.insert(id.clone()), "{} again", id);
                        open.insert(id);
                    }
                    Some("tool_result") => {
                        prop_assert!(open.remove(block["tool_use_id"].as_str().unwrap()));
                    }
                    _ => prop_assert!(!block["text"].as_str().unwrap().trim().is_empty()),
                }
            }
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn every_call_of_a_codex_file_has_one_result(messages in messy()) {
        let file = codex_file(&sample(messages));
        let mut open: BTreeSet<String> = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for line in lines(&file.content) {
            let item = &line["payload"];
            match item["type"].as_str() {
                Some("function_call") => {
                    let id = item["call_id"].as_str().unwrap().to_owned();
                    prop_assert!(is_plain(&id) && ids.insert(id.clone()));
                    let arguments = item["arguments"].as_str().unwrap();
                    prop_assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
                    open.insert(id);
                }
                Some("function_call_output") => {
                    prop_assert!(open.remove(item["call_id"].as_str().unwrap()));
                }
                Some("message") => prop_assert!(open.is_empty(), "{}", line),
                _ => {}
            }
        }
        prop_assert!(open.is_empty());
    }
}

/// A recorded session of Claude Code is the same after an import, an export and an import.
#[test]
fn a_recorded_session_survives() {
    for content in [
        include_str!("../../../fixtures/claude-code/tool-write-read.jsonl"),
        include_str!("../../../fixtures/claude-code/multi-turn.jsonl"),
    ] {
        let first = imported(content).remove(0);
        let messages: Vec<Message> = first.said.iter().map(|said| said.message.clone()).collect();
        let file = claude(&sample(messages.clone()));
        let again = imported(&file.content).remove(0);
        let read: Vec<Message> = again.said.into_iter().map(|said| said.message).collect();
        assert_eq!(read, messages);
    }
}
