//! Implements `agents scan`, `agents register --auto` and `agents verify`: finds known agent
//! programs on this machine, registers them and checks that they start.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use futures::StreamExt;
use serde_json::{Value, json};
use tertulia_agents::acp::adapter::Adapter;
use tertulia_agents::vendor::Vendor;
use tertulia_core::team::{Registered, Registry};

use super::registered::{announce_takeover, object, of};
use crate::agents::programs::{self, Untold};
use crate::agents::{self, KNOWN, KnownProgram};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::ui::Ui;

/// Check that registered agents start (runs `--version` only)
///
/// Only `--version` is asked for, and no key is handed on. `agents check` sends a real prompt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia agents verify            all of them\n  \
    tertulia agents verify claude\n\n\
    When it worked, and the version, are kept in the registry. Exit code 6 if one does not start.")]
pub struct VerifyArgs {
    /// Only this one
    name: Option<String>,
    /// All of them, as without a name
    #[arg(short, long, conflicts_with = "name")]
    all: bool,
}

/// A known program: a vendor's own, an Agent Client Protocol adapter for a vendor, or another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Vendor(Vendor),
    Adapter(&'static str),
    Other(&'static KnownProgram),
}

impl Known {
    fn all() -> Vec<Known> {
        let vendors = Vendor::ALL.into_iter().map(Known::Vendor);
        vendors
            .chain(Adapter::programs().map(Known::Adapter))
            .chain(KNOWN.iter().map(Known::Other))
            .collect()
    }

    /// Name under which the program is registered.
    fn name(self) -> &'static str {
        match self {
            Known::Vendor(vendor) => vendor.name(),
            Known::Adapter(program) => program,
            Known::Other(known) => known.name,
        }
    }

    fn program(self) -> &'static str {
        match self {
            Known::Vendor(vendor) => vendor.program(),
            Known::Adapter(program) => program,
            Known::Other(known) => known.name,
        }
    }

    /// Returns what a version of the program lacks here.
    fn remark(self, version: Option<&str>) -> Option<String> {
        let Known::Vendor(vendor) = self else {
            return None;
        };
        version
            .and_then(|version| vendor.remark(version))
            .map(str::to_owned)
    }

    /// Install command for a vendor's program; `None` for the others, which are optional.
    fn install(self) -> Option<&'static str> {
        match self {
            Known::Vendor(vendor) => Some(vendor.install()),
            Known::Adapter(_) | Known::Other(_) => None,
        }
    }

    /// Returns the arguments with which the program is registered. Those of a vendor's program are
    /// added at every start, and tool permissions come from `--approve` each time.
    fn arguments(self) -> Vec<String> {
        match self {
            Known::Other(known) => known.arguments(),
            Known::Vendor(_) | Known::Adapter(_) => Vec::new(),
        }
    }
}

/// A known program that is installed on this machine.
struct Found {
    known: Known,
    path: PathBuf,
    /// Version if the program prints one, or why it does not start.
    version: Result<Option<String>, Untold>,
}

pub async fn scan(
    settings: &Settings,
    signals: &mut Signals,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let registry = settings.registry.read()?;
    let found = look(settings, &Known::all(), signals).await?;
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    for known in Known::all() {
        let found = found.iter().find(|found| found.known == known);
        let install = match (known.install(), found) {
            (None, None) => continue,
            (install, _) => install.unwrap_or_default(),
        };
        let path = found.map(|found| found.path.display().to_string());
        let (version, reason) = match found.map(|found| &found.version) {
            Some(Ok(version)) => (version.clone(), known.remark(version.as_deref())),
            Some(Err(reason)) => (None, Some(reason.to_string())),
            None => (None, Some(format!("not found; {install} installs it"))),
        };
        let names = path.as_deref().map(|path| names_of(&registry, path));
        let names = names.unwrap_or_default();
        objects.push(json!({
            "name": known.name(),
            "program": known.program(),
            "path": path,
            "version": version,
            "reason": reason,
            "registered": !names.is_empty(),
            "registered_as": names,
        }));
        let registered = match (&path, names.is_empty()) {
            (None, _) => String::new(),
            (Some(_), true) => "no".to_owned(),
            (Some(_), false) => format!("as {}", names.join(", ")),
        };
        let place = match (path, reason) {
            (Some(path), Some(reason)) => format!("{path}: {reason}"),
            (path, reason) => path.or(reason).unwrap_or_default(),
        };
        let version = version.unwrap_or_default();
        rows.push(vec![known.name().to_owned(), version, registered, place]);
    }
    if ui.json {
        ui.document(&json!({ "programs": objects }));
    } else {
        ui.table(&["NAME", "VERSION", "REGISTERED", "PROGRAM"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the names under which the program at `path` is registered.
fn names_of(registry: &Registry, path: &str) -> Vec<String> {
    let file = programs::file_of(path);
    let agents = registry.agents.iter();
    agents
        .filter(|(_, agent)| file.is_some() && programs::file_of(&agent.command) == file)
        .map(|(name, _)| name.clone())
        .collect()
}

/// Finds the wanted programs and runs each with `--version`, a few in parallel.
async fn look(
    settings: &Settings,
    wanted: &[Known],
    signals: &mut Signals,
) -> CommandResult<Vec<Found>> {
    let cancel = signals.cancel.clone();
    let programs = wanted
        .iter()
        .filter_map(|known| Some((*known, programs::find_program(known.program())?)));
    let asked = programs.map(|(known, path)| {
        let keys = agents::key_variables(settings);
        let cancel = cancel.clone();
        async move {
            let version = programs::version(known.name(), &path, keys, &cancel).await;
            Found {
                known,
                path,
                version,
            }
        }
    });
    let found = signals.during(a_few_at_once(asked)).await?;
    not_stopped(signals)?;
    Ok(found)
}

/// Runs the futures with at most `AT_ONCE` in parallel and returns the results in order. The limit
/// exists because on a busy machine programs that start together all start slowly.
async fn a_few_at_once<T>(tried: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let tried: Vec<_> = tried.collect();
    let results = futures::stream::iter(tried).buffered(programs::AT_ONCE);
    results.collect().await
}

/// Fails if a signal was caught: results gathered after an interruption are unreliable.
fn not_stopped(signals: &Signals) -> CommandResult<()> {
    match signals.caught() {
        None => Ok(()),
        Some(signal) => Err(CommandError::new(
            ErrorKind::Interrupted(signal),
            "stopped; nothing was changed",
        )),
    }
}

/// Registers the programs that a scan finds.
pub async fn register(
    settings: &Settings,
    names: &[String],
    signals: &mut Signals,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let wanted = wanted(names)?;
    let found = look(settings, &wanted, signals).await?;
    if let Some(known) = wanted
        .iter()
        .find(|known| !names.is_empty() && found.iter().all(|found| found.known != **known))
    {
        let words = format!("the program {} was not found", known.program());
        let install = known.install().map(|line| format!("{line} installs it; "));
        return Err(CommandError::new(ErrorKind::NotFound, words).hint(format!(
            "{}if it is elsewhere: `tertulia agents register {} --command PATH`",
            install.unwrap_or_default(),
            known.name()
        )));
    }
    let mut ready = Vec::new();
    let count = found.len();
    for found in found {
        match &found.version {
            Ok(version) => ready.push(registration(found.known, &found.path, version.as_ref())?),
            Err(reason) => ui.warn(&format!(
                "{} is not registered: {reason}",
                found.path.display()
            )),
        }
    }
    // Existing registrations, made by the user, are not overwritten.
    let added = announce_takeover(settings, ui, |registry| {
        ready.retain(|(name, _)| !registry.agents.contains_key(name));
        registry.agents.extend(ready.iter().cloned());
        Ok(ready)
    })?;
    if ui.json {
        let added: Vec<Value> = added
            .iter()
            .map(|(name, agent)| object(name, agent))
            .collect();
        ui.document(&json!({ "agents": added }));
    } else if added.is_empty() {
        ui.note(match count {
            0 => "No agent programs found.",
            _ => "Nothing to register: the agent programs found are registered, or do not start.",
        });
    } else {
        for (name, agent) in &added {
            let line = agents::command_line(&agent.command, &agent.args);
            ui.note(&format!("'{name}' is registered: {line}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Resolves `names` to known programs; returns all of them if `names` is empty.
fn wanted(names: &[String]) -> CommandResult<Vec<Known>> {
    if names.is_empty() {
        return Ok(Known::all());
    }
    let mut wanted = Vec::new();
    for name in names {
        let meant = agents::aliases::vendor(name).map(Known::Vendor);
        let is_it = |known: &Known| known.name() == name || known.program() == name;
        let known = Known::all()
            .into_iter()
            .find(is_it)
            .or(meant)
            .ok_or_else(|| {
                let all: Vec<&str> = Known::all().into_iter().map(Known::name).collect();
                let all = all.join(", ");
                CommandError::new(
                    ErrorKind::NotFound,
                    format!("no program is known as '{name}'"),
                )
                .hint(format!("known: {all}"))
                .hint(format!(
                    "any other: `tertulia agents register {name} --command PATH`"
                ))
            })?;
        if !wanted.contains(&known) {
            wanted.push(known);
        }
    }
    Ok(wanted)
}

/// Builds the registry record of a program.
fn registration(
    known: Known,
    path: &Path,
    version: Option<&String>,
) -> CommandResult<(String, Registered)> {
    let command = path.to_str().ok_or_else(|| {
        let words = format!(
            "the path {} is not UTF-8, and cannot be kept",
            path.display()
        );
        CommandError::new(ErrorKind::Usage, words)
    })?;
    let now = open::clock().now();
    let agent = Registered {
        display_name: known.name().to_owned(),
        command: command.to_owned(),
        args: known.arguments(),
        use_pty: false,
        version: version.cloned(),
        installed_at: Some(now),
        last_verified: Some(now),
    };
    Ok((known.name().to_owned(), agent))
}

/// Result of verifying one registered agent.
struct Tried {
    name: String,
    command: String,
    version: Result<Option<String>, Untold>,
}

pub async fn verify(
    args: &VerifyArgs,
    settings: &Settings,
    signals: &mut Signals,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let registry = settings.registry.read()?;
    let mut agents: Vec<(&String, &Registered)> = registry.agents.iter().collect();
    if let Some(name) = &args.name {
        of(&registry, name, settings)?;
        agents.retain(|(known, _)| *known == name);
    }
    let cancel = signals.cancel.clone();
    let tried = agents.into_iter().map(|(name, agent)| {
        let keys = agents::key_variables(settings);
        let cancel = cancel.clone();
        async move {
            let command = Path::new(&agent.command);
            let version = programs::version(name, command, keys, &cancel).await;
            Tried {
                name: name.clone(),
                command: agent.command.clone(),
                version,
            }
        }
    });
    let tried = signals.during(a_few_at_once(tried)).await?;
    not_stopped(signals)?;
    record(settings, &tried, ui)?;
    tell(&tried, ui);
    let fails = |tried: &&Tried| matches!(tried.version, Err(Untold::Fails(_)));
    if let Some(failed) = tried.iter().find(fails) {
        return Err(CommandError::new(
            ErrorKind::Agent,
            format!("the agent '{}' does not start", failed.name),
        )
        .hint("`tertulia agents scan` shows where programs are; register it again with another --command"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Records version and time of successful checks. Skips agents whose command was changed in the
/// meantime, because the new command was not checked.
fn record(settings: &Settings, tried: &[Tried], ui: &mut Ui) -> CommandResult<()> {
    let now = open::clock().now();
    if tried.iter().all(|tried| tried.version.is_err()) {
        return Ok(());
    }
    announce_takeover(settings, ui, |registry| {
        for tried in tried {
            if let Ok(version) = &tried.version
                && let Some(agent) = registry.agents.get_mut(&tried.name)
                && agent.command == tried.command
            {
                agent.last_verified = Some(now);
                agent.version = version.clone().or(agent.version.take());
            }
        }
        Ok(())
    })
}

/// Returns what this version of a registered program lacks here.
fn remark(tried: &Tried, version: Option<&str>) -> Option<&'static str> {
    agents::vendor_of(&tried.name, &tried.command)?.remark(version?)
}

/// Formats a version with what it lacks.
fn with_remark(tried: &Tried, version: Option<&str>) -> String {
    let parts = [version, remark(tried, version)].into_iter().flatten();
    parts.collect::<Vec<_>>().join(": ")
}

fn tell(tried: &[Tried], ui: &mut Ui) {
    if ui.json {
        let objects: Vec<Value> = tried
            .iter()
            .map(|tried| {
                json!({
                    "name": tried.name,
                    "command": tried.command,
                    "ok": !matches!(tried.version, Err(Untold::Fails(_))),
                    "version": tried.version.as_ref().ok(),
                    "reason": match &tried.version {
                        Ok(version) => remark(tried, version.as_deref()).map(str::to_owned),
                        Err(reason) => Some(reason.to_string()),
                    },
                })
            })
            .collect();
        ui.document(&json!({ "agents": objects }));
        return;
    }
    if tried.is_empty() {
        ui.note("no agents registered; `tertulia agents register --auto` registers the installed programs");
        return;
    }
    let rows: Vec<Vec<String>> = tried
        .iter()
        .map(|tried| {
            let (state, version) = match &tried.version {
                Ok(version) => ("starts", with_remark(tried, version.as_deref())),
                Err(Untold::Slow) => ("starts slowly", Untold::Slow.to_string()),
                Err(Untold::Fails(why)) => ("does not start", why.clone()),
            };
            let command = agents::command_line(&tried.command, &[]);
            vec![tried.name.clone(), state.to_owned(), command, version]
        })
        .collect();
    ui.table(&["NAME", "STATE", "PROGRAM", ""], &rows);
}
