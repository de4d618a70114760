//! Builds the agents of a team's members: one per member, under the member's name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tertulia_agents::opencode::POLICY_VARIABLES;
use tertulia_agents::vendor::Vendor;
use tertulia_agents::{Agent, Whence};
use tertulia_core::team::{
    AgentDefinition, Launch, Member, MemberKind, Registry, Source as Chooser, TeamFile, merge,
};

use super::registered::{self, command_line, is_whole, shown};
use super::{aliases, build, described, is_built_in, is_known, key_variables, programs};
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::{AgentSettings, Settings, Source};

/// The agents of a team, and warnings about them.
pub struct TeamAgents {
    /// One per AI member, in the order of the team file.
    pub members: Vec<MemberAgent>,
    /// Warnings for the user, as sentences.
    pub warnings: Vec<String>,
}

/// The agent of one member.
pub struct MemberAgent {
    /// Name of the member and of the agent.
    pub member: String,
    /// Agent type, such as `claude` or `demo`; the team file's `agentType` if it is unknown.
    pub kind: String,
    /// The agent, or why it is unavailable: the team runs without it until it has a turn.
    pub agent: Result<Arc<dyn Agent>, String>,
}

/// Finds the agent of each member. Registered agents take precedence, then programs of the team
/// file unless the user's settings describe them, then the settings and the built-in agents.
/// Relative programs of the team file are resolved against `folder`.
pub fn for_team(
    settings: &Settings,
    registry: &Registry,
    team: &TeamFile,
    folder: &Path,
) -> CommandResult<TeamAgents> {
    let mut finder = Finder::new(settings, registry, team, folder);
    finder.refuse_redefinitions()?;
    for key in &team.duplicate_keys {
        finder.warnings.push(format!(
            "the team file has {} twice; the last value counts",
            shown(key)
        ));
    }
    let limit = team.conversation.max_agent_response_time();
    let agents = team
        .members
        .iter()
        .filter(|member| member.kind == MemberKind::Ai);
    let members = agents.map(|member| finder.member(member, limit)).collect();
    Ok(TeamAgents {
        members,
        warnings: finder.warnings,
    })
}

/// Finds the agents of one team.
struct Finder<'a> {
    settings: &'a Settings,
    registry: &'a Registry,
    definitions: Vec<AgentDefinition>,
    launches: BTreeMap<String, Launch>,
    /// Results so far, so that each agent is looked up and warned about once.
    found: BTreeMap<String, Option<AgentSettings>>,
    warnings: Vec<String>,
}

impl<'a> Finder<'a> {
    fn new(
        settings: &'a Settings,
        registry: &'a Registry,
        team: &TeamFile,
        folder: &Path,
    ) -> Finder<'a> {
        let definitions: Vec<AgentDefinition> = team
            .agents
            .iter()
            .map(|definition| placed(definition, registry, folder))
            .collect();
        let merged = merge(registry, &definitions);
        let mut warnings: Vec<String> = merged.conflicts.iter().map(ToString::to_string).collect();
        let used = |name: &str| {
            let is_it = |member: &Member| member.agent_type.as_deref() == Some(name);
            team.members.iter().any(is_it)
        };
        // A missing agent that is in use is reported with its member.
        for name in merged.unknown.iter().filter(|name| !used(name)) {
            if !is_known(settings, name) {
                warnings.push(format!(
                    "the team file names the agent '{name}', which has no known program"
                ));
            }
        }
        Finder {
            settings,
            registry,
            definitions,
            launches: merged.agents,
            found: BTreeMap::new(),
            warnings,
        }
    }

    fn member(&mut self, member: &Member, limit: Duration) -> MemberAgent {
        let name = member.agent_type.clone().unwrap_or_default();
        let known = match self.found.get(&name) {
            Some(known) => known.clone(),
            None => {
                let known = self.look(&name);
                self.found.insert(name.clone(), known.clone());
                known
            }
        };
        let Some(mut described) = known else {
            let reason = format!(
                "{} is to be the agent '{name}', and there is none of that name; `tertulia agents` shows which there are",
                member.display_name
            );
            self.warnings.push(reason.clone());
            return MemberAgent {
                member: member.name.clone(),
                kind: name,
                agent: Err(reason),
            };
        };
        self.warn_of_environment(member);
        let given = member.env.0.iter();
        let given = given.filter(|(name, _)| !POLICY_VARIABLES.contains(&name.as_str()));
        described
            .env
            .extend(given.map(|(name, value)| (name.clone(), value.clone())));
        if member.env.0.keys().any(|name| leads_astray(name)) {
            // The environment may lead to another program of the same name, or to another server.
            described.without = key_variables(self.settings);
        }
        let own_limit = described.timeout.filter(|own| *own < limit);
        described.timeout = Some(own_limit.unwrap_or(limit));
        if let (None, Some(whence)) = (own_limit, &mut described.whence) {
            whence.limit = Some("`maxAgentResponseTime` in the team file".to_owned());
        }
        let agent = build::agent(self.settings, &member.name, &described);
        let agent = agent.map_err(|error| {
            let reason = format!("{} cannot speak: {error}", member.display_name);
            self.warnings.push(reason.clone());
            reason
        });
        MemberAgent {
            member: member.name.clone(),
            kind: described.kind,
            agent,
        }
    }

    /// Returns the settings of the agent of this name, or `None` if it is unknown.
    fn look(&mut self, name: &str) -> Option<AgentSettings> {
        let name = aliases::resolved(name, |name| {
            self.launches.contains_key(name)
                || self.registry.agents.contains_key(name)
                || is_known(self.settings, name)
        });
        let launch = self.launches.get(name).cloned().or_else(|| {
            // Members may also use registered agents that the team file does not list.
            self.registry.agents.get(name).map(registered::launch)
        });
        let launch = launch.filter(|launch| !self.settings_beat(name, launch));
        let name = match launch {
            Some(_) => name,
            None => aliases::resolved(name, |name| is_known(self.settings, name)),
        };
        let mut whence = Whence::settings(name);
        let mut described = match launch {
            Some(launch) => {
                whence.program = Some(match launch.source {
                    Chooser::Registry => "register it again: `tertulia agents register`".to_owned(),
                    Chooser::TeamFile => {
                        format!("change `command` of the agent '{name}' in the team file")
                    }
                });
                self.warn_of_launch(name, &launch);
                let started = registered::started(self.settings, name, &launch);
                self.warnings.extend(started.warnings);
                started.described
            }
            None if is_known(self.settings, name) => {
                self.warn_of_settings(name);
                described(self.settings, name)
            }
            None => return None,
        };
        described.whence = Some(whence);
        if is_somebody_elses(&described) {
            described.without = key_variables(self.settings);
        }
        if let Some(program) = missing_program(&described) {
            self.warnings.push(format!(
                "the program {program} of the agent '{name}' was not found"
            ));
        }
        Some(described)
    }

    /// Fails if the team file describes a built-in agent as another program. The user's settings may
    /// describe it, and then count.
    fn refuse_redefinitions(&self) -> CommandResult<()> {
        let redefined = self.launches.iter().find(|(name, launch)| {
            let built_in = is_built_in(name) || aliases::vendor(name).is_some();
            launch.source == Chooser::TeamFile
                && built_in
                && !is_whole(self.settings, name)
                && !is_own_program(name, &launch.command)
        });
        let Some((name, launch)) = redefined else {
            return Ok(());
        };
        let line = command_line(&launch.command, &launch.args);
        let message = format!(
            "the team file wants the agent '{name}' to be {line}, but that name is built in"
        );
        Err(CommandError::new(ErrorKind::Invalid, message).hint(
            "give that agent another name in `agents` and in `agentType` of its members, or leave its `command` out",
        ))
    }

    /// Returns true if the team file's program must not be used because the user's settings describe
    /// the agent completely, which is as good as a registration.
    fn settings_beat(&mut self, name: &str, launch: &Launch) -> bool {
        let beat = launch.source == Chooser::TeamFile && is_whole(self.settings, name);
        if beat {
            self.warnings.push(format!(
                "the team file wants the agent '{name}' to be {}, but your settings describe it otherwise: they are followed",
                command_line(&launch.command, &launch.args)
            ));
        }
        beat
    }

    fn warn_of_launch(&mut self, name: &str, launch: &Launch) {
        let line = command_line(&launch.command, &launch.args);
        let registered = self.registry.agents.get(name);
        match launch.source {
            Chooser::TeamFile => self.warnings.push(format!(
                "the team file runs a program as '{name}', so make sure that you trust it: {line}"
            )),
            // The right arguments can make some programs do anything.
            Chooser::Registry if registered.is_some_and(|known| known.args != launch.args) => {
                self.warnings.push(format!(
                    "the agent '{name}' is registered, and the team file gives it other arguments: {line}"
                ));
            }
            Chooser::Registry => {}
        }
    }

    fn warn_of_settings(&mut self, name: &str) {
        let wishes = self.definitions.iter().find(|wish| wish.name == name);
        if wishes.is_some_and(|wish| wish.args.is_some() && wish.command.is_none()) {
            self.warnings.push(format!(
                "the arguments that the team file has for the agent '{name}' are left out: they count only for a registered one"
            ));
        }
    }

    /// Warns of a member's environment, by which a team file could redirect a program. Only the
    /// program knows which variables matter, so all are named except those that only affect output.
    /// Values may be keys and are not shown.
    fn warn_of_environment(&mut self, member: &Member) {
        let names = member.env.0.keys();
        let names = names.filter(|name| !ONLY_PRINTING.contains(&name.as_str()));
        let (policy, names): (Vec<&String>, Vec<&String>) =
            names.partition(|name| POLICY_VARIABLES.contains(&name.as_str()));
        for name in policy {
            self.warnings.push(format!(
                "{} starts without {name}: permissions come from --approve, not from the team file",
                member.display_name
            ));
        }
        let names: Vec<String> = names.into_iter().map(|name| shown(name)).collect();
        if !names.is_empty() {
            self.warnings.push(format!(
                "the team file sets {} for {}: this can change which program or server is used",
                names.join(", "),
                member.display_name
            ));
        }
    }
}

/// Environment variables that only affect output.
const ONLY_PRINTING: &[&str] = &[
    "CI",
    "CLICOLOR",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LINES",
    "LOG_LEVEL",
    "NO_COLOR",
    "TERM",
    "TZ",
    "VERBOSE",
];

/// Resolves the program of a definition relative to the team file's folder.
fn placed(definition: &AgentDefinition, registry: &Registry, folder: &Path) -> AgentDefinition {
    let mut placed = definition.clone();
    let Some(command) = &mut placed.command else {
        return placed;
    };
    if command.contains('/') && Path::new(command).is_relative() {
        *command = folder.join(&command).to_string_lossy().into_owned();
    }
    // The same program under another path is not a conflict.
    if let Some(registered) = registry.agents.get(&definition.name)
        && let Some(wanted) = programs::file_of(command)
        && programs::file_of(&registered.command) == Some(wanted)
    {
        command.clone_from(&registered.command);
    }
    placed
}

/// Returns true if a program comes with a team file and is not the vendor's installed one. Such a
/// program must not get the user's keys.
fn is_somebody_elses(described: &AgentSettings) -> bool {
    let Some(command) = &described.command else {
        return false;
    };
    let installed = Vendor::parse(&described.kind)
        .and_then(programs::find)
        .and_then(|program| programs::file_of(&program.to_string_lossy()));
    described.source == Source::TeamFile
        && (installed.is_none() || installed != programs::file_of(&command.to_string_lossy()))
}

/// Returns true if a command is the program of the vendor of this name, as installed here.
fn is_own_program(name: &str, command: &str) -> bool {
    let Some(vendor) = registered::vendor_of(name, "") else {
        return false;
    };
    let file = programs::file_of(command);
    let found = programs::find(vendor);
    let found = found.and_then(|found| programs::file_of(&found.to_string_lossy()));
    command == vendor.program() || (file.is_some() && file == found)
}

/// Returns the program that an agent needs, if it is missing.
fn missing_program(described: &AgentSettings) -> Option<String> {
    let vendor = Vendor::parse(&described.kind).map(|vendor| Path::new(vendor.program()));
    let program = described.command.as_deref().or(vendor)?;
    let missing = env::program(program).is_none();
    missing.then(|| program.display().to_string())
}

/// Returns true if a variable can determine which code runs or which server is used.
fn leads_astray(variable: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONPATH",
        "PERL5OPT",
        "RUBYOPT",
    ];
    const BEGINNINGS: &[&str] = &["LD_", "DYLD_", "GIT_"];
    const ENDINGS: &[&str] = &[
        "_BASE_URL",
        "_API_BASE",
        "_ENDPOINT",
        "_HOST",
        "_PROXY",
        "_CONFIG",
        "_CONFIG_DIR",
        "_HOME",
    ];
    let name = variable.to_uppercase();
    NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
        || ENDINGS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests;
