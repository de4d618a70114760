//! What a speaker said: the words, and what goes with them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that a speaker said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who.
    pub speaker: Speaker,
    /// In which role an agent reads it.
    pub role: Role,
    /// The words, byte for byte.
    pub content: String,
    /// The thread within the session, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The tools that it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The tool call that it answers, in the role `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whom it addresses, in a team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addressees: Vec<Addressee>,
    /// The agent that was asked to answer it, in a chat: known however the answer ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Whether it was cut off before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What came of the tool call that it answers. Older logs do not say: [`Message::tool_outcome`] reads both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
}

/// A message without anything but words.
pub fn plain(speaker: &Speaker, role: Role, content: String) -> Message {
    Message {
        speaker: speaker.clone(),
        role,
        content,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        model: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
    }
}

/// The human at the keyboard.
pub fn human() -> Speaker {
    Speaker {
        id: "human".into(),
        name: "you".into(),
        display_name: "You".into(),
        kind: SpeakerKind::Human,
    }
}

/// What the results of failed tool calls begin with in logs that do not say what came of them.
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

/// What the result of a tool call that was not allowed begins with.
pub const NOT_RUN_MARK: &str = "[not run: ";

impl Message {
    /// What came of the tool call that this message answers; `None` if it answers none.
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

/// What came of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It did what it was asked to.
    Ok,
    /// It ran, or was tried, and failed.
    Failed,
    /// It was not allowed and did not run.
    Denied,
    /// It was stopped, or the program ended before its result came.
    Interrupted,
}

impl ToolOutcome {
    /// The outcome of a call with this result.
    pub fn of(output: &str, ok: bool) -> ToolOutcome {
        match ok {
            true => ToolOutcome::Ok,
            false if output.starts_with(NOT_RUN_MARK) => ToolOutcome::Denied,
            false => ToolOutcome::Failed,
        }
    }

    /// The outcome of a call by its result alone, for logs that do not have it.
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

    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            ToolOutcome::Ok => "ok",
            ToolOutcome::Failed => "failed",
            ToolOutcome::Denied => "denied",
            ToolOutcome::Interrupted => "interrupted",
        }
    }

    /// Its sign: ✓ it worked, ✗ it failed or was stopped, ⊘ it was not allowed.
    pub const fn sign(self) -> &'static str {
        match self {
            ToolOutcome::Ok => "✓",
            ToolOutcome::Failed | ToolOutcome::Interrupted => "✗",
            ToolOutcome::Denied => "⊘",
        }
    }
}

/// Whom a message in a team addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressee {
    /// The name, as it was written.
    pub identifier: String,
    /// The member that it means, if it means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// How urgent it is.
    pub intent: Intent,
}

/// How urgent an address in a team is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Intent {
    /// Before everything else.
    P1,
    /// In answer to what was said.
    #[default]
    P2,
    /// When nothing else is left.
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

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Speaker {
    /// A stable id.
    pub id: String,
    /// The name that commands and markers use.
    pub name: String,
    /// The name that people read.
    pub display_name: String,
    /// What kind of speaker.
    #[serde(rename = "type")]
    pub kind: SpeakerKind,
}

impl Speaker {
    /// A speaker whose id, name and display name are one.
    pub fn plain(name: &str, kind: SpeakerKind) -> Speaker {
        Speaker {
            id: name.to_owned(),
            name: name.to_owned(),
            display_name: name.to_owned(),
            kind,
        }
    }
}

/// What kind of speaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeakerKind {
    /// A person.
    Human,
    /// An agent.
    Ai,
    /// The program.
    System,
    /// A tool.
    Tool,
}

/// In which role an agent reads a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The one who asks.
    User,
    /// The one who answers.
    Assistant,
    /// Instructions.
    System,
    /// A tool's result.
    Tool,
}

impl Role {
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Tool => "tool",
        }
    }
}

/// A tool that an agent wants to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id, which its result names.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is given.
    pub arguments: Value,
}

/// The tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Whether they were counted here because the agent did not tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Tokens as an agent told them.
    pub const fn told(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            estimated: false,
        }
    }

    /// Both together.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input + other.input,
            output: self.output + other.output,
            estimated: self.estimated || other.estimated,
        }
    }
}
