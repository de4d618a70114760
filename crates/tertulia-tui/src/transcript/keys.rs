//! Keys of reading mode.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Did, Transcript};
use crate::item::What;

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
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, control) {
            (KeyCode::Char('d'), true) => self.go(half),
            (KeyCode::Char('u'), true) => self.go(-half),
            (KeyCode::Char('f'), true) => self.turn(1),
            (KeyCode::Char('b'), true) => self.turn(-1),
            (KeyCode::Home, _) => self.top(),
            (KeyCode::End, _) => self.end(),
            (_, true) => Did::Pass(key),
            (KeyCode::Down | KeyCode::Char('j'), _) => self.go(1),
            (KeyCode::Up | KeyCode::Char('k'), _) => self.go(-1),
            (KeyCode::PageDown | KeyCode::Char(' '), _) => self.turn(1),
            (KeyCode::PageUp | KeyCode::Char('b'), _) => self.turn(-1),
            (KeyCode::Char('g'), _) => self.top(),
            (KeyCode::Char('G'), _) => self.end(),
            (KeyCode::Char('/'), _) => {
                self.typing = Some(String::new());
                Did::Changed
            }
            (KeyCode::Char('n'), _) => self.find_next(false),
            (KeyCode::Char('N'), _) => self.find_next(true),
            (KeyCode::Char('v'), _) => {
                self.select_lines();
                Did::Changed
            }
            (KeyCode::Char('V'), _) => {
                self.select_messages();
                Did::Changed
            }
            (KeyCode::Char('y'), _) | (KeyCode::Enter, _) if self.has_selection() => {
                let text = self.selected();
                self.deselect();
                Did::Copy(text)
            }
            (KeyCode::Char('o') | KeyCode::Enter | KeyCode::Tab, _) => self.toggle_near(),
            (KeyCode::Char('a'), _) => {
                let folded = !self.any_folded();
                self.fold_all(folded);
                Did::Changed
            }
            (KeyCode::Esc, _) if self.has_selection() => {
                self.deselect();
                Did::Changed
            }
            (KeyCode::Esc, _) if self.find.is_some() => {
                self.end_find();
                Did::Changed
            }
            (KeyCode::Esc | KeyCode::Char('q'), _) => Did::Leave,
            _ => Did::Pass(key),
        }
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

    /// Folds or unfolds the last visible tool call.
    fn toggle_near(&mut self) -> Did {
        let ids = self.visible.iter().rev().map(|spot| spot.id);
        let tool = |index: &usize| matches!(self.items[*index].item.what, What::Used(_));
        let near = ids.filter_map(|id| self.index(id)).find(tool);
        match near {
            Some(index) if self.toggle(index) => Did::Changed,
            _ => Did::Nothing,
        }
    }
}
