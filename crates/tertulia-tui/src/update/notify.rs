//! Decides when the user is told that the session needs them.

use tertulia_core::entry::Kind;

use crate::effect::{Effect, Now};
use crate::notify::{self, Occasion};
use crate::state::{Running, State};

/// Effects of a permission request for what `preview` shows.
pub fn asked(state: &State, preview: &str) -> Vec<Effect> {
    announce(state, Occasion::Permission, true, Some(preview))
}

/// Effects of the end of a turn that the user did not stop. The user is not needed if a queued message
/// begins the next one.
pub fn ended(state: &State, turn: Option<&Running>, now: Now) -> Vec<Effect> {
    let Some(turn) = turn.filter(|turn| !turn.stopped && state.ahead.is_empty()) else {
        return match state.info.notify {
            true => vec![Effect::Ring],
            false => Vec::new(),
        };
    };
    let occasion = match state.info.kind {
        Kind::Chat => Occasion::Ended,
        Kind::Team | Kind::Pair => Occasion::Person,
    };
    let took = now.at.duration_since(turn.began).unsigned_abs();
    announce(
        state,
        occasion,
        occasion == Occasion::Person || took >= state.notify.after,
        None,
    )
}

/// Announces an occasion: on the terminal if it is `important` and the user may not see the screen,
/// and always to the user's command.
fn announce(
    state: &State,
    occasion: Occasion,
    important: bool,
    content: Option<&str>,
) -> Vec<Effect> {
    if state.info.follows.is_some() || state.is_leaving() {
        return Vec::new();
    }
    let who = match &state.running {
        Some(running) => &running.who.display_name,
        None => &state.info.agent,
    };
    let line = occasion.line(who);
    let tells = important && state.has_focus != Some(true);
    let mut effects = Vec::new();
    if state.info.notify || tells && state.notify.bell {
        effects.push(Effect::Ring);
    }
    // The server of a session runs the command itself.
    if !state.notify.command.is_empty() && !state.info.is_remote {
        let content = content.filter(|_| state.notify.content);
        let message = notify::message(state.id, occasion, &line, content);
        effects.push(Effect::RunNotify(message));
    }
    if tells && state.notify.desktop {
        effects.push(Effect::Desktop(line));
    }
    effects
}
