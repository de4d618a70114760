//! Merges agent definitions of a team file and of the registry. A team file that comes with a
//! project must not choose the program for an agent that the user registered.

use std::collections::BTreeMap;
use std::fmt;

use super::problem::quoted;
use super::{AgentDefinition, Registry};

/// Agents of a team, with conflicts and unknown names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Launch settings of each agent, by name.
    pub agents: BTreeMap<String, Launch>,
    /// Definitions in the team file whose program differs from the registry's.
    pub conflicts: Vec<Conflict>,
    /// Names in the team file for which no program is known.
    pub unknown: Vec<String>,
}

/// Launch settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub command: String,
    /// Command-line arguments.
    pub args: Vec<String>,
    /// Origin of the arguments.
    pub args_source: Source,
    /// True if the program needs a terminal (pty).
    pub use_pty: bool,
    /// Origin of the program.
    pub source: Source,
}

/// Origin of a program or of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user's registry.
    Registry,
    /// The team file.
    TeamFile,
}

/// A team file that names another program than the registry. The registry's settings are used and
/// the team file's ignored, because its arguments were meant for the other program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Name of the agent.
    pub agent: String,
    /// The program that is used.
    pub registered: String,
    /// The program that the team file names.
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

/// Returns the agents of a team: those defined in its file, or all registered ones if it defines
/// none.
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

/// Applies the arguments and the pty setting of a team file, but never its program.
fn with_wishes(launch: Launch, definition: &AgentDefinition) -> Launch {
    let wanted = definition.args.as_ref();
    Launch {
        // Arguments equal to the registered ones keep their origin.
        args_source: match wanted {
            Some(wanted) if *wanted != launch.args => Source::TeamFile,
            _ => launch.args_source,
        },
        args: wanted.cloned().unwrap_or(launch.args),
        use_pty: definition.use_pty.unwrap_or(launch.use_pty),
        ..launch
    }
}
