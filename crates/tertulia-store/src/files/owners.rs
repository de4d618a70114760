//! Ownership in the catalogue: which log holds the entry that each fork continues.

use super::catalogue::Catalogue;
use super::names::Key;
use crate::StoreResult;
use crate::selection::id_from;
use tertulia_core::id::{Seq, SessionId};

impl Catalogue {
    /// Returns the forks whose owner log is unknown.
    pub(super) fn without_owner(&self) -> StoreResult<Vec<(i64, Key)>> {
        self.run(|connection| {
            connection
                .prepare_cached(
                    "SELECT no, id, husk FROM log WHERE base IS NOT NULL AND owner IS NULL ORDER BY no",
                )?
                .query_map([], |row| {
                    Ok((row.get(0)?, (id_from(row.get(1)?), row.get(2)?)))
                })?
                .collect()
        })
    }

    pub(super) fn put_owner(&self, no: i64, owner: i64) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached("UPDATE log SET owner = ?2 WHERE no = ?1")?
                .execute([no, owner])
                .map(drop)
        })
    }

    /// Clears the owner of a changed log and of its forks, so that both are determined again.
    pub(super) fn disown(&self, no: i64) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached("UPDATE log SET owner = NULL WHERE no = ?1 OR owner = ?1")?
                .execute([no])
                .map(drop)
        })
    }

    /// Returns the logs that continue a log, each with the last entry that it shares.
    pub(super) fn forks(&self, no: i64) -> StoreResult<Vec<(i64, Seq)>> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT no, base_seq FROM log WHERE owner = ?1")?
                .query_map([no], |row| {
                    Ok((row.get(0)?, Seq(row.get::<_, i64>(1)?.cast_unsigned())))
                })?
                .collect()
        })
    }

    /// Returns the last sequence number of a log that a fork continues.
    pub(super) fn last_shared(&self, no: i64) -> StoreResult<Option<Seq>> {
        let last: Option<i64> = self.run(|connection| {
            connection
                .prepare_cached("SELECT max(base_seq) FROM log WHERE owner = ?1")?
                .query_row([no], |row| row.get(0))
        })?;
        Ok(last.map(|last| Seq(last.cast_unsigned())))
    }

    /// Returns the logs whose opening names this session as their origin.
    pub(super) fn naming(&self, id: SessionId) -> StoreResult<Vec<Key>> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT id, husk FROM log WHERE base = ?1")?
                .query_map([id.uuid().as_bytes()], |row| {
                    Ok((id_from(row.get(0)?), row.get(1)?))
                })?
                .collect()
        })
    }

    /// Returns all shared prefixes with the sequence number of their last line.
    pub(super) fn shared_prefixes(&self) -> StoreResult<Vec<(i64, Key, Seq)>> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT no, id, husk, last FROM log WHERE state = 2 ORDER BY no")?
                .query_map([], |row| {
                    let last = Seq(row.get::<_, i64>(3)?.cast_unsigned());
                    Ok((row.get(0)?, (id_from(row.get(1)?), row.get(2)?), last))
                })?
                .collect()
        })
    }
}
