//! Reads the session files of Codex: JSON lines, one file per thread. A fork either names the part of
//! another thread that it continues, or begins with a copy of it.

mod about;
mod identity;
mod item;
mod output;
mod rollout;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::importer::{
    Importer, Input, JsonLine, JsonLines, ReadError, Take, first_objects, text_at, value_of,
};
use rollout::Rollout;

/// Name of the program in `import --from`.
const PROGRAM: &str = "codex";
/// Name of the agent that answers.
const AGENT: &str = "codex";

/// Importer of Codex's sessions.
#[derive(Debug)]
pub struct Codex;

impl Importer for Codex {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn is_candidate(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("rollout-") && name.ends_with(".jsonl.zst"))
    }

    fn recognises(&self, _: &Path, beginning: &[u8]) -> bool {
        // The first line contains the instructions for the model and may be longer than what is
        // looked at.
        let start = &beginning[..beginning.len().min(400)];
        let is_meta =
            value_of(start, "type").is_some_and(|kind| kind.starts_with(b"\"session_meta\""));
        let is_header = start.starts_with(b"{\"id\":\"")
            && value_of(start, "timestamp").is_some()
            && value_of(start, "instructions").is_some();
        if is_meta || is_header {
            return true;
        }
        first_objects(beginning).take(5).any(|line| {
            let kind = text_at(&line, "/type").unwrap_or_default();
            matches!(kind, "session_meta" | "response_item" | "turn_context")
                && line.get("payload").is_some()
        })
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let mut rollout = Rollout::new(input.path);
        let mut lines = JsonLines::new(input.open()?);
        while let Some(line) = lines.next_line()? {
            match line {
                JsonLine::Object(_, line) => rollout.read(&line),
                JsonLine::Damaged(number) => rollout.damaged.push(number),
            }
        }
        for session in rollout.sessions() {
            if take(session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let folder = env("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from);
        // A thread that was archived may be the origin of one that was not.
        vec![folder.join("archived_sessions"), folder.join("sessions")]
    }
}
