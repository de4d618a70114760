//! Moves up and down in the text, and beyond its edges through the history; searches the history.

use crossterm::event::KeyEvent;

use super::text::Piece;
use super::{Did, Input, fold, written};
use crate::keymap::{self, Action, Where};

/// Maximum length of a search text.
const LONGEST_SEARCH: usize = 200;

impl Input {
    pub(super) fn up(&mut self) -> Did {
        let row = self.seen().row;
        // Go on browsing unless the cursor was moved, which means the entry is being edited.
        let untouched = self.browsing.is_some() && self.cursor == self.piece.text().len();
        if row > 0 && !untouched {
            return self.move_to_row(row - 1);
        }
        let place = self.browsing.unwrap_or(self.history.len());
        let Some(older) = place.checked_sub(1) else {
            return Did::Nothing;
        };
        if self.browsing.is_none() {
            self.draft = self.piece.clone();
            self.draft_command = self.command;
        }
        self.show_entry(older)
    }

    pub(super) fn down(&mut self) -> Did {
        let seen = self.seen();
        if seen.row + 1 < seen.layout.rows().len() {
            let row = seen.row + 1;
            return self.move_to_row(row);
        }
        let Some(place) = self.browsing else {
            return Did::Nothing;
        };
        if place + 1 < self.history.len() {
            return self.show_entry(place + 1);
        }
        self.completion.close();
        let draft = std::mem::take(&mut self.draft);
        self.put(&draft);
        self.set_command(self.draft_command);
        self.browsing = None;
        Did::Changed
    }

    fn show_entry(&mut self, place: usize) -> Did {
        let Some(entry) = self.history.get(place).cloned() else {
            return Did::Nothing;
        };
        self.completion.close();
        self.put_written(&entry, fold::recalled);
        self.cursor = self.piece.text().len();
        self.look_again();
        self.browsing = Some(place);
        Did::Changed
    }

    fn move_to_row(&mut self, row: usize) -> Did {
        self.completion.close();
        self.undo.pause();
        let seen = self.seen();
        let column = self.wanted.unwrap_or(seen.column);
        let to = seen.layout.at(&self.piece, row, column);
        self.wanted = Some(column);
        self.cursor = to;
        self.look_again();
        Did::Changed
    }

    pub(super) fn search_key(&mut self, key: KeyEvent) -> Did {
        match (keymap::only(Where::Search, key), written(key)) {
            (Some(Action::Older), _) => self.searched(|search, history| search.older(history)),
            (Some(Action::DeleteBack), _) => {
                self.searched(|search, history| search.delete(history))
            }
            (Some(Action::GiveUp), _) => {
                self.search = None;
                self.look_again();
                Did::Changed
            }
            (Some(_), _) => self.take_found(),
            (None, Some(letter)) => self.search_for(letter.encode_utf8(&mut [0; 4])),
            // Any other key accepts the result and then acts as usual.
            (None, None) => {
                self.take_found();
                match self.key(key) {
                    Did::Nothing => Did::Changed,
                    did => did,
                }
            }
        }
    }

    /// Extends the search text.
    pub(super) fn search_for(&mut self, more: &str) -> Did {
        self.searched(|search, history| {
            let room = LONGEST_SEARCH.saturating_sub(search.words().len());
            let letters: String = more
                .chars()
                .filter(|c| !c.is_control())
                .take(room)
                .collect();
            if !letters.is_empty() {
                search.write(&letters, history);
            }
        })
    }

    fn searched(
        &mut self,
        step: impl FnOnce(&mut crate::history::Search, &crate::history::History),
    ) -> Did {
        if let Some(searching) = &mut self.search {
            step(&mut searching.search, &self.history);
            let found = searching.search.found(&self.history).unwrap_or_default();
            searching.shown = if found.len() > fold::MOST_SHOWN {
                // Show the beginning, since the search finds only hits there.
                Piece::plain(&found[..found.floor_char_boundary(fold::MOST_SHOWN)])
            } else {
                Piece::plain(found)
            };
        }
        self.look_again();
        Did::Changed
    }

    fn take_found(&mut self) -> Did {
        if let Some(searching) = self.search.take()
            && let Some(found) = searching.search.found(&self.history)
        {
            let found = found.to_owned();
            self.undo.pause();
            self.put_written(&found, fold::recalled);
            self.cursor = self.piece.text().len();
        }
        self.look_again();
        Did::Changed
    }
}
