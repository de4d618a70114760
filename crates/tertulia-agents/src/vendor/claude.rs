//! Parses the events of `claude --output-format stream-json`.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use super::LINGER;
use super::permission::Control;
use super::reading::{
    Dialect, Ending, Exit, Paragraphs, content, failed, list, number, reasoning, started, todos,
    words,
};
use crate::{AgentEvent, FailureKind, Retry, denied, failure};
use tertulia_core::entry::Usage;
use tertulia_core::foreign::claude_usage_id;

/// Tool whose input is a to-do list.
const TODO_TOOL: &str = "TodoWrite";

/// State of one turn.
#[derive(Default)]
pub(super) struct Claude {
    paragraphs: Paragraphs,
    /// Id of the message whose deltas came last: its blocks come again complete, and are not
    /// repeated.
    streamed: Option<String>,
    /// Text of the current message so far, until it is complete.
    partial: String,
    /// Text of a message that broke off: it comes again, and is not repeated.
    broken: String,
    /// Part of that text that has come again.
    again: String,
    /// Calls of [`TODO_TOOL`], whose results are not shown.
    todo_calls: HashSet<String>,
    /// Calls that Claude Code denied itself.
    denied: HashSet<String>,
    /// Error name of the last synthetic message: the final event leaves it out.
    error: Option<String>,
    /// Requests that were answered, as Claude Code's files name their usage.
    requests: Vec<String>,
    /// Control requests, not yet taken.
    controls: Vec<Control>,
    result: Option<Value>,
}

impl Dialect for Claude {
    fn event(&mut self, event: Value) -> Vec<AgentEvent> {
        match words(&event, "/type") {
            "system" => self.system(event),
            "stream_event" => self.streamed(&event),
            "assistant" => self.assistant(&event),
            "user" => self.user(&event),
            "result" => self.result(event),
            "control_request" | "control_cancel_request" => self.control(event),
            // An acknowledgement has no consequence.
            "control_response" => Vec::new(),
            _ => vec![AgentEvent::Unknown(event)],
        }
    }

    fn controls(&mut self) -> Vec<Control> {
        std::mem::take(&mut self.controls)
    }

    fn over(&self) -> Option<Duration> {
        self.result.as_ref().map(|_| LINGER)
    }

    fn ending(&self, _: Option<&Exit>) -> Ending {
        let Some(result) = &self.result else {
            return Ending::Unfinished;
        };
        // "success" may be an error all the same: only this flag tells.
        if result.get("is_error") != Some(&Value::Bool(true)) {
            return Ending::Done;
        }
        let errors: Vec<&str> = list(result, "/errors")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        if errors.iter().any(|error| self.lost(error)) {
            return Ending::Lost;
        }
        let reason = words(result, "/terminal_reason");
        if reason.starts_with("aborted") {
            return failed(Some(FailureKind::Failed), "it was interrupted");
        }
        let text = words(result, "/result");
        let joined = errors.join("; ");
        let message = [text, &joined, words(result, "/subtype")]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("it failed without a word");
        failed(self.kind(result, reason), message)
    }

    fn lost(&self, stderr: &str) -> bool {
        stderr.contains("No conversation found")
    }
}

impl Claude {
    fn kind(&self, result: &Value, reason: &str) -> Option<FailureKind> {
        if reason == "prompt_too_long" {
            return Some(FailureKind::TooLong);
        }
        failure::of_status(number(result, "/api_error_status")).or(match self.error.as_deref() {
            Some("authentication_failed" | "oauth_org_not_allowed" | "billing_error") => {
                Some(FailureKind::Auth)
            }
            Some("rate_limit") => Some(FailureKind::RateLimit),
            Some("server_error" | "overloaded") => Some(FailureKind::Unavailable),
            _ => None,
        })
    }

    fn control(&mut self, event: Value) -> Vec<AgentEvent> {
        match Control::read(&event) {
            Some(control) => {
                self.controls.push(control);
                Vec::new()
            }
            None => vec![AgentEvent::Unknown(event)],
        }
    }

    /// Reads deltas of a message. Those of a subagent are not part of the answer.
    fn streamed(&mut self, event: &Value) -> Vec<AgentEvent> {
        if is_of_another(event) {
            return Vec::new();
        }
        match words(event, "/event/type") {
            "message_start" => {
                self.streamed = Some(words(event, "/event/message/id").to_owned());
                self.begin_again();
            }
            "message_stop" => self.partial.clear(),
            "content_block_start"
                if words(event, "/event/content_block/type") == "text"
                    && self.broken.is_empty() =>
            {
                self.paragraphs.end();
            }
            "content_block_delta" => {
                let text = words(event, "/event/delta/text");
                self.partial.push_str(text);
                let mut events = self.new_text(text);
                events.extend(reasoning(words(event, "/event/delta/thinking")));
                return events;
            }
            _ => {}
        }
        Vec::new()
    }

    /// Handles the start of a message. A message that did not end comes again.
    fn begin_again(&mut self) {
        if !self.partial.is_empty() {
            self.broken = std::mem::take(&mut self.partial);
            self.again.clear();
        }
    }

    /// Returns the text without the part that arrived before the stream broke.
    fn new_text(&mut self, text: &str) -> Vec<AgentEvent> {
        if self.broken.is_empty() {
            return self.paragraphs.text(text);
        }
        self.again.push_str(text);
        if self.broken.starts_with(&self.again) {
            return Vec::new();
        }
        let (broken, again) = (
            std::mem::take(&mut self.broken),
            std::mem::take(&mut self.again),
        );
        match again.strip_prefix(&broken) {
            Some(rest) => self.paragraphs.text(rest),
            None => {
                self.paragraphs.end();
                self.paragraphs.text(&again)
            }
        }
    }

    fn assistant(&mut self, event: &Value) -> Vec<AgentEvent> {
        if event.get("is_api_error_message") == Some(&Value::Bool(true)) {
            // Not from the model: the final event repeats it as a failure.
            self.error = Some(words(event, "/error").to_owned());
            return Vec::new();
        }
        let said = self.streamed.as_deref() == Some(words(event, "/message/id"));
        let quiet = said || is_of_another(event);
        self.note_request(event);
        if !quiet {
            self.begin_again();
        }
        let mut events = Vec::new();
        for block in list(event, "/message/content") {
            match words(block, "/type") {
                "text" if !quiet && !self.broken.is_empty() => {
                    events.extend(self.new_text(words(block, "/text")));
                    self.paragraphs.end();
                }
                "text" if !quiet => events.extend(self.paragraphs.whole(words(block, "/text"))),
                "thinking" if !quiet => events.extend(reasoning(words(block, "/thinking"))),
                "tool_use" => events.push(self.tool_use(block)),
                _ => {}
            }
        }
        events
    }

    /// Notes the request of a message. A subagent's is part of its own session.
    fn note_request(&mut self, event: &Value) {
        let message = words(event, "/message/id");
        let name = claude_usage_id(message, event.get("request_id").and_then(Value::as_str));
        if !message.is_empty() && !is_of_another(event) && !self.requests.contains(&name) {
            self.requests.push(name);
        }
    }

    fn tool_use(&mut self, block: &Value) -> AgentEvent {
        let (id, name) = (words(block, "/id"), words(block, "/name"));
        if name == TODO_TOOL {
            self.todo_calls.insert(id.to_owned());
            return todos(list(block, "/input/todos"));
        }
        started(id, name, block.get("input"))
    }

    fn user(&self, event: &Value) -> Vec<AgentEvent> {
        list(event, "/message/content")
            .iter()
            .filter(|block| words(block, "/type") == "tool_result")
            .filter(|block| !self.todo_calls.contains(words(block, "/tool_use_id")))
            .map(|block| {
                let id = words(block, "/tool_use_id").to_owned();
                let output = content(block.get("content"));
                let output = match self.denied.contains(&id) {
                    true => denied(&output),
                    false => output,
                };
                let ok = block.get("is_error") != Some(&Value::Bool(true));
                AgentEvent::ToolCompleted { id, output, ok }
            })
            .collect()
    }

    fn system(&mut self, event: Value) -> Vec<AgentEvent> {
        if words(&event, "/subtype") == "permission_denied" {
            self.denied.insert(words(&event, "/tool_use_id").to_owned());
        }
        system(event)
    }

    fn result(&mut self, result: Value) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let text = words(&result, "/result");
        let fine = result.get("is_error") != Some(&Value::Bool(true));
        if fine && !self.paragraphs.any() {
            events.extend(self.paragraphs.whole(text));
        }
        let cache_read = number(&result, "/usage/cache_read_input_tokens");
        let cache_written = number(&result, "/usage/cache_creation_input_tokens");
        let usage = Usage {
            estimated: false,
            input: number(&result, "/usage/input_tokens") + cache_read + cache_written,
            output: number(&result, "/usage/output_tokens"),
            cache_read,
            cache_written,
        };
        if usage != Usage::default() {
            events.push(AgentEvent::Usage(usage));
        }
        if !self.requests.is_empty() {
            events.push(AgentEvent::Requests(std::mem::take(&mut self.requests)));
        }
        self.result = Some(result);
        events
    }
}

/// Returns whether an event belongs to a subagent.
fn is_of_another(event: &Value) -> bool {
    !words(event, "/parent_tool_use_id").is_empty()
}

fn system(event: Value) -> Vec<AgentEvent> {
    match words(&event, "/subtype") {
        "init" => vec![
            AgentEvent::Session(words(&event, "/session_id").to_owned()),
            AgentEvent::Model(words(&event, "/model").to_owned()),
        ],
        "api_retry" => {
            let small = |pointer| u32::try_from(number(&event, pointer)).unwrap_or(u32::MAX);
            let status = match number(&event, "/error_status") {
                0 => String::new(),
                status => format!(" ({status})"),
            };
            vec![AgentEvent::Retrying(Retry {
                attempt: small("/attempt"),
                of: small("/max_retries"),
                wait: Duration::from_millis(number(&event, "/retry_delay_ms")),
                reason: format!("{}{status}", words(&event, "/error")),
            })]
        }
        "permission_denied" => vec![AgentEvent::Remark(failure::one_line(&format!(
            "claude may not use {}: {}",
            words(&event, "/tool_name"),
            words(&event, "/message")
        )))],
        "compact_boundary" => vec![AgentEvent::Remark(
            "claude compacted its context".to_owned(),
        )],
        "status" | "thinking_tokens" => Vec::new(),
        _ => vec![AgentEvent::Unknown(event)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(words: &str) -> AgentEvent {
        AgentEvent::Text(words.into())
    }

    #[test]
    fn a_stream_that_broke_and_comes_again_is_not_said_twice() {
        let delta = |words: &str| {
            json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": words}}})
        };
        let start = |id: &str| json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": id}}});
        let block = json!({"type": "stream_event", "event": {"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}}});
        let check = |again: Vec<Value>, expected: &str| {
            let mut claude = Claude::default();
            let begun = [start("a"), block.clone(), delta("one "), delta("two ")];
            let said = begun
                .into_iter()
                .chain(again)
                .flat_map(|event| claude.event(event));
            let texts = said.filter_map(|event| match event {
                AgentEvent::Text(text) => Some(text),
                _ => None,
            });
            assert_eq!(texts.collect::<String>(), expected);
        };
        let streamed =
            |words: [&str; 2]| vec![start("b"), block.clone(), delta(words[0]), delta(words[1])];
        check(streamed(["one tw", "o three"]), "one two three");
        check(streamed(["one ", "four"]), "one two \n\none four");
        let whole = |words: &str| {
            vec![json!({"type": "assistant", "message": {"id": "b",
                "content": [{"type": "text", "text": words}]}})]
        };
        check(whole("one two three"), "one two three");
        check(whole("another"), "one two \n\nanother");
    }

    #[test]
    fn a_message_that_was_streamed_is_not_said_twice() {
        let mut claude = Claude::default();
        let delta = |words: &str| {
            json!({"type": "stream_event", "event": {
                "type": "content_block_delta", "delta": {"type": "text_delta", "text": words}}})
        };
        let whole = |id: &str, words: &str| {
            json!({"type": "assistant", "message": {"id": id, "content": [
                {"type": "text", "text": words}]}})
        };
        let start = json!({"type": "stream_event", "event": {
            "type": "message_start", "message": {"id": "a"}}});
        assert_eq!(claude.event(start), []);
        assert_eq!(claude.event(delta("one")), [text("one")]);
        assert_eq!(claude.event(delta(" two")), [text(" two")]);
        assert_eq!(claude.event(whole("a", "one two")), []);
        // The next message has no deltas, and is a paragraph of its own.
        assert_eq!(claude.event(whole("b", "three")), [text("\n\nthree")]);
    }

    #[test]
    fn an_agent_of_the_agent_does_not_speak_for_it() {
        let mut claude = Claude::default();
        let inner = json!({"type": "assistant", "parent_tool_use_id": "t", "message": {"id": "x",
            "content": [{"type": "text", "text": "psst"},
                        {"type": "tool_use", "id": "u", "name": "Read", "input": {}}]}});
        let events = claude.event(inner);
        assert_eq!(events, [started("u", "Read", Some(&json!({})))]);
    }

    #[test]
    fn todo_lists_are_no_tools() {
        let mut claude = Claude::default();
        let call = json!({"type": "assistant", "message": {"id": "x", "content": [{
            "type": "tool_use", "id": "t", "name": "TodoWrite",
            "input": {"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]}}]}});
        let result = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}});
        assert!(matches!(&claude.event(call)[..], [AgentEvent::Todos(list)] if list.len() == 1));
        assert_eq!(claude.event(result), []);
    }

    #[test]
    fn requests_are_named_as_in_its_files() {
        let mut claude = Claude::default();
        let message = |id: &str, request: Option<&str>, task: Option<&str>| {
            json!({"type": "assistant", "request_id": request, "parent_tool_use_id": task,
                "message": {"id": id, "content": [{"type": "text", "text": "x"}]}})
        };
        // Each block of a message comes as an event of its own.
        for event in [
            message("m1", Some("r1"), None),
            message("m1", Some("r1"), None),
            message("inner", Some("r2"), Some("t")),
            message("m2", None, None),
        ] {
            claude.event(event);
        }
        let events = claude.event(json!({"type": "result", "is_error": false}));
        let named = ["m1:r1", "m2"].map(str::to_owned).to_vec();
        assert_eq!(events, [AgentEvent::Requests(named)]);
    }

    #[test]
    fn cached_tokens_were_read_too() {
        let mut claude = Claude::default();
        let events = claude.event(json!({"type": "result", "is_error": false, "result": "hi",
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 20,
                      "cache_read_input_tokens": 300, "output_tokens": 4}}));
        let usage = Usage {
            estimated: false,
            input: 321,
            output: 4,
            cache_read: 300,
            cache_written: 20,
        };
        assert_eq!(events, [text("hi"), AgentEvent::Usage(usage)]);
        assert_eq!(claude.ending(None), Ending::Done);
    }
}
