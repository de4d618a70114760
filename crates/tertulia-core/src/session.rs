//! A session is a fold over its entries: title, tags, counts, state and family are derived, never kept
//! beside the log.

mod log;
mod source;
mod speakers;
#[cfg(test)]
mod tests;
mod title;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::entry::{Addressee, Body, Entry, Head, Kind, Message, Relation, SpeakerKind, Usage};
use crate::id::{EntryId, Seq, SessionId};
use crate::pair::Pair;
pub use log::{Damage, Line, Log};
pub use source::Source;
pub use speakers::Spoke;
use title::{title_from, without_markers};

/// The most that the log of one session may weigh.
pub const SESSION_LIMIT: u64 = 100_000_000;

/// How many changes can be taken back, one after the other.
const UNDO_DEPTH: usize = 20;

/// What a list shows of a session: a fold that stays small however long the log is, so that each
/// append can carry it on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// Which session.
    pub id: SessionId,
    /// What kind of conversation.
    pub kind: Kind,
    /// The title: as given, or the beginning of the first message.
    pub title: Option<String>,
    /// Whether somebody gave the title.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub titled: bool,
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
    /// Its tags, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When somebody last spoke in it. Tidying up (titles, tags) leaves it alone.
    pub updated_at: Timestamp,
    /// How many messages.
    pub messages: u64,
    /// Their tokens.
    pub tokens: Usage,
    /// The agents that spoke, in order of appearance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The people and agents that spoke, in order of appearance, and how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<Spoke>,
    /// The model of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent that was asked or answered last, however that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The sessions in which agents themselves remember this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub natives: Vec<Native>,
    /// What the team is to do, as it was last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The file that describes the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_file: Option<String>,
    /// Earlier speakers whose seats members of the team have now, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heirs: BTreeMap<String, String>,
    /// How far an instructor and a worker are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Box<Pair>>,
    /// The last entry that the newest summary for agents stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Seq>,
    /// The other program's session that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What it continues, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Who has the floor.
    pub status: Status,
    /// Since when it is in the trash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trashed_at: Option<Timestamp>,
    /// The changes that can be taken back, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The size of its log, shared beginning included.
    pub bytes: u64,
    /// The end of its log.
    pub head: Head,
}

/// An agent's own session, in its own store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Native {
    /// The agent.
    pub agent: String,
    /// The id that it gave its session.
    pub id: String,
    /// The folder in which it works there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The entry since which it is known.
    pub since: Seq,
    /// What its answers have cost since.
    pub spent: Usage,
}

/// The session that a fork continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Which session.
    pub id: SessionId,
    /// The last entry that both share.
    pub seq: Seq,
    /// How they are related.
    pub relation: Relation,
}

/// Who has the floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An answer is due.
    Active,
    /// A human may speak.
    Paused,
}

impl Status {
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Paused => "paused",
        }
    }
}

/// A change that can be taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The entry that made it.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// The command that made it.
    pub operation: EntryId,
    /// What it replaced.
    pub before: Before,
}

/// What a change replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// The title, and whether it was given.
    Title(Option<String>, bool),
    /// The tags.
    Tags(Vec<String>),
    /// The time at which it went to the trash, if it was there.
    Trash(Option<Timestamp>),
}

impl SessionMeta {
    /// A session of which nothing is known but its id.
    pub fn blank(id: SessionId) -> SessionMeta {
        SessionMeta {
            id,
            kind: Kind::Chat,
            title: None,
            titled: false,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            tags: Vec::new(),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            messages: 0,
            tokens: Usage::default(),
            agents: Vec::new(),
            speakers: Vec::new(),
            model: None,
            answered_by: None,
            natives: Vec::new(),
            task: None,
            team_file: None,
            heirs: BTreeMap::new(),
            pair: None,
            compacted: None,
            source: None,
            parent: None,
            status: Status::Paused,
            trashed_at: None,
            changes: Vec::new(),
            bytes: 0,
            head: Head::START,
        }
    }

    /// Folds a log.
    pub fn of<'a>(id: SessionId, entries: impl IntoIterator<Item = &'a Entry>) -> SessionMeta {
        let mut meta = SessionMeta::blank(id);
        for entry in entries {
            meta.apply(entry);
        }
        meta
    }

    /// The same session with one more entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = entry.head();
        self.bytes += entry.line().len() as u64 + 1;
        match &entry.body {
            Body::Created(created) => {
                self.id = created.session;
                self.kind = created.kind;
                self.title.clone_from(&created.title);
                self.titled = created.title.is_some();
                self.team.clone_from(&created.team);
                self.project.clone_from(&created.project);
                self.project_ids.clone_from(&created.project_ids);
                self.cwd.clone_from(&created.cwd);
                self.created_at = entry.at;
                self.updated_at = entry.at;
                self.pair = (created.kind == Kind::Pair).then(Box::default);
            }
            Body::Forked(_) => self.fork(entry),
            Body::Message(message) => self.hear(entry.at, message),
            Body::Failed(failed) => {
                self.answered_by = Some(failed.agent.clone());
                self.status = Status::Paused;
                self.updated_at = self.updated_at.max(entry.at);
            }
            Body::Linked(linked) => {
                self.answered_by = Some(linked.agent.clone());
                self.natives.retain(|native| native.agent != linked.agent);
                self.natives.push(Native {
                    agent: linked.agent.clone(),
                    id: linked.native.clone(),
                    cwd: linked.cwd.clone(),
                    since: entry.seq,
                    spent: Usage::default(),
                });
            }
            Body::Seated(seated) => {
                if seated.file.is_some() {
                    self.team_file.clone_from(&seated.file);
                }
                self.heirs.extend(seated.heirs.clone());
            }
            Body::Tasked(tasked) => self.task = Some(tasked.task.clone()),
            Body::Compacted(compacted) => {
                self.compacted = Some(compacted.upto);
                self.tokens = self.tokens.plus(compacted.usage.unwrap_or_default());
            }
            Body::Renamed(renamed) => {
                let before = Before::Title(self.title.replace(renamed.title.clone()), self.titled);
                self.titled = true;
                self.remember(entry, renamed.operation, before);
            }
            Body::Tagged(tagged) => {
                let before = Before::Tags(self.tags.clone());
                self.tags.retain(|tag| !tagged.remove.contains(tag));
                self.tags.extend(tagged.add.iter().cloned());
                self.tags.sort();
                self.tags.dedup();
                self.remember(entry, tagged.operation, before);
            }
            Body::Trashed(touched) => {
                let before = Before::Trash(self.trashed_at.replace(entry.at));
                self.remember(entry, touched.operation, before);
            }
            Body::Restored(touched) => {
                let before = Before::Trash(self.trashed_at.take());
                self.remember(entry, touched.operation, before);
            }
            Body::Undone(undone) => self.take_back(undone.change),
            Body::Imported(imported) => self.import(imported),
            Body::Paired(_)
            | Body::Budgeted(_)
            | Body::Thought(_)
            | Body::Lost(_)
            | Body::Repaired(_)
            | Body::Unknown(_) => {}
        }
        self.pair_on(entry);
    }

    /// The same for an instructor and a worker: who has the floor is for them to say.
    fn pair_on(&mut self, entry: &Entry) {
        let Some(pair) = &mut self.pair else {
            return;
        };
        pair.apply(entry);
        self.agents = [&pair.instructor.agent, &pair.worker.agent]
            .map(String::clone)
            .to_vec();
        self.agents.dedup();
        self.agents.retain(|agent| !agent.is_empty());
        self.status = match pair.is_waiting() {
            true => Status::Paused,
            false => Status::Active,
        };
    }

    fn fork(&mut self, entry: &Entry) {
        let Body::Forked(forked) = &entry.body else {
            return;
        };
        self.id = forked.session;
        self.parent = Some(Parent {
            id: forked.from.id,
            seq: forked.from.seq,
            relation: forked.relation,
        });
        if let Some(title) = &forked.title {
            self.title = Some(title.clone());
            self.titled = true;
        } else if let Some(title) = &self.title
            && !title.ends_with(" (fork)")
        {
            self.title = Some(format!("{title} (fork)"));
        }
        if forked.project.is_some() {
            self.project.clone_from(&forked.project);
            self.project_ids.clear();
        }
        if forked.cwd.is_some() {
            self.cwd.clone_from(&forked.cwd);
        }
        self.created_at = entry.at;
        self.updated_at = entry.at;
        // What was done to the original is the original's to take back, and its trash is not ours.
        self.changes.clear();
        self.trashed_at = None;
        // Two talks in one session of an agent would each hear the other.
        self.natives.clear();
        // The original id stays with the session that was imported.
        self.source = None;
    }

    fn hear(&mut self, at: Timestamp, message: &Message) {
        self.messages += 1;
        speakers::count(&mut self.speakers, message);
        self.updated_at = self.updated_at.max(at);
        if self.title.is_none() && message.speaker.kind == SpeakerKind::Human {
            self.title = match self.kind {
                Kind::Team => title_from(&without_markers(&message.content)),
                Kind::Chat | Kind::Pair => title_from(&message.content),
            };
        }
        if let Some(usage) = message.usage {
            self.tokens = self.tokens.plus(usage);
            for native in &mut self.natives {
                if native.agent == message.speaker.name {
                    native.spent = native.spent.plus(usage);
                }
            }
        }
        match message.speaker.kind {
            SpeakerKind::Human if self.kind == Kind::Team => {
                // Who addresses nobody in a team is not waiting for an answer.
                let reached = |addressee: &Addressee| addressee.member.is_some();
                self.status = if message.addressees.iter().any(reached) {
                    Status::Active
                } else {
                    Status::Paused
                };
            }
            SpeakerKind::Human => {
                if message.asked.is_some() {
                    self.answered_by.clone_from(&message.asked);
                }
                self.status = Status::Active;
            }
            SpeakerKind::Ai => {
                // Whoever has called for tools is not done.
                self.status = if message.tool_calls.is_empty() {
                    Status::Paused
                } else {
                    Status::Active
                };
                self.answered_by = Some(message.speaker.name.clone());
                if self.pair.is_none() && !self.agents.contains(&message.speaker.name) {
                    self.agents.push(message.speaker.name.clone());
                }
                if message.model.is_some() {
                    self.model.clone_from(&message.model);
                }
            }
            SpeakerKind::System | SpeakerKind::Tool => {}
        }
    }

    fn remember(&mut self, entry: &Entry, operation: EntryId, before: Before) {
        if self.changes.len() == UNDO_DEPTH {
            self.changes.remove(0);
        }
        self.changes.push(Change {
            seq: entry.seq,
            at: entry.at,
            operation,
            before,
        });
    }

    fn take_back(&mut self, change: Seq) {
        // Only the newest can be taken back, or later ones would be undone with it.
        if self.changes.last().is_none_or(|last| last.seq != change) {
            return;
        }
        match self.changes.pop().map(|change| change.before) {
            Some(Before::Title(title, titled)) => {
                self.title = title;
                self.titled = titled;
            }
            Some(Before::Tags(tags)) => self.tags = tags,
            Some(Before::Trash(trashed_at)) => self.trashed_at = trashed_at,
            None => {}
        }
    }

    /// When the newest change was made that can be taken back.
    pub fn changed_at(&self) -> Option<Timestamp> {
        self.changes.last().map(|change| change.at)
    }

    /// The agent that was asked or answered last.
    pub fn last_agent(&self) -> Option<&str> {
        // Rows of before this was folded know the order of appearance only.
        let last = self.agents.last();
        self.answered_by.as_ref().or(last).map(String::as_str)
    }

    /// From its beginning to when somebody last spoke.
    pub fn duration(&self) -> SignedDuration {
        self.updated_at.duration_since(self.created_at)
    }

    /// The title, or words that say that there is none.
    pub fn title_or_untitled(&self) -> &str {
        self.title.as_deref().unwrap_or("(untitled)")
    }

    /// The state in one word, for lists.
    pub fn state(&self) -> &'static str {
        if self.trashed_at.is_some() {
            "trashed"
        } else {
            self.status.name()
        }
    }
}
