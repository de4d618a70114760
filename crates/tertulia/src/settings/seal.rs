//! `[seal]`: whether new sessions are sealed, and whose keys open them.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::values::Reader;
use crate::env;

/// Keys of `[seal]`.
pub const KEYS: &[&str] = &[
    "default",
    "recipients",
    "identity",
    "passphrase_command",
    "work_factor",
];

/// Default cost of guessing a passphrase: the logarithm of scrypt's rounds. About a second.
const WORK_FACTOR: u8 = 18;

/// How sessions are sealed and unlocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealSettings {
    /// Whether new sessions are sealed.
    pub default: bool,
    /// Public keys that can open new sealed sessions, besides the user's own.
    pub recipients: Vec<String>,
    /// File with the user's own keys.
    pub identity: Option<PathBuf>,
    /// Command that prints the passphrase.
    pub passphrase_command: Option<String>,
    /// Cost of guessing a passphrase.
    pub work_factor: u8,
}

impl Default for SealSettings {
    fn default() -> SealSettings {
        SealSettings {
            default: false,
            recipients: Vec::new(),
            identity: None,
            passphrase_command: None,
            work_factor: WORK_FACTOR,
        }
    }
}

impl SealSettings {
    /// Adds what a project's file says to the user's own settings, or these to the defaults.
    pub fn extend(&mut self, more: SealSettings) {
        self.default |= more.default;
        self.recipients.extend(more.recipients);
        self.identity = more.identity.or(self.identity.take());
        self.passphrase_command = more.passphrase_command.or(self.passphrase_command.take());
        if more.work_factor != WORK_FACTOR {
            self.work_factor = more.work_factor;
        }
    }
}

/// Removes what a project's file may not say, and returns a description of each. A project may have its
/// sessions sealed and, if it is trusted, name recipients; it chooses no key and runs no command.
pub fn forbid(table: &mut Table) -> Vec<String> {
    let mut taken = Vec::new();
    for key in ["identity", "passphrase_command", "work_factor"] {
        if table.remove(key).is_some() {
            taken.push(format!("seal.{key}"));
        }
    }
    if table.get("default").and_then(Value::as_bool) == Some(false) {
        table.remove("default");
        taken.push("seal.default = false".to_owned());
    }
    taken
}

/// Reads the table. Relative paths begin in `base`.
pub fn read(reader: &Reader<'_>, table: &Table, base: &Path) -> SealSettings {
    let recipients = reader.texts(table, "recipients").unwrap_or_default();
    for recipient in &recipients {
        if recipient.parse::<age::x25519::Recipient>().is_err() {
            reader.expected("recipients", "a list of age recipients such as \"age1…\"");
        }
    }
    let work_factor = reader.number(table, "work_factor");
    let in_range = |factor: u64| u8::try_from(factor).ok().filter(|n| (1..=22).contains(n));
    if work_factor.is_some_and(|factor| in_range(factor).is_none()) {
        reader.expected("work_factor", "a number from 1 to 22");
    }
    SealSettings {
        default: reader.flag(table, "default").unwrap_or(false),
        recipients,
        identity: reader
            .text(table, "identity")
            .map(|path| env::placed(&path, base)),
        passphrase_command: reader.text(table, "passphrase_command"),
        work_factor: work_factor.and_then(in_range).unwrap_or(WORK_FACTOR),
    }
}
