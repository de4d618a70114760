//! The single row of the state: whether all sessions were counted once, how far a call with little time
//! got, and how often sessions were removed.

use rusqlite::Connection;

use super::Ledger;
use crate::StoreResult;
use tertulia_core::query::Cursor;

impl Ledger {
    /// Sets whether the ledger once held every session.
    pub(super) fn set_complete(&mut self, complete: bool) -> StoreResult<()> {
        let set = self.connection.execute(
            "UPDATE state SET complete = ?1 WHERE complete <> ?1",
            [complete],
        );
        set.map(drop).map_err(|error| self.trouble(error))
    }

    /// Returns the last session that a call with little time looked at, unless it was the last one.
    pub(super) fn reached(&self) -> StoreResult<Option<Cursor>> {
        let select = "SELECT reached FROM state";
        let reached: rusqlite::Result<Option<String>> =
            self.connection.query_row(select, [], |row| row.get(0));
        let reached = reached.map_err(|error| self.trouble(error))?;
        Ok(reached.and_then(|reached| reached.parse().ok()))
    }

    /// Sets the last session that a call with little time looked at.
    pub(super) fn set_reached(&mut self, reached: Option<&Cursor>) -> StoreResult<()> {
        let reached = reached.map(Cursor::to_string);
        let set = self.connection.execute(
            "UPDATE state SET reached = ?1 WHERE reached IS NOT ?1",
            [reached],
        );
        set.map(drop).map_err(|error| self.trouble(error))
    }

    /// Returns how often sessions were removed.
    pub(super) fn removals(&self) -> StoreResult<u64> {
        removals(&self.connection).map_err(|error| self.trouble(error))
    }
}

/// Returns how often sessions were removed.
pub(super) fn removals(connection: &Connection) -> rusqlite::Result<u64> {
    let removals =
        connection.query_row("SELECT removals FROM state", [], |row| row.get::<_, i64>(0));
    removals.map(i64::cast_unsigned)
}
