//! Turns the rows of a session into messages.

use jiff::Timestamp;
use serde_json::Value;

use super::{AGENT, PROGRAM};
use crate::importer::{Answer, SessionBuilder, call_of_text, is_true_at, text_at};
use tertulia_core::entry::{ToolCall, ToolOutcome};
use tertulia_core::foreign::Foreign;

/// Result of a tool call that the user denied.
const DENIED: &str = "User denied permission";

/// A message as the program records it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) role: String,
    pub(super) model: Option<String>,
    pub(super) at: Option<Timestamp>,
    pub(super) is_summary: bool,
    /// Objects with `type` and `data`.
    pub(super) parts: Vec<Value>,
}

/// Collects the messages of a session.
#[derive(Debug)]
pub(super) struct Messages {
    builder: SessionBuilder,
    /// The last record: whether it is complete depends on those after it.
    last: Option<Record>,
}

impl Default for Messages {
    fn default() -> Messages {
        Messages {
            builder: SessionBuilder::new(PROGRAM, AGENT),
            last: None,
        }
    }
}

impl Messages {
    /// Adds a record.
    pub(super) fn read(&mut self, record: Record) {
        if let Some(last) = self.last.replace(record) {
            self.add(&last);
        }
    }

    /// Counts versions of files.
    pub(super) fn files(&mut self, count: u64) {
        for _ in 0..count {
            self.builder.skipped.count("versions of files");
        }
    }

    /// Returns the session. `original` is its id in the program.
    pub(super) fn finish(mut self, original: &str, created_at: Option<Timestamp>) -> Foreign {
        if let Some(last) = self.last.take() {
            // The program updates the row of an answer until it is complete.
            let is_growing = last.role == "assistant" && finish(&last).is_none();
            match is_growing && !last.parts.is_empty() {
                true => {
                    let words = "an answer at the end that is not complete yet (1)";
                    self.builder.changes.lost.push(words.to_owned());
                }
                false => self.add(&last),
            }
        }
        self.builder.finish(original, created_at)
    }

    fn add(&mut self, record: &Record) {
        self.builder.at(record.at);
        let mut written = Written::default();
        for (place, part) in record.parts.iter().enumerate() {
            let nothing = Value::Null;
            let data = part.get("data").unwrap_or(&nothing);
            match text_at(part, "/type") {
                Some("tool_result") => {
                    let id = format!("{}#{place}", record.id);
                    self.result(&id, data);
                }
                kind => written.add(kind.unwrap_or("part"), data, &mut self.builder),
            }
        }
        match record.role.as_str() {
            "assistant" => self.assistant(record, written),
            "user" => self.words(&record.id, written, SessionBuilder::user),
            "system" | "tool" => self.words(&record.id, written, SessionBuilder::system),
            _ => self.builder.skipped.count("messages without a role"),
        }
    }

    fn words(
        &mut self,
        id: &str,
        written: Written,
        add: fn(&mut SessionBuilder, id: &str, text: &str),
    ) {
        if !written.texts.is_empty() {
            add(&mut self.builder, id, &written.texts.join("\n"));
        }
    }

    fn result(&mut self, id: &str, data: &Value) {
        let call = text_at(data, "/tool_call_id").unwrap_or_default();
        let text = text_at(data, "/content").unwrap_or_default();
        let outcome = match is_true_at(data, "/is_error") {
            true if text.starts_with(DENIED) => ToolOutcome::Denied,
            true => ToolOutcome::Failed,
            false => ToolOutcome::Ok,
        };
        if text_at(data, "/data").is_some() {
            self.builder.skipped.count("images of tools");
        }
        self.builder.tool_result(id, call, text, outcome);
    }

    fn assistant(&mut self, record: &Record, written: Written) {
        let id = &record.id;
        let (reason, error) = match finish(record) {
            Some(finish) => {
                let parts = [text_at(finish, "/message"), text_at(finish, "/details")];
                let parts: Vec<&str> = parts.into_iter().flatten().collect();
                (
                    text_at(finish, "/reason").unwrap_or_default(),
                    parts.join(": "),
                )
            }
            None => ("unfinished", String::new()),
        };
        if record.is_summary {
            return self.words(id, written, SessionBuilder::system);
        }
        let is_empty = written.texts.is_empty() && written.calls.is_empty();
        if !is_empty || written.thought.is_some() {
            let answer = Answer {
                text: &written.texts.join("\n"),
                thought: written.thought,
                tool_calls: written.calls,
                model: record.model.as_deref(),
                interrupted: matches!(reason, "canceled" | "max_tokens" | "unfinished"),
                ..Answer::default()
            };
            self.builder.agent(id, answer);
        }
        if matches!(reason, "error" | "content_filter") && !error.is_empty() {
            self.builder.system(&format!("{id}#finish"), &error);
        }
    }
}

/// Returns how an answer ended, if it did.
fn finish(record: &Record) -> Option<&Value> {
    let parts = record.parts.iter();
    let mut ends = parts.filter(|part| text_at(part, "/type") == Some("finish"));
    ends.next()?.get("data")
}

/// The parts of a message.
#[derive(Debug, Default)]
struct Written {
    texts: Vec<String>,
    thought: Option<String>,
    calls: Vec<ToolCall>,
}

impl Written {
    fn add(&mut self, kind: &str, data: &Value, builder: &mut SessionBuilder) {
        match kind {
            "text" => self.texts.extend(text_at(data, "/text").map(str::to_owned)),
            "reasoning" => {
                if let Some(text) = text_at(data, "/thinking") {
                    self.thought.get_or_insert_default().push_str(text);
                }
            }
            "tool_call" => {
                let id = text_at(data, "/id").unwrap_or_default();
                let name = text_at(data, "/name").unwrap_or("tool");
                let input = text_at(data, "/input").unwrap_or("{}");
                self.calls.push(call_of_text(id, name, input));
            }
            "shell_command" => self.texts.push(command(data)),
            "finish" => {}
            _ => {
                builder.skipped.count(&format!("{kind} parts"));
                let about = ["/Path", "/MIMEType", "/url"];
                let about = about.iter().find_map(|pointer| text_at(data, pointer));
                self.texts.push(match about {
                    Some(about) => format!("[{kind}: {about}]"),
                    None => format!("[{kind}]"),
                });
            }
        }
    }
}

/// Returns a command that the user ran, with its output.
fn command(data: &Value) -> String {
    let command = text_at(data, "/command").unwrap_or_default();
    let output = text_at(data, "/output").unwrap_or_default();
    let exit = data.get("exit_code").and_then(Value::as_i64).unwrap_or(0);
    let mut text = format!("! {command}\n{output}");
    if exit != 0 {
        text = format!("{}\n[exit status {exit}]", text.trim_end());
    }
    text
}
