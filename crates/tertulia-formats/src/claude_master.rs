//! Reads claude-master's files: one document with the whole state, or a log of lines of which the
//! last may be incomplete. Only the fields named here are read, so that API keys in those files are
//! not imported.

mod conversion;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use tertulia_core::foreign::Changes;
use tertulia_core::pair::Budget;

/// Newest supported major version of the document.
const NEWEST_VERSION: u64 = 1;

/// A session of claude-master.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Id of the session.
    pub session: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last save.
    pub updated_at: Option<Timestamp>,
    /// Version of the document.
    pub version: Option<String>,
    /// Model of the instructor.
    pub instructor_model: Option<String>,
    /// Model of the worker.
    pub worker_model: Option<String>,
    /// Whether the instructor used thinking.
    pub thinking: bool,
    /// Working directory.
    pub work_dir: String,
    /// System prompt of the instructor.
    pub system: String,
    /// Number of calls of the instructor.
    pub round: u64,
    /// Remaining worker calls.
    pub remaining: Budget,
    /// Total number of worker calls allowed.
    pub max_rounds: Option<Budget>,
    /// The instructor's last thinking, if only the state has it.
    pub last_thinking: Option<String>,
    /// Messages of the instructor's context.
    pub instructor: Vec<Remembered>,
    /// Messages of the worker's context.
    pub worker: Vec<Remembered>,
    /// Content that could not be read.
    pub changes: Changes,
}

/// A recorded message.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// Time, if recorded.
    pub at: Option<Timestamp>,
    /// `user` or `assistant`.
    pub role: String,
    /// A text, or a list of blocks.
    pub content: Value,
}

/// Reasons why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaudeMasterError {
    /// The file is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// A required part is missing.
    #[error("it has no {0}")]
    Lacks(&'static str),
    /// A later version of the program wrote the file.
    #[error(
        "its version is {0}; versions up to {NEWEST_VERSION}.x are supported, so upgrade tertulia"
    )]
    TooNew(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    #[serde(flatten)]
    known: Known,
    instructor: Option<Part>,
    worker: Option<Part>,
    last_instructor_response: Option<LastReply>,
}

/// The state's data about the instructor's last reply. Everything else is parsed from the reply
/// itself.
#[derive(Deserialize)]
struct LastReply {
    thinking: Option<String>,
}

/// The relevant part of the settings, which also contain API keys.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    instructor_model: Option<String>,
    worker_model: Option<String>,
    max_rounds: Option<Value>,
    use_thinking: Option<bool>,
    work_dir: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    conversation_history: Vec<Told>,
    system_prompt: Option<String>,
}

#[derive(Deserialize)]
struct Told {
    role: String,
    content: Value,
    #[serde(default)]
    timestamp: Option<Value>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Option<Timestamp>,
    message: Option<Told>,
}

/// Returns true if a file looks like one of claude-master.
pub fn is_one(content: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(content) else {
        return false;
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let first = text.lines().next().unwrap_or_default();
    if let Ok(line) = serde_json::from_str::<Line>(first) {
        return ["instructor-message", "session-metadata"].contains(&line.kind.as_str());
    }
    let fields = ["\"sessionId\"", "\"currentRound\"", "\"instructor\""];
    text.starts_with('{') && fields.iter().all(|field| text.contains(field))
}

impl Kept {
    /// Reads a file of either format.
    pub fn read(content: &[u8]) -> Result<Kept, ClaudeMasterError> {
        let text = String::from_utf8_lossy(content);
        let text = text.trim_start_matches('\u{feff}').trim();
        let is_log = text
            .lines()
            .next()
            .is_some_and(|line| serde_json::from_str::<Line>(line).is_ok());
        if is_log {
            return Kept::of_log(text);
        }
        let state: State = serde_json::from_str(text)
            .map_err(|error| ClaudeMasterError::NotJson(error.to_string()))?;
        let instructor = state.instructor.unwrap_or_default();
        let worker = state.worker.unwrap_or_default();
        let remembered = |part: Vec<Told>| part.into_iter().map(|told| told.at(None)).collect();
        let last_thinking = state
            .last_instructor_response
            .and_then(|reply| reply.thinking)
            .filter(|thinking| !thinking.trim().is_empty());
        Ok(Kept {
            system: instructor.system_prompt.unwrap_or_default(),
            instructor: remembered(instructor.conversation_history),
            worker: remembered(worker.conversation_history),
            last_thinking,
            ..state.known.kept()?
        })
    }

    /// Reads a log: messages, and the state after each save. The last state counts.
    fn of_log(text: &str) -> Result<Kept, ClaudeMasterError> {
        let (mut messages, mut known, mut changes) = (Vec::new(), None, Changes::default());
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        for (at, line) in lines {
            let number = at + 1;
            let Ok(read) = serde_json::from_str::<Line>(line) else {
                changes.damaged.push(number);
                continue;
            };
            match (read.kind.as_str(), read.message) {
                ("instructor-message", Some(told)) => messages.push(told.at(read.timestamp)),
                ("session-metadata", _) => match serde_json::from_str::<Known>(line) {
                    Ok(newer) => known = Some(newer),
                    Err(_) => changes.damaged.push(number),
                },
                (kind, _) => changes
                    .lost
                    .push(format!("line {number}, of the type {kind}")),
            }
        }
        let known = known.ok_or(ClaudeMasterError::Lacks("state (session-metadata)"))?;
        Ok(Kept {
            instructor: messages,
            changes,
            ..known.kept()?
        })
    }
}

/// The state without messages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    session_id: String,
    created_at: Option<Timestamp>,
    last_updated_at: Option<Timestamp>,
    version: Option<String>,
    #[serde(default)]
    config: Config,
    #[serde(rename = "currentRound")]
    round: Option<f64>,
    #[serde(rename = "remainingRounds")]
    remaining: Option<Value>,
    work_dir: Option<String>,
}

impl Known {
    fn kept(self) -> Result<Kept, ClaudeMasterError> {
        if let Some(version) = self.version.as_ref().filter(|version| is_too_new(version)) {
            return Err(ClaudeMasterError::TooNew(version.clone()));
        }
        let created_at = self
            .created_at
            .ok_or(ClaudeMasterError::Lacks("createdAt"))?;
        // An unlimited budget was saved as null, which claude-master itself reads back as zero.
        let limit = self.config.max_rounds.as_ref().and_then(calls);
        let remaining = self.remaining.as_ref().and_then(calls);
        Ok(Kept {
            session: self.session_id,
            created_at,
            updated_at: self.last_updated_at,
            version: self.version,
            instructor_model: self.config.instructor_model,
            worker_model: self.config.worker_model,
            thinking: self.config.use_thinking.unwrap_or(true),
            work_dir: self.work_dir.or(self.config.work_dir).unwrap_or_default(),
            system: String::new(),
            round: self.round.map_or(0, whole),
            remaining: remaining.or(limit).unwrap_or_default(),
            max_rounds: limit,
            last_thinking: None,
            instructor: Vec::new(),
            worker: Vec::new(),
            changes: Changes::default(),
        })
    }
}

/// Returns true for a later major version. A version that is not a number is accepted.
fn is_too_new(version: &str) -> bool {
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.trim().parse().ok());
    major.is_some_and(|major: u64| major > NEWEST_VERSION)
}

fn calls(value: &Value) -> Option<Budget> {
    value.as_f64().map(|number| Budget::Calls(whole(number)))
}

fn whole(number: f64) -> u64 {
    // Numbers are JavaScript's; negative ones count as zero.
    number.max(0.0) as u64
}

impl Told {
    fn at(self, at: Option<Timestamp>) -> Remembered {
        let own = self.timestamp.as_ref().and_then(Value::as_str);
        Remembered {
            at: at.or_else(|| own?.parse().ok()),
            role: self.role,
            content: self.content,
        }
    }
}
