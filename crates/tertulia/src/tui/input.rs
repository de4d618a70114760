//! The input: where a person writes. Keys go in, what they did comes out; nothing is read or written here.

mod edit;
pub mod fold;
pub mod layout;
mod recall;
pub mod text;
mod undo;

use std::cell::OnceCell;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use unicode_width::UnicodeWidthStr;

use super::completion::{Asked, Candidate, Completion};
use super::history::{History, Search};
use super::keymap::{self, Action, Where};
use crate::ui::fit;
use layout::Layout;
use text::Piece;
use undo::Undo;

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// Nothing.
    Nothing,
    /// Something looks different now.
    Changed,
    /// Something looks different now, and this should be looked up for [`Input::candidates`].
    Complete(Asked),
    /// This was said; the input is empty now.
    Submit(String),
    /// The person wants to leave.
    Leave,
    /// The key means nothing here.
    Pass(KeyEvent),
}

/// Where a person writes.
#[derive(Debug)]
pub struct Input {
    piece: Piece,
    cursor: usize,
    undo: Undo,
    deleted: Piece,
    history: History,
    /// Which of the history is shown, while somebody goes through it.
    browsing: Option<usize>,
    /// What was written before.
    draft: Piece,
    search: Option<Searching>,
    completion: Completion,
    label: String,
    placeholder: String,
    columns: u16,
    screen_rows: u16,
    /// The column that going up and down keeps to.
    wanted: Option<usize>,
    seen: OnceCell<Seen>,
    top: usize,
}

/// A search through the history. The text waits meanwhile.
#[derive(Debug, Default)]
struct Searching {
    search: Search,
    shown: Piece,
}

/// Where everything stands on the screen.
#[derive(Debug)]
pub struct Seen {
    /// The rows.
    pub layout: Layout,
    /// The first row that is shown.
    pub top: usize,
    /// The row of the cursor, of all.
    pub row: usize,
    /// Its column, after the label.
    pub column: usize,
}

impl Input {
    /// An empty input.
    pub fn new(history: History) -> Input {
        Input {
            piece: Piece::default(),
            cursor: 0,
            undo: Undo::default(),
            deleted: Piece::default(),
            history,
            browsing: None,
            draft: Piece::default(),
            search: None,
            completion: Completion::default(),
            label: "You>".to_owned(),
            placeholder: String::new(),
            columns: 80,
            screen_rows: 24,
            wanted: None,
            seen: OnceCell::new(),
            top: 0,
        }
    }

    /// Who writes: stands before the text.
    pub fn set_label(&mut self, label: &str) {
        if self.label != label {
            label.clone_into(&mut self.label);
            self.look_again();
        }
    }

    /// What stands there while nothing is written.
    pub fn set_placeholder(&mut self, placeholder: &str) {
        placeholder.clone_into(&mut self.placeholder);
    }

    /// Who can be named: in `[NEXT: …]` and after `@`.
    pub fn set_members(&mut self, members: Vec<Candidate>) {
        self.completion.set_members(members);
    }

    /// As whom one can speak: after `/as`.
    pub fn set_people(&mut self, people: Vec<Candidate>) {
        self.completion.set_people(people);
    }

    /// How wide the input is, and how high the whole screen.
    pub fn resize(&mut self, columns: u16, screen_rows: u16) {
        if (self.columns, self.screen_rows) != (columns, screen_rows) {
            (self.columns, self.screen_rows) = (columns, screen_rows);
            self.look_again();
        }
    }

    /// How many rows it needs: a third of the screen at most.
    pub fn height(&self) -> u16 {
        let rows = self.seen().layout.rows().len();
        u16::try_from(rows)
            .unwrap_or(u16::MAX)
            .min(self.most_rows())
    }

    fn most_rows(&self) -> u16 {
        (self.screen_rows / 3).max(1)
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.piece.is_empty()
    }

    /// All that is written, byte for byte.
    pub fn text(&self) -> String {
        self.piece.whole()
    }

    /// Puts something else there, which can be undone.
    pub fn set_text(&mut self, text: &str) {
        self.search = None;
        self.completion.close();
        self.put(&fold::written(text));
    }

    /// Empties it, which can be undone.
    pub fn clear(&mut self) {
        self.set_text("");
    }

    /// What is offered to complete the word.
    pub fn completion(&self) -> &Completion {
        &self.completion
    }

    /// Takes in what a [`Did::Complete`] asked for. What answers an older question is dropped.
    pub fn candidates(&mut self, asked: &Asked, found: Vec<Candidate>) -> Did {
        if self.completion.answer(asked, found) {
            Did::Changed
        } else {
            Did::Nothing
        }
    }

    /// What was pasted goes in as it is; what is long is shown as one label.
    pub fn paste(&mut self, text: &str) -> Did {
        if text.is_empty() {
            return Did::Nothing;
        }
        if self.search.is_some() {
            return self.search_for(text.lines().next().unwrap_or_default());
        }
        self.completion.close();
        self.undo.pause();
        self.insert(&fold::pasted(text), false);
        self.undo.pause();
        Did::Changed
    }

    /// Does what a key says.
    pub fn key(&mut self, key: KeyEvent) -> Did {
        if key.kind == KeyEventKind::Release {
            return Did::Nothing;
        }
        if self.search.is_some() {
            return self.search_key(key);
        }
        if self.completion.is_open()
            && let Some(action) = keymap::only(Where::Popup, key)
        {
            return self.popup(action, key);
        }
        match (keymap::only(Where::Input, key), written(key)) {
            (Some(action), _) => self.act(action, key),
            (None, Some(letter)) => {
                let mut bytes = [0; 4];
                self.insert(&Piece::plain(letter.encode_utf8(&mut bytes)), true);
                self.offer()
            }
            (None, None) => Did::Pass(key),
        }
    }

    fn act(&mut self, action: Action, key: KeyEvent) -> Did {
        match action {
            Action::Send => self.send(),
            Action::NewLine => {
                self.completion.close();
                self.insert(&Piece::plain("\n"), true);
                Did::Changed
            }
            Action::Complete => self.complete(key),
            Action::SearchHistory => {
                self.completion.close();
                self.search = Some(Searching::default());
                self.look_again();
                Did::Changed
            }
            Action::Up => self.up(),
            Action::Down => self.down(),
            Action::DeleteForward if self.is_empty() && key.code == KeyCode::Char('d') => {
                Did::Leave
            }
            Action::Undo | Action::Redo => self.travel(action),
            _ => self.edit(action, key),
        }
    }

    fn send(&mut self) -> Did {
        let before = self.cursor;
        if self.piece.text()[..before].ends_with('\\') {
            self.completion.close();
            self.replace(before - 1..before, &Piece::plain("\n"), false);
            return Did::Changed;
        }
        let words = self.piece.whole();
        if words.trim().is_empty() {
            return Did::Nothing;
        }
        self.history.push(&words);
        self.completion.close();
        self.piece = Piece::default();
        self.cursor = 0;
        self.undo.clear();
        self.draft = Piece::default();
        self.touched();
        Did::Submit(words)
    }

    fn popup(&mut self, action: Action, key: KeyEvent) -> Did {
        match action {
            Action::Next => self.completion.choose(true),
            Action::Previous => self.completion.choose(false),
            Action::Close => self.completion.dismiss(),
            _ if key.code == KeyCode::Enter && self.completion.is_written() => return self.send(),
            _ => return self.accept(),
        }
        Did::Changed
    }

    fn accept(&mut self) -> Did {
        let Some(accepted) = self.completion.accept(self.piece.text()) else {
            return Did::Nothing;
        };
        self.undo.pause();
        self.replace(accepted.range, &Piece::plain(&accepted.text), false);
        // A finished word is not offered once more.
        if accepted.goes_on || accepted.text.ends_with(' ') {
            return self.offer();
        }
        Did::Changed
    }

    /// Offers what completes the word at the cursor.
    fn offer(&mut self) -> Did {
        match self.completion.update(self.piece.text(), self.cursor) {
            Some(asked) => Did::Complete(asked),
            None => Did::Changed,
        }
    }

    fn complete(&mut self, key: KeyEvent) -> Did {
        if self.unfold() {
            return Did::Changed;
        }
        self.completion.want();
        match self.offer() {
            Did::Changed if !self.completion.is_open() => Did::Pass(key),
            did => did,
        }
    }

    /// What is shown: the text, or what a search has found.
    pub fn shown(&self) -> &Piece {
        match &self.search {
            Some(searching) if searching.search.at().is_some() => &searching.shown,
            _ => &self.piece,
        }
    }

    /// What stands before the text, cut to what there is room for.
    pub fn shown_label(&self) -> String {
        let label = match &self.search {
            None => self.label.clone(),
            Some(searching) if searching.search.failed() => {
                format!("nothing has '{}'>", searching.search.words())
            }
            Some(searching) => format!("search '{}'>", searching.search.words()),
        };
        fit(&label, usize::from(self.columns / 2).saturating_sub(1))
    }

    /// How many columns the label takes, with the blank after it.
    pub fn label_columns(&self) -> usize {
        match self.shown_label().width() {
            _ if self.columns < 4 => 0,
            0 => 0,
            label => label + 1,
        }
    }

    /// What stands there while nothing is written.
    pub fn placeholder(&self) -> Option<&str> {
        (self.is_empty() && self.search.is_none()).then_some(self.placeholder.as_str())
    }

    /// Which bytes of what is shown were searched for.
    pub fn found(&self) -> Option<std::ops::Range<usize>> {
        self.search.as_ref()?.search.at()
    }

    /// Where everything stands. It is worked out when it is looked at, not with each key.
    pub fn seen(&self) -> &Seen {
        self.seen.get_or_init(|| {
            // The last column is the cursor's.
            let columns = usize::from(self.columns).saturating_sub(self.label_columns() + 1);
            let piece = self.shown();
            let layout = Layout::new(piece, columns);
            let cursor = match self.found() {
                Some(found) => found.start.min(piece.text().len()),
                None => self.cursor,
            };
            let row = layout.row_of(cursor);
            let rows = layout.rows().len();
            let height = rows.min(usize::from(self.most_rows()));
            let top = self
                .top
                .min(rows - height)
                .min(row)
                .max((row + 1).saturating_sub(height));
            Seen {
                column: layout.column_of(piece, cursor),
                layout,
                top,
                row,
            }
        })
    }

    fn look_again(&mut self) {
        if let Some(seen) = self.seen.take() {
            self.top = seen.top;
        }
    }
}

/// The character that a key writes.
fn written(key: KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => Some(letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
