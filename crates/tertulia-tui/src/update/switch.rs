//! Switches the agent or the model of a chat, without leaving it.

use tertulia_core::entry::Kind;
use tertulia_engine::spec::AgentSpec;

use super::slash::{busy_or, warn};
use super::{held, open, session};
use crate::chooser::{Chooser, Choosing};
use crate::dialog::subject::Subject;
use crate::effect::{Effect, Now};
use crate::error::TuiResult;
use crate::host::{AgentRow, Models};
use crate::item::Tone;
use crate::live::LiveCommand;
use crate::state::{Layer, State};
use crate::store_service::Request;

/// Opens the list of agents.
pub fn agents(state: &mut State) -> Vec<Effect> {
    let is_chat = state.info.kind == Kind::Chat;
    let current = is_chat.then_some(state.info.agent.as_str());
    let mut chooser = Chooser::new(Choosing::Agent, current);
    if state.info.is_remote {
        chooser = chooser.trusting();
    }
    if let Some(why) = fixed(state) {
        chooser = chooser.listing(why);
    }
    open(state, Layer::Chooser(Box::new(chooser)));
    Vec::new()
}

/// Opens the list of models.
pub fn models(state: &mut State, now: Now) -> Vec<Effect> {
    if let Some(why) = fixed(state) {
        return warn(state, why, now);
    }
    let choosing = Choosing::Model(state.info.agent.clone());
    let chooser = Chooser::new(choosing, state.info.model.as_deref());
    open(state, Layer::Chooser(Box::new(chooser)));
    Vec::new()
}

/// Returns why the agents of the session cannot be switched, if so.
fn fixed(state: &State) -> Option<&'static str> {
    match state.info.kind {
        Kind::Chat => state.info.follows.as_ref().map(held::placeholder),
        Kind::Team => Some("each member has its own agent and model: the team file names them"),
        Kind::Pair => Some(
            "each of the two has its own agent and model: leave, and resume with `tertulia pair -c --worker NAME --worker-model NAME`",
        ),
    }
}

/// Uses an agent that the user named, once it is known whether it is ready.
pub fn named_agent(state: &mut State, name: String, now: Now) -> Vec<Effect> {
    match fixed(state) {
        Some(why) => warn(state, why, now),
        None if state.info.is_remote => use_agent(state, name, now),
        None => busy_or(state, now, |_| ask(Request::Agents(Some(name)))),
    }
}

/// Uses a model that the user named, once it is known whether the agent lists it.
pub fn named_model(state: &mut State, name: String, anyway: bool, now: Now) -> Vec<Effect> {
    match fixed(state) {
        Some(why) => warn(state, why, now),
        None if anyway => use_model(state, name, now),
        None => {
            let request = Request::Models {
                agent: state.info.agent.clone(),
                check: Some(name),
            };
            busy_or(state, now, |_| ask(request))
        }
    }
}

/// Uses an agent that was looked at, if it is ready.
pub fn looked_at(
    state: &mut State,
    name: String,
    rows: TuiResult<Vec<AgentRow>>,
    now: Now,
) -> Vec<Effect> {
    let why = match rows {
        Ok(rows) => match rows.into_iter().find(|row| !row.is_ready) {
            None => return use_agent(state, name, now),
            Some(row) => format!("{} is not ready: {}", row.name, row.remark),
        },
        Err(error) => error.message,
    };
    // Put the command back so that a typo can be corrected.
    if state.input.is_empty() {
        state.input.set_text(&format!("/agents {name}"));
    }
    warn(state, &why, now)
}

/// Says that the agent of a resumed session is not available: the next message would fail.
pub fn checked_agent(state: &mut State, name: &str, rows: TuiResult<Vec<AgentRow>>, now: Now) {
    let why = match rows {
        Ok(rows) => {
            let missing = rows.into_iter().find(|row| !row.is_ready);
            missing.map(|row| row.remark)
        }
        Err(error) => Some(error.message),
    };
    let Some(why) = why.filter(|_| state.info.agent == name) else {
        return;
    };
    state.is_unavailable = true;
    let words = format!("{name} is not available: {why} · /agents chooses another");
    session::notice(state, Tone::Warning, words, now);
}

/// Uses a model that was checked, or asks if the agent does not list it.
pub fn checked(
    state: &mut State,
    name: String,
    models: TuiResult<Models>,
    now: Now,
) -> Vec<Effect> {
    let models = models.unwrap_or_default();
    if !models.complete || models.names.is_empty() || models.names.contains(&name) {
        return use_model(state, name, now);
    }
    ask_model(state, name, now)
}

/// Asks whether to use a model that the agent does not list.
pub fn ask_model(state: &mut State, name: String, now: Now) -> Vec<Effect> {
    let subject = Subject::UnlistedModel {
        agent: state.info.agent.clone(),
        model: name,
    };
    super::ask(state, subject, now);
    Vec::new()
}

/// Lets another agent answer.
pub fn use_agent(state: &mut State, name: String, now: Now) -> Vec<Effect> {
    let spec = AgentSpec {
        agent: Some(name),
        model: None,
    };
    switch(state, spec, now)
}

/// Lets the agent answer with another model.
pub fn use_model(state: &mut State, name: String, now: Now) -> Vec<Effect> {
    let spec = AgentSpec {
        // A server knows which agent it is.
        agent: (!state.info.is_remote).then(|| state.info.agent.clone()),
        model: Some(name),
    };
    switch(state, spec, now)
}

fn switch(state: &mut State, spec: AgentSpec, now: Now) -> Vec<Effect> {
    if state.is_leaving() {
        return Vec::new();
    }
    busy_or(state, now, |state| {
        state.is_switching = true;
        vec![Effect::Command(LiveCommand::Switch(spec))]
    })
}

fn ask(request: Request) -> Vec<Effect> {
    vec![Effect::Ask(Box::new(request))]
}
