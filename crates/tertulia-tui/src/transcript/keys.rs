//! Keys of reading mode.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Did, Transcript};
use crate::keymap::{self, Action, Where};

impl Transcript {
    /// Handles a key in reading mode.
    pub fn key(&mut self, key: KeyEvent) -> Did {
        if key.kind == KeyEventKind::Release {
            return Did::Nothing;
        }
        if self.typing.is_some() {
            return self.typed(key);
        }
        let half = isize::try_from((self.height / 2).max(1)).unwrap_or(1);
        match keymap::only(Where::Transcript, key) {
            Some(Action::HalfDown) => self.go(half),
            Some(Action::HalfUp) => self.go(-half),
            Some(Action::LineDown) => self.go(1),
            Some(Action::LineUp) => self.go(-1),
            Some(Action::PageDown) => self.turn(1),
            Some(Action::PageUp) => self.turn(-1),
            Some(Action::ToTop) => self.top(),
            Some(Action::ToEnd) => self.end(),
            Some(Action::Find) => {
                self.typing = Some(String::new());
                Did::Changed
            }
            Some(Action::FindNext) => self.find_next(false),
            Some(Action::FindBack) => self.find_next(true),
            Some(Action::SelectLines) => {
                self.select_lines();
                Did::Changed
            }
            Some(Action::SelectMessages) => {
                self.select_messages();
                Did::Changed
            }
            Some(Action::Copy) => self.copy(key),
            Some(Action::Unfold) if key.code == KeyCode::Enter && self.has_selection() => {
                self.copy(key)
            }
            Some(Action::Unfold) => self.toggle_near(),
            Some(Action::UnfoldAll) => {
                let folded = !self.any_folded();
                self.fold_all(folded);
                Did::Changed
            }
            Some(Action::Close) => self.close(key),
            _ => Did::Pass(key),
        }
    }

    /// Leaves reading mode; Esc goes back one step at a time: selection, search, reading mode. A key
    /// with Ctrl leaves the view where it is.
    fn close(&mut self, key: KeyEvent) -> Did {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return Did::Pass(key);
        }
        let is_step = key.code == KeyCode::Esc;
        if is_step && self.has_selection() {
            self.deselect();
        } else if is_step && self.find.is_some() {
            self.end_find();
        } else {
            return Did::Leave;
        }
        Did::Changed
    }

    /// Search text being typed.
    pub fn typing(&self) -> Option<&str> {
        self.typing.as_deref()
    }

    fn typed(&mut self, key: KeyEvent) -> Did {
        let Some(words) = &mut self.typing else {
            return Did::Nothing;
        };
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(c) if plain => words.push(c),
            KeyCode::Backspace if words.pop().is_none() => self.typing = None,
            KeyCode::Backspace => {}
            KeyCode::Esc => self.typing = None,
            KeyCode::Char('c') => self.typing = None,
            KeyCode::Enter => {
                let words = self.typing.take().unwrap_or_default();
                return self.find(&words);
            }
            _ => return Did::Pass(key),
        }
        Did::Changed
    }

    /// Copies the selection or a code block.
    fn copy(&mut self, key: KeyEvent) -> Did {
        let copied = self.copied();
        self.deselect();
        copied.map_or(Did::Pass(key), Did::Copy)
    }

    /// Moves the selection if there is one, or else the view.
    fn go(&mut self, by: isize) -> Did {
        if self.has_selection() {
            self.extend(by);
        } else {
            self.scroll(by);
        }
        Did::Changed
    }

    fn turn(&mut self, by: isize) -> Did {
        self.page(by);
        Did::Changed
    }

    fn top(&mut self) -> Did {
        self.go_to_top();
        Did::Changed
    }

    fn end(&mut self) -> Did {
        self.go_to_end();
        Did::Changed
    }

    /// Folds or unfolds the last visible tool call or long message.
    fn toggle_near(&mut self) -> Did {
        let ids = self.visible.iter().rev().map(|spot| spot.id);
        let folds = |index: &usize| self.items[*index].is_folded().is_some();
        let near = ids.filter_map(|id| self.index(id)).find(folds);
        match near {
            Some(index) if self.toggle(index) => Did::Changed,
            _ => Did::Nothing,
        }
    }
}
