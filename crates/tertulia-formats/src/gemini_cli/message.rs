//! The parts of a message record.

use serde_json::Value;

use crate::importer::{count_at, placeholder, text_at};
use tertulia_core::entry::{ToolCall, ToolOutcome, Usage};

/// Id of the message with which the program describes the environment in every session.
const ENVIRONMENT: &str = "d04923d38bb0f6017037e74183378ef4";

/// Beginnings of what the program writes in the user's place for the model.
const CONTEXT: &[&str] = &["<session_context>", "<hook_context>"];

/// Beginning of the summary that replaces older messages.
const SUMMARY: &str = "<state_snapshot>";

/// Content of a message.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The text.
    pub(super) text: String,
    /// Reasoning.
    pub(super) thought: Option<String>,
    /// Tool calls.
    pub(super) calls: Vec<ToolCall>,
    /// Results of tool calls, with the ids of the calls.
    pub(super) results: Vec<(String, String, ToolOutcome)>,
    /// Kinds of parts that a message cannot contain.
    pub(super) others: Vec<String>,
}

/// What a text in the user's place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    User,
    Program,
    /// For the model only.
    Context,
}

/// Returns who wrote a text in the user's place.
pub(super) fn writer(id: &str, text: &str) -> Writer {
    let text = text.trim_start();
    match CONTEXT.iter().any(|words| text.starts_with(words)) {
        _ if id == ENVIRONMENT => Writer::Context,
        true => Writer::Context,
        false if text.starts_with(SUMMARY) => Writer::Program,
        false => Writer::User,
    }
}

impl Content {
    /// Reads the content of a message: a string, a part, or a list of them.
    pub(super) fn read(content: &Value) -> Content {
        let mut read = Content::default();
        match content {
            Value::Array(parts) => parts.iter().for_each(|part| read.part(part)),
            part => read.part(part),
        }
        read
    }

    fn part(&mut self, part: &Value) {
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        match (part, part.get("text")) {
            (Value::Null, _) => {}
            (Value::String(text), _) => self.text.push_str(text),
            (_, Some(Value::String(text))) if is_thought => self.think(text),
            (_, Some(Value::String(text))) => self.text.push_str(text),
            _ => self.other_part(part),
        }
    }

    fn other_part(&mut self, part: &Value) {
        if let Some(call) = part.get("functionCall") {
            return self.calls.push(tool_call(call));
        }
        if let Some(response) = part.get("functionResponse") {
            let id = text_at(response, "/id").unwrap_or_default().to_owned();
            let (text, failed) = result_text(response);
            let outcome = match failed {
                true => failure(&text),
                false => ToolOutcome::Ok,
            };
            return self.results.push((id, text, outcome));
        }
        let kind = part.as_object().and_then(|part| part.keys().next());
        let kind = kind.map_or("part", String::as_str).to_owned();
        let media = text_at(part, &format!("/{kind}/mimeType"));
        self.text.push_str(&placeholder(&kind, media));
        self.others.push(kind);
    }

    fn think(&mut self, text: &str) {
        self.thought = Some(match self.thought.take() {
            Some(before) => format!("{before}\n{text}"),
            None => text.to_owned(),
        });
    }

    /// Adds the reasoning that is recorded beside the content.
    pub(super) fn thoughts(&mut self, message: &Value) {
        let thoughts = message.get("thoughts").and_then(Value::as_array);
        for thought in thoughts.into_iter().flatten() {
            for field in ["/subject", "/description"] {
                if let Some(text) = text_at(thought, field) {
                    self.think(text);
                }
            }
        }
    }
}

/// Returns a tool call.
pub(super) fn tool_call(call: &Value) -> ToolCall {
    ToolCall {
        id: text_at(call, "/id").unwrap_or_default().to_owned(),
        name: text_at(call, "/name").unwrap_or("tool").to_owned(),
        arguments: call.get("args").cloned().unwrap_or_default(),
    }
}

/// Returns the result that is recorded with a tool call, once there is one.
pub(super) fn recorded_result(call: &Value) -> Option<(String, ToolOutcome)> {
    let status = text_at(call, "/status").unwrap_or_default();
    if !matches!(status, "success" | "error" | "cancelled") {
        return None;
    }
    let recorded = call.get("result").unwrap_or(&Value::Null);
    let content = Content::read(recorded);
    let texts = content.results.into_iter().map(|(_, text, _)| text);
    let mut texts: Vec<String> = texts.chain([content.text]).collect();
    texts.retain(|text| !text.is_empty());
    let text = match texts.is_empty() {
        true => text_at(call, "/resultDisplay")
            .unwrap_or_default()
            .to_owned(),
        false => texts.join("\n"),
    };
    let outcome = match status {
        "success" => ToolOutcome::Ok,
        "error" => failure(&text),
        _ if text.contains("denied") || text.contains("did not allow") => ToolOutcome::Denied,
        _ => ToolOutcome::Interrupted,
    };
    Some((text, outcome))
}

fn failure(text: &str) -> ToolOutcome {
    match text {
        text if text.contains("denied by policy") => ToolOutcome::Denied,
        text if text.starts_with("[Operation Cancelled]") => match text.contains("denied") {
            true => ToolOutcome::Denied,
            false => ToolOutcome::Interrupted,
        },
        _ => ToolOutcome::Failed,
    }
}

/// Returns the text of a response, and true if it is an error.
fn result_text(response: &Value) -> (String, bool) {
    let response = response.get("response").unwrap_or(&Value::Null);
    for (field, failed) in [("/output", false), ("/error", true)] {
        if let Some(text) = response.pointer(field).and_then(Value::as_str) {
            return (text.to_owned(), failed);
        }
    }
    match response {
        Value::Null => (String::new(), false),
        other => (other.to_string(), false),
    }
}

/// Returns the usage of an answer.
pub(super) fn usage(message: &Value) -> Option<Usage> {
    let tokens = message.get("tokens").filter(|tokens| tokens.is_object())?;
    let usage = Usage {
        input: count_at(tokens, "/input").saturating_add(count_at(tokens, "/tool")),
        output: count_at(tokens, "/output").saturating_add(count_at(tokens, "/thoughts")),
        cache_read: count_at(tokens, "/cached"),
        cache_written: 0,
        estimated: false,
    };
    (usage.input > 0 || usage.output > 0).then_some(usage)
}
