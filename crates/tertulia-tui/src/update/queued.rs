//! Queued messages of the user, edited in the input.

use crossterm::event::KeyEvent;

use super::session;
use crate::effect::{Effect, Now};
use crate::item::Tone;
use crate::keymap::{self, Action, Where};
use crate::state::State;

/// Moves through the queued messages: ↑ takes one into the input, the next ↑ the one before it.
/// Returns false for a key that means something else.
pub fn moves(state: &mut State, key: KeyEvent) -> bool {
    if !state.input.is_plain() {
        return false;
    }
    let is_edited = state.ahead.edited().is_some();
    let written = state.input.text();
    let text = match keymap::only(Where::Input, key) {
        Some(Action::Up) if is_edited && state.input.is_on_first_row() => {
            state.ahead.edit_previous(written)
        }
        Some(Action::Up) if state.input.is_empty() && !state.ahead.is_empty() => {
            state.ahead.edit_previous(written)
        }
        Some(Action::Down) if is_edited && state.input.is_on_last_row() => {
            state.ahead.edit_next(written)
        }
        _ => return false,
    };
    if let Some(text) = text {
        state.input.recall(&text);
    }
    true
}

/// Removes the edited message from the queue.
pub fn remove(state: &mut State, now: Now) -> Vec<Effect> {
    if state.ahead.edited().is_none() {
        return Vec::new();
    }
    state.input.clear();
    emptied(state, now)
}

/// Removes the edited message from the queue if nothing is left of it in the input.
pub fn emptied(state: &mut State, now: Now) -> Vec<Effect> {
    if !state.input.is_empty() || !state.ahead.drop_edited() {
        return Vec::new();
    }
    let words = "removed from the queue";
    state.toasts.push(Tone::Note, words, now.at);
    session::go_on(state, now)
}

/// Lines of `/queue`: members of the team that wait, then the user's own messages.
pub fn lines(state: &State) -> Vec<String> {
    let mut lines = state.queue.seen(usize::MAX).0;
    lines.extend(state.ahead.waiting().map(|words| format!("you: {words}")));
    if let Some((place, count)) = state.ahead.edited() {
        lines.push(format!("you: in the input, {place} of {count}"));
    }
    match lines.is_empty() {
        true => vec!["the queue is empty".to_owned()],
        false => lines,
    }
}
