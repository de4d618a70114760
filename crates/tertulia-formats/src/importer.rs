//! What importers of other programs' histories have in common: how a file is recognised and read,
//! and how a session is put together from what the file records.

mod builder;
mod lines;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use builder::{Answer, SessionBuilder, Skipped, call_of_text};
pub use lines::{JsonLine, JsonLines};

use tertulia_core::foreign::Foreign;

/// Number of bytes at the beginning of a file by which its program is recognised.
pub const BEGINNING: usize = 16_384;

/// Size of the buffer for reading.
const BUFFER: usize = 1 << 18;

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

    /// Reads the sessions of a file and gives them to `take` one after the other, so that a file
    /// with many of them needs no more memory than the largest.
    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError>;

    /// Returns the files and folders where the program keeps its sessions. `env` reads environment
    /// variables; `home` is the home folder.
    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf>;
}

/// Receives the sessions of a file, until it says stop.
pub type Take<'a> = dyn FnMut(Foreign) -> ControlFlow<()> + 'a;

/// All importers, in the order in which they are asked whether a file is theirs.
pub const IMPORTERS: &[&dyn Importer] = &[&crate::claude_code::ClaudeCode];

/// Returns the importer of a program.
pub fn importer(name: &str) -> Option<&'static dyn Importer> {
    IMPORTERS.iter().copied().find(|one| one.name() == name)
}

/// Reasons why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not what it should be.
    #[error("{0}")]
    Invalid(String),
}

/// A file to import, or the content of standard input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// The content, if it was read already.
    pub content: Option<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// Opens the file for reading from its beginning.
    pub fn open(&self) -> io::Result<Box<dyn BufRead + 'a>> {
        Ok(match self.content {
            Some(content) => Box::new(content),
            None => Box::new(BufReader::with_capacity(BUFFER, File::open(self.path)?)),
        })
    }

    /// Reads the beginning of the file.
    pub fn beginning(&self) -> io::Result<Vec<u8>> {
        let mut beginning = Vec::with_capacity(BEGINNING);
        self.open()?
            .take(BEGINNING as u64)
            .read_to_end(&mut beginning)?;
        Ok(beginning)
    }

    /// Reads the whole file. Fails if it has more than `limit` bytes.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, ReadError> {
        let mut content = Vec::new();
        self.open()?.take(limit + 1).read_to_end(&mut content)?;
        if content.len() as u64 > limit {
            let limit = limit / 1_000_000;
            return Err(ReadError::Invalid(format!("it has more than {limit} MB")));
        }
        Ok(content)
    }
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

/// Returns the number at a JSON pointer, or 0.
pub fn count_at(value: &Value, pointer: &str) -> u64 {
    let number = value.pointer(pointer).and_then(Value::as_u64);
    number.unwrap_or_default()
}

/// Returns true if the object at a JSON pointer says so.
pub fn is_true_at(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool) == Some(true)
}
