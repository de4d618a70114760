//! Results of tool calls: their text, and whether the call succeeded.

use serde_json::Value;

use super::item::texts;
use crate::importer::{Skipped, text_at};
use tertulia_core::entry::ToolOutcome;

/// Beginnings of results of calls that could not be executed.
const FAILURES: &[&str] = &[
    "failed to parse function arguments",
    "unsupported call",
    "unsupported custom tool call",
    "execution error",
    "exec_command failed",
    "write_stdin failed",
    "apply_patch verification failed",
];

/// Returns the text of a result, and the outcome of the call.
pub(super) fn read(output: &Value, skipped: &mut Skipped) -> (String, ToolOutcome) {
    match output {
        Value::String(text) => match recorded(text) {
            Some((text, code)) => (text, of_code(code)),
            None => (text.clone(), outcome(text)),
        },
        Value::Array(_) => {
            let text = texts(output, skipped).join("\n");
            let outcome = outcome(&text);
            (text, outcome)
        }
        Value::Object(_) => {
            let text = text_at(output, "/content").unwrap_or_default().to_owned();
            let outcome = match output.get("success").and_then(Value::as_bool) {
                Some(false) if outcome(&text) == ToolOutcome::Ok => ToolOutcome::Failed,
                _ => outcome(&text),
            };
            (text, outcome)
        }
        _ => (String::new(), ToolOutcome::Ok),
    }
}

/// Reads a result that is itself JSON, as older versions wrote it: the text, and the exit code.
fn recorded(text: &str) -> Option<(String, i64)> {
    let inner: Value = serde_json::from_str(text.trim()).ok()?;
    let code = inner.pointer("/metadata/exit_code")?.as_i64()?;
    Some((inner.get("output")?.as_str()?.to_owned(), code))
}

fn of_code(code: i64) -> ToolOutcome {
    match code {
        0 => ToolOutcome::Ok,
        _ => ToolOutcome::Failed,
    }
}

/// Returns the outcome that a result names: at its beginning, or in the lines before the output.
fn outcome(text: &str) -> ToolOutcome {
    let head = text.split("\nOutput:\n").next().unwrap_or_default();
    for line in head.lines().take(8) {
        let code = ["Process exited with code ", "Exit code: "]
            .iter()
            .find_map(|words| line.strip_prefix(words));
        if let Some(code) = code.and_then(|code| code.trim().parse().ok()) {
            return of_code(code);
        }
        if line.starts_with("aborted by user") || line == "aborted" {
            return ToolOutcome::Interrupted;
        }
        if line.ends_with("rejected by user") {
            return ToolOutcome::Denied;
        }
    }
    match FAILURES.iter().any(|words| text.starts_with(words)) {
        true => ToolOutcome::Failed,
        false => ToolOutcome::Ok,
    }
}
