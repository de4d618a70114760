//! Parses the events of `codex exec --json`.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::LINGER;
use super::reading::{
    Dialect, Ending, Exit, Paragraphs, content, failed, list, number, reasoning, started, todos,
    words,
};
use crate::tool::tail::Tail;
use crate::{AgentEvent, Retry, failure};
use tertulia_core::entry::Usage;

/// State of one turn.
pub(super) struct Codex {
    spent: Usage,
    paragraphs: Paragraphs,
    /// Tools that were reported as started.
    begun: HashSet<String>,
    retries: u32,
    ending: Ending,
}

impl Codex {
    /// Creates the state for a turn of a thread with previous usage `spent`.
    pub(super) fn new(spent: Usage) -> Codex {
        Codex {
            spent,
            paragraphs: Paragraphs::default(),
            begun: HashSet::new(),
            retries: 0,
            ending: Ending::Unfinished,
        }
    }
}

impl Dialect for Codex {
    fn event(&mut self, event: Value) -> Vec<AgentEvent> {
        match words(&event, "/type") {
            "thread.started" => {
                vec![AgentEvent::Session(words(&event, "/thread_id").to_owned())]
            }
            "turn.started" => Vec::new(),
            "item.started" | "item.updated" => self.item(&event, false),
            "item.completed" => self.item(&event, true),
            "error" => self.error(words(&event, "/message")),
            "turn.completed" => {
                self.ending = Ending::Done;
                vec![AgentEvent::Usage(self.cost(&event))]
            }
            "turn.failed" => {
                self.ending = failed(None, words(&event, "/error/message"));
                Vec::new()
            }
            _ => vec![AgentEvent::Unknown(event)],
        }
    }

    fn over(&self) -> Option<Duration> {
        (self.ending != Ending::Unfinished).then_some(LINGER)
    }

    fn ending(&self, _: Option<&Exit>) -> Ending {
        self.ending.clone()
    }

    fn lost(&self, stderr: &str) -> bool {
        stderr.contains("no rollout found") || stderr.contains("thread/resume failed")
    }
}

impl Codex {
    fn item(&mut self, event: &Value, done: bool) -> Vec<AgentEvent> {
        let item = &event["item"];
        match words(item, "/type") {
            "agent_message" if done => self.paragraphs.whole(words(item, "/text")),
            "reasoning" if done => reasoning(words(item, "/text")),
            "agent_message" | "reasoning" => Vec::new(),
            "todo_list" => vec![todos(list(item, "/items"))],
            // A warning; a failure of the turn is a separate event.
            "error" => vec![AgentEvent::Remark(failure::one_line(words(
                item, "/message",
            )))],
            kind => match Tool::of(kind, item) {
                Some(tool) => self.tool(words(item, "/id"), tool, done),
                None => vec![AgentEvent::Unknown(event.clone())],
            },
        }
    }

    fn tool(&mut self, id: &str, tool: Tool, done: bool) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        if self.begun.insert(id.to_owned()) {
            events.push(started(id, &tool.name, Some(&tool.arguments)));
        }
        let tail = Tail::of(&tool.output);
        if !done && tool.name == "command_execution" && !tail.is_empty() {
            let id = id.to_owned();
            events.push(AgentEvent::ToolOutput { id, tail });
        }
        if done {
            events.push(AgentEvent::ToolCompleted {
                id: id.to_owned(),
                output: tool.output,
                ok: tool.ok,
            });
        }
        events
    }

    /// Reads an error: either a retry, or the turn is about to fail with an event of its own.
    fn error(&mut self, message: &str) -> Vec<AgentEvent> {
        let Some(rest) = message.strip_prefix("Reconnecting...") else {
            return Vec::new();
        };
        let (count, reason) = rest.split_once('(').unwrap_or(("", rest));
        self.retries += 1;
        let told = count
            .trim()
            .split_once('/')
            .and_then(|(attempt, of)| Some((attempt.parse().ok()?, of.parse().ok()?)));
        // Without a network it has no counter and retries for ever.
        let (attempt, of) = told.unwrap_or((self.retries, self.retries));
        vec![AgentEvent::Retrying(Retry {
            attempt,
            of,
            wait: Duration::ZERO,
            reason: failure::one_line(reason.trim().trim_end_matches(')')),
        })]
    }

    /// Returns the usage of the turn: Codex reports the sum of the whole thread.
    fn cost(&self, event: &Value) -> Usage {
        // A sum below the previous usage means that Codex started counting anew.
        let since = |name: &str, spent: u64| {
            let sum = number(event, &format!("/usage/{name}"));
            sum.checked_sub(spent).unwrap_or(sum)
        };
        let input = since("input_tokens", self.spent.input);
        // Input includes cached tokens. Threads recorded before cached tokens were have none in
        // `spent`, and their sum would exceed the turn's input.
        let cache_read = since("cached_input_tokens", self.spent.cache_read).min(input);
        let cache_written = since("cache_write_input_tokens", self.spent.cache_written);
        Usage {
            estimated: false,
            input,
            output: since("output_tokens", self.spent.output),
            cache_read,
            cache_written: cache_written.min(input - cache_read),
        }
    }
}

/// An item that is a tool call.
struct Tool {
    name: String,
    arguments: Value,
    output: String,
    ok: bool,
}

impl Tool {
    fn of(kind: &str, item: &Value) -> Option<Tool> {
        let completed = words(item, "/status") == "completed";
        let (name, arguments, output, ok) = match kind {
            "command_execution" => (
                kind.to_owned(),
                json!({ "command": item["command"] }),
                content(item.get("aggregated_output")),
                completed && number(item, "/exit_code") == 0,
            ),
            "file_change" => (
                kind.to_owned(),
                json!({ "changes": item["changes"] }),
                changes(item),
                completed,
            ),
            "mcp_tool_call" => {
                let error = words(item, "/error/message");
                let output = match error {
                    "" => content(item.pointer("/result/content")),
                    error => error.to_owned(),
                };
                (
                    format!("{}.{}", words(item, "/server"), words(item, "/tool")),
                    item["arguments"].clone(),
                    output,
                    completed && error.is_empty(),
                )
            }
            "web_search" => (
                kind.to_owned(),
                json!({ "query": item["query"] }),
                String::new(),
                true,
            ),
            _ => return None,
        };
        Some(Tool {
            name,
            arguments,
            output,
            ok,
        })
    }
}

fn changes(item: &Value) -> String {
    let lines: Vec<String> = list(item, "/changes")
        .iter()
        .map(|change| format!("{} {}", words(change, "/kind"), words(change, "/path")))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(codex: &mut Codex, event: &str, item: Value) -> Vec<AgentEvent> {
        codex.event(json!({"type": event, "item": item}))
    }

    #[test]
    fn costs_are_those_of_the_turn() {
        let check = |spent: (u64, u64), expected: (u64, u64)| {
            let mut codex = Codex::new(Usage {
                estimated: false,
                input: spent.0,
                output: spent.1,
                ..Usage::default()
            });
            let done = json!({"type": "turn.completed", "usage": {"input_tokens": 13311, "output_tokens": 8}});
            let usage = Usage {
                estimated: false,
                input: expected.0,
                output: expected.1,
                ..Usage::default()
            };
            assert_eq!(codex.event(done), [AgentEvent::Usage(usage)]);
            assert_eq!(codex.ending(None), Ending::Done);
        };
        check((0, 0), (13311, 8));
        check((6651, 4), (6660, 4));
        check((99999, 4), (13311, 4));
    }

    #[test]
    fn cached_tokens_are_part_of_the_turns_input() {
        let cached = |spent: (u64, u64, u64)| {
            let spent = Usage {
                input: spent.0,
                cache_read: spent.1,
                cache_written: spent.2,
                ..Usage::default()
            };
            let cost = Codex::new(spent).cost(&json!({"usage": {"input_tokens": 1000,
                "cached_input_tokens": 700, "cache_write_input_tokens": 200, "output_tokens": 1}}));
            (cost.input, cost.cache_read, cost.cache_written)
        };
        assert_eq!(cached((0, 0, 0)), (1000, 700, 200));
        assert_eq!(cached((600, 400, 150)), (400, 300, 50));
        // A thread whose earlier turns were recorded without cached tokens.
        assert_eq!(cached((600, 0, 0)), (400, 400, 0));
    }

    #[test]
    fn todo_lists_and_other_tools() {
        let mut codex = Codex::new(Usage::default());
        let list =
            json!({"id": "1", "type": "todo_list", "items": [{"text": "a", "completed": true}]});
        for event in ["item.started", "item.updated", "item.completed"] {
            let events = item(&mut codex, event, list.clone());
            assert!(matches!(&events[..], [AgentEvent::Todos(todos)] if todos.len() == 1));
        }
        let call = json!({"id": "2", "type": "mcp_tool_call", "server": "s", "tool": "t",
            "arguments": {"x": 1}, "status": "failed", "error": {"message": "no"}});
        // Denied at once, without a start event.
        assert_eq!(
            item(&mut codex, "item.completed", call),
            [
                started("2", "s.t", Some(&json!({"x": 1}))),
                AgentEvent::ToolCompleted {
                    id: "2".into(),
                    output: "no".into(),
                    ok: false
                }
            ]
        );
        let new = json!({"id": "3", "type": "hologram"});
        assert!(matches!(
            &item(&mut codex, "item.started", new)[..],
            [AgentEvent::Unknown(_)]
        ));
    }

    #[test]
    fn waiting_for_a_network_counts_on() {
        let mut codex = Codex::new(Usage::default());
        for attempt in 1..3 {
            let event = json!({"type": "error",
                "message": "Reconnecting... waiting for network (Connection failed: no)"});
            let events = codex.event(event);
            let [AgentEvent::Retrying(retry)] = &events[..] else {
                panic!("{events:?}");
            };
            assert_eq!(retry.attempt, attempt);
            assert_eq!(retry.reason, "Connection failed: no");
        }
    }
}
