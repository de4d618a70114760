//! Sizes of logs, from the rows of sessions. Of entries only those between a snapshot and the entry
//! that a fork continues are looked at, and of these only the lengths.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::engine::SqliteEngine;
use super::pack;
use super::rows::read_lines;
use crate::StoreResult;
use crate::selection::{Measured, PURGED, id_from, sized_session};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::sizes::LogSize;

/// A row of the table of sessions.
struct SizeRow {
    no: i64,
    base: Option<(i64, Seq)>,
    state: i64,
    id: SessionId,
    title: Option<String>,
    /// `None` if the metadata cannot be read.
    measured: Option<Measured>,
}

impl SqliteEngine {
    pub(super) fn log_sizes(&self) -> StoreResult<Vec<LogSize>> {
        let rows = self.size_rows()?;
        let bases: HashMap<i64, (i64, Seq)> = rows
            .iter()
            .filter_map(|row| Some((row.no, row.base?)))
            .collect();
        let mut starts = HashMap::new();
        for row in &rows {
            self.find_start(row.no, &bases, &mut starts)?;
        }
        let start = |no: i64| starts.get(&no).copied().unwrap_or(0);
        // A shared prefix ends where its last fork starts.
        let mut last_fork: HashMap<i64, u64> = HashMap::new();
        for (no, (base, _)) in &bases {
            let last = last_fork.entry(*base).or_default();
            *last = start(*no).max(*last);
        }
        let packed: HashSet<i64> = pack::packed_sessions(&self.connection)
            .map_err(self.say().of("cannot measure sessions"))?
            .into_iter()
            .collect();
        let mut sizes = Vec::with_capacity(rows.len());
        for row in rows {
            let start = start(row.no);
            let end = match &row.measured {
                _ if row.state == PURGED => last_fork.get(&row.no).copied().unwrap_or(start),
                Some(measured) => measured.bytes,
                None => start + self.own_bytes(row.no, Seq::START, Seq(u64::MAX))?,
            };
            sizes.push(LogSize {
                no: row.no,
                session: sized_session(row.id, row.title, row.state, row.measured),
                base: row.base.map(|(no, _)| no),
                start,
                end,
                stored: match packed.contains(&row.no) {
                    true => self.stored_bytes(row.no)?,
                    false => end.saturating_sub(start),
                },
            });
        }
        Ok(sizes)
    }

    fn size_rows(&self) -> StoreResult<Vec<SizeRow>> {
        let read = |row: &rusqlite::Row<'_>| {
            let base: Option<i64> = row.get(1)?;
            let base_seq: Option<i64> = row.get(2)?;
            let json = row.get_ref(6)?.as_bytes_or_null()?.unwrap_or_default();
            Ok(SizeRow {
                no: row.get(0)?,
                base: base
                    .zip(base_seq)
                    .map(|(no, seq)| (no, Seq(seq.cast_unsigned()))),
                state: row.get(3)?,
                id: id_from(row.get(4)?),
                title: row.get(5)?,
                measured: serde_json::from_slice(json).ok(),
            })
        };
        self.connection
            .prepare("SELECT no, base, base_seq, state, id, title, row FROM session ORDER BY no")
            .and_then(|mut select| select.query_map([], read)?.collect())
            .map_err(self.say().of("cannot measure sessions"))
    }

    /// Finds the position at which a log starts, and those of the logs that it continues.
    fn find_start(
        &self,
        no: i64,
        bases: &HashMap<i64, (i64, Seq)>,
        starts: &mut HashMap<i64, u64>,
    ) -> StoreResult<()> {
        let mut chain = vec![no];
        while let Some(last) = chain.last()
            && let Some((base, _)) = bases.get(last)
            && !starts.contains_key(last)
            // Logs that continue each other in a circle have no beginning.
            && !chain.contains(base)
        {
            chain.push(*base);
        }
        for no in chain.into_iter().rev() {
            if starts.contains_key(&no) {
                continue;
            }
            let start = match bases.get(&no) {
                None => 0,
                Some((base, seq)) => {
                    let start = starts.get(base).copied().unwrap_or(0);
                    self.position_after(*base, start, *seq)?
                }
            };
            starts.insert(no, start);
        }
        Ok(())
    }

    /// Returns the position after an entry of a log that starts at `start`.
    fn position_after(&self, no: i64, start: u64, seq: Seq) -> StoreResult<u64> {
        let snapshot: Option<(i64, String)> = self
            .connection
            .prepare_cached(
                "SELECT seq, row FROM snapshot WHERE session = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
            )
            .and_then(|mut select| {
                select
                    .query_row(params![no, seq.0], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })
            .map_err(self.say().of("cannot measure sessions"))?;
        let known = snapshot.and_then(|(seq, row)| {
            let measured: Measured = serde_json::from_str(&row).ok()?;
            Some((Seq(seq.cast_unsigned()), measured.bytes))
        });
        let (after, before) = known.unwrap_or((Seq::START, start));
        Ok(before + self.own_bytes(no, after, seq)?)
    }

    /// Returns the bytes of a log's own lines, with their line feeds, after `after` up to `upto`.
    fn own_bytes(&self, no: i64, after: Seq, upto: Seq) -> StoreResult<u64> {
        let number = |seq: Seq| i64::try_from(seq.0).unwrap_or(i64::MAX);
        let (bytes, packed): (i64, bool) = self
            .connection
            .prepare_cached(
                "SELECT coalesce(sum(octet_length(line) + 1), 0),
                   coalesce(max(octet_length(line) = 0 OR typeof(line) = 'blob'), 0)
                 FROM entry WHERE session = ?1 AND seq > ?2 AND seq <= ?3",
            )
            .and_then(|mut select| {
                select.query_row(params![no, number(after), number(upto)], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
            })
            .map_err(self.say().of("cannot measure sessions"))?;
        if !packed {
            return Ok(bytes.cast_unsigned());
        }
        let say = self.say();
        let lines = read_lines(&self.connection, &say, (no, None), after, upto, usize::MAX)?;
        Ok(lines.iter().map(|line| line.bytes.len() as u64 + 1).sum())
    }

    /// Returns the bytes of a compressed session at rest.
    fn stored_bytes(&self, no: i64) -> StoreResult<u64> {
        self.connection
            .prepare_cached(
                "SELECT coalesce(sum(octet_length(line)), 0) FROM entry WHERE session = ?1",
            )
            .and_then(|mut select| select.query_row([no], |row| row.get::<_, i64>(0)))
            .map(i64::cast_unsigned)
            .map_err(self.say().of("cannot measure sessions"))
    }
}
