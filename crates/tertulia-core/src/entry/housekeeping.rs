//! Merges titles, tags and trash that two machines changed at the same time, without a fork.
//!
//! The result depends only on what both have, not on who merges: what cannot be moved stays, and the
//! changes that can be moved follow in the order of their time and id. All machines end with the same
//! hashes. Sealed words are tied to their place, so titles and tags of a sealed session are moved
//! where the key is at hand.

use std::collections::{HashMap, HashSet};

use super::{Body, Entry, Head, Sealed};
use crate::id::{EntryId, Seq};
use crate::seal::{SealError, SessionKeys};

/// A continuation of a log after the last entry that it shares with another one.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    /// Its entries.
    pub entries: &'a [Entry],
    /// The last entry that a fork or a merge refers to: up to there, nothing is moved.
    pub fixed: Seq,
}

/// How titles and tags of a sealed session get another place.
#[derive(Clone, Copy, Debug)]
pub enum SealedChanges<'a> {
    /// They stay: the key is not at hand.
    Stay,
    /// They are sealed again.
    Reseal(&'a SessionKeys),
    /// They were moved where the key is at hand, and are among these entries. What they show must be what
    /// they showed before; whether the words are the same, only the key tells.
    Moved(&'a [Entry]),
}

impl SealedChanges<'_> {
    fn can_move(self) -> bool {
        !matches!(self, SealedChanges::Stay)
    }

    /// Returns a sealed change as the next entry after `parent`.
    fn moved(self, entry: &Entry, sealed: &Sealed, parent: &Head) -> Result<Entry, SealError> {
        match self {
            SealedChanges::Stay => Err(SealError::Failed),
            SealedChanges::Reseal(keys) => keys.moved(entry, sealed, parent),
            SealedChanges::Moved(entries) => {
                let mut entries = entries.iter();
                let moved = entries.find(|moved| shows_the_same(moved, entry));
                let moved = moved.filter(|moved| moved.follows(parent));
                moved.cloned().ok_or(SealError::Altered)
            }
        }
    }
}

/// Returns true if two sealed entries differ in nothing but their place and their ciphertext.
fn shows_the_same(one: &Entry, other: &Entry) -> bool {
    let (Body::Sealed(ours), Body::Sealed(theirs)) = (&one.body, &other.body) else {
        return false;
    };
    let theirs = Sealed {
        data: ours.data.clone(),
        ..theirs.clone()
    };
    *ours == theirs
        && (one.id, one.at, one.then) == (other.id, other.at, other.then)
        && one.author == other.author
}

impl<'a> Tail<'a> {
    /// Splits the entries into those that stay where they are, and the changes at the end that can be
    /// moved.
    fn split(&self, sealed: bool) -> (&'a [Entry], &'a [Entry]) {
        let can_move = |at: &usize| {
            let entry = &self.entries[*at];
            // What was written at once stays together.
            let is_alone =
                entry.then == 0 && (*at == 0 || self.entries[at.saturating_sub(1)].then == 0);
            entry.seq > self.fixed && is_alone && is_change(&entry.body, sealed)
        };
        let moving = (0..self.entries.len()).rev().take_while(can_move).count();
        self.entries.split_at(self.entries.len() - moving)
    }

    /// Returns the id of an entry by its number.
    fn id_at(&self, seq: Seq) -> Option<EntryId> {
        let found = self
            .entries
            .binary_search_by_key(&seq, |entry| entry.seq)
            .ok()?;
        self.entries.get(found).map(|entry| entry.id)
    }
}

fn is_change(body: &Body, sealed: bool) -> bool {
    match body {
        Body::Renamed(_)
        | Body::Tagged(_)
        | Body::Trashed(_)
        | Body::Restored(_)
        | Body::Undone(_) => true,
        Body::Sealed(words) => sealed && matches!(words.of.as_str(), "renamed" | "tagged"),
        _ => false,
    }
}

/// Returns the entries of two continuations that stay where they are; `None` if both have some that the
/// other one lacks.
fn kept<'a>(one: &'a [Entry], other: &'a [Entry]) -> Option<&'a [Entry]> {
    let (kept, less) = match one.len() >= other.len() {
        true => (one, other),
        false => (other, one),
    };
    // Hashes are chained: an equal entry at the same place proves that all before it are equal.
    let same = kept[..less.len()].last().map(Entry::head);
    (less.last().map(Entry::head) == same).then_some(kept)
}

/// Returns true if two continuations can be merged, where the key of a sealed session is at hand.
pub fn can_be_merged(one: Tail<'_>, other: Tail<'_>) -> bool {
    kept(one.split(true).0, other.split(true).0).is_some()
}

/// Returns the entries after `common` of the log that has both continuations; `None` if both have
/// entries that must stay: then they diverged.
pub fn merged_tail(
    common: Head,
    one: Tail<'_>,
    other: Tail<'_>,
    sealed: SealedChanges<'_>,
) -> Result<Option<Vec<Entry>>, SealError> {
    let (kept_by_one, changes_of_one) = one.split(sealed.can_move());
    let (kept_by_other, changes_of_other) = other.split(sealed.can_move());
    let Some(kept) = kept(kept_by_one, kept_by_other) else {
        return Ok(None);
    };
    let kept = kept.to_vec();
    let mut seen: HashSet<EntryId> = kept.iter().map(|entry| entry.id).collect();
    let changes = changes_of_one.iter().map(|entry| (entry, one));
    let changes = changes.chain(changes_of_other.iter().map(|entry| (entry, other)));
    let mut changes: Vec<(&Entry, Tail<'_>)> =
        changes.filter(|(entry, _)| seen.insert(entry.id)).collect();
    changes.sort_by_key(|(entry, _)| (entry.at, entry.id));
    let ids = kept.iter().chain(changes.iter().map(|(entry, _)| *entry));
    let places = (common.seq.0 + 1..).map(Seq);
    let places: HashMap<EntryId, Seq> = ids.map(|entry| entry.id).zip(places).collect();
    let mut head = kept.last().map_or(common, Entry::head);
    let mut merged = kept;
    for (entry, tail) in changes {
        let place_of = |seq: Seq| {
            let id = tail.id_at(seq);
            id.and_then(|id| places.get(&id)).copied().unwrap_or(seq)
        };
        let moved = match &entry.body {
            _ if entry.follows(&head) => entry.clone(),
            Body::Sealed(words) => sealed.moved(entry, words, &head)?,
            _ => entry.moved(&head, place_of)?,
        };
        head = moved.head();
        merged.push(moved);
    }
    Ok(Some(merged))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::entry::{Lost, NewEntry, Renamed, Touched, Undone};

    const NOTHING: Seq = Seq::START;
    const STAY: SealedChanges<'_> = SealedChanges::Stay;

    fn new(n: u128, second: u32, body: Body) -> NewEntry {
        NewEntry {
            id: EntryId::new(uuid::Uuid::from_u128(n)),
            at: format!("2026-11-17T06:00:{second:02}Z").parse().unwrap(),
            body,
            redacted: BTreeMap::new(),
            author: None,
        }
    }

    fn operation() -> EntryId {
        EntryId::new(uuid::Uuid::from_u128(99))
    }

    fn renamed(n: u128, second: u32) -> NewEntry {
        let title = format!("title {n}");
        let operation = operation();
        new(n, second, Body::Renamed(Renamed { title, operation }))
    }

    fn words(n: u128, second: u32) -> NewEntry {
        new(n, second, Body::Lost(Lost { reason: "x".into() }))
    }

    /// Appends entries one by one.
    fn tail(after: Head, new: Vec<NewEntry>) -> Vec<Entry> {
        let mut head = after;
        new.into_iter()
            .flat_map(|new| {
                let entries = Entry::chain(&head, vec![new]).unwrap();
                head = entries[0].head();
                entries
            })
            .collect()
    }

    fn common() -> Head {
        tail(Head::START, vec![words(1, 0)])[0].head()
    }

    fn merge(one: &[Entry], other: &[Entry]) -> Option<Vec<Entry>> {
        let free = |entries| Tail {
            entries,
            fixed: NOTHING,
        };
        let merged = merged_tail(common(), free(one), free(other), STAY).unwrap();
        let again = merged_tail(common(), free(other), free(one), STAY).unwrap();
        assert_eq!(merged, again, "both sides merge alike");
        if let Some(merged) = &merged {
            let mut head = common();
            for entry in merged {
                assert!(entry.follows(&head));
                head = entry.head();
            }
            assert_eq!(
                merged_tail(common(), free(merged), free(one), STAY).unwrap(),
                Some(merged.clone())
            );
        }
        merged
    }

    fn ids(entries: &[Entry]) -> Vec<u128> {
        entries
            .iter()
            .map(|entry| entry.id.uuid().as_u128())
            .collect()
    }

    #[test]
    fn changes_of_three_machines_end_alike_in_any_order() {
        let tails = [
            tail(common(), vec![renamed(10, 3), renamed(11, 9)]),
            tail(common(), vec![renamed(20, 1), renamed(21, 5)]),
            tail(common(), vec![renamed(30, 3)]),
        ];
        for [a, b, c] in [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]] {
            let two = merge(&tails[a], &tails[b]).unwrap();
            let three = merge(&two, &tails[c]).unwrap();
            assert_eq!(ids(&three), [20, 10, 30, 21, 11]);
        }
    }

    #[test]
    fn changes_follow_words_and_are_not_repeated() {
        let theirs = tail(common(), vec![renamed(20, 1), words(21, 2), renamed(22, 8)]);
        let ours = tail(common(), vec![renamed(10, 5), renamed(20, 1)]);
        let merged = merge(&ours, &theirs).unwrap();
        assert_eq!(ids(&merged), [20, 21, 10, 22]);
        assert_eq!(merged[..2], theirs[..2]);
        let more = tail(common(), vec![words(40, 1)]);
        assert_eq!(merge(&merged, &more), None);
    }

    #[test]
    fn what_a_fork_refers_to_stays() {
        let ours = tail(common(), vec![renamed(10, 1)]);
        let theirs = tail(common(), vec![renamed(20, 2), renamed(21, 3)]);
        let free = Tail {
            entries: &ours,
            fixed: NOTHING,
        };
        let held = Tail {
            entries: &theirs,
            fixed: theirs[0].seq,
        };
        let merged = merged_tail(common(), free, held, STAY).unwrap().unwrap();
        assert_eq!(ids(&merged), [20, 10, 21]);
        assert_eq!(merged[0], theirs[0]);
        let both = Tail {
            fixed: ours[0].seq,
            ..free
        };
        assert_eq!(merged_tail(common(), both, held, STAY).unwrap(), None);
    }

    #[test]
    fn an_undone_change_is_the_same_one() {
        let undone = Body::Undone(Undone {
            change: Seq(2),
            operation: operation(),
        });
        let ours = tail(common(), vec![renamed(10, 4), new(11, 6, undone)]);
        let trashed = Body::Trashed(Touched {
            operation: operation(),
        });
        let theirs = tail(common(), vec![new(20, 1, trashed)]);
        let merged = merge(&ours, &theirs).unwrap();
        assert_eq!(ids(&merged), [20, 10, 11]);
        match &merged[2].body {
            Body::Undone(undone) => assert_eq!(undone.change, Seq(3)),
            body => panic!("{body:?}"),
        }
    }

    #[test]
    fn what_was_written_at_once_stays_together() {
        let at_once = Entry::chain(&common(), vec![words(10, 1), renamed(11, 1)]).unwrap();
        let theirs = tail(common(), vec![renamed(20, 0)]);
        assert_eq!(ids(&merge(&at_once, &theirs).unwrap()), [10, 11, 20]);
    }
}
