//! Puts a session together message by message.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use tertulia_core::entry::{
    Message, Role, Speaker, SpeakerKind, ToolCall, ToolOutcome, Usage, human, plain,
};
use tertulia_core::foreign::{Changes, Compaction, Foreign, Said};
use tertulia_core::id::EntryId;

/// Parts of a file that are not messages, counted by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeMap<String, usize>);

impl Skipped {
    /// Counts one part.
    pub fn count(&mut self, kind: &str) {
        // A damaged file may contain any number of kinds.
        const KINDS: usize = 50;
        let known = self.0.len() < KINDS || self.0.contains_key(kind);
        let kind = if known { kind } else { "others" };
        let kind: String = kind.chars().take(60).collect();
        *self.0.entry(kind).or_insert(0) += 1;
    }

    /// Counts what another one counted.
    pub fn add(&mut self, other: &Skipped) {
        for (kind, count) in &other.0 {
            for _ in 0..*count {
                self.count(kind);
            }
        }
    }

    /// Returns the kinds with their counts, for the report.
    pub fn listed(&self) -> Option<String> {
        let kinds: Vec<String> = self
            .0
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }
}

/// Collects the messages of a session.
#[derive(Clone, Debug)]
pub struct SessionBuilder {
    program: &'static str,
    agent: Speaker,
    said: Vec<Said>,
    known: HashSet<EntryId>,
    /// Names of the tools by the ids of their calls.
    tools: HashMap<String, String>,
    time: Option<Timestamp>,
    /// Content that the import changed or could not keep.
    pub changes: Changes,
    /// Parts that are not messages.
    pub skipped: Skipped,
    repeated: usize,
}

impl SessionBuilder {
    /// Starts an empty session of a program. `agent` is the name under which its answers appear.
    pub fn new(program: &'static str, agent: &str) -> SessionBuilder {
        SessionBuilder {
            program,
            agent: Speaker::plain(agent, SpeakerKind::Ai),
            said: Vec::new(),
            known: HashSet::new(),
            tools: HashMap::new(),
            time: None,
            changes: Changes::default(),
            skipped: Skipped::default(),
            repeated: 0,
        }
    }

    /// Starts a branch of the session. It knows the tools that were called before it.
    pub fn branch(&self) -> SessionBuilder {
        SessionBuilder {
            agent: self.agent.clone(),
            tools: self.tools.clone(),
            time: self.time,
            ..SessionBuilder::new(self.program, "")
        }
    }

    /// Returns the messages so far.
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// Sets the time of what follows. Without one, the previous time holds.
    pub fn at(&mut self, time: Option<Timestamp>) {
        self.time = time.or(self.time);
    }

    /// Adds what the user wrote. `id` is the program's own id of the message.
    pub fn user(&mut self, id: &str, text: &str) {
        let message = plain(&human(), Role::User, String::new());
        self.push(id, text, message, None);
    }

    /// Adds a message of the program itself: a notice, an error, a summary.
    pub fn system(&mut self, id: &str, text: &str) {
        let speaker = Speaker::plain("system", SpeakerKind::System);
        let message = plain(&speaker, Role::System, String::new());
        self.push(id, text, message, None);
    }

    /// Adds a summary by which the program replaced the messages before it in the agent's context,
    /// except those that it calls `kept`.
    pub fn compaction(&mut self, id: &str, summary: Answer<'_>, kept: &[String]) {
        let message = Message {
            usage: summary.usage,
            model: summary.model.map(str::to_owned),
            ..plain(&self.agent, Role::System, String::new())
        };
        let kept = kept.iter().map(|id| Foreign::entry_id(self.program, id));
        let keeps = kept.into_iter().find(|id| self.known.contains(id));
        let count = self.said.len();
        self.push(id, summary.text, message, None);
        if let Some(said) = self.said.get_mut(count) {
            said.compacts = Some(Compaction { keeps });
        }
    }

    /// Adds an answer of the agent.
    pub fn agent(&mut self, id: &str, answer: Answer<'_>) {
        let Answer {
            text,
            thought,
            tool_calls,
            usage,
            usage_id,
            model,
            interrupted,
        } = answer;
        for call in &tool_calls {
            self.tools.insert(call.id.clone(), call.name.clone());
        }
        let message = Message {
            tool_calls,
            usage,
            usage_id,
            model: model.map(str::to_owned),
            interrupted,
            ..plain(&self.agent, Role::Assistant, String::new())
        };
        self.push(id, text, message, thought);
    }

    /// Adds the result of a tool call.
    pub fn tool_result(&mut self, id: &str, call: &str, text: &str, outcome: ToolOutcome) {
        let name = self.tools.get(call).map_or("tool", String::as_str);
        let speaker = Speaker::plain(name, SpeakerKind::Tool);
        let message = Message {
            tool_call_id: Some(call.to_owned()),
            outcome: Some(outcome),
            ..plain(&speaker, Role::Tool, String::new())
        };
        self.push(id, text, message, None);
    }

    /// Attaches usage to the last answer, for programs that record it after the message. Returns
    /// false if there is no answer without usage.
    pub fn usage(&mut self, usage: Usage, usage_id: Option<String>) -> bool {
        let last = self.said.iter_mut().rev();
        let mut answers = last.filter(|said| said.message.speaker.kind == SpeakerKind::Ai);
        match answers.next() {
            Some(said) if said.message.usage.is_none() => {
                said.message.usage = Some(usage);
                said.message.usage_id = usage_id;
                true
            }
            _ => false,
        }
    }

    /// Attaches usage to the answer that the program calls `id`. Returns false if there is no such
    /// answer, or if it has usage.
    pub fn usage_of(&mut self, id: &str, usage: Usage, usage_id: &str) -> bool {
        let id = Foreign::entry_id(self.program, id);
        let found = self.said.iter_mut().rev().find(|said| said.id == id);
        match found {
            Some(said) if said.message.usage.is_none() => {
                said.message.usage = Some(usage);
                said.message.usage_id = Some(usage_id.to_owned());
                true
            }
            _ => false,
        }
    }

    /// Keeps only the first `count` messages.
    pub fn truncate(&mut self, count: usize) {
        self.said.truncate(count);
    }

    /// Removes the usage of a message, because a later part of the answer has newer figures.
    pub fn remove_usage(&mut self, place: usize) {
        if let Some(said) = self.said.get_mut(place) {
            said.message.usage = None;
            said.message.usage_id = None;
        }
    }

    fn push(&mut self, id: &str, text: &str, message: Message, thought: Option<String>) {
        let id = Foreign::entry_id(self.program, id);
        if !self.known.insert(id) {
            self.repeated += 1;
            return;
        }
        let content = self.changes.keepable(text);
        let thought = thought.map(|thought| self.changes.keepable(&thought));
        self.said.push(Said {
            id,
            at: self.time.unwrap_or(Timestamp::UNIX_EPOCH),
            message: Message { content, ..message },
            thought,
            compacts: None,
        });
    }

    /// Returns the session. `original` is its id in the program. The time of its creation is that
    /// of the first message unless given.
    pub fn finish(mut self, original: &str, created_at: Option<Timestamp>) -> Foreign {
        let first = self.said.first().map(|said| said.at);
        let created_at = created_at.or(first).unwrap_or(Timestamp::UNIX_EPOCH);
        for said in &mut self.said {
            // Messages before the first known time.
            if said.at == Timestamp::UNIX_EPOCH {
                said.at = created_at;
            }
        }
        if self.repeated > 0 {
            let words = format!(
                "messages that the file repeats, kept once ({})",
                self.repeated
            );
            self.changes.changed.push(words);
        }
        if let Some(skipped) = self.skipped.listed() {
            self.changes
                .lost
                .push(format!("not part of the conversation: {skipped}"));
        }
        Foreign {
            said: self.said,
            changes: self.changes,
            ..Foreign::chat(self.program, original, created_at)
        }
    }
}

/// An answer of the agent.
#[derive(Debug, Default)]
pub struct Answer<'a> {
    /// The text.
    pub text: &'a str,
    /// Reasoning before the answer.
    pub thought: Option<String>,
    /// Tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// Tokens used.
    pub usage: Option<Usage>,
    /// Identity of the usage: copies of the answer count once.
    pub usage_id: Option<String>,
    /// Model that answered.
    pub model: Option<&'a str>,
    /// True if the answer was cut off.
    pub interrupted: bool,
}

impl<'a> Answer<'a> {
    /// Returns an answer of which only the text is known.
    pub fn of_text(text: &'a str) -> Answer<'a> {
        Answer {
            text,
            ..Answer::default()
        }
    }
}

/// Returns a tool call with arguments that the program recorded as JSON in a string.
pub fn call_of_text(id: &str, name: &str, arguments: &str) -> ToolCall {
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

/// Returns a text in the place of a part that a message cannot contain.
pub fn placeholder(kind: &str, detail: Option<&str>) -> String {
    let line = |text: &str| -> String {
        let shown = text.chars().take(60);
        shown
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    };
    match detail {
        Some(detail) => format!("[{}: {}]", line(kind), line(detail)),
        None => format!("[{}]", line(kind)),
    }
}
