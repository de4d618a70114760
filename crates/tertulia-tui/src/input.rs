//! Input field. Takes keys and returns their outcome; performs no I/O.

mod command;
mod edit;
pub mod fold;
pub mod layout;
mod recall;
pub mod text;
mod undo;
mod vim;

use std::cell::OnceCell;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use ratatui::layout::Rect;

use super::completion::{Asked, Candidate, Completion};
use super::geometry;
use super::history::{History, Search};
use super::keymap::{self, Action, Where};
use crate::text::{cut, width};
use layout::Layout;
use text::Piece;
use undo::Undo;
use vim::Vim;

/// Outcome of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// No visible change.
    Nothing,
    /// Visible change.
    Changed,
    /// Visible change, and a lookup to answer with [`Input::candidates`].
    Complete(Asked),
    /// The text to send; the input is empty now.
    Submit(String),
    /// The shell command to run; the input is empty now.
    Run(String),
    /// Enter was pressed while there is no text.
    SubmitNothing,
    /// The user wants to leave.
    Leave,
    /// The key has no meaning here.
    Pass(KeyEvent),
}

/// Input field with history, undo and completion.
#[derive(Debug)]
pub struct Input {
    piece: Piece,
    cursor: usize,
    undo: Undo,
    deleted: Piece,
    history: History,
    /// Index of the history entry shown while browsing.
    browsing: Option<usize>,
    /// Text written before browsing the history.
    draft: Piece,
    /// Whether that was a command.
    draft_command: bool,
    search: Option<Searching>,
    completion: Completion,
    vim: Vim,
    label: String,
    /// Whether the text is a shell command: its first character was typed as `!`.
    command: bool,
    placeholder: String,
    columns: u16,
    screen_rows: u16,
    /// Column kept when moving up and down.
    wanted: Option<usize>,
    seen: OnceCell<Seen>,
    top: usize,
}

/// Search in the history; the text is kept meanwhile.
#[derive(Debug, Default)]
struct Searching {
    search: Search,
    shown: Piece,
    /// Shown instead of a match that does not have the words typed last.
    none: Piece,
}

/// Layout and cursor position on the screen.
#[derive(Debug)]
pub struct Seen {
    /// Rows.
    pub layout: Layout,
    /// First visible row.
    pub top: usize,
    /// Row of the cursor, counted from the first row of the text.
    pub row: usize,
    /// Column of the cursor, after the label.
    pub column: usize,
}

impl Input {
    /// Creates an empty input.
    pub fn new(history: History) -> Input {
        Input {
            piece: Piece::default(),
            cursor: 0,
            undo: Undo::default(),
            deleted: Piece::default(),
            history,
            browsing: None,
            draft: Piece::default(),
            draft_command: false,
            search: None,
            completion: Completion::default(),
            vim: Vim::default(),
            label: "You>".to_owned(),
            command: false,
            placeholder: String::new(),
            columns: 80,
            screen_rows: 24,
            wanted: None,
            seen: OnceCell::new(),
            top: 0,
        }
    }

    /// Sets the label before the text: the name of the user.
    pub fn set_label(&mut self, label: &str) {
        if self.label != label {
            label.clone_into(&mut self.label);
            self.look_again();
        }
    }

    /// Sets the text shown while the input is empty.
    pub fn set_placeholder(&mut self, placeholder: &str) {
        placeholder.clone_into(&mut self.placeholder);
    }

    /// Sets the members that complete `[NEXT: …]` and `@`.
    pub fn set_members(&mut self, members: Vec<Candidate>) {
        self.completion.set_members(members);
    }

    /// Sets the people that complete `/as`.
    pub fn set_people(&mut self, people: Vec<Candidate>) {
        self.completion.set_people(people);
    }

    /// Sets the width of the input and the height of the screen.
    pub fn resize(&mut self, columns: u16, screen_rows: u16) {
        if (self.columns, self.screen_rows) != (columns, screen_rows) {
            (self.columns, self.screen_rows) = (columns, screen_rows);
            self.look_again();
        }
    }

    /// Number of rows needed, at most a third of the screen.
    pub fn height(&self) -> u16 {
        let rows = self.seen().layout.rows().len();
        u16::try_from(rows)
            .unwrap_or(u16::MAX)
            .min(self.most_rows())
    }

    fn most_rows(&self) -> u16 {
        (self.screen_rows / 3).max(1)
    }

    /// Returns true if nothing is written.
    pub fn is_empty(&self) -> bool {
        self.piece.is_empty()
    }

    /// Returns true if keys edit the text: neither a completion nor a search in the history is open.
    pub fn is_plain(&self) -> bool {
        self.search.is_none() && !self.completion.is_open()
    }

    /// Returns true if the cursor is in the first row.
    pub fn is_on_first_row(&self) -> bool {
        self.seen().row == 0
    }

    /// Returns true if the cursor is in the last row.
    pub fn is_on_last_row(&self) -> bool {
        let seen = self.seen();
        seen.row + 1 >= seen.layout.rows().len()
    }

    /// Full text, including folded passages, byte for byte. A command begins with `!`.
    pub fn text(&self) -> String {
        match self.command {
            true => format!("!{}", self.piece.whole()),
            false => self.piece.whole(),
        }
    }

    /// Replaces the text; can be undone.
    pub fn set_text(&mut self, text: &str) {
        self.search = None;
        self.completion.close();
        self.put_written(text, fold::written);
    }

    /// Replaces the text by one that was written before. A line that begins with `!` is a command;
    /// longer text may have been pasted.
    fn put_written(&mut self, text: &str, folded: fn(&str) -> Piece) {
        let command = text.strip_prefix('!').filter(|text| !text.contains('\n'));
        self.put(&folded(command.unwrap_or(text)));
        self.set_command(command.is_some());
    }

    /// Replaces the text by a prompt that was sent or queued before; can be undone.
    pub fn recall(&mut self, text: &str) {
        self.search = None;
        self.completion.close();
        self.put_written(text, fold::recalled);
    }

    /// Clears the text; can be undone.
    pub fn clear(&mut self) {
        self.set_text("");
    }

    /// Returns true while the history is searched.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Completion of the word at the cursor.
    pub fn completion(&self) -> &Completion {
        &self.completion
    }

    /// Areas of the completion popup and of its rows above the input; empty if it is closed.
    pub fn popup_areas(&self, above: Rect) -> (Rect, Rect) {
        let (_, count) = self.completion.position();
        geometry::popup_areas(above, self.screen_rows, count)
    }

    /// Takes the candidate in a row of the popup that was clicked on.
    pub fn click(&mut self, row: usize, rows: usize) -> Did {
        self.completion.choose_row(row, rows);
        self.accept()
    }

    /// Adds the answer to a [`Did::Complete`] lookup. Drops the answer to an outdated one.
    pub fn candidates(&mut self, asked: &Asked, found: Vec<Candidate>) -> Did {
        if self.completion.answer(asked, found) {
            Did::Changed
        } else {
            Did::Nothing
        }
    }

    /// Inserts pasted text unchanged; a long passage is shown as a label.
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

    /// Handles a key.
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
        if let Some(did) = self.vim_key(key) {
            return did;
        }
        if let Some(did) = self.command_key(key) {
            return did;
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
            Action::DeleteToStart => self.delete_to_start(key),
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
        let words = self.text();
        let command = self.command.then(|| self.piece.whole());
        if words.is_empty() {
            return Did::SubmitNothing;
        }
        if words.trim().is_empty() {
            return Did::Nothing;
        }
        if command
            .as_ref()
            .is_none_or(|words| !words.trim().is_empty())
        {
            self.history.push(&words);
        }
        self.completion.close();
        self.piece = Piece::default();
        self.cursor = 0;
        self.undo.clear();
        self.draft = Piece::default();
        self.command = false;
        self.vim_anew();
        self.touched();
        match command {
            Some(command) => Did::Run(command),
            None => Did::Submit(words),
        }
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
        // Do not offer a complete word again.
        if accepted.goes_on || accepted.text.ends_with(' ') {
            return self.offer();
        }
        Did::Changed
    }

    /// Updates the completion for the word at the cursor.
    fn offer(&mut self) -> Did {
        if self.command {
            return Did::Changed;
        }
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

    /// Text shown: the written text, or the search result.
    pub fn shown(&self) -> &Piece {
        match &self.search {
            // Not the last match: it does not have these words.
            Some(searching) if searching.search.failed() => &searching.none,
            Some(searching) if searching.search.at().is_some() => &searching.shown,
            _ => &self.piece,
        }
    }

    /// Label before the text, cut to the available width.
    pub fn shown_label(&self) -> String {
        let label = match &self.search {
            None if self.command => "!".to_owned(),
            None if self.is_normal() => format!("[N] {}", self.label),
            None => self.label.clone(),
            Some(searching) if searching.search.failed() => {
                format!("history: no match for '{}'", searching.search.words())
            }
            Some(searching) => match searching.search.words() {
                "" => "history>".to_owned(),
                words => format!("history '{words}'>"),
            },
        };
        cut(&label, usize::from(self.columns / 2).saturating_sub(1))
    }

    /// Width of the label with the blank after it.
    pub fn label_columns(&self) -> usize {
        match width(&self.shown_label()) {
            _ if self.columns < 4 => 0,
            0 => 0,
            label => label + 1,
        }
    }

    /// Placeholder; `None` if there is text or a search is open.
    pub fn placeholder(&self) -> Option<&str> {
        let placeholder = match self.command {
            true => "a shell command: the agent sees its output with your next prompt",
            false => self.placeholder.as_str(),
        };
        (self.is_empty() && self.search.is_none()).then_some(placeholder)
    }

    /// Byte range of the search hit in the shown text.
    pub fn found(&self) -> Option<std::ops::Range<usize>> {
        self.search.as_ref()?.search.at()
    }

    /// Layout and cursor position, computed on demand rather than with every key.
    pub fn seen(&self) -> &Seen {
        self.seen.get_or_init(|| {
            // The last column is reserved for the cursor.
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

/// Character typed by a key.
fn written(key: KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => Some(letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
