//! What was changed, so that it can be taken back: as far as some megabytes reach.

use std::collections::VecDeque;

use super::text::Piece;

/// So many bytes of changes are kept; the last change always is.
const MOST_BYTES: usize = 4 << 20;
/// So many changes are kept.
const MOST_CHANGES: usize = 1000;

/// One change of the text.
#[derive(Clone, Debug)]
pub struct Change {
    /// Where.
    pub at: usize,
    /// What was there before.
    pub old: Piece,
    /// What is there since.
    pub new: Piece,
    /// Where the cursor was.
    pub cursor: usize,
}

impl Change {
    fn weight(&self) -> usize {
        self.old.weight() + self.new.weight()
    }
}

/// The changes, and those that were taken back.
#[derive(Debug, Default)]
pub struct Undo {
    done: VecDeque<Change>,
    taken_back: Vec<Change>,
    bytes: usize,
    open: bool,
}

impl Undo {
    /// Remembers a change. Letters that are typed one after the other are one change, word by word.
    pub fn remember(&mut self, change: Change, typed: bool) {
        self.taken_back.clear();
        if typed && self.open && self.grown(&change) {
            return;
        }
        self.open = typed;
        self.bytes += change.weight();
        self.done.push_back(change);
        while self.done.len() > 1
            && (self.bytes > MOST_BYTES || self.done.len() > MOST_CHANGES)
            && let Some(oldest) = self.done.pop_front()
        {
            self.bytes -= oldest.weight();
        }
    }

    fn grown(&mut self, change: &Change) -> bool {
        let Some(last) = self.done.back_mut() else {
            return false;
        };
        let goes_on = change.old.is_empty() && last.at + last.new.text().len() == change.at;
        let begins_a_word = last.new.text().ends_with(char::is_whitespace)
            && !change.new.text().starts_with(char::is_whitespace);
        if goes_on && !begins_a_word {
            last.new.push(&change.new);
            self.bytes += change.new.weight();
        }
        goes_on && !begins_a_word
    }

    /// What comes next is a change of its own.
    pub fn pause(&mut self) {
        self.open = false;
    }

    /// The last change, which is to be taken back.
    pub fn undo(&mut self) -> Option<Change> {
        let last = self.done.pop_back()?;
        self.bytes -= last.weight();
        self.open = false;
        self.taken_back.push(last.clone());
        Some(last)
    }

    /// The change that was taken back last, which is to be made again.
    pub fn redo(&mut self) -> Option<Change> {
        let next = self.taken_back.pop()?;
        self.bytes += next.weight();
        self.open = false;
        self.done.push_back(next.clone());
        Some(next)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Undo::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_stays_small() {
        let mut undo = Undo::default();
        for round in 0..2000 {
            let new = Piece::plain(&"x".repeat(10_000));
            let change = Change {
                at: round,
                old: Piece::default(),
                new,
                cursor: 0,
            };
            undo.remember(change, false);
            assert!(undo.bytes <= MOST_BYTES && undo.done.len() <= MOST_CHANGES);
        }
        assert_eq!(undo.undo().unwrap().at, 1999);
    }
}
