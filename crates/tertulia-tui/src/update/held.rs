//! Sessions that another program has open: they are read, until the user forks one or takes it over.

use super::{change, leave, open, session};
use crate::dialog::held::Held;
use crate::effect::{Effect, IfOpen, Next, Now};
use crate::item::Tone;
use crate::state::{Layer, State};

/// Placeholder of the empty input.
pub const PLACEHOLDER: &str = "read only: write something to fork the session or take it over";

/// Asks what to do with the session, if another program has it open.
pub fn ask(state: &mut State, now: Now) {
    let follows = state.info.follows.as_ref();
    if let Some(holder) = follows.and_then(|follows| follows.holder.clone()) {
        let question = Held::new(state.id, &holder, now.at);
        open(state, Layer::Held(Box::new(question)));
    }
}

/// Keeps a message in the input, and asks how it is to be sent. A session that is free again is
/// resumed at once.
pub fn say(state: &mut State, words: &str, now: Now) -> Vec<Effect> {
    state.input.set_text(words);
    let follows = state.info.follows.as_ref();
    if follows.is_some_and(|follows| follows.holder.is_none()) {
        let next = Next::resume_if_open(state.id, IfOpen::Ask);
        return change(state, next, now);
    }
    ask(state, now);
    Vec::new()
}

/// Notes which program has the session open now.
pub fn held_by(state: &mut State, holder: Option<String>, now: Now) {
    let words = match &holder {
        Some(holder) => format!("{holder} has opened the session"),
        None => "the other program has closed the session: write something to resume it".to_owned(),
    };
    if let Some(follows) = &mut state.info.follows {
        follows.holder = holder;
        let is_held = |layer: &Layer| matches!(layer, Layer::Held(_));
        state.overlays.retain(|layer| !is_held(layer));
        session::notice(state, Tone::Note, words, now);
    }
}

/// Another program has taken over the session of this one, which is only read from now on.
pub fn taken_over(state: &mut State) -> Vec<Effect> {
    // A turn that is running finds out itself, and goes on in a fork.
    if state.is_running() || state.is_leaving() {
        return Vec::new();
    }
    leave(state, Some(Next::resume_if_open(state.id, IfOpen::Read)))
}
