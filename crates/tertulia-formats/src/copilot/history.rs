//! Reads the documents of the first versions: messages as they were sent to the model, without ids
//! and times of their own.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::Value;

use super::{AGENT, PROGRAM};
use crate::importer::{Answer, Input, ReadError, SessionBuilder, call_of_text, text_at, utc_time};
use tertulia_core::entry::{ToolCall, ToolOutcome};
use tertulia_core::foreign::Foreign;

/// Maximum size of a document.
const LIMIT: u64 = 200_000_000;

/// Returns true if a file is such a document.
pub(super) fn is_one(path: &Path, beginning: &[u8]) -> bool {
    let is_named =
        path.extension().is_some_and(|ending| ending == "json") || path == Path::new("-");
    let text = String::from_utf8_lossy(beginning);
    let has = |key: &str| text.contains(key);
    is_named && has("\"sessionId\"") && has("\"startTime\"") && has("\"chatMessages\"")
}

/// Reads the session of a document.
pub(super) fn read(input: &Input<'_>) -> Result<Option<Foreign>, ReadError> {
    let document: Value = serde_json::from_slice(&input.read(LIMIT)?)
        .map_err(|error| ReadError::Invalid(format!("it is not JSON: {error}")))?;
    let session = text_at(&document, "/sessionId").unwrap_or("unknown");
    let started = text_at(&document, "/startTime").and_then(utc_time);
    let mut builder = SessionBuilder::new(PROGRAM, AGENT);
    builder.at(started);
    // Calls without a result yet.
    let mut open = VecDeque::new();
    let messages = document.get("chatMessages").and_then(Value::as_array);
    for (place, message) in messages.into_iter().flatten().enumerate() {
        let id = format!("{session}#{place}");
        let text = text(message);
        match text_at(message, "/role") {
            Some("user") => builder.user(&id, &text),
            Some("assistant") => {
                let tool_calls = calls(message, &id);
                open.extend(tool_calls.iter().map(|call| call.id.clone()));
                let answer = Answer {
                    text: &text,
                    tool_calls,
                    ..Answer::default()
                };
                builder.agent(&id, answer);
            }
            Some("tool") => {
                let named = text_at(message, "/tool_call_id").map(str::to_owned);
                open.retain(|call| Some(call) != named.as_ref());
                let call = named.or_else(|| open.pop_front()).unwrap_or_default();
                builder.tool_result(&id, &call, &text, ToolOutcome::Ok);
            }
            role => builder
                .skipped
                .count(&format!("{} messages", role.unwrap_or("other"))),
        }
    }
    let session = builder.finish(session, started);
    Ok((!session.said.is_empty()).then_some(session))
}

fn text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| text_at(part, "/text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn calls(message: &Value, id: &str) -> Vec<ToolCall> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().enumerate();
    calls
        .map(|(place, call)| {
            let unnamed = format!("{id}/{place}");
            let id = text_at(call, "/id").unwrap_or(&unnamed);
            let name = text_at(call, "/function/name").unwrap_or("tool");
            let arguments = text_at(call, "/function/arguments").unwrap_or("{}");
            call_of_text(id, name, arguments)
        })
        .collect()
}
