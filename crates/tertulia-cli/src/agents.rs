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

/// An agent, and why it is this one.
pub struct Chosen {
    pub agent: Arc<dyn Agent>,
    pub reason: &'static str,
}

/// The agent that is to answer: the one asked for, the one set, or the built-in one.
pub fn choose(settings: &Settings, asked: Option<&str>) -> CommandResult<Chosen> {
    if let Some(name) = asked {
        return Ok(Chosen {
            agent: named(settings, name)?,
            reason: "asked for",
        });
    }
    let (name, source, reason) = match &settings.agent {
        Some((name, source)) => (name.as_str(), *source, "from the settings"),
        None => (DEMO, Source::UserFile, "the built-in one: no other is set"),
    };
    let described = settings.agents.get(name);
    let runs_a_program =
        described.is_some_and(|agent| agent.command.is_some() || agent.kind != DEMO);
    if source != Source::Person
        && runs_a_program
        && described.is_some_and(|agent| agent.source == Source::ProjectFile)
    {
        // Or unpacking somebody's project and starting a talk in it would run their program.
        return Err(CommandError::new(
            ErrorKind::Usage,
            format!("this project's settings say what the agent '{name}' runs; a program from a project runs only when you name it"),
        )
        .hint(format!("look at it, then run with --agent {name}, or set {}={name}", env::AGENT)));
    }
    Ok(Chosen {
        agent: named(settings, name)?,
        reason,
    })
}

/// All the names that can be asked for.
pub fn names(settings: &Settings) -> Vec<String> {
    let mut names: Vec<String> = settings.agents.keys().cloned().collect();
    if !settings.agents.contains_key(DEMO) {
        names.insert(0, DEMO.to_owned());
    }
    names
}

/// The type of a named agent.
pub fn kind<'a>(settings: &'a Settings, name: &str) -> &'a str {
    settings
        .agents
        .get(name)
        .map_or(DEMO, |agent| agent.kind.as_str())
}

/// The agent of this name.
pub fn named(settings: &Settings, name: &str) -> CommandResult<Arc<dyn Agent>> {
    let nothing = AgentSettings {
        kind: DEMO.to_owned(),
        model: None,
        command: None,
        args: Vec::new(),
        env: Vec::new(),
        system: None,
        timeout: None,
        idle_timeout: None,
        pace: None,
        source: Source::UserFile,
    };
    let described = match settings.agents.get(name) {
        Some(described) => described,
        None if name == DEMO => &nothing,
        None => {
            return Err(CommandError::new(
                ErrorKind::NotFound,
                format!("there is no agent '{name}'"),
            )
            .hint(format!(
                "known: {}; describe others in [agents.NAME] of the settings",
                names(settings).join(", ")
            )));
        }
    };
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
