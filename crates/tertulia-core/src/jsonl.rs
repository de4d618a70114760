//! A log as JSON Lines: another store imports the output of `export --format jsonl` byte for byte,
//! including hashes.

mod secrets;

use serde::{Deserialize, Serialize};

pub use secrets::SecretCounts;

use crate::entry::{Body, Entry, EntryError, Head, Origin, SealState};
use crate::id::{Seq, SessionId};

/// A log read from a file.
#[derive(Debug)]
pub struct Imported {
    /// Id of the session: from the last opening entry, because the file of a fork may begin with
    /// the entries shared with its parent.
    pub id: SessionId,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// Origin, if the session is a fork.
    pub fork: Option<Origin>,
    /// Sequence number before the first line: the start of a log, or the end of the part that is
    /// not in the file.
    pub after: Seq,
    /// Head of the part that is not in the file, if the file has a heading.
    pub parent: Option<Head>,
}

/// First line of a partial log: the position that it continues.
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

/// Returns the first line of a file with the entries missing at the end of a session.
pub fn heading(session: SessionId, head: Head) -> String {
    let heading = Heading {
        continues: Place { session, head },
    };
    serde_json::to_string(&heading).unwrap_or_default()
}

/// Returns true if a file looks like a tertulia log.
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

/// Parses a log and verifies the hash chain. Any unreadable or altered line is an error, because
/// entries are imported as they are.
pub fn read(content: &[u8]) -> Result<Imported, JsonlError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut opening = None;
    let mut parent = None;
    let mut seal = SealState::Unknown;
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
            // The first entry of a log is verified against the start; a later one against the
            // heading, or by the store that it is appended to.
            None if entry.seq == Seq(1) => entry.follows(&Head::START),
            None => parent.is_none_or(|parent| entry.follows(&parent)),
        };
        if !follows {
            return Err(JsonlError::Altered {
                line: number,
                seq: entry.seq,
            });
        }
        seal = seal.after(&entry.body);
        if seal.is_foreign(&entry.body) || seal == SealState::Plain && entry.is_sealed() {
            return Err(JsonlError::NotSealed {
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

/// Reasons why a file is not a log.
#[derive(Debug, thiserror::Error)]
pub enum JsonlError {
    /// The file has no entries.
    #[error("there is no entry in it")]
    Empty,
    /// A line is not an entry.
    #[error("line {line}: {source}")]
    Unreadable {
        /// Number of the line, from 1.
        line: usize,
        /// Why the line cannot be read.
        source: EntryError,
    },
    /// A line does not continue the one before it.
    #[error(
        "line {line} (entry {seq}) does not continue the line before it: one of them was altered or is missing"
    )]
    Altered {
        /// Number of the line, from 1.
        line: usize,
        /// Sequence number in the line.
        seq: Seq,
    },
    /// A line with words in plain in a sealed session, or a sealed one in a session without a seal.
    #[error(
        "line {line} (entry {seq}) does not fit to a sealed session: its words are in plain, or the seal was taken out of the log"
    )]
    NotSealed {
        /// Number of the line, from 1.
        line: usize,
        /// Sequence number in the line.
        seq: Seq,
    },
    /// No entry or heading identifies the session.
    #[error("no entry in it opens a session, so it is not a whole log")]
    Headless,
}
