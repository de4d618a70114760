//! Encrypted bundles: decrypted as they are read, and imported session by session.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use age::armor::ArmoredReader;
use tertulia_core::session::SESSION_LIMIT;
use tertulia_store::Unlocking;

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
    let mut lines = BufReader::new(decrypted);
    let mut log = Vec::new();
    loop {
        let mut line = Vec::new();
        let limit = SESSION_LIMIT + 1 - log.len() as u64;
        let read = lines.by_ref().take(limit).read_until(b'\n', &mut line);
        let is_end = read.map_err(|error| broken(source, &error))? == 0;
        if (is_end || line.starts_with(FIRST)) && !log.is_empty() {
            outcomes.push(take_in_log(workspace, source, &log, args));
            log.clear();
        }
        if is_end {
            return Ok(());
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

fn broken(source: &Source, error: &io::Error) -> CommandError {
    let words = format!(
        "cannot import the rest of {}: it is damaged or cut off ({error})",
        source.path.display()
    );
    CommandError::new(ErrorKind::Invalid, words).hint("sessions before this place were imported")
}
