//! A session as the messages of one conversation: results stand with their calls, reasoning with
//! its answer, and call ids are unique.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use tertulia_core::entry::{
    Attachment, Body, Compacted, Entry, Kind, Message, Role, SpeakerKind, ToolOutcome,
};
use tertulia_core::id::Seq;
use tertulia_core::pair::PairRole;
use tertulia_core::session::{Log, SessionMeta};
use tertulia_core::team::markers;

use super::LeftOut;

/// Maximum length of a call id and of a tool's name that all providers accept.
const LONGEST_NAME: usize = 64;

/// Text of the result of a call that has none.
pub(super) const INTERRUPTED: &str = "[interrupted: no result was recorded]";

/// Whose memory the messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Of one agent: the messages of others are what it was told.
    OneAgent,
    /// Of the session: every agent answers.
    AllAgents,
}

/// The messages of a session, oldest first.
#[derive(Debug, Default)]
pub(super) struct Dialogue<'a> {
    pub(super) lines: Vec<Line<'a>>,
    pub(super) left_out: LeftOut,
}

/// A message.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A person wrote it, or an agent that is not the one whose memory this is.
    User(Words<'a>),
    /// An instruction or a notice.
    System(Words<'a>),
    /// An answer.
    Agent(Answer<'a>),
    /// The newest compaction summary: what stands before it is not sent to the agent again.
    Summary(&'a Entry, &'a str),
}

impl Line<'_> {
    pub(super) fn entry(&self) -> &Entry {
        match self {
            Line::User(words) | Line::System(words) => words.entry,
            Line::Agent(answer) => answer.entry,
            Line::Summary(entry, _) => entry,
        }
    }
}

/// A message without tool calls.
#[derive(Debug)]
pub(super) struct Words<'a> {
    pub(super) entry: &'a Entry,
    pub(super) message: &'a Message,
    pub(super) text: Cow<'a, str>,
}

/// An answer with its tool calls and their results.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) entry: &'a Entry,
    pub(super) message: &'a Message,
    pub(super) text: Cow<'a, str>,
    pub(super) thought: Option<String>,
    pub(super) calls: Vec<Call<'a>>,
    /// Results in the order of the log.
    pub(super) results: Vec<CallResult<'a>>,
}

/// A tool call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Id that is unique in the session.
    pub(super) id: String,
    pub(super) name: Cow<'a, str>,
    /// Arguments: always an object.
    pub(super) arguments: Cow<'a, Value>,
}

/// The result of a tool call.
#[derive(Debug)]
pub(super) struct CallResult<'a> {
    /// The id of the call, as in [`Call::id`].
    pub(super) call: String,
    /// The entry and its message.
    pub(super) recorded: Option<(&'a Entry, &'a Message)>,
    pub(super) outcome: ToolOutcome,
}

impl CallResult<'_> {
    pub(super) fn text(&self) -> &str {
        match self.recorded {
            Some((_, message)) => &message.content,
            None => INTERRUPTED,
        }
    }
}

impl<'a> Answer<'a> {
    /// Returns the results that the log has after an entry.
    pub(super) fn results_after(&self, after: Seq) -> impl Iterator<Item = &CallResult<'a>> {
        let is_new = move |result: &&CallResult<'_>| {
            result.recorded.is_some_and(|(entry, _)| entry.seq > after)
        };
        self.results.iter().filter(is_new)
    }

    /// Returns the calls without a result, each with a result that says so.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = CallResult<'a>> + '_ {
        let answered: BTreeSet<&str> = self.results.iter().map(|one| one.call.as_str()).collect();
        let open = self
            .calls
            .iter()
            .filter(move |call| !answered.contains(call.id.as_str()));
        open.map(|call| CallResult {
            call: call.id.clone(),
            recorded: None,
            outcome: ToolOutcome::Interrupted,
        })
    }
}

impl<'a> Dialogue<'a> {
    /// Converts a log.
    pub(super) fn of(meta: &SessionMeta, log: &'a Log, view: View) -> Dialogue<'a> {
        let mut builder = Builder {
            kind: meta.kind,
            own: own_agent(meta, log, view),
            humans: count_humans(log),
            dialogue: Dialogue::default(),
            ids: BTreeSet::new(),
            open: HashMap::new(),
            summary: None,
            view,
        };
        for entry in &log.entries {
            builder.read(entry);
        }
        builder.place_summary();
        // An entry that does not match its hash can be read all the same.
        let read: BTreeSet<Seq> = log.entries.iter().map(|entry| entry.seq).collect();
        let missing = log
            .damage
            .iter()
            .filter(|damage| !read.contains(&damage.seq));
        for _ in missing {
            builder.dialogue.left_out.count("damaged entries");
        }
        builder.dialogue
    }
}

/// The agents whose answers are answers.
#[derive(Debug, PartialEq, Eq)]
enum Own {
    Everyone,
    /// The speaker with this id.
    Speaker(String),
    /// The agents of this thread.
    Thread(PairRole),
}

fn own_agent(meta: &SessionMeta, log: &Log, view: View) -> Own {
    if view == View::AllAgents {
        return Own::Everyone;
    }
    match meta.kind {
        Kind::Chat => Own::Everyone,
        // The worker does the work, so its memory is the one to continue.
        Kind::Pair => Own::Thread(PairRole::Worker),
        Kind::Team => {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            let answers = log.messages().map(|(_, message)| &message.speaker);
            for speaker in answers.filter(|speaker| speaker.kind == SpeakerKind::Ai) {
                *counts.entry(&speaker.id).or_default() += 1;
            }
            let most = counts.into_iter().max_by_key(|(_, count)| *count);
            Own::Speaker(most.map(|(id, _)| id.to_owned()).unwrap_or_default())
        }
    }
}

fn count_humans(log: &Log) -> usize {
    let speakers = log.messages().map(|(_, message)| &message.speaker);
    let humans = speakers.filter(|speaker| speaker.kind == SpeakerKind::Human);
    humans
        .map(|speaker| &speaker.id)
        .collect::<BTreeSet<_>>()
        .len()
}

/// Where the answer with a call is.
#[derive(Debug)]
struct OpenCall {
    line: usize,
    id: String,
}

struct Builder<'a> {
    kind: Kind,
    own: Own,
    humans: usize,
    view: View,
    dialogue: Dialogue<'a>,
    ids: BTreeSet<String>,
    /// Calls without a result, by their recorded ids.
    open: HashMap<&'a str, OpenCall>,
    /// The newest summary.
    summary: Option<(&'a Entry, &'a Compacted)>,
}

impl<'a> Builder<'a> {
    fn read(&mut self, entry: &'a Entry) {
        match &entry.body {
            Body::Message(message) => self.message(entry, message),
            Body::Thought(thought) => self.thought(entry, &thought.thread, &thought.text),
            Body::Failed(failed) if failed.withdrawn && self.view == View::OneAgent => {
                self.withdraw();
            }
            Body::Compacted(compacted) if self.is_of_own_thread(compacted) => {
                if let Some((older, _)) = self.summary.replace((entry, compacted)) {
                    self.dialogue.left_out.count_entry(&older.body);
                }
            }
            body => self.dialogue.left_out.count_entry(body),
        }
    }

    /// Returns true if a summary is part of what the agent remembers.
    fn is_of_own_thread(&self, compacted: &Compacted) -> bool {
        let thread = PairRole::of_thread(compacted.thread.as_deref());
        self.view == View::OneAgent
            && match self.own {
                Own::Thread(role) => thread == Some(role),
                Own::Everyone | Own::Speaker(_) => self.kind == Kind::Chat,
            }
    }

    /// Inserts the newest summary after the messages that it covers.
    fn place_summary(&mut self) {
        let Some((entry, compacted)) = self.summary else {
            return;
        };
        let lines = &mut self.dialogue.lines;
        let place = lines
            .iter()
            .position(|line| line.entry().seq > compacted.upto);
        let summary = Line::Summary(entry, &compacted.summary);
        lines.insert(place.unwrap_or(lines.len()), summary);
    }

    fn message(&mut self, entry: &'a Entry, message: &'a Message) {
        if let Own::Thread(role) = self.own
            && PairRole::of_thread(message.thread.as_deref()) != Some(role)
        {
            return self.dialogue.left_out.count("messages of the other thread");
        }
        if message.tool_outcome().is_some() {
            return self.result(entry, message);
        }
        let is_passed_on = message.speaker.kind == SpeakerKind::Ai && message.role == Role::User;
        if is_passed_on && self.view == View::AllAgents {
            return self
                .dialogue
                .left_out
                .count("messages passed on to another agent");
        }
        let text = match self.kind {
            Kind::Team => Cow::Owned(markers::shown(&message.content)),
            Kind::Chat | Kind::Pair => Cow::Borrowed(message.content.as_str()),
        };
        if self.is_own(message) {
            return self.answer(entry, message, text);
        }
        if text.trim().is_empty() {
            return self.dialogue.left_out.count("empty messages");
        }
        for _ in &message.tool_calls {
            self.dialogue.left_out.count("tool calls of other agents");
        }
        let text = match self.needs_name(message) {
            true => Cow::Owned(format!("{}: {text}", message.speaker.display_name)),
            false => text,
        };
        let text = match message.attachments.is_empty() {
            true => text,
            false => {
                let files = message.attachments.iter().map(Attachment::tagged);
                let parts: Vec<String> = [text.into_owned()].into_iter().chain(files).collect();
                Cow::Owned(parts.join("\n\n"))
            }
        };
        let words = Words {
            entry,
            message,
            text,
        };
        let is_system = message.speaker.kind == SpeakerKind::System || message.role == Role::System;
        self.dialogue.lines.push(match is_system {
            true => Line::System(words),
            false => Line::User(words),
        });
    }

    fn is_own(&self, message: &Message) -> bool {
        let is_answer = message.speaker.kind == SpeakerKind::Ai && message.role != Role::User;
        is_answer
            && match &self.own {
                Own::Everyone | Own::Thread(_) => true,
                Own::Speaker(id) => *id == message.speaker.id,
            }
    }

    /// Returns true if the speaker would be unknown without its name: another agent, or one of
    /// several people.
    fn needs_name(&self, message: &Message) -> bool {
        self.view == View::OneAgent
            && match message.speaker.kind {
                SpeakerKind::Ai => true,
                SpeakerKind::Human => self.humans > 1,
                SpeakerKind::System | SpeakerKind::Tool => false,
            }
    }

    fn answer(&mut self, entry: &'a Entry, message: &'a Message, text: Cow<'a, str>) {
        if text.trim().is_empty() && message.tool_calls.is_empty() {
            return self.dialogue.left_out.count("empty messages");
        }
        let line = self.dialogue.lines.len();
        let mut calls = Vec::with_capacity(message.tool_calls.len());
        for call in &message.tool_calls {
            let id = self.unique(&call.id);
            let open = OpenCall {
                line,
                id: id.clone(),
            };
            self.open.insert(&call.id, open);
            calls.push(Call {
                id,
                name: match self.view {
                    View::OneAgent => plain_name(&call.name),
                    View::AllAgents => Cow::Borrowed(&call.name),
                },
                arguments: object(&call.arguments),
            });
        }
        self.dialogue.lines.push(Line::Agent(Answer {
            entry,
            message,
            text,
            thought: message.reasoning.clone(),
            calls,
            results: Vec::new(),
        }));
    }

    fn result(&mut self, entry: &'a Entry, message: &'a Message) {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let open = self.open.remove(id);
        let line = open
            .as_ref()
            .and_then(|open| self.dialogue.lines.get_mut(open.line));
        let (Some(open), Some(Line::Agent(answer))) = (&open, line) else {
            return self
                .dialogue
                .left_out
                .count("tool results without their call");
        };
        answer.results.push(CallResult {
            call: open.id.clone(),
            recorded: Some((entry, message)),
            outcome: message.tool_outcome().unwrap_or(ToolOutcome::Ok),
        });
    }

    /// Adds reasoning with an entry of its own to the answer before it: there earlier versions recorded it.
    fn thought(&mut self, entry: &Entry, thread: &str, text: &str) {
        let of_thread = |answer: &&mut Answer<'_>| {
            answer.message.thread.as_deref().unwrap_or_default() == thread
        };
        let answer = match self.dialogue.lines.last_mut() {
            Some(Line::Agent(answer)) => Some(answer).filter(of_thread),
            _ => None,
        };
        match answer {
            Some(answer) => {
                let before = answer.thought.take();
                answer.thought = Some(match before {
                    Some(before) => format!("{before}\n{text}"),
                    None => text.to_owned(),
                });
            }
            None => self.dialogue.left_out.count_entry(&entry.body),
        }
    }

    /// Removes a prompt that the user stopped before an answer: no agent is sent it again.
    fn withdraw(&mut self) {
        let is_human = |line: &Line<'_>| match line {
            Line::User(words) => words.message.speaker.kind == SpeakerKind::Human,
            _ => false,
        };
        if self.dialogue.lines.last().is_some_and(is_human) {
            self.dialogue.lines.pop();
            self.dialogue.left_out.count("withdrawn prompts");
        }
    }

    /// Returns an id of the form that all providers accept, which no other call has.
    fn unique(&mut self, id: &str) -> String {
        let id = match self.view {
            View::OneAgent => plain_name(id),
            View::AllAgents => Cow::Borrowed(id),
        };
        let mut number = 1;
        let mut unique = id.to_string();
        while unique.is_empty() || !self.ids.insert(unique.clone()) {
            number += 1;
            let suffix = format!("_{number}");
            let room = LONGEST_NAME.saturating_sub(suffix.len());
            unique = match id.len() > room && self.view == View::OneAgent {
                true => format!("{}{suffix}", &id[..room]),
                false => format!("{id}{suffix}"),
            };
        }
        unique
    }
}

/// Returns a name of letters, digits, `_` and `-` only, of limited length.
fn plain_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(is_plain) && (1..=LONGEST_NAME).contains(&name.len()) {
        return Cow::Borrowed(name);
    }
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(LONGEST_NAME)
        .collect();
    Cow::Owned(match plain.is_empty() {
        true => "tool".to_owned(),
        false => plain,
    })
}

/// Returns arguments as an object: providers accept nothing else.
fn object(arguments: &Value) -> Cow<'_, Value> {
    match arguments {
        Value::Object(_) => Cow::Borrowed(arguments),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        other => Cow::Owned(json!({ "arguments": other })),
    }
}
