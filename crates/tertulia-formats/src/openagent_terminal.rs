//! Reads openagent-terminal's session files (metadata and messages in one document) and their
//! index.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use tertulia_core::entry::{Imported, Kind, Message, Role, Speaker, SpeakerKind, ToolCall, Usage};
use tertulia_core::entry::{human, plain};
use tertulia_core::foreign::{Changes, Foreign, Identity, Said};
use tertulia_core::id::{EntryId, SessionId, derived, foreign_uuid};
use tertulia_core::redact::redact;

/// Name of the program, part of the derived ids of sessions and messages.
const FORM: &str = "openagent-terminal";
/// Speaker name for the program's agent.
const AGENT: &str = "assistant";

/// A session file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SessionFile {
    metadata: Metadata,
    messages: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Metadata {
    session_id: String,
    created_at: Option<String>,
    updated_at: Option<String>,
    message_count: Option<u64>,
    total_tokens: Option<u64>,
    title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct Kept {
    role: String,
    content: Option<String>,
    timestamp: Option<String>,
    token_count: Option<u64>,
    tool_calls: Option<Vec<Value>>,
    metadata: Option<Value>,
}

/// Index of a directory of session files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct IndexFile {
    sessions: Vec<Listed>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Listed {
    session_id: String,
}

/// Reasons why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionFileError {
    /// Not a document of this format.
    #[error("it is not a session of openagent-terminal: {0}")]
    Unreadable(String),
    /// No time of creation is known.
    #[error("metadata.created_at is not a time, and no message has one")]
    Timeless,
}

/// Returns true if a file looks like a session file.
pub fn is_one(content: &[u8]) -> bool {
    has_fields(content, &["\"metadata\"", "\"session_id\"", "\"messages\""])
}

/// Returns the session ids that an index lists, if the file is one.
pub fn listed(content: &[u8]) -> Option<Vec<String>> {
    if !has_fields(content, &["\"sessions\"", "\"version\""]) {
        return None;
    }
    let index: IndexFile = serde_json::from_slice(without_mark(content)).ok()?;
    let sessions = index.sessions.into_iter();
    Some(sessions.map(|listed| listed.session_id).collect())
}

/// Removes the byte order mark that some editors write.
fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content)
}

fn has_fields(content: &[u8], fields: &[&str]) -> bool {
    let Ok(text) = std::str::from_utf8(without_mark(content)) else {
        return false;
    };
    let text = text.trim_start();
    text.starts_with('{') && fields.iter().all(|field| text.contains(field))
}

impl SessionFile {
    /// Parses a session file.
    pub fn read(content: &[u8]) -> Result<SessionFile, SessionFileError> {
        serde_json::from_slice(without_mark(content))
            .map_err(|error| SessionFileError::Unreadable(error.to_string()))
    }

    /// Returns the id of the session to create, which is the same for every import.
    pub fn session_id(&self) -> SessionId {
        let original = &self.metadata.session_id;
        SessionId::new(foreign_uuid(original).unwrap_or_else(|| derived(&[FORM, original])))
    }

    /// Converts the file to a session for import.
    pub fn talk(&self) -> Result<Foreign, SessionFileError> {
        let metadata = &self.metadata;
        let mut times = Times::default();
        let mut changes = Changes::default();
        let created_at = metadata.created_at.as_deref().and_then(|at| times.read(at));
        let saved_at = metadata.updated_at.as_deref().and_then(|at| times.read(at));
        let said = self.said(created_at, &mut times, &mut changes);
        let first = said.first().map(|said| said.at);
        let created_at = created_at.or(first).ok_or(SessionFileError::Timeless)?;
        self.compare(&said, &mut changes);
        times.tell(&mut changes);
        Ok(Foreign {
            id: self.session_id(),
            kind: Kind::Chat,
            title: metadata.title.clone().filter(|title| !title.is_empty()),
            team: None,
            created_at,
            said,
            task: None,
            closing: Vec::new(),
            source: Imported {
                saved_at,
                tags: metadata.tags.clone(),
                ..Imported::new(FORM, &metadata.session_id)
            },
            changes,
            identity: Identity::Words,
            fork: None,
        })
    }

    fn said(
        &self,
        created_at: Option<Timestamp>,
        times: &mut Times,
        changes: &mut Changes,
    ) -> Vec<Said> {
        let mut said = Vec::new();
        let mut last = created_at;
        let mut pending = VecDeque::new();
        let mut unreadable = Vec::new();
        for (place, message) in self.messages.iter().enumerate() {
            let read = serde_json::from_value::<Kept>(message.clone()).ok();
            let read = read.and_then(|kept| Some((role(&kept.role)?, kept)));
            let Some((role, kept)) = read else {
                unreadable.push((place + 1).to_string());
                continue;
            };
            let at = kept.timestamp.as_deref().and_then(|at| times.read(at));
            let Some(at) = at.or(last) else {
                unreadable.push((place + 1).to_string());
                continue;
            };
            last = Some(at);
            let message = kept.message(place, role, &mut pending, changes);
            let id = EntryId::new(derived(&[
                FORM,
                &self.metadata.session_id,
                &place.to_string(),
                role.name(),
                // The id is stored, so no secret may be part of it.
                &redact(&message.content).text,
            ]));
            said.push(Said {
                id,
                at,
                message,
                compacts: None,
                thought: None,
            });
        }
        if !unreadable.is_empty() {
            changes.lost.push(format!(
                "messages that cannot be read: {} ({})",
                unreadable.join(", "),
                unreadable.len()
            ));
        }
        said
    }

    /// Reports counts in the metadata that do not match the messages.
    fn compare(&self, said: &[Said], changes: &mut Changes) {
        let messages = self.messages.len() as u64;
        if let Some(told) = self.metadata.message_count.filter(|told| *told != messages) {
            changes.lost.push(format!(
                "message_count, which says {told} where the file has {messages}"
            ));
        }
        let usage = said.iter().filter_map(|said| said.message.usage);
        let tokens: u64 = usage.map(|usage| usage.input + usage.output).sum();
        if let Some(told) = self.metadata.total_tokens.filter(|told| *told != tokens) {
            changes.lost.push(format!(
                "total_tokens, which says {told} where the messages have {tokens}"
            ));
        }
    }
}

impl Kept {
    /// Converts to a message of the log. `pending` are the tool calls without a result so far.
    fn message(
        &self,
        place: usize,
        role: Role,
        pending: &mut VecDeque<String>,
        changes: &mut Changes,
    ) -> Message {
        let speaker = match role {
            Role::User => human(),
            Role::Assistant => Speaker::plain(AGENT, SpeakerKind::Ai),
            Role::System => Speaker::plain("system", SpeakerKind::System),
            Role::Tool => Speaker::plain("tool", SpeakerKind::Tool),
        };
        let content = changes.keepable(self.content.as_deref().unwrap_or_default());
        let calls = self.tool_calls.iter().flatten().enumerate();
        let tool_calls: Vec<ToolCall> =
            calls.map(|(at, call)| tool_call(call, place, at)).collect();
        pending.extend(tool_calls.iter().map(|call| call.id.clone()));
        let tool_call_id = match role {
            Role::Tool => pending.pop_front(),
            _ => None,
        };
        let usage = self.token_count.map(|tokens| {
            let (input, output) = match role {
                Role::Assistant => (0, tokens),
                _ => (tokens, 0),
            };
            Usage {
                input,
                output,
                // The program only estimated tokens, by counting words.
                estimated: true,
                ..Usage::default()
            }
        });
        Message {
            tool_calls,
            tool_call_id,
            usage,
            metadata: self.metadata.clone().filter(is_annotated),
            ..plain(&speaker, role, content)
        }
    }
}

fn role(name: &str) -> Option<Role> {
    let roles = [Role::User, Role::Assistant, Role::System, Role::Tool];
    roles.into_iter().find(|role| role.name() == name)
}

/// Returns true if a message's metadata says anything.
fn is_annotated(metadata: &Value) -> bool {
    !metadata.is_null() && metadata.as_object().is_none_or(|fields| !fields.is_empty())
}

/// Converts a tool call, stored as `{tool, args}` without an id.
fn tool_call(call: &Value, place: usize, at: usize) -> ToolCall {
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| call[*key].as_str());
    let arguments = ["args", "arguments"]
        .iter()
        .find_map(|key| call.get(*key))
        .cloned();
    ToolCall {
        id: match text(["id", "tool_id"]) {
            Some(id) => id.to_owned(),
            None => format!("call-{}-{}", place + 1, at + 1),
        },
        name: text(["tool", "name"]).unwrap_or("unknown").to_owned(),
        arguments: arguments.unwrap_or(Value::Null),
    }
}

/// Parses times, and counts those without an offset and invalid ones.
#[derive(Default)]
struct Times {
    naive: usize,
    unreadable: usize,
}

impl Times {
    fn read(&mut self, text: &str) -> Option<Timestamp> {
        if let Ok(at) = text.parse() {
            return Some(at);
        }
        // Independent of the local time zone, so that a repeated import finds the same messages.
        let naive = text.parse::<DateTime>().ok();
        let naive = naive.and_then(|naive| TimeZone::UTC.to_timestamp(naive).ok());
        match naive {
            Some(_) => self.naive += 1,
            None => self.unreadable += 1,
        }
        naive
    }

    fn tell(&self, changes: &mut Changes) {
        if self.naive > 0 {
            changes.changed.push(format!(
                "times without an offset read as UTC ({})",
                self.naive
            ));
        }
        if self.unreadable > 0 {
            changes
                .lost
                .push(format!("times that cannot be read ({})", self.unreadable));
        }
    }
}
