//! A talk as another program kept it, on its way into a log. The same talk makes the same entries each
//! time it is read, so that what comes again is recognised, and what was said since is all that is added.

mod changes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jiff::Timestamp;

pub use changes::Changes;

use crate::entry::{
    Body, Created, Entry, Head, Imported, Kind, Message, Role, SpeakerKind, Tasked, Thought,
    Unsealed,
};
use crate::id::{EntryId, SessionId, derived};
use crate::redact::redact;
use crate::session::{Log, SessionMeta};

/// A talk that another program kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// The session that it becomes.
    pub id: SessionId,
    /// What kind of conversation.
    pub kind: Kind,
    /// The title, where the program gave one.
    pub title: Option<String>,
    /// The team, for teams.
    pub team: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// What was said, oldest first.
    pub said: Vec<Said>,
    /// What the team works on.
    pub task: Option<String>,
    /// What else there is to know at its end.
    pub closing: Vec<Body>,
    /// The program and its id for the session, and what else the program recorded about it.
    pub source: Imported,
    /// What reading changed or could not keep.
    pub changes: Changes,
}

/// Something that was said in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The entry's id.
    pub id: EntryId,
    /// When.
    pub at: Timestamp,
    /// Who said what.
    pub message: Message,
    /// The reasoning before it, where the program kept that.
    pub thought: Option<String>,
}

/// How a talk and the log of a session that goes by its id stand to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Meeting {
    /// The log has all of it.
    Known,
    /// The log ends where the talk goes on.
    GoesOn {
        /// How much of what was said the log has.
        shared: usize,
        /// The task, if it is new to the log.
        task: Option<String>,
    },
    /// They went two ways.
    Parts {
        /// How much of what was said the log has.
        shared: usize,
        /// The last entry that both have, if they have any words in common.
        at: Option<Head>,
        /// The task, if it is not what it was there.
        task: Option<String>,
    },
}

impl Foreign {
    /// The entry that opens it as the session `id`.
    pub fn opening(&self, id: SessionId) -> Unsealed {
        let opening = Created {
            session: id,
            kind: self.kind,
            title: self.title.clone(),
            team: self.team.clone(),
            project: None,
            project_ids: Vec::new(),
            cwd: None,
        };
        let name = derived(&["opening", &id.to_string()]);
        unsealed(EntryId::new(name), self.created_at, Body::Created(opening))
    }

    /// The entry that records where it comes from, in the session `id`.
    pub fn importing(&self, id: SessionId) -> Unsealed {
        let saved_at = self.source.saved_at.unwrap_or(self.created_at);
        let name = derived(&[
            "imported",
            &id.to_string(),
            &self.source.program,
            &self.source.original,
            &saved_at.to_string(),
        ]);
        let body = Body::Imported(self.source.clone());
        unsealed(EntryId::new(name), self.created_at, body)
    }

    /// Whether a session that goes by its id still has to learn where it comes from, or that the other
    /// program has saved it since. `grows` says whether messages are added.
    pub fn is_news_to(&self, session: &SessionMeta, grows: bool) -> bool {
        let later = self.source.saved_at.is_some_and(|saved_at| {
            let known = session.source.as_ref().and_then(|source| source.saved_at);
            saved_at > session.updated_at.max(known.unwrap_or(session.updated_at))
        });
        // A fork is not the session that was imported.
        if session.parent.is_some() {
            return false;
        }
        match &session.source {
            // A session that was begun here and written back as a file needs no other name.
            None => self.source.original != session.id.to_string() || (grows && later),
            Some(_) => later,
        }
    }

    /// The entries of one message.
    pub fn saying(&self, said: &Said) -> Vec<Unsealed> {
        let message = unsealed(said.id, said.at, Body::Message(said.message.clone()));
        let thought = said.thought.as_ref().map(|text| {
            let name = derived(&["thought", &said.id.to_string()]);
            let thread = said.message.thread.clone().unwrap_or_default();
            let text = text.clone();
            let body = Body::Thought(Thought { thread, text });
            unsealed(EntryId::new(name), said.at, body)
        });
        std::iter::once(message).chain(thought).collect()
    }

    /// The entry that gives the team its task, after so many messages.
    pub fn tasking(&self, id: SessionId, task: String) -> Unsealed {
        let said = self.said.len().to_string();
        let name = derived(&["task", &id.to_string(), &said, &task]);
        let last = self.said.iter().map(|said| said.at).max();
        let at = last.unwrap_or(self.created_at);
        let body = Body::Tasked(Tasked { task });
        unsealed(EntryId::new(name), at, body)
    }

    /// The entries with what else there is to know, after so many messages.
    pub fn closings(&self, id: SessionId) -> Vec<Unsealed> {
        let said = self.said.len().to_string();
        let last = self.said.iter().map(|said| said.at).max();
        let at = last.unwrap_or(self.created_at);
        let closing = self.closing.iter().enumerate().map(|(place, body)| {
            let name = derived(&["closing", &id.to_string(), &said, &place.to_string()]);
            unsealed(EntryId::new(name), at, body.clone())
        });
        closing.collect()
    }

    /// Compares it with the log of a session that goes by its id.
    pub fn meet(&self, log: &Log) -> Meeting {
        let words: Vec<(&Entry, &Message)> = log
            .messages()
            .filter(|(_, message)| has_words(message))
            .collect();
        let ours = self.is_ours(log);
        // What tools were given and gave goes with the words before it.
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
            // An older state of the talk must not bring its older task back.
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

    /// The id of the session that it becomes where another, of the same id, has other words from a
    /// place on: it is named after that place, so that a longer state of this talk finds it again.
    pub fn apart(&self, shared: usize) -> SessionId {
        let id = self.id.to_string();
        let team = self.team.as_deref().unwrap_or_default();
        SessionId::new(match self.said.get(shared) {
            Some(said) => {
                let (entry, at) = (said.id.to_string(), said.at.to_string());
                // The same words of somebody else are others: see `Said::is`.
                let by = serde_json::to_string(&said.message.speaker).unwrap_or_default();
                derived(&["apart", &id, team, &entry, &at, &by, &said.words()])
            }
            None => derived(&["apart", &id, team]),
        })
    }

    /// Whether the log is one of the same team.
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
    /// Whether an entry says the same.
    fn is(&self, entry: &Entry, message: &Message) -> bool {
        entry.at == self.at
            && message.speaker == self.message.speaker
            && same_words(&message.content, &self.message.content)
    }

    /// What was said, without secrets: what is made of it is written down.
    fn words(&self) -> Cow<'_, str> {
        redact(&self.message.content).text
    }
}

/// Whether two texts are one, whichever of them has had its secrets replaced.
fn same_words(one: &str, other: &str) -> bool {
    one == other || redact(one).text == redact(other).text
}

fn tasks<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> impl Iterator<Item = &'a str> {
    entries.into_iter().filter_map(|entry| match &entry.body {
        Body::Tasked(tasked) => Some(tasked.task.as_str()),
        _ => None,
    })
}

/// Whether a message is what somebody said: tools, what they gave back and messages that are nothing
/// but calls are not.
pub fn has_words(message: &Message) -> bool {
    let tool = message.role == Role::Tool || message.speaker.kind == SpeakerKind::Tool;
    let only_calls = message.content.is_empty() && !message.tool_calls.is_empty();
    !tool && !only_calls
}

fn unsealed(id: EntryId, at: Timestamp, body: Body) -> Unsealed {
    Unsealed {
        id,
        at,
        body,
        redacted: std::collections::BTreeMap::new(),
    }
}
