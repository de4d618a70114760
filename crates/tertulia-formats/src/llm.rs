//! Reads the logs of LLM, the command-line tool: a SQLite database. Older versions record responses
//! with their prompts, newer ones a tree of messages; a conversation may have both.

mod responses;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::importer::{
    Database, Importer, Input, ReadError, Row, SessionBuilder, Take, count_at, is_database_with,
    utc_time,
};
use responses::Responses;
use tertulia_core::entry::Usage;
use tertulia_core::foreign::Foreign;
use threads::Threads;

/// Name of the program in `import --from`.
const PROGRAM: &str = "llm";
/// Name of the agent that answers.
const AGENT: &str = "llm";
/// Name of the database.
const DATABASE: &str = "logs.db";
/// Columns by which the database of each generation is recognised.
const GENERATIONS: [(&str, &str); 2] = [("responses", "conversation_id"), ("turns", "thread_id")];

/// Importer of LLM's conversations.
#[derive(Debug)]
pub struct Llm;

impl Importer for Llm {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn is_candidate(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == DATABASE)
    }

    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool {
        let is_one = |columns| is_database_with(path, beginning, DATABASE, &[columns]);
        GENERATIONS.into_iter().any(is_one)
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let database = Database::of(input)?;
        let logs = Logs {
            responses: Responses::of(&database)?,
            threads: Threads::of(&database)?,
        };
        let mut fault = Ok(());
        for id in logs.conversations()? {
            match logs.session(&id) {
                Ok(session) if session.said.is_empty() => {}
                Ok(session) => {
                    if take(session) == ControlFlow::Break(()) {
                        return Ok(());
                    }
                }
                Err(error) => fault = Err(error),
            }
        }
        fault
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        const FOLDER: &str = "io.datasette.llm";
        let folders = match (env("LLM_USER_PATH"), env("XDG_CONFIG_HOME")) {
            (Some(folder), _) => vec![PathBuf::from(folder)],
            (None, Some(config)) => vec![PathBuf::from(config).join(FOLDER)],
            (None, None) => vec![
                home.join(".config").join(FOLDER),
                home.join("Library/Application Support").join(FOLDER),
            ],
        };
        folders.iter().map(|folder| folder.join(DATABASE)).collect()
    }
}

/// Both generations of tables.
struct Logs<'a> {
    responses: Option<Responses<'a>>,
    threads: Option<Threads<'a>>,
}

impl Logs<'_> {
    /// Returns the ids of all conversations. They sort by time, so that a fork comes after its
    /// origin.
    fn conversations(&self) -> Result<BTreeSet<String>, ReadError> {
        let mut ids = BTreeSet::new();
        if let Some(responses) = &self.responses {
            ids.extend(responses.conversations());
        }
        if let Some(threads) = &self.threads {
            ids.extend(threads.all()?);
        }
        Ok(ids)
    }

    fn session(&self, id: &str) -> Result<Foreign, ReadError> {
        let mut builder = SessionBuilder::new(PROGRAM, AGENT);
        let (mut title, mut fork) = (None, None);
        if let Some(responses) = &self.responses {
            title = responses.read(id, &mut builder)?;
        }
        if let Some(threads) = &self.threads {
            let thread = threads.read(id, &mut builder)?;
            title = thread.title.or(title);
            fork = thread.fork;
        }
        let mut session = builder.finish(id, None);
        session.title = title;
        if let Some(fork) = fork {
            fork.describe(&mut session);
        }
        Ok(session)
    }
}

/// One call of a model, as both generations record it.
#[derive(Debug)]
struct Call {
    id: String,
    model: Option<String>,
    usage: Option<Usage>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
}

impl Call {
    fn of(row: &Row<'_>) -> Call {
        let started = row.text("datetime_utc").and_then(|time| utc_time(&time));
        let duration = SignedDuration::from_millis(row.number("duration_ms").unwrap_or_default());
        Call {
            id: row.text("id").unwrap_or_default(),
            model: row.text("resolved_model").or_else(|| row.text("model")),
            usage: usage(row),
            started,
            ended: started.and_then(|started| started.checked_add(duration).ok()),
        }
    }
}

/// Returns the usage of a call. Details are as the provider names them.
fn usage(row: &Row<'_>) -> Option<Usage> {
    let (input, output) = (row.number("input_tokens"), row.number("output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let details = row.text("token_details").unwrap_or_default();
    let details: Value = serde_json::from_str(&details).unwrap_or_default();
    // Anthropic counts the cache apart from the input, OpenAI as part of it.
    let (read, written) = (
        count_at(&details, "/cache_read_input_tokens"),
        count_at(&details, "/cache_creation_input_tokens"),
    );
    let included = count_at(&details, "/prompt_tokens_details/cached_tokens")
        .max(count_at(&details, "/input_tokens_details/cached_tokens"));
    let input = row.count("input_tokens");
    Some(Usage {
        input: input.saturating_add(read).saturating_add(written),
        output: row.count("output_tokens"),
        cache_read: read.saturating_add(included),
        cache_written: written,
        estimated: false,
    })
}
