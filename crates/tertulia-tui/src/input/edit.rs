//! Editing and cursor movement.

use std::ops::Range;

use crossterm::event::KeyEvent;

use super::text::{
    Piece, blank_before, cluster_after, cluster_before, line_end, line_start, word_after,
    word_before,
};
use super::undo::Change;
use super::{Did, Input, fold};
use crate::keymap::Action;

impl Input {
    /// Executes a movement, a deletion or a yank.
    pub(super) fn edit(&mut self, action: Action, key: KeyEvent) -> Did {
        if let Some(to) = self.target(action) {
            return self.move_to(to);
        }
        let (range, kept) = match action {
            Action::DeleteBack => (
                cluster_before(self.words(), self.cursor)..self.cursor,
                false,
            ),
            Action::DeleteForward => (self.cursor..cluster_after(self.words(), self.cursor), false),
            Action::DeleteWordBack => (word_before(self.words(), self.cursor)..self.cursor, true),
            Action::DeleteWordForward => (self.cursor..word_after(self.words(), self.cursor), true),
            Action::DeleteToBlank => (blank_before(self.words(), self.cursor)..self.cursor, true),
            Action::DeleteToStart => (self.to_start(), true),
            Action::DeleteToEnd => (self.to_end(), true),
            Action::Yank => return self.yank(),
            _ => return Did::Pass(key),
        };
        self.delete(range, kept)
    }

    fn words(&self) -> &str {
        self.piece.text()
    }

    /// Target of a cursor movement.
    fn target(&self, action: Action) -> Option<usize> {
        let (text, at) = (self.words(), self.cursor);
        Some(match action {
            Action::Left => cluster_before(text, at),
            Action::Right => cluster_after(text, at),
            Action::WordLeft => word_before(text, at),
            Action::WordRight => word_after(text, at),
            Action::LineStart => line_start(text, at),
            Action::LineEnd => line_end(text, at),
            _ => return None,
        })
    }

    /// The line up to the cursor; at its start, the line feed before it.
    fn to_start(&self) -> Range<usize> {
        match line_start(self.words(), self.cursor) {
            start if start == self.cursor => cluster_before(self.words(), start)..start,
            start => start..self.cursor,
        }
    }

    /// The line from the cursor on; at its end, the line feed after it.
    fn to_end(&self) -> Range<usize> {
        match line_end(self.words(), self.cursor) {
            end if end == self.cursor => end..cluster_after(self.words(), end),
            end => self.cursor..end,
        }
    }

    pub(super) fn move_to(&mut self, to: usize) -> Did {
        self.completion.close();
        self.undo.pause();
        self.wanted = None;
        if to == self.cursor {
            return Did::Nothing;
        }
        self.cursor = to;
        self.look_again();
        Did::Changed
    }

    pub(super) fn delete(&mut self, range: Range<usize>, kept: bool) -> Did {
        if range.is_empty() {
            return Did::Nothing;
        }
        if kept {
            self.deleted = self.piece.part(range.clone());
        }
        let was_active = self.completion.is_active();
        self.replace(range, &Piece::default(), false);
        // Completion goes on while its word is corrected; a deletion elsewhere does not open it.
        if was_active {
            return self.offer();
        }
        Did::Changed
    }

    pub(super) fn yank(&mut self) -> Did {
        if self.deleted.is_empty() {
            return Did::Nothing;
        }
        let deleted = self.deleted.clone();
        self.completion.close();
        self.insert(&deleted, false);
        Did::Changed
    }

    /// Inserts at the cursor.
    pub(super) fn insert(&mut self, new: &Piece, typed: bool) {
        self.replace(self.cursor..self.cursor, new, typed);
        if let Some(range) = fold::surplus(&self.piece, self.cursor) {
            let after = range.start >= self.cursor;
            let at = self.cursor;
            let folded = fold::folded(&self.piece.part(range.clone()));
            self.replace(range, &folded, false);
            if after {
                self.cursor = at;
            }
        }
    }

    /// Unfolds the passage before the cursor, if it is short enough to edit.
    pub(super) fn unfold(&mut self) -> bool {
        let Some(place) = self.piece.fold_before(self.cursor) else {
            return false;
        };
        let whole = self.piece.folds()[place].whole.clone();
        // A literal fold character would only be folded again.
        if whole.len() + self.words().len() > fold::MOST_SHOWN || whole.contains(super::text::FOLD)
        {
            return false;
        }
        let start = cluster_before(self.words(), self.cursor);
        self.replace(start..self.cursor, &Piece::plain(&whole), false);
        true
    }

    /// Replaces the whole text.
    pub(super) fn put(&mut self, new: &Piece) {
        if *new != self.piece {
            self.replace(0..self.words().len(), new, false);
        }
    }

    /// Single point through which the text is edited, so that every edit can be undone.
    pub(super) fn replace(&mut self, range: Range<usize>, new: &Piece, typed: bool) {
        let at = range.start;
        let old = self.piece.replace(range, new);
        let cursor = std::mem::replace(&mut self.cursor, at + new.text().len());
        let change = Change {
            at,
            old,
            new: new.clone(),
            cursor,
        };
        self.undo.remember(change, typed);
        self.touched();
    }

    /// Resets the state that depends on the text.
    pub(super) fn touched(&mut self) {
        self.browsing = None;
        self.wanted = None;
        self.completion.settle(self.piece.text(), self.cursor);
        self.look_again();
    }

    /// Undoes or redoes a change.
    pub(super) fn travel(&mut self, action: Action) -> Did {
        let back = action == Action::Undo;
        let change = if back {
            self.undo.undo()
        } else {
            self.undo.redo()
        };
        let Some(change) = change else {
            return Did::Nothing;
        };
        let (there, instead) = if back {
            (&change.new, &change.old)
        } else {
            (&change.old, &change.new)
        };
        let range = change.at..change.at + there.text().len();
        self.piece.replace(range, instead);
        self.cursor = if back {
            change.cursor
        } else {
            change.at + instead.text().len()
        };
        self.completion.close();
        self.touched();
        Did::Changed
    }
}
