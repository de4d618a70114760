//! Imports sessions of other programs: reads a file and describes the outcome.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use tertulia_core::foreign::Foreign;
use tertulia_formats::claude_master::Kept;
use tertulia_formats::openagent_terminal::SessionFile;
use tertulia_store::Taken;

use super::kind::SourceKind;
use super::outcome::{Outcome, words};
use super::sources::Source;
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::project::{Folders, Project};

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
    pub fn read(kind: SourceKind, source: &Source, content: &[u8]) -> CommandResult<Conversation> {
        match kind {
            SourceKind::OpenagentTerminal => session_file(content),
            _ => instructor_and_worker(content),
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
        Outcome::of(&source.path, adopted, words(adopted, dry_run, &summary)).with_report(
            taken,
            &self.talk.source,
            &self.kept,
            &self.talk.changes.changed(),
            &self.talk.changes.lost(),
        )
    }
}

fn instructor_and_worker(content: &[u8]) -> Result<Conversation, String> {
    let kept = Kept::read(content).map_err(|error| error.to_string())?;
    let talk = in_its_project(kept.talk());
    Ok(Conversation {
        summary: format!(", at round {}, {}", kept.round, kept.remaining),
        kept: json!({ "messages": talk.said.len(), "round": kept.round }),
        talk,
    })
}

fn session_file(content: &[u8]) -> Result<Conversation, String> {
    let file = SessionFile::read(content).map_err(|error| error.to_string())?;
    let talk = in_its_project(file.talk().map_err(|error| error.to_string())?);
    Ok(Conversation {
        summary: String::new(),
        kept: json!({ "messages": talk.said.len() }),
        talk,
    })
}

fn in_its_project(talk: Foreign) -> Foreign {
    RecordedProjects::default().assign(talk)
}

/// Finds the projects of recorded working directories.
#[derive(Default)]
pub struct RecordedProjects(HashMap<String, String>);

impl RecordedProjects {
    /// Sets the project from the working directory that the session recorded.
    pub fn assign(&mut self, mut talk: Foreign) -> Foreign {
        talk.source.project = talk.source.cwd.as_deref().map(|folder| self.of(folder));
        talk
    }

    fn of(&mut self, folder: &str) -> String {
        if let Some(project) = self.0.get(folder) {
            return project.clone();
        }
        let home = env::path("HOME");
        let project = Project::of(Path::new(folder), home.as_deref(), &Folders::default()).id;
        self.0.insert(folder.to_owned(), project.clone());
        project
    }
}
