//! The parts of a message, gathered into steps: what the model wrote and called at once, and the
//! results.

use serde_json::Value;

use crate::importer::{Skipped, count_at, is_true_at, placeholder, text_at};
use tertulia_core::entry::{ToolCall, ToolOutcome, Usage};

/// One step of an answer.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// The text.
    pub(super) text: String,
    /// Reasoning before it.
    pub(super) thought: Option<String>,
    /// Tool calls.
    pub(super) calls: Vec<ToolCall>,
    /// Results of the calls: id of the call, text, outcome.
    pub(super) results: Vec<(String, String, ToolOutcome)>,
    /// Tokens used.
    pub(super) usage: Option<Usage>,
    /// True if the program recorded its end.
    pub(super) is_finished: bool,
}

impl Step {
    /// Returns true if there is nothing to keep.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.thought.is_none()
    }
}

/// Returns the steps of an answer. The last one may be unfinished.
pub(super) fn steps(parts: &[Value], skipped: &mut Skipped) -> Vec<Step> {
    let mut steps = vec![Step::default()];
    for part in parts {
        let Some(step) = steps.last_mut() else {
            break;
        };
        match text_at(part, "/type").unwrap_or("untyped") {
            "text" => push_text(&mut step.text, text_at(part, "/text")),
            "reasoning" => {
                if let Some(text) = text_at(part, "/text") {
                    push_text(step.thought.get_or_insert_default(), Some(text));
                }
            }
            "tool" => tool(part, step, skipped),
            "step-finish" => {
                step.usage = usage(part.get("tokens"));
                step.is_finished = true;
                steps.push(Step::default());
            }
            "step-start" => {}
            kind => skipped.count(&format!("{kind} parts")),
        }
    }
    if steps.last().is_some_and(Step::is_empty) {
        steps.pop();
    }
    steps
}

fn push_text(text: &mut String, more: Option<&str>) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more.unwrap_or_default());
}

fn tool(part: &Value, step: &mut Step, skipped: &mut Skipped) {
    let id = text_at(part, "/callID").unwrap_or_default().to_owned();
    step.calls.push(ToolCall {
        id: id.clone(),
        name: text_at(part, "/tool").unwrap_or("tool").to_owned(),
        arguments: part.pointer("/state/input").cloned().unwrap_or_default(),
    });
    let (text, outcome) = match text_at(part, "/state/status") {
        Some("completed") => (text_at(part, "/state/output"), ToolOutcome::Ok),
        Some("error") => {
            let error = text_at(part, "/state/error");
            (error, failure(error.unwrap_or_default()))
        }
        // It was running when the answer ended.
        _ => (None, ToolOutcome::Interrupted),
    };
    let files = part.pointer("/state/attachments").and_then(Value::as_array);
    for _ in files.into_iter().flatten() {
        skipped.count("attachments of tool results");
    }
    step.results
        .push((id, text.unwrap_or_default().to_owned(), outcome));
}

fn failure(error: &str) -> ToolOutcome {
    match error {
        error if error.contains("rejected permission") => ToolOutcome::Denied,
        error if error.contains("specified a rule which prevents you") => ToolOutcome::Denied,
        error if error.contains("aborted") => ToolOutcome::Interrupted,
        _ => ToolOutcome::Failed,
    }
}

/// Returns what the user wrote, without what the program added for the model.
pub(super) fn written(parts: &[Value], skipped: &mut Skipped) -> String {
    let mut written = String::new();
    for part in parts {
        match text_at(part, "/type").unwrap_or("untyped") {
            "text" if is_true_at(part, "/synthetic") || is_true_at(part, "/ignored") => {
                skipped.count("context for the model");
            }
            "text" => push_text(&mut written, text_at(part, "/text")),
            "subtask" => push_text(&mut written, text_at(part, "/prompt")),
            "file" => {
                skipped.count("file parts");
                let name = text_at(part, "/filename").or_else(|| text_at(part, "/mime"));
                push_text(&mut written, Some(&placeholder("file", name)));
            }
            // The text names the agent.
            "agent" => {}
            kind => skipped.count(&format!("{kind} parts")),
        }
    }
    written
}

/// Returns usage. Newer versions record reasoning beside the output, older ones as part of it.
pub(super) fn usage(tokens: Option<&Value>) -> Option<Usage> {
    let tokens = tokens?;
    let counts = [
        "/input",
        "/cache/read",
        "/cache/write",
        "/output",
        "/reasoning",
    ];
    let [input, read, write, output, reasoning] = counts.map(|at| count_at(tokens, at));
    let input = input.saturating_add(read).saturating_add(write);
    let all = input.saturating_add(output).saturating_add(reasoning);
    let output = match all == count_at(tokens, "/total") {
        true => output.saturating_add(reasoning),
        false => output,
    };
    let usage = Usage {
        input,
        output,
        cache_read: read,
        cache_written: write,
        estimated: false,
    };
    (usage.input > 0 || usage.output > 0).then_some(usage)
}
