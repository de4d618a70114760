//! Turns the events of one agent into messages.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::usage::Request;
use super::{AGENT, PROGRAM};
use crate::importer::{Answer, SessionBuilder, Skipped, count_at, is_true_at, text_at};
use tertulia_core::entry::{ToolCall, ToolOutcome, Usage};
use tertulia_core::foreign::Foreign;

/// The conversation of one agent.
#[derive(Debug)]
pub(super) struct Conversation {
    builder: SessionBuilder,
    model: Option<String>,
    /// Thinking that an event of its own records before the answer.
    thought: Option<String>,
    /// Number of the user's turn.
    turn: Option<usize>,
    /// Places of answers, with the user's turn.
    answers: Vec<(Option<usize>, usize)>,
    /// Figures of requests whose answers follow.
    recorded: HashMap<String, Usage>,
    has_records: bool,
    /// Requests whose output was counted with an answer.
    counted: HashSet<String>,
    calls: HashSet<String>,
    denied: HashSet<String>,
}

impl Default for Conversation {
    fn default() -> Conversation {
        Conversation {
            builder: SessionBuilder::new(PROGRAM, AGENT),
            model: None,
            thought: None,
            turn: None,
            answers: Vec::new(),
            recorded: HashMap::new(),
            has_records: false,
            counted: HashSet::new(),
            calls: HashSet::new(),
            denied: HashSet::new(),
        }
    }
}

impl Conversation {
    /// Adds an event. `place` identifies one that has no id.
    pub(super) fn read(
        &mut self,
        kind: &str,
        line: &Value,
        data: &Value,
        place: &str,
        skipped: &mut Skipped,
    ) {
        let time = text_at(line, "/timestamp").and_then(|time| time.parse().ok());
        self.builder.at(time);
        let id = text_at(data, "/messageId").or(text_at(line, "/id"));
        let id = id.unwrap_or(place);
        match kind {
            "user.message" => self.user(id, line, data),
            "assistant.message" => self.assistant(id, data),
            "assistant.reasoning" => {
                let thought = self.thought.get_or_insert_default();
                thought.push_str(text_at(data, "/content").unwrap_or_default());
            }
            "assistant.usage" => self.usage(data),
            "session.usage_record" => self.usage_record(data, skipped),
            "session.compaction_complete" => match text_at(data, "/summaryContent") {
                Some(summary) => self.builder.compaction(id, Answer::of_text(summary), &[]),
                None => skipped.count(kind),
            },
            "tool.execution_start" => self.call(id, data),
            "tool.execution_complete" => self.result(id, data),
            "permission.completed" => {
                let outcome = text_at(data, "/result/kind").unwrap_or_default();
                if outcome.starts_with("denied") {
                    let call = text_at(data, "/toolCallId");
                    self.denied.extend(call.map(str::to_owned));
                }
            }
            "session.start" | "session.resume" => self.model(text_at(data, "/selectedModel")),
            "session.model_change" => self.model(text_at(data, "/newModel")),
            "assistant.turn_start" => self.model(text_at(data, "/model")),
            "abort" => {
                let reason = text_at(data, "/reason").unwrap_or("unknown");
                self.builder.system(id, &format!("[aborted: {reason}]"));
            }
            "session.title_changed" | "subagent.started" => {}
            _ => match notice(kind, data) {
                Some(text) => self.builder.system(id, text),
                None => skipped.count(kind),
            },
        }
    }

    fn model(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            // Leaves the choice to the provider.
            self.model = (model != "auto").then(|| model.to_owned());
        }
    }

    fn user(&mut self, id: &str, line: &Value, data: &Value) {
        self.turn = Some(self.turn.map_or(0, |turn| turn + 1));
        let mut text = text_at(data, "/content").unwrap_or_default().to_owned();
        let attachments = data.get("attachments").and_then(Value::as_array);
        for attachment in attachments.into_iter().flatten() {
            let kind = text_at(attachment, "/type").unwrap_or("attachment");
            let names = ["/path", "/filePath", "/displayName", "/url"];
            let name = names
                .iter()
                .find_map(|pointer| text_at(attachment, pointer));
            self.builder.skipped.count("contents of attachments");
            text.push_str(&format!("\n[{kind}: {}]", name.unwrap_or("unnamed")));
        }
        // Skills and other agents write in the user's place. To a subagent, that is its prompt.
        let source = text_at(data, "/source").unwrap_or_default();
        let is_agent = source.starts_with("agent-") && text_at(line, "/agentId").is_none();
        let is_program = source.starts_with("skill-") || is_agent;
        match is_program || is_true_at(data, "/isAutopilotContinuation") {
            true => self.builder.system(id, &text),
            false => self.builder.user(id, &text),
        }
    }

    fn assistant(&mut self, id: &str, data: &Value) {
        let requests = data.get("toolRequests").and_then(Value::as_array);
        let tool_calls: Vec<ToolCall> = requests.into_iter().flatten().map(call).collect();
        let text = text_at(data, "/content").unwrap_or_default();
        let before = self.thought.take();
        let thought = text_at(data, "/reasoningText").map(str::to_owned);
        let thought = thought.or(before).filter(|thought| !thought.is_empty());
        if text_at(data, "/encryptedContent")
            .or(text_at(data, "/reasoningOpaque"))
            .is_some()
        {
            self.builder.skipped.count("encrypted thinking");
        }
        if text.is_empty() && tool_calls.is_empty() {
            // The answer follows.
            self.thought = thought;
            return;
        }
        let known = tool_calls.iter().map(|call| call.id.clone());
        self.calls.extend(known);
        let request = text_at(data, "/apiCallId").unwrap_or(id);
        let output = count_at(data, "/outputTokens");
        // All parts of an answer have the figure of the whole.
        let recorded = self.recorded.remove(request);
        let usage = recorded.or((output > 0).then(|| Usage::told(0, output)));
        let usage = usage.filter(|_| self.counted.insert(request.to_owned()));
        let place = self.builder.said().len();
        let answer = Answer {
            text,
            thought,
            tool_calls,
            usage,
            usage_id: usage.map(|_| request.to_owned()),
            model: text_at(data, "/model").or(self.model.as_deref()),
            interrupted: false,
        };
        self.builder.agent(id, answer);
        if self.builder.said().len() > place {
            self.answers.push((self.turn, place));
        }
    }

    /// Keeps the figures of a request until its answer, which the log has after them.
    fn usage_record(&mut self, data: &Value, skipped: &mut Skipped) {
        match data.get("usage").zip(text_at(data, "/usage/apiCallId")) {
            Some((usage, request)) => {
                self.has_records = true;
                self.recorded.insert(request.to_owned(), tokens(usage));
            }
            None => skipped.count("usage without an answer"),
        }
    }

    /// Attaches figures that a recording of the live events has, unlike the log on disk.
    fn usage(&mut self, data: &Value) {
        let usage = tokens(data);
        if let Some((_, place)) = self.answers.last() {
            self.builder.remove_usage(*place);
        }
        let id = text_at(data, "/apiCallId").map(str::to_owned);
        if !self.builder.usage(usage, id) {
            self.builder.skipped.count("usage without an answer");
        }
    }

    /// Adds a tool call that no answer requests: the user made it.
    fn call(&mut self, id: &str, data: &Value) {
        let call = ToolCall {
            id: text_at(data, "/toolCallId").unwrap_or_default().to_owned(),
            name: text_at(data, "/toolName").unwrap_or("tool").to_owned(),
            arguments: data.get("arguments").cloned().unwrap_or_default(),
        };
        if self.calls.insert(call.id.clone()) {
            let answer = Answer {
                tool_calls: vec![call],
                model: self.model.as_deref(),
                ..Answer::default()
            };
            self.builder.agent(id, answer);
        }
    }

    fn result(&mut self, id: &str, data: &Value) {
        let call = text_at(data, "/toolCallId").unwrap_or_default();
        let result = data.get("result");
        let text = result
            .and_then(|result| result.as_str().or(text_at(result, "/content")))
            .or(text_at(data, "/error/message"))
            .unwrap_or_default();
        if data.pointer("/result/binaryResultsForLlm").is_some() {
            self.builder.skipped.count("images of tools");
        }
        let outcome = match data.get("success").and_then(Value::as_bool) {
            _ if self.denied.contains(call) => ToolOutcome::Denied,
            Some(false) => ToolOutcome::Failed,
            _ if data.get("error").is_some() => ToolOutcome::Failed,
            _ => ToolOutcome::Ok,
        };
        self.builder.tool_result(id, call, text, outcome);
    }

    /// Returns the session with the usage of its requests. `original` is its id in the program.
    pub(super) fn finish(mut self, original: &str, requests: Vec<Request>) -> Foreign {
        if self.thought.is_some() {
            let words = "thinking at the end, without an answer yet (1)";
            self.builder.changes.lost.push(words.to_owned());
        }
        let mut session = self.builder.finish(original, None);
        let mut without = self.recorded.len();
        // The log itself has the figures of newer versions.
        let requests = match self.has_records {
            true => Vec::new(),
            false => requests,
        };
        let has_turns = requests.iter().all(|request| request.turn.is_some());
        let by_turn = has_turns && requests.len() != self.answers.len();
        let mut places: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (turn, place) in self.answers.iter().rev() {
            let turn = turn.filter(|_| by_turn);
            places.entry(turn).or_default().push(*place);
        }
        if !requests.is_empty() {
            // These have the output too.
            for (_, place) in &self.answers {
                session.said[*place].message.usage = None;
                session.said[*place].message.usage_id = None;
            }
        }
        for request in requests {
            let turn = request.turn.filter(|_| by_turn);
            let Some(place) = places.get_mut(&turn).and_then(Vec::pop) else {
                without += 1;
                continue;
            };
            session.said[place].message.usage = Some(request.usage);
            session.said[place].message.usage_id = Some(request.id);
        }
        if without > 0 {
            let words = format!("usage of requests without an answer ({without})");
            session.changes.lost.push(words);
        }
        session
    }
}

fn tokens(usage: &Value) -> Usage {
    Usage {
        input: count_at(usage, "/inputTokens"),
        output: count_at(usage, "/outputTokens"),
        cache_read: count_at(usage, "/cacheReadTokens"),
        cache_written: count_at(usage, "/cacheWriteTokens"),
        estimated: false,
    }
}

fn call(request: &Value) -> ToolCall {
    ToolCall {
        id: text_at(request, "/toolCallId")
            .unwrap_or_default()
            .to_owned(),
        name: text_at(request, "/name").unwrap_or("tool").to_owned(),
        arguments: request.get("arguments").cloned().unwrap_or_default(),
    }
}

/// Returns the text of an event that the program shows to the user or sends to the agent.
fn notice<'a>(kind: &str, data: &'a Value) -> Option<&'a str> {
    let pointer = match kind {
        "session.error" | "session.warning" | "session.info" => "/message",
        "system.notification" => "/content",
        "session.handoff" | "session.task_complete" => "/summary",
        "subagent.failed" => "/error",
        _ => return None,
    };
    text_at(data, pointer)
}
