//! Words of the user that are not in the log of a session yet. Their table is made when it is first
//! needed: earlier versions of the program leave it alone.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::engine::SqliteEngine;
use crate::{StoreResult, Unsent};
use tertulia_core::id::SessionId;
use uuid::Uuid;

/// The table.
pub(super) const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS unsent(id BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID";

impl SqliteEngine {
    pub(super) fn keep_unsent_words(&mut self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        let what = "cannot keep unsent words";
        if unsent.is_empty() && !is_there(&self.connection).map_err(self.say().of(what))? {
            return Ok(());
        }
        let body = unsent.encode()?;
        self.write(|transaction, say| {
            let write = || -> rusqlite::Result<usize> {
                if unsent.is_empty() {
                    return remove(transaction, id);
                }
                transaction.execute(TABLE, [])?;
                let sql = "INSERT OR REPLACE INTO unsent VALUES(?1, ?2)";
                let mut insert = transaction.prepare_cached(sql)?;
                insert.execute(params![id.uuid().as_bytes(), body])
            };
            write().map(drop).map_err(say.of(what))
        })
    }

    pub(super) fn unsent_words(
        &self,
        id: Option<SessionId>,
    ) -> StoreResult<Vec<(SessionId, Unsent)>> {
        let rows = rows(&self.connection, id);
        let rows = rows.map_err(self.say().of("cannot read unsent words"))?;
        rows.into_iter()
            .map(|(id, body)| Ok((id, Unsent::decode(id, &body)?)))
            .collect()
    }
}

/// Reads the words of a session, or of all, as they are at rest.
fn rows(
    connection: &Connection,
    id: Option<SessionId>,
) -> rusqlite::Result<Vec<(SessionId, Vec<u8>)>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let sql = "SELECT id, body FROM unsent WHERE ?1 IS NULL OR id = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let id = id.map(|id| *id.uuid().as_bytes());
    let rows = select.query_map([id], |row| {
        let id: [u8; 16] = row.get(0)?;
        Ok((SessionId::new(Uuid::from_bytes(id)), row.get(1)?))
    })?;
    rows.collect()
}

/// Copies the words of a damaged database to the one that replaces it, as far as they can be read.
pub(super) fn carry_over(damaged: &Path, fresh: &mut SqliteEngine) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = Connection::open_with_flags(damaged, flags).and_then(|damaged| rows(&damaged, None));
    for (id, body) in read.unwrap_or_default() {
        if let Ok(unsent) = Unsent::decode(id, &body) {
            // The damaged database is kept: what cannot be written here is still there.
            let _ = fresh.keep_unsent_words(id, &unsent);
        }
    }
}

/// Removes the words of a session. Returns the number of removed rows.
pub(super) fn remove(transaction: &Connection, id: SessionId) -> rusqlite::Result<usize> {
    match is_there(transaction)? {
        true => transaction
            .prepare_cached("DELETE FROM unsent WHERE id = ?1")?
            .execute([id.uuid().as_bytes()]),
        false => Ok(0),
    }
}

/// Returns true if the table has been made.
pub(super) fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'unsent')";
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}
