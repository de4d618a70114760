//! The protocol between the two ends of a link: JSON lines. The serving end says its version first,
//! then it answers requests one by one, and says when its store has changed.

use std::fmt;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tertulia_core::entry::{Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Cursor;
use tertulia_core::session::Line;
use tertulia_store::sync::{CHUNK, CHUNK_BYTES, MergedEnd, NewBranch, Partner};
use tertulia_store::{StoreError, StoreResult};

use super::lines::Cut;

/// Version of the protocol.
pub const VERSION: u32 = 2;
/// The line that says that the store has changed.
pub const CHANGED: &str = "\"changed\"";

/// First line of the serving end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Version of its protocol.
    pub tertulia_sync: u32,
    /// URL of its store.
    pub store: String,
}

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    Page {
        cursor: Option<String>,
        limit: usize,
    },
    Family {
        root: SessionId,
    },
    HeadAt {
        id: SessionId,
        seq: Seq,
    },
    Lines {
        id: SessionId,
        after: Seq,
        limit: usize,
    },
    Origins {
        id: SessionId,
    },
    Has {
        origin: Origin,
    },
    Create {
        root: SessionId,
        beside: Option<(SessionId, Head)>,
        base: Option<Origin>,
        entries: Vec<String>,
    },
    Append {
        id: SessionId,
        after: Head,
        entries: Vec<String>,
    },
    Fixed {
        id: SessionId,
    },
    MergeEnd {
        id: SessionId,
        after: Head,
        common: Head,
        fixed: Seq,
        entries: Vec<String>,
    },
    /// Say when the store changes, from now on.
    Watch,
    /// The asking end is still there. There is no answer.
    Alive,
}

/// What the serving end says after its first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T = Value> {
    /// Result of a request.
    Ok(T),
    /// Failure of a request.
    Failed(Failure),
    /// The store has changed.
    Changed,
}

/// A failure that the other end handles by its kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Failure {
    NotFound { id: SessionId },
    Exists { id: SessionId },
    Conflict { id: SessionId, head: Head },
    Locked { place: String },
    Damaged { place: String, reason: String },
    Full { place: String },
    ReadOnly { place: String, reason: String },
    Unreachable { place: String, reason: String },
    Other { message: String },
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::NotFound(id) => Failure::NotFound { id },
            StoreError::Exists(id) => Failure::Exists { id },
            StoreError::Conflict { id, head } => Failure::Conflict { id, head },
            StoreError::Locked { place } => Failure::Locked { place },
            StoreError::Damaged { place, reason } => Failure::Damaged { place, reason },
            StoreError::Full { place } => Failure::Full { place },
            StoreError::ReadOnly { place, reason } => Failure::ReadOnly { place, reason },
            StoreError::Unreachable { place, reason } => Failure::Unreachable { place, reason },
            other => Failure::Other {
                message: other.to_string(),
            },
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> StoreError {
        match failure {
            Failure::NotFound { id } => StoreError::NotFound(id),
            Failure::Exists { id } => StoreError::Exists(id),
            Failure::Conflict { id, head } => StoreError::Conflict { id, head },
            Failure::Locked { place } => StoreError::Locked { place },
            Failure::Damaged { place, reason } => StoreError::Damaged { place, reason },
            Failure::Full { place } => StoreError::Full { place },
            Failure::ReadOnly { place, reason } => StoreError::ReadOnly { place, reason },
            Failure::Unreachable { place, reason } => StoreError::Unreachable { place, reason },
            Failure::Other { message } => StoreError::Refused(message),
        }
    }
}

/// Answers a request.
pub async fn answer(partner: &dyn Partner, request: Request) -> Answer {
    match result(partner, request).await {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Failed(error.into()),
    }
}

async fn result(partner: &dyn Partner, request: Request) -> StoreResult<Value> {
    match request {
        Request::Page { cursor, limit } => {
            let cursor = cursor.map(|text| text.parse::<Cursor>()).transpose();
            let cursor = cursor.map_err(|error| StoreError::Refused(error.to_string()))?;
            value(&partner.page(cursor, limit).await?)
        }
        Request::Family { root } => value(&partner.family(root).await?),
        Request::HeadAt { id, seq } => value(&partner.head_at(id, seq).await?),
        Request::Lines { id, after, limit } => {
            let mut bytes = 0;
            let lines = partner.lines(id, after, limit.min(CHUNK)).await?;
            let lines: Vec<(Seq, String)> = lines
                .into_iter()
                .take_while(|line| {
                    let fits = bytes < CHUNK_BYTES;
                    bytes += line.bytes.len();
                    fits
                })
                .map(|line| (line.seq, String::from_utf8_lossy(&line.bytes).into_owned()))
                .collect();
            value(&lines)
        }
        Request::Origins { id } => value(&partner.origins(id).await?),
        Request::Has { origin } => value(&partner.has(&origin).await?),
        Request::Create {
            root,
            beside,
            base,
            entries,
        } => {
            let after = match (&beside, &base) {
                (Some((_, head)), _) => *head,
                (None, Some(origin)) => Head {
                    seq: origin.seq,
                    hash: origin.hash,
                },
                (None, None) => Head::START,
            };
            let new = NewBranch {
                root,
                beside,
                base,
                entries: chained(after, entries)?,
            };
            value(&partner.create(&new).await?)
        }
        Request::Append { id, after, entries } => {
            let entries = chained(after, entries)?;
            value(&partner.append(id, after, &entries).await?)
        }
        Request::Fixed { id } => value(&partner.fixed(id).await?),
        Request::MergeEnd {
            id,
            after,
            common,
            fixed,
            entries,
        } => {
            let end = MergedEnd {
                after,
                common,
                fixed,
                entries: chained(common, entries)?,
            };
            value(&partner.merge_end(id, &end).await?)
        }
        Request::Watch | Request::Alive => value(&()),
    }
}

fn value(value: &impl Serialize) -> StoreResult<Value> {
    serde_json::to_value(value).map_err(|error| StoreError::Refused(error.to_string()))
}

/// Parses entries and verifies that they continue `after`.
fn chained(after: Head, lines: Vec<String>) -> StoreResult<Vec<Entry>> {
    let mut head = after;
    let mut entries = Vec::with_capacity(lines.len());
    for line in lines {
        let refused = |reason: String| {
            StoreError::Refused(format!("entry {} was refused: {reason}", head.seq.next()))
        };
        let entry = Entry::decode(line.as_bytes()).map_err(|error| refused(error.to_string()))?;
        if !entry.follows(&head) {
            return Err(refused("it does not match its hash".to_owned()));
        }
        head = entry.head();
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the texts of entries.
pub fn texts(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|entry| entry.line().to_owned())
        .collect()
}

/// Returns the text of a message. Refuses one that the other end would not take.
pub fn encoded(message: &impl Serialize, most: usize) -> StoreResult<Vec<u8>> {
    let line =
        serde_json::to_vec(message).map_err(|error| StoreError::Refused(error.to_string()))?;
    match line.len() > most {
        true => Err(StoreError::TooLarge {
            what: "what was written at once",
            size: line.len() as u64,
            limit: most as u64,
        }),
        false => Ok(line),
    }
}

/// Reads an answer.
pub fn decoded<T: DeserializeOwned>(line: &str) -> Result<Answer<T>, Cut> {
    serde_json::from_str(line).map_err(|error| Cut::Unreadable(error.to_string()))
}

/// Lines of an answer, not more than are ever asked for: small ones take more memory than on the
/// link.
#[derive(Debug)]
pub struct FewLines(Vec<Line>);

impl From<FewLines> for Vec<Line> {
    fn from(lines: FewLines) -> Vec<Line> {
        lines.0
    }
}

impl<'de> Deserialize<'de> for FewLines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FewLines, D::Error> {
        struct Few;
        impl<'de> Visitor<'de> for Few {
            type Value = FewLines;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {CHUNK} lines")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<FewLines, A::Error> {
                let mut lines = Vec::new();
                while let Some((seq, text)) = pairs.next_element::<(Seq, String)>()? {
                    if lines.len() == CHUNK {
                        return Err(serde::de::Error::invalid_length(CHUNK + 1, &self));
                    }
                    let bytes = text.into_bytes();
                    lines.push(Line { seq, bytes });
                }
                Ok(FewLines(lines))
            }
        }
        deserializer.deserialize_seq(Few)
    }
}
