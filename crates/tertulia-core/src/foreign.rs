//! Sessions of other programs before they become entries. The same session always yields the same
//! entries, so that a repeated import is recognised and adds only new messages.

mod changes;
mod own;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jiff::Timestamp;

pub use changes::Changes;
pub use own::{Continuation, LogDigest, Provenance};

use crate::entry::{
    Body, Compacted, Created, Entry, Head, Imported, ImportedRelation, Kind, Message, NewEntry,
    Role, SpeakerKind, Tasked,
};
use crate::id::{EntryId, Seq, SessionId, derived};
use crate::redact::redact;
use crate::session::{Log, SessionMeta};

/// A session read from another program.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Id of the session to create.
    pub id: SessionId,
    /// Kind of conversation.
    pub kind: Kind,
    /// Title, if the program recorded one.
    pub title: Option<String>,
    /// Name of the team, for team sessions.
    pub team: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Messages, oldest first.
    pub said: Vec<Said>,
    /// Task of the team.
    pub task: Option<String>,
    /// Further entries at the end.
    pub closing: Vec<Body>,
    /// The program, its id for the session, and other data that it recorded.
    pub source: Imported,
    /// Content that the import changed or could not keep.
    pub changes: Changes,
    /// How its messages are recognised in an existing log.
    pub identity: Identity,
    /// The beginning that it shares with another session of the same program.
    pub fork: Option<ForeignFork>,
}

/// How the messages of a session are recognised in an existing log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// By time, speaker and text: the program's files may lack ids or tool calls.
    #[default]
    Words,
    /// By the id of the entry, which is derived from the program's own id of the message.
    Ids,
}

/// The beginning that a session shares with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignFork {
    /// The other session.
    pub from: SessionId,
    /// How the program recorded the beginning.
    pub beginning: Beginning,
}

/// How a program recorded the beginning that two sessions share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// This many messages of the session are copies.
    Copied(usize),
    /// The session lacks them: they end with the last of these messages that the other one has.
    Referred(Vec<EntryId>),
}

/// A message of the session.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Id of the entry.
    pub id: EntryId,
    /// Time of the message.
    pub at: Timestamp,
    /// The message.
    pub message: Message,
    /// Thinking before the message, if the program recorded it.
    pub thought: Option<String>,
    /// Set if the message is a summary by which the program replaced earlier ones in the agent's
    /// context.
    pub compacts: Option<Compaction>,
}

/// What a summary replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The first message before the summary that it does not cover. Without one, it covers all.
    pub keeps: Option<EntryId>,
}

/// Comparison of a session with an existing log of the same id.
#[derive(Clone, Debug, PartialEq)]
pub enum Meeting {
    /// The log contains the whole session.
    Known,
    /// The session continues the log.
    GoesOn {
        /// Number of messages that the log already has.
        shared: usize,
        /// The task, if it is new to the log.
        task: Option<String>,
    },
    /// Session and log diverge.
    Parts {
        /// Number of messages that the log already has.
        shared: usize,
        /// The last common entry, if there are common messages.
        at: Option<Head>,
        /// The task, if it differs from the one at that entry.
        task: Option<String>,
    },
}

/// What has grown since an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Neither: both end with the same message.
    Neither,
    /// The log.
    Log,
    /// The session of the other program, or both.
    Source,
}

/// Returns the name of a request of Claude Code, in its files and in its events: the message, and the
/// request if that is told, because a repeated request may give the same message again.
pub fn claude_usage_id(message: &str, request: Option<&str>) -> String {
    match request {
        Some(request) => format!("{message}:{request}"),
        None => message.to_owned(),
    }
}

impl Foreign {
    /// Returns a chat without messages. `original` is its id in the program.
    pub fn chat(program: &str, original: &str, created_at: Timestamp) -> Foreign {
        Foreign {
            id: Foreign::session_id(program, original),
            kind: Kind::Chat,
            title: None,
            team: None,
            created_at,
            said: Vec::new(),
            task: None,
            closing: Vec::new(),
            source: Imported::new(program, original),
            changes: Changes::default(),
            identity: Identity::Ids,
            fork: None,
        }
    }

    /// Returns the id of the session that a program's session becomes.
    pub fn session_id(program: &str, original: &str) -> SessionId {
        SessionId::new(derived(&["session", program, original]))
    }

    /// Returns the id of the entry that a program's message becomes. It depends on no session, so
    /// that copies of a message are recognised.
    pub fn entry_id(program: &str, message: &str) -> EntryId {
        EntryId::new(derived(&["message", program, message]))
    }

    /// Returns the first entry for the session `id`.
    pub fn opening(&self, id: SessionId) -> NewEntry {
        let opening = Created {
            session: id,
            kind: self.kind,
            title: self.title.clone(),
            team: self.team.clone(),
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        };
        let name = derived(&["opening", &id.to_string()]);
        new_entry(EntryId::new(name), self.created_at, Body::Created(opening))
    }

    /// Returns the entry that records the origin, for the session `id`.
    pub fn importing(&self, id: SessionId) -> NewEntry {
        let saved_at = self.source.saved_at.unwrap_or(self.created_at);
        let name = derived(&[
            "imported",
            &id.to_string(),
            &self.source.program,
            &self.source.original,
            &saved_at.to_string(),
        ]);
        let body = Body::Imported(self.source.clone());
        new_entry(EntryId::new(name), self.created_at, body)
    }

    /// Returns the entry that names the session whose agent started this one, for a session `id` that
    /// was imported before such parents were kept.
    pub fn naming_parent(&self, id: SessionId) -> Option<NewEntry> {
        let parent = self.source.parent.as_ref()?;
        let (program, original) = (&self.source.program, &parent.original);
        let is_another = Foreign::session_id(program, original) != id;
        if parent.relation != ImportedRelation::Subagent || !is_another {
            return None;
        }
        let name = derived(&["parent", &id.to_string(), program, original]);
        let body = Body::Imported(self.source.clone());
        Some(new_entry(EntryId::new(name), self.created_at, body))
    }

    /// Returns true if an existing session of the same id lacks the origin, or if the other program
    /// has saved the session since. `grows` tells whether messages are added.
    pub fn is_news_to(&self, session: &SessionMeta, grows: bool) -> bool {
        let later = self.source.saved_at.is_some_and(|saved_at| {
            let known = session.source.as_ref().and_then(|source| source.saved_at);
            saved_at > session.updated_at.max(known.unwrap_or(session.updated_at))
        });
        // A fork is not the imported session itself.
        let parent = session.parent.as_ref();
        if parent.is_some_and(|parent| parent.place().is_some()) {
            return false;
        }
        match &session.source {
            // A session that was created here and mirrored to a file needs no second name.
            None => self.source.original != session.id.to_string() || (grows && later),
            Some(_) => later,
        }
    }

    /// Returns the entry of one message, also of a summary whose place in the log is not known.
    pub fn saying(&self, said: &Said) -> NewEntry {
        let message = Message {
            reasoning: said.thought.clone(),
            ..said.message.clone()
        };
        new_entry(said.id, said.at, Body::Message(message))
    }

    /// Returns the entry of a summary that covers the entries up to `upto`.
    pub fn compacting(&self, said: &Said, upto: Seq) -> NewEntry {
        let message = &said.message;
        let compacted = Compacted {
            upto,
            summary: message.content.clone(),
            agent: message.speaker.name.clone(),
            model: message.model.clone(),
            usage: message.usage,
            thread: message.thread.clone(),
        };
        new_entry(said.id, said.at, Body::Compacted(compacted))
    }

    /// Returns the entry that sets the team's task, after all messages.
    pub fn tasking(&self, id: SessionId, task: String) -> NewEntry {
        let said = self.said.len().to_string();
        let name = derived(&["task", &id.to_string(), &said, &task]);
        let last = self.said.iter().map(|said| said.at).max();
        let at = last.unwrap_or(self.created_at);
        let body = Body::Tasked(Tasked { task });
        new_entry(EntryId::new(name), at, body)
    }

    /// Returns the further entries at the end, after all messages.
    pub fn closings(&self, id: SessionId) -> Vec<NewEntry> {
        let said = self.said.len().to_string();
        let last = self.said.iter().map(|said| said.at).max();
        let at = last.unwrap_or(self.created_at);
        let closing = self.closing.iter().enumerate().map(|(place, body)| {
            let name = derived(&["closing", &id.to_string(), &said, &place.to_string()]);
            new_entry(EntryId::new(name), at, body.clone())
        });
        closing.collect()
    }

    /// Returns which of the two has more: the session as its program keeps it now, or the log that it
    /// was imported to.
    pub fn grown(&self, log: &Log) -> Growth {
        let own = log.entries.iter().filter(|entry| {
            matches!(
                entry.body,
                Body::Message(_) | Body::Compacted(_) | Body::Shell(_)
            )
        });
        let own: Vec<EntryId> = own.map(|entry| entry.id).collect();
        let recorded: Vec<EntryId> = self.said.iter().map(|said| said.id).collect();
        // What the session refers to stands before it in the log.
        let refers = self.fork.as_ref();
        let refers = refers.is_some_and(|fork| matches!(fork.beginning, Beginning::Referred(_)));
        let first = recorded.first().filter(|_| refers);
        let before = first.and_then(|first| own.iter().position(|id| id == first));
        let own = &own[before.unwrap_or_default()..];
        match (own == recorded, own.starts_with(&recorded)) {
            (true, _) => Growth::Neither,
            (false, true) => Growth::Log,
            (false, false) => Growth::Source,
        }
    }

    /// Compares the session with a log of the same id.
    pub fn meet(&self, log: &Log) -> Meeting {
        let words: Vec<(&Entry, &Message)> = log
            .messages()
            .filter(|(_, message)| has_words(message))
            .collect();
        let ours = self.is_ours(log);
        // Tool calls and results belong to the message before them.
        let own: Vec<(usize, &Said)> = self
            .said
            .iter()
            .enumerate()
            .filter(|(_, said)| has_words(&said.message))
            .collect();
        let common = words
            .iter()
            .zip(&own)
            .take_while(|((entry, message), (_, said))| ours && said.is(entry, message))
            .count();
        let shared = own.get(common).map_or(self.said.len(), |(place, _)| *place);
        if ours && common == own.len() {
            // An older state of the session must not restore an older task.
            let task = self.task.clone().filter(|task| {
                common == words.len() && !tasks(&log.entries).any(|known| same_words(known, task))
            });
            return match task {
                None => Meeting::Known,
                task => Meeting::GoesOn { shared, task },
            };
        }
        if ours && common == words.len() {
            let task = self.new_task(&log.entries);
            return Meeting::GoesOn { shared, task };
        }
        let last = common.checked_sub(1).map(|last| words[last].0.head());
        let common = log
            .entries
            .iter()
            .take_while(|entry| last.is_some_and(|last| entry.seq <= last.seq));
        Meeting::Parts {
            shared,
            at: last,
            task: self.new_task(common),
        }
    }

    /// Returns the id for a session that diverges from the log of the same id. It is derived from
    /// the first diverging message, so that a longer state of this session finds it again.
    pub fn apart(&self, shared: usize) -> SessionId {
        let id = self.id.to_string();
        let team = self.team.as_deref().unwrap_or_default();
        SessionId::new(match self.said.get(shared) {
            Some(said) => {
                let (entry, at) = (said.id.to_string(), said.at.to_string());
                // The same text of another speaker is a different message: see `Said::is`.
                let by = serde_json::to_string(&said.message.speaker).unwrap_or_default();
                derived(&["apart", &id, team, &entry, &at, &by, &said.words()])
            }
            None => derived(&["apart", &id, team]),
        })
    }

    /// Returns true if the log has the same kind and team.
    fn is_ours(&self, log: &Log) -> bool {
        log.entries.iter().any(|entry| match &entry.body {
            Body::Created(created) => created.kind == self.kind && created.team == self.team,
            _ => false,
        })
    }

    fn new_task<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) -> Option<String> {
        let last = tasks(entries).last();
        let task = self.task.clone()?;
        (!last.is_some_and(|last| same_words(last, &task))).then_some(task)
    }
}

impl Said {
    /// Returns true if an entry has the same time, speaker and text.
    fn is(&self, entry: &Entry, message: &Message) -> bool {
        entry.at == self.at
            && message.speaker == self.message.speaker
            && same_words(&message.content, &self.message.content)
    }

    /// Returns the redacted text, because the id derived from it is stored.
    fn words(&self) -> Cow<'_, str> {
        redact(&self.message.content).text
    }
}

/// Compares two texts, either of which may already be redacted.
fn same_words(one: &str, other: &str) -> bool {
    one == other || redact(one).text == redact(other).text
}

fn tasks<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> impl Iterator<Item = &'a str> {
    entries.into_iter().filter_map(|entry| match &entry.body {
        Body::Tasked(tasked) => Some(tasked.task.as_str()),
        _ => None,
    })
}

/// Returns false for tool messages, tool results, and messages that consist only of tool calls.
pub fn has_words(message: &Message) -> bool {
    let tool = message.role == Role::Tool || message.speaker.kind == SpeakerKind::Tool;
    let only_calls = message.content.is_empty() && !message.tool_calls.is_empty();
    !tool && !only_calls
}

fn new_entry(id: EntryId, at: Timestamp, body: Body) -> NewEntry {
    NewEntry {
        id,
        at,
        body,
        redacted: std::collections::BTreeMap::new(),
        author: None,
    }
}
