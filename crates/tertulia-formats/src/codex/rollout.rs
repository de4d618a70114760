//! Turns the lines of a file into sessions.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::about::About;
use super::identity::{Chain, ordinal_id};
use super::item::{self, Item};
use super::{AGENT, PROGRAM};
use crate::importer::{Answer, Branches, SessionBuilder, Skipped, count_at, text_at, time_at};
use tertulia_core::entry::{SpeakerKind, Usage};
use tertulia_core::foreign::{Foreign, Said};
use tertulia_core::id::derived;

/// Time within which a subagent's file receives the copy of its parent's lines.
const COPYING: SignedDuration = SignedDuration::from_secs(10);

/// The content of a file.
#[derive(Debug)]
pub(super) struct Rollout<'a> {
    path: &'a Path,
    about: About,
    /// True after the first line about the thread.
    is_known: bool,
    chain: Chain,
    branches: Branches,
    time: Option<Timestamp>,
    model: Option<String>,
    thought: Option<String>,
    /// True while the lines are copies of the parent's.
    is_copy: bool,
    /// True while the agent may still add to its last answer.
    is_answering: bool,
    usage: Counted,
    error: Option<String>,
    /// Numbers of damaged lines.
    pub(super) damaged: Vec<usize>,
}

/// Usage that was counted.
#[derive(Debug, Default)]
struct Counted {
    /// True if the file records the usage of each response.
    by_response: bool,
    /// The last running total.
    total: Value,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(path: &'a Path) -> Rollout<'a> {
        let about = About::unknown(path);
        let mut chain = Chain::default();
        chain.begin_with(&about.file);
        Rollout {
            path,
            about,
            is_known: false,
            chain,
            branches: Branches::new(SessionBuilder::new(PROGRAM, AGENT)),
            time: None,
            model: None,
            thought: None,
            is_copy: false,
            is_answering: false,
            usage: Counted::default(),
            error: None,
            damaged: Vec::new(),
        }
    }

    /// Adds a line.
    pub(super) fn read(&mut self, line: &Value) {
        let (kind, payload) = match (text_at(line, "/type"), line.get("payload")) {
            (Some(kind), Some(payload)) => (kind, payload),
            // Older files: a line about the session, then items.
            (Some(_), None) => ("response_item", line),
            (None, _) if line.get("id").is_some() => ("session_meta", line),
            (None, _) => (
                text_at(line, "/record_type").unwrap_or("unknown lines"),
                line,
            ),
        };
        self.time = time_at(line, "/timestamp").or(self.time);
        let ordinal = line.get("ordinal").and_then(Value::as_u64);
        if kind == "session_meta" {
            return self.meta(payload);
        }
        if self.about.exported_from.is_none() {
            // Lines that tertulia added name the session that has them.
            self.about.exported_from = text_at(line, "/exported_from").map(str::to_owned);
        }
        if self.is_copied(kind, payload, ordinal) {
            return self.branches.skip("lines copied from the parent session");
        }
        match kind {
            "response_item" => self.item(payload, ordinal),
            "event_msg" => self.event(payload, ordinal),
            "token_usage_record" => self.response_usage(payload),
            "compacted" => match text_at(payload, "/message") {
                Some(summary) => self.add(ordinal, &["compacted", summary], |builder, id| {
                    builder.compaction(id, Answer::of_text(summary), &[]);
                }),
                None => self.branches.skip("encrypted summaries"),
            },
            "inter_agent_communication" => {
                let text = text_at(payload, "/content").unwrap_or_default();
                self.system(ordinal, "agent", text);
            }
            "world_state" => self.branches.skip("context for the model"),
            "turn_context" => {
                let model = text_at(payload, "/model").map(str::to_owned);
                self.model = model.or(self.model.take());
                if self.about.cwd.is_none() {
                    self.about.cwd = text_at(payload, "/cwd").map(str::to_owned);
                }
            }
            kind => self.branches.skip(kind),
        }
    }

    fn meta(&mut self, payload: &Value) {
        if !self.is_known {
            self.is_known = true;
            self.about = About::read(payload, self.time, self.path);
            let origin = self.about.forked_from.as_ref().unwrap_or(&self.about.id);
            let root = match self.about.is_subagent {
                true => &self.about.id,
                false => origin,
            };
            self.chain.begin_with(root);
            return;
        }
        let Some(other) = text_at(payload, "/id").filter(|id| *id != self.about.id) else {
            return;
        };
        // What follows was copied from another thread.
        match self.about.is_subagent {
            true => self.is_copy = self.branches.is_empty(),
            false => self.chain.begin_with(other),
        }
        if self.branches.is_empty() && self.about.forked_from.is_none() {
            self.about.forked_from = Some(other.to_owned());
        }
    }

    /// Returns true for a line that a subagent has from its parent. The first turn of its own begins
    /// after the subagent did; ids of turns contain their times.
    fn is_copied(&mut self, kind: &str, payload: &Value, ordinal: Option<u64>) -> bool {
        if let (Some(own), Some(ordinal)) = (self.about.own_ordinal, ordinal) {
            return ordinal < own;
        }
        if !self.is_copy {
            return false;
        }
        let starts = kind == "event_msg"
            && matches!(
                text_at(payload, "/type"),
                Some("task_started" | "turn_started")
            );
        let turn = text_at(payload, "/turn_id").filter(|_| starts || kind == "turn_context");
        let is_own_turn = turn
            .is_some_and(|turn| turn.len() != self.about.id.len() || turn > self.about.id.as_str());
        let is_later = match (self.time, self.about.began) {
            (Some(time), Some(began)) => time.duration_since(began) > COPYING,
            _ => false,
        };
        self.is_copy = !is_own_turn && !is_later;
        self.is_copy
    }

    fn item(&mut self, payload: &Value, ordinal: Option<u64>) {
        let mut skipped = Skipped::default();
        let item = item::read(payload, &mut skipped);
        self.branches.skip_all(&skipped);
        match item {
            Item::User(text) => self.add(ordinal, &["user", &text], |builder, id| {
                builder.user(id, &text);
            }),
            Item::System(text) => self.system(ordinal, "system", &text),
            Item::Text(text) => {
                let answer = self.answer();
                self.add(ordinal, &["text", &text], |builder, id| {
                    let text = text.as_str();
                    builder.agent(id, answer.with(|answer| Answer { text, ..answer }));
                });
            }
            Item::Call(call) => {
                let answer = self.answer();
                let arguments = call.arguments.to_string();
                let content = ["call", &call.id.clone(), &call.name.clone(), &arguments];
                self.add(ordinal, &content, |builder, id| {
                    let tool_calls = vec![call];
                    builder.agent(
                        id,
                        answer.with(|answer| Answer {
                            tool_calls,
                            ..answer
                        }),
                    );
                });
            }
            Item::Result(call, text, outcome) => {
                self.add(ordinal, &["result", &call, &text], |builder, id| {
                    builder.tool_result(id, &call, &text, outcome);
                });
            }
            Item::Thought(text) => {
                self.thought = Some(match self.thought.take() {
                    Some(before) => format!("{before}\n{text}"),
                    None => text,
                });
            }
            Item::Context(text) if self.about.cwd.is_none() => {
                let cwd = text
                    .split_once("<cwd>")
                    .and_then(|(_, rest)| rest.split_once("</cwd>"));
                self.about.cwd = cwd.map(|(cwd, _)| cwd.to_owned());
            }
            Item::Context(_) | Item::Nothing => {}
        }
    }

    fn event(&mut self, payload: &Value, ordinal: Option<u64>) {
        match text_at(payload, "/type").unwrap_or_default() {
            "task_started" | "turn_started" => {
                self.is_answering = true;
                self.error = None;
            }
            "task_complete" | "turn_complete" => {
                self.is_answering = false;
                if let Some(error) = text_at(payload, "/error/message") {
                    self.failed(ordinal, error);
                }
            }
            "turn_aborted" => {
                self.is_answering = false;
                let reason = text_at(payload, "/reason").unwrap_or("turn_aborted");
                self.system(ordinal, "aborted", reason);
            }
            "error" | "stream_error" => {
                let error = text_at(payload, "/message").unwrap_or_default();
                self.failed(ordinal, error);
            }
            "token_count" => self.running_usage(payload),
            "thread_rolled_back" => {
                let turns = count_at(payload, "/num_turns");
                self.branches
                    .go_back_turns(usize::try_from(turns).unwrap_or(usize::MAX));
                self.chain.go_back(self.branches.len());
                self.thought = None;
            }
            // Everything else repeats items.
            _ => {}
        }
    }

    fn failed(&mut self, ordinal: Option<u64>, error: &str) {
        // Some versions record an error twice: when it occurs and when the turn ends.
        if self.error.as_deref() != Some(error) {
            self.error = Some(error.to_owned());
            self.system(ordinal, "error", error);
        }
    }

    fn system(&mut self, ordinal: Option<u64>, kind: &str, text: &str) {
        if !text.is_empty() {
            self.add(ordinal, &[kind, text], |builder, id| {
                builder.system(id, text)
            });
        }
    }

    fn add(
        &mut self,
        ordinal: Option<u64>,
        content: &[&str],
        add: impl FnOnce(&mut SessionBuilder, &str),
    ) {
        let count = self.branches.len();
        let identity = match ordinal {
            Some(ordinal) => ordinal_id(&self.about.file, ordinal),
            None => self.chain.next(content),
        };
        let time = self.time;
        self.branches.add(&identity, |builder| {
            builder.at(time);
            add(builder, &identity);
        });
        if self.branches.len() > count {
            self.chain.push(count, &identity);
        }
    }

    fn answer(&mut self) -> Pending {
        Pending {
            thought: self.thought.take(),
            model: self.model.clone(),
        }
    }

    fn response_usage(&mut self, payload: &Value) {
        self.usage.by_response = true;
        let usage = usage(payload.get("usage"));
        let id = match text_at(payload, "/response_id") {
            Some(id) => id.to_owned(),
            None => {
                let total = payload.get("thread_token_usage").map(Value::to_string);
                let thread = text_at(payload, "/thread_id").unwrap_or_default();
                let turn = text_at(payload, "/turn_id").unwrap_or_default();
                derived(&["usage", thread, turn, &total.unwrap_or_default()]).to_string()
            }
        };
        self.count(usage, id);
    }

    /// Counts the usage of the last response, for files that only record running totals. They repeat
    /// a total that has not changed.
    fn running_usage(&mut self, payload: &Value) {
        let total = payload.pointer("/info/total_token_usage");
        let total = total.cloned().unwrap_or_default();
        if self.usage.by_response || total.is_null() || total == self.usage.total {
            return;
        }
        let last = payload.pointer("/info/last_token_usage");
        let is_ai = |said: &&Said| said.message.speaker.kind == SpeakerKind::Ai;
        let answer = self.branches.newest_first().find(is_ai);
        // A copy in a fork has the same answer and the same total.
        let words = answer.map(|said| {
            let calls = said.message.tool_calls.iter();
            let calls: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
            format!("{}\n{}", calls.join(" "), said.message.content)
        });
        let words = words.unwrap_or_default();
        // A file that was exported from here names the usage.
        let id = match text_at(payload, "/info/usage_id") {
            Some(id) => id.to_owned(),
            None => derived(&["usage", self.chain.root(), &total.to_string(), &words]).to_string(),
        };
        self.usage.total = total;
        self.count(usage(last), id);
    }

    fn count(&mut self, usage: Usage, id: String) {
        let is_some = usage.input > 0 || usage.output > 0;
        if is_some && !self.branches.usage(usage, id) {
            self.branches.skip("usage of no answer");
        }
    }

    /// Returns the sessions: first the thread itself, then what was continued after a step back.
    pub(super) fn sessions(mut self) -> Vec<Foreign> {
        let mut lost = Vec::new();
        if self.is_answering {
            // Its usage is still to come.
            let held = self.branches.hold_back(|said| {
                said.message.speaker.kind == SpeakerKind::Ai && said.message.usage.is_none()
            });
            if held > 0 {
                lost.push(format!(
                    "messages of an answer that is not complete yet ({held})"
                ));
            }
        }
        if self.thought.is_some() {
            lost.push("reasoning at the end, without an answer yet (1)".to_owned());
        }
        let fork = self.about.fork();
        let mut sessions = self.branches.sessions(&self.about.file, fork.as_ref());
        sessions.retain(|session| !session.said.is_empty());
        for session in &mut sessions {
            self.about.describe(&mut session.source);
        }
        if let Some(first) = sessions.first_mut() {
            first.created_at = self.about.began.unwrap_or(first.created_at);
            first.changes.lost.extend(lost);
            first.changes.damaged = self.damaged;
        }
        sessions
    }
}

/// What belongs to the next answer.
#[derive(Debug)]
struct Pending {
    thought: Option<String>,
    model: Option<String>,
}

impl Pending {
    fn with<'b>(&'b self, complete: impl FnOnce(Answer<'b>) -> Answer<'b>) -> Answer<'b> {
        complete(Answer {
            thought: self.thought.clone(),
            model: self.model.as_deref(),
            ..Answer::default()
        })
    }
}

fn usage(recorded: Option<&Value>) -> Usage {
    let recorded = recorded.unwrap_or(&Value::Null);
    Usage {
        input: count_at(recorded, "/input_tokens"),
        output: count_at(recorded, "/output_tokens"),
        cache_read: count_at(recorded, "/cached_input_tokens"),
        cache_written: count_at(recorded, "/cache_write_input_tokens"),
        estimated: false,
    }
}
