//! What may happen to a session. A new feature is a new variant here and an arm in the fold.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::imported::Imported;
use super::message::{Message, Usage};
use crate::entry::Hash;
use crate::id::{EntryId, Seq, SessionId};
use crate::pair::Budget;

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// The session began.
    Created(Created),
    /// The session began as a continuation of another's log.
    Forked(Forked),
    /// A speaker said something.
    Message(Message),
    /// The session got a title.
    Renamed(Renamed),
    /// Tags came or went.
    Tagged(Tagged),
    /// The session went to the trash.
    Trashed(Touched),
    /// The session came back from the trash.
    Restored(Touched),
    /// An earlier change was taken back.
    Undone(Undone),
    /// An agent failed to answer.
    Failed(Failed),
    /// A team sat down, or in another order than before.
    Seated(Seated),
    /// The team got a task.
    Tasked(Tasked),
    /// An instructor and a worker sat down, or others than before.
    Paired(Paired),
    /// The worker may be called so often from here on.
    Budgeted(Budgeted),
    /// What an agent thought before it spoke.
    Thought(Thought),
    /// An agent remembers the talk in a session of its own.
    Linked(Linked),
    /// The older part was summed up for the agents; the log keeps all of it.
    Compacted(Compacted),
    /// An entry stood here that could not be read any more.
    Lost(Lost),
    /// The log was repaired.
    Repaired(Repaired),
    /// The session was imported from another program.
    Imported(Imported),
    /// Something that this version does not know. It is kept as it stands on its line.
    #[serde(skip)]
    Unknown(String),
}

impl Body {
    /// Reads the body of a line whose type is `kind`.
    pub(super) fn decode(kind: &str, line: &str) -> Result<Body, serde_json::Error> {
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
            "compacted" => Body::Compacted(serde_json::from_str(line)?),
            "lost" => Body::Lost(serde_json::from_str(line)?),
            "repaired" => Body::Repaired(serde_json::from_str(line)?),
            "imported" => Body::Imported(serde_json::from_str(line)?),
            other => Body::Unknown(other.to_owned()),
        })
    }

    /// The name of the variant, as it is written.
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
            Body::Compacted(_) => "compacted",
            Body::Lost(_) => "lost",
            Body::Repaired(_) => "repaired",
            Body::Imported(_) => "imported",
            Body::Unknown(kind) => kind,
        }
    }

    /// Whether it only tidies up: a title or a tag does not come between two speakers.
    pub fn is_tidying(&self) -> bool {
        matches!(
            self,
            Body::Renamed(_)
                | Body::Tagged(_)
                | Body::Trashed(_)
                | Body::Restored(_)
                | Body::Undone(_)
                | Body::Imported(_)
        )
    }

    /// Shows every piece of free text to `visit`, which may change it: so that nothing that people or
    /// agents wrote reaches the disk unseen.
    pub fn for_each_text(&mut self, visit: &mut dyn FnMut(&mut String)) {
        match self {
            Body::Created(created) => {
                created.title.iter_mut().for_each(visit);
            }
            Body::Forked(forked) => forked.title.iter_mut().for_each(visit),
            Body::Message(message) => {
                visit(&mut message.content);
                for addressee in &mut message.addressees {
                    visit(&mut addressee.identifier);
                }
                for call in &mut message.tool_calls {
                    for_each_string(&mut call.arguments, visit);
                }
            }
            Body::Renamed(renamed) => visit(&mut renamed.title),
            Body::Tagged(tagged) => tagged.add.iter_mut().for_each(visit),
            Body::Failed(failed) => visit(&mut failed.message),
            Body::Tasked(tasked) => visit(&mut tasked.task),
            Body::Compacted(compacted) => visit(&mut compacted.summary),
            Body::Paired(paired) => visit(&mut paired.system),
            Body::Thought(thought) => visit(&mut thought.text),
            Body::Seated(_)
            | Body::Budgeted(_)
            | Body::Linked(_)
            | Body::Trashed(_)
            | Body::Restored(_)
            | Body::Undone(_)
            | Body::Lost(_)
            | Body::Repaired(_)
            | Body::Imported(_)
            | Body::Unknown(_) => {}
        }
    }

    /// The text by which the entry can be found; empty where there is nothing to find.
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
                for call in &message.tool_calls {
                    text.push('\n');
                    text.push_str(&call.name);
                    append_strings(&call.arguments, &mut text);
                }
                text
            }
            Body::Failed(failed) => failed.message.clone(),
            Body::Tasked(tasked) => tasked.task.clone(),
            Body::Compacted(compacted) => compacted.summary.clone(),
            Body::Thought(thought) => thought.text.clone(),
            Body::Imported(imported) => imported.original.clone(),
            _ => String::new(),
        }
    }
}

fn for_each_string(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| for_each_string(value, visit)),
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|value| for_each_string(value, visit));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn append_strings(value: &Value, text: &mut String) {
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

/// What kind of conversation a session is.
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
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Chat => "chat",
            Kind::Team => "team",
            Kind::Pair => "pair",
        }
    }
}

/// The beginning of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    /// The session's own id.
    pub session: SessionId,
    /// What kind of conversation.
    pub kind: Kind,
    /// A title, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The team, for team sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The project it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Every identity of the project when the session began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<String>,
    /// The folder it was begun in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// The beginning of a session that continues another's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The session's own id.
    pub session: SessionId,
    /// What it continues.
    pub from: Origin,
    /// How the two are related.
    pub relation: Relation,
    /// A title, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The project it belongs to, where that is not the original's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The folder it was begun in, where that is not the original's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// The entry that a fork continues from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The session.
    pub id: SessionId,
    /// The last entry that both share.
    pub seq: Seq,
    /// That entry's hash.
    pub hash: Hash,
}

/// How a session came from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Somebody asked for a fork.
    Fork,
    /// Two wrote at once; the second's words went on here.
    Conflict,
    /// Two sessions were put together.
    Merge,
    /// The human side was played again.
    Replay,
}

impl Relation {
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Relation::Fork => "fork",
            Relation::Conflict => "conflict",
            Relation::Merge => "merge",
            Relation::Replay => "replay",
        }
    }
}

/// A new title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renamed {
    /// The title.
    pub title: String,
    /// The command that did it; one command may touch several sessions.
    pub operation: EntryId,
}

/// Tags that came and went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tagged {
    /// Tags that the session has from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Tags that it no longer has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// The command that did it.
    pub operation: EntryId,
}

/// A change that needs no more words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Touched {
    /// The command that did it.
    pub operation: EntryId,
}

/// A change taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undone {
    /// The change's place.
    pub change: Seq,
    /// The command that did it.
    pub operation: EntryId,
}

/// An agent's failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// The agent.
    pub agent: String,
    /// What kind of failure, as `FailureKind` of the agents names it.
    pub kind: String,
    /// What went wrong, in words.
    pub message: String,
    /// When it may be tried again, where the agent said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Whether a person stopped it before it had said or done anything: the words that asked for it are
    /// withdrawn, and no agent is asked for them again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

/// Who sits where in a team's talk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// The file that describes the team, so that the talk can go on from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Earlier speakers whose seats members have now, each by id. What was said keeps its names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heirs: BTreeMap<String, String>,
}

/// What a team is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasked {
    /// The task.
    pub task: String,
}

/// Who instructs and who works, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paired {
    /// Who instructs.
    pub instructor: PairedAgent,
    /// Who works.
    pub worker: PairedAgent,
    /// Whether the instructor thinks before it speaks, where it can.
    pub thinking: bool,
    /// The folder that they work in.
    pub work_dir: String,
    /// What the instructor is told about its part.
    pub system: String,
    /// The round at which the talk is, where another program counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
}

/// An agent in one of the two seats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedAgent {
    /// Its name.
    pub agent: String,
    /// Its model, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How often the worker may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgeted {
    /// From here on.
    pub budget: Budget,
}

/// What an agent thought before it spoke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// In which thread.
    pub thread: String,
    /// The thoughts.
    pub text: String,
}

/// An agent's own session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linked {
    /// The agent.
    pub agent: String,
    /// The id that it gave its session.
    pub native: String,
    /// The folder in which it works there. Some find their sessions only where these began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// What agents are told instead of the older part of a talk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The last entry that the summary stands for.
    pub upto: Seq,
    /// The summary.
    pub summary: String,
    /// Who wrote it.
    pub agent: String,
    /// With which model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What writing it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The thread that it stands for, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// What stands in the place of an entry that a repair could not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// What was wrong with it.
    pub reason: String,
}

/// What a repair did to a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repaired {
    /// The places of entries that are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Seq>,
    /// The places of entries that can be read but are not what was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<Seq>,
}
