//! Converts an agent's `session/update` notifications to `AgentEvent`s.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::content;
use crate::tool::tail::Tail;
use crate::{AgentEvent, Todo, TodoState, denied};
use tertulia_core::entry::{ToolCall, Usage};

/// State of one answer, built from its updates.
#[derive(Debug, Default)]
pub(super) struct Updates {
    calls: BTreeMap<String, Call>,
    /// Id of the last text message, if the agent sends ids.
    message: Option<String>,
    spoken: bool,
    /// Whether other updates came since the last text.
    apart: bool,
    /// Text that the agent sent after it had reported its own failure.
    broken: Option<String>,
    /// Whether there was any text, thought or tool call.
    heard: bool,
    /// Tool calls that ran unasked, until they are taken.
    unasked: Vec<Unasked>,
}

/// What is known of a tool call so far.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) name: Option<String>,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) input: Value,
    pub(super) content: Value,
    /// Output of its terminal.
    terminal: String,
    started: bool,
    /// Whether permission was requested for it.
    asked: bool,
    /// Why it was denied, if it was: empty without a reason of the user's.
    denied: Option<String>,
}

/// A tool call that ran, although permission was never requested for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unasked {
    /// Kind of the tool.
    pub(super) kind: String,
    /// Name of the tool, and what it did.
    pub(super) tool: String,
}

/// Names of tools that only change the agent's to-do list.
const PLAN_TOOLS: &[&str] = &[
    "todowrite",
    "todoread",
    "todo_write",
    "write_todos",
    "update_plan",
];
/// Reason for a denied tool, if the agent sends none.
const DENIED: &str = "the agent was not allowed to use this tool";

impl Updates {
    /// Converts one update.
    pub(super) fn hear(&mut self, update: &Value) -> Vec<AgentEvent> {
        let events = self.read(update);
        let counts = |event: &AgentEvent| {
            use AgentEvent::{Reasoning, Text, Todos, ToolCompleted, ToolStarted};
            matches!(
                event,
                Text(_) | Reasoning(_) | Todos(_) | ToolStarted(_) | ToolCompleted { .. }
            )
        };
        self.heard |= self.broken.is_some() || events.iter().any(counts);
        events
    }

    /// Returns whether there was any text, thought or tool call.
    pub(super) fn heard(&self) -> bool {
        self.heard || !self.calls.is_empty()
    }

    fn read(&mut self, update: &Value) -> Vec<AgentEvent> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.say(update),
            "agent_thought_chunk" => match content::block(&update["content"]) {
                text if text.is_empty() => Vec::new(),
                text => vec![AgentEvent::Reasoning(text)],
            },
            "tool_call" | "tool_call_update" => self.tool(update),
            "plan" => vec![AgentEvent::Todos(todos(&update["entries"]))],
            "usage_update" => usage(update).map(AgentEvent::Usage).into_iter().collect(),
            "session_info_update" => {
                if update["_meta"]["codex"]["threadStatus"]["type"] == "systemError" {
                    self.broken = Some(String::new());
                }
                Vec::new()
            }
            // Echoes of the user's message and changes of configuration are not shown.
            "user_message_chunk"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update" => Vec::new(),
            _ => vec![AgentEvent::Unknown(update.clone())],
        }
    }

    /// Records the tool call of a permission request: some agents never announce it otherwise.
    pub(super) fn asked(&mut self, tool_call: &Value) -> (String, Call, Vec<AgentEvent>) {
        let id = tool_call["toolCallId"].as_str().unwrap_or_default();
        let call = self.calls.entry(id.to_owned()).or_default();
        call.merge(tool_call);
        call.asked = true;
        let known = call.clone();
        let events = self.start(id).into_iter().collect();
        (id.to_owned(), known, events)
    }

    /// Records that a tool call was denied, and the user's reason.
    pub(super) fn deny(&mut self, id: &str, reason: Option<String>) {
        if let Some(call) = self.calls.get_mut(id) {
            call.denied = Some(reason.unwrap_or_default());
        }
    }

    /// Takes the tool calls that ran without a permission request. To-do lists are none: they change
    /// nothing outside the agent.
    pub(super) fn unasked(&mut self) -> Vec<Unasked> {
        std::mem::take(&mut self.unasked)
    }

    /// Separates text that follows from the text before.
    pub(super) fn part(&mut self) {
        self.apart = true;
    }

    /// Completes the denied calls for which the agent sent no end.
    pub(super) fn denied(&mut self) -> Vec<AgentEvent> {
        let calls = std::mem::take(&mut self.calls).into_iter();
        let (denied, open): (BTreeMap<_, _>, BTreeMap<_, _>) =
            calls.partition(|(_, call)| call.denied.is_some() && call.started);
        self.calls = open;
        let ends = denied.iter();
        ends.map(|(id, call)| completed(id, call, String::new(), false))
            .collect()
    }

    /// Returns the agent's text about its own failure, if it reported one.
    pub(super) fn broken(&self) -> Option<&str> {
        self.broken.as_deref().map(str::trim)
    }

    fn say(&mut self, update: &Value) -> Vec<AgentEvent> {
        let mut text = content::block(&update["content"]);
        if text.is_empty() {
            return Vec::new();
        }
        if let Some(words) = &mut self.broken {
            words.push_str(&text);
            return Vec::new();
        }
        let message = update["messageId"].as_str().map(str::to_owned);
        let other = message.is_some() && self.message.is_some() && message != self.message;
        // Separates two messages of one answer.
        if self.spoken && (other || self.apart) && !text.starts_with('\n') {
            text.insert_str(0, "\n\n");
        }
        (self.message, self.spoken, self.apart) = (message, true, false);
        vec![AgentEvent::Text(text)]
    }

    fn tool(&mut self, update: &Value) -> Vec<AgentEvent> {
        let Some(id) = update["toolCallId"].as_str() else {
            return vec![AgentEvent::Unknown(update.clone())];
        };
        let first = !self.calls.contains_key(id);
        let call = self.calls.entry(id.to_owned()).or_default();
        call.merge(update);
        let status = update["status"].as_str();
        // While it is pending its arguments are still being written.
        let complete = status != Some("pending") && (first || !call.input.is_null());
        let over = matches!(status, Some("completed" | "failed"));
        let mut events = Vec::new();
        if complete || over || status == Some("in_progress") {
            events.extend(self.start(id));
        }
        let call = self.calls.get(id);
        let progress = call.filter(|_| !over);
        let progress = progress.and_then(|call| call.progress(id, update));
        // A failure may be the agent's own denial; output or a result is none.
        let ran = progress.is_some() || status == Some("completed");
        if let Some(call) = call.filter(|call| ran && !call.asked && !call.is_plan()) {
            self.unasked.push(call.unasked(id));
        }
        events.extend(progress);
        if over && let Some(call) = self.calls.remove(id) {
            let ok = status == Some("completed") && call.denied.is_none();
            let output = content::cut(call.output(&update["rawOutput"]));
            events.push(completed(id, &call, output, ok));
        }
        events
    }

    fn start(&mut self, id: &str) -> Option<AgentEvent> {
        let call = self.calls.get_mut(id).filter(|call| !call.started)?;
        call.started = true;
        self.apart = true;
        Some(AgentEvent::ToolStarted(call.told(id)))
    }
}

impl Default for Call {
    fn default() -> Call {
        Call {
            name: None,
            title: String::new(),
            kind: "other".to_owned(),
            input: Value::Null,
            content: Value::Null,
            terminal: String::new(),
            started: false,
            asked: false,
            denied: None,
        }
    }
}

impl Call {
    fn merge(&mut self, update: &Value) {
        let word = |key: &str| update[key].as_str().map(str::to_owned);
        self.name = word("name").or(self.name.take());
        if let Some(title) = word("title") {
            self.title = title;
        }
        if let Some(kind) = word("kind") {
            self.kind = kind;
        }
        if update["rawInput"]
            .as_object()
            .is_some_and(|input| !input.is_empty())
        {
            self.input = update["rawInput"].clone();
        }
        if update["content"].is_array() {
            self.content = update["content"].clone();
        }
        if let Some(more) = update["_meta"]["terminal_output_delta"]["data"].as_str() {
            self.terminal.push_str(more);
        }
    }

    /// Returns whether the call only changes the agent's to-do list.
    fn is_plan(&self) -> bool {
        let name = self.name.as_deref().unwrap_or(&self.title);
        PLAN_TOOLS
            .iter()
            .any(|tool| name.eq_ignore_ascii_case(tool))
    }

    fn unasked(&self, id: &str) -> Unasked {
        let name = self.told(id).name;
        let tool = match self.title.as_str() {
            title if title.is_empty() || title == name => name,
            title => format!("{name} ({title})"),
        };
        Unasked {
            kind: self.kind.clone(),
            tool: crate::failure::one_line(&tool),
        }
    }

    /// Returns the call as it is saved in the log.
    pub(super) fn told(&self, id: &str) -> ToolCall {
        let name = match (&self.name, self.kind.as_str()) {
            (Some(name), _) => name.as_str(),
            (None, "other") if !self.title.is_empty() => &self.title,
            (None, kind) => kind,
        };
        ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: match &self.input {
                Value::Null => json!({ "title": self.title }),
                input => input.clone(),
            },
        }
    }

    /// Returns the newest output of a running call, if the update brought some.
    fn progress(&self, id: &str, update: &Value) -> Option<AgentEvent> {
        let is_diff = |part: &Value| part["type"] == "diff";
        let content = update["content"].as_array();
        let tail = if update["_meta"]["terminal_output_delta"]["data"].is_string() {
            Tail::of(&self.terminal)
        } else if content.is_some_and(|content| !content.iter().any(is_diff)) {
            Tail::of(&content::of_tool(&update["content"]))
        } else {
            String::new()
        };
        let id = id.to_owned();
        (self.started && !tail.is_empty()).then_some(AgentEvent::ToolOutput { id, tail })
    }

    fn output(&self, raw: &Value) -> String {
        let shown = content::of_tool(&self.content);
        if !shown.is_empty() {
            return shown;
        }
        if !self.terminal.is_empty() {
            return self.terminal.clone();
        }
        match (raw, raw["output"].as_str()) {
            (Value::Null, _) => String::new(),
            (Value::String(text), _) => text.clone(),
            (_, Some(text)) => text.to_owned(),
            (other, None) => other.to_string(),
        }
    }
}

/// Creates the completion event of a call, marked if it was denied.
fn completed(id: &str, call: &Call, output: String, ok: bool) -> AgentEvent {
    let output = match (call.denied.as_deref(), output.trim()) {
        (None, _) => output,
        (Some(""), "") => denied(DENIED),
        // The agent's own words, unless the user has given a reason.
        (Some(""), why) | (Some(why), _) => denied(why),
    };
    AgentEvent::ToolCompleted {
        id: id.to_owned(),
        output,
        ok,
    }
}

/// Reads the usage of an answer from the final response or from an update.
pub(super) fn usage(told: &Value) -> Option<Usage> {
    let count = |value: &Value, key: &str| value[key].as_u64();
    let usage = &told["usage"];
    for (value, input, output) in [
        (usage, "inputTokens", "outputTokens"),
        (told, "inputTokens", "outputTokens"),
        (
            &told["_meta"]["quota"]["token_count"],
            "input_tokens",
            "output_tokens",
        ),
    ] {
        if let (Some(read), Some(output)) = (count(value, input), count(value, output)) {
            // Some agents count cached tokens separately, some do not: the total tells which.
            let cache_read = count(value, "cachedReadTokens").unwrap_or(0);
            let cache_written = count(value, "cachedWriteTokens").unwrap_or(0);
            let cached = cache_read + cache_written;
            let all = count(value, "totalTokens").unwrap_or(0);
            let apart = all >= read + cached + output;
            let input = if apart { read + cached } else { read };
            let cache_read = cache_read.min(input);
            let usage = Usage {
                cache_read,
                cache_written: cache_written.min(input - cache_read),
                ..Usage::told(input, output)
            };
            return (input + output > 0).then_some(usage);
        }
    }
    None
}

fn todos(entries: &Value) -> Vec<Todo> {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .map(|entry| Todo {
            text: entry["content"].as_str().unwrap_or_default().to_owned(),
            state: match entry["status"].as_str() {
                Some("in_progress") => TodoState::InProgress,
                Some("completed") => TodoState::Completed,
                Some("cancelled") => TodoState::Cancelled,
                _ => TodoState::Pending,
            },
        })
        .collect()
}

#[cfg(test)]
mod tests;
