//! The newer storage: a database with a row for each session, message and part.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::session::Session;
use crate::importer::{Database, ReadError, Take};

/// Reads all sessions, oldest first: forks come after their origins. With `wanted`, reads this one
/// only.
pub(super) fn read(
    path: &Path,
    wanted: Option<&str>,
    take: &mut Take<'_>,
) -> Result<(), ReadError> {
    let database = Database::open(path)?;
    let ids = database.read(|connection| {
        let words = "SELECT id FROM session WHERE ?1 IS NULL OR id = ?1 ORDER BY time_created, id";
        let mut rows = connection.prepare(words)?;
        let ids = rows.query_map([wanted], |row| row.get::<_, String>(0))?;
        ids.collect::<rusqlite::Result<Vec<String>>>()
    })?;
    let mut failures = Vec::new();
    let mut unsupported = 0;
    for id in ids {
        // One damaged session must not prevent the import of the others.
        let (session, newer) = match database.read(|connection| session(connection, &id)) {
            Ok(read) => read,
            Err(error) => {
                failures.push(format!("session {id}: {error}"));
                continue;
            }
        };
        unsupported += newer;
        if let Some(session) = session.finish()
            && take(session) == ControlFlow::Break(())
        {
            return Ok(());
        }
    }
    if unsupported > 0 {
        failures.push(format!(
            "messages in a form that is not supported yet ({unsupported}): save their sessions with `opencode export`"
        ));
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(ReadError::Invalid(failures.join("; "))),
    }
}

/// Returns a session, and the number of its messages that cannot be read.
fn session(connection: &Connection, id: &str) -> rusqlite::Result<(Session, i64)> {
    let words =
        "SELECT parent_id, directory, title, version, time_created FROM session WHERE id = ?1";
    let info = connection.query_row(words, [id], |row| {
        Ok(json!({
            "id": id,
            "parentID": row.get::<_, Option<String>>(0)?,
            "directory": row.get::<_, Option<String>>(1)?,
            "title": row.get::<_, Option<String>>(2)?,
            "version": row.get::<_, Option<String>>(3)?,
            "time": { "created": row.get::<_, Option<i64>>(4)? },
        }))
    })?;
    let mut session = Session::new(&info);
    let mut parts = parts(connection, id, &mut session)?;
    let words = "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id";
    let mut rows = connection.prepare(words)?;
    let mut rows = rows.query([id])?;
    let mut is_empty = true;
    while let Some(row) = rows.next()? {
        is_empty = false;
        let message: String = row.get(0)?;
        let own = parts.remove(&message).unwrap_or_default();
        match data(&row.get::<_, String>(1)?) {
            Some(message) => session.message(&message, &own),
            None => session.skip("damaged messages"),
        }
    }
    let newer = match is_empty {
        true => newer_messages(connection, id),
        false => 0,
    };
    Ok((session, newer))
}

/// Returns the parts of a session's messages, by message.
fn parts(
    connection: &Connection,
    id: &str,
    session: &mut Session,
) -> rusqlite::Result<HashMap<String, Vec<Value>>> {
    let words = "SELECT message_id, data FROM part WHERE session_id = ?1 ORDER BY id";
    let mut rows = connection.prepare(words)?;
    let mut rows = rows.query([id])?;
    let mut parts: HashMap<String, Vec<Value>> = HashMap::new();
    while let Some(row) = rows.next()? {
        match data(&row.get::<_, String>(1)?) {
            Some(part) => parts.entry(row.get(0)?).or_default().push(part),
            None => session.skip("damaged parts"),
        }
    }
    Ok(parts)
}

fn data(text: &str) -> Option<Value> {
    let data: Value = serde_json::from_str(text).ok()?;
    data.is_object().then_some(data)
}

/// Counts messages in a form that newer versions try out.
fn newer_messages(connection: &Connection, id: &str) -> i64 {
    let words = "SELECT count(*) FROM session_message WHERE session_id = ?1";
    let count = connection.query_row(words, [id], |row| row.get(0));
    // Most versions lack the table.
    count.unwrap_or_default()
}
