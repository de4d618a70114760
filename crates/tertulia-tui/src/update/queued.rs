//! Queued messages of the user, edited in the input.

use crossterm::event::KeyEvent;
use tertulia_engine::message_queue::WithdrawReason;
use tertulia_store::UnsentMessage;

use super::start_turn;
use crate::effect::{Effect, Now};
use crate::item::Tone;
use crate::keymap::{self, Action, Where};
use crate::live::LiveCommand;
use crate::state::{Phase, State};

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
        Some(Action::Up) if state.input.is_empty() && state.ahead.drafts().len() > 0 => {
            take_drafts(state);
            return true;
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

/// Puts messages that were not sent into the input.
pub fn take_drafts(state: &mut State) {
    let drafts = state.ahead.take_drafts();
    state.input.recall(&drafts.join("\n\n"));
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
    go_on(state, now)
}

/// Lines of `/queue`: members of the team that wait, then the user's own messages.
pub fn lines(state: &State) -> Vec<String> {
    let mut lines = state.queue.seen(usize::MAX).0;
    lines.extend(state.ahead.waiting().map(|words| format!("you: {words}")));
    if let Some((place, count)) = state.ahead.edited() {
        lines.push(format!("you: in the input, {place} of {count}"));
    }
    lines.extend(
        state
            .ahead
            .drafts()
            .map(|words| format!("not sent: {words}")),
    );
    match lines.is_empty() {
        true => vec!["the queue is empty".to_owned()],
        false => lines,
    }
}

/// Sends the next message that waited for the user, not for a turn.
pub fn go_on(state: &mut State, now: Now) -> Vec<Effect> {
    if state.phase != Phase::Open || !state.is_free() {
        return Vec::new();
    }
    match state.ahead.send_next() {
        Some(words) => vec![start_turn(state, LiveCommand::Say(words), now)],
        None => Vec::new(),
    }
}

/// Shows what waits. What was not sent before the screen was opened goes into an empty input.
pub fn unsent(state: &mut State, messages: Vec<UnsentMessage>, now: Now) {
    state.ahead.sync(messages);
    let is_first = !std::mem::replace(&mut state.has_seen_drafts, true);
    if is_first && state.ahead.drafts().len() > 0 && state.input.is_empty() {
        take_drafts(state);
        let words = "not sent before: in the input again";
        state.toasts.push(Tone::Note, words, now.at);
    }
}

/// Puts the words of a message that is not sent back into the input that they came from.
pub fn withdrawn(state: &mut State, client_id: &str, text: &str, reason: WithdrawReason, now: Now) {
    let comes_back = state.ahead.withdrawn(client_id);
    if !comes_back || reason == WithdrawReason::Removed {
        return;
    }
    let written = state.input.text();
    let words = match written.trim().is_empty() {
        true => text.to_owned(),
        false => format!("{text}\n{written}"),
    };
    state.input.recall(&words);
    state
        .toasts
        .push(Tone::Note, "not sent: in the input again", now.at);
}

/// Returns what the session is to be told of the input, if it has changed.
pub fn changed_draft(state: &mut State) -> Option<LiveCommand> {
    let can_keep = matches!(state.phase, Phase::Open | Phase::Leaving);
    if !can_keep || state.info.follows.is_some() {
        return None;
    }
    // A draft that moves on to another session does not stay in this one.
    let draft = match state.next {
        Some(_) => String::new(),
        None => state.input.text(),
    };
    if draft == state.kept_draft {
        return None;
    }
    state.kept_draft.clone_from(&draft);
    Some(LiveCommand::KeepDraft(draft))
}
