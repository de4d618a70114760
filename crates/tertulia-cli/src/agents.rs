//! Agents as the settings describe them.

use std::sync::Arc;

use tertulia::agent::command::Command;
use tertulia::agent::demo::Demo;
use tertulia::agent::{Agent, Patience};

use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::{AgentSettings, Settings, Source};

/// The agent that needs nothing.
const DEMO: &str = "demo";
/// The types that this program can reach.
const TYPES: &[&str] = &["demo", "command"];
/// From so many tokens on the older part of a talk is summed up, unless the settings say otherwise.
const COMPACT_AT: u64 = 100_000;

/// What was asked for on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub name: Option<&'a str>,
    pub model: Option<&'a str>,
}

/// An agent, and why it is this one.
pub struct Chosen {
    pub agent: Arc<dyn Agent>,
    pub reason: String,
    /// From how many tokens on the older part of a talk is summed up for it.
    pub compact_at: Option<u64>,
}

/// The agent that is to answer: the one asked for, the one that answered before, the one set, or the
/// built-in one.
pub fn choose(
    settings: &Settings,
    asked: &Asked<'_>,
    recorded: Option<&str>,
) -> CommandResult<Chosen> {
    let (name, source, reason) = pick(settings, asked, recorded);
    let described = described(settings, &name);
    let from_project = described.source == Source::ProjectFile;
    if source != Source::Person && from_project && described.kind != DEMO {
        // Or unpacking somebody's project and starting a talk in it would run their program, or send
        // one's words to their server.
        return Err(CommandError::new(
            ErrorKind::Usage,
            format!("this project's settings say what the agent '{name}' runs; a program from a project runs only when you name it"),
        )
        .hint(format!("look at it, then run with --agent {name}, or set {}={name}", env::AGENT)));
    }
    Ok(Chosen {
        agent: named(settings, &name, asked.model)?,
        reason,
        compact_at: described.compact_at.or(Some(COMPACT_AT)),
    })
}

/// The name, who chose it, and why.
fn pick(
    settings: &Settings,
    asked: &Asked<'_>,
    recorded: Option<&str>,
) -> (String, Source, String) {
    if let Some(name) = asked.name {
        return (name.to_owned(), Source::Person, "asked for".to_owned());
    }
    if let Some((name, Source::Person)) = &settings.agent {
        return (name.clone(), Source::Person, "asked for".to_owned());
    }
    if let Some(name) = recorded.filter(|name| is_known(settings, name)) {
        return (name.to_owned(), Source::UserFile, "as before".to_owned());
    }
    match &settings.agent {
        Some((name, source)) => (name.clone(), *source, "from the settings".to_owned()),
        None => (
            DEMO.to_owned(),
            Source::UserFile,
            "the built-in one: no other is set".to_owned(),
        ),
    }
}

/// The variables that hold keys: no command that an agent runs inherits them.
pub fn key_variables(settings: &Settings) -> Vec<String> {
    settings
        .agents
        .values()
        .filter_map(|agent| agent.key_env.clone())
        .collect()
}

fn described(settings: &Settings, name: &str) -> AgentSettings {
    settings
        .agents
        .get(name)
        .cloned()
        .unwrap_or_else(|| AgentSettings::plain(name))
}

/// All the names that can be asked for.
pub fn names(settings: &Settings) -> Vec<String> {
    let mut names: Vec<String> = settings.agents.keys().cloned().collect();
    if !settings.agents.contains_key(DEMO) {
        names.insert(0, DEMO.to_owned());
    }
    names
}

/// Whether there is an agent of this name.
pub fn is_known(settings: &Settings, name: &str) -> bool {
    names(settings).iter().any(|known| known == name)
}

/// The type of a named agent.
pub fn kind<'a>(settings: &'a Settings, name: &str) -> &'a str {
    settings
        .agents
        .get(name)
        .map_or(DEMO, |agent| agent.kind.as_str())
}

/// The agent of this name, with this model if one is asked for.
pub fn named(
    settings: &Settings,
    name: &str,
    model: Option<&str>,
) -> CommandResult<Arc<dyn Agent>> {
    if !is_known(settings, name) {
        return Err(
            CommandError::new(ErrorKind::NotFound, format!("there is no agent '{name}'")).hint(
                format!(
                    "known: {}; describe others in [agents.NAME] of the settings",
                    names(settings).join(", ")
                ),
            ),
        );
    }
    let mut described = described(settings, name);
    if let Some(model) = model {
        described.model = Some(model.to_owned());
    }
    let described = &described;
    match described.kind.as_str() {
        "demo" => Ok(Arc::new(Demo::new(
            name,
            described.pace.unwrap_or(settings.demo_pace),
        ))),
        "command" => program(settings, name, described),
        other => Err(CommandError::new(
            ErrorKind::Usage,
            format!("agent '{name}' has the type '{other}', which this version does not know"),
        )
        .hint(format!("known types: {}", TYPES.join(", ")))),
    }
}

fn program(
    settings: &Settings,
    name: &str,
    described: &AgentSettings,
) -> CommandResult<Arc<dyn Agent>> {
    let Some(command) = described.command.clone() else {
        return Err(
            CommandError::new(ErrorKind::Usage, format!("agent '{name}' has no command"))
                .hint(format!("set `command` in [agents.{name}]")),
        );
    };
    let default = Patience::default();
    Ok(Arc::new(Command {
        name: name.to_owned(),
        model: described.model.clone(),
        found: env::program(&command),
        command,
        args: described.args.clone(),
        env: described.env.clone(),
        work_dir: Some(settings.cwd.clone()),
        system: described.system.clone(),
        patience: Patience {
            total: described.timeout.unwrap_or(default.total),
            idle: described.idle_timeout.unwrap_or(default.idle),
        },
    }))
}
