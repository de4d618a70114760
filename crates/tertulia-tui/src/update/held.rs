//! Sessions that another program has open: they are read, until the user forks one or takes it over.

use super::{change, leave, session};
use crate::dialog::subject::Subject;
use crate::effect::{Effect, IfOpen, Next, Now};
use crate::item::Tone;
use crate::session_info::Follows;
use crate::state::{Layer, State};

/// Placeholder of the empty input.
pub fn placeholder(follows: &Follows) -> &'static str {
    match follows.forks {
        true => "your next message goes to a fork",
        false => "read only · type to fork or take over",
    }
}

/// Continues in a fork, with the message in the input; without one, once there is one.
pub fn fork(state: &mut State, now: Now) -> Vec<Effect> {
    if state.input.is_empty()
        && let Some(follows) = &mut state.info.follows
    {
        follows.forks = true;
        return Vec::new();
    }
    change(state, Next::resume_if_open(state.id, IfOpen::Fork), now)
}

/// Why the tool policy cannot be changed here.
pub const NO_TOOLS: &str = "read only: the program that has the session open asks about its tools";

/// Asks what to do with the session, if another program has it open.
pub fn ask(state: &mut State, now: Now) {
    let follows = state.info.follows.as_ref();
    if let Some(holder) = follows.and_then(|follows| follows.holder.clone()) {
        let id = state.id;
        super::ask(state, Subject::Held { id, holder }, now);
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
    if follows.is_some_and(|follows| follows.forks) {
        return fork(state, now);
    }
    ask(state, now);
    // The message is complete: the next key is for the question.
    if let Some(Layer::Question(question)) = state.overlays.last_mut() {
        question.set_writing(false);
    }
    Vec::new()
}

/// Notes which program has the session open now.
pub fn held_by(state: &mut State, holder: Option<String>, now: Now) {
    let words = match &holder {
        Some(holder) => format!("{holder} has opened the session"),
        None => "the other program has closed the session: type to resume it".to_owned(),
    };
    if let Some(follows) = &mut state.info.follows {
        follows.holder = holder;
        follows.forks = false;
        state.drop_questions(|subject| matches!(subject, Subject::Held { .. }));
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
