//! Entries read from a log, and its damage.

use std::fmt;

use serde::Serialize;

use crate::entry::{Entry, Head, Message, SealState};
use crate::id::{Seq, SessionId};

/// A section of a log as read: the readable entries, and the damage.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// Entries that are missing, unreadable or altered.
    pub damage: Vec<Damage>,
}

/// Damage of an entry with words in plain in a sealed session.
const NOT_SEALED: &str = "it is not sealed, in a session that is: its words are not shown";
/// Damage of a log whose opening entry lacks the seal.
const SEAL_LOST: &str = "it is sealed, but the first entry of the session has no seal";

/// A damaged entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The session.
    pub session: SessionId,
    /// Sequence number of the entry.
    pub seq: Seq,
    /// What is wrong with the entry.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "session {} entry {}: {}",
            self.session, self.seq, self.reason
        )
    }
}

impl Log {
    /// Parses lines that should follow `before`, and records missing, unreadable and altered ones.
    /// Without a known parent, the hash of the first line is not verified. Where the lines tell that
    /// the session is sealed, entries with words in plain are damage.
    pub fn read(session: SessionId, before: Option<Head>, after: Seq, lines: &[Line]) -> Log {
        let mut log = Log::default();
        let mut expected = after.next();
        let mut parent = before;
        let mut seal = SealState::Unknown;
        let mut is_bare = false;
        for line in lines {
            if expected < line.seq {
                log.note_missing(session, expected, line.seq);
                parent = None;
            }
            match Entry::decode(&line.bytes) {
                Err(error) => {
                    log.note(session, line.seq, &error.to_string());
                    parent = None;
                }
                Ok(entry) if entry.seq != line.seq => {
                    log.note(
                        session,
                        line.seq,
                        &format!("it calls itself entry {}", entry.seq),
                    );
                    parent = None;
                }
                Ok(entry) => {
                    if parent.is_some_and(|parent| !entry.follows(&parent)) {
                        log.note(session, line.seq, "it does not match its hash");
                    }
                    parent = Some(entry.head());
                    seal = seal.after(&entry.body);
                    if seal == SealState::Plain && entry.is_sealed() && !is_bare {
                        is_bare = true;
                        log.note(session, line.seq, SEAL_LOST);
                    }
                    if seal.is_foreign(&entry.body) {
                        log.note(session, line.seq, NOT_SEALED);
                    } else {
                        log.entries.push(entry);
                    }
                }
            }
            expected = line.seq.next();
        }
        log
    }

    /// Takes out the entries with words in plain, if the session is sealed, and records them as damage:
    /// their author need not have the key.
    pub fn reject_plain(&mut self, session: SessionId) {
        let (sound, foreign): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| !SealState::Sealed.is_foreign(&entry.body));
        self.entries = sound;
        for entry in foreign {
            self.note(session, entry.seq, NOT_SEALED);
        }
        self.damage.sort_by_key(|damage| damage.seq);
    }

    /// Returns the messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = (&Entry, &Message)> {
        self.entries
            .iter()
            .filter_map(|entry| Some((entry, entry.message()?)))
    }

    /// Keeps the last `count` messages and all other entries from the first of them on.
    pub fn keep_last_messages(&mut self, count: usize) {
        let surplus = self.messages().count().saturating_sub(count);
        if surplus > 0 {
            let first = self.messages().nth(surplus).map(|(entry, _)| entry.seq);
            self.entries
                .retain(|entry| first.is_some_and(|first| entry.seq >= first));
        }
    }

    /// Records each missing entry, or a single summary for more than 1000: a corrupt sequence
    /// number could otherwise produce billions.
    pub fn note_missing(&mut self, session: SessionId, first: Seq, upto: Seq) {
        let count = upto.0 - first.0;
        if count > 1000 {
            let reason = format!("it and the {} after it are missing", count - 1);
            return self.note(session, first, &reason);
        }
        for seq in first.0..upto.0 {
            self.note(session, Seq(seq), "it is missing");
        }
    }

    fn note(&mut self, session: SessionId, seq: Seq, reason: &str) {
        self.damage.push(Damage {
            session,
            seq,
            reason: reason.to_owned(),
        });
    }
}

/// One line of a log as stored. It is not parsed, so that copying is cheap and one damaged line
/// does not hide others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Sequence number.
    pub seq: Seq,
    /// The bytes, without a line feed.
    pub bytes: Vec<u8>,
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Line {
        Line {
            seq: entry.seq,
            bytes: entry.line().as_bytes().to_vec(),
        }
    }
}
