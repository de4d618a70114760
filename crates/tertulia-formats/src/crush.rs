//! Reads the sessions of Crush: a SQLite database in each project, and a list of the projects.
//! Sessions of subagents name the session that started them.

mod content;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::importer::{
    Database, Importer, Input, ReadError, Row, Take, attach_last, damaged_rows, is_database,
    is_database_with, text_at, unix_time,
};
use content::{Messages, Record};
use tertulia_core::entry::{ImportedParent, ImportedRelation, Usage};
use tertulia_core::foreign::Foreign;

/// Name of the program in `import --from`.
const PROGRAM: &str = "crush";
/// Name of the agent that answers.
const AGENT: &str = "crush";
/// Name of the database in each project.
const DATABASE: &str = "crush.db";
/// Name of the folder of the database, in the folder of the project.
const FOLDER: &str = ".crush";
/// Name of the list of projects.
const PROJECTS: &str = "projects.json";
/// Maximum size of the list of projects.
const PROJECTS_LIMIT: u64 = 10_000_000;
/// Columns by which the database is recognised.
const COLUMNS: &[(&str, &str)] = &[("sessions", "parent_session_id"), ("messages", "parts")];

/// Importer of Crush's sessions.
#[derive(Debug)]
pub struct Crush;

impl Importer for Crush {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn is_candidate(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == DATABASE)
    }

    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool {
        is_database_with(path, beginning, DATABASE, COLUMNS) || is_list(path, beginning)
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let beginning = input.beginning()?;
        if is_list(input.path, &beginning) && !is_database(&beginning) {
            return read_listed(input, take);
        }
        let folder = std::path::absolute(input.path)?;
        let folder = folder.parent().filter(|folder| folder.ends_with(FOLDER));
        let project = folder.and_then(Path::parent);
        let _ = read_database(&Database::of(input)?, project, take)?;
        Ok(())
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let folder = match (env("CRUSH_GLOBAL_DATA"), env("XDG_DATA_HOME")) {
            (Some(folder), _) => PathBuf::from(folder),
            (None, Some(data)) => PathBuf::from(data).join("crush"),
            (None, None) => home.join(".local/share/crush"),
        };
        vec![folder.join(PROJECTS)]
    }

    fn project_places(&self, folder: &Path) -> Vec<PathBuf> {
        vec![folder.join(FOLDER)]
    }
}

/// Returns true if a file is the list of projects.
fn is_list(path: &Path, beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning);
    let is_named = path.file_name().is_some_and(|name| name == PROJECTS);
    is_named && text.contains("\"projects\"") && text.contains("\"data_dir\"")
}

/// Reads the databases of all listed projects. A damaged one does not prevent the others.
fn read_listed(input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
    let list: Value = serde_json::from_slice(&input.read(PROJECTS_LIMIT)?)
        .map_err(|error| ReadError::Invalid(format!("it is not JSON: {error}")))?;
    let projects = list.get("projects").and_then(Value::as_array);
    let mut fault = Ok(());
    for project in projects.into_iter().flatten() {
        let Some(folder) = text_at(project, "/path").map(Path::new) else {
            continue;
        };
        let data = text_at(project, "/data_dir").unwrap_or(FOLDER);
        let path = folder.join(data).join(DATABASE);
        let database = match Database::open(&path) {
            // The project was removed.
            Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => continue,
            database => database,
        };
        match database.and_then(|database| read_database(&database, Some(folder), take)) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(()),
            Err(error) => {
                let words = format!("{}: {error}", path.display());
                fault = Err(ReadError::Invalid(words));
            }
        }
    }
    fault
}

/// Reads all sessions of a database. One that is damaged does not prevent the others.
fn read_database(
    database: &Database,
    project: Option<&Path>,
    take: &mut Take<'_>,
) -> Result<ControlFlow<()>, ReadError> {
    let has_files = database.has("files", "session_id")?;
    let mut fault = Ok(ControlFlow::Continue(()));
    for id in database.texts("SELECT id FROM sessions ORDER BY created_at, rowid", &[])? {
        match session(database, &id, has_files) {
            Ok(session) if session.said.is_empty() => {}
            Ok(mut session) => {
                session.source.cwd = project.and_then(Path::to_str).map(str::to_owned);
                if take(session) == ControlFlow::Break(()) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Err(error) => fault = Err(error),
        }
    }
    fault
}

fn session(database: &Database, id: &str, has_files: bool) -> Result<Foreign, ReadError> {
    let mut about = About::default();
    database.rows("SELECT * FROM sessions WHERE id = ?1", &[id], &mut |row| {
        about = About::of(row);
    })?;
    let mut messages = Messages::default();
    let mut damaged = Vec::new();
    database.rows(
        "SELECT rowid AS row, * FROM messages WHERE session_id = ?1 ORDER BY created_at, rowid",
        &[id],
        &mut |row| match record(row) {
            Some(record) => messages.read(record),
            None => damaged.extend(row.text("row")),
        },
    )?;
    if has_files {
        let sql = "SELECT COUNT(*) AS count FROM files WHERE session_id = ?1";
        database.rows(sql, &[id], &mut |row| messages.files(row.count("count")))?;
    }
    let mut session = messages.finish(id, about.created_at);
    session.title = about.title;
    session.source.parent = about.parent.map(|original| ImportedParent {
        original,
        relation: ImportedRelation::Subagent,
    });
    session
        .changes
        .lost
        .extend(damaged_rows("messages", &damaged));
    attach_last(&mut session, about.last);
    Ok(session)
}

fn record(row: &Row<'_>) -> Option<Record> {
    let Ok(Value::Array(parts)) = serde_json::from_str(&row.text("parts")?) else {
        return None;
    };
    Some(Record {
        id: row.text("id")?,
        role: row.text("role").unwrap_or_default(),
        model: row.text("model"),
        at: row.number("created_at").and_then(unix_time),
        is_summary: row.number("is_summary_message") == Some(1),
        parts,
    })
}

/// What the program records about a session besides messages.
#[derive(Debug, Default)]
struct About {
    title: Option<String>,
    parent: Option<String>,
    created_at: Option<Timestamp>,
    /// Usage of the last request.
    last: Usage,
}

impl About {
    fn of(row: &Row<'_>) -> About {
        About {
            title: row.text("title"),
            parent: row.text("parent_session_id"),
            created_at: row.number("created_at").and_then(unix_time),
            last: Usage::told(row.count("prompt_tokens"), row.count("completion_tokens")),
        }
    }
}
