//! Recorded output of real agents. The recordings leave out the lists of commands.

use super::super::failure;
use super::*;
use crate::{AgentError, FailureKind, Outcome};

const CLAUDE_TOOL: &str =
    include_str!("../../../tests/agents/recorded/acp-claude/tool-allow.jsonl");
const CLAUDE_500: &str = include_str!("../../../tests/agents/recorded/acp-claude/fail-500.jsonl");
const CODEX_TOOL: &str =
    include_str!("../../../tests/agents/recorded/acp-codex/perm-read-only-allow.jsonl");
const CODEX_400: &str = include_str!("../../../tests/agents/recorded/acp-codex/fail-400.jsonl");
const GEMINI_TOOL: &str =
    include_str!("../../../tests/agents/recorded/acp-gemini/tool-write-nofs.jsonl");
const GEMINI_400: &str = include_str!("../../../tests/agents/recorded/acp-gemini/fail-400.jsonl");
const OPENCODE_TOOL: &str =
    include_str!("../../../tests/agents/recorded/acp-opencode/tool-allow.jsonl");
const OPENCODE_400: &str =
    include_str!("../../../tests/agents/recorded/acp-opencode/fail-400.jsonl");

/// Plays a recorded turn: its events, and how it ended.
fn play(recorded: &str) -> (Vec<AgentEvent>, Result<Outcome, AgentError>) {
    let mut updates = Updates::default();
    let mut events = Vec::new();
    for line in recorded.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let params = &message["params"];
        if message["method"] == "session/update" {
            events.extend(updates.hear(&params["update"]));
        } else if message["method"] == "session/request_permission" {
            events.extend(updates.asked(&params["toolCall"]).2);
        } else if let Some(told) = message["error"].as_object() {
            let (code, message) = (told["code"].as_i64().unwrap(), told["message"].as_str());
            let data = told.get("data").unwrap_or(&Value::Null);
            return (events, Err(failure::of_error(code, message.unwrap(), data)));
        } else {
            let told = &message["result"];
            events.extend(usage(told).map(AgentEvent::Usage));
            let turn = failure::Turn {
                broken: updates.broken(),
                ..failure::Turn::default()
            };
            let reason = told["stopReason"].as_str().unwrap();
            return (events, failure::stop(reason, turn).1);
        }
    }
    panic!("the recording has no end")
}

fn text(events: &[AgentEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        AgentEvent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Returns the tools that were used: name, arguments, output and success.
fn tools(events: &[AgentEvent]) -> Vec<(String, Value, String, bool)> {
    let mut used: Vec<(String, Value, String, bool)> = Vec::new();
    let mut ids = Vec::new();
    for event in events {
        match event {
            AgentEvent::ToolStarted(call) => {
                ids.push(call.id.clone());
                used.push((
                    call.name.clone(),
                    call.arguments.clone(),
                    String::new(),
                    false,
                ));
            }
            AgentEvent::ToolCompleted { id, output, ok } => {
                let at = ids.iter().position(|known| known == id).unwrap();
                (used[at].2, used[at].3) = (output.clone(), *ok);
            }
            AgentEvent::Unknown(value) => panic!("{value}"),
            _ => {}
        }
    }
    used
}

fn spent(events: &[AgentEvent]) -> Option<Usage> {
    match events.last() {
        Some(AgentEvent::Usage(usage)) => Some(*usage),
        _ => None,
    }
}

#[test]
fn claude_fills_in_its_call_before_it_counts() {
    let (events, ended) = play(CLAUDE_TOOL);
    let command = json!({ "command": "touch made.txt && echo tool-output" });
    let output = "```console\ntool-output\n```".to_owned();
    assert_eq!(tools(&events), [("Bash".into(), command, output, true)]);
    assert_eq!(text(&events), "tool said: tool-output");
    assert_eq!(
        spent(&events),
        Some(Usage {
            estimated: false,
            input: 7781,
            output: 16,
            ..Usage::default()
        })
    );
    assert_eq!(ended, Ok(Outcome::Done));
}

#[test]
fn codex_shows_its_terminal() {
    let (events, ended) = play(CODEX_TOOL);
    let command = json!({ "command": "touch /project/x9 && echo ok", "cwd": "/project" });
    assert_eq!(
        tools(&events),
        [("execute".into(), command, "ok\n".into(), true)]
    );
    assert!(text(&events).starts_with("tool said: Chunk ID: 5d77e4\nWall time"));
    assert_eq!(
        spent(&events),
        Some(Usage {
            estimated: false,
            input: 15204,
            output: 53,
            ..Usage::default()
        })
    );
    assert_eq!(ended, Ok(Outcome::Done));
}

#[test]
fn gemini_announces_a_call_by_asking_for_it() {
    let (events, ended) = play(GEMINI_TOOL);
    let used = tools(&events);
    let (name, arguments, output, ok) = &used[0];
    assert_eq!((name.as_str(), *ok), ("edit", true));
    assert_eq!(*arguments, json!({ "title": "Writing to w4.txt" }));
    assert!(
        output.starts_with("/project/w4.txt\n") && output.ends_with("+héllo"),
        "{output}"
    );
    let read = json!({ "title": "w4.txt" });
    assert_eq!(used[1..], [("read".into(), read, String::new(), true)]);
    assert_eq!(text(&events), "tool said: héllo");
    assert_eq!(
        spent(&events),
        Some(Usage {
            estimated: false,
            input: 18528,
            output: 37,
            ..Usage::default()
        })
    );
    assert_eq!(ended, Ok(Outcome::Done));
}

#[test]
fn opencode_tells_the_whole_call_when_it_runs() {
    let (events, ended) = play(OPENCODE_TOOL);
    let command = json!({ "command": "touch made.txt && echo tool-output", "cwd": "/project" });
    assert_eq!(
        tools(&events),
        [("execute".into(), command, "tool-output\n".into(), true)]
    );
    assert_eq!(
        spent(&events),
        Some(Usage {
            estimated: false,
            input: 2404,
            output: 3,
            ..Usage::default()
        })
    );
    assert_eq!(ended, Ok(Outcome::Done));
}

#[test]
fn each_tells_a_failure_in_its_own_way() {
    let failed = |recorded| {
        let (_, ended) = play(recorded);
        let error = ended.unwrap_err();
        (error.kind, error.message)
    };
    let bad = || (FailureKind::Failed, "fake error 400".to_owned());
    assert_eq!(failed(GEMINI_400), bad());
    assert_eq!(failed(OPENCODE_400), bad());
    assert_eq!(failed(CODEX_400), bad());
    assert_eq!(failed(CLAUDE_500).0, FailureKind::Unavailable);
}

#[test]
fn what_codex_says_after_its_thread_broke_is_no_answer() {
    let (events, _) = play(CODEX_400);
    assert_eq!(text(&events), "");
}

#[test]
fn thoughts_plans_and_news_that_nobody_knows() {
    let mut updates = Updates::default();
    let content = json!({ "type": "text", "text": "hm" });
    let thought = json!({ "sessionUpdate": "agent_thought_chunk", "content": content });
    assert_eq!(updates.hear(&thought), [AgentEvent::Reasoning("hm".into())]);
    let plan = json!({ "sessionUpdate": "plan", "entries": [
        { "content": "a", "status": "completed" }, { "content": "b", "status": "later" },
    ]});
    let todo = |text: &str, state| Todo {
        text: text.into(),
        state,
    };
    let expected = vec![
        todo("a", TodoState::Completed),
        todo("b", TodoState::Pending),
    ];
    assert_eq!(updates.hear(&plan), [AgentEvent::Todos(expected)]);
    let news = json!({ "sessionUpdate": "hologram", "x": 1 });
    assert_eq!(updates.hear(&news), [AgentEvent::Unknown(news.clone())]);
    assert_eq!(
        updates.hear(&json!({ "sessionUpdate": "current_mode_update" })),
        []
    );
}

#[test]
fn two_messages_do_not_run_into_each_other() {
    let mut updates = Updates::default();
    let mut said = String::new();
    for (id, words) in [("1", "Let me "), ("1", "look."), ("2", "Done.")] {
        let content = json!({ "type": "text", "text": words });
        let chunk =
            json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": content });
        said += &text(&updates.hear(&chunk));
    }
    assert_eq!(said, "Let me look.\n\nDone.");
}

#[test]
fn a_cache_that_is_counted_apart_was_read_too() {
    let told = |total| {
        json!({ "usage": { "totalTokens": total, "inputTokens": 10, "outputTokens": 5,
            "cachedReadTokens": 100, "cachedWriteTokens": 1 } })
    };
    assert_eq!(
        usage(&told(116)),
        Some(Usage {
            estimated: false,
            input: 111,
            output: 5,
            cache_read: 100,
            cache_written: 1,
        })
    );
    assert_eq!(
        usage(&told(15)),
        Some(Usage {
            estimated: false,
            input: 10,
            output: 5,
            // Never more than the input.
            cache_read: 10,
            cache_written: 0,
        })
    );
    assert_eq!(usage(&json!({ "usage": null })), None);
}

#[test]
fn what_was_not_allowed_is_denied_whether_the_agent_says_so_or_not() {
    let asked = |id: &str| json!({ "toolCallId": id, "title": "touch x", "kind": "execute" });
    let completed = |id: &str, output: &str| AgentEvent::ToolCompleted {
        id: id.into(),
        output: output.into(),
        ok: false,
    };
    let mut updates = Updates::default();
    for id in ["told", "silent", "allowed"] {
        updates.asked(&asked(id));
    }
    updates.deny("told", None);
    updates.deny("silent", None);
    let failed = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "told",
        "status": "failed", "rawOutput": "rejected by the user" });
    assert_eq!(
        updates.hear(&failed),
        [completed("told", "[not run: rejected by the user]")]
    );
    let silent = completed("silent", &format!("[not run: {DENIED}]"));
    assert_eq!(updates.denied(), [silent]);
    assert_eq!(updates.denied(), []);
}

#[test]
fn output_of_a_running_tool_is_heard() {
    let mut updates = Updates::default();
    let start = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "make",
        "kind": "execute", "status": "in_progress", "rawInput": { "command": "make" } });
    updates.hear(&start);
    let tail = |events: Vec<AgentEvent>| match &events[..] {
        [AgentEvent::ToolOutput { id, tail }] if id == "c" => tail.clone(),
        events => panic!("{events:?}"),
    };
    let printed = |text: &str| {
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c",
            "_meta": { "terminal_output_delta": { "data": text } } })
    };
    assert_eq!(tail(updates.hear(&printed("one\n"))), "one");
    assert_eq!(tail(updates.hear(&printed("two\n"))), "one\ntwo");
    let content = json!([{ "type": "content", "content": { "type": "text", "text": "three" } }]);
    let shown =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "content": content });
    assert_eq!(tail(updates.hear(&shown)), "three");
    // A diff is no output.
    let diff = json!([{ "type": "diff", "path": "a", "oldText": "", "newText": "x" }]);
    let shown = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "content": diff });
    assert_eq!(updates.hear(&shown), []);
}
