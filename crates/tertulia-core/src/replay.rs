//! Replays: what a log offers to be played again to another agent (the prompts of its user and the
//! recorded results of tools), and the comparison of both logs.

mod divergence;
#[cfg(test)]
mod tests;

pub use divergence::{Comparison, TurnComparison, TurnMatch, compare, similarity};

use jiff::Timestamp;
use serde_json::Value;

use crate::entry::{
    Attachment, Body, Entry, Message, NOT_RUN_MARK, Role, Speaker, SpeakerKind, ToolCall,
    ToolOutcome, Usage, plain,
};
use crate::price::{Cost, PriceTable};
use crate::redact::redact;

/// Name of the failure of an answer that the user cancelled.
const CANCELLED: &str = "cancelled";

/// A log as turns, and what of it is not part of any turn that can be replayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The turns, in order.
    pub turns: Vec<RecordedTurn>,
    /// Number of prompts that the user cancelled before an answer: withdrawn, so not played again.
    pub withdrawn: usize,
    /// Number of system messages.
    pub system: usize,
    /// Number of messages before the first prompt.
    pub early: usize,
}

/// A prompt of the user, and what an agent did until the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTurn {
    /// Id of the person who sent the prompt.
    pub by: String,
    /// The prompt.
    pub prompt: String,
    /// Files attached to it.
    pub attachments: Vec<Attachment>,
    /// True if secrets in the prompt were replaced when it was saved.
    pub redacted: bool,
    /// Tool calls of the agent, in order.
    pub calls: Vec<RecordedCall>,
    /// Text of the agent: its messages, separated by empty lines.
    pub text: String,
    /// How the answer ended.
    pub end: AnswerEnd,
    /// Tokens of the answer and of compactions before it, by model.
    pub usage: Vec<ModelUsage>,
}

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The call.
    pub call: ToolCall,
    /// Its result, if the log has one.
    pub result: Option<RecordedResult>,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResult {
    /// Text that the agent received.
    pub text: String,
    /// Outcome of the call.
    pub outcome: ToolOutcome,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerEnd {
    /// With a complete message.
    Complete,
    /// The agent failed, with this message.
    Failed(String),
    /// It has no end: cancelled, cut off by a crash, or never begun.
    CutOff,
}

/// Tokens that one model used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUsage {
    /// The model, if it is known.
    pub model: Option<String>,
    /// The tokens.
    pub usage: Usage,
}

impl RecordedCall {
    /// Returns true if both calls have the same name and arguments. A call that was refused because
    /// the recording lacks it is another one, even if the original made it without getting a result.
    pub fn is_same(&self, other: &RecordedCall) -> bool {
        self.call.name == other.call.name
            && self.call.arguments == other.call.arguments
            && self.is_unrecorded() == other.is_unrecorded()
    }

    /// Returns true if the call was refused in a replay because the recording lacks it.
    pub fn is_unrecorded(&self) -> bool {
        let result = self.result.as_ref();
        result.is_some_and(|result| result.text == unrecorded())
    }
}

impl RecordedTurn {
    fn new(prompt: &str, redacted: bool) -> RecordedTurn {
        RecordedTurn {
            by: String::new(),
            prompt: prompt.to_owned(),
            attachments: Vec::new(),
            redacted,
            calls: Vec::new(),
            text: String::new(),
            end: AnswerEnd::CutOff,
            usage: Vec::new(),
        }
    }

    /// Returns true if the agent has neither answered nor called a tool.
    pub fn is_silent(&self) -> bool {
        self.calls.is_empty() && self.text.is_empty() && self.end == AnswerEnd::CutOff
    }

    fn take_answer(&mut self, message: &Message) {
        let text = message.content.trim_end();
        if !text.is_empty() {
            if !self.text.is_empty() {
                self.text.push_str("\n\n");
            }
            self.text.push_str(text);
        }
        let calls = message.tool_calls.iter().cloned();
        self.calls
            .extend(calls.map(|call| RecordedCall { call, result: None }));
        // After a tool call, the agent still has to answer.
        self.end = match message.interrupted || !message.tool_calls.is_empty() {
            true => AnswerEnd::CutOff,
            false => AnswerEnd::Complete,
        };
        self.spend(message.model.as_ref(), message.usage);
    }

    /// Adds a result to the oldest call with its id that has none: ids may repeat.
    fn take_result(&mut self, id: &str, message: &Message) {
        let mut open = self.calls.iter_mut().filter(|call| call.result.is_none());
        if let Some(call) = open.find(|call| call.call.id == id) {
            call.result = Some(RecordedResult {
                text: message.content.clone(),
                outcome: message.tool_outcome().unwrap_or(ToolOutcome::Ok),
            });
        }
    }

    fn spend(&mut self, model: Option<&String>, usage: Option<Usage>) {
        if let Some(usage) = usage {
            let model = model.cloned();
            self.usage.push(ModelUsage { model, usage });
        }
    }
}

impl Recording {
    /// Reads the turns of a log.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Recording {
        let mut recording = Recording::default();
        for entry in entries {
            recording.apply(entry);
        }
        recording
    }

    /// Keeps only the first `count` turns.
    pub fn keep_first(&mut self, count: usize) {
        self.turns.truncate(count);
    }

    /// Returns the recorded tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &RecordedCall> {
        self.turns.iter().flat_map(|turn| &turn.calls)
    }

    /// Returns the number of prompts in which secrets were replaced.
    pub fn redacted(&self) -> usize {
        self.turns.iter().filter(|turn| turn.redacted).count()
    }

    /// Adds the next entry of the log.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Message(message) => self.take_message(entry, message),
            Body::Failed(failed) => {
                let Some(turn) = self.turns.last_mut() else {
                    return;
                };
                let cancelled = failed.withdrawn || failed.kind == CANCELLED;
                match cancelled {
                    true if turn.is_silent() => {
                        self.withdrawn += 1;
                        self.turns.pop();
                    }
                    true => turn.end = AnswerEnd::CutOff,
                    false => turn.end = AnswerEnd::Failed(failed.message.clone()),
                }
            }
            Body::Compacted(compacted) => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.spend(compacted.model.as_ref(), compacted.usage);
                }
            }
            _ => {}
        }
    }

    fn take_message(&mut self, entry: &Entry, message: &Message) {
        match message.speaker.kind {
            SpeakerKind::Human => {
                let redacted = !entry.redacted.is_empty();
                return self.turns.push(RecordedTurn {
                    by: message.speaker.id.clone(),
                    attachments: message.attachments.clone(),
                    ..RecordedTurn::new(&message.content, redacted)
                });
            }
            SpeakerKind::System => return self.system += 1,
            SpeakerKind::Ai | SpeakerKind::Tool if message.role == Role::System => {
                return self.system += 1;
            }
            // The instruction of a pair's instructor, given to the worker: the reply has it.
            SpeakerKind::Ai if message.role == Role::User && message.thread.is_some() => return,
            SpeakerKind::Ai | SpeakerKind::Tool => {}
        }
        let Some(turn) = self.turns.last_mut() else {
            return self.early += 1;
        };
        match &message.tool_call_id {
            Some(id) => turn.take_result(id, message),
            None => turn.take_answer(message),
        }
    }
}

/// Returns the sum of the tokens of turns, or `None` if no answer reported any.
pub fn usage_of(turns: &[RecordedTurn]) -> Option<Usage> {
    let all = turns.iter().flat_map(|turn| &turn.usage);
    all.map(|spent| spent.usage).reduce(Usage::plus)
}

/// Returns what turns cost at prices of one time, so that two recordings can be compared. `None` if the
/// tokens, the model or its price of any answer are unknown.
pub fn cost_of(turns: &[RecordedTurn], prices: &PriceTable, at: Timestamp) -> Option<Cost> {
    let mut spent = turns.iter().flat_map(|turn| &turn.usage).peekable();
    spent.peek()?;
    let cost = |spent: &ModelUsage| {
        let price = prices.schedule(spent.model.as_deref()?).at(at)?;
        Some(price.cost(&spent.usage))
    };
    spent.map(cost).sum()
}

/// Recorded results that answer the tool calls of a replay, each once.
#[derive(Clone, Debug, Default)]
pub struct RecordedCalls {
    unused: Vec<(ToolCall, RecordedResult)>,
}

impl RecordedCalls {
    /// Takes the calls of a recording that have a result.
    pub fn of(recording: &Recording) -> RecordedCalls {
        let calls = recording.calls();
        let calls = calls.filter_map(|call| Some((call.call.clone(), call.result.clone()?)));
        RecordedCalls {
            unused: calls.collect(),
        }
    }

    /// Takes the result of the first unused call of the same tool with equal arguments.
    pub fn take(&mut self, call: &ToolCall) -> Option<RecordedResult> {
        let position = |arguments: &Value| {
            let mut recorded = self.unused.iter();
            recorded.position(|(known, _)| known.name == call.name && known.arguments == *arguments)
        };
        // A log has secrets replaced, which the agent uses as they are.
        let at = position(&call.arguments).or_else(|| position(&redacted(call).arguments))?;
        Some(self.unused.remove(at).1)
    }
}

/// Returns the result of a call that has no recorded result.
pub fn unrecorded() -> String {
    format!("{NOT_RUN_MARK}the recording has no such call]")
}

/// Returns a call as a log has it, with secrets replaced.
fn redacted(call: &ToolCall) -> ToolCall {
    let caller = Speaker::plain(&call.name, SpeakerKind::Tool);
    let mut body = Body::Message(Message {
        tool_calls: vec![call.clone()],
        ..plain(&caller, Role::Assistant, String::new())
    });
    body.for_each_text(&mut |text| *text = redact(text).text.into_owned());
    match body {
        Body::Message(mut message) => message.tool_calls.pop().unwrap_or_else(|| call.clone()),
        _ => call.clone(),
    }
}
