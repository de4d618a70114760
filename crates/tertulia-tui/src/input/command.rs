//! Shell commands: a `!` at the start of the input.

use crossterm::event::{KeyCode, KeyEvent};

use super::{Did, Input, written};
use crate::keymap::{self, Action, Where};

impl Input {
    /// A `!` typed into the empty input begins a command; deleting it or Esc ends that.
    pub(super) fn command_key(&mut self, key: KeyEvent) -> Option<Did> {
        if !self.is_empty() {
            return None;
        }
        let deletes = keymap::only(Where::Input, key);
        let deletes = matches!(deletes, Some(Action::DeleteBack | Action::DeleteToStart));
        let ends = key.code == KeyCode::Esc || deletes;
        match self.command {
            true if ends => self.set_command(false),
            false if written(key) == Some('!') => self.set_command(true),
            _ => return None,
        }
        Some(Did::Changed)
    }

    /// Deletes to the start of the line, and the `!` that stands there.
    pub(super) fn delete_to_start(&mut self, key: KeyEvent) -> Did {
        let did = self.edit(Action::DeleteToStart, key);
        if self.command && self.is_empty() {
            self.set_command(false);
        }
        did
    }

    /// Sets whether the text is a command.
    pub(super) fn set_command(&mut self, command: bool) {
        if self.command != command {
            self.command = command;
            self.look_again();
        }
    }
}
