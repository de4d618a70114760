//! Tests with recorded files and with older forms of them.

use serde_json::{Value, json};

use super::*;
use crate::importer::tests::{counted, ids, read, recorded, texts};
use tertulia_core::entry::{ImportedRelation, Role, SpeakerKind, ToolOutcome};
use tertulia_core::foreign::{Beginning, Foreign};

fn one(name: &str) -> Foreign {
    let mut sessions = recorded(&Codex, name);
    assert_eq!(sessions.len(), 1, "{name}");
    sessions.remove(0)
}

fn file(lines: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n").into_bytes()
}

fn line(ordinal: u64, kind: &str, payload: &Value) -> Value {
    json!({ "timestamp": "2026-01-02T03:04:05Z", "ordinal": ordinal, "type": kind, "payload": payload })
}

fn said(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
}

fn sessions(path: &str, lines: &[Value]) -> Vec<Foreign> {
    read(&Codex, Path::new(path), &file(lines)).unwrap()
}

#[test]
fn a_recorded_session_keeps_messages_models_usage_and_place() {
    let session = one("multi-turn.jsonl");
    let expected = [
        "first message",
        "echo #2: first message",
        "second message",
        "echo #4: second message",
        "third message",
        "echo #6: third message",
    ];
    assert_eq!(texts(&session), expected);
    let answer = &session.said[1].message;
    assert_eq!(answer.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(
        answer.usage_id.as_deref(),
        Some("resp_fake2120014a32a79903d6ee27df")
    );
    assert_eq!(session.source.cwd.as_deref(), Some("/home/user/work-codex"));
    assert_eq!(session.source.version.as_deref(), Some("0.166.0"));
    assert_eq!(session.created_at.to_string(), "2026-11-15T18:59:25.095Z");
    assert_eq!(counted(&[session]), (6651 + 6660 + 6670, 0, 12));
}

#[test]
fn tools_have_results_and_outcomes() {
    let session = one("tool-patch.jsonl");
    let call = &session.said[1].message.tool_calls[0];
    assert_eq!(call.name, "apply_patch");
    assert!(call.arguments.as_str().unwrap().contains("+héllo"));
    let result = &session.said[2].message;
    assert_eq!(result.tool_call_id.as_deref(), Some(call.id.as_str()));
    assert_eq!(result.outcome, Some(ToolOutcome::Ok));
    assert_eq!(result.speaker.name, "apply_patch");

    let session = one("sigint-tool.jsonl");
    assert_eq!(
        session.said[2].message.outcome,
        Some(ToolOutcome::Interrupted)
    );
    let last = &session.said[3].message;
    assert_eq!(
        (last.role, last.content.as_str()),
        (Role::System, "interrupted")
    );
}

#[test]
fn outcomes_are_read_from_the_words_of_all_versions() {
    let cases = [
        (
            json!("Chunk ID: 1\nProcess exited with code 1\nOutput:\nx"),
            ToolOutcome::Failed,
        ),
        (
            json!("Exit code: 0\nOutput:\nProcess exited with code 1"),
            ToolOutcome::Ok,
        ),
        (json!("no code at all"), ToolOutcome::Ok),
        (
            json!("aborted by user after 2.0s"),
            ToolOutcome::Interrupted,
        ),
        (json!("exec command rejected by user"), ToolOutcome::Denied),
        (
            json!({ "content": "x", "success": false }),
            ToolOutcome::Failed,
        ),
        (
            json!("failed to parse function arguments: x"),
            ToolOutcome::Failed,
        ),
        (
            json!([{ "type": "input_text", "text": "Exit code: 3" }]),
            ToolOutcome::Failed,
        ),
        (
            json!(r#"{"output":"x","metadata":{"exit_code":7}}"#),
            ToolOutcome::Failed,
        ),
    ];
    for (output, expected) in cases {
        let (_, outcome) = output::read(&output, &mut crate::importer::Skipped::default());
        assert_eq!(outcome, expected, "{output}");
    }
}

#[test]
fn reasoning_and_errors_are_kept() {
    let session = one("reasoning.jsonl");
    assert_eq!(
        session.said[1].thought.as_deref(),
        Some("pondering this deeply")
    );
    let session = one("fail-400.jsonl");
    let error = &session.said[1].message;
    assert_eq!(error.speaker.kind, SpeakerKind::System);
    assert!(
        error.content.contains("fake error 400"),
        "{}",
        error.content
    );
}

#[test]
fn a_fork_refers_to_messages_of_its_origin() {
    let origin = one("multi-turn.jsonl");
    let fork = one("forked.jsonl");
    assert_eq!(texts(&fork), ["forked message", "echo #8: forked message"]);
    let described = fork.fork.as_ref().unwrap();
    assert_eq!(described.from, origin.id);
    let Beginning::Referred(referred) = &described.beginning else {
        panic!("{described:?}");
    };
    assert!(ids(&origin).iter().all(|id| referred.contains(id)));
    let parent = fork.source.parent.unwrap();
    assert_eq!(parent.relation, ImportedRelation::Fork);
    assert_eq!(parent.original, origin.source.original);
}

#[test]
fn a_copied_fork_has_the_ids_and_the_usage_of_its_origin() {
    let origin = one("older-tokens.jsonl");
    let fork = one("older-fork.jsonl");
    assert_eq!(ids(&origin)[..4], ids(&fork)[..4]);
    assert_ne!(ids(&origin)[4], ids(&fork)[4]);
    assert_eq!(origin.said[0].message.content, "make a note");
    assert_eq!(
        fork.source.parent.as_ref().map(|parent| &parent.original),
        Some(&origin.source.original)
    );
    let all = counted(&[origin, fork]);
    assert_eq!(all, (1000 + 1100 + 1200 + 1250, 3000, 20 + 10 + 50 + 60));
}

#[test]
fn running_totals_count_each_response_once() {
    let session = one("older-tokens.jsonl");
    let expected = [
        "make a note",
        "",
        "exec command rejected by user",
        "You did not let me.",
        "then tell me a story",
        "Once upon a time",
        "The user wanted a note and a story.",
        "go on",
        "interrupted",
    ];
    assert_eq!(texts(&session), expected);
    assert_eq!(
        session.said[1].thought.as_deref(),
        Some("**Planning the note**")
    );
    assert_eq!(session.said[2].message.outcome, Some(ToolOutcome::Denied));
    assert_eq!(session.source.branch.as_deref(), Some("topic"));
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("encrypted reasoning (1)"), "{lost}");
    assert!(lost.contains("context for the model (2)"), "{lost}");
    assert_eq!(counted(&[session]), (1000 + 1100 + 1200, 2000, 80));
}

#[test]
fn items_without_an_envelope_are_read() {
    let session = one("older-items.jsonl");
    let expected = [
        "list the files",
        "",
        "ls: no such \"file\"\n",
        "",
        "a.txt\n",
        "There is one file: a.txt",
    ];
    assert_eq!(texts(&session), expected);
    assert_eq!(session.said[2].message.outcome, Some(ToolOutcome::Failed));
    assert_eq!(session.said[3].message.tool_calls[0].name, "local_shell");
    assert_eq!(session.source.cwd.as_deref(), Some("/home/user/old"));
    assert_eq!(session.source.branch.as_deref(), Some("main"));
    assert_eq!(session.said[0].at.to_string(), "2025-05-07T17:24:21.123Z");
}

#[test]
fn a_subagent_leaves_out_what_it_copied_from_its_parent() {
    let parent = one("older-tokens.jsonl");
    let session = one("older-subagent.jsonl");
    assert_eq!(texts(&session), ["look for notes", "There are none."]);
    let started_by = session.source.parent.clone().unwrap();
    assert_eq!(started_by.relation, ImportedRelation::Subagent);
    assert_eq!(started_by.original, parent.source.original);
    let lost = session.changes.lost().join("; ");
    assert!(
        lost.contains("lines copied from the parent session"),
        "{lost}"
    );
    assert_eq!(counted(&[session]), (400, 0, 5));
}

#[test]
fn a_numbered_subagent_begins_at_its_own_line() {
    let meta =
        json!({ "id": "child", "parent_thread_id": "mother", "subagent_history_start_ordinal": 2 });
    let session = sessions(
        "child.jsonl",
        &[
            line(0, "session_meta", &meta),
            line(1, "response_item", &said("user", "of the mother")),
            line(2, "response_item", &said("user", "of the child")),
        ],
    );
    assert_eq!(texts(&session[0]), ["of the child"]);
}

#[test]
fn what_follows_a_rollback_is_a_fork() {
    let sessions = recorded(&Codex, "rolled-back.jsonl");
    let [main, fork] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    assert_eq!(
        texts(main)[2..],
        ["two", "second answer", "three", "third answer"]
    );
    assert_eq!(
        texts(fork),
        ["one", "first answer", "two, but better", "better answer"]
    );
    let described = fork.fork.as_ref().unwrap();
    assert_eq!(described.from, main.id);
    assert_eq!(described.beginning, Beginning::Copied(2));
}

#[test]
fn a_rollback_in_a_fork_that_only_refers_refers_too() {
    let meta = json!({ "id": "b", "forked_from_id": "a",
        "history_base": { "thread_id": "a", "end_ordinal_exclusive": 5 } });
    let back = |turns: u64| json!({ "type": "thread_rolled_back", "num_turns": turns });
    let found = sessions(
        "b.jsonl",
        &[
            line(5, "session_meta", &meta),
            line(6, "response_item", &said("user", "one")),
            line(7, "response_item", &said("user", "two")),
            line(8, "event_msg", &back(1)),
            line(9, "response_item", &said("user", "three")),
            line(10, "event_msg", &back(9)),
            line(11, "response_item", &said("user", "four")),
        ],
    );
    let [main, second, third] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(texts(second), ["three"]);
    let described = second.fork.as_ref().unwrap();
    assert_eq!(described.from, main.id);
    assert_eq!(
        described.beginning,
        Beginning::Referred(ids(main)[..1].to_vec())
    );
    assert_eq!((texts(third), &third.fork), (vec!["four"], &main.fork));
}

#[test]
fn an_answer_waits_for_its_usage_while_its_turn_lasts() {
    let mut lines = vec![
        line(0, "session_meta", &json!({ "id": "a" })),
        line(
            1,
            "event_msg",
            &json!({ "type": "task_started", "turn_id": "t" }),
        ),
        line(2, "response_item", &said("user", "hi")),
        line(3, "response_item", &said("assistant", "hello")),
    ];
    let session = sessions("a.jsonl", &lines).remove(0);
    assert_eq!(texts(&session), ["hi"]);
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("not complete yet (1)"), "{lost}");
    lines.push(line(
        4,
        "token_usage_record",
        &json!({ "usage": { "input_tokens": 3, "output_tokens": 1 } }),
    ));
    let session = sessions("a.jsonl", &lines).remove(0);
    assert_eq!(texts(&session), ["hi", "hello"]);
    assert!(session.said[1].message.usage_id.is_some());
    lines[4] = line(
        4,
        "event_msg",
        &json!({ "type": "task_complete", "turn_id": "t" }),
    );
    assert_eq!(texts(&sessions("a.jsonl", &lines)[0]), ["hi", "hello"]);
}

#[test]
fn a_reverted_thread_has_two_files_and_two_sessions() {
    let (thread, file) = (
        "01a1e094-1b23-7bb3-b1de-481e4e055140",
        "01a1e094-ffff-7bb3-b1de-481e4e055140",
    );
    let lines = [
        line(
            7,
            "session_meta",
            &json!({ "id": thread, "history_base": { "thread_id": thread, "end_ordinal_exclusive": 7 } }),
        ),
        line(8, "response_item", &said("user", "again")),
    ];
    let named = format!("rollout-2026-01-02T03-04-05-{file}.jsonl");
    let session = sessions(&named, &lines).remove(0);
    assert_eq!(session.source.original, file);
    assert_eq!(
        session.fork.as_ref().map(|fork| fork.from),
        Some(Foreign::session_id(PROGRAM, thread))
    );
    // Under another name, it is still not the thread itself.
    let session = sessions("copy.jsonl", &lines).remove(0);
    assert_ne!(session.source.original, thread);
    assert_ne!(session.id, Foreign::session_id(PROGRAM, thread));
}

#[test]
fn an_absurd_end_of_a_shared_beginning_is_harmless() {
    let meta = json!({ "id": "b", "forked_from_id": "a",
        "history_base": { "thread_id": "a", "end_ordinal_exclusive": u64::MAX } });
    let lines = [
        line(0, "session_meta", &meta),
        line(1, "response_item", &said("user", "hi")),
    ];
    assert_eq!(texts(&sessions("b.jsonl", &lines)[0]), ["hi"]);
}

#[test]
fn files_with_long_instructions_are_recognised() {
    let meta = json!({ "id": "a", "base_instructions": { "text": "x".repeat(30_000) } });
    let content = file(&[line(0, "session_meta", &meta)]);
    let beginning = &content[..crate::importer::BEGINNING];
    assert!(Codex.recognises(Path::new("a.jsonl"), beginning));
    let header = r#"{"id":"a","timestamp":"2025-05-07T17:24:21Z","instructions":"xxx"#;
    assert!(Codex.recognises(Path::new("a.jsonl"), header.as_bytes()));
    assert!(!Codex.recognises(Path::new("a.json"), br#"{"id":"a","type":"message"}"#));
}

#[test]
fn compressed_files_are_read() {
    let lines = [
        line(0, "session_meta", &json!({ "id": "a" })),
        line(1, "response_item", &said("user", "hi")),
    ];
    let content = file(&lines);
    let compressed = zstd::encode_all(&content[..], 3).unwrap();
    let name = Path::new("rollout-2026-01-02T03-04-05-a.jsonl.zst");
    assert!(Codex.is_candidate(name));
    let input = Input {
        path: name,
        content: Some(&compressed),
    };
    assert!(Codex.recognises(name, &input.beginning().unwrap()));
    let read_from = |content| read(&Codex, name, content).unwrap();
    assert_eq!(read_from(&compressed), read_from(&content));
    // A file that was cut off is an error, not a shorter session.
    let cut = read(&Codex, name, &compressed[..compressed.len() - 5]);
    assert!(cut.is_err());
}

#[test]
fn its_places_follow_the_environment() {
    let none = Codex.places(Path::new("/h"), &|_| None);
    assert_eq!(none[1], Path::new("/h/.codex/sessions"));
    let set = Codex.places(Path::new("/h"), &|name| {
        (name == "CODEX_HOME").then(|| "/c".to_owned())
    });
    assert_eq!(
        set,
        [Path::new("/c/archived_sessions"), Path::new("/c/sessions")]
    );
}

#[test]
fn a_recorded_compaction_is_one() {
    let session = one("compacted.jsonl");
    let summaries = session.said.iter().filter(|said| said.compacts.is_some());
    let summaries: Vec<&str> = summaries
        .map(|said| said.message.content.as_str())
        .collect();
    assert_eq!(summaries.len(), 2, "{summaries:?}");
    assert!(summaries[0].starts_with("Another language model started"));
    let humans = session
        .said
        .iter()
        .filter(|said| said.message.role == Role::User);
    let humans: Vec<&str> = humans.map(|said| said.message.content.as_str()).collect();
    assert_eq!(humans, ["first words", "second words", "third words"]);
}
