//! Reads the session files of Gemini CLI: JSON lines, or one document in older versions. A record
//! with a known id completes the one before it; `$set` replaces the state; `$rewindTo` takes messages
//! back. One file may contain several sessions.

mod message;
mod project;
mod session;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::importer::{
    Importer, Input, JsonLine, JsonLines, ReadError, Take, first_objects, text_at, value_of,
};
use project::Folder;
use session::Session;
use tertulia_core::foreign::Foreign;

/// Name of the program in `import --from`.
const PROGRAM: &str = "gemini-cli";
/// Name of the agent that answers.
const AGENT: &str = "gemini";

/// Maximum size of a session that is one document.
const DOCUMENT_LIMIT: u64 = 500_000_000;

/// Importer of Gemini CLI's sessions.
#[derive(Debug)]
pub struct GeminiCli;

impl Importer for GeminiCli {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn recognises(&self, _path: &Path, beginning: &[u8]) -> bool {
        let is_session = |line: &Value| {
            text_at(line, "/sessionId").is_some() && text_at(line, "/projectHash").is_some()
        };
        is_document(beginning)
            || first_objects(beginning)
                .take(5)
                .any(|line| is_session(&line))
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let mut file = SessionFile::new(input.path);
        if is_document(&input.beginning()?) {
            let content = input.read(DOCUMENT_LIMIT)?;
            let document = serde_json::from_slice(&content)
                .map_err(|error| ReadError::Invalid(format!("it is damaged: {error}")))?;
            file.read(&document);
        } else {
            let mut lines = JsonLines::new(input.open()?);
            while let Some(line) = lines.next_line()? {
                match line {
                    JsonLine::Object(_, line) => file.read(&line),
                    JsonLine::Damaged(number) => file.damaged.push(number),
                }
            }
        }
        for session in file.sessions() {
            if take(session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let home = env("GEMINI_CLI_HOME").map_or_else(|| home.to_owned(), PathBuf::from);
        vec![home.join(".gemini/tmp")]
    }
}

/// Returns true if a file is one document: its first line does not end where its object does.
fn is_document(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let line = beginning
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let is_line = serde_json::from_slice::<Value>(line).is_ok_and(|line| line.is_object());
    !is_line
        && beginning.trim_ascii_start().starts_with(b"{")
        && value_of(beginning, "sessionId").is_some()
        && value_of(beginning, "projectHash").is_some()
}

/// The content of a file.
#[derive(Debug)]
struct SessionFile<'a> {
    path: &'a Path,
    sessions: Vec<Session>,
    /// The session that the next record belongs to.
    current: usize,
    damaged: Vec<usize>,
}

impl<'a> SessionFile<'a> {
    fn new(path: &'a Path) -> SessionFile<'a> {
        SessionFile {
            path,
            sessions: Vec::new(),
            current: 0,
            damaged: Vec::new(),
        }
    }

    /// Adds a record.
    fn read(&mut self, record: &Value) {
        let set = record.get("$set").filter(|set| set.is_object());
        let is_header = set.is_none() && record.get("id").is_none();
        let state = set.or(Some(record).filter(|_| is_header));
        if let Some(id) = state.and_then(|state| text_at(state, "/sessionId")) {
            self.switch(id);
        }
        let session = self.session();
        if let Some(id) = text_at(record, "/$rewindTo") {
            return session.rewind(id);
        }
        match state {
            Some(state) => session.state(state),
            None => session.message(record),
        }
    }

    fn switch(&mut self, id: &str) {
        let known = self.sessions.iter().position(|session| session.id == id);
        self.current = known.unwrap_or_else(|| {
            self.sessions.push(Session::new(id));
            self.sessions.len() - 1
        });
    }

    fn session(&mut self) -> &mut Session {
        if self.sessions.is_empty() {
            let name = self.path.file_stem().and_then(|name| name.to_str());
            self.sessions.push(Session::new(name.unwrap_or("unknown")));
        }
        &mut self.sessions[self.current]
    }

    fn sessions(self) -> Vec<Foreign> {
        let folder = Folder::of(self.path);
        let mut all = Vec::new();
        for session in self.sessions {
            all.extend(session.finish(&folder));
        }
        // Damage is reported once, with the first session.
        if let Some(first) = all.first_mut() {
            first.changes.damaged = self.damaged;
        }
        all
    }
}
