//! What was read of a log: the entries, and what is damaged.

use serde::Serialize;

use crate::entry::{Entry, Head, Message};
use crate::id::{Seq, SessionId};

/// A piece of a log as it was read: what is readable, and what is not.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// What could not be read, or is not what was written.
    pub damage: Vec<Damage>,
}

/// An entry that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Which session.
    pub session: SessionId,
    /// Its place.
    pub seq: Seq,
    /// What is wrong with it.
    pub reason: String,
}

impl Log {
    /// Reads lines that should follow `before`, noting what is missing, unreadable or altered. Without
    /// a known parent the first line is taken as it is.
    pub fn read(session: SessionId, before: Option<Head>, after: Seq, lines: &[Line]) -> Log {
        let mut log = Log::default();
        let mut expected = after.next();
        let mut parent = before;
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
                    log.entries.push(entry);
                }
            }
            expected = line.seq.next();
        }
        log
    }

    /// The messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = (&Entry, &Message)> {
        self.entries
            .iter()
            .filter_map(|entry| Some((entry, entry.message()?)))
    }

    /// Leaves the last `count` messages, with what happened between and after them.
    pub fn keep_last_messages(&mut self, count: usize) {
        let surplus = self.messages().count().saturating_sub(count);
        if surplus > 0 {
            let first = self.messages().nth(surplus).map(|(entry, _)| entry.seq);
            self.entries
                .retain(|entry| first.is_some_and(|first| entry.seq >= first));
        }
    }

    /// One note for each, unless a damaged number makes them more than anybody could read.
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

/// One line of a log as a store gives it out: unread, so that copying needs no parsing and a damaged
/// line hides no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its place.
    pub seq: Seq,
    /// Its bytes, without a line feed.
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
