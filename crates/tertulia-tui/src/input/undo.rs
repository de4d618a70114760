//! Undo and redo history of the input, bounded in size.

use std::collections::VecDeque;

use super::text::Piece;

/// Maximum size of the kept changes; the last change is always kept.
const MOST_BYTES: usize = 4 << 20;
/// Maximum number of changes kept.
const MOST_CHANGES: usize = 1000;

/// One change of the text.
#[derive(Clone, Debug)]
pub struct Change {
    /// Offset.
    pub at: usize,
    /// Replaced text.
    pub old: Piece,
    /// New text.
    pub new: Piece,
    /// Cursor before the change.
    pub cursor: usize,
}

impl Change {
    fn weight(&self) -> usize {
        self.old.weight() + self.new.weight()
    }
}

/// Changes that can be undone and redone.
#[derive(Debug, Default)]
pub struct Undo {
    done: VecDeque<Change>,
    taken_back: Vec<Change>,
    bytes: usize,
    open: bool,
}

impl Undo {
    /// Records a change. Consecutively typed characters are merged word by word.
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

    /// Ends merging: the next change is recorded separately.
    pub fn pause(&mut self) {
        self.open = false;
    }

    /// Returns the last change, to be undone.
    pub fn undo(&mut self) -> Option<Change> {
        let last = self.done.pop_back()?;
        self.bytes -= last.weight();
        self.open = false;
        self.taken_back.push(last.clone());
        Some(last)
    }

    /// Returns the last undone change, to be redone.
    pub fn redo(&mut self) -> Option<Change> {
        let next = self.taken_back.pop()?;
        self.bytes += next.weight();
        self.open = false;
        self.done.push_back(next.clone());
        Some(next)
    }

    /// Clears the history.
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
