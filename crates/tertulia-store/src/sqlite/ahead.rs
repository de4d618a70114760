//! Finds entries that derived data has seen and the database lacks: its WAL was deleted, or an older
//! copy took its place.

use std::collections::HashSet;

use rusqlite::{Connection, OpenFlags};

use super::engine::SqliteEngine;
use super::rows::{Say, find};
use super::search::index_is_ahead;
use crate::selection::id_from;
use crate::{StoreResult, index, ledger};
use tertulia_core::id::{Seq, SessionId};

impl SqliteEngine {
    /// Describes what the search index and the ledger have seen and the database lacks.
    pub(super) fn missing_entries(&mut self) -> StoreResult<Vec<String>> {
        let say = self.say();
        let ahead = match self.with_index() {
            Ok((connection, index, say)) => index_is_ahead(connection, index, &say)?,
            // An index that cannot be read has its own fault.
            Err(_) => None,
        };
        let mut lacking = Vec::new();
        for (id, seen) in self.seen_by_ledger() {
            let missing = missing_of(&self.connection, &say, id, seen)?;
            lacking.extend(missing.map(|missing| (id, missing)));
        }
        if !lacking.is_empty() {
            // What was purged meanwhile went from the ledger first.
            let seen = self.seen_by_ledger().into_iter().map(|(id, _)| id);
            let seen: HashSet<SessionId> = seen.collect();
            lacking.retain(|(id, _)| seen.contains(id));
        }
        let mut missing: Vec<String> = lacking.into_iter().map(|(_, missing)| missing).collect();
        if let Some(count) = ahead {
            let what = match count {
                1 => "1 entry that the database lacks".to_owned(),
                _ => format!("{count} entries that the database lacks"),
            };
            missing.push(format!(
                "the search index has seen {what}: the file ending in -wal was deleted, or an older copy of the database was put in its place"
            ));
        }
        Ok(missing)
    }

    /// Discards the ledger, which is derived anew when it is needed.
    pub(super) fn discard_ledger(&self) {
        if let Some(path) = self.location.beside(ledger::NAME) {
            index::discard(&path);
        }
    }

    /// Returns how far the ledger has followed each session; nothing if it cannot be read, or if another
    /// version wrote it, which may know sessions that were purged.
    fn seen_by_ledger(&self) -> Vec<(SessionId, Seq)> {
        let Some(path) = self
            .location
            .beside(ledger::NAME)
            .filter(|path| path.is_file())
        else {
            return Vec::new();
        };
        let read = || -> rusqlite::Result<Vec<(SessionId, Seq)>> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let opened = Connection::open_with_flags(path, flags)?;
            let version =
                opened.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))?;
            if version != ledger::VERSION {
                return Ok(Vec::new());
            }
            opened
                .prepare("SELECT id, seq FROM session")?
                .query_map([], |row| {
                    let seq = Seq(row.get::<_, i64>(1)?.cast_unsigned());
                    Ok((id_from(row.get(0)?), seq))
                })?
                .collect()
        };
        read().unwrap_or_default()
    }
}

/// Describes the entries of a session up to `seen` that the database lacks. One that is not there at
/// all is lost: a purge removes it from the ledger first.
fn missing_of(
    connection: &Connection,
    say: &Say,
    id: SessionId,
    seen: Seq,
) -> StoreResult<Option<String>> {
    let last = match find(connection, say, id) {
        Ok(Some(found)) => found.meta.head.seq,
        Ok(None) => Seq::START,
        // An unreadable session has its own fault.
        Err(error) if error.is_damage() => return Ok(None),
        Err(error) => return Err(error),
    };
    let first = last.next();
    Ok(match seen.0.saturating_sub(last.0) {
        0 => None,
        1 => Some(format!("session {id}: entry {seen} is missing")),
        _ => Some(format!("session {id}: entries {first}-{seen} are missing")),
    })
}
