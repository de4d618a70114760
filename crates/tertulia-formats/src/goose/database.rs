//! Reads the database of newer versions, session by session.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use super::content::{Messages, Record};
use super::{DATABASE, PROGRAM};
use crate::importer::{
    Database, Input, ReadError, Row, Take, attach_last, damaged_rows, is_database_with, text_at,
    unix_time, utc_time,
};
use tertulia_core::entry::{ImportedParent, ImportedRelation, SpeakerKind, Usage};
use tertulia_core::foreign::Foreign;

/// Columns by which the database is recognised.
const COLUMNS: &[(&str, &str)] = &[("sessions", "working_dir"), ("messages", "content_json")];

/// Returns true if a file is goose's database.
pub(super) fn is_one(path: &Path, beginning: &[u8]) -> bool {
    is_database_with(path, beginning, DATABASE, COLUMNS)
}

/// Reads all sessions. A session that is damaged does not prevent the others.
pub(super) fn read(input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
    let database = Database::of(input)?;
    let mut fault = Ok(());
    let ledger = match database.has("usage_ledger", "session_id")? {
        true => ledger(&database),
        false => Ok(HashMap::new()),
    };
    let mut ledger = ledger.unwrap_or_else(|error| {
        fault = Err(error);
        HashMap::new()
    });
    for id in database.texts("SELECT id FROM sessions ORDER BY rowid", &[])? {
        match session(&database, &id, ledger.remove(&id).unwrap_or_default()) {
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

fn session(database: &Database, id: &str, requests: Vec<Request>) -> Result<Foreign, ReadError> {
    let mut about = About::default();
    database.rows("SELECT * FROM sessions WHERE id = ?1", &[id], &mut |row| {
        about = About::of(row)
    })?;
    let mut messages = Messages::new(about.model.take());
    let mut damaged = Vec::new();
    database.rows(
        "SELECT rowid AS row, * FROM messages WHERE session_id = ?1 \
         ORDER BY created_timestamp, rowid",
        &[id],
        &mut |row| match record(row) {
            Some(record) => messages.read(record),
            None => damaged.extend(row.text("row")),
        },
    )?;
    let mut session = messages.finish(id, about.created_at);
    about.describe(&mut session);
    session
        .changes
        .lost
        .extend(damaged_rows("messages", &damaged));
    match requests.is_empty() {
        true => attach_last(&mut session, about.last),
        false => attach(&mut session, requests),
    }
    Ok(session)
}

fn record(row: &Row<'_>) -> Option<Record> {
    let content = row.text("content_json")?;
    let Ok(Value::Array(content)) = serde_json::from_str(&content) else {
        return None;
    };
    let metadata = row.text("metadata_json").unwrap_or_default();
    Some(Record {
        id: row.text("message_id"),
        role: row.text("role").unwrap_or_default(),
        created: row.number("created_timestamp").unwrap_or_default(),
        content,
        metadata: serde_json::from_str(&metadata).unwrap_or_default(),
    })
}

/// What the program records about a session besides messages.
#[derive(Debug, Default)]
struct About {
    title: Option<String>,
    cwd: Option<String>,
    created_at: Option<Timestamp>,
    model: Option<String>,
    parent: Option<String>,
    /// Usage of the last request.
    last: Usage,
}

impl About {
    fn of(row: &Row<'_>) -> About {
        let model: Option<Value> = row
            .text("model_config_json")
            .and_then(|json| serde_json::from_str(&json).ok());
        About {
            title: row.text("name").or_else(|| row.text("description")),
            cwd: row.text("working_dir"),
            created_at: row.text("created_at").and_then(|time| utc_time(&time)),
            model: model.and_then(|model| text_at(&model, "/model_name").map(str::to_owned)),
            parent: row.text("parent_session_id"),
            last: usage(row),
        }
    }

    fn describe(&mut self, session: &mut Foreign) {
        session.title = self.title.take();
        session.source.cwd = self.cwd.take();
        session.source.parent = self.parent.take().map(|original| ImportedParent {
            original,
            relation: ImportedRelation::Subagent,
        });
    }
}

/// Returns the figures of a row. Input includes those of the cache.
fn usage(row: &Row<'_>) -> Usage {
    Usage {
        input: row.count("input_tokens"),
        output: row.count("output_tokens"),
        cache_read: row.count("cache_read_tokens"),
        cache_written: row.count("cache_write_tokens"),
        estimated: false,
    }
}

/// One request to a model.
struct Request {
    at: Timestamp,
    usage: Usage,
    id: String,
    model: Option<String>,
}

/// Returns the requests of all sessions: the table need not have an index of them.
fn ledger(database: &Database) -> Result<HashMap<String, Vec<Request>>, ReadError> {
    let mut requests: HashMap<String, Vec<Request>> = HashMap::new();
    let sql = "SELECT rowid AS row, * FROM usage_ledger ORDER BY created_timestamp, rowid";
    database.rows(sql, &[], &mut |row| {
        let session = row.text("session_id").unwrap_or_default();
        let created = row.number("created_timestamp").unwrap_or_default();
        let number = row.number("row").unwrap_or_default();
        let request = Request {
            at: unix_time(created).unwrap_or(Timestamp::UNIX_EPOCH),
            usage: usage(row),
            id: format!("{PROGRAM}:{session}:{created}:{number}"),
            model: row.text("model"),
        };
        requests.entry(session).or_default().push(request);
    })?;
    Ok(requests)
}

/// Attaches each request to the answer nearest in time: the program does not record which one it
/// belongs to.
fn attach(session: &mut Foreign, requests: Vec<Request>) {
    let mut answers = session
        .said
        .iter_mut()
        .filter(|said| said.message.speaker.kind == SpeakerKind::Ai)
        .peekable();
    let mut without = 0;
    for request in requests {
        let Some(mut answer) = answers.next() else {
            without += 1;
            continue;
        };
        let distance = |at: Timestamp| at.duration_since(request.at).abs();
        while let Some(next) = answers.next_if(|next| distance(next.at) < distance(answer.at)) {
            answer = next;
        }
        answer.message.usage = Some(request.usage);
        answer.message.usage_id = Some(request.id);
        answer.message.model = request.model.or(answer.message.model.take());
    }
    drop(answers);
    if without > 0 {
        let words = format!("usage of requests without an answer ({without})");
        session.changes.lost.push(words);
    }
}
