//! Imports sessions of other programs: reads a file and describes the outcome.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tertulia_core::foreign::Foreign;
use tertulia_formats::claude_master::Kept;
use tertulia_formats::openagent_terminal::SessionFile;
use tertulia_store::{Doing, Taken};

use super::kind::SourceKind;
use super::outcome::{self, Outcome, own_words};
use super::sources::Source;
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::project::{Folders, Project};
use crate::settings::StoreUrl;

/// A session of another program, with what the import keeps of it.
pub struct Conversation {
    pub talk: Foreign,
    /// Text for the report, appended to the number of messages.
    summary: String,
    /// The same for `--json`.
    kept: Value,
}

impl Conversation {
    /// Reads a file of claude-master or openagent-terminal.
    pub fn read(
        kind: SourceKind,
        source: &Source,
        content: &[u8],
        projects: &mut RecordedProjects,
    ) -> CommandResult<Conversation> {
        match kind {
            SourceKind::OpenagentTerminal => session_file(content, projects),
            _ => instructor_and_worker(content, projects),
        }
        .map_err(|reason| {
            let message = format!("cannot import {}: {reason}", source.path.display());
            CommandError::new(ErrorKind::Invalid, message).hint("nothing of it was imported")
        })
    }

    /// Builds the report for this file.
    pub fn outcome(&self, source: &Source, taken: &Taken, dry_run: bool) -> Outcome {
        let count = self.talk.said.len();
        let plural = if count == 1 { "" } else { "s" };
        let summary = format!("{count} message{plural}{}", self.summary);
        let adopted = taken.adopted;
        let words = own_words(&source.path, taken, dry_run);
        let words = words.unwrap_or_else(|| outcome::words(adopted, dry_run, &summary));
        let outcome = Outcome::of(&source.path, adopted, words).waiting(taken);
        outcome.with_report(
            taken,
            &self.talk.source,
            &self.kept,
            &self.talk.changes.changed(),
            &self.talk.changes.lost(),
        )
    }
}

fn instructor_and_worker(
    content: &[u8],
    projects: &mut RecordedProjects,
) -> Result<Conversation, String> {
    let kept = Kept::read(content).map_err(|error| error.to_string())?;
    let talk = projects.assign(kept.talk());
    Ok(Conversation {
        summary: format!(", at round {}, {}", kept.round, kept.remaining),
        kept: json!({ "messages": talk.said.len(), "round": kept.round }),
        talk,
    })
}

fn session_file(content: &[u8], projects: &mut RecordedProjects) -> Result<Conversation, String> {
    let file = SessionFile::read(content).map_err(|error| error.to_string())?;
    let talk = projects.assign(file.talk().map_err(|error| error.to_string())?);
    Ok(Conversation {
        summary: String::new(),
        kept: json!({ "messages": talk.said.len() }),
        talk,
    })
}

/// Finds the projects of recorded working directories.
pub struct RecordedProjects {
    /// Folders that earlier runs have seen.
    known: Folders,
    home: Option<PathBuf>,
    /// File that lists known folders, if those of imported sessions are to be added.
    file: Option<PathBuf>,
    found: HashMap<String, RecordedProject>,
}

/// Project of a recorded working directory.
#[derive(Clone)]
struct RecordedProject {
    id: String,
    /// All of its identities.
    ids: Vec<String>,
}

impl RecordedProjects {
    /// Prepares to find projects. Unless `doing` is a preview, the folders that exist are recorded, so
    /// that the sessions are found when a folder is renamed or gets another remote.
    pub fn new(workspace: &Workspace, doing: Doing) -> RecordedProjects {
        let settings = &workspace.settings;
        let records = doing == Doing::Write && settings.store != StoreUrl::Memory;
        RecordedProjects {
            known: settings.folders.clone(),
            home: env::path("HOME"),
            file: records.then(|| settings.projects_file()),
            found: HashMap::new(),
        }
    }

    /// Sets the project from the working directory that the session recorded.
    pub fn assign(&mut self, mut talk: Foreign) -> Foreign {
        if let Some(folder) = &talk.source.cwd {
            let project = self.of(folder);
            talk.source.project = Some(project.id);
            talk.source.project_ids = project.ids;
        }
        talk
    }

    fn of(&mut self, folder: &str) -> RecordedProject {
        if let Some(project) = self.found.get(folder) {
            return project.clone();
        }
        let project = self.look_at(Path::new(folder));
        self.found.insert(folder.to_owned(), project.clone());
        project
    }

    fn look_at(&self, folder: &Path) -> RecordedProject {
        let home = self.home.as_deref();
        let project = Project::of(folder, home, &self.known);
        let is_there = folder.exists() || project.has_git();
        if let Some(record) = self.known.of_gone(folder, home).filter(|_| !is_there) {
            let id = record.id();
            let others = record.ids.iter().filter(|other| **other != id);
            let ids = std::iter::once(&id).chain(others).cloned().collect();
            return RecordedProject { id, ids };
        }
        if let Some(file) = self.file.as_deref().filter(|_| is_there) {
            // If it cannot be recorded, the next program that runs in the folder does it.
            let _ = self.known.write(file, &project.record());
        }
        RecordedProject {
            id: project.id.clone(),
            ids: project.identities(),
        }
    }
}
