//! Vim mode of the input: a small normal mode.

use crossterm::event::{KeyCode, KeyEvent};

use super::text::{Piece, cluster_after, cluster_before, line_end, line_start, word_before};
use super::{Did, Input, written};
use crate::keymap::Action;

/// Mode of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vim {
    /// There are no modes.
    #[default]
    Off,
    /// Letters are written.
    Insert,
    /// Letters are commands, with the first one of a command such as `dd`.
    Normal(Option<char>),
}

impl Input {
    /// Turns vim mode on, beginning in insert mode.
    pub fn set_vim(&mut self, is_on: bool) {
        self.vim = match is_on {
            true => Vim::Insert,
            false => Vim::Off,
        };
    }

    /// Returns true if letters are commands.
    pub fn is_normal(&self) -> bool {
        matches!(self.vim, Vim::Normal(_))
    }

    /// Begins a new text: letters are written.
    pub(super) fn vim_anew(&mut self) {
        if self.is_normal() {
            self.vim = Vim::Insert;
        }
    }

    /// Handles a key in vim mode; `None` for one that acts as usual.
    pub(super) fn vim_key(&mut self, key: KeyEvent) -> Option<Did> {
        match self.vim {
            Vim::Insert if key.code == KeyCode::Esc && !self.is_empty() => {
                let start = line_start(self.piece.text(), self.cursor);
                self.go(cluster_before(self.piece.text(), self.cursor).max(start));
                self.set_mode(Vim::Normal(None))
            }
            Vim::Normal(Some(_)) if key.code == KeyCode::Esc => self.set_mode(Vim::Normal(None)),
            Vim::Normal(first) => {
                let letter = written(key)?;
                self.vim = Vim::Normal(None);
                Some(match first {
                    Some(first) => self.pair(first, letter),
                    None => self.single(letter, key),
                })
            }
            Vim::Off | Vim::Insert => None,
        }
    }

    fn set_mode(&mut self, mode: Vim) -> Option<Did> {
        self.vim = mode;
        self.completion.close();
        self.undo.pause();
        self.look_again();
        Some(Did::Changed)
    }

    /// Moves the cursor, and always redraws: the mode may have changed.
    fn go(&mut self, to: usize) -> Did {
        self.move_to(to);
        Did::Changed
    }

    /// A command of one letter.
    fn single(&mut self, letter: char, key: KeyEvent) -> Did {
        let (text, at) = (self.piece.text(), self.cursor);
        let (start, end) = (line_start(text, at), line_end(text, at));
        let after = cluster_after(text, at).min(end);
        let moved = match letter {
            'h' => Some(cluster_before(text, at).max(start)),
            'l' => Some(after),
            'w' => Some(next_word(text, at)),
            'b' => Some(word_before(text, at)),
            'e' => Some(word_end(text, at)),
            '0' => Some(start),
            '$' => Some(cluster_before(text, end).max(start)),
            _ => None,
        };
        if let Some(to) = moved {
            return self.go(to);
        }
        match letter {
            'j' => self.down(),
            'k' => self.up(),
            'i' => self.write_from(at),
            'a' => self.write_from(after),
            'I' => self.write_from(start),
            'A' => self.write_from(end),
            'o' => {
                self.write_from(end);
                self.insert(&Piece::plain("\n"), false);
                Did::Changed
            }
            'x' => self.delete(at..after, true),
            'D' => self.delete(at..end, true),
            'p' => self.put_after(),
            'u' => self.travel(Action::Undo),
            'd' | 'c' => {
                self.vim = Vim::Normal(Some(letter));
                Did::Changed
            }
            // An unknown letter is not written by mistake.
            _ if key.code == KeyCode::Char(letter) => Did::Nothing,
            _ => Did::Pass(key),
        }
    }

    /// A command of two letters: `d` or `c`, and what it applies to.
    fn pair(&mut self, first: char, second: char) -> Did {
        let (text, at) = (self.piece.text(), self.cursor);
        let (start, end) = (line_start(text, at), line_end(text, at));
        let range = match (first, second) {
            // The line feed goes, too.
            ('d', 'd') => start..cluster_after(text, end),
            ('c', 'c') => start..end,
            ('d', 'w') => at..next_word(text, at).min(end),
            ('c', 'w') | (_, 'e') => at..cluster_after(text, word_end(text, at)).min(end),
            (_, 'b') => word_before(text, at)..at,
            (_, '0') => start..at,
            (_, '$') => at..end,
            _ => return Did::Changed,
        };
        self.delete(range, true);
        if first == 'c' {
            self.set_mode(Vim::Insert);
        }
        Did::Changed
    }

    fn write_from(&mut self, at: usize) -> Did {
        self.move_to(at);
        self.set_mode(Vim::Insert);
        Did::Changed
    }

    /// Puts what was deleted after the cursor, or a deleted line below.
    fn put_after(&mut self) -> Did {
        let text = self.piece.text();
        let end = line_end(text, self.cursor);
        let at = match self.deleted.text().ends_with('\n') {
            true if end == text.len() => {
                self.move_to(end);
                self.insert(&Piece::plain("\n"), false);
                end + 1
            }
            true => end + 1,
            false => cluster_after(text, self.cursor).min(end),
        };
        self.move_to(at);
        self.yank()
    }
}

/// Kind of a character: blank, part of a word, or sign.
fn kind(letter: char) -> u8 {
    match letter {
        letter if letter.is_whitespace() => 0,
        letter if letter.is_alphanumeric() || letter == '_' => 1,
        _ => 2,
    }
}

/// Start of the next word.
fn next_word(text: &str, at: usize) -> usize {
    let mut letters = text[at..].char_indices().peekable();
    let Some((_, first)) = letters.peek().copied() else {
        return at;
    };
    while letters
        .next_if(|(_, letter)| kind(*letter) == kind(first))
        .is_some()
    {}
    while letters.next_if(|(_, letter)| kind(*letter) == 0).is_some() {}
    letters.peek().map_or(text.len(), |(offset, _)| at + offset)
}

/// Last character of this word, or of the next one if the cursor is there already.
fn word_end(text: &str, at: usize) -> usize {
    let after = cluster_after(text, at);
    let mut letters = text[after..].char_indices().peekable();
    while letters.next_if(|(_, letter)| kind(*letter) == 0).is_some() {}
    let Some((_, first)) = letters.peek().copied() else {
        return cluster_before(text, text.len()).max(at);
    };
    while letters
        .next_if(|(_, letter)| kind(*letter) == kind(first))
        .is_some()
    {}
    let end = letters
        .peek()
        .map_or(text.len(), |(offset, _)| after + offset);
    cluster_before(text, end)
}
