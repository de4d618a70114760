//! Which log each fork continues, as the catalogue knows it.

use rusqlite::params;

use super::catalogue::{Catalogue, id_from};
use super::names::Key;
use crate::StoreResult;
use tertulia_core::id::{Seq, SessionId};

impl Catalogue {
    /// The forks for which it is not known which log has the entry that they continue.
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

    /// A log is not what it was: what it continues and who continues it is to be found out again.
    pub(super) fn disown(&self, no: i64) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached("UPDATE log SET owner = NULL WHERE no = ?1 OR owner = ?1")?
                .execute([no])
                .map(drop)
        })
    }

    /// The logs that continue a log from `seq` or a later entry.
    pub(super) fn forks(&self, no: i64, seq: Seq) -> StoreResult<Vec<(i64, Key)>> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT no, id, husk FROM log WHERE owner = ?1 AND base_seq >= ?2")?
                .query_map(params![no, seq.0.cast_signed()], |row| {
                    Ok((row.get(0)?, (id_from(row.get(1)?), row.get(2)?)))
                })?
                .collect()
        })
    }

    /// The last place of a log that others continue.
    pub(super) fn last_shared(&self, no: i64) -> StoreResult<Option<Seq>> {
        let last: Option<i64> = self.run(|connection| {
            connection
                .prepare_cached("SELECT max(base_seq) FROM log WHERE owner = ?1")?
                .query_row([no], |row| row.get(0))
        })?;
        Ok(last.map(|last| Seq(last.cast_unsigned())))
    }

    /// The logs that were made of a session of this id, whatever they share with it.
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

    /// What is kept of purged sessions, with the place of the last line.
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
