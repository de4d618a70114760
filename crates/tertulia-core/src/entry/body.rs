//! Entry bodies: every event that a session log can record. A new feature adds a variant here and
//! an arm in the fold (`SessionMeta::apply`).

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::imported::Imported;
use super::lineage::{Forked, Merged, Replayed};
use super::message::{Message, Usage, append_strings, for_each_string};
use super::paired::{Budgeted, Paired, Thought};
use super::sealed::{Keyed, Seal, Sealed};
use super::shell::{ShellCommand, ShellOutput};
use super::switched::Switched;
use super::terms::Terms;
use crate::id::{EntryId, Seq, SessionId};

/// The event that an entry records.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// The session was created.
    Created(Created),
    /// The session was created as a fork of another session.
    Forked(Forked),
    /// A speaker sent a message.
    Message(Message),
    /// The title was set.
    Renamed(Renamed),
    /// Tags were added or removed.
    Tagged(Tagged),
    /// The session was moved to the trash.
    Trashed(Touched),
    /// The session was restored from the trash.
    Restored(Touched),
    /// An earlier change was undone.
    Undone(Undone),
    /// An agent failed to answer.
    Failed(Failed),
    /// The roster of a team was set or changed.
    Seated(Seated),
    /// The team's task was set.
    Tasked(Tasked),
    /// The instructor and the worker of a pair were set or changed.
    Paired(Paired),
    /// The budget of worker calls was set.
    Budgeted(Budgeted),
    /// An agent's thinking before its answer.
    Thought(Thought),
    /// An agent keeps its own (native) session for this one.
    Linked(Linked),
    /// Another agent or another model answers from here on.
    Switched(Switched),
    /// The user set other terms, such as the tool policy.
    Terms(Terms),
    /// Agents were told about their environment.
    Environment(Environment),
    /// Older entries were summarised for the agents; the log keeps all of them.
    Compacted(Compacted),
    /// Placeholder for an entry that could not be read any more.
    Lost(Lost),
    /// The log was repaired.
    Repaired(Repaired),
    /// The session was imported from another program.
    Imported(Imported),
    /// The session continues with the messages of two others.
    Merged(Merged),
    /// The human side of another session was played again to an agent.
    Replayed(Replayed),
    /// An entry of a sealed session: its words are encrypted.
    Sealed(Sealed),
    /// Who can read a sealed session changes from here on.
    Keyed(Keyed),
    /// The user runs a shell command.
    Shell(ShellCommand),
    /// The user's shell command has ended.
    ShellOutput(ShellOutput),
    /// A type that this version does not know. The entry keeps its line unchanged.
    #[serde(skip)]
    Unknown(String),
}

impl Body {
    /// Parses the body of a line whose type is `kind`.
    pub(crate) fn decode(kind: &str, line: &str) -> Result<Body, serde_json::Error> {
        Ok(match kind {
            "created" => Body::Created(serde_json::from_str(line)?),
            "forked" => Body::Forked(serde_json::from_str(line)?),
            "message" => Body::Message(serde_json::from_str(line)?),
            "renamed" => Body::Renamed(serde_json::from_str(line)?),
            "tagged" => Body::Tagged(serde_json::from_str(line)?),
            "trashed" => Body::Trashed(serde_json::from_str(line)?),
            "restored" => Body::Restored(serde_json::from_str(line)?),
            "undone" => Body::Undone(serde_json::from_str(line)?),
            "failed" => Body::Failed(serde_json::from_str(line)?),
            "seated" => Body::Seated(serde_json::from_str(line)?),
            "tasked" => Body::Tasked(serde_json::from_str(line)?),
            "paired" => Body::Paired(serde_json::from_str(line)?),
            "budgeted" => Body::Budgeted(serde_json::from_str(line)?),
            "thought" => Body::Thought(serde_json::from_str(line)?),
            "linked" => Body::Linked(serde_json::from_str(line)?),
            "switched" => Body::Switched(serde_json::from_str(line)?),
            "terms" => Body::Terms(serde_json::from_str(line)?),
            "environment" => Body::Environment(serde_json::from_str(line)?),
            "compacted" => Body::Compacted(serde_json::from_str(line)?),
            "lost" => Body::Lost(serde_json::from_str(line)?),
            "repaired" => Body::Repaired(serde_json::from_str(line)?),
            "imported" => Body::Imported(serde_json::from_str(line)?),
            "merged" => Body::Merged(serde_json::from_str(line)?),
            "replayed" => Body::Replayed(serde_json::from_str(line)?),
            "sealed" => Body::Sealed(serde_json::from_str(line)?),
            "keyed" => Body::Keyed(serde_json::from_str(line)?),
            "shell" => Body::Shell(serde_json::from_str(line)?),
            "shell_output" => Body::ShellOutput(serde_json::from_str(line)?),
            other => Body::Unknown(other.to_owned()),
        })
    }

    /// Returns the serialised name of the variant.
    pub fn kind(&self) -> &str {
        match self {
            Body::Created(_) => "created",
            Body::Forked(_) => "forked",
            Body::Message(_) => "message",
            Body::Renamed(_) => "renamed",
            Body::Tagged(_) => "tagged",
            Body::Trashed(_) => "trashed",
            Body::Restored(_) => "restored",
            Body::Undone(_) => "undone",
            Body::Failed(_) => "failed",
            Body::Seated(_) => "seated",
            Body::Tasked(_) => "tasked",
            Body::Paired(_) => "paired",
            Body::Budgeted(_) => "budgeted",
            Body::Thought(_) => "thought",
            Body::Linked(_) => "linked",
            Body::Switched(_) => "switched",
            Body::Terms(_) => "terms",
            Body::Environment(_) => "environment",
            Body::Compacted(_) => "compacted",
            Body::Lost(_) => "lost",
            Body::Repaired(_) => "repaired",
            Body::Imported(_) => "imported",
            Body::Merged(_) => "merged",
            Body::Replayed(_) => "replayed",
            Body::Sealed(_) => "sealed",
            Body::Keyed(_) => "keyed",
            Body::Shell(_) => "shell",
            Body::ShellOutput(_) => "shell_output",
            Body::Unknown(kind) => kind,
        }
    }

    /// Returns true for housekeeping such as titles and tags, which does not count as part of the
    /// conversation.
    pub fn is_tidying(&self) -> bool {
        match self {
            Body::Renamed(_)
            | Body::Tagged(_)
            | Body::Trashed(_)
            | Body::Restored(_)
            | Body::Undone(_)
            | Body::Imported(_) => true,
            Body::Sealed(sealed) => sealed.is_tidying(),
            _ => false,
        }
    }

    /// Calls `visit` with the texts that people and agents wrote, which it may change. Redaction
    /// uses this before a body is written to disk.
    pub fn for_each_text(&mut self, visit: &mut dyn FnMut(&mut String)) {
        match self {
            Body::Created(created) => {
                created.title.iter_mut().for_each(visit);
            }
            Body::Forked(forked) => forked.title.iter_mut().for_each(visit),
            Body::Message(message) => {
                visit(&mut message.content);
                message.reasoning.iter_mut().for_each(&mut *visit);
                for addressee in &mut message.addressees {
                    visit(&mut addressee.identifier);
                }
                for call in &mut message.tool_calls {
                    for_each_string(&mut call.arguments, visit);
                }
                for attachment in &mut message.attachments {
                    visit(&mut attachment.path);
                    visit(&mut attachment.content);
                }
                if let Some(metadata) = &mut message.metadata {
                    for_each_string(metadata, visit);
                }
            }
            Body::Renamed(renamed) => visit(&mut renamed.title),
            Body::Tagged(tagged) => {
                // A tag that was redacted when it was added is removed by the same text.
                let tags = tagged.add.iter_mut().chain(&mut tagged.remove);
                tags.for_each(visit);
            }
            Body::Imported(imported) => imported.tags.iter_mut().for_each(visit),
            Body::Failed(failed) => visit(&mut failed.message),
            Body::Tasked(tasked) => visit(&mut tasked.task),
            Body::Compacted(compacted) => visit(&mut compacted.summary),
            Body::Paired(paired) => visit(&mut paired.system),
            Body::Thought(thought) => visit(&mut thought.text),
            Body::Shell(shell) => visit(&mut shell.command),
            Body::ShellOutput(shell) => visit(&mut shell.output),
            Body::Environment(environment) => environment.git.iter_mut().for_each(visit),
            Body::Seated(_)
            | Body::Budgeted(_)
            | Body::Linked(_)
            | Body::Switched(_)
            | Body::Terms(_)
            | Body::Trashed(_)
            | Body::Restored(_)
            | Body::Undone(_)
            | Body::Lost(_)
            | Body::Repaired(_)
            | Body::Merged(_)
            | Body::Replayed(_)
            | Body::Sealed(_)
            | Body::Keyed(_)
            | Body::Unknown(_) => {}
        }
    }

    /// Returns the text to index for search; empty if there is none.
    pub fn searchable(&self) -> String {
        match self {
            Body::Created(Created {
                title: Some(title), ..
            })
            | Body::Forked(Forked {
                title: Some(title), ..
            })
            | Body::Renamed(Renamed { title, .. }) => title.clone(),
            Body::Message(message) => {
                let mut text = message.content.clone();
                if let Some(reasoning) = &message.reasoning {
                    text.push('\n');
                    text.push_str(reasoning);
                }
                for call in &message.tool_calls {
                    text.push('\n');
                    text.push_str(&call.name);
                    append_strings(&call.arguments, &mut text);
                }
                for attachment in &message.attachments {
                    text.push_str(&format!("\n{}\n{}", attachment.path, attachment.content));
                }
                text
            }
            Body::Failed(failed) => failed.message.clone(),
            Body::Tasked(tasked) => tasked.task.clone(),
            Body::Compacted(compacted) => compacted.summary.clone(),
            Body::Thought(thought) => thought.text.clone(),
            Body::Shell(shell) => shell.command.clone(),
            Body::ShellOutput(shell) => shell.output.clone(),
            Body::Imported(imported) => imported.original.clone(),
            _ => String::new(),
        }
    }
}

/// Kind of conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One assistant.
    #[default]
    Chat,
    /// Several agents and people.
    Team,
    /// An instructor and a worker.
    Pair,
}

impl Kind {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Chat => "chat",
            Kind::Team => "team",
            Kind::Pair => "pair",
        }
    }
}

/// Creation of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    /// Id of the session.
    pub session: SessionId,
    /// Kind of conversation.
    pub kind: Kind,
    /// Title given by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Name of the team, for team sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Project of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// All identities of the project when the session was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<String>,
    /// Working directory at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Terms that the user set before the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Box<Terms>>,
    /// Seal of a sealed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Box<Seal>>,
}

/// A new title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renamed {
    /// The title.
    pub title: String,
    /// Id of the command; one command may change several sessions.
    pub operation: EntryId,
}

/// Tags added and removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tagged {
    /// Tags added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Tags removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Id of the command.
    pub operation: EntryId,
}

/// A change without further data (trash, restore).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Touched {
    /// Id of the command.
    pub operation: EntryId,
}

/// The undo of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undone {
    /// Sequence number of the undone change.
    pub change: Seq,
    /// Id of the command.
    pub operation: EntryId,
}

/// An agent's failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// Name of the agent.
    pub agent: String,
    /// Kind of failure: the name of a `FailureKind` of the agents crate.
    pub kind: String,
    /// Error message.
    pub message: String,
    /// Earliest time for a retry, if the agent reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// True if the user cancelled before the agent produced output or ran a tool: the prompt is
    /// withdrawn and not sent to any agent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

/// Writes the failure on one line, with its kind in words.
impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.agent)?;
        if self.kind != "failed" {
            write!(f, " ({})", self.kind.replace('_', " "))?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Roster of a team session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// Path of the team file, so that the session can be resumed from any directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Replaced members: id of the earlier speaker to id of the member that takes its place.
    /// Recorded messages keep their speakers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heirs: BTreeMap<String, String>,
}

/// Task of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasked {
    /// The task.
    pub task: String,
}

/// An agent's own (native) session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linked {
    /// Name of the agent.
    pub agent: String,
    /// Id that the agent gave its session.
    pub native: String,
    /// Working directory of the native session. Some agents find a session only from the directory
    /// where it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Usage of the imported messages before this entry, if the native session holds them, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Usage>,
}

/// Compaction summary that replaces older messages in the agents' context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The last entry that the summary covers.
    pub upto: Seq,
    /// The summary.
    pub summary: String,
    /// Agent that wrote the summary.
    pub agent: String,
    /// Model that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens used to write the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Thread that the summary covers, if the session has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// Placeholder for an entry that a repair could not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// What was wrong with the entry.
    pub reason: String,
}

/// Result of a repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repaired {
    /// Sequence numbers of lost entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Seq>,
    /// Sequence numbers of entries that are readable but do not match their hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<Seq>,
}
