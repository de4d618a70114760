//! Reading mode: keys go to the transcript.

use crossterm::event::KeyEvent;

use super::{act, copy};
use crate::effect::{Effect, Now};
use crate::item::Tone;
use crate::keymap::{Action, Where};
use crate::state::State;
use crate::toast::Until;
use crate::transcript::Did;

/// Handles a key in reading mode.
pub fn pressed(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    let did = state.transcript.key(key);
    followed(state, did, now)
}

/// Applies the outcome of a transcript action.
pub fn followed(state: &mut State, did: Did, now: Now) -> Vec<Effect> {
    match did {
        Did::Nothing | Did::Changed => {
            state.keys.forget();
            Vec::new()
        }
        Did::Copy(text) => copy(state, text, now),
        Did::NotFound(words) => {
            not_found(state, &words, now);
            Vec::new()
        }
        Did::Leave => {
            stop_reading(state);
            state.transcript.go_to_end();
            Vec::new()
        }
        Did::Pass(key) => match state.keys.action(Where::Transcript, key, now.tick) {
            Some(Action::Close) => {
                stop_reading(state);
                Vec::new()
            }
            Some(action) => act(state, action, now),
            None => Vec::new(),
        },
    }
}

/// Leaves reading mode, and with it the search.
fn stop_reading(state: &mut State) {
    state.reading = false;
    state.transcript.end_find();
}

/// Says that a search in the transcript found nothing.
pub fn not_found(state: &mut State, words: &str, now: Now) {
    let text = format!("no '{words}' in this session");
    let toasts = &mut state.toasts;
    toasts.push_until(Until::Key, Tone::Warning, &text, now.at);
}
