//! The first line of a log: the entry that opens it, and what the log continues.

use std::io;

use super::log::{Lines, first_place};
use super::log_file::LogBytes;
use tertulia_core::entry::{Body, Entry, Hash, Origin, line_follows};
use tertulia_core::id::{Seq, SessionId};

/// Content of a log's first line.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The first line, if it is an entry.
    pub(super) entry: Option<Entry>,
    /// What the log continues: from the entry, or from the readable part of a damaged line.
    pub(super) origin: Option<Origin>,
}

/// Reads a log's first line.
pub(super) fn opening(file: &dyn LogBytes, end: u64) -> io::Result<Opening> {
    let Some((_, line)) = Lines::new(file, 0, end).next()? else {
        return Ok(Opening::default());
    };
    let entry = Entry::decode(&line).ok();
    let mut origin = match &entry {
        Some(entry) => match &entry.body {
            Body::Forked(forked) => Some(forked.from.clone()),
            _ => None,
        },
        None => origin_in(&line),
    };
    if let Some(origin) = &mut origin
        && (entry.is_none()
            || line_follows(&String::from_utf8_lossy(&line), &origin.hash).is_none())
        && let Some(first) = first_place(file, end)?
    {
        // The line was altered; where it stands says which entry it continues.
        origin.seq = first.back(1);
    }
    Ok(Opening { entry, origin })
}

/// Extracts the origin from a damaged line: the damage may be elsewhere in the line. What cannot be
/// read of the origin is left blank, since the session or the hash alone leads to the base.
fn origin_in(line: &[u8]) -> Option<Origin> {
    const ID: usize = 36;
    const HASH: usize = 64;
    let text = String::from_utf8_lossy(line);
    if !text.contains("\"from\":") && !text.contains("\"type\":\"forked\"") {
        return None;
    }
    // Strings of the line, by their lengths: the ids of entry, session and base, the base's hash, and
    // the hash of the line itself.
    let strings = |length: usize| text.split('"').filter(move |part| part.len() == length);
    let hash = strings(HASH).next().filter(|_| strings(HASH).count() > 1);
    let hash = hash.and_then(parsed).unwrap_or(Hash::NONE);
    let id = strings(ID).nth(2).and_then(parsed);
    let is_blank = id.is_none() && hash == Hash::NONE;
    let id = id.unwrap_or_else(|| SessionId::new(uuid::Uuid::nil()));
    let seq = Seq::START;
    (!is_blank).then_some(Origin { id, seq, hash })
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}
