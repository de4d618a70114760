//! Parses the output of vendors' programs: one JSON event per line. This module holds the common
//! part; the meaning of the events is in one module per vendor.

use std::time::Duration;

use serde_json::Value;

use super::permission::Control;
use super::{Vendor, claude, codex, gemini, opencode};
use crate::{AgentError, AgentEvent, FailureKind, Todo, TodoState, failure};
use tertulia_core::entry::{ToolCall, Usage};

/// Maximum number of characters shown of output that cannot be parsed.
const SHOWN: usize = 120;

/// How a program's turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program reported success.
    Done,
    /// The program reported a failure.
    Failed(AgentError),
    /// The session to resume no longer exists.
    Lost,
    /// The program reported neither.
    Unfinished,
}

/// How the process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// End of its standard error.
    pub stderr: String,
}

/// Meaning of one vendor's events. Pure: converts events without I/O.
pub(super) trait Dialect: Send {
    /// Converts one event.
    fn event(&mut self, event: Value) -> Vec<AgentEvent>;

    /// Returns the control requests since the last call. Most programs have none.
    fn controls(&mut self) -> Vec<Control> {
        Vec::new()
    }

    /// Returns how long the program may stay, if the last event has arrived.
    fn over(&self) -> Option<Duration>;

    /// Returns how the turn ended according to the events. `exit` is `None` when tertulia ended the
    /// program.
    fn ending(&self, exit: Option<&Exit>) -> Ending;

    /// Returns whether standard error says that the session to resume is gone.
    fn lost(&self, stderr: &str) -> bool;
}

/// Reads one program's output, line by line.
pub struct Reader {
    dialect: Box<dyn Dialect>,
    session: Option<String>,
    heard: bool,
    spoke: bool,
    rubbish: u64,
    first_rubbish: String,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Creates a reader for one turn of `vendor`. `spent` is the previous usage of its session.
    pub fn new(vendor: Vendor, spent: Usage) -> Reader {
        let dialect: Box<dyn Dialect> = match vendor {
            Vendor::Claude => Box::new(claude::Claude::default()),
            Vendor::Codex => Box::new(codex::Codex::new(spent)),
            Vendor::GeminiCli => Box::new(gemini::Gemini::default()),
            Vendor::OpenCode => Box::new(opencode::OpenCode::default()),
        };
        Reader::speaking(dialect)
    }

    /// Creates a reader for one turn of OpenCode 2.
    pub fn of_opencode_2() -> Reader {
        Reader::speaking(Box::new(opencode::OpenCode::second()))
    }

    fn speaking(dialect: Box<dyn Dialect>) -> Reader {
        Reader {
            dialect,
            session: None,
            heard: false,
            spoke: false,
            rubbish: 0,
            first_rubbish: String::new(),
        }
    }

    /// Converts one line.
    pub fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let line = line.trim();
        if line.is_empty() {
            return Vec::new();
        }
        // Programs print warnings on standard output: a line that is no event is not an error yet.
        let Ok(event @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
            self.rubbish += 1;
            if self.rubbish == 1 {
                self.first_rubbish = line.chars().take(SHOWN).collect();
            }
            return Vec::new();
        };
        self.heard |= event.get("type").is_some_and(Value::is_string);
        let mut events = self.dialect.event(event);
        events.retain(|event| self.is_news(event));
        self.spoke |= events
            .iter()
            .any(|event| matches!(event, AgentEvent::Text(_) | AgentEvent::ToolStarted(_)));
        events
    }

    /// Returns the control requests since the last call.
    pub(super) fn controls(&mut self) -> Vec<Control> {
        self.dialect.controls()
    }

    /// Returns whether the event is new: the session is reported once, not with each event that
    /// names it.
    fn is_news(&mut self, event: &AgentEvent) -> bool {
        let AgentEvent::Session(id) = event else {
            return true;
        };
        if self.session.as_deref() == Some(id) {
            return false;
        }
        self.session = Some(id.clone());
        true
    }

    /// Returns how long the program may stay, if the last event has arrived.
    pub fn over(&self) -> Option<Duration> {
        self.dialect.over()
    }

    /// Returns the id of the program's own session, once it is known.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns whether there was output that a second attempt would repeat.
    pub fn spoke(&self) -> bool {
        self.spoke
    }

    /// Number of lines that were no events.
    pub fn rubbish(&self) -> u64 {
        self.rubbish
    }

    /// Returns how the turn ended. `exit` is `None` when tertulia ended the program.
    pub fn finish(self, exit: Option<&Exit>) -> Ending {
        match self.dialect.ending(exit) {
            Ending::Unfinished => {}
            told => return told,
        }
        if exit.is_some_and(|exit| self.dialect.lost(&exit.stderr)) {
            return Ending::Lost;
        }
        // An exit code with an explanation on standard error is more helpful than the unparsed
        // output.
        let explained = exit.is_some_and(|exit| exit.code != Some(0) && !exit.stderr.is_empty());
        if !self.heard && self.rubbish > 0 && !explained {
            let begin = failure::one_line(&self.first_rubbish);
            return Ending::Failed(AgentError::new(
                FailureKind::Protocol,
                format!("it printed no events but: {begin}"),
            ));
        }
        Ending::Unfinished
    }
}

/// Separates the texts of one answer: each is a paragraph of its own.
#[derive(Default)]
pub(super) struct Paragraphs {
    said: bool,
    ended: bool,
}

impl Paragraphs {
    /// Ends the current text.
    pub(super) fn end(&mut self) {
        self.ended = self.said;
    }

    /// Adds to the text.
    pub(super) fn text(&mut self, words: &str) -> Vec<AgentEvent> {
        if words.is_empty() {
            return Vec::new();
        }
        let gap = if std::mem::take(&mut self.ended) {
            "\n\n"
        } else {
            ""
        };
        self.said = true;
        vec![AgentEvent::Text(format!("{gap}{words}"))]
    }

    /// Adds a whole text.
    pub(super) fn whole(&mut self, words: &str) -> Vec<AgentEvent> {
        self.end();
        let events = self.text(words);
        self.end();
        events
    }

    /// Returns whether there was any text.
    pub(super) fn any(&self) -> bool {
        self.said
    }
}

/// Returns the string at `pointer`, or an empty one.
pub(super) fn words<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the number at `pointer`, or zero.
pub(super) fn number(value: &Value, pointer: &str) -> u64 {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

/// Returns the list at `pointer`, or an empty one.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Creates a reasoning event, unless the text is empty.
pub(super) fn reasoning(words: &str) -> Vec<AgentEvent> {
    match words {
        "" => Vec::new(),
        words => vec![AgentEvent::Reasoning(words.to_owned())],
    }
}

/// Creates the start event of a tool call.
pub(super) fn started(id: &str, name: &str, arguments: Option<&Value>) -> AgentEvent {
    AgentEvent::ToolStarted(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.cloned().unwrap_or(Value::Null),
    })
}

/// Renders a tool's output: a string, or the texts of a list of blocks.
pub(super) fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.get("text").and_then(Value::as_str))
                .collect();
            texts.join("\n")
        }
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Parses a to-do list in any of the vendors' formats.
pub(super) fn todos(items: &[Value]) -> AgentEvent {
    let todo = |item: &Value| {
        let text = ["/content", "/text", "/description", "/title"]
            .into_iter()
            .map(|key| words(item, key))
            .find(|text| !text.is_empty())?;
        let state = match words(item, "/status") {
            "completed" | "done" => TodoState::Completed,
            "in_progress" | "in-progress" => TodoState::InProgress,
            "cancelled" | "canceled" => TodoState::Cancelled,
            _ if item.get("completed") == Some(&Value::Bool(true)) => TodoState::Completed,
            _ => TodoState::Pending,
        };
        Some(Todo {
            text: text.to_owned(),
            state,
        })
    };
    AgentEvent::Todos(items.iter().filter_map(todo).collect())
}

/// Extracts the message of an error that may be wrapped in a provider's JSON.
pub(super) fn unwrapped(message: &str) -> String {
    let inner = message
        .trim()
        .strip_prefix("[API Error:")
        .and_then(|rest| rest.split_once(']').map(|_| rest))
        .map_or(message, |rest| {
            let cut = rest.rfind(']').unwrap_or(rest.len());
            &rest[..cut]
        });
    serde_json::from_str::<Value>(inner.trim())
        .ok()
        .and_then(|value| {
            let text = words(&value, "/error/message");
            (!text.is_empty()).then(|| text.to_owned())
        })
        .unwrap_or_else(|| inner.trim().to_owned())
}

/// Creates a failure of `kind`, or of the kind that its message suggests.
pub(super) fn failed(kind: Option<FailureKind>, message: &str) -> Ending {
    let kind = kind
        .or_else(|| failure::of_words(message))
        .unwrap_or(FailureKind::Failed);
    Ending::Failed(AgentError::new(
        kind,
        failure::one_line(&unwrapped(message)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_unwrapped() {
        let check = |message: &str, expected: &str| assert_eq!(unwrapped(message), expected);
        check("plain", "plain");
        check(r#"{"error": {"message": "no [x]"}}"#, "no [x]");
        check(r#"[API Error: {"error":{"message":"no"}}]"#, "no");
        check("[API Error: terminated]", "terminated");
        check("[API Error: open", "[API Error: open");
        check(r#"{"message":"x"}"#, r#"{"message":"x"}"#);
    }

    #[test]
    fn todos_of_all_kinds() {
        let items = json!([
            {"content": "a", "status": "in_progress"},
            {"text": "b", "completed": true},
            {"text": "c", "completed": false},
            {"description": "d", "status": "cancelled"},
            {"status": "completed"},
        ]);
        let AgentEvent::Todos(todos) = todos(list(&items, "")) else {
            panic!("no list");
        };
        let found: Vec<_> = todos
            .iter()
            .map(|todo| format!("{} {}", todo.text, todo.state.name()))
            .collect();
        assert_eq!(
            found,
            ["a in_progress", "b completed", "c pending", "d cancelled"]
        );
    }

    #[test]
    fn rubbish_alone_is_no_answer() {
        let mut reader = Reader::new(Vendor::Claude, Usage::default());
        for line in ["", "Welcome!", "[1]", "12"] {
            assert!(reader.line(line).is_empty());
        }
        assert_eq!(reader.rubbish(), 3);
        let Ending::Failed(error) = reader.finish(Some(&Exit::default())) else {
            panic!("it did not fail");
        };
        assert_eq!(error.kind, FailureKind::Protocol);
        assert!(error.message.ends_with("Welcome!"), "{}", error.message);
    }

    #[test]
    fn rubbish_before_the_first_event_is_noise() {
        let mut reader = Reader::new(Vendor::Codex, Usage::default());
        reader.line("Welcome!");
        let events = reader.line(r#"{"type":"thread.started","thread_id":"t"}"#);
        assert_eq!(events, [AgentEvent::Session("t".into())]);
        assert!(
            reader
                .line(r#"{"type":"thread.started","thread_id":"t"}"#)
                .is_empty()
        );
        assert_eq!(reader.finish(Some(&Exit::default())), Ending::Unfinished);
    }

    #[test]
    fn unknown_events_are_kept() {
        for vendor in Vendor::ALL {
            let mut reader = Reader::new(vendor, Usage::default());
            let event = json!({"type": "never.seen", "x": 1});
            assert_eq!(
                reader.line(&event.to_string()),
                [AgentEvent::Unknown(event)],
                "{vendor:?}"
            );
            // Known events without their usual content are harmless, too.
            for kind in [
                "system",
                "assistant",
                "user",
                "result",
                "stream_event",
                "item.completed",
                "error",
                "turn.failed",
                "turn.completed",
                "message",
                "tool_use",
                "tool_result",
                "step_finish",
                "text",
            ] {
                reader.line(&json!({ "type": kind }).to_string());
            }
        }
    }
}
