//! Exports to the formats of other programs: which entries are exported, how a session becomes the
//! memory of one agent, and what a format has no place for.

pub mod atif;
pub mod claude_code;
pub mod codex;
mod dialogue;
mod left_out;
mod redaction;
mod selection;
#[cfg(test)]
pub(crate) mod tests;

use tertulia_core::session::SessionMeta;

pub use left_out::LeftOut;
pub use redaction::{RedactionError, redact};
pub use selection::{Bound, Selection};

/// Where another program finds an exported session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPlace {
    /// Id of the session in that program.
    pub session: String,
    /// Path of the file below the folder where that program keeps its sessions.
    pub path: String,
    /// Working directory of the session.
    pub cwd: String,
}

/// A session as a file of another program, which continues it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// Number of messages in it. Without one there is nothing to continue.
    pub messages: usize,
    /// Content of the file.
    pub content: String,
    /// Content of the session that the file lacks.
    pub left_out: LeftOut,
}

/// A session and the file that it was exported to, for a list of exported sessions.
#[derive(Debug)]
pub struct Listed<'a> {
    /// The session.
    pub meta: &'a SessionMeta,
    /// Path of the file, relative to the list.
    pub file: &'a str,
}

impl Listed<'_> {
    /// Returns the path of the file as a relative address.
    pub(crate) fn address(&self) -> String {
        let mut address = String::new();
        for byte in self.file.bytes() {
            let is_plain =
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
            match is_plain {
                true => address.push(char::from(byte)),
                false => address.push_str(&format!("%{byte:02X}")),
            }
        }
        address
    }
}
