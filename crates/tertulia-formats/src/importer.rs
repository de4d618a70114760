//! What importers of other programs' histories have in common: how a file is recognised and read,
//! and how a session is put together from what the file records.

mod branches;
mod builder;
#[cfg(all(test, feature = "sqlite"))]
pub(crate) mod damage;
#[cfg(feature = "sqlite")]
mod database;
mod input;
mod lines;
#[cfg(test)]
pub(crate) mod tests;
mod times;
mod usage;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

pub use branches::{Branch, Branches, sessions_of_branches};
pub use builder::{Answer, SessionBuilder, Skipped, call_of_text, placeholder};
#[cfg(feature = "sqlite")]
pub use database::{Database, Row, damaged_rows, is_database, is_database_with};
pub use input::{Input, json_files};
pub use lines::{JsonLine, JsonLines};
pub use times::{local_time, unix_time, utc_time};
pub use usage::attach_last;

use tertulia_core::foreign::Foreign;

/// Number of bytes at the beginning of a file by which its program is recognised.
pub const BEGINNING: usize = 16_384;

/// Reads the sessions that another program keeps in files.
pub trait Importer: std::fmt::Debug + Sync {
    /// Returns the name of the program, as in `import --from`.
    fn name(&self) -> &'static str;

    /// Returns true if a file of this name may be one of the program's. Files named `*.json` and
    /// `*.jsonl` are always looked at.
    fn is_candidate(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Returns true if a file that begins with these bytes is one of the program's.
    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool;

    /// Returns the time at which the session of a file began, if the beginning of the file says so.
    /// Files of a folder are imported in this order: forks after their origins.
    fn begun(&self, beginning: &[u8]) -> Option<Timestamp> {
        let time = value_of(beginning, "timestamp")?.strip_prefix(b"\"")?;
        let time = time.split(|byte| *byte == b'"').next()?;
        std::str::from_utf8(time).ok()?.parse().ok()
    }

    /// Reads the sessions of a file and gives them to `take` one after the other, so that a file
    /// with many of them needs no more memory than the largest.
    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError>;

    /// Reads one session of a file, by the id that the program gave it.
    fn read_session(&self, input: &Input<'_>, id: &str) -> Result<Option<Foreign>, ReadError> {
        let mut found = None;
        self.read(input, &mut |session| {
            if session.source.original != id {
                return ControlFlow::Continue(());
            }
            found = Some(session);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Returns the files and folders where the program keeps its sessions. `env` reads environment
    /// variables; `home` is the home folder.
    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf>;

    /// Returns the files that the program keeps in a folder in which it is run.
    fn project_places(&self, folder: &Path) -> Vec<PathBuf> {
        let _ = folder;
        Vec::new()
    }
}

/// Receives the sessions of a file, until it says stop.
pub type Take<'a> = dyn FnMut(Foreign) -> ControlFlow<()> + 'a;

/// All importers, in the order in which they are asked whether a file is theirs.
pub const IMPORTERS: &[&dyn Importer] = &[
    &crate::claude_code::ClaudeCode,
    &crate::codex::Codex,
    &crate::gemini_cli::GeminiCli,
    &crate::opencode::Opencode,
    &crate::aider::Aider,
    &crate::copilot::Copilot,
    #[cfg(feature = "sqlite")]
    &crate::crush::Crush,
    &crate::goose::Goose,
    #[cfg(feature = "sqlite")]
    &crate::llm::Llm,
];

/// Returns the importer of a program.
pub fn importer(name: &str) -> Option<&'static dyn Importer> {
    IMPORTERS.iter().copied().find(|one| one.name() == name)
}

/// Reasons why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system refused.
    #[error("{0}")]
    Io(io::Error),
    /// The file is not what it should be.
    #[error("{0}")]
    Invalid(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        match error.kind() {
            // What is wrong with a compressed file.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::Other => {
                ReadError::Invalid(format!("it is damaged: {error}"))
            }
            _ => ReadError::Io(error),
        }
    }
}

/// Returns what follows the first field of this name at the beginning of a file, which may be longer
/// than what was read of it.
pub fn value_of<'a>(beginning: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = format!("\"{name}\"");
    let mut places = beginning.windows(name.len());
    let place = places.position(|part| part == name.as_bytes())?;
    let rest = beginning.get(place + name.len()..)?.trim_ascii_start();
    Some(rest.strip_prefix(b":")?.trim_ascii_start())
}

/// Returns the whole JSON lines at the beginning of a file.
pub fn first_objects(beginning: &[u8]) -> impl Iterator<Item = Value> + '_ {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let lines = beginning.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(Value::is_object)
}

/// Returns the string at a JSON pointer, unless it is empty.
pub fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Returns the number at a JSON pointer, or 0. A number that no program can have counted is damage.
pub fn count_at(value: &Value, pointer: &str) -> u64 {
    const MOST: u64 = 1_000_000_000_000;
    let number = value.pointer(pointer).and_then(Value::as_u64);
    number.filter(|number| *number <= MOST).unwrap_or_default()
}

/// Returns the time at a JSON pointer.
pub fn time_at(value: &Value, pointer: &str) -> Option<Timestamp> {
    text_at(value, pointer)?.parse().ok()
}

/// Returns the time at a JSON pointer that the program recorded in milliseconds.
pub fn milliseconds_at(value: &Value, pointer: &str) -> Option<Timestamp> {
    let milliseconds = value.pointer(pointer)?.as_i64()?;
    Timestamp::from_millisecond(milliseconds).ok()
}

/// Returns true if the object at a JSON pointer says so.
pub fn is_true_at(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool) == Some(true)
}
