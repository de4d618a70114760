//! Numbers of logs in the index, for a backend whose logs have none.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

use super::Index;
use crate::StoreResult;
use crate::sqlite::trouble;

impl Index {
    /// Returns the numbers of logs; those that have none get the next ones, in the given order.
    pub(crate) fn numbers(&mut self, logs: &[Uuid]) -> StoreResult<HashMap<Uuid, u64>> {
        let path = self.path.clone();
        let mut read = || -> rusqlite::Result<HashMap<Uuid, u64>> {
            self.connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS numbered(no INTEGER PRIMARY KEY, log BLOB NOT NULL UNIQUE)",
            )?;
            let mut known: HashMap<Uuid, u64> = self
                .connection
                .prepare_cached("SELECT log, no FROM numbered")?
                .query_map([], |row| {
                    let log = Uuid::from_bytes(row.get(0)?);
                    Ok((log, row.get::<_, i64>(1)?.cast_unsigned()))
                })?
                .collect::<rusqlite::Result<_>>()?;
            let new: Vec<Uuid> = logs
                .iter()
                .filter(|log| !known.contains_key(log))
                .copied()
                .collect();
            if new.is_empty() {
                return Ok(known);
            }
            let transaction = self
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            for log in new {
                transaction
                    .prepare_cached("INSERT OR IGNORE INTO numbered(log) VALUES(?1)")?
                    .execute(params![log.as_bytes()])?;
                let no: Option<i64> = transaction
                    .prepare_cached("SELECT no FROM numbered WHERE log = ?1")?
                    .query_row([log.as_bytes()], |row| row.get(0))
                    .optional()?;
                known.extend(no.map(|no| (log, no.cast_unsigned())));
            }
            transaction.commit()?;
            Ok(known)
        };
        read().map_err(|error| trouble(&path, "cannot number logs in the index", error))
    }
}
