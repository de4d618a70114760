//! Reads the sessions of opencode: exported ones, its older folder of JSON files, and its database. A
//! fork copies the messages of its origin with new ids and the same times.

#[cfg(feature = "sqlite")]
mod database;
mod message;
mod session;
#[cfg(test)]
mod tests;
mod tree;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::importer::{Importer, Input, ReadError, Take, text_at, value_of};
use session::Session;
use tertulia_core::foreign::Foreign;

/// Name of the program in `import --from`.
const PROGRAM: &str = "opencode";
/// Name of the agent that answers.
const AGENT: &str = "opencode";

/// First bytes of a database.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Maximum size of an exported session.
const DOCUMENT_LIMIT: u64 = 500_000_000;

/// Importer of opencode's sessions.
#[derive(Debug)]
pub struct Opencode;

impl Importer for Opencode {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn is_candidate(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("opencode") && name.ends_with(".db"))
    }

    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool {
        if beginning.starts_with(DATABASE) {
            return self.is_candidate(path);
        }
        tree::is_part(path)
            || (is_session(beginning) && beginning.trim_ascii_start().starts_with(b"{"))
    }

    fn begun(&self, beginning: &[u8]) -> Option<Timestamp> {
        let time = value_of(beginning, "created")?;
        let end = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let time: i64 = std::str::from_utf8(&time[..end]).ok()?.parse().ok()?;
        Timestamp::from_millisecond(time).ok()
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        if input.beginning()?.starts_with(DATABASE) {
            return read_database(input, None, take);
        }
        if tree::is_part(input.path) {
            // It belongs to a session, which is read from its own file.
            return Ok(());
        }
        let content = input.read(DOCUMENT_LIMIT)?;
        let document: Value = serde_json::from_slice(&content)
            .map_err(|error| ReadError::Invalid(format!("it is damaged: {error}")))?;
        let session = match document.get("info") {
            Some(info) => exported(info, &document),
            None => tree::read(input.path, &document)?,
        };
        if let Some(session) = session.finish() {
            // There are no more sessions, be they wanted or not.
            let _ = take(session);
        }
        Ok(())
    }

    fn read_session(&self, input: &Input<'_>, id: &str) -> Result<Option<Foreign>, ReadError> {
        let mut found = None;
        let mut take = |session| {
            found = Some(session);
            ControlFlow::Break(())
        };
        match input.beginning()?.starts_with(DATABASE) {
            true => read_database(input, Some(id), &mut take)?,
            false => self.read(input, &mut take)?,
        }
        Ok(found.filter(|session: &Foreign| session.source.original == id))
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let data = env("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
        let folder = data.join("opencode");
        vec![folder.join("storage/session"), folder.join("opencode.db")]
    }
}

#[cfg(feature = "sqlite")]
fn read_database(
    input: &Input<'_>,
    wanted: Option<&str>,
    take: &mut Take<'_>,
) -> Result<(), ReadError> {
    match input.content {
        None => database::read(input.path, wanted, take),
        Some(_) => Err(ReadError::Invalid(
            "a database cannot be read from standard input; name its file".to_owned(),
        )),
    }
}

#[cfg(not(feature = "sqlite"))]
fn read_database(_: &Input<'_>, _: Option<&str>, _: &mut Take<'_>) -> Result<(), ReadError> {
    Err(ReadError::Invalid(
        "this program was built without support for databases".to_owned(),
    ))
}

/// Returns true if a document begins with a session's id, as exports and session files do.
fn is_session(beginning: &[u8]) -> bool {
    value_of(beginning, "id").is_some_and(|id| id.starts_with(b"\"ses_"))
}

/// Reads an exported session.
fn exported(info: &Value, document: &Value) -> Session {
    let mut session = Session::new(info);
    let messages = document.get("messages").and_then(Value::as_array);
    for message in messages.into_iter().flatten() {
        let parts = message.get("parts").and_then(Value::as_array);
        match message.get("info") {
            Some(info) => session.message(info, parts.map_or(&[], Vec::as_slice)),
            None => session.skip("messages without a description"),
        }
    }
    session
}

/// Returns the id of a session, a message or a part.
fn id_of(value: &Value) -> &str {
    text_at(value, "/id").unwrap_or_default()
}
