//! One session of a file. Messages are added in the order in which the file mentions them first, so
//! that a file that grew has all earlier messages in the same order.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::message::{self, Content, Writer};
use super::project::Folder;
use super::{AGENT, PROGRAM};
use crate::importer::{Answer, Branches, SessionBuilder, text_at, time_at};
use tertulia_core::entry::{ImportedParent, ImportedRelation, ToolCall, ToolOutcome, Usage};
use tertulia_core::foreign::Foreign;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    /// The program's id.
    pub(super) id: String,
    branches: Branches,
    /// The record that each message up to now is from.
    path: Vec<String>,
    records: HashMap<String, Record>,
    pending: Option<Pending>,
    began: Option<Timestamp>,
    title: Option<String>,
    folder: Option<String>,
    is_subagent: bool,
}

/// What was added of a record.
#[derive(Debug, Default)]
struct Record {
    /// Id of its first message.
    first: Option<String>,
    has_text: bool,
    has_usage: bool,
}

/// What belongs to the next answer: the program records usage and reasoning before tool calls.
#[derive(Debug, Default)]
struct Pending {
    record: String,
    thought: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
}

impl Session {
    pub(super) fn new(id: &str) -> Session {
        Session {
            id: id.to_owned(),
            branches: Branches::new(SessionBuilder::new(PROGRAM, AGENT)),
            path: Vec::new(),
            records: HashMap::new(),
            pending: None,
            began: None,
            title: None,
            folder: None,
            is_subagent: false,
        }
    }

    /// Reads a state of the session, which may list messages that other records do not have.
    pub(super) fn state(&mut self, state: &Value) {
        self.began = self.began.or(time_at(state, "/startTime"));
        if let Some(title) = text_at(state, "/summary") {
            self.title = title.lines().next().map(str::to_owned);
        }
        if let Some(folder) = text_at(state, "/directories/0") {
            self.folder = Some(folder.to_owned());
        }
        self.is_subagent |= text_at(state, "/kind") == Some("subagent");
        let messages = state.get("messages").and_then(Value::as_array);
        for message in messages.into_iter().flatten() {
            self.message(message);
        }
    }

    /// Takes back a message and everything after it.
    pub(super) fn rewind(&mut self, id: &str) {
        let kept = self.path.iter().position(|record| record == id);
        let kept = kept.unwrap_or_default();
        self.path.truncate(kept);
        self.branches.go_back(kept);
        self.pending = None;
    }

    /// Adds what is new in a record.
    pub(super) fn message(&mut self, record: &Value) {
        let Some(id) = text_at(record, "/id") else {
            return self.branches.skip("records of an unknown kind");
        };
        let time = time_at(record, "/timestamp");
        let content = record.get("content").unwrap_or(&Value::Null);
        match text_at(record, "/type") {
            Some("user") => {
                // What the user wrote, without the files that were added to it.
                let shown = record
                    .get("displayContent")
                    .filter(|shown| !shown.is_null());
                self.user(id, time, Content::read(content), shown);
            }
            Some("gemini") => self.answer(id, time, record, Content::read(content)),
            Some("info" | "error" | "warning") => {
                let text = Content::read(content).text;
                self.words(id, time, &text, |builder| builder.system(id, &text));
            }
            kind => {
                let words = format!("{} records", kind.unwrap_or("untyped"));
                self.branches.skip(&words);
            }
        }
    }

    fn user(&mut self, id: &str, time: Option<Timestamp>, content: Content, shown: Option<&Value>) {
        self.count_others(id, &content.others);
        for (call, text, outcome) in content.results {
            self.result(id, time, &call, &text, outcome);
        }
        let text = shown.map_or(content.text, |shown| Content::read(shown).text);
        match message::writer(id, &text) {
            Writer::Context => {
                if !self.records.contains_key(id) {
                    self.branches.skip("context for the model");
                }
                self.records.entry(id.to_owned()).or_default();
            }
            Writer::User => self.words(id, time, &text, |builder| builder.user(id, &text)),
            Writer::Program => self.words(id, time, &text, |builder| builder.system(id, &text)),
        }
    }

    /// Adds a text that is not the agent's, before which a pending answer ends.
    fn words(
        &mut self,
        id: &str,
        time: Option<Timestamp>,
        text: &str,
        add: impl FnOnce(&mut SessionBuilder),
    ) {
        let record = self.records.entry(id.to_owned()).or_default();
        if text.is_empty() || std::mem::replace(&mut record.has_text, true) {
            return;
        }
        self.interrupt();
        self.push(id, id, time, add);
    }

    fn answer(&mut self, id: &str, time: Option<Timestamp>, record: &Value, mut content: Content) {
        content.thoughts(record);
        self.count_others(id, &content.others);
        self.expect(id, record, content.thought, message::usage(record));
        if !content.text.is_empty() {
            let known = self.records.entry(id.to_owned()).or_default();
            if !std::mem::replace(&mut known.has_text, true) {
                self.speak(id, id, time, &content.text, None);
            }
        }
        let recorded = record.get("toolCalls").and_then(Value::as_array);
        for call in recorded.into_iter().flatten() {
            self.call(id, time, message::tool_call(call));
            if let Some((text, outcome)) = message::recorded_result(call) {
                let time = time_at(call, "/timestamp").or(time);
                let call = text_at(call, "/id").unwrap_or_default();
                self.result(id, time, call, &text, outcome);
            }
        }
        for call in content.calls {
            self.call(id, time, call);
        }
    }

    /// Notes the usage and reasoning of a record for its first message, or adds usage to it.
    fn expect(&mut self, id: &str, record: &Value, thought: Option<String>, usage: Option<Usage>) {
        let is_new = !self.records.contains_key(id);
        let known = self.records.entry(id.to_owned()).or_default();
        let usage = usage.filter(|_| !std::mem::replace(&mut known.has_usage, true));
        if let Some(first) = &known.first {
            // Usage that comes after its answer.
            if let Some(usage) = usage
                && !self.branches.usage_of(first, usage, id)
            {
                self.branches.skip("usage of no answer");
            }
            return;
        }
        if is_new && usage.is_some() {
            self.interrupt();
        }
        let pending = self.pending.get_or_insert_default();
        if usage.is_some() {
            pending.usage = usage;
            id.clone_into(&mut pending.record);
        }
        pending.thought = thought.filter(|_| is_new).or(pending.thought.take());
        let model = text_at(record, "/model").map(str::to_owned);
        pending.model = model.or(pending.model.take());
    }

    fn call(&mut self, record: &str, time: Option<Timestamp>, call: ToolCall) {
        let id = format!("{}:call:{}", self.id, call.id);
        if !self.records.contains_key(&id) {
            self.speak(record, &id, time, "", Some(call));
        }
    }

    fn speak(
        &mut self,
        record: &str,
        id: &str,
        time: Option<Timestamp>,
        text: &str,
        call: Option<ToolCall>,
    ) {
        let pending = self.pending.take().unwrap_or_default();
        self.push(record, id, time, |builder| {
            let answer = Answer {
                text,
                tool_calls: call.into_iter().collect(),
                ..pending.answer()
            };
            builder.agent(id, answer);
        });
    }

    /// Adds a pending answer of which only usage or reasoning is known.
    fn interrupt(&mut self) {
        let Some(pending) = self.pending.take().filter(Pending::is_worth_keeping) else {
            return;
        };
        let id = format!("{}:cut", pending.record);
        self.push(&pending.record, &id, None, |builder| {
            let answer = Answer {
                interrupted: true,
                ..pending.answer()
            };
            builder.agent(&id, answer);
        });
    }

    fn result(
        &mut self,
        record: &str,
        time: Option<Timestamp>,
        call: &str,
        text: &str,
        outcome: ToolOutcome,
    ) {
        let id = format!("{}:result:{call}", self.id);
        if !self.records.contains_key(&id) {
            self.push(record, &id, time, |builder| {
                builder.tool_result(&id, call, text, outcome);
            });
        }
    }

    fn push(
        &mut self,
        record: &str,
        id: &str,
        time: Option<Timestamp>,
        add: impl FnOnce(&mut SessionBuilder),
    ) {
        self.branches.add(id, |builder| {
            builder.at(time);
            add(builder);
        });
        self.path.resize(self.branches.len(), record.to_owned());
        let record = self.records.entry(record.to_owned()).or_default();
        record.first.get_or_insert_with(|| id.to_owned());
        // Calls and results are known by their own ids.
        self.records.entry(id.to_owned()).or_default();
    }

    /// Counts parts that a message cannot contain, once for each record.
    fn count_others(&mut self, id: &str, others: &[String]) {
        if !self.records.contains_key(id) {
            for kind in others {
                self.branches.skip(&format!("{kind} parts"));
            }
        }
    }

    /// Returns the session, and what was continued after a rewind.
    pub(super) fn finish(self, folder: &Folder) -> Vec<Foreign> {
        let mut sessions = self.branches.sessions(&self.id, None);
        sessions.retain(|session| !session.said.is_empty());
        let cwd = folder.cwd.as_ref().or(self.folder.as_ref());
        for session in &mut sessions {
            session.source.cwd = cwd.cloned();
            if let Some(parent) = folder.parent.as_ref().filter(|_| self.is_subagent) {
                session.source.parent.get_or_insert_with(|| ImportedParent {
                    original: parent.clone(),
                    relation: ImportedRelation::Subagent,
                });
            }
        }
        if let Some(first) = sessions.first_mut() {
            first.title = self.title;
            first.created_at = self.began.unwrap_or(first.created_at);
            let lost = &mut first.changes.lost;
            if cwd.is_none() {
                lost.push("the working directory, of which the file has only a hash".to_owned());
            }
            if self
                .pending
                .is_some_and(|pending| pending.is_worth_keeping())
            {
                lost.push("usage at the end, of an answer without content yet (1)".to_owned());
            }
        }
        sessions
    }
}

impl Pending {
    fn is_worth_keeping(&self) -> bool {
        self.usage.is_some() || self.thought.is_some()
    }

    fn answer(&self) -> Answer<'_> {
        Answer {
            thought: self.thought.clone(),
            usage: self.usage,
            usage_id: self.usage.map(|_| self.record.clone()),
            model: self.model.as_deref(),
            ..Answer::default()
        }
    }
}
