//! A team session as one document, schema 1.0: the format in which an earlier program
//! (agent-chatter) saved its sessions. The older naming of speakers is read too; only the newer one
//! is written.

mod account;
mod conversion;
#[cfg(test)]
mod tests;
use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use account::Account;

use tertulia_core::entry::{self, Entry, Intent, Message, Role, Speaker, SpeakerKind, plain};
use tertulia_core::foreign::has_words;
use tertulia_core::session::{Log, SessionMeta};
use tertulia_core::team::markers::parse;
use tertulia_core::team::{Form, Problem, TeamError, has_halves, unreadable_time};

/// Length of the first message in the summary, in characters.
const SUMMARY_LENGTH: usize = 50;

/// Messages of a team session.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Id of the team.
    pub team: String,
    /// Id of the session; documents of other programs need not use a UUID.
    pub session: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last message, or of a later save.
    pub updated_at: Timestamp,
    /// Task of the team.
    pub team_task: Option<String>,
    /// Messages, oldest first.
    pub messages: Vec<Remembered>,
}

/// A parsed snapshot, with the changes made while reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Number of speakers and addressees in the older naming.
    pub older_names: usize,
    /// Number of speakers in the older naming without a title: their name is used instead.
    pub untitled: usize,
    /// True if lone surrogates were replaced.
    pub halves: bool,
}

/// One message of a snapshot.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Remembered {
    /// Id in the document.
    pub id: String,
    /// Time of the message.
    #[serde(rename = "timestamp")]
    pub at: Timestamp,
    /// The speaker.
    #[serde(deserialize_with = "speaker")]
    pub speaker: Speaker,
    /// The text.
    pub content: String,
    /// The addressees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
}

/// Addressees of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Routing {
    /// Addressees as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raw_next_markers: Vec<String>,
    /// Members that they resolve to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resolved_addressees: Vec<Addressee>,
}

/// An addressee of a message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Addressee {
    /// The name as written.
    pub identifier: String,
    /// Id of the member, if the name resolves to one.
    #[serde(alias = "roleId")]
    pub member_id: Option<String>,
    /// Name of the member, if the name resolves to one.
    #[serde(alias = "roleName")]
    pub member_name: Option<String>,
}

/// Reads a speaker in the newer or older naming; the schema ensures that it is one of them.
fn speaker<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Speaker, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Either {
        #[serde(rename = "type")]
        kind: SpeakerKind,
        #[serde(alias = "roleId")]
        id: String,
        #[serde(alias = "roleName")]
        name: String,
        #[serde(alias = "roleTitle")]
        display_name: Option<String>,
    }
    let either = Either::deserialize(deserializer)?;
    let display_name = either.display_name.unwrap_or_else(|| either.name.clone());
    Ok(Speaker {
        id: either.id,
        name: either.name,
        display_name,
        kind: either.kind,
    })
}

/// The document as read. Fields that can be computed from the messages are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    team_id: String,
    session_id: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    context: Context,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    messages: Vec<Remembered>,
    team_task: Option<String>,
}

/// The document as written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    schema_version: String,
    team_id: &'a str,
    session_id: &'a str,
    created_at: Timestamp,
    updated_at: Timestamp,
    context: WrittenContext<'a>,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenContext<'a> {
    messages: &'a [Remembered],
    team_task: Option<&'a str>,
    timestamp: i64,
    version: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    message_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_speaker_id: Option<&'a str>,
    summary: String,
}

impl Snapshot {
    /// Returns true if a file looks like a snapshot, even if it is damaged or of another version.
    pub fn is_one(content: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(content) else {
            return false;
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
        let fields = ["\"teamId\"", "\"sessionId\"", "\"context\""];
        let found = fields.iter().filter(|field| text.contains(**field));
        text.starts_with('{') && found.count() > 1
    }

    /// Parses and validates a snapshot. `origin` names the source in error messages.
    pub fn read(text: &str, origin: &str) -> Result<Snapshot, TeamError> {
        Ok(Snapshot::read_closely(text, origin)?.snapshot)
    }

    /// Like [`Snapshot::read`], with the changes made while reading.
    pub fn read_closely(text: &str, origin: &str) -> Result<Reading, TeamError> {
        let value = Form::Snapshot.read(text, origin, times)?;
        let older_names = older_names(&value);
        let untitled = untitled(&value);
        let document: Document =
            serde_json::from_value(value).map_err(|error| TeamError::Schema {
                form: Form::Snapshot,
                reason: error.to_string(),
            })?;
        let snapshot = Snapshot {
            team: document.team_id,
            session: document.session_id,
            created_at: document.created_at,
            updated_at: document.updated_at,
            team_task: document.context.team_task,
            messages: document.context.messages,
        };
        Ok(Reading {
            snapshot,
            older_names,
            untitled,
            halves: has_halves(text),
        })
    }

    /// Returns the snapshot of a session.
    pub fn of(meta: &SessionMeta, log: &Log) -> Snapshot {
        let names: HashMap<&str, &str> = log
            .messages()
            .map(|(_, message)| (message.speaker.id.as_str(), message.speaker.name.as_str()))
            .collect();
        let messages: Vec<Remembered> = log
            .messages()
            .filter(|(_, message)| has_words(message))
            .map(|(entry, message)| Remembered::of(entry, message, &names))
            .collect();
        // Only messages count: a failure, for example, is not part of the format, and would make
        // the same session appear as two versions.
        let spoken = messages.iter().map(|message| message.at);
        let spoken = spoken.fold(meta.created_at, Timestamp::max);
        let source = meta.source.as_ref();
        let source = source.filter(|source| source.program == conversion::FORM);
        let saved_at = source.and_then(|source| source.saved_at);
        Snapshot {
            team: meta.team.clone().unwrap_or_default(),
            session: source.map_or_else(|| meta.id.to_string(), |source| source.id.clone()),
            created_at: meta.created_at,
            updated_at: saved_at.map_or(spoken, |saved_at| saved_at.max(spoken)),
            team_task: meta.task.clone(),
            messages,
        }
    }

    /// Serialises the snapshot. Fails for content that [`Snapshot::read`] would reject, such as a
    /// session without a team.
    pub fn write(&self) -> Result<String, TeamError> {
        let document = Written {
            schema_version: Form::Snapshot.newest().to_string(),
            team_id: &self.team,
            session_id: &self.session,
            created_at: self.created_at,
            updated_at: self.updated_at,
            context: WrittenContext {
                messages: &self.messages,
                team_task: self.team_task.as_deref(),
                timestamp: self.updated_at.as_millisecond(),
                version: 1,
            },
            metadata: Metadata {
                message_count: self.messages.len(),
                last_speaker_id: self.messages.last().map(|last| last.speaker.id.as_str()),
                summary: self.summary(),
            },
        };
        Form::Snapshot.write(&document, "the session snapshot", times)
    }

    /// Returns the one-line summary of the format: message count and beginning of the first
    /// message.
    pub fn summary(&self) -> String {
        match self.messages.first() {
            Some(first) => {
                let mut rest = first.content.chars();
                let beginning: String = rest.by_ref().take(SUMMARY_LENGTH).collect();
                let more = if rest.next().is_some() { "..." } else { "" };
                format!("{} messages - \"{beginning}{more}\"", self.messages.len())
            }
            None => "Empty conversation".to_owned(),
        }
    }
}

impl Remembered {
    /// Converts a message of the log. `names` are the names of the speakers, by id.
    fn of(entry: &Entry, message: &Message, names: &HashMap<&str, &str>) -> Remembered {
        Remembered {
            id: entry.id.to_string(),
            at: entry.at,
            speaker: message.speaker.clone(),
            content: message.content.clone(),
            routing: Routing::of(&message.addressees, names),
        }
    }

    /// Converts to a message of the log, with the text unchanged.
    pub fn message(&self) -> Message {
        let role = match self.speaker.kind {
            SpeakerKind::Human => Role::User,
            SpeakerKind::Ai => Role::Assistant,
            SpeakerKind::System => Role::System,
            SpeakerKind::Tool => Role::Tool,
        };
        let addressees = self.routing.as_ref().map(Routing::addressees);
        Message {
            addressees: addressees.unwrap_or_default(),
            ..plain(&self.speaker, role, self.content.clone())
        }
    }
}

impl Routing {
    /// Returns the addressees of a message, or `None` if there are none.
    fn of(addressees: &[entry::Addressee], names: &HashMap<&str, &str>) -> Option<Routing> {
        let resolved = addressees.iter().map(|addressee| {
            let member = addressee.member.as_deref();
            let name = member.map(|id| names.get(id).copied().unwrap_or(id));
            Addressee {
                identifier: addressee.identifier.clone(),
                member_id: member.map(str::to_owned),
                member_name: name.map(str::to_owned),
            }
        });
        (!addressees.is_empty()).then(|| Routing {
            raw_next_markers: addressees
                .iter()
                .map(|addressee| addressee.identifier.clone())
                .collect(),
            resolved_addressees: resolved.collect(),
        })
    }

    /// Converts to addressees of the log. Without resolved addressees, the raw markers are used.
    fn addressees(&self) -> Vec<entry::Addressee> {
        let addressee = |identifier: &str, member: Option<String>, intent| entry::Addressee {
            identifier: identifier.to_owned(),
            member,
            intent,
        };
        if self.resolved_addressees.is_empty() {
            let written = self.raw_next_markers.iter();
            return written
                .flat_map(|marker| match marker.trim_start().starts_with('[') {
                    true => parse(marker).next,
                    false => parse(&format!("[NEXT: {marker}]")).next,
                })
                .map(|next| addressee(&next.name, None, next.intent))
                .collect();
        }
        self.resolved_addressees
            .iter()
            .map(|known| {
                let member = known.member_id.clone().or(known.member_name.clone());
                addressee(&known.identifier, member, Intent::default())
            })
            .collect()
    }
}

/// Counts speakers and addressees in the older naming.
fn older_names(document: &Value) -> usize {
    let messages = document
        .pointer("/context/messages")
        .and_then(Value::as_array);
    let older = |value: &&Value| value.get("roleId").is_some();
    messages
        .into_iter()
        .flatten()
        .map(|message| {
            let speaker = message.get("speaker").filter(older);
            let addressees = message
                .pointer("/routing/resolvedAddressees")
                .and_then(Value::as_array);
            let addressees = addressees.into_iter().flatten().filter(older);
            usize::from(speaker.is_some()) + addressees.count()
        })
        .sum()
}

/// Counts speakers in the older naming without a title.
fn untitled(document: &Value) -> usize {
    let messages = document
        .pointer("/context/messages")
        .and_then(Value::as_array);
    let speakers = messages
        .into_iter()
        .flatten()
        .filter_map(|message| message.get("speaker"));
    let untitled =
        |speaker: &&Value| speaker.get("roleId").is_some() && speaker.get("roleTitle").is_none();
    speakers.filter(untitled).count()
}

/// Reports times that cannot be parsed.
fn times(document: &Value) -> Vec<Problem> {
    let messages = document
        .pointer("/context/messages")
        .and_then(Value::as_array);
    let said = messages
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, message)| {
            unreadable_time(message, &format!("/context/messages/{index}"), "timestamp")
        });
    ["createdAt", "updatedAt"]
        .into_iter()
        .filter_map(|field| unreadable_time(document, "", field))
        .chain(said)
        .collect()
}
