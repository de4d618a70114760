//! What a team file and the registry say about one agent, put together. A file that came with a
//! project must not choose which program runs under the name of an agent that a person registered.

use std::collections::BTreeMap;
use std::fmt;

use super::problem::quoted;
use super::{AgentDefinition, Registry};

/// The agents of a team, and what had to be decided about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// How each is started, by name.
    pub agents: BTreeMap<String, Launch>,
    /// Where the team file wanted another program than the registry has.
    pub conflicts: Vec<Conflict>,
    /// Names in the team file for which nobody knows a program.
    pub unknown: Vec<String>,
}

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub command: String,
    /// What it is given on its command line.
    pub args: Vec<String>,
    /// Who chose that.
    pub args_source: Source,
    /// Whether it wants a terminal.
    pub use_pty: bool,
    /// Who chose the program.
    pub source: Source,
}

/// Who chose a program, or what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The person who registered it.
    Registry,
    /// The team file.
    TeamFile,
}

/// A team file that wants another program than the registry has. The registry's is used, and nothing
/// of the team file's: its arguments were meant for the other program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The agent.
    pub agent: String,
    /// The program that is used.
    pub registered: String,
    /// The program that the team file wants.
    pub wanted: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the team file wants the agent {} to be {}, but it is registered as {}: the registered one is used",
            quoted(&self.agent),
            quoted(&self.wanted),
            quoted(&self.registered)
        )
    }
}

/// The agents of a team: those that its file names, or all that are registered where it names none.
pub fn merge(registry: &Registry, definitions: &[AgentDefinition]) -> Merged {
    let mut merged = Merged::default();
    if definitions.is_empty() {
        merged.agents = registry
            .agents
            .keys()
            .filter_map(|name| Some((name.clone(), registered(registry, name)?)))
            .collect();
    }
    for definition in definitions {
        let name = &definition.name;
        match (registered(registry, name), &definition.command) {
            (Some(launch), Some(wanted)) if *wanted != launch.command => {
                merged.conflicts.push(Conflict {
                    agent: name.clone(),
                    registered: launch.command.clone(),
                    wanted: wanted.clone(),
                });
                merged.agents.insert(name.clone(), launch);
            }
            (Some(launch), _) => {
                let launch = with_wishes(launch, definition);
                merged.agents.insert(name.clone(), launch);
            }
            (None, Some(command)) => {
                let launch = with_wishes(from_team_file(command), definition);
                merged.agents.insert(name.clone(), launch);
            }
            (None, None) => merged.unknown.push(name.clone()),
        }
    }
    merged
}

fn registered(registry: &Registry, name: &str) -> Option<Launch> {
    let agent = registry.agents.get(name)?;
    Some(Launch {
        command: agent.command.clone(),
        args: agent.args.clone(),
        args_source: Source::Registry,
        use_pty: agent.use_pty,
        source: Source::Registry,
    })
}

fn from_team_file(command: &str) -> Launch {
    Launch {
        command: command.to_owned(),
        args: Vec::new(),
        args_source: Source::TeamFile,
        use_pty: false,
        source: Source::TeamFile,
    }
}

/// A team may say how its agents are called, but not which program that is.
fn with_wishes(launch: Launch, definition: &AgentDefinition) -> Launch {
    let wanted = definition.args.as_ref();
    Launch {
        // The same arguments are no wish.
        args_source: match wanted {
            Some(wanted) if *wanted != launch.args => Source::TeamFile,
            _ => launch.args_source,
        },
        args: wanted.cloned().unwrap_or(launch.args),
        use_pty: definition.use_pty.unwrap_or(launch.use_pty),
        ..launch
    }
}
