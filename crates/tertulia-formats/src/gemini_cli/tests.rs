//! Tests with recorded files, with an older document, and with a folder as the program writes it.

use std::fs;

use super::*;
use crate::importer::tests::{counted, ids, read, recorded, texts};
use tertulia_core::entry::{ImportedRelation, Role, ToolOutcome};
use tertulia_core::foreign::Beginning;

fn one(name: &str) -> Foreign {
    let mut sessions = recorded(&GeminiCli, name);
    assert_eq!(sessions.len(), 1, "{name}");
    sessions.remove(0)
}

#[test]
fn a_session_that_was_resumed_is_one_session() {
    let session = one("multi-turn.jsonl");
    let expected = [
        "first message",
        "echo #1: first message",
        "second message",
        "echo #3: second message",
        "third message",
        "echo #5: third message",
    ];
    assert_eq!(texts(&session), expected);
    assert_eq!(
        session.said[1].message.model.as_deref(),
        Some("gemini-2.5-pro")
    );
    assert_eq!(session.said[1].at.to_string(), "2026-11-15T19:02:32.186Z");
    let lost = session.changes.lost().join("; ");
    assert!(lost.contains("context for the model (1)"), "{lost}");
    assert!(lost.contains("the working directory"), "{lost}");
    assert_eq!(counted(&[session]), (5942 + 5952 + 5961, 0, 12));
}

#[test]
fn a_file_may_contain_several_sessions_with_tools() {
    let sessions = recorded(&GeminiCli, "tools-three-sessions-one-file.jsonl");
    let lengths: Vec<usize> = sessions.iter().map(|session| session.said.len()).collect();
    assert_eq!(lengths, [4, 8, 4]);
    let [_, second, _] = &sessions[..] else {
        panic!("three sessions");
    };
    let call = &second.said[1].message;
    assert_eq!(call.tool_calls[0].name, "run_shell_command");
    // The usage was recorded before the call.
    assert_eq!(call.usage.unwrap().input, 6002);
    let result = &second.said[2].message;
    assert_eq!(result.tool_call_id.as_ref(), Some(&call.tool_calls[0].id));
    assert_eq!(result.outcome, Some(ToolOutcome::Ok));
    assert_eq!(
        sessions[0].said[2].message.outcome,
        Some(ToolOutcome::Failed)
    );
    let input = [5945, 5965, 6002, 6032, 6060, 6061, 5953, 5980];
    assert_eq!(counted(&sessions).0, input.iter().sum::<u64>());
}

#[test]
fn calls_that_are_recorded_late_follow_the_answer_that_made_them() {
    let session = one("acp-tool.jsonl");
    let names: Vec<&str> = session
        .said
        .iter()
        .map(|said| said.message.speaker.name.as_str())
        .collect();
    let expected = [
        "you",
        "gemini",
        "run_shell_command",
        "gemini",
        "write_file",
        "gemini",
    ];
    assert_eq!(names, expected);
    assert_eq!(counted(&[session]).0, 6152 + 6174 + 6200);
}

#[test]
fn files_of_one_session_do_not_repeat_it() {
    let mut files = [20, 21, 23].map(|minute| {
        let name = format!("session-2026-11-15T19-{minute}-8ce2f3eb.jsonl");
        recorded(&GeminiCli, &name)
    });
    assert_eq!(files.each_ref().map(Vec::len), [1, 0, 0]);
    // A file that lists the messages of an earlier one continues it.
    let state = br#"{"sessionId":"8ce2f3eb-4a5b-43ae-aea2-95ae8dcd9086","projectHash":"0","messages":[
        {"id":"27705479-2e69-4e4b-8c35-7838b631aed9","type":"user","content":[{"text":"hello from next minute"}]},
        {"id":"new","type":"user","content":[{"text":"new"}]}]}"#;
    let later = read(&GeminiCli, Path::new("later.json"), state).unwrap();
    let earlier = files[0].remove(0);
    assert_eq!(later[0].id, earlier.id);
    assert_eq!(ids(&later[0])[0], ids(&earlier)[0]);
}

#[test]
fn what_was_cut_off_is_named() {
    let sessions = recorded(&GeminiCli, "sigint-sigterm-midstream.jsonl");
    assert_eq!(sessions.len(), 4);
    assert_eq!(texts(&sessions[3]), ["[[sh:sleep 41; echo done]]"]);
    let lost = sessions[3].changes.lost().join("; ");
    assert!(lost.contains("usage at the end"), "{lost}");
    // It is kept once the session goes on.
    let name = Path::new("a.jsonl");
    let content = br#"{"sessionId":"a","projectHash":"0","startTime":"2026-01-02T03:04:05Z"}
        {"id":"g","type":"gemini","content":"","tokens":{"input":5,"output":1},"model":"m"}
        {"id":"u","type":"user","content":"are you there?"}"#;
    let session = read(&GeminiCli, name, content).unwrap().remove(0);
    assert_eq!(texts(&session), ["", "are you there?"]);
    assert!(session.said[0].message.interrupted);
    assert_eq!(counted(&[session]), (5, 0, 1));
}

#[test]
fn an_older_document_keeps_thoughts_calls_and_errors() {
    let session = one("older-document.json");
    let expected = [
        "what is here?",
        "Let me look.",
        "",
        "a.txt",
        "",
        "[Operation Cancelled] Reason: User denied execution.",
        "There is a.txt.",
        "quota exceeded",
    ];
    assert_eq!(texts(&session), expected);
    assert_eq!(
        session.said[1].thought.as_deref(),
        Some("Listing\nI will list the folder.")
    );
    let usage = session.said[1].message.usage.unwrap();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (900, 300, 15)
    );
    assert_eq!(session.said[5].message.outcome, Some(ToolOutcome::Denied));
    assert_eq!(session.said[7].message.role, Role::System);
}

#[test]
fn what_follows_a_rewind_is_a_fork() {
    let sessions = recorded(&GeminiCli, "rewound.jsonl");
    let [main, fork] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    let expected = [
        "one",
        "first answer",
        "two[inlineData: image/png]",
        "second answer",
    ];
    assert_eq!(texts(main), expected);
    // The usage came after its answer.
    assert_eq!(main.said[3].message.usage.unwrap().input, 20);
    assert_eq!(main.title.as_deref(), Some("Counting with the user"));
    assert_eq!(
        texts(fork)[..4],
        ["one", "first answer", "two, but better", "better answer"]
    );
    assert_eq!(fork.said[3].thought.as_deref(), Some("let me think"));
    assert_eq!(fork.said[4].message.role, Role::System);
    let described = fork.fork.as_ref().unwrap();
    assert_eq!(
        (described.from, &described.beginning),
        (main.id, &Beginning::Copied(2))
    );
    assert_eq!(counted(&sessions), (60, 0, 3));
}

#[test]
fn its_folder_names_the_project_and_the_parent() {
    let home = tempfile::tempdir().unwrap();
    let chats = home.path().join(".gemini/tmp/work/chats");
    let below = chats.join("0c0c-parent");
    fs::create_dir_all(&below).unwrap();
    let line = r#"{"sessionId":"s","projectHash":"0","kind":"subagent","startTime":"2026-01-02T03:04:05Z"}
        {"id":"u","type":"user","content":"hi"}"#;
    let registry = r#"{"projects":{"/home/user/other":"other","/home/user/work":"work"}}"#;
    fs::write(home.path().join(".gemini/projects.json"), registry).unwrap();
    let session = read(&GeminiCli, &chats.join("session-1.jsonl"), line.as_bytes()).unwrap();
    assert_eq!(session[0].source.cwd.as_deref(), Some("/home/user/work"));
    assert_eq!(session[0].source.parent, None);
    let session = read(&GeminiCli, &below.join("s.jsonl"), line.as_bytes()).unwrap();
    let parent = session[0].source.parent.as_ref().unwrap();
    assert_eq!(parent.relation, ImportedRelation::Subagent);
    assert_eq!(parent.original, "0c0c-parent");
    // The folder itself knows better.
    fs::write(
        home.path().join(".gemini/tmp/work/.project_root"),
        "/moved\n",
    )
    .unwrap();
    let session = read(&GeminiCli, &chats.join("session-1.jsonl"), line.as_bytes()).unwrap();
    assert_eq!(session[0].source.cwd.as_deref(), Some("/moved"));
    assert!(session[0].changes.lost().is_empty());
}
