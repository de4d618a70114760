//! Implements `agents register`, `list`, `info` and `delete`, which work on the agent registry.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::team::{Registered, Registry};

use crate::agents::KnownProgram;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::Settings;
use crate::ui::Ui;
use crate::{agents, env, open};

/// Maximum length of an agent name, in characters.
const LONGEST_NAME: usize = 100;
/// Maximum number of similar names suggested for an unknown one.
const MOST_NEAR: usize = 3;

/// Register a program as an agent, for teams and for --agent
///
/// Arguments that this program gives an agent itself need not be given, and those that switch off the
/// question before a change are left out: that is what --approve is for. A known program without
/// arguments gets those with which it is an agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia agents register --auto                 all that `agents scan` finds\n  \
    tertulia agents register --auto claude codex    only these\n  \
    tertulia agents register reviewer --command ~/bin/claude --arg=--model --arg=opus\n  \
    tertulia agents register upper --command tr --arg a-z --arg A-Z --display-name \"Loud\"")]
pub struct RegisterArgs {
    /// Name of the agent
    #[arg(value_name = "NAME", required_unless_present = "auto")]
    pub names: Vec<String>,
    /// Register what `agents scan` finds
    #[arg(short, long, conflicts_with_all = ["command", "arguments", "display_name", "use_pty"])]
    pub auto: bool,
    /// The program: a path, or a name on the search path
    #[arg(long, value_name = "PATH", required_unless_present = "auto")]
    command: Option<String>,
    /// Argument to pass; may be repeated
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// The name that people read
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// Record that it needs a terminal (usePty); tertulia itself runs it without one
    #[arg(long)]
    use_pty: bool,
}

/// Remove an agent from the registry; its program is not touched
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia agents delete upper      asks first on a terminal\n  \
    tertulia agents delete -y upper")]
pub struct DeleteArgs {
    /// The agent
    name: String,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

pub fn register(args: &RegisterArgs, settings: &Settings, ui: &mut Ui) -> CommandResult<ExitCode> {
    let [name] = args.names.as_slice() else {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "one program is registered under one name",
        )
        .hint("several at once: `tertulia agents register --auto NAME…`"));
    };
    check_name(name)?;
    let command = found(args.command.as_deref().unwrap_or_default(), settings)?;
    let known = KnownProgram::of(&command).filter(|_| args.arguments.is_empty());
    let agent = Registered {
        display_name: args.display_name.clone().unwrap_or_else(|| name.clone()),
        command,
        args: known.map_or_else(|| args.arguments.clone(), KnownProgram::arguments),
        use_pty: args.use_pty,
        version: None,
        installed_at: Some(open::clock().now()),
        last_verified: None,
    };
    let before = announce_takeover(settings, ui, |registry| {
        Ok(registry.agents.insert(name.clone(), agent.clone()))
    })?;
    for warning in agents::started(settings, name, &agents::launch(&agent)).warnings {
        ui.warn(&warning);
    }
    if agents::is_taken(name) {
        ui.warn(&format!(
            "'{name}' is also the name of an API: in teams it is this program from now on, in a chat it stays the API"
        ));
    }
    if ui.json {
        ui.document(&json!({ "agents": [object(name, &agent)] }));
        return Ok(ExitCode::SUCCESS);
    }
    let line = agents::command_line(&agent.command, &agent.args);
    match before.filter(|before| before.command != agent.command || before.args != agent.args) {
        None => ui.note(&format!("'{name}' is registered: {line}")),
        Some(before) => ui.note(&format!(
            "updated '{name}': {line} (was: {})",
            agents::command_line(&before.command, &before.args)
        )),
    }
    ui.note(&format!(
        "`tertulia agents verify {name}` looks whether it starts"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Checks that a name can be typed and displayed and is not the built-in demo agent's.
fn check_name(name: &str) -> CommandResult<()> {
    let wrong = |what: &str| {
        CommandError::new(
            ErrorKind::Usage,
            format!("'{name}' is no name for an agent: {what}"),
        )
    };
    if name.trim().is_empty() || name.trim() != name {
        return Err(wrong("it needs letters, and no spaces around them"));
    }
    if name.starts_with('-') || name.chars().any(char::is_control) {
        return Err(wrong("it could not be typed"));
    }
    if name.chars().count() > LONGEST_NAME {
        return Err(wrong(&format!(
            "it has more than {LONGEST_NAME} characters"
        )));
    }
    if name == agents::DEMO {
        return Err(wrong("the built-in one has it, and needs no program"));
    }
    Ok(())
}

/// Resolves a program to an absolute path, so that it works from every folder.
fn found(command: &str, settings: &Settings) -> CommandResult<String> {
    let path = match command.contains('/') {
        true => settings.cwd.join(command),
        false => Path::new(command).to_owned(),
    };
    let found = env::program(&path).filter(|_| !command.is_empty());
    let found = found.ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("there is no program '{command}'"))
            .hint("give its path, or its name on the search path; `tertulia agents scan` looks for known programs")
    })?;
    let found = settings.cwd.join(found);
    let text = found.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let words = format!(
            "the path {} is not UTF-8, and cannot be kept",
            found.display()
        );
        CommandError::new(ErrorKind::Usage, words)
    })
}

/// Changes the registry, and tells the user if this copied agent-chatter's registry into tertulia's
/// own.
pub fn announce_takeover<T>(
    settings: &Settings,
    ui: &mut Ui,
    change: impl FnOnce(&mut Registry) -> CommandResult<T>,
) -> CommandResult<T> {
    let place = &settings.registry;
    let before = place.file().to_owned();
    let result = place.change(change)?;
    if before != place.own() && place.file() == place.own() {
        ui.note(&format!(
            "what is registered in {} was taken over into {}; the former stays as it is and is no longer read",
            before.display(),
            place.own().display()
        ));
    }
    Ok(result)
}

pub fn list(settings: &Settings, ui: &mut Ui) -> CommandResult<ExitCode> {
    let registry = settings.registry.read()?;
    let file = settings.registry.file().display().to_string();
    if ui.json {
        let agents: Vec<Value> = registry
            .agents
            .iter()
            .map(|(name, agent)| object(name, agent))
            .collect();
        ui.document(&json!({ "file": file, "agents": agents }));
    } else if registry.agents.is_empty() {
        ui.note("no agents registered; `tertulia agents register --auto` registers the installed programs");
    } else {
        let rows: Vec<Vec<String>> = registry.agents.iter().map(row).collect();
        ui.table(&["NAME", "TYPE", "VERSION", "VERIFIED", "RUNS"], &rows);
        ui.note(&file);
    }
    Ok(ExitCode::SUCCESS)
}

fn row((name, agent): (&String, &Registered)) -> Vec<String> {
    let now = open::clock().now();
    vec![
        name.clone(),
        kind(name, agent).to_owned(),
        agent.version.clone().unwrap_or_default(),
        agent
            .last_verified
            .map_or_else(|| "never".to_owned(), |at| crate::moment::ago(at, now)),
        agents::command_line(&agent.command, &agent.args),
    ]
}

/// Returns the agent type: `acp`, a vendor's name or `command`.
fn kind(name: &str, agent: &Registered) -> &'static str {
    agents::kind_of(name, &agent.command, &agent.args)
}

pub fn info(name: &str, settings: &Settings, ui: &mut Ui) -> CommandResult<ExitCode> {
    let registry = settings.registry.read()?;
    let agent = of(&registry, name, settings)?;
    let started = agents::started(settings, name, &agents::launch(agent));
    let there = env::program(Path::new(&agent.command)).is_some();
    if ui.json {
        let mut object = object(name, agent);
        object["type"] = json!(kind(name, agent));
        object["found"] = json!(there);
        object["started_with"] = json!(started.described.args);
        ui.document(&object);
    } else {
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        let is_there = if there { "there" } else { "not found" };
        let lines = [
            ("name", name.to_owned()),
            ("shown as", agent.display_name.clone()),
            ("type", kind(name, agent).to_owned()),
            ("program", format!("{} ({is_there})", agent.command)),
            ("arguments", words(&agent.args)),
            ("started with", words(&started.described.args)),
            ("version", or_unknown(agent.version.clone())),
            (
                "registered",
                or_unknown(agent.installed_at.map(|at| at.to_string())),
            ),
            (
                "verified",
                agent
                    .last_verified
                    .map_or_else(|| "never".to_owned(), |at| at.to_string()),
            ),
        ];
        for (label, value) in lines {
            ui.line(format!("{label:<13} {}", crate::ui::harmless(&value)).trim_end());
        }
    }
    for warning in started.warnings {
        ui.warn(&warning);
    }
    Ok(ExitCode::SUCCESS)
}

fn words(args: &[String]) -> String {
    match args.split_first() {
        None => "none".to_owned(),
        Some((first, rest)) => agents::command_line(first, rest),
    }
}

pub fn delete(args: &DeleteArgs, settings: &Settings, ui: &mut Ui) -> CommandResult<ExitCode> {
    let name = &args.name;
    let registry = settings.registry.read()?;
    let agent = of(&registry, name, settings)?;
    if !args.yes {
        if !ui.is_interactive() {
            return Err(CommandError::new(
                ErrorKind::Usage,
                "not interactive: cannot ask whether to remove it from the registry",
            )
            .hint("add -y"));
        }
        let line = agents::command_line(&agent.command, &agent.args);
        if !ui.confirm(&format!("Take '{name}' ({line}) out of the registry?")) {
            ui.note("Nothing was changed.");
            return Ok(ExitCode::from(1));
        }
    }
    let gone = announce_takeover(settings, ui, |registry| {
        let gone = registry.agents.remove(name);
        gone.ok_or_else(|| unknown(registry, name, settings))
    })?;
    if ui.json {
        ui.document(&json!({ "deleted": object(name, &gone) }));
    } else {
        ui.note(&format!(
            "'{name}' is no longer registered; {} stays where it is",
            gone.command
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the registered agent `name`, or an error that suggests similar names.
pub fn of<'a>(
    registry: &'a Registry,
    name: &str,
    settings: &Settings,
) -> CommandResult<&'a Registered> {
    let agent = registry.agents.get(name);
    agent.ok_or_else(|| unknown(registry, name, settings))
}

fn unknown(registry: &Registry, name: &str, settings: &Settings) -> CommandError {
    let error = CommandError::new(
        ErrorKind::NotFound,
        format!("there is no registered agent '{name}'"),
    );
    if agents::is_known(settings, name) {
        return error.hint(format!(
            "'{name}' needs no registration: `tertulia agents {name}` shows whether it is ready"
        ));
    }
    let mut near: Vec<(usize, &String)> = registry
        .agents
        .keys()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .collect();
    near.sort();
    let near: Vec<&str> = near
        .iter()
        .take(MOST_NEAR)
        .map(|(_, known)| known.as_str())
        .collect();
    if near.is_empty() {
        error.hint("no agents registered; `tertulia agents register --auto` registers the installed programs")
    } else {
        error.hint(format!("the nearest are: {}", near.join(", ")))
    }
}

/// Returns a registered agent as shown by `--json`.
pub fn object(name: &str, agent: &Registered) -> Value {
    json!({
        "name": name,
        "display_name": agent.display_name,
        "command": agent.command,
        "args": agent.args,
        "use_pty": agent.use_pty,
        "version": agent.version,
        "installed_at": agent.installed_at.map(|at| at.to_string()),
        "last_verified": agent.last_verified.map(|at| at.to_string()),
    })
}
