//! The log itself, line by line: what `export --format jsonl` gives out another store takes in byte
//! for byte, hashes included.

mod secrets;

use serde::{Deserialize, Serialize};

pub use secrets::SecretCounts;

use crate::entry::{Body, Entry, EntryError, Head, Origin};
use crate::id::{Seq, SessionId};

/// A log read from a file.
#[derive(Debug)]
pub struct Imported {
    /// The session: the last one that an entry opens, since a fork's file begins with what it shares.
    pub id: SessionId,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// What its first own entry continues, if it is a fork.
    pub fork: Option<Origin>,
    /// What the first line continues: the start of a log, or the place where the rest of it ends.
    pub after: Seq,
    /// The end of that rest, if the file names it.
    pub parent: Option<Head>,
}

/// The first line of a log that begins in the middle: where it belongs.
#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    continues: Place,
}

#[derive(Debug, Serialize, Deserialize)]
struct Place {
    session: SessionId,
    #[serde(flatten)]
    head: Head,
}

/// The first line of a file that holds what is missing at the end of a session.
pub fn heading(session: SessionId, head: Head) -> String {
    let heading = Heading {
        continues: Place { session, head },
    };
    serde_json::to_string(&heading).unwrap_or_default()
}

/// Whether a file looks like one of our logs.
pub fn is_ours(content: &[u8]) -> bool {
    let line = content
        .split(|byte| *byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty());
    line.is_some_and(|line| {
        line.starts_with(b"{\"continues\":")
            || line.starts_with(b"{\"v\":") && find(line, b"\"seq\":") && find(line, b"\"hash\":")
    })
}

fn find(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// Reads a log. It must be whole: what it says is taken over as it is.
pub fn read(content: &[u8]) -> Result<Imported, JsonlError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut opening = None;
    let mut parent = None;
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        let number = number + 1;
        if entries.is_empty()
            && let Ok(heading) = serde_json::from_slice::<Heading>(line)
        {
            opening = Some((heading.continues.session, None));
            parent = Some(heading.continues.head);
            continue;
        }
        let entry = Entry::decode(line).map_err(|source| JsonlError::Unreadable {
            line: number,
            source,
        })?;
        let follows = match entries.last() {
            Some(last) => entry.follows(&last.head()),
            // The beginning proves itself; a log that begins later is proved where it is joined.
            None if entry.seq == Seq(1) => entry.follows(&Head::START),
            None => parent.is_none_or(|parent| entry.follows(&parent)),
        };
        if !follows {
            return Err(JsonlError::Altered {
                line: number,
                seq: entry.seq,
            });
        }
        match &entry.body {
            Body::Created(created) => opening = Some((created.session, None)),
            Body::Forked(forked) => opening = Some((forked.session, Some(forked.from.clone()))),
            _ => {}
        }
        entries.push(entry);
    }
    let first = entries.first().ok_or(JsonlError::Empty)?.seq;
    let (id, fork) = opening.ok_or(JsonlError::Headless)?;
    Ok(Imported {
        id,
        fork,
        after: first.back(1),
        parent,
        entries,
    })
}

/// Why a file is not a log.
#[derive(Debug, thiserror::Error)]
pub enum JsonlError {
    /// There is nothing in it.
    #[error("there is no entry in it")]
    Empty,
    /// A line is not an entry.
    #[error("line {line}: {source}")]
    Unreadable {
        /// Which.
        line: usize,
        /// Why.
        source: EntryError,
    },
    /// A line does not continue the one before it.
    #[error(
        "line {line} (entry {seq}) does not continue the line before it: one of them was altered or is missing"
    )]
    Altered {
        /// Which.
        line: usize,
        /// The place that it names.
        seq: Seq,
    },
    /// No entry says which session it is.
    #[error("no entry in it opens a session, so it is not a whole log")]
    Headless,
}
