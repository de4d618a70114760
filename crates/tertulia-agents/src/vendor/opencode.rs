//! Parses the events of `opencode run --format json`.

use std::time::Duration;

use serde_json::Value;

use super::reading::{
    Dialect, Ending, Exit, Paragraphs, content, failed, list, number, reasoning, started, todos,
    words,
};
use crate::{AgentError, AgentEvent, FailureKind, failure};
use tertulia_core::entry::Usage;

/// Tool whose input is a to-do list.
const TODO_TOOL: &str = "todowrite";
/// Maximum time that it may stay after it stopped: only its exit is certain.
const LINGER: Duration = Duration::from_secs(10);
/// How it says that the session to resume is gone.
const LOST: &str = "Session not found";
/// Number of consecutive steps without a reason to end: OpenCode would repeat them for ever.
const LOOPS: u32 = 5;

/// State of one turn.
#[derive(Default)]
pub(super) struct OpenCode {
    /// Whether these are the events of OpenCode 2, which does not always report its last step.
    is_second: bool,
    /// Whether text came after the last step that was reported.
    has_text: bool,
    paragraphs: Paragraphs,
    usage: Usage,
    /// Why the last step ended; empty during a step.
    reason: String,
    loops: u32,
    error: Option<Value>,
}

impl Dialect for OpenCode {
    fn event(&mut self, event: Value) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let session = words(&event, "/sessionID");
        if !session.is_empty() {
            events.push(AgentEvent::Session(session.to_owned()));
        }
        match words(&event, "/type") {
            "step_start" => self.begin_step(),
            "text" => {
                self.has_text = true;
                events.extend(self.paragraphs.whole(words(&event, "/part/text")));
            }
            "reasoning" => events.extend(reasoning(words(&event, "/part/text"))),
            "tool_use" => events.extend(tool(&event["part"])),
            "step_finish" => events.push(self.step(&event)),
            "error" => self.error = Some(event["error"].clone()),
            _ => events.push(AgentEvent::Unknown(event)),
        }
        events
    }

    fn over(&self) -> Option<Duration> {
        match self.reason.as_str() {
            _ if self.loops >= LOOPS => Some(Duration::ZERO),
            "stop" => Some(LINGER),
            _ => None,
        }
    }

    fn ending(&self, exit: Option<&Exit>) -> Ending {
        if self.loops >= LOOPS {
            return Ending::Failed(AgentError::new(
                FailureKind::Protocol,
                "the model's answers broke off without an end, again and again",
            ));
        }
        if let Some(error) = &self.error {
            let is_lost = self.is_second && words(error, "/message") == LOST;
            return if is_lost {
                Ending::Lost
            } else {
                failure_of(error)
            };
        }
        let is_success = exit.is_some_and(|exit| exit.code == Some(0));
        if self.is_second && self.has_text && is_success {
            return Ending::Done;
        }
        match self.reason.as_str() {
            "stop" | "length" => Ending::Done,
            "content-filter" => failed(Some(FailureKind::Refused), "the answer was filtered"),
            // A denied tool ends the turn without further events.
            "tool-calls" if is_success => Ending::Done,
            _ => Ending::Unfinished,
        }
    }

    fn lost(&self, stderr: &str) -> bool {
        stderr.contains(LOST)
    }
}

impl OpenCode {
    /// Creates the state of a turn of OpenCode 2.
    pub(super) fn second() -> OpenCode {
        OpenCode {
            is_second: true,
            ..OpenCode::default()
        }
    }

    fn begin_step(&mut self) {
        self.reason.clear();
        self.has_text = false;
    }

    fn step(&mut self, event: &Value) -> AgentEvent {
        self.reason = words(event, "/part/reason").to_owned();
        self.has_text = false;
        self.loops = match self.reason.as_str() {
            "unknown" => self.loops + 1,
            _ => 0,
        };
        // A complete step means that an earlier error was recovered.
        if self.reason == "stop" {
            self.error = None;
        }
        let tokens = |name: &str| number(event, &format!("/part/tokens/{name}"));
        let (read, written) = (tokens("cache/read"), tokens("cache/write"));
        self.usage.input += tokens("input") + read + written;
        self.usage.cache_read += read;
        self.usage.cache_written += written;
        self.usage.output += tokens("output") + tokens("reasoning");
        AgentEvent::Usage(self.usage)
    }
}

/// Converts a tool call, which is reported when it is done.
fn tool(part: &Value) -> Vec<AgentEvent> {
    let (id, name) = (words(part, "/callID"), words(part, "/tool"));
    if name == TODO_TOOL {
        return vec![todos(list(part, "/state/input/todos"))];
    }
    // A call of a tool that does not exist is reported as the tool `invalid`, and as done.
    let ok = words(part, "/state/status") == "completed" && name != "invalid";
    vec![
        started(id, name, part.pointer("/state/input")),
        AgentEvent::ToolCompleted {
            id: id.to_owned(),
            output: content(
                part.pointer("/state/output")
                    .or(part.pointer("/state/error")),
            ),
            ok,
        },
    ]
}

fn failure_of(error: &Value) -> Ending {
    // The second generation has a type instead of a name, and no status.
    let name = match words(error, "/name") {
        "" => words(error, "/type"),
        name => name,
    };
    let kind = match name {
        "ContextOverflowError" => Some(FailureKind::TooLong),
        "ProviderAuthError" | "provider.auth" => Some(FailureKind::Auth),
        _ if name.starts_with("provider.") => failure::of_words(words(error, "/message")),
        _ => failure::of_status(number(error, "/data/statusCode")),
    };
    let message = [
        words(error, "/data/message"),
        words(error, "/message"),
        name,
    ]
    .into_iter()
    .find(|text| !text.is_empty())
    .unwrap_or("it failed without a word");
    failed(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(reason: &str) -> Value {
        json!({"type": "step_finish", "part": {"reason": reason, "tokens": {
            "input": 1, "output": 10, "reasoning": 100, "cache": {"read": 1000, "write": 10000}}}})
    }

    fn exit(code: i32) -> Exit {
        Exit {
            code: Some(code),
            ..Exit::default()
        }
    }

    #[test]
    fn costs_are_summed_over_the_steps() {
        let mut opencode = OpenCode::default();
        opencode.event(step("tool-calls"));
        let usage = Usage {
            estimated: false,
            input: 22002,
            output: 220,
            cache_read: 2000,
            cache_written: 20000,
        };
        assert_eq!(opencode.event(step("stop")), [AgentEvent::Usage(usage)]);
        assert_eq!(opencode.ending(None), Ending::Done);
    }

    #[test]
    fn a_loop_is_ended() {
        let mut opencode = OpenCode::default();
        for _ in 0..LOOPS {
            assert_eq!(opencode.over(), None);
            opencode.event(step("unknown"));
        }
        assert_eq!(opencode.over(), Some(Duration::ZERO));
        assert!(matches!(opencode.ending(None), Ending::Failed(_)));
    }

    #[test]
    fn only_the_exit_tells_whether_a_tool_was_the_last_word() {
        let mut opencode = OpenCode::default();
        opencode.event(step("tool-calls"));
        assert_eq!(opencode.ending(None), Ending::Unfinished);
        assert_eq!(opencode.ending(Some(&exit(1))), Ending::Unfinished);
        assert_eq!(opencode.ending(Some(&exit(0))), Ending::Done);
        opencode.event(json!({"type": "step_start"}));
        assert_eq!(opencode.ending(Some(&exit(0))), Ending::Unfinished);
    }

    #[test]
    fn the_second_generation_may_leave_its_last_step_out() {
        let text = json!({"type": "text", "part": {"text": "yes"}});
        let ending = |events: &[&Value], code| {
            let mut opencode = OpenCode::second();
            for event in events {
                opencode.event((*event).clone());
            }
            opencode.ending(Some(&exit(code)))
        };
        assert_eq!(ending(&[&text], 0), Ending::Done);
        assert_eq!(ending(&[&text], 1), Ending::Unfinished);
        assert_eq!(ending(&[], 0), Ending::Unfinished);
        let begun = json!({"type": "step_start"});
        assert_eq!(ending(&[&text, &begun], 0), Ending::Unfinished);
        let mut first = OpenCode::default();
        first.event(text);
        assert_eq!(first.ending(Some(&exit(0))), Ending::Unfinished);
    }

    #[test]
    fn todo_lists_are_no_tools() {
        let part = json!({"tool": "todowrite", "callID": "t", "state": {"status": "completed",
            "input": {"todos": [{"content": "a", "status": "completed"}]}}});
        assert!(matches!(&tool(&part)[..], [AgentEvent::Todos(list)] if list.len() == 1));
    }
}
