//! Session metadata as a fold over the log: title, tags, counts, status and fork relations are
//! derived from the entries and never stored as a second source of truth.

mod auto_tags;
mod changes;
mod client_ids;
mod log;
mod natives;
mod opening;
mod parent;
mod sealed;
mod source;
mod speakers;
mod terms;
#[cfg(test)]
mod tests;
mod title;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::approval::Approval;
use crate::entry::{
    Addressee, Body, Entry, Head, Kind, Message, Relation, Seal, SpeakerKind, Switched, Usage,
};
use crate::id::{EntryId, Seq, SessionId};
use crate::pair::Pair;
pub use auto_tags::{IMPORTED_TAG, LONG, LONG_TAG};
pub use changes::{Before, Change};
pub use log::{Damage, Line, Log};
pub use natives::{Native, PastNative};
pub use parent::Parent;
pub use sealed::HiddenIds;
pub use source::Source;
pub use speakers::Spoke;
use title::{title_from, without_markers};

/// Maximum size of a session log, in bytes.
pub const SESSION_LIMIT: u64 = 100_000_000;

/// Session metadata shown in lists. The fold stays small for any length of log, so that every
/// append can update it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// Id of the session.
    pub id: SessionId,
    /// Kind of conversation.
    pub kind: Kind,
    /// Title: as given, or taken from the first human message.
    pub title: Option<String>,
    /// True if the title was given explicitly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub titled: bool,
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
    /// Tags, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Languages and tools of the tool calls, for automatic tags, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last message or failure. Housekeeping (titles, tags) does not change it.
    pub updated_at: Timestamp,
    /// Number of messages.
    pub messages: u64,
    /// Total tokens.
    pub tokens: Usage,
    /// Agents that answered, in order of first appearance; in a pair, instructor and worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// People and agents with their message counts, in order of first appearance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<Spoke>,
    /// Model of the last answer, or of the agent that was switched to since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Model that the user chose for the last agent, with which the session is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_model: Option<String>,
    /// Agent that was prompted or answered last, whatever the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Tool policy that the user set last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approval>,
    /// Member of a team as whom the user speaks, if chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
    /// Ids that clients gave the last messages, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_ids: Vec<String>,
    /// Names of the users who wrote to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The agents' own (native) sessions for this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub natives: Vec<Native>,
    /// Ids of the agents' own sessions that later ones replaced: their programs still have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_natives: Vec<PastNative>,
    /// The first requests of answers that programs gave here: by them, a copy is recognised that a
    /// program made of its own session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The team's current task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Path of the team file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_file: Option<String>,
    /// Replaced team members: id of the earlier speaker to id of the current member.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heirs: BTreeMap<String, String>,
    /// State of a pair session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Box<Pair>>,
    /// The last entry covered by the newest compaction summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Seq>,
    /// Session of another program that this one was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// First message of an imported session and its forks: an imported session that begins with the
    /// same one is a fork, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<EntryId>,
    /// Session that this fork continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The second session of a merge; `parent` is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Parent>,
    /// Whether an answer is due.
    pub status: Status,
    /// Time when the session was moved to the trash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trashed_at: Option<Timestamp>,
    /// Seal of a sealed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Box<Seal>>,
    /// Key entries of a sealed session, authentic or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keyed: Vec<Head>,
    /// What a sealed session shows of other programs' ids.
    #[serde(default, skip_serializing_if = "HiddenIds::is_empty")]
    pub hidden_ids: HiddenIds,
    /// Changes that can be undone, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Size of the log in bytes, including the part shared with the fork's parent.
    pub bytes: u64,
    /// End of the log.
    pub head: Head,
}

/// Whether an answer is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An answer is due.
    Active,
    /// The session waits for the user.
    Paused,
}

impl Status {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Paused => "paused",
        }
    }
}

impl SessionMeta {
    /// Reads metadata that a store derived and keeps as JSON. Compiled here once, not for every place that
    /// reads a row.
    pub fn from_json(row: &[u8]) -> Result<SessionMeta, serde_json::Error> {
        serde_json::from_slice(row)
    }

    /// Returns metadata that has only an id.
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
            uses: Vec::new(),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            messages: 0,
            tokens: Usage::default(),
            agents: Vec::new(),
            speakers: Vec::new(),
            model: None,
            pinned_model: None,
            answered_by: None,
            approve: None,
            seat: None,
            client_ids: Vec::new(),
            authors: Vec::new(),
            natives: Vec::new(),
            past_natives: Vec::new(),
            requests: Vec::new(),
            task: None,
            team_file: None,
            heirs: BTreeMap::new(),
            pair: None,
            compacted: None,
            source: None,
            first: None,
            parent: None,
            merged: None,
            status: Status::Paused,
            trashed_at: None,
            seal: None,
            keyed: Vec::new(),
            hidden_ids: HiddenIds::default(),
            changes: Vec::new(),
            bytes: 0,
            head: Head::START,
        }
    }

    /// Folds the entries of a log.
    pub fn of<'a>(id: SessionId, entries: impl IntoIterator<Item = &'a Entry>) -> SessionMeta {
        let mut meta = SessionMeta::blank(id);
        for entry in entries {
            meta.apply(entry);
        }
        meta
    }

    /// Updates the metadata with one more entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = entry.head();
        self.bytes += entry.line().len() as u64 + 1;
        if self.seal.is_some() && entry.is_in_plain() && !entry.body.is_wordless() {
            // Damage: a list must not show words that were put into a sealed session without its key.
            return;
        }
        self.note_author(entry);
        match &entry.body {
            Body::Created(created) => self.create(entry.at, created),
            Body::Forked(_) => self.fork(entry),
            Body::Message(message) => {
                if self.messages == 0 && self.source.is_some() {
                    self.first = Some(entry.id);
                }
                self.note_requests(message);
                self.hear(entry.at, message);
            }
            Body::Failed(failed) => {
                self.answered_by = Some(failed.agent.clone());
                self.status = Status::Paused;
                self.updated_at = self.updated_at.max(entry.at);
            }
            Body::Linked(linked) => self.link(linked, entry.seq),
            Body::Switched(switched) => self.switch(switched),
            Body::Terms(terms) => self.agree(terms),
            Body::Seated(seated) => {
                if seated.file.is_some() {
                    self.team_file.clone_from(&seated.file);
                }
                self.heirs.extend(seated.heirs.clone());
            }
            Body::Tasked(tasked) => self.task = Some(tasked.task.clone()),
            Body::Shell(_) | Body::ShellOutput(_) => {
                self.updated_at = self.updated_at.max(entry.at);
            }
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
            Body::Merged(merged) => {
                self.parent = Some(Parent::of(&merged.ours, Relation::Merge));
                self.merged = Some(Parent::of(&merged.theirs, Relation::Merge));
            }
            Body::Replayed(replayed) => {
                self.parent = Some(Parent::of(&replayed.of, Relation::Replay));
            }
            Body::Sealed(sealed) => self.count_sealed(entry, sealed),
            Body::Keyed(keyed) => self.note_keys(entry, keyed),
            Body::Paired(_)
            | Body::Budgeted(_)
            | Body::Thought(_)
            | Body::Environment(_)
            | Body::Lost(_)
            | Body::Repaired(_)
            | Body::Unknown(_) => {}
        }
        self.pair_on(entry);
    }

    /// Updates the state of a pair session, which determines agents and status.
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

    fn hear(&mut self, at: Timestamp, message: &Message) {
        self.messages += 1;
        client_ids::note(&mut self.client_ids, message);
        speakers::count(&mut self.speakers, message);
        auto_tags::note_uses(&mut self.uses, message);
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
                // In a team, a message without a known addressee expects no answer.
                let reached = |addressee: &Addressee| addressee.member.is_some();
                self.status = if message.addressees.iter().any(reached) {
                    Status::Active
                } else {
                    Status::Paused
                };
            }
            SpeakerKind::Human => {
                if let Some(agent) = &message.asked {
                    self.prompt(agent);
                }
                self.status = Status::Active;
            }
            SpeakerKind::Ai => {
                // An answer with tool calls is not final.
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

    fn switch(&mut self, switched: &Switched) {
        self.answered_by = Some(switched.agent.clone());
        self.model.clone_from(&switched.model);
        self.pinned_model = switched.model.clone().filter(|_| switched.pinned);
    }

    /// Notes the agent that is prompted. The model chosen for another one does not count any more.
    fn prompt(&mut self, agent: &str) {
        if self.answered_by.as_deref() != Some(agent) {
            self.pinned_model = None;
        }
        self.answered_by = Some(agent.to_owned());
    }

    /// Returns the agent that was prompted or answered last.
    pub fn last_agent(&self) -> Option<&str> {
        // Rows written before `answered_by` existed have only the order of appearance.
        let last = self.agents.last();
        self.answered_by.as_ref().or(last).map(String::as_str)
    }

    fn note_author(&mut self, entry: &Entry) {
        if let Some(author) = &entry.author
            && !self.authors.iter().any(|name| **name == *author.name)
        {
            self.authors.push(author.name.to_string());
        }
    }

    /// Returns true if the session was made from another: as a fork, a replay or a merge.
    pub fn comes_from(&self, id: SessionId) -> bool {
        let mut origins = self.parent.iter().chain(&self.merged);
        origins.any(|origin| origin.id == id)
    }

    /// Returns the time from creation to the last message.
    pub fn duration(&self) -> SignedDuration {
        self.updated_at.duration_since(self.created_at)
    }

    /// Returns the title, or what stands for it.
    pub fn title_or_untitled(&self) -> &str {
        let instead = match self.seal {
            Some(_) => "(sealed)",
            None => "(untitled)",
        };
        self.title.as_deref().unwrap_or(instead)
    }

    /// Returns the state in one word, for lists.
    pub fn state(&self) -> &'static str {
        if self.trashed_at.is_some() {
            "trashed"
        } else {
            self.status.name()
        }
    }
}
