//! Turns one line into messages. Claude Code writes each block of an answer on a line of its own,
//! and repeats the usage of the whole answer on each of them.

use serde_json::Value;

use super::machine_text;
use crate::importer::{Answer, SessionBuilder, Skipped, count_at, is_true_at, text_at};
use tertulia_core::entry::{ToolCall, ToolOutcome, Usage};
use tertulia_core::foreign::claude_usage_id;

/// What a line leaves for the next one.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Thinking, and the id of the answer that it belongs to.
    thought: Option<(String, String)>,
    /// The answer whose usage was added, and where.
    counted: Option<(String, usize)>,
    /// Ids of the messages that the next compaction summary does not cover.
    kept: Vec<String>,
}

impl Pending {
    /// Names thinking that no answer followed: it comes with its answer in a later import.
    pub(super) fn finish(&mut self, builder: &mut SessionBuilder) {
        if self.thought.take().is_some() {
            let words = "thinking at the end, without an answer yet (1)";
            builder.changes.lost.push(words.to_owned());
        }
    }
}

/// Returns true if a person wrote the line, as opposed to the program or a tool.
pub(super) fn is_prompt(line: &Value) -> bool {
    let is_result = |block: &Value| text_at(block, "/type") == Some("tool_result");
    text_at(line, "/type") == Some("user")
        && !is_of_the_program(line)
        && match line.pointer("/message/content") {
            Some(Value::Array(blocks)) => !blocks.iter().any(is_result),
            Some(Value::String(_)) => true,
            _ => false,
        }
}

/// Returns true if the program wrote the line in the user's place.
fn is_of_the_program(line: &Value) -> bool {
    let is_machine_text = || match line.pointer("/message/content") {
        Some(Value::String(text)) => machine_text::is_one(text),
        Some(Value::Array(blocks)) => {
            let mut texts = blocks.iter().map(|block| text_at(block, "/text"));
            !blocks.is_empty() && texts.all(|text| text.is_some_and(machine_text::is_one))
        }
        _ => false,
    };
    is_true_at(line, "/isMeta") || is_true_at(line, "/isCompactSummary") || is_machine_text()
}

/// Adds the messages of a line.
pub(super) fn read(
    line: &Value,
    builder: &mut SessionBuilder,
    pending: &mut Pending,
    skipped: &mut Skipped,
) {
    let time = text_at(line, "/timestamp").and_then(|time| time.parse().ok());
    builder.at(time);
    let kind = text_at(line, "/type").unwrap_or("lines without a type");
    let id = text_at(line, "/uuid").unwrap_or_default();
    match (kind, line.pointer("/message/content")) {
        ("user" | "assistant", _) if id.is_empty() => skipped.count("messages without an id"),
        ("user", Some(content)) if is_true_at(line, "/isCompactSummary") => {
            let kept = std::mem::take(&mut pending.kept);
            builder.compaction(id, Answer::of_text(&all_text(content)), &kept);
        }
        ("user", Some(content)) => user(line, id, content, builder),
        ("assistant", Some(content))
            if is_true_at(line, "/isApiErrorMessage") || is_synthetic(line) =>
        {
            builder.system(id, &all_text(content));
        }
        ("assistant", Some(content)) => assistant(line, id, content, builder, pending),
        ("user" | "assistant", None) => skipped.count("messages without content"),
        ("system", _) => {
            if text_at(line, "/subtype") == Some("compact_boundary") {
                pending.kept = kept(line);
            }
            match text_at(line, "/content").filter(|_| !id.is_empty()) {
                Some(text) => builder.system(id, text),
                None => skipped.count(kind),
            }
        }
        // Part of the title, which is kept.
        ("summary" | "custom-title" | "ai-title", _) => {}
        _ => skipped.count(kind),
    }
}

/// Returns true if the program wrote the answer itself, without asking the model.
fn is_synthetic(line: &Value) -> bool {
    let blocks = line.pointer("/message/content").and_then(Value::as_array);
    let is_text = |block: &Value| text_at(block, "/type") == Some("text");
    text_at(line, "/message/model") == Some("<synthetic>")
        && blocks.is_some_and(|blocks| blocks.iter().all(is_text))
}

/// Returns the ids of the messages that the program keeps beside a compaction summary. Results of
/// tools have the number of their block in theirs.
fn kept(boundary: &Value) -> Vec<String> {
    let listed = boundary.pointer("/compactMetadata/preservedMessages/uuids");
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    let first = text_at(boundary, "/compactMetadata/preservedSegment/headUuid");
    let ids = listed.filter_map(Value::as_str).chain(first);
    ids.flat_map(|id| [id.to_owned(), format!("{id}#0")])
        .collect()
}

fn user(line: &Value, id: &str, content: &Value, builder: &mut SessionBuilder) {
    let Value::Array(blocks) = content else {
        let text = content.as_str().unwrap_or_default();
        return words(line, id, text, builder);
    };
    let mut written = Vec::new();
    let is_of_the_program = is_of_the_program(line);
    for (place, block) in blocks.iter().enumerate() {
        let text = text_at(block, "/text").unwrap_or_default();
        match text_at(block, "/type") {
            Some("text") if !is_of_the_program && machine_text::is_one(text) => {
                builder.skipped.count("context for the model");
            }
            Some("text") => written.push(text.to_owned()),
            Some("tool_result") => {
                let id = format!("{id}#{place}");
                result(line, &id, block, builder);
            }
            _ => written.push(placeholder(block, builder)),
        }
    }
    if !written.is_empty() {
        words(line, id, &written.join("\n"), builder);
    }
}

fn words(line: &Value, id: &str, text: &str, builder: &mut SessionBuilder) {
    match is_of_the_program(line) {
        true => builder.system(id, text),
        false => builder.user(id, text),
    }
}

fn result(line: &Value, id: &str, block: &Value, builder: &mut SessionBuilder) {
    let call = text_at(block, "/tool_use_id").unwrap_or_default();
    let text = match block.get("content") {
        Some(Value::Array(blocks)) => {
            let texts: Vec<String> = blocks
                .iter()
                .map(|block| match text_at(block, "/type") {
                    Some("text") => text_at(block, "/text").unwrap_or_default().to_owned(),
                    _ => placeholder(block, builder),
                })
                .collect();
            texts.join("\n")
        }
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let decision = text_at(line, "/permissionDecision/decision").unwrap_or_default();
    let outcome = match is_true_at(block, "/is_error") {
        _ if decision == "reject" => ToolOutcome::Denied,
        true if text.starts_with("The user doesn't want to") => ToolOutcome::Denied,
        true if is_true_at(line, "/toolUseResult/interrupted") => ToolOutcome::Interrupted,
        true => ToolOutcome::Failed,
        false => ToolOutcome::Ok,
    };
    builder.tool_result(id, call, &text, outcome);
}

fn assistant(
    line: &Value,
    id: &str,
    content: &Value,
    builder: &mut SessionBuilder,
    pending: &mut Pending,
) {
    let message = text_at(line, "/message/id").unwrap_or(id);
    let no_blocks = Vec::new();
    let blocks = content.as_array().unwrap_or(&no_blocks);
    let mut written = Vec::new();
    let mut tool_calls = Vec::new();
    let mut thought = match pending.thought.take() {
        Some((of, thought)) if of == message => Some(thought),
        _ => None,
    };
    for block in blocks {
        match text_at(block, "/type") {
            Some("text") => written.push(text_at(block, "/text").unwrap_or_default().to_owned()),
            Some("tool_use" | "server_tool_use") => tool_calls.push(ToolCall {
                id: text_at(block, "/id").unwrap_or_default().to_owned(),
                name: text_at(block, "/name").unwrap_or("tool").to_owned(),
                arguments: block.get("input").cloned().unwrap_or_default(),
            }),
            Some("thinking") => {
                let text = text_at(block, "/thinking").unwrap_or_default();
                thought = Some(match thought {
                    Some(before) => format!("{before}\n{text}"),
                    None => text.to_owned(),
                });
            }
            Some("redacted_thinking") => builder.skipped.count("encrypted thinking"),
            _ => written.push(placeholder(block, builder)),
        }
    }
    if let Some(text) = content.as_str() {
        written.push(text.to_owned());
    }
    let thought = thought.filter(|thought| !thought.is_empty());
    if written.is_empty() && tool_calls.is_empty() {
        // The answer is on the next line.
        pending.thought = thought.map(|thought| (message.to_owned(), thought));
        return;
    }
    let usage = usage(line, message, builder, pending);
    let model = text_at(line, "/message/model").filter(|model| *model != "<synthetic>");
    builder.agent(
        id,
        Answer {
            text: &written.join("\n"),
            thought,
            tool_calls,
            usage_id: usage.map(|_| claude_usage_id(message, text_at(line, "/requestId"))),
            usage,
            model,
            interrupted: is_true_at(line, "/isAbortedMidStream"),
        },
    );
}

/// Returns the usage of the answer. Only the last line of an answer keeps it, which has the final
/// figures.
fn usage(
    line: &Value,
    message: &str,
    builder: &mut SessionBuilder,
    pending: &mut Pending,
) -> Option<Usage> {
    let usage = line.pointer("/message/usage")?;
    let (read, written) = (
        count_at(usage, "/cache_read_input_tokens"),
        count_at(usage, "/cache_creation_input_tokens"),
    );
    let usage = Usage {
        input: count_at(usage, "/input_tokens") + read + written,
        output: count_at(usage, "/output_tokens"),
        cache_read: read,
        cache_written: written,
        estimated: false,
    };
    if let Some((counted, place)) = &pending.counted
        && counted == message
    {
        builder.remove_usage(*place);
    }
    pending.counted = Some((message.to_owned(), builder.said().len()));
    Some(usage)
}

/// Returns a text in the place of a block that a message cannot contain.
fn placeholder(block: &Value, builder: &mut SessionBuilder) -> String {
    let kind = text_at(block, "/type").unwrap_or("block").to_owned();
    builder.skipped.count(&format!("{kind} blocks"));
    match text_at(block, "/source/media_type") {
        Some(media) => format!("[{kind}: {media}]"),
        None => format!("[{kind}]"),
    }
}

fn all_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| text_at(block, "/text"))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
