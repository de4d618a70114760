//! Parses the events of `gemini --output-format stream-json`.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use super::LINGER;
use super::reading::{
    Dialect, Ending, Exit, Paragraphs, content, failed, list, number, started, todos, words,
};
use crate::{AgentEvent, FailureKind, failure};
use tertulia_core::entry::Usage;

/// Tool whose input is a to-do list.
const TODO_TOOL: &str = "write_todos";
/// Gemini CLI's exit code for a missing login.
const NO_KEY: i32 = 41;

/// State of one turn.
#[derive(Default)]
pub(super) struct Gemini {
    paragraphs: Paragraphs,
    /// Calls of [`TODO_TOOL`], whose results are not shown.
    todo_calls: HashSet<String>,
    /// Last error event; the result may leave the error out.
    error: String,
    result: Option<Value>,
}

impl Dialect for Gemini {
    fn event(&mut self, event: Value) -> Vec<AgentEvent> {
        match words(&event, "/type") {
            "init" => vec![
                AgentEvent::Session(words(&event, "/session_id").to_owned()),
                AgentEvent::Model(words(&event, "/model").to_owned()),
            ],
            "message" if words(&event, "/role") == "assistant" => {
                self.paragraphs.text(words(&event, "/content"))
            }
            "message" => Vec::new(),
            "tool_use" => vec![self.tool_use(&event)],
            "tool_result" => self.tool_result(&event),
            "error" if words(&event, "/severity") == "error" => {
                self.error = words(&event, "/message").to_owned();
                Vec::new()
            }
            "error" => vec![AgentEvent::Remark(failure::one_line(words(
                &event, "/message",
            )))],
            "result" => self.result(event),
            _ => vec![AgentEvent::Unknown(event)],
        }
    }

    fn over(&self) -> Option<Duration> {
        self.result.as_ref().map(|_| LINGER)
    }

    fn ending(&self, exit: Option<&Exit>) -> Ending {
        let code = exit.and_then(|exit| exit.code);
        let Some(result) = &self.result else {
            return match (code, exit) {
                (Some(NO_KEY), Some(exit)) => failed(Some(FailureKind::Auth), &exit.stderr),
                _ => Ending::Unfinished,
            };
        };
        if words(result, "/status") == "success" {
            return Ending::Done;
        }
        let message = [words(result, "/error/message"), &self.error]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("it failed without a word");
        let kind = failure::of_words(message).or(code.and_then(status));
        failed(kind, message)
    }

    fn lost(&self, stderr: &str) -> bool {
        stderr.contains("Invalid session identifier") || stderr.contains("Error resuming session")
    }
}

impl Gemini {
    fn tool_use(&mut self, event: &Value) -> AgentEvent {
        self.paragraphs.end();
        let (id, name) = (words(event, "/tool_id"), words(event, "/tool_name"));
        if name == TODO_TOOL {
            self.todo_calls.insert(id.to_owned());
            return todos(list(event, "/parameters/todos"));
        }
        started(id, name, event.get("parameters"))
    }

    fn tool_result(&self, event: &Value) -> Vec<AgentEvent> {
        let id = words(event, "/tool_id");
        if self.todo_calls.contains(id) {
            return Vec::new();
        }
        let output = content(event.get("output").or(event.pointer("/error/message")));
        vec![AgentEvent::ToolCompleted {
            id: id.to_owned(),
            output,
            ok: words(event, "/status") == "success",
        }]
    }

    fn result(&mut self, result: Value) -> Vec<AgentEvent> {
        let usage = Usage {
            estimated: false,
            input: number(&result, "/stats/input_tokens"),
            output: number(&result, "/stats/output_tokens"),
            cache_read: number(&result, "/stats/cached"),
            ..Usage::default()
        };
        self.result = Some(result);
        if usage == Usage::default() {
            return Vec::new();
        }
        vec![AgentEvent::Usage(usage)]
    }
}

/// Maps an exit code, the lower eight bits of an HTTP status, to a kind of failure.
fn status(code: i32) -> Option<FailureKind> {
    let code = u64::try_from(code).ok()?;
    (400..600)
        .find(|status| status & 0xff == code && code > 128)
        .and_then(failure::of_status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exit_codes_are_statuses() {
        let check = |code, expected| assert_eq!(status(code), expected, "{code}");
        check(145, Some(FailureKind::Auth));
        check(173, Some(FailureKind::RateLimit));
        check(244, Some(FailureKind::Unavailable));
        check(247, Some(FailureKind::Unavailable));
        check(1, None);
        check(42, None);
        check(-1, None);
    }

    #[test]
    fn cached_tokens_are_part_of_the_input() {
        let result = json!({"type": "result", "status": "success", "stats": {
            "total_tokens": 115, "input_tokens": 100, "output_tokens": 15, "cached": 60, "input": 40}});
        let usage = Usage {
            cache_read: 60,
            ..Usage::told(100, 15)
        };
        assert_eq!(Gemini::default().event(result), [AgentEvent::Usage(usage)]);
    }

    #[test]
    fn todo_lists_are_no_tools() {
        let mut gemini = Gemini::default();
        let call = json!({"type": "tool_use", "tool_name": "write_todos", "tool_id": "t",
            "parameters": {"todos": [{"description": "a", "status": "in_progress"}]}});
        assert!(matches!(&gemini.event(call)[..], [AgentEvent::Todos(list)] if list.len() == 1));
        let result = json!({"type": "tool_result", "tool_id": "t", "status": "success"});
        assert_eq!(gemini.event(result), []);
    }
}
