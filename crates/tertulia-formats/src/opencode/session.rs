//! One session. Copies in a fork have new ids: the identity of a message is made from its time, its
//! place and the message before it.

use jiff::Timestamp;
use serde_json::Value;

use super::message::{self, Step};
use super::{AGENT, PROGRAM};
use crate::importer::{Answer, SessionBuilder, is_true_at, milliseconds_at, text_at};
use tertulia_core::entry::{ImportedParent, ImportedRelation};
use tertulia_core::foreign::Foreign;
use tertulia_core::id::derived;

/// Beginnings of the titles that the program gives to sessions without one.
const NO_TITLES: &[&str] = &["New session - ", "Child session - "];

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    /// The program's id.
    pub(super) id: String,
    builder: SessionBuilder,
    /// Identity of the last message.
    last: String,
    /// The first answer that is not complete, and what follows it.
    open: Vec<(Value, Vec<Value>)>,
    title: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    parent: Option<String>,
    created: Option<Timestamp>,
}

impl Session {
    /// Starts a session from its description.
    pub(super) fn new(info: &Value) -> Session {
        let owned = |pointer: &str| text_at(info, pointer).map(str::to_owned);
        let is_title = |title: &String| !NO_TITLES.iter().any(|no| title.starts_with(no));
        Session {
            id: owned("/id").unwrap_or_else(|| "unknown".to_owned()),
            builder: SessionBuilder::new(PROGRAM, AGENT),
            last: String::new(),
            open: Vec::new(),
            title: owned("/title").filter(is_title),
            cwd: owned("/directory"),
            version: owned("/version"),
            parent: owned("/parentID"),
            created: milliseconds_at(info, "/time/created"),
        }
    }

    /// Counts a part that is not kept.
    pub(super) fn skip(&mut self, kind: &str) {
        self.builder.skipped.count(kind);
    }

    /// Adds a message. An answer that is not complete waits: an entry that was imported does not
    /// change. It remains as it is once another answer was begun.
    pub(super) fn message(&mut self, info: &Value, parts: &[Value]) {
        let is_answer = text_at(info, "/role") == Some("assistant");
        if is_answer {
            for (info, parts) in std::mem::take(&mut self.open) {
                self.add(&info, &parts, true);
            }
        }
        match self.open.is_empty() && (!is_answer || is_complete(info)) {
            true => self.add(info, parts, true),
            false => self.open.push((info.clone(), parts.to_vec())),
        }
    }

    fn add(&mut self, info: &Value, parts: &[Value], is_ended: bool) {
        self.builder.at(milliseconds_at(info, "/time/created"));
        let created = info.pointer("/time/created").map(Value::to_string);
        let created = created.unwrap_or_default();
        match text_at(info, "/role") {
            Some("user") => {
                let text = message::written(parts, &mut self.builder.skipped);
                if !text.is_empty() {
                    let id = self.next(&["user", &created, &text]);
                    self.builder.user(&id, &text);
                }
            }
            Some("assistant") => self.answer(info, parts, &created, is_ended),
            _ => self.skip("messages without a role"),
        }
    }

    fn answer(&mut self, info: &Value, parts: &[Value], created: &str, is_ended: bool) {
        let mut steps = message::steps(parts, &mut self.builder.skipped);
        if let [step] = &mut steps[..]
            && step.usage.is_none()
        {
            step.usage = message::usage(info.get("tokens"));
        }
        let error = text_at(info, "/error/name");
        let is_cut = !is_complete(info) || error == Some("MessageAbortedError");
        let mut error = text_at(info, "/error/data/message").or(error);
        let count = steps.len();
        for (place, step) in steps.into_iter().enumerate() {
            if !step.is_finished && !is_ended {
                continue;
            }
            let is_cut = is_cut && place + 1 == count;
            if is_cut {
                // The answer itself says that it was interrupted.
                error =
                    error.filter(|_| text_at(info, "/error/name") != Some("MessageAbortedError"));
            }
            self.step(info, step, created, place, is_cut);
        }
        if let Some(error) = error {
            let id = self.next(&["error", created]);
            self.builder.system(&id, error);
        }
    }

    fn step(&mut self, info: &Value, step: Step, created: &str, place: usize, is_cut: bool) {
        let id = self.next(&["step", created, &place.to_string()]);
        let answer = Answer {
            text: &step.text,
            thought: step.thought,
            tool_calls: step.calls,
            usage: step.usage,
            usage_id: step.usage.map(|_| id.clone()),
            model: text_at(info, "/modelID"),
            interrupted: is_cut,
        };
        match is_true_at(info, "/summary") && !is_cut && answer.tool_calls.is_empty() {
            true => self.builder.compaction(&id, answer, &[]),
            false => self.builder.agent(&id, answer),
        }
        for (call, text, outcome) in step.results {
            let id = self.next(&["result", created, &call]);
            self.builder.tool_result(&id, &call, &text, outcome);
        }
    }

    /// Returns the identity of the next message.
    fn next(&mut self, content: &[&str]) -> String {
        let parts = [&["opencode", self.last.as_str()], content].concat();
        self.last = derived(&parts).to_string();
        self.last.clone()
    }

    /// Returns the session, unless it has no messages.
    pub(super) fn finish(mut self) -> Option<Foreign> {
        let open = std::mem::take(&mut self.open);
        if let Some((info, parts)) = open.first() {
            // Its finished steps do not change any more.
            self.add(info, parts, false);
            let count = open.len();
            let words =
                format!("an answer that is not complete yet, with what follows it ({count})");
            self.builder.changes.lost.push(words);
        }
        if self.builder.said().is_empty() {
            return None;
        }
        let mut session = self.builder.finish(&self.id, self.created);
        session.title = self.title;
        session.source.cwd = self.cwd;
        session.source.version = self.version;
        session.source.parent = self.parent.map(|original| ImportedParent {
            original,
            relation: ImportedRelation::Subagent,
        });
        Some(session)
    }
}

/// Returns true if the program recorded the end of an answer.
fn is_complete(info: &Value) -> bool {
    let completed = info
        .pointer("/time/completed")
        .is_some_and(Value::is_number);
    completed || info.get("error").is_some_and(Value::is_object)
}
