//! Builds an agent from its settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tertulia_agents::acp::adapter::Adapter;
use tertulia_agents::acp::{self, Acp, Connection};
use tertulia_agents::api::{Api, Key, Provider, RETRIES, Secret, Thinking};
use tertulia_agents::command::{Command, ReadOnly};
use tertulia_agents::demo::Demo;
use tertulia_agents::opencode::KnownGeneration;
use tertulia_agents::process::Kernel;
use tertulia_agents::scratch::Homes;
use tertulia_agents::session_files::SessionFiles;
use tertulia_agents::vendor::{Vendor, VendorProgram};
use tertulia_agents::{Agent, Patience, Whence};

use super::{ACP, COMMAND, DEMO};
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::native_files::NativeFiles;
use crate::settings::{AgentSettings, Settings, Source};

/// Builds the agent that the settings describe.
pub fn agent(
    settings: &Settings,
    name: &str,
    described: &AgentSettings,
) -> CommandResult<Arc<dyn Agent>> {
    let kind = described.kind.as_str();
    if let Some(provider) = Provider::parse(kind) {
        return Ok(Arc::new(provided(provider, name, described)?));
    }
    if let Some(vendor) = Vendor::parse(kind) {
        return Ok(Arc::new(program_of(vendor, settings, name, described)));
    }
    Ok(match kind {
        DEMO => {
            let pace = described.pace.unwrap_or(settings.demo_pace);
            Arc::new(Demo::new(name, pace))
        }
        COMMAND => Arc::new(command(settings, name, described)?),
        ACP => Arc::new(acp(settings, name, described)?),
        other => {
            let name = whence(name, described).section;
            return Err(CommandError::new(
                ErrorKind::Usage,
                format!("agent '{name}' has the type '{other}', which this version does not know"),
            )
            .hint(format!("known types: {}", types().join(", "))));
        }
    })
}

/// Returns all supported agent types.
fn types() -> Vec<&'static str> {
    let mut types = vec![DEMO];
    types.extend(Provider::ALL.map(Provider::name));
    types.extend(Vendor::ALL.map(Vendor::name));
    types.extend([ACP, COMMAND]);
    types
}

fn provided(provider: Provider, name: &str, described: &AgentSettings) -> CommandResult<Api> {
    let base_url = described
        .base_url
        .clone()
        .or_else(|| env::text(provider.url_variable()));
    let key = key(provider, described, base_url.as_deref());
    let thinking = match &described.thinking {
        None => None,
        Some(words) => Some(Thinking::parse(words).ok_or_else(|| {
            CommandError::new(
                ErrorKind::Usage,
                format!(
                    "agents.{}.thinking is '{words}'",
                    whence(name, described).section
                ),
            )
            .hint("write true, false, \"low\", \"medium\", \"high\" or a number of tokens")
        })?),
    };
    let mut api = Api::new(name, provider, key);
    api.model.clone_from(&described.model);
    api.base_url = base_url;
    api.system.clone_from(&described.system);
    api.system_append.clone_from(&described.system_append);
    api.thinking = thinking;
    api.max_tokens = described.max_tokens;
    api.retries = described.retries.unwrap_or(RETRIES);
    api.patience = patience(described);
    api.whence = whence(name, described);
    Ok(api)
}

fn key(provider: Provider, described: &AgentSettings, base_url: Option<&str>) -> Key {
    if let Some((command, args)) = described
        .key_command
        .as_deref()
        .and_then(<[_]>::split_first)
    {
        let command = PathBuf::from(command);
        return Key::Command {
            found: env::program(&command),
            command,
            args: args.to_vec(),
        };
    }
    let variables: Vec<&str> = match &described.key_env {
        Some(variable) => vec![variable],
        None => provider.key_variables().to_vec(),
    };
    // The agent's own environment takes precedence over that of the process.
    let given = |variable: &str| {
        let own = described.env.iter().find(|(name, _)| name == variable);
        own.map(|(_, value)| value.clone())
            .filter(|value| !value.is_empty())
    };
    for variable in &variables {
        if let Some(key) = given(variable).or_else(|| env::text(variable)) {
            return Key::Value {
                secret: Secret::new(&key),
                variable: (*variable).to_owned(),
            };
        }
    }
    match variables.first() {
        // A custom server needs no key, unless the settings name its variable.
        Some(_) if base_url.is_some() && described.key_env.is_none() => Key::NotNeeded,
        Some(variable) => Key::Missing {
            variable: (*variable).to_owned(),
        },
        None => Key::NotNeeded,
    }
}

fn program_of(
    vendor: Vendor,
    settings: &Settings,
    name: &str,
    described: &AgentSettings,
) -> VendorProgram {
    let command = described
        .command
        .clone()
        .unwrap_or_else(|| PathBuf::from(vendor.program()));
    VendorProgram {
        name: name.to_owned(),
        vendor,
        model: described.model.clone(),
        found: env::program(&command),
        command,
        args: described.args.clone(),
        env: described.env.clone(),
        without: without(described),
        work_dir: Some(settings.cwd.clone()),
        homes: homes(described),
        session_files: session_files(vendor.history(), described),
        system: described.own_system(),
        patience: patience(described),
        whence: whence(name, described),
        retries: described.retries.unwrap_or(RETRIES),
        generation: KnownGeneration::default(),
    }
}

fn acp(settings: &Settings, name: &str, described: &AgentSettings) -> CommandResult<Acp> {
    let command = command_of(name, described)?;
    let adapter = Adapter::of(&command, &described.args);
    Ok(Acp {
        session_files: adapter.and_then(|it| session_files(it.history(), described)),
        name: name.to_owned(),
        model: described.model.clone(),
        found: env::program(&command),
        command,
        args: described.args.clone(),
        env: described.env.clone(),
        without: without(described),
        work_dir: settings.cwd.clone(),
        // Trust only the user to know this; a project could claim it of its own program.
        asks: described.asks && described.source != Source::TeamFile,
        homes: homes(described),
        system: described.own_system(),
        patience: patience(described),
        grace: acp::GRACE,
        whence: whence(name, described),
        connection: Connection::default(),
    })
}

fn command(settings: &Settings, name: &str, described: &AgentSettings) -> CommandResult<Command> {
    let command = command_of(name, described)?;
    Ok(Command {
        name: name.to_owned(),
        model: described.model.clone(),
        found: env::program(&command),
        command,
        args: described.args.clone(),
        env: described.env.clone(),
        without: without(described),
        work_dir: Some(settings.cwd.clone()),
        system: described.own_system(),
        patience: patience(described),
        whence: whence(name, described),
        read_only: read_only(settings, described),
    })
}

/// Returns how a program is confined that cannot be made to ask; `None` if the user lets it write
/// whatever it likes.
fn read_only(settings: &Settings, described: &AgentSettings) -> Option<ReadOnly> {
    let settable = described.source != Source::TeamFile;
    if settable && !described.confine {
        return None;
    }
    let paths = described.writable.iter().filter(|_| settable);
    Some(ReadOnly {
        writable: paths.map(|path| env::placed(path, &settings.cwd)).collect(),
        scratch: env::scratch(),
        kernel: Kernel::probe(),
        settable,
    })
}

fn command_of(name: &str, described: &AgentSettings) -> CommandResult<PathBuf> {
    described
        .command
        .as_deref()
        .map(Path::to_owned)
        .ok_or_else(|| {
            let name = whence(name, described).section;
            CommandError::new(ErrorKind::Usage, format!("agent '{name}' has no command"))
                .hint(format!("set `command` in [agents.{name}]"))
        })
}

/// Returns the variables that the program does not inherit.
fn without(described: &AgentSettings) -> Vec<String> {
    let secrets = env::STORE_SECRETS.iter().map(|name| (*name).to_owned());
    described.without.iter().cloned().chain(secrets).collect()
}

/// Returns where the user finds the settings of an agent, for hints.
fn whence(name: &str, described: &AgentSettings) -> Whence {
    let whence = described.whence.clone();
    whence.unwrap_or_else(|| Whence::settings(name))
}

/// Returns the folders where the vendors' programs keep their files, according to the agent's
/// environment.
fn homes(described: &AgentSettings) -> Option<Homes> {
    let set = |variable: &str| {
        let own = described.env.iter().find(|(name, _)| name == variable);
        own.map(|(_, value)| PathBuf::from(value))
            .or_else(|| env::path(variable))
    };
    let home = set("HOME")?;
    Some(Homes {
        gemini: set("GEMINI_CLI_HOME").unwrap_or_else(|| home.clone()),
        codex: set("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
        scratch: env::scratch(),
    })
}

/// Returns the files in which a program keeps its sessions, according to the agent's environment.
fn session_files(program: &str, described: &AgentSettings) -> Option<Arc<dyn SessionFiles>> {
    let files = NativeFiles::of(program, &described.env)?;
    Some(Arc::new(files))
}

fn patience(described: &AgentSettings) -> Patience {
    let usual = Patience::default();
    Patience {
        total: described.timeout.unwrap_or(usual.total),
        idle: described.idle_timeout.unwrap_or(usual.idle),
    }
}
