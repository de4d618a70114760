//! Vim mode of the input: counts, operators, motions and text objects, and the repetition of a change.

mod motion;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent};

use super::text::{Piece, cluster_after, cluster_before, line_end, line_start};
use super::{Did, Input, written};
use crate::keymap::Action;
use motion::{Find, MOST, Reach, find, first_letter, motion, object, words_end};

/// State of vim mode.
#[derive(Debug, Default)]
pub(super) struct Vim {
    mode: Mode,
    /// Last search for a character, for `;` and `,`.
    find: Option<Find>,
    /// Letters of the command that is being typed.
    letters: String,
    /// Last change, for `.`.
    last: Option<Change>,
    /// Text and cursor at the beginning of insert mode.
    before: Option<(String, usize)>,
}

/// Mode of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// There are no modes.
    #[default]
    Off,
    /// Letters are written.
    Insert,
    /// Letters are commands, with what was typed of one.
    Normal(Pending),
}

/// What was typed of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    /// Count before the operator.
    before: Option<usize>,
    /// `d`, `c` or `y`, which waits for what it applies to.
    operator: Option<char>,
    /// Count.
    count: Option<usize>,
    /// Letter that another one completes: `f`, `r`, or `i` and `a` of a text object.
    first: Option<char>,
}

/// A change that can be repeated.
#[derive(Clone, Debug, Default)]
struct Change {
    /// Letters of the command.
    letters: String,
    /// Text that was written in insert mode after it.
    text: String,
}

/// What a letter led to.
enum Step {
    /// The command goes on.
    More(Pending),
    /// The command is done.
    Done(Did),
    /// The command is done, and `.` repeats it.
    Change(Did),
}

impl Pending {
    fn times(self) -> Option<usize> {
        match (self.before, self.count) {
            (None, None) => None,
            (before, count) => {
                let times = before.unwrap_or(1).saturating_mul(count.unwrap_or(1));
                Some(times.min(MOST))
            }
        }
    }
}

impl Input {
    /// Turns vim mode on, beginning in insert mode.
    pub fn set_vim(&mut self, is_on: bool) {
        self.vim.mode = match is_on {
            true => Mode::Insert,
            false => Mode::Off,
        };
    }

    /// Returns true if letters are commands.
    pub fn is_normal(&self) -> bool {
        matches!(self.vim.mode, Mode::Normal(_))
    }

    /// Returns true if `Esc` ends the insert mode of an empty input.
    pub fn is_inserting_nothing(&self) -> bool {
        self.vim.mode == Mode::Insert && self.is_empty() && self.is_plain()
    }

    /// Begins a new text: letters are written.
    pub(super) fn vim_anew(&mut self) {
        self.vim.before = None;
        self.vim.letters.clear();
        if self.is_normal() {
            self.vim.mode = Mode::Insert;
        }
    }

    /// Handles a key in vim mode; `None` for one that acts as usual.
    pub(super) fn vim_key(&mut self, key: KeyEvent) -> Option<Did> {
        match self.vim.mode {
            Mode::Insert if key.code == KeyCode::Esc => Some(self.end_insert()),
            Mode::Normal(pending) if key.code == KeyCode::Esc => {
                self.vim.letters.clear();
                (pending != Pending::default())
                    .then(|| self.set_mode(Mode::Normal(Pending::default())))
            }
            Mode::Normal(pending) => {
                let letter = written(key)?;
                Some(self.take_letter(pending, letter, key))
            }
            Mode::Off | Mode::Insert => None,
        }
    }

    fn set_mode(&mut self, mode: Mode) -> Did {
        self.vim.mode = mode;
        self.completion.close();
        self.undo.pause();
        self.look_again();
        Did::Changed
    }

    /// Leaves insert mode, and remembers what was written in it.
    fn end_insert(&mut self) -> Did {
        let (text, cursor) = (self.piece.text(), self.cursor);
        if let (Some((before, at)), Some(last)) = (self.vim.before.take(), &mut self.vim.last) {
            let (head, tail) = before.split_at(at);
            let written = text
                .strip_prefix(head)
                .and_then(|rest| rest.strip_suffix(tail));
            written.unwrap_or_default().clone_into(&mut last.text);
        }
        let to = cluster_before(text, cursor).max(line_start(text, cursor));
        self.go(to);
        self.set_mode(Mode::Normal(Pending::default()))
    }

    /// Moves the cursor, and always redraws: the mode may have changed.
    fn go(&mut self, to: usize) -> Did {
        self.move_to(to);
        Did::Changed
    }

    fn take_letter(&mut self, pending: Pending, letter: char, key: KeyEvent) -> Did {
        self.vim.mode = Mode::Normal(Pending::default());
        self.vim.letters.push(letter);
        let (did, is_change) = match self.command(pending, letter, key) {
            Step::More(pending) => {
                self.vim.mode = Mode::Normal(pending);
                return Did::Changed;
            }
            Step::Done(did) => (did, false),
            Step::Change(did) => (did, true),
        };
        let letters = std::mem::take(&mut self.vim.letters);
        if is_change {
            let text = String::new();
            self.vim.last = Some(Change { letters, text });
        }
        did
    }

    fn command(&mut self, pending: Pending, letter: char, key: KeyEvent) -> Step {
        if let Some(first) = pending.first {
            return self.completed(pending, first, letter);
        }
        if let Some(digit) = letter.to_digit(10)
            && (digit > 0 || pending.count.is_some())
        {
            let count = pending.count.unwrap_or(0) * 10 + digit as usize;
            let count = Some(count.min(MOST));
            return Step::More(Pending { count, ..pending });
        }
        match (letter, pending.operator) {
            ('d' | 'c' | 'y', None) => Step::More(Pending {
                before: pending.count,
                operator: Some(letter),
                ..Pending::default()
            }),
            ('f' | 'F' | 't' | 'T' | 'g', _) | ('i' | 'a', Some(_)) | ('r', None) => {
                let first = Some(letter);
                Step::More(Pending { first, ..pending })
            }
            (';' | ',', _) => self.search_again(pending, letter),
            (_, Some(operator)) => self.operate(pending, operator, letter),
            (_, None) => self.single(pending.times(), letter, key),
        }
    }

    /// A command whose first letter was typed before.
    fn completed(&mut self, pending: Pending, first: char, letter: char) -> Step {
        let times = pending.times().unwrap_or(1);
        match (first, pending.operator) {
            ('i' | 'a', Some(operator)) => {
                let found = object(self.piece.text(), self.cursor, first == 'a', letter);
                match found {
                    Some(range) => self.apply(operator, range),
                    None => Step::Done(Did::Changed),
                }
            }
            ('r', _) => self.replace_letters(times, letter),
            ('g', operator) if letter == 'g' => {
                let line = pending.times().or(Some(1));
                let to = motion(self.piece.text(), self.cursor, 'G', line);
                self.moved(operator, to)
            }
            ('g', _) => Step::Done(Did::Changed),
            _ => {
                let search = Find {
                    how: first,
                    wanted: letter,
                };
                self.vim.find = Some(search);
                self.search(pending, search, false)
            }
        }
    }

    fn search_again(&mut self, pending: Pending, letter: char) -> Step {
        match self.vim.find {
            Some(search) if letter == ',' => self.search(pending, search.back(), true),
            Some(search) => self.search(pending, search, true),
            None => Step::Done(Did::Changed),
        }
    }

    fn search(&mut self, pending: Pending, search: Find, again: bool) -> Step {
        let times = pending.times().unwrap_or(1);
        let found = find(self.piece.text(), self.cursor, search, (times, again));
        let reach = match search.how.is_lowercase() {
            true => Reach::Inclusive,
            false => Reach::Exclusive,
        };
        self.moved(pending.operator, found.map(|to| (to, reach)))
    }

    /// Moves the cursor, or applies an operator to what lies between.
    fn moved(&mut self, operator: Option<char>, to: Option<(usize, Reach)>) -> Step {
        let (Some((to, reach)), text) = (to, self.piece.text()) else {
            return Step::Done(Did::Changed);
        };
        let (from, upto) = (self.cursor.min(to), self.cursor.max(to));
        let (from, upto) = match reach {
            _ if operator.is_none() => return Step::Done(self.go(to)),
            Reach::Exclusive => (from, upto),
            Reach::Inclusive => (from, cluster_after(text, upto).min(line_end(text, upto))),
            Reach::Lines => return self.apply_to_lines(operator.unwrap_or('y'), from, upto),
        };
        self.apply(operator.unwrap_or('y'), from..upto)
    }

    /// An operator, and what it applies to.
    fn operate(&mut self, pending: Pending, operator: char, letter: char) -> Step {
        let (text, at) = (self.piece.text(), self.cursor);
        let times = pending.times().unwrap_or(1);
        let lines = |down: bool, count: usize| {
            (0..count).fold(at, |at, _| match down {
                true => cluster_after(text, line_end(text, at)),
                false => cluster_before(text, line_start(text, at)),
            })
        };
        match letter {
            _ if letter == operator => {
                let upto = lines(true, times - 1);
                self.apply_to_lines(operator, at, upto)
            }
            'j' => {
                let upto = lines(true, times);
                self.apply_to_lines(operator, at, upto)
            }
            'k' => {
                let from = lines(false, times);
                self.apply_to_lines(operator, from, at)
            }
            'w' if operator == 'c' => {
                let to = motion(text, at, 'e', Some(times));
                self.moved(Some('c'), to)
            }
            'w' => {
                let upto = words_end(text, at, times);
                self.apply(operator, at..upto)
            }
            _ => {
                let to = motion(text, at, letter, pending.times());
                self.moved(Some(operator), to)
            }
        }
    }

    /// Deletes, changes or copies a part of the text.
    fn apply(&mut self, operator: char, range: Range<usize>) -> Step {
        if operator == 'y' {
            self.deleted = self.piece.part(range.clone());
            return Step::Done(self.go(range.start));
        }
        self.delete(range.clone(), true);
        match operator {
            'c' => self.write_from(range.start),
            _ => Step::Change(self.go(range.start)),
        }
    }

    /// The same for the lines from that of `from` to that of `upto`.
    fn apply_to_lines(&mut self, operator: char, from: usize, upto: usize) -> Step {
        let text = self.piece.text();
        let (start, end) = (line_start(text, from), line_end(text, upto));
        let mut lines = self.piece.part(start..end);
        lines.push(&Piece::plain("\n"));
        let at = self.cursor;
        let range = match operator {
            'y' => {
                self.deleted = lines;
                return Step::Done(self.go(at.min(start.max(from))));
            }
            'c' => start..end,
            // The line feed goes, too: that before the last line.
            _ if end == text.len() => cluster_before(text, start)..end,
            _ => start..cluster_after(text, end),
        };
        self.delete(range, true);
        self.deleted = lines;
        match operator {
            'c' => self.write_from(start),
            _ => {
                let text = self.piece.text();
                let start = line_start(text, self.cursor);
                Step::Change(self.go(first_letter(text, start)))
            }
        }
    }

    /// A command of one letter.
    fn single(&mut self, times: Option<usize>, letter: char, key: KeyEvent) -> Step {
        let (text, at) = (self.piece.text(), self.cursor);
        if let Some((to, _)) = motion(text, at, letter, times) {
            return Step::Done(self.go(to));
        }
        let (start, end) = (line_start(text, at), line_end(text, at));
        let after = cluster_after(text, at).min(end);
        let right = motion(text, at, 'l', times).map_or(at, |(to, _)| to);
        let left = motion(text, at, 'h', times).map_or(at, |(to, _)| to);
        match letter {
            'j' | 'k' => Step::Done(self.up_or_down(letter == 'k', times.unwrap_or(1))),
            'i' => self.write_from(at),
            'a' => self.write_from(after),
            'I' => {
                let at = first_letter(text, start);
                self.write_from(at)
            }
            'A' => self.write_from(end),
            'o' => self.write_line(end, end + 1),
            'O' => self.write_line(start, start),
            'x' => self.apply('d', at..right),
            'X' => self.apply('d', left..at),
            's' => self.apply('c', at..right),
            'S' => self.apply_to_lines('c', at, at),
            'D' => self.apply('d', at..end),
            'C' => self.apply('c', at..end),
            'Y' => self.apply_to_lines('y', at, at),
            'p' | 'P' => self.put_deleted(letter == 'P', times.unwrap_or(1)),
            'u' => Step::Done(self.travel(Action::Undo)),
            '.' => self.repeat_change(),
            // An unknown letter is not written by mistake.
            _ if key.code == KeyCode::Char(letter) => Step::Done(Did::Nothing),
            _ => Step::Done(Did::Pass(key)),
        }
    }

    fn up_or_down(&mut self, is_up: bool, times: usize) -> Did {
        let mut did = Did::Nothing;
        for _ in 0..times.min(self.piece.text().matches('\n').count().max(1)) {
            did = match is_up {
                true => self.up(),
                false => self.down(),
            };
        }
        did
    }

    fn write_from(&mut self, at: usize) -> Step {
        self.move_to(at);
        self.vim.before = Some((self.piece.text().to_owned(), self.cursor));
        Step::Change(self.set_mode(Mode::Insert))
    }

    /// Begins a line.
    fn write_line(&mut self, at: usize, from: usize) -> Step {
        self.move_to(at);
        self.insert(&Piece::plain("\n"), false);
        self.write_from(from)
    }

    fn replace_letters(&mut self, times: usize, letter: char) -> Step {
        let (text, at) = (self.piece.text(), self.cursor);
        let Some((to, _)) = motion(text, at, 'l', Some(times)) else {
            return Step::Done(Did::Changed);
        };
        let count = text[at..to].chars().count();
        if count < times {
            return Step::Done(Did::Changed);
        }
        let new = letter.to_string().repeat(times);
        self.replace(at..to, &Piece::plain(&new), false);
        let last = cluster_before(self.piece.text(), at + new.len());
        Step::Change(self.go(last))
    }

    /// Puts what was deleted or copied at the cursor, or whole lines above or below.
    fn put_deleted(&mut self, is_before: bool, times: usize) -> Step {
        let (text, deleted) = (self.piece.text(), self.deleted.clone());
        if deleted.is_empty() {
            return Step::Done(Did::Nothing);
        }
        let (start, end) = (line_start(text, self.cursor), line_end(text, self.cursor));
        let is_last = end == text.len();
        let mut all = Piece::default();
        for _ in 0..times.min(MOST / deleted.text().len().max(1) + 1) {
            all.push(&deleted);
        }
        let (at, first) = match (deleted.text().ends_with('\n'), is_before) {
            (true, true) => (start, start),
            (true, false) if is_last => {
                let lines = all.part(0..all.text().len() - 1);
                all = Piece::plain("\n");
                all.push(&lines);
                (end, end + 1)
            }
            (true, false) => (end + 1, end + 1),
            (false, true) => (self.cursor, self.cursor),
            (false, false) => {
                let after = cluster_after(text, self.cursor).min(end);
                (after, after)
            }
        };
        self.move_to(at);
        self.insert(&all, false);
        let to = match deleted.text().ends_with('\n') {
            true => first_letter(self.piece.text(), first),
            false => cluster_before(self.piece.text(), self.cursor),
        };
        Step::Change(self.go(to))
    }

    /// Repeats the last change with what was written in it.
    fn repeat_change(&mut self) -> Step {
        let Some(last) = self.vim.last.clone() else {
            return Step::Done(Did::Nothing);
        };
        self.vim.letters.clear();
        for letter in last.letters.chars() {
            if let Mode::Normal(pending) = self.vim.mode {
                self.take_letter(pending, letter, KeyEvent::from(KeyCode::Char(letter)));
            }
        }
        if self.vim.mode == Mode::Insert {
            self.insert(&Piece::plain(&last.text), false);
            self.end_insert();
        }
        self.vim.last = Some(last);
        Step::Done(Did::Changed)
    }
}
