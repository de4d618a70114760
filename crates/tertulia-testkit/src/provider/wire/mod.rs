//! One file per API: its validation and its format.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use serde_json::Value;

use super::talk::{Reply, Talk};
use super::{Api, Request};

/// Fixed time for responses that contain one.
const MOMENT: &str = "2026-09-21T14:13:20Z";
/// The same in Unix seconds.
const SECONDS: u64 = 1_790_000_000;

/// An API.
pub trait Wire {
    /// Validates a request like the service, and parses it.
    fn read(&self, request: &Request) -> Result<Talk, Refused>;

    /// Answers a GET request: models, version.
    fn look_up(&self, request: &Request) -> Result<Value, Refused>;

    /// Returns the answer as one document.
    fn whole(&self, reply: &Reply) -> Value;

    /// Returns the answer as frames of a stream.
    fn frames(&self, talk: &Talk, reply: &Reply) -> Vec<Frame>;

    /// Returns the content type of a stream.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Returns an error in the format of the service.
    fn error(&self, status: u16, message: &str) -> Value;

    /// Returns the service's error message for a status.
    fn complaint(&self, status: u16, model: &str, key: &str) -> String;

    /// Returns the service's error message for a context overflow.
    fn overflow(&self) -> &'static str;

    /// Returns an error event within a stream.
    fn error_event(&self) -> String;

    /// Returns an event that is not JSON.
    fn broken_event(&self) -> String {
        "data: {\"this is not\n\n".to_owned()
    }
}

/// Returns the implementation of an API.
pub fn of(api: Api) -> &'static dyn Wire {
    match api {
        Api::Anthropic => &anthropic::Anthropic,
        Api::OpenAi => &openai::OpenAi,
        Api::Gemini => &gemini::Gemini,
        Api::Ollama => &ollama::Ollama,
    }
}

/// A rejected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    pub message: String,
}

impl Refused {
    pub fn new(status: u16, message: impl Into<String>) -> Refused {
        Refused {
            status,
            message: message.into(),
        }
    }
}

/// A part of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub part: Part,
    pub text: String,
}

/// Kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Contains no token.
    Frame,
    /// Contains one token.
    Token,
    /// Closes the message.
    Close,
}

/// Returns a server-sent event without a name.
fn event(part: Part, data: &Value) -> Frame {
    let text = format!("data: {data}\n\n");
    Frame { part, text }
}

/// Returns an error with status 400 unless `so` is true.
fn demand(so: bool, message: impl Into<String>) -> Result<(), Refused> {
    if so {
        return Ok(());
    }
    Err(Refused::new(400, message))
}

/// Returns the items of a list; empty if the value is not a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the text of a value; empty if the value is not a string.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the texts of a content, which is a string or a list of parts.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true for a valid tool name.
fn is_tool_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

/// Checks the name of a tool and the schema of its arguments.
fn check_tool(at: &str, name: &Value, schema: &Value) -> Result<(), Refused> {
    demand(
        is_tool_name(text(name)),
        format!("{at}.name: {name} is no name of a tool"),
    )?;
    demand(
        schema["type"] == "object",
        format!(
            "{at}: the schema of a tool has type 'object', not {}",
            schema["type"]
        ),
    )
}

/// Splits arguments into pieces, as models stream them.
fn argument_pieces(arguments: &Value) -> Vec<String> {
    let written: Vec<char> = arguments.to_string().chars().collect();
    written
        .chunks(16)
        .map(|piece| piece.iter().collect())
        .collect()
}
