//! Implements `team list`, `team check` and `team init`, which work on team files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use tertulia_core::team::{EXAMPLE, Member, MemberKind, TeamFile};

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::Settings;
use crate::ui::Ui;
use crate::{agents, teams};

/// Column headings of the team table.
pub const HEADINGS: &[&str] = &["NAME", "MEMBERS", "STATE", "FILE"];
/// Message shown if there are no teams.
pub const NONE: &str = "there are no teams here; `tertulia team init` writes an example";

/// A team file that can be used here by name.
pub struct Known {
    pub name: String,
    pub file: String,
    pub members: Vec<String>,
    /// Why the file is invalid.
    pub reason: Option<String>,
}

impl Known {
    fn row(self) -> Vec<String> {
        let state = self.reason.unwrap_or_else(|| "valid".to_owned());
        vec![self.name, self.members.join(", "), state, self.file]
    }
}

/// Returns the teams available here.
pub fn known(settings: &Settings) -> CommandResult<Vec<Known>> {
    let read = |file: PathBuf| {
        let shown = file.display().to_string();
        let stem = file.file_stem().unwrap_or_default();
        let (members, reason) = match teams::read(&settings.cwd, &shown) {
            Ok((_, team)) => (member_names(&team), None),
            Err(error) => (Vec::new(), Some(first_line(&error.to_string()))),
        };
        Known {
            name: stem.to_string_lossy().into_owned(),
            file: shown,
            members,
            reason,
        }
    };
    Ok(teams::all(&settings.cwd)?.into_iter().map(read).collect())
}

/// Returns the teams available here as table rows for [`HEADINGS`].
pub fn rows(settings: &Settings) -> CommandResult<Vec<Vec<String>>> {
    Ok(known(settings)?.into_iter().map(Known::row).collect())
}

pub fn list(settings: &Settings, ui: &mut Ui) -> CommandResult<ExitCode> {
    let known = known(settings)?;
    if let Some(others) = teams::passed_over(&settings.cwd) {
        ui.note(&others);
    }
    if ui.json {
        let objects: Vec<Value> = known
            .iter()
            .map(|team| {
                json!({
                    "name": team.name,
                    "file": team.file,
                    "members": team.members,
                    "valid": team.reason.is_none(),
                    "reason": team.reason,
                })
            })
            .collect();
        ui.document(&json!({ "teams": objects }));
    } else if known.is_empty() {
        ui.note(NONE);
    } else {
        let rows: Vec<Vec<String>> = known.into_iter().map(Known::row).collect();
        ui.table(HEADINGS, &rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn member_names(team: &TeamFile) -> Vec<String> {
    team.members
        .iter()
        .map(|member| member.name.clone())
        .collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

pub fn check(settings: &Settings, config: &str, ui: &mut Ui) -> CommandResult<ExitCode> {
    let (file, team) = teams::read(&settings.cwd, config)?;
    let registry = settings.registry.read()?;
    let folder = file.parent().unwrap_or(&settings.cwd);
    let agents = agents::for_team(settings, &registry, &team, folder)?;
    for warning in &agents.warnings {
        ui.warn(warning);
    }
    let reached = |member: &Member| {
        let agent = agents
            .members
            .iter()
            .find(|agent| agent.member == member.name);
        match agent {
            None => String::new(),
            Some(agent) if agent.agent.is_err() => "unknown".to_owned(),
            Some(agent) => agent.kind.clone(),
        }
    };
    if ui.json {
        ui.document(&json!({
            "name": team.name,
            "file": file.display().to_string(),
            "members": member_names(&team),
            "valid": true,
            "reason": Value::Null,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = team
        .members
        .iter()
        .map(|member| {
            let kind = match member.kind {
                MemberKind::Ai => "agent",
                MemberKind::Human => "person",
            };
            let role = member.shown_role().to_owned();
            let agent = member.agent_type.clone().unwrap_or_default();
            let name = member.name.clone();
            vec![name, kind.to_owned(), role, agent, reached(member)]
        })
        .collect();
    ui.table(&["MEMBER", "KIND", "ROLE", "AGENT", "TYPE"], &rows);
    ui.note(&format!("{} is a valid team file", file.display()));
    Ok(ExitCode::SUCCESS)
}

pub fn init(cwd: &Path, file: Option<&Path>, ui: &mut Ui) -> CommandResult<ExitCode> {
    let file = match file {
        Some(file) => cwd.join(file),
        None => cwd.join(teams::HOME).join("demo.json"),
    };
    let failed = |error: std::io::Error| {
        CommandError::new(
            ErrorKind::Failed,
            format!("{} cannot be written", file.display()),
        )
        .because(error)
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let made = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file);
    match made.and_then(|mut made| std::io::Write::write_all(&mut made, EXAMPLE.as_bytes())) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let words = format!("{} is there already and stays as it is", file.display());
            return Err(CommandError::new(ErrorKind::Conflict, words)
                .hint("name another file: tertulia team init FILE"));
        }
        Err(error) => return Err(failed(error)),
    }
    if ui.json {
        ui.document(&json!({ "file": file.display().to_string() }));
    } else {
        ui.line(&file.display().to_string());
        ui.note(&format!(
            "three demo agents and you: tertulia team {} \"plan a bird table\"",
            name_of(&file)
        ));
        ui.note("edit it as you like; `tertulia team check` finds errors in it");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the shortest argument that selects the file: its stem in the teams folder, else its
/// path.
fn name_of(file: &Path) -> String {
    let known = file
        .parent()
        .is_some_and(|folder| folder.ends_with(teams::HOME));
    match file.file_stem() {
        Some(stem) if known => stem.to_string_lossy().into_owned(),
        _ => file.display().to_string(),
    }
}
