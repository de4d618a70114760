//! Reads the sessions of goose: older ones are JSON lines, newer ones rows of a SQLite database. The
//! program numbers messages anew when it converts or compacts a session, so that they are
//! recognised by time and content instead.

mod content;
#[cfg(feature = "sqlite")]
mod database;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::importer::{
    Importer, Input, JsonLine, JsonLines, ReadError, Take, attach_last, count_at, first_objects,
    text_at, utc_time,
};
use content::{Messages, Record};
use tertulia_core::entry::Usage;
use tertulia_core::foreign::Foreign;

/// Name of the program in `import --from`.
const PROGRAM: &str = "goose";
/// Name of the agent that answers.
const AGENT: &str = "goose";
/// Name of the database.
#[cfg(feature = "sqlite")]
const DATABASE: &str = "sessions.db";

/// Importer of goose's sessions.
#[derive(Debug)]
pub struct Goose;

impl Importer for Goose {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    #[cfg(feature = "sqlite")]
    fn is_candidate(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == DATABASE)
    }

    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool {
        #[cfg(feature = "sqlite")]
        if database::is_one(path, beginning) {
            return true;
        }
        let _ = path;
        first_objects(beginning).take(3).any(|line| {
            let role = text_at(&line, "/role");
            let is_of_a_person = matches!(role, Some("user" | "assistant"));
            is_of_a_person && line["created"].is_i64() && line["content"].is_array()
        })
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        #[cfg(feature = "sqlite")]
        if crate::importer::is_database(&input.beginning()?) {
            return database::read(input, take);
        }
        if let Some(session) = session_file(input)? {
            let _ = take(session);
        }
        Ok(())
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let folder = match (env("GOOSE_PATH_ROOT"), env("XDG_DATA_HOME")) {
            (Some(root), _) => PathBuf::from(root).join("data"),
            (None, Some(data)) => PathBuf::from(data).join("goose"),
            (None, None) => home.join(".local/share/goose"),
        };
        vec![folder.join("sessions")]
    }
}

/// Reads a file of JSON lines: the first describes the session, the others are its messages.
fn session_file(input: &Input<'_>) -> Result<Option<Foreign>, ReadError> {
    let mut messages = Messages::new(None);
    let mut header = Value::Null;
    let mut damaged = Vec::new();
    let mut lines = JsonLines::new(input.open()?);
    while let Some(line) = lines.next_line()? {
        match line {
            JsonLine::Damaged(number) => damaged.push(number),
            JsonLine::Object(_, line) if line.get("role").is_none() && header.is_null() => {
                header = line;
            }
            JsonLine::Object(_, line) => messages.read(Record::of_line(line)),
        }
    }
    let name = input.path.file_stem().and_then(|stem| stem.to_str());
    let original = name.filter(|_| input.content.is_none());
    let original = original.or(text_at(&header, "/id")).unwrap_or("unknown");
    let created_at = text_at(&header, "/created_at").and_then(utc_time);
    let mut session = messages.finish(original, created_at);
    if session.said.is_empty() {
        return Ok(None);
    }
    let title = text_at(&header, "/name").or(text_at(&header, "/description"));
    session.title = title.map(str::to_owned);
    session.source.cwd = text_at(&header, "/working_dir").map(str::to_owned);
    session.changes.damaged = damaged;
    let last = Usage::told(
        count_at(&header, "/input_tokens"),
        count_at(&header, "/output_tokens"),
    );
    attach_last(&mut session, last);
    Ok(Some(session))
}
