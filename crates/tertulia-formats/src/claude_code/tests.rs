//! Tests with recorded files, and of trees, subagents and damage.

use serde_json::json;

use super::*;
use tertulia_core::entry::{Role, SpeakerKind};
use tertulia_core::foreign::{Beginning, Said};

fn sessions(content: &[u8]) -> Vec<Foreign> {
    let input = Input {
        path: Path::new("abc.jsonl"),
        content: Some(content),
    };
    let mut sessions = Vec::new();
    ClaudeCode
        .read(&input, &mut |session| {
            sessions.push(session);
            ControlFlow::Continue(())
        })
        .unwrap();
    sessions
}

fn line(kind: &str, uuid: &str, parent: &str, content: Value) -> Value {
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "cwd": "/w",
        "timestamp": "2026-01-02T03:04:05Z", "gitBranch": "main",
        "message": { "id": format!("m-{uuid}"), "role": kind, "content": content, "model": "opus",
            "usage": { "input_tokens": 10, "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2, "output_tokens": 3 } },
    })
}

fn file(lines: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n").into_bytes()
}

fn texts(session: &Foreign) -> Vec<&str> {
    let said = session.said.iter();
    said.map(|said| said.message.content.as_str()).collect()
}

#[test]
fn a_recorded_session_keeps_tools_usage_and_place() {
    let content = include_bytes!("../../fixtures/claude-code/tool-write-read.jsonl");
    assert!(ClaudeCode.recognises(Path::new("a.jsonl"), content));
    let [session] = &sessions(content)[..] else {
        panic!("one session");
    };
    let roles: Vec<Role> = session.said.iter().map(|said| said.message.role).collect();
    let expected = [
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
    ];
    assert_eq!(roles, expected);
    let call = &session.said[1].message.tool_calls[0];
    assert_eq!(call.name, "Write");
    assert_eq!(
        session.said[2].message.tool_call_id.as_deref(),
        Some(call.id.as_str())
    );
    assert_eq!(session.said[2].message.speaker.name, "Write");
    let usage = session.said[5].message.usage.unwrap();
    assert!(usage.input > 0 && usage.output > 0);
    assert_eq!(
        session.source.cwd.as_deref(),
        Some("/home/user/work-claude")
    );
    assert!(session.changes.damaged.is_empty());
}

#[test]
fn a_copied_fork_has_the_ids_of_its_origin() {
    let original = sessions(include_bytes!(
        "../../fixtures/claude-code/multi-turn.jsonl"
    ));
    let fork = sessions(include_bytes!("../../fixtures/claude-code/forked.jsonl"));
    let ids = |session: &Foreign| session.said.iter().map(|said| said.id).collect::<Vec<_>>();
    assert_eq!(ids(&original[0])[..4], ids(&fork[0])[..4]);
    assert_ne!(original[0].id, fork[0].id);
}

#[test]
fn only_a_second_prompt_is_a_fork() {
    let call = |id: &str| json!([{ "type": "tool_use", "id": id, "name": "Bash", "input": {} }]);
    let result =
        |id: &str| json!([{ "type": "tool_result", "tool_use_id": id, "content": "done" }]);
    let content = file(&[
        line("user", "1", "", json!("one")),
        line("assistant", "2", "1", call("a")),
        line("assistant", "3", "2", call("b")),
        line("user", "4", "2", result("a")),
        line("user", "5", "3", result("b")),
        line(
            "assistant",
            "6",
            "5",
            json!([{ "type": "text", "text": "both" }]),
        ),
        line("user", "7", "6", json!("two")),
        line(
            "assistant",
            "8",
            "7",
            json!([{ "type": "text", "text": "second" }]),
        ),
        line("user", "9", "6", json!("two, edited")),
        line(
            "assistant",
            "10",
            "9",
            json!([{ "type": "text", "text": "third" }]),
        ),
    ]);
    let sessions = sessions(&content);
    let [main, fork] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    assert_eq!(
        texts(main),
        ["one", "", "", "done", "done", "both", "two", "second"]
    );
    assert_eq!(
        texts(fork),
        [
            "one",
            "",
            "",
            "done",
            "done",
            "both",
            "two, edited",
            "third"
        ]
    );
    let beginning = fork
        .fork
        .as_ref()
        .map(|fork| (fork.from, fork.beginning.clone()));
    assert_eq!(beginning, Some((main.id, Beginning::Copied(6))));
    assert_eq!(main.source.branch.as_deref(), Some("main"));
}

#[test]
fn blocks_of_one_answer_count_their_usage_once() {
    let mut lines = [
        line("user", "1", "", json!("one")),
        line(
            "assistant",
            "2",
            "1",
            json!([{ "type": "thinking", "thinking": "hm" }]),
        ),
        line(
            "assistant",
            "3",
            "2",
            json!([{ "type": "text", "text": "a" }]),
        ),
        line(
            "assistant",
            "4",
            "3",
            json!([{ "type": "tool_use", "id": "t", "name": "Read" }]),
        ),
    ];
    for line in &mut lines[1..] {
        line["message"]["id"] = json!("m");
        line["requestId"] = json!("r");
    }
    lines[3]["message"]["usage"]["output_tokens"] = json!(9);
    let session = sessions(&file(&lines)).remove(0);
    assert_eq!(session.said[1].thought.as_deref(), Some("hm"));
    let usage: Vec<_> = session
        .said
        .iter()
        .filter_map(|said| said.message.usage)
        .collect();
    let [usage] = &usage[..] else {
        panic!("{usage:?}");
    };
    assert_eq!((usage.input, usage.cache_read, usage.output), (17, 5, 9));
    assert_eq!(session.said[2].message.usage_id.as_deref(), Some("m:r"));
}

#[test]
fn subagents_are_sessions_of_their_own() {
    let mut lines = [
        line("user", "1", "", json!("one")),
        line("user", "a1", "", json!("find it")),
        line(
            "assistant",
            "a2",
            "a1",
            json!([{ "type": "text", "text": "found" }]),
        ),
        line(
            "assistant",
            "2",
            "1",
            json!([{ "type": "text", "text": "it is there" }]),
        ),
    ];
    for line in &mut lines[1..3] {
        line["isSidechain"] = json!(true);
    }
    let sessions = sessions(&file(&lines));
    let [main, agent] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    assert_eq!(texts(main), ["one", "it is there"]);
    assert_eq!(texts(agent), ["find it", "found"]);
    let parent = agent.source.parent.as_ref().unwrap();
    assert_eq!(
        (parent.original.as_str(), parent.relation),
        ("s1", ImportedRelation::Subagent)
    );
}

#[test]
fn damage_is_counted_and_cycles_end() {
    let mut content = file(&[
        line("user", "1", "2", json!("one")),
        line("user", "2", "1", json!("two")),
        line("user", "2", "2", json!("again")),
        line("user", "", "", json!("no id")),
        line("assistant", "3", "3", json!(7)),
    ]);
    content.extend_from_slice(b"\n{\"type\":\"user\"");
    let session = sessions(&content).remove(0);
    assert_eq!(texts(&session), ["one", "two"]);
    assert_eq!(session.changes.damaged, [6]);
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("messages without an id (1)"), "{lost}");
    let changed = session.changes.changed().join("; ");
    assert!(changed.contains("kept once (1)"), "{changed}");
}

#[test]
fn an_answer_that_was_cut_off_is_interrupted() {
    let text = json!([{ "type": "text", "text": "word0 word1" }]);
    let mut cut = line("assistant", "2", "1", text.clone());
    cut["isAbortedMidStream"] = json!(true);
    let whole = line("assistant", "4", "3", text);
    let content = file(&[
        line("user", "1", "", json!("count")),
        cut,
        line("user", "3", "2", json!("again")),
        whole,
    ]);
    let session = sessions(&content).remove(0);
    let said = session.said.iter();
    let interrupted: Vec<bool> = said.map(|said| said.message.interrupted).collect();
    assert_eq!(interrupted, [false, true, false, false]);
}

#[test]
fn what_the_program_wrote_is_not_the_user() {
    let mut meta = line("user", "1", "", json!("Caveat"));
    meta["isMeta"] = json!(true);
    let content = file(&[
        meta,
        line("user", "2", "1", json!("[Request interrupted by user]")),
        line("user", "3", "2", json!("go on")),
    ]);
    let session = sessions(&content).remove(0);
    let kinds: Vec<_> = session
        .said
        .iter()
        .map(|said| said.message.speaker.kind)
        .collect();
    assert_eq!(
        kinds,
        [SpeakerKind::System, SpeakerKind::System, SpeakerKind::Human]
    );
}

#[test]
fn what_the_program_writes_in_the_users_place_is_not_the_users() {
    let reminder = "<system-reminder>\nThe file changed.\n</system-reminder>";
    let content = file(&[
        line(
            "user",
            "1",
            "",
            json!(
                "<command-name>/compact</command-name>\n   <command-message>compact</command-message>\n<command-args></command-args>"
            ),
        ),
        line(
            "user",
            "2",
            "1",
            json!("<local-command-stdout>Compacted</local-command-stdout>"),
        ),
        line(
            "user",
            "3",
            "2",
            json!("<task-notification>\n<task-id>b1</task-id>\n</task-notification>"),
        ),
        line(
            "user",
            "4",
            "3",
            json!([{ "type": "text", "text": reminder }]),
        ),
        line(
            "user",
            "5",
            "4",
            json!([{ "type": "text", "text": reminder },
            { "type": "text", "text": "fix <b>this</b>" }]),
        ),
        line(
            "user",
            "6",
            "5",
            json!("<command-line> tools are what I write"),
        ),
        line(
            "user",
            "7",
            "6",
            json!("<system-reminder>one</system-reminder> and words"),
        ),
    ]);
    let sessions = sessions(&content);
    let [session] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    let kinds = session.said.iter().map(|said| said.message.speaker.kind);
    let kinds: Vec<SpeakerKind> = kinds.collect();
    let (system, human) = (SpeakerKind::System, SpeakerKind::Human);
    assert_eq!(kinds, [system, system, system, system, human, human, human]);
    assert_eq!(texts(session)[4], "fix <b>this</b>");
    let lost = session.changes.lost().join(";");
    assert!(lost.contains("context for the model (1)"), "{lost}");
}

#[test]
fn a_recorded_compaction_covers_what_the_program_does_not_keep() {
    let sessions = sessions(include_bytes!("../../fixtures/claude-code/compacted.jsonl"));
    let [session] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    let summaries: Vec<&Said> = session
        .said
        .iter()
        .filter(|said| said.compacts.is_some())
        .collect();
    let [summary] = &summaries[..] else {
        panic!("{summaries:?}");
    };
    assert!(
        summary
            .message
            .content
            .starts_with("This session is being continued")
    );
    let kept = summary.compacts.as_ref().unwrap().keeps.unwrap();
    let kept = session.said.iter().find(|said| said.id == kept).unwrap();
    assert_eq!(kept.message.content, "tool said: echo #1: look around");
    let humans = session
        .said
        .iter()
        .filter(|said| said.message.speaker.kind == SpeakerKind::Human);
    let humans: Vec<&str> = humans.map(|said| said.message.content.as_str()).collect();
    assert_eq!(humans.len(), 4, "{humans:?}");
    assert_eq!((humans[0], humans[3]), ("first words", "after the summary"));
    // The program wrote these answers itself.
    let answers = session
        .said
        .iter()
        .filter(|said| said.message.speaker.kind == SpeakerKind::Ai);
    assert!(
        answers
            .into_iter()
            .all(|said| said.message.content != "No response requested.")
    );
}

#[test]
fn a_recorded_subagent_names_its_session() {
    let sessions = sessions(include_bytes!("../../fixtures/claude-code/subagent.jsonl"));
    let [session] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    let parent = session.source.parent.as_ref().unwrap();
    assert_eq!(parent.original, "34258832-1b96-4729-b29e-86ca619db867");
    assert_eq!(parent.relation, ImportedRelation::Subagent);
}
