//! Response items: messages, reasoning, tool calls and their results.

use serde_json::Value;

use super::output;
use crate::importer::{Skipped, call_of_text, placeholder, text_at};
use tertulia_core::entry::{ToolCall, ToolOutcome};

/// What an item is in the conversation.
#[derive(Debug)]
pub(super) enum Item {
    /// Words of the user.
    User(String),
    /// Words of the program.
    System(String),
    /// Words of the agent.
    Text(String),
    /// A summary of the agent's reasoning.
    Thought(String),
    /// A call of a tool.
    Call(ToolCall),
    /// The result of a call.
    Result(String, String, ToolOutcome),
    /// Context for the model, which may name the working directory.
    Context(String),
    /// Nothing to keep.
    Nothing,
}

/// Beginnings of what the program writes in the user's place for the model.
const CONTEXT: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<skill>",
    "<turn_aborted>",
    "<recommended_plugins>",
    "<goal_context>",
    "<external_",
    "<codex_internal_context",
    "<hook_prompt",
    "<permissions instructions>",
    "<model_switch>",
    "<collaboration_mode>",
];

/// Beginnings of notices of the program in the user's place.
const NOTICES: &[&str] = &[
    "<user_shell_command>",
    "<subagent_notification>",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged for ",
];

/// Reads an item.
pub(super) fn read(payload: &Value, skipped: &mut Skipped) -> Item {
    let kind = text_at(payload, "/type").unwrap_or("items without a type");
    match kind {
        "message" => message(payload, skipped),
        "reasoning" => reasoning(payload, skipped),
        "function_call" => {
            let arguments = text_at(payload, "/arguments").unwrap_or_default();
            Item::Call(call_of_text(
                text_at(payload, "/call_id").unwrap_or_default(),
                text_at(payload, "/name").unwrap_or("tool"),
                arguments,
            ))
        }
        "custom_tool_call" => call(payload, text_at(payload, "/name"), "/input"),
        "local_shell_call" => call(payload, Some("local_shell"), "/action"),
        "web_search_call" => call(payload, Some("web_search"), "/action"),
        "tool_search_call" => call(payload, Some("tool_search"), "/arguments"),
        "image_generation_call" => {
            skipped.count("generated images");
            call(payload, Some("image_generation"), "/revised_prompt")
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = payload.get("output").unwrap_or(&Value::Null);
            let (text, outcome) = output::read(output, skipped);
            match text_at(payload, "/call_id") {
                Some(call) => Item::Result(call.to_owned(), text, outcome),
                None => Item::System(text),
            }
        }
        "tool_search_output" => {
            let tools = payload.get("tools").and_then(Value::as_array);
            let names = tools.into_iter().flatten();
            let names: Vec<&str> = names.filter_map(|tool| text_at(tool, "/name")).collect();
            let call = text_at(payload, "/call_id").unwrap_or_default().to_owned();
            Item::Result(call, names.join("\n"), ToolOutcome::Ok)
        }
        // Of another agent.
        "agent_message" => words(texts_at(payload, skipped), Item::System),
        "compaction" | "compaction_summary" | "context_compaction" => {
            skipped.count("encrypted summaries");
            Item::Nothing
        }
        kind => {
            skipped.count(kind);
            Item::Nothing
        }
    }
}

fn call(payload: &Value, name: Option<&str>, arguments: &str) -> Item {
    let id = text_at(payload, "/call_id").or_else(|| text_at(payload, "/id"));
    Item::Call(ToolCall {
        id: id.unwrap_or_default().to_owned(),
        name: name.unwrap_or("tool").to_owned(),
        arguments: payload.pointer(arguments).cloned().unwrap_or_default(),
    })
}

fn message(payload: &Value, skipped: &mut Skipped) -> Item {
    match text_at(payload, "/role") {
        Some("assistant") => words(texts_at(payload, skipped), Item::Text),
        Some("user") => user(payload, skipped),
        _ => {
            skipped.count("context for the model");
            Item::Context(texts_at(payload, skipped).join("\n"))
        }
    }
}

fn words(texts: Vec<String>, of: impl Fn(String) -> Item) -> Item {
    match texts.iter().all(String::is_empty) {
        true => Item::Nothing,
        false => of(texts.join("\n")),
    }
}

/// Returns what the user wrote, without what the program added for the model.
fn user(payload: &Value, skipped: &mut Skipped) -> Item {
    let kinds = payload.pointer("/internal_chat_message_metadata_passthrough/content_item_kinds");
    let kinds = kinds.and_then(Value::as_array);
    let texts = texts_at(payload, skipped);
    let mut written = Vec::new();
    let mut context = Vec::new();
    for (place, text) in texts.into_iter().enumerate() {
        let kind = kinds
            .and_then(|kinds| kinds.get(place))
            .and_then(Value::as_str);
        let is_context = match kind {
            Some(kind) if kind.starts_with("user.") => false,
            None | Some("unknown") => begins_with(&text, CONTEXT),
            Some(_) => !begins_with(&text, NOTICES),
        };
        match is_context {
            true => context.push(text),
            false => written.push(text),
        }
    }
    for _ in &context {
        skipped.count("context for the model");
    }
    if written.is_empty() {
        return match context.is_empty() {
            true => Item::Nothing,
            false => Item::Context(context.join("\n")),
        };
    }
    let written = written.join("\n");
    match begins_with(&written, NOTICES) {
        true => Item::System(written),
        false => Item::User(written),
    }
}

fn begins_with(text: &str, beginnings: &[&str]) -> bool {
    let text = text.trim_start();
    beginnings.iter().any(|words| text.starts_with(words))
}

fn reasoning(payload: &Value, skipped: &mut Skipped) -> Item {
    if text_at(payload, "/encrypted_content").is_some() {
        skipped.count("encrypted reasoning");
    }
    let of = |field: &str| -> Vec<&str> {
        let parts = payload.get(field).and_then(Value::as_array);
        let parts = parts.into_iter().flatten();
        parts.filter_map(|part| text_at(part, "/text")).collect()
    };
    let mut thoughts = of("summary");
    if thoughts.is_empty() {
        thoughts = of("content");
    }
    match thoughts.is_empty() {
        true => Item::Nothing,
        false => Item::Thought(thoughts.join("\n")),
    }
}

fn texts_at(payload: &Value, skipped: &mut Skipped) -> Vec<String> {
    let content = payload.get("content").unwrap_or(&Value::Null);
    texts(content, skipped)
}

/// Returns the texts of content, with a placeholder for everything else.
pub(super) fn texts(content: &Value, skipped: &mut Skipped) -> Vec<String> {
    let no_parts = Vec::new();
    let parts = match content {
        Value::String(text) if !text.is_empty() => return vec![text.clone()],
        Value::Array(parts) => parts,
        _ => &no_parts,
    };
    let texts = parts.iter().map(|part| match part.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => {
            let kind = text_at(part, "/type").unwrap_or("part");
            let kind = kind.trim_start_matches("input_");
            skipped.count(&format!("{kind} parts"));
            placeholder(kind, None)
        }
    });
    texts.collect()
}
