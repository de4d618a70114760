//! Repairs a damaged log: readable entries keep their sequence numbers, placeholders replace
//! unreadable ones, and the hash chain is made anew.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use uuid::Uuid;

use tertulia_core::entry::{
    Body, Created, Entry, EntryError, Forked, Hash, Head, Lost, NewEntry, Origin, Repaired,
    line_follows,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::session::Line;

/// A log after its repair.
#[derive(Debug)]
pub(super) struct Salvaged {
    /// The whole log after its base.
    pub(super) entries: Vec<Entry>,
    /// Number of entries that were in the damaged log.
    pub(super) kept: usize,
    /// Sequence numbers of lost entries.
    pub(super) lost: Vec<Seq>,
    /// Sequence numbers of entries that are readable but altered.
    pub(super) doubtful: Vec<Seq>,
}

/// What is known of a log besides its lines.
pub(super) struct Known {
    pub(super) session: SessionId,
    /// The base's head as it is now; the start for a session without a base.
    pub(super) parent: Head,
    /// The base's head when the session was forked.
    pub(super) parent_was: Head,
    /// The session that a fork's altered opening is to name as its base, if not the one that it
    /// names.
    pub(super) base: Option<SessionId>,
    /// The highest sequence number that the log is known to have had.
    pub(super) last: Seq,
    /// Time of the repair.
    pub(super) now: Timestamp,
}

/// Largest credible gap; beyond it the sequence number is damaged.
const GREATEST_GAP: u64 = 100_000;

/// Repairs a log. Without damage, and on an unchanged base, its entries stay the same.
pub(super) fn salvage(known: &Known, lines: &BTreeMap<Seq, Line>) -> Salvaged {
    let mut result = Salvaged {
        entries: Vec::new(),
        kept: 0,
        lost: Vec::new(),
        doubtful: Vec::new(),
    };
    let mut head = known.parent;
    let mut before = Some(known.parent_was.hash);
    let last = believable_last(known, lines);
    while head.seq < last {
        let seq = head.seq.next();
        let read = lines.get(&seq).map(|line| decode_whole(&line.bytes));
        let read = read.map(|read| read.map(|entry| with_its_number(entry, seq, before)));
        let entry = match read {
            Some(Ok(entry)) if entry.seq == seq => {
                let doubtful =
                    before.is_some_and(|before| line_follows(entry.line(), &before).is_none());
                before = Some(entry.hash);
                result.kept += 1;
                if doubtful {
                    result.doubtful.push(seq);
                    reseal(&head, with_its_names(entry, known, &head))
                } else {
                    reseal(&head, entry)
                }
            }
            unreadable => {
                result.lost.push(seq);
                before = None;
                let reason = match unreadable {
                    Some(Err(error)) => error.to_string(),
                    Some(Ok(_)) => "another entry stood in its place".to_owned(),
                    None => "it was missing".to_owned(),
                };
                let at = result.entries.last().map_or(known.now, |entry| entry.at);
                place_holder(known.session, &head, at, Body::Lost(Lost { reason }))
            }
        };
        let Some(entry) = entry else { break };
        head = entry.head();
        result.entries.push(entry);
    }
    result
        .lost
        .extend(lines.keys().copied().filter(|seq| *seq > last));
    if !(result.lost.is_empty() && result.doubtful.is_empty()) {
        let repaired = Repaired {
            lost: result.lost.clone(),
            doubtful: result.doubtful.clone(),
        };
        result.entries.extend(place_holder(
            known.session,
            &head,
            known.now,
            Body::Repaired(repaired),
        ));
    }
    result
}

impl Salvaged {
    /// Returns the first entry that can be read in the damaged log and that the repaired one lacks.
    pub(super) fn first_reduced<'a>(
        &self,
        lines: impl IntoIterator<Item = &'a Line>,
    ) -> Option<Seq> {
        let lost: HashSet<Seq> = self.lost.iter().copied().collect();
        let there: HashSet<Seq> = self.entries.iter().map(|entry| entry.seq).collect();
        let is_kept = |seq: &Seq| there.contains(seq) && !lost.contains(seq);
        let mut readable = lines.into_iter().filter_map(|line| {
            let entry = Entry::decode(&line.bytes).ok()?;
            (entry.seq == line.seq).then_some(line.seq)
        });
        readable.find(|seq| !is_kept(seq))
    }

    /// Closes a log whose last entry announces more entries of its append than exist.
    pub(super) fn close_append(&mut self, known: &Known) {
        if let Some(last) = self.entries.last().filter(|last| last.then > 0) {
            let repaired = Body::Repaired(Repaired {
                lost: self.lost.clone(),
                doubtful: self.doubtful.clone(),
            });
            let mark = place_holder(known.session, &last.head(), known.now, repaired);
            self.entries.extend(mark);
        }
    }
}

/// Returns the last credible sequence number. A damaged number can be arbitrarily high, and a log
/// with a placeholder for each entry before it would fill the disk.
fn believable_last(known: &Known, lines: &BTreeMap<Seq, Line>) -> Seq {
    let mut places: Vec<Seq> = lines.keys().copied().collect();
    places.push(known.last);
    places.sort_unstable();
    places.into_iter().fold(known.parent.seq, |last, place| {
        let gap = place.0.saturating_sub(last.0);
        if gap <= GREATEST_GAP {
            last.max(place)
        } else {
            last
        }
    })
}

/// Corrects the session id in an altered opening, and what it continues.
fn with_its_names(entry: Entry, known: &Known, parent: &Head) -> Entry {
    let session = known.session;
    let body = match entry.body.clone() {
        Body::Created(created) => Body::Created(Created { session, ..created }),
        Body::Forked(forked) => {
            let from = Origin {
                id: known.base.unwrap_or(forked.from.id),
                seq: parent.seq,
                hash: parent.hash,
            };
            Body::Forked(Forked {
                session,
                from,
                ..forked
            })
        }
        _ => return entry,
    };
    if body == entry.body {
        return entry;
    }
    let redacted = entry.redacted.clone();
    let corrected = entry.clone().with_body(parent, body, redacted);
    corrected.unwrap_or(entry)
}

/// Corrects the sequence number of an entry, if it alone was altered: with it the entry has its hash.
fn with_its_number(entry: Entry, seq: Seq, parent: Option<Hash>) -> Entry {
    let Some(hash) = parent.filter(|_| entry.seq != seq) else {
        return entry;
    };
    let parent = Head {
        seq: seq.back(1),
        hash,
    };
    let (body, redacted) = (entry.body.clone(), entry.redacted.clone());
    let corrected = entry.clone().with_body(&parent, body, redacted).ok();
    corrected
        .filter(|corrected| corrected.hash == entry.hash)
        .unwrap_or(entry)
}

/// Decodes an entry, also if a stray byte replaces its line feed.
fn decode_whole(bytes: &[u8]) -> Result<Entry, EntryError> {
    Entry::decode(bytes).or_else(|error| match bytes.split_last() {
        Some((_, whole)) if whole.ends_with(b"\"}") => Entry::decode(whole).map_err(|_| error),
        _ => Err(error),
    })
}

/// Reseals an entry onto another parent. It keeps its bytes if nothing has changed.
fn reseal(parent: &Head, entry: Entry) -> Option<Entry> {
    if entry.follows(parent) {
        return Some(entry);
    }
    match &entry.body {
        // A fork names the hash that it continues; other bodies do not depend on the parent.
        Body::Forked(forked) if forked.from.seq == parent.seq => {
            let mut forked = forked.clone();
            forked.from = Origin {
                hash: parent.hash,
                ..forked.from
            };
            let new = NewEntry {
                id: entry.id,
                at: entry.at,
                body: Body::Forked(forked),
                redacted: entry.redacted,
                author: entry.author,
            };
            Entry::chain(parent, vec![new]).ok()?.pop()
        }
        _ => Some(entry.continuing(parent)),
    }
}

fn place_holder(session: SessionId, parent: &Head, at: Timestamp, body: Body) -> Option<Entry> {
    // The same repair of the same log gives the same entry everywhere.
    let name = format!("{session}:{}:{}", parent.seq.next(), body.kind());
    let new = NewEntry {
        id: EntryId::new(derived_id(&name)),
        at,
        body,
        redacted: BTreeMap::new(),
        author: None,
    };
    Entry::chain(parent, vec![new]).ok()?.pop()
}

/// Derives an id from a name: the same name gives the same id everywhere.
pub(super) fn derived_id(name: &str) -> Uuid {
    let mut id = [0; 16];
    id.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
    Uuid::from_bytes(id)
}

/// Describes a log of which nothing is left.
pub(super) fn all_lost(name: &str, salvaged: &Salvaged) -> String {
    match salvaged.lost.len() {
        0 => format!("{name}: nothing in its log can be read"),
        1 => format!("{name}: its only entry is lost"),
        count => format!("{name}: all {count} entries are lost"),
    }
}

/// Describes a log that a repair leaves as it is, because it would lose an entry.
pub(super) fn left_alone(session: SessionId, seq: Seq) -> String {
    format!(
        "session {session}: left as it is, because a repair would lose entry {seq}, which can be read"
    )
}

/// Describes a fork that a repair leaves as it is, because the session that it continues is left.
pub(super) fn left_like_its_base(session: SessionId) -> String {
    format!("session {session}: left as it is, like the session that it continues")
}

/// Describes losses and alterations for the report.
pub(super) fn in_words(session: SessionId, salvaged: &Salvaged) -> Vec<String> {
    let words = |places: &[Seq], of_one: &str, of_more: &str| match places {
        [] => None,
        [one] => Some(format!("session {session}: entry {one} {of_one}")),
        more => Some(format!(
            "session {session}: entries {} {of_more}",
            ranges(more)
        )),
    };
    let lost = words(
        &salvaged.lost,
        "could not be read and is lost",
        "could not be read and are lost",
    );
    let doubtful = words(
        &salvaged.doubtful,
        "is readable but not as it was written",
        "are readable but not as they were written",
    );
    lost.into_iter().chain(doubtful).collect()
}

/// Formats sequence numbers: `1, 2, 5-9`.
fn ranges(places: &[Seq]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == place.0 => *end = place.0,
            _ => runs.push((place.0, place.0)),
        }
    }
    let run = |(first, last): &(u64, u64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_cannot_be_is_not_believed() {
        let known = |last| Known {
            session: SessionId::new(Uuid::from_u128(1)),
            parent: Head::START,
            parent_was: Head::START,
            base: None,
            last: Seq(last),
            now: Timestamp::UNIX_EPOCH,
        };
        let lines = |places: &[u64]| -> BTreeMap<Seq, Line> {
            let line = |seq| {
                (
                    Seq(seq),
                    Line {
                        seq: Seq(seq),
                        bytes: b"?".to_vec(),
                    },
                )
            };
            places.iter().copied().map(line).collect()
        };
        let check = |last, places: &[u64], expected| {
            let found = believable_last(&known(last), &lines(places));
            assert_eq!(found, Seq(expected), "{last} {places:?}");
        };
        check(3, &[1, 2, 3], 3);
        check(5, &[1, 2, 3], 5);
        check(u64::MAX, &[1, 2, 3], 3);
        check(3, &[1, 2, 3, 1 << 40], 3);
        let salvaged = salvage(&known(u64::MAX), &lines(&[1, 1 << 40]));
        assert_eq!(salvaged.lost, [Seq(1), Seq(1 << 40)]);
    }
}
