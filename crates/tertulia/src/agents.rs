//! Builds agents from the settings and chooses which one answers.

pub mod aliases;
mod arguments;
mod build;
mod discover;
mod known;
pub mod programs;
mod registered;
mod team;

use std::sync::Arc;

use tertulia_agents::api::Provider;
use tertulia_agents::vendor::Vendor;
use tertulia_agents::{Agent, ToolSide};
use tertulia_engine::slash;

use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::{AgentSettings, Settings, Source};
pub use known::{KNOWN, KnownProgram};
pub use registered::{
    command_line, is_taken, joined as with_registered, joined_for as with_registered_for, kind_of,
    launch, shown, started, vendor_of,
};
pub use team::for_team;

/// Reason for an agent that the user named.
pub const ASKED_FOR: &str = "asked for";
/// The built-in agent, which needs no configuration.
pub const DEMO: &str = "demo";
/// Agent type for arbitrary programs.
const COMMAND: &str = "command";
/// Agent type for Agent Client Protocol programs.
const ACP: &str = "acp";
/// Default number of context tokens above which a session is compacted.
const COMPACT_AT: u64 = 100_000;
/// The same for Ollama, which silently drops context beyond its default of 4096 tokens.
const COMPACT_OLLAMA_AT: u64 = 3_000;

/// Agent and model given on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub name: Option<&'a str>,
    pub model: Option<&'a str>,
}

/// Agent of a session, and the model that the user chose for it.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    pub name: &'a str,
    pub model: Option<&'a str>,
}

/// The chosen agent, and the reason for the choice.
pub struct Chosen {
    pub agent: Arc<dyn Agent>,
    pub reason: String,
    /// True if neither the user, the session nor the settings selected it.
    pub unasked: bool,
    /// Number of context tokens above which the session is compacted.
    pub compact_at: Option<u64>,
}

/// A chosen name, its source and the reason.
struct Pick {
    name: String,
    source: Source,
    reason: String,
    unasked: bool,
}

/// Chooses the agent: from the command line, else the session's, else from the settings, else the
/// first that is ready.
pub fn choose(
    settings: &Settings,
    asked: &Asked<'_>,
    recorded: Option<Recorded<'_>>,
) -> CommandResult<Chosen> {
    let pick = pick(settings, asked, recorded.map(|recorded| recorded.name));
    let recorded = recorded.filter(|recorded| recorded.name == pick.name);
    let joined = with_registered_for(settings, &pick.name)?;
    let name = aliases::resolved(&pick.name, |name| is_known(&joined, name));
    // The registry entry of the resolved name.
    let settings = &with_registered_for(settings, name)?;
    let described = described(settings, name);
    let usual = match described.kind.as_str() {
        "ollama" => COMPACT_OLLAMA_AT,
        _ => COMPACT_AT,
    };
    let gone = || {
        let words = format!("the agent '{name}' of this session is not described here any more");
        CommandError::new(ErrorKind::Agent, words)
            .hint("add it to the settings again, or choose another agent with --agent NAME")
    };
    if recorded.is_some() && pick.source != Source::Person && !is_known(settings, name) {
        return Err(gone());
    }
    let model = asked.model.or(recorded.and_then(|recorded| recorded.model));
    Ok(Chosen {
        agent: named(settings, name, model)?,
        reason: pick.reason,
        unasked: pick.unasked,
        compact_at: Some(described.compact_at.unwrap_or(usual)),
    })
}

/// Decides which agent answers: the one that the user named, else the one that the session had, else
/// the default agent of the settings, else the first that is ready.
fn pick(settings: &Settings, asked: &Asked<'_>, recorded: Option<&str>) -> Pick {
    let picked = |name: &str, source, reason: &str| Pick {
        name: name.to_owned(),
        source,
        reason: reason.to_owned(),
        unasked: false,
    };
    if let Some(name) = asked.name {
        return picked(name, Source::Person, ASKED_FOR);
    }
    if let Some((name, Source::Person)) = &settings.agent {
        return picked(name, Source::Person, ASKED_FOR);
    }
    // Even if it is no longer available: a session is not sent to another provider unasked.
    if let Some(name) = recorded {
        return picked(name, Source::UserFile, "as before");
    }
    match &settings.agent {
        Some((name, source)) => picked(name, *source, "from the settings"),
        None => {
            let (name, reason) = discover::first_ready(settings);
            Pick {
                unasked: true,
                ..picked(&name, Source::UserFile, &reason)
            }
        }
    }
}

/// Returns all available names: first the built-in ones, in the order in which they are chosen by
/// default, then those described in the settings.
pub fn names(settings: &Settings) -> Vec<String> {
    let mut names: Vec<String> = built_in().map(str::to_owned).collect();
    for name in settings.agents.keys() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns the names that need no settings.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    let providers = Provider::ALL.map(Provider::name).into_iter();
    providers.chain(Vendor::ALL.map(Vendor::name)).chain([DEMO])
}

/// Returns true if there is an agent of this name.
pub fn is_known(settings: &Settings, name: &str) -> bool {
    names(settings).iter().any(|known| known == name)
}

/// Returns true if there is an agent of this name without any settings.
pub fn is_built_in(name: &str) -> bool {
    built_in().any(|known| known == name)
}

/// Builds an agent from the given settings.
pub fn as_described(
    settings: &Settings,
    name: &str,
    described: &AgentSettings,
) -> CommandResult<Arc<dyn Agent>> {
    build::agent(settings, name, described)
}

/// Returns true if the agent can list all its models. Providers and the demo agent can; a program
/// with its own tools cannot.
pub fn names_all_models(agent: &dyn Agent) -> bool {
    agent.tools() == ToolSide::Ours
}

/// Builds the agent of this name, with the given model if there is one.
pub fn named(
    settings: &Settings,
    name: &str,
    model: Option<&str>,
) -> CommandResult<Arc<dyn Agent>> {
    let name = aliases::resolved(name, |name| is_known(settings, name));
    if !is_known(settings, name) {
        return Err(unknown(settings, name));
    }
    let mut described = described(settings, name);
    if let Some(model) = model {
        described.model = Some(model.to_owned());
    }
    build::agent(settings, name, &described)
}

/// Returns the error for a name that no agent has, with the nearest that one has.
fn unknown(settings: &Settings, name: &str) -> CommandError {
    let known = names(settings);
    let nearest = slash::nearest(name, known.iter().map(String::as_str));
    let nearest = nearest.map(|near| format!("; did you mean {near}?"));
    let words = format!("there is no agent '{name}'{}", nearest.unwrap_or_default());
    let mut error = CommandError::new(ErrorKind::NotFound, words);
    let described = format!("agents.{name}.");
    let untrusted = settings.untrusted.iter();
    let mut claims = untrusted.flat_map(|untrusted| &untrusted.claims);
    if claims.any(|claim| claim.key.starts_with(&described)) {
        error = error.hint("the project's settings describe it: `tertulia trust` allows them");
    }
    error.hint(format!(
        "known: {}; describe others in [agents.NAME] of the settings, or register a program: `tertulia agents register`",
        known.join(", ")
    ))
}

/// Environment variables that hold API keys, or lead to the store; commands run by an agent do not
/// inherit them.
pub fn key_variables(settings: &Settings) -> Vec<String> {
    let usual = Provider::ALL
        .into_iter()
        .flat_map(|provider| provider.key_variables().iter().copied());
    let named = settings
        .agents
        .values()
        .filter_map(|agent| agent.key_env.as_deref());
    let all = usual.chain(named).chain(env::STORE_SECRETS.iter().copied());
    all.map(str::to_owned).collect()
}

/// Returns the settings of an agent, or defaults if there are none.
pub fn described(settings: &Settings, name: &str) -> AgentSettings {
    let described = settings.agents.get(name).cloned();
    described.unwrap_or_else(|| AgentSettings::plain(name))
}
