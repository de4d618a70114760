//! One file per API: what it refuses, how it answers.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use serde_json::Value;

use super::talk::{Reply, Talk};
use super::{Api, Request};

/// A moment for answers that have one: they are the same in every run.
const MOMENT: &str = "2026-09-21T14:13:20Z";
/// The same in seconds.
const SECONDS: u64 = 1_790_000_000;

/// An API.
pub trait Wire {
    /// Checks a request as the service would, and says what it asks.
    fn read(&self, request: &Request) -> Result<Talk, Refused>;

    /// What can be looked up: the models, the version.
    fn look_up(&self, request: &Request) -> Result<Value, Refused>;

    /// The answer as one document.
    fn whole(&self, reply: &Reply) -> Value;

    /// The answer in pieces.
    fn frames(&self, talk: &Talk, reply: &Reply) -> Vec<Frame>;

    /// The type of an answer in pieces.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// An error in the shape that the service gives it.
    fn error(&self, status: u16, message: &str) -> Value;

    /// What the service says with a status.
    fn complaint(&self, status: u16, model: &str, key: &str) -> String;

    /// What it says when more was asked than the model can read.
    fn overflow(&self) -> &'static str;

    /// An error in the middle of an answer.
    fn error_event(&self) -> String;

    /// An event that is not JSON.
    fn broken_event(&self) -> String {
        "data: {\"this is not\n\n".to_owned()
    }
}

/// The wire of an API.
pub fn of(api: Api) -> &'static dyn Wire {
    match api {
        Api::Anthropic => &anthropic::Anthropic,
        Api::OpenAi => &openai::OpenAi,
        Api::Gemini => &gemini::Gemini,
        Api::Ollama => &ollama::Ollama,
    }
}

/// A request that the service does not answer.
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

/// A part of an answer in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub part: Part,
    pub text: String,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It stands around tokens.
    Frame,
    /// It carries one.
    Token,
    /// It closes the message.
    Close,
}

/// A nameless event of a stream of events.
fn event(part: Part, data: &Value) -> Frame {
    let text = format!("data: {data}\n\n");
    Frame { part, text }
}

/// `Err` with status 400 unless something is so.
fn demand(so: bool, message: impl Into<String>) -> Result<(), Refused> {
    if so {
        return Ok(());
    }
    Err(Refused::new(400, message))
}

/// The items of a list; none where there is no list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The words of a field; empty where there are none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The texts of a content that is a text, or a list of parts of which some are.
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

/// A name that tools may have.
fn is_tool_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

/// Checks the schema of a tool's arguments, and its name.
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

/// Arguments in pieces, as models write them.
fn argument_pieces(arguments: &Value) -> Vec<String> {
    let written: Vec<char> = arguments.to_string().chars().collect();
    written
        .chunks(16)
        .map(|piece| piece.iter().collect())
        .collect()
}
