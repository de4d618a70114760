//! Sequence numbers of a branch that a store keeps as a fork. In the fork, the entries after an
//! opening have higher numbers than in the log where they were written.

use super::{Entry, EntryError, Head};
use crate::id::Seq;

/// Places of the openings in a fork that keeps a branch; none for any other session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// In ascending order.
    openings: Vec<Seq>,
}

impl Numbering {
    /// Creates the numbering of a fork with these openings.
    pub fn new(mut openings: Vec<Seq>) -> Numbering {
        openings.sort_unstable();
        Numbering { openings }
    }

    /// Returns the numbering with more openings.
    pub fn with(self, openings: Vec<Seq>) -> Numbering {
        Numbering::new([self.openings, openings].concat())
    }

    /// Returns true if there is an opening at this place.
    pub fn has(&self, opening: Seq) -> bool {
        self.openings.binary_search(&opening).is_ok()
    }

    /// Returns true if all entries have the numbers that they had first.
    pub fn is_empty(&self) -> bool {
        self.openings.is_empty()
    }

    /// Returns the last entry before the first opening: up to there, both numbers are the same.
    pub fn shared(&self) -> Seq {
        let first = self.openings.first().copied();
        first.map_or(Seq(u64::MAX), |first| first.back(1))
    }

    /// Returns true if no opening stands after the fork's entry `stored`.
    pub fn is_last_part(&self, stored: Seq) -> bool {
        self.openings.last().is_none_or(|last| *last <= stored)
    }

    /// Returns the number in the fork of the branch's entry `seq`.
    pub fn stored(&self, seq: Seq) -> Seq {
        let before = self.openings.iter().enumerate();
        let before = before.filter(|(number, opening)| opening.0 - *number as u64 <= seq.0);
        Seq(seq.0 + before.count() as u64)
    }

    /// Returns the number in the branch of the fork's entry `seq`.
    pub fn original(&self, seq: Seq) -> Seq {
        Seq(seq.0 - self.openings.partition_point(|opening| *opening < seq) as u64)
    }

    /// Returns the numbering of a fork that leaves this one after its entry `stored`.
    pub fn forked_after(&self, stored: Seq) -> Numbering {
        let kept = self.openings.iter().filter(|opening| **opening <= stored);
        let openings = kept.copied().chain([stored.next()]).collect();
        Numbering { openings }
    }

    /// Returns an entry of the branch as the fork stores it after `parent`.
    pub fn to_stored(&self, entry: &Entry, parent: &Head) -> Result<Entry, EntryError> {
        entry.moved(parent, |seq| self.stored(seq))
    }

    /// Returns an entry of the fork as the branch has it after `parent`.
    pub fn to_original(&self, entry: &Entry, parent: &Head) -> Result<Entry, EntryError> {
        entry.moved(parent, |seq| self.original(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        // Fork entries: 1 2 3 (4 opening) 5 6 (7 opening) 8; branch entries: 1 2 3 4 5 6.
        let numbering = Numbering::new(vec![Seq(7), Seq(4)]);
        let stored: Vec<u64> = (1..=6).map(|seq| numbering.stored(Seq(seq)).0).collect();
        assert_eq!(stored, [1, 2, 3, 5, 6, 8]);
        for seq in 0..=6 {
            assert_eq!(numbering.original(numbering.stored(Seq(seq))), Seq(seq));
        }
        assert_eq!(numbering.shared(), Seq(3));
        let forked = numbering.forked_after(Seq(6));
        assert_eq!(forked, Numbering::new(vec![Seq(4), Seq(7)]));
        assert_eq!(numbering.forked_after(Seq(2)), Numbering::new(vec![Seq(3)]));
    }
}
