//! Messages: text, speaker, tool calls and token usage.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of one speaker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The speaker.
    pub speaker: Speaker,
    /// Role in which an agent receives the message.
    pub role: Role,
    /// The text, byte for byte.
    pub content: String,
    /// Reasoning of an agent before the text, as it was shown. No agent is sent it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Thread within the session, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Tool calls that the message makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Id of the tool call that the message answers (role `tool`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Identity of the usage, where the entry's own id does not tell copies apart: an imported or
    /// merged message has the identity of the original, so that its tokens count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_id: Option<String>,
    /// Requests that the usage is of, if a program made them: each is named as an import of the
    /// program's own file names its usage, so that tokens in both count once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// Model that wrote the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Addressees, in a team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addressees: Vec<Addressee>,
    /// Agent that the message was sent to, in a chat: recorded even if no answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// True if the message was cut off before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Outcome of the tool call that the message answers. Older logs lack it;
    /// [`Message::tool_outcome`] handles both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
    /// Files that the user attached, as they were when the message was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Id that the client gave the message, so that sending it again says nothing twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Fields that another program kept with the message, in its own terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// A text file attached to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Path, relative to the work folder.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Content, without what was cut.
    pub content: String,
    /// Number of bytes that were cut from its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
}

impl Attachment {
    /// Formats the file for an agent, between tags that its content cannot contain: it must not
    /// pass for the user's words.
    pub fn tagged(&self) -> String {
        let mut tag = "attached-file".to_owned();
        while self.content.contains(&format!("</{tag}>")) {
            tag.push('-');
        }
        let (path, bytes) = (&self.path, self.bytes);
        let content = self.marked();
        let end = if content.ends_with('\n') { "" } else { "\n" };
        format!("<{tag} path={path:?} bytes=\"{bytes}\">\n{content}{end}</{tag}>")
    }

    /// Returns the content, with a mark of what was cut from its end.
    pub fn marked(&self) -> String {
        let content = &self.content;
        match self.cut {
            0 => content.clone(),
            cut if content.ends_with('\n') => format!("{content}[cut: {cut} more bytes]"),
            cut => format!("{content}\n[cut: {cut} more bytes]"),
        }
    }
}

/// Returns a message that has only text.
pub fn plain(speaker: &Speaker, role: Role, content: String) -> Message {
    Message {
        speaker: speaker.clone(),
        role,
        content,
        reasoning: None,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        usage_id: None,
        requests: Vec::new(),
        model: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    }
}

/// Returns the speaker for the local user.
pub fn human() -> Speaker {
    Speaker {
        id: "human".into(),
        name: "you".into(),
        display_name: "You".into(),
        kind: SpeakerKind::Human,
    }
}

impl Speaker {
    /// Returns the name for prompts: a person without a name is the user, because "You" would mean
    /// the agent that reads it.
    pub fn prompt_name(&self) -> &str {
        match self.kind {
            SpeakerKind::Human if self.display_name == human().display_name => "User",
            _ => &self.display_name,
        }
    }
}

/// Prefixes of failed tool results, for older logs without a recorded outcome.
const ERRORS: &[&str] = &[
    "error: ",
    "Error: ",
    "the tool failed: ",
    "cannot read ",
    "cannot write ",
    "cannot open ",
    "cannot look at ",
    "there is no file ",
];

/// Prefix of the result of a denied tool call.
pub const NOT_RUN_MARK: &str = "[not run: ";

impl Message {
    /// Returns the outcome of the tool call that this message answers, or `None` if it answers
    /// none.
    pub fn tool_outcome(&self) -> Option<ToolOutcome> {
        let is_result = self.role == Role::Tool || self.speaker.kind == SpeakerKind::Tool;
        if !is_result {
            return None;
        }
        Some(match self.outcome {
            _ if self.interrupted => ToolOutcome::Interrupted,
            Some(outcome) => outcome,
            None => ToolOutcome::read_back(&self.content),
        })
    }
}

/// Outcome of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The call succeeded.
    Ok,
    /// The call ran, or could not be started, and failed.
    Failed,
    /// The call was denied and did not run.
    Denied,
    /// The call was cancelled, or the program ended before its result.
    Interrupted,
}

impl ToolOutcome {
    /// Returns the outcome of a call from its result and success flag.
    pub fn of(output: &str, ok: bool) -> ToolOutcome {
        match ok {
            true => ToolOutcome::Ok,
            false if output.starts_with(NOT_RUN_MARK) => ToolOutcome::Denied,
            false => ToolOutcome::Failed,
        }
    }

    /// Infers the outcome from the result text, for logs without a recorded outcome.
    fn read_back(output: &str) -> ToolOutcome {
        let last = output.trim_end().lines().next_back().unwrap_or_default();
        let ending = last.strip_prefix('[').and_then(|end| end.strip_suffix(']'));
        let failed = ending.is_some_and(|ending| {
            let exit = ending.strip_prefix("exit status ");
            exit.is_some_and(|code| code != "0" && code.parse::<i32>().is_ok())
                || [
                    "ended by signal ",
                    "not finished after ",
                    "it cannot be run: ",
                ]
                .iter()
                .any(|words| ending.starts_with(words))
        });
        let is_error = ERRORS.iter().any(|words| output.starts_with(words))
            && output.trim_end().lines().count() == 1;
        match output.starts_with(NOT_RUN_MARK) {
            true => ToolOutcome::Denied,
            false => ToolOutcome::of(output, !failed && !is_error),
        }
    }

    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            ToolOutcome::Ok => "ok",
            ToolOutcome::Failed => "failed",
            ToolOutcome::Denied => "denied",
            ToolOutcome::Interrupted => "interrupted",
        }
    }

    /// Returns the symbol: ✓ succeeded, ✗ failed or interrupted, ⊘ denied.
    pub const fn sign(self) -> &'static str {
        match self {
            ToolOutcome::Ok => "✓",
            ToolOutcome::Failed | ToolOutcome::Interrupted => "✗",
            ToolOutcome::Denied => "⊘",
        }
    }
}

/// An addressee of a team message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressee {
    /// The name as written in the message.
    pub identifier: String,
    /// Id of the member that the name resolves to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Priority.
    pub intent: Intent,
}

/// Priority of an address in a team.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Intent {
    /// Before all others.
    P1,
    /// Normal: a reply.
    #[default]
    P2,
    /// When nothing else is queued.
    P3,
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Intent::P1 => "P1",
            Intent::P2 => "P2",
            Intent::P3 => "P3",
        })
    }
}

/// Author of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Speaker {
    /// Stable id.
    pub id: String,
    /// Name used in commands and markers.
    pub name: String,
    /// Name shown to users.
    pub display_name: String,
    /// Kind of speaker.
    #[serde(rename = "type")]
    pub kind: SpeakerKind,
}

impl Speaker {
    /// Returns a speaker whose id, name and display name are the same.
    pub fn plain(name: &str, kind: SpeakerKind) -> Speaker {
        Speaker {
            id: name.to_owned(),
            name: name.to_owned(),
            display_name: name.to_owned(),
            kind,
        }
    }
}

/// Kind of speaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeakerKind {
    /// A person.
    Human,
    /// An agent.
    Ai,
    /// tertulia itself.
    System,
    /// A tool.
    Tool,
}

/// Role in which an agent receives a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Prompt.
    User,
    /// Answer.
    Assistant,
    /// Instructions.
    System,
    /// Tool result.
    Tool,
}

impl Role {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Tool => "tool",
        }
    }
}

/// A tool call of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call, referred to by its result.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub arguments: Value,
}

/// Token usage of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including those read from and written to the provider's cache.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Input tokens that the provider read from its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Input tokens that the provider wrote to its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// True if the counts are estimated because the agent did not report usage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Returns usage as reported by an agent.
    pub const fn told(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            cache_read: 0,
            cache_written: 0,
            estimated: false,
        }
    }

    /// Returns true if no tokens were used.
    pub const fn is_empty(&self) -> bool {
        self.input == 0 && self.output == 0
    }

    /// Returns the sum of both.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// Calls `visit` with the texts in a value, names of fields included.
pub(super) fn for_each_string(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| for_each_string(value, visit)),
        Value::Object(fields) => {
            let visited = std::mem::take(fields).into_iter();
            *fields = visited
                .map(|(mut name, mut value)| {
                    visit(&mut name);
                    for_each_string(&mut value, visit);
                    (name, value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Appends the texts in a value, each on a line of its own.
pub(super) fn append_strings(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => {
            text.push('\n');
            text.push_str(string);
        }
        Value::Array(values) => values.iter().for_each(|value| append_strings(value, text)),
        Value::Object(fields) => fields
            .values()
            .for_each(|value| append_strings(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
