//! Encrypted bundles: decrypted as they are read, and imported session by session.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use age::armor::ArmoredReader;
use serde::{Deserialize, Serialize};
use tertulia_core::session::SESSION_LIMIT;
use tertulia_store::{KeySource, Unlocking};

use super::outcome::Outcome;
use super::sources::Source;
use super::{ImportArgs, take_in_log};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::seal::UserKeys;

/// Beginning of every binary and of every armored age file.
const BEGINNINGS: [&[u8]; 2] = [
    b"age-encryption.org/v1",
    b"-----BEGIN AGE ENCRYPTED FILE-----",
];
/// What every line of a log that begins a session has.
const FIRST: &[u8] = b"{\"v\":1,\"seq\":1,";

/// Beginning of a line with the key of the session before it.
const KEY: &[u8] = b"{\"key\":";

/// The key of a sealed session, as a line of a bundle after the session's log.
#[derive(Serialize, Deserialize)]
struct KeyLine {
    key: ReceivedKey,
}

#[derive(Serialize, Deserialize)]
struct ReceivedKey {
    /// The wrapped form that the log has.
    wrapped: String,
    /// The form that is for those of the bundle.
    received: String,
}

/// Returns the line of a bundle with the key of the session before it.
pub fn key_as_line(wrapped: &str, received: &str) -> String {
    let line = KeyLine {
        key: ReceivedKey {
            wrapped: wrapped.to_owned(),
            received: received.to_owned(),
        },
    };
    let line = serde_json::to_string(&line).unwrap_or_default();
    format!("{line}\n")
}

/// Returns true if a file is encrypted with age.
pub fn is_one(beginning: &[u8]) -> bool {
    BEGINNINGS.iter().any(|known| beginning.starts_with(known))
}

/// Imports the sessions of a bundle. Only one of them is in memory at a time.
pub fn take_in(
    workspace: &Workspace,
    source: &Source,
    args: &ImportArgs,
) -> Vec<CommandResult<Outcome>> {
    let mut outcomes = Vec::new();
    if let Err(error) = read(workspace, source, args, &mut outcomes) {
        outcomes.push(Err(error));
    }
    outcomes
}

fn read(
    workspace: &Workspace,
    source: &Source,
    args: &ImportArgs,
    outcomes: &mut Vec<CommandResult<Outcome>>,
) -> CommandResult<()> {
    let input = source.input();
    let bytes: Box<dyn Read> = match input.content {
        Some(content) => Box::new(content),
        None => Box::new(File::open(input.path).map_err(|error| broken(source, &error))?),
    };
    let keys = UserKeys::new(&workspace.settings);
    let decrypted = keys
        .decrypt(ArmoredReader::new(bytes), Unlocking::Ask)
        .map_err(|error| {
            let words = format!("cannot import {}: {}", source.path.display(), error.0);
            CommandError::new(ErrorKind::Invalid, words).hint("nothing of it was imported")
        })?;
    read_logs(workspace, source, decrypted, args, outcomes)
}

/// Returns true if the lines of a file are those of a decrypted bundle with a sealed session.
pub fn has_keys(content: &[u8]) -> bool {
    let mut lines = content.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(KEY))
}

/// Imports sessions log by log, and keeps the keys that come with them.
pub fn read_logs(
    workspace: &Workspace,
    source: &Source,
    lines: impl Read,
    args: &ImportArgs,
    outcomes: &mut Vec<CommandResult<Outcome>>,
) -> CommandResult<()> {
    let mut lines = BufReader::new(lines);
    let mut log = Vec::new();
    loop {
        let mut line = Vec::new();
        let limit = SESSION_LIMIT + 1 - log.len() as u64;
        let read = lines.by_ref().take(limit).read_until(b'\n', &mut line);
        let is_end = read.map_err(|error| broken(source, &error))? == 0;
        let is_key = line.starts_with(KEY);
        if (is_end || is_key || line.starts_with(FIRST)) && !log.is_empty() {
            outcomes.push(take_in_log(workspace, source, &log, args));
            log.clear();
        }
        if is_end {
            return Ok(());
        }
        if is_key {
            if let Some(Ok(outcome)) = outcomes.last().filter(|_| !args.dry_run) {
                keep_key(workspace, source, &line, outcome)?;
            }
            continue;
        }
        log.extend(line);
        if log.len() as u64 > SESSION_LIMIT {
            let words = format!(
                "cannot import the rest of {}: a session in it is too long",
                source.path.display()
            );
            return Err(CommandError::new(ErrorKind::Invalid, words));
        }
    }
}

/// Keeps the key of the session that was imported last, if it opens that.
fn keep_key(
    workspace: &Workspace,
    source: &Source,
    line: &[u8],
    outcome: &Outcome,
) -> CommandResult<()> {
    let invalid = |reason: &str| {
        let words = format!(
            "cannot import the key of a session in {}: {reason}",
            source.path.display()
        );
        CommandError::new(ErrorKind::Invalid, words)
            .hint("the session was imported, and needs its own key")
    };
    let line: KeyLine = serde_json::from_slice(line).map_err(|_| invalid("it is damaged"))?;
    let ReceivedKey { wrapped, received } = line.key;
    let keys = UserKeys::new(&workspace.settings);
    let key = keys.unwrap_key(&received, Unlocking::Ask);
    let key = key.map_err(|error| invalid(&error.0))?;
    let session = outcome.session;
    // Another key must not stand for one that the user has.
    if !workspace.wait(workspace.sessions.is_opened_by(session, &wrapped, &key))? {
        return Err(invalid("it is not that of the session"));
    }
    let own = keys
        .wrap_for_self(&key)
        .map_err(|error| invalid(&error.0))?;
    keys.keep_received(&wrapped, &own.unwrap_or(received))
}

fn broken(source: &Source, error: &io::Error) -> CommandError {
    let words = format!(
        "cannot import the rest of {}: it is damaged or cut off ({error})",
        source.path.display()
    );
    CommandError::new(ErrorKind::Invalid, words).hint("sessions before this place were imported")
}
