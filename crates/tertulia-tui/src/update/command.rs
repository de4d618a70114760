//! Runs shell commands of the user (`!command`).

use super::{held, start_turn};
use crate::effect::{Effect, Now};
use crate::item::Tone;
use crate::live::LiveCommand;
use crate::state::{Phase, State};
use crate::store_service::Request;

/// Runs a command, or says why not and puts it back into the input.
pub(super) fn run(state: &mut State, command: String, now: Now) -> Vec<Effect> {
    let written = format!("!{command}");
    if state.info.follows.is_some() {
        return held::say(state, &written, now);
    }
    if let Some(why) = refusal(state, &command) {
        state.input.set_text(&written);
        state.toasts.push(Tone::Warning, why, now.at);
        return Vec::new();
    }
    let remembered = Effect::Ask(Box::new(Request::Remember(written)));
    let started = start_turn(state, LiveCommand::Run(command), now);
    vec![remembered, started]
}

/// Returns why a command cannot be run now.
fn refusal(state: &State, command: &str) -> Option<&'static str> {
    if command.trim().is_empty() {
        return Some("type a command after the !, such as !git status");
    }
    if state.info.is_remote {
        return Some("!command is not available while attached: run it in another terminal");
    }
    if state.is_running() {
        return Some("an agent is answering: press Esc first to stop it");
    }
    let is_ready = state.phase == Phase::Open && !state.is_undecided;
    (!is_ready).then_some("the session is not open yet")
}
