//! Turns the records of a session into messages.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{AGENT, PROGRAM};
use crate::importer::{Answer, SessionBuilder, is_true_at, text_at, unix_time};
use tertulia_core::entry::{ToolCall, ToolOutcome};
use tertulia_core::foreign::Foreign;
use tertulia_core::id::derived;

/// Beginning of the result of a tool call that the user declined.
const DECLINED: &str = "The user has declined to run this tool";

/// A message as the program records it.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Id that parts of a streamed message have in common.
    pub(super) id: Option<String>,
    pub(super) role: String,
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) content: Vec<Value>,
    pub(super) metadata: Value,
}

impl Record {
    /// Reads a line of a session file.
    pub(super) fn of_line(mut line: Value) -> Record {
        let content = match line.get_mut("content").map(Value::take) {
            Some(Value::Array(content)) => content,
            _ => Vec::new(),
        };
        Record {
            id: text_at(&line, "/id").map(str::to_owned),
            role: text_at(&line, "/role").unwrap_or_default().to_owned(),
            created: line.get("created").and_then(Value::as_i64).unwrap_or(0),
            content,
            metadata: line.get("metadata").cloned().unwrap_or_default(),
        }
    }

    /// Adds what the program streamed later.
    fn extend(&mut self, content: Vec<Value>) {
        let is_text = |part: &Value| text_at(part, "/type") == Some("text");
        if let ([piece], Some(last)) = (&content[..], self.content.last_mut())
            && is_text(piece)
            && is_text(last)
        {
            let text = [text_at(last, "/text"), text_at(piece, "/text")];
            last["text"] = Value::from(text.map(Option::unwrap_or_default).concat());
            return;
        }
        self.content.extend(content);
    }

    /// Returns an identity that lasts when the program converts, copies or compacts the session.
    fn key(&self) -> String {
        let texts = |kind: &str, field: &str| -> String {
            let parts = self.content.iter();
            let parts = parts.filter(|part| text_at(part, "/type") == Some(kind));
            parts.filter_map(|part| text_at(part, field)).collect()
        };
        let tools: Vec<&str> = self
            .content
            .iter()
            .filter_map(|part| text_at(part, "/id"))
            .collect();
        let text = texts("text", "/text");
        let thought = match text.is_empty() && tools.is_empty() {
            true => texts("thinking", "/thinking"),
            false => String::new(),
        };
        let created = self.created.to_string();
        let parts = [&self.role, &created, &text, &tools.join(" "), &thought];
        derived(&parts.map(String::as_str)).to_string()
    }

    /// Returns true if only the agent sees it: a summary, or the program's words to go on.
    fn is_hidden(&self) -> bool {
        self.metadata.get("userVisible").and_then(Value::as_bool) == Some(false)
            && is_true_at(&self.metadata, "/agentVisible")
    }
}

/// Collects the messages of a session.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) builder: SessionBuilder,
    /// Model of answers that name none.
    model: Option<String>,
    /// The last record, which the next one may continue.
    open: Option<Record>,
    /// Thinking that the program recorded as a message of its own.
    thought: Option<String>,
    known: HashMap<String, usize>,
}

impl Messages {
    /// Starts a session whose answers are of `model` unless they say otherwise.
    pub(super) fn new(model: Option<String>) -> Messages {
        Messages {
            builder: SessionBuilder::new(PROGRAM, AGENT),
            model,
            open: None,
            thought: None,
            known: HashMap::new(),
        }
    }

    /// Adds a record. Some versions recorded each piece of a streamed answer on its own.
    pub(super) fn read(&mut self, record: Record) {
        match &mut self.open {
            Some(open) if open.id.is_some() && open.id == record.id && open.role == record.role => {
                open.extend(record.content);
            }
            _ => {
                self.flush();
                self.open = Some(record);
            }
        }
    }

    /// Returns the session. `original` is its id in the program.
    pub(super) fn finish(mut self, original: &str, created_at: Option<Timestamp>) -> Foreign {
        self.flush();
        if self.thought.is_some() {
            let words = "thinking at the end, without an answer yet (1)";
            self.builder.changes.lost.push(words.to_owned());
        }
        self.builder.finish(original, created_at)
    }

    fn flush(&mut self) {
        let Some(record) = self.open.take() else {
            return;
        };
        let key = record.key();
        let count = self.known.entry(key.clone()).or_insert(0);
        *count += 1;
        let id = match *count {
            1 => key,
            count => format!("{key}#{count}"),
        };
        self.builder.at(unix_time(record.created));
        match record.role.as_str() {
            "user" => self.user(&id, &record),
            "assistant" => self.assistant(&id, &record),
            _ => self.builder.skipped.count("messages without a role"),
        }
    }

    fn user(&mut self, id: &str, record: &Record) {
        let mut written = Written::default();
        for (place, part) in record.content.iter().enumerate() {
            match text_at(part, "/type") {
                Some("toolResponse") => {
                    let call = text_at(part, "/id").unwrap_or_default();
                    let (text, outcome) = result(part, &mut self.builder);
                    let id = format!("{id}/{place}");
                    self.builder.tool_result(&id, call, &text, outcome);
                }
                _ => written.add(part, &mut self.builder),
            }
        }
        self.notices(id, &written.notices);
        match written.text {
            None => {}
            Some(text) if record.is_hidden() => self.builder.system(id, &text),
            Some(text) => self.builder.user(id, &text),
        }
    }

    fn notices(&mut self, id: &str, notices: &[String]) {
        if !notices.is_empty() {
            let id = format!("{id}/notice");
            self.builder.system(&id, &notices.join("\n"));
        }
    }

    fn assistant(&mut self, id: &str, record: &Record) {
        let mut written = Written::default();
        for part in &record.content {
            written.add(part, &mut self.builder);
        }
        let Written {
            text,
            thought,
            calls,
            notices,
        } = written;
        // The program repeats the thinking before each tool call.
        let thought = match (thought, self.thought.take()) {
            (Some(thought), Some(before)) if !before.ends_with(&thought) => {
                Some(format!("{before}\n{thought}"))
            }
            (None, before) => before,
            (thought, _) => thought,
        };
        self.notices(id, &notices);
        if text.is_none() && calls.is_empty() {
            self.thought = thought;
            return;
        }
        if record.is_hidden() {
            return self.builder.system(id, &text.unwrap_or_default());
        }
        let named = text_at(&record.metadata, "/inference/requestedModel");
        let answer = Answer {
            text: &text.unwrap_or_default(),
            thought,
            tool_calls: calls,
            model: named.or(self.model.as_deref()),
            ..Answer::default()
        };
        self.builder.agent(id, answer);
    }
}

/// The parts of a message.
#[derive(Debug, Default)]
struct Written {
    text: Option<String>,
    thought: Option<String>,
    calls: Vec<ToolCall>,
    notices: Vec<String>,
}

impl Written {
    fn add(&mut self, part: &Value, builder: &mut SessionBuilder) {
        let kind = text_at(part, "/type").unwrap_or("part");
        match kind {
            "text" => self.text(text_at(part, "/text").unwrap_or_default()),
            // Streamed in pieces of a few letters.
            "thinking" | "reasoning" => {
                let piece = text_at(part, "/thinking").or(text_at(part, "/text"));
                let thought = self.thought.get_or_insert_default();
                thought.push_str(piece.unwrap_or_default());
            }
            "redactedThinking" => builder.skipped.count("encrypted thinking"),
            "toolRequest" | "frontendToolRequest" => match call(part) {
                Ok(call) => self.calls.push(call),
                Err(error) => self.text(&format!("[invalid tool call: {error}]")),
            },
            "systemNotification" => match text_at(part, "/msg") {
                Some(text) => self.notices.push(text.to_owned()),
                None => builder.skipped.count(kind),
            },
            "toolConfirmationRequest" | "actionRequired" | "conversationCompacted" => {
                builder.skipped.count(kind);
            }
            _ => {
                let text = placeholder(part, kind, builder);
                self.text(&text);
            }
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.text {
            Some(before) => {
                before.push('\n');
                before.push_str(text);
            }
            None => self.text = Some(text.to_owned()),
        }
    }
}

fn call(part: &Value) -> Result<ToolCall, &str> {
    let value = part.pointer("/toolCall/value");
    match value.filter(|value| value.is_object()) {
        Some(value) => Ok(ToolCall {
            id: text_at(part, "/id").unwrap_or_default().to_owned(),
            name: text_at(value, "/name").unwrap_or("tool").to_owned(),
            arguments: value.get("arguments").cloned().unwrap_or_default(),
        }),
        None => Err(text_at(part, "/toolCall/error").unwrap_or("no reason recorded")),
    }
}

/// Returns the text and the outcome of a tool call.
fn result(part: &Value, builder: &mut SessionBuilder) -> (String, ToolOutcome) {
    let value = part.pointer("/toolResult/value");
    if let Some(error) = text_at(part, "/toolResult/error") {
        return (error.to_owned(), ToolOutcome::Failed);
    }
    let content = match value {
        Some(Value::Array(content)) => Some(content),
        Some(value) => value.get("content").and_then(Value::as_array),
        None => None,
    };
    let all = content.map(Vec::as_slice).unwrap_or_default();
    // The rest repeats it for the screen.
    let for_agent: Vec<&Value> = all.iter().filter(|item| is_for_agent(item)).collect();
    let shown = match for_agent.is_empty() {
        true => all.iter().collect(),
        false => for_agent,
    };
    let texts: Vec<String> = shown
        .into_iter()
        .map(|item| {
            let text = text_at(item, "/text").or(text_at(item, "/resource/text"));
            let kind = text_at(item, "/type").unwrap_or("part");
            text.map_or_else(|| placeholder(item, kind, builder), str::to_owned)
        })
        .collect();
    let text = texts.join("\n");
    let failed = value.is_some_and(|value| is_true_at(value, "/isError"));
    let outcome = match failed {
        _ if text.starts_with(DECLINED) => ToolOutcome::Denied,
        true => ToolOutcome::Failed,
        false => ToolOutcome::Ok,
    };
    (text, outcome)
}

fn is_for_agent(item: &Value) -> bool {
    let audience = item.pointer("/annotations/audience");
    let audience = audience.and_then(Value::as_array);
    audience.is_none_or(|audience| audience.iter().any(|one| one == "assistant"))
}

/// Returns a text in the place of a part that a message cannot contain.
fn placeholder(part: &Value, kind: &str, builder: &mut SessionBuilder) -> String {
    builder.skipped.count(&format!("{kind} parts"));
    match text_at(part, "/mimeType").or(text_at(part, "/resource/uri")) {
        Some(about) => format!("[{kind}: {about}]"),
        None => format!("[{kind}]"),
    }
}
