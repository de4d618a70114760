//! Sizes of logs, from the catalogue.

use super::engine::FilesEngine;
use crate::StoreResult;
use crate::selection::{Measured, id_from, sized_session};
use tertulia_core::sizes::LogSize;

impl FilesEngine {
    pub(super) fn log_sizes(&mut self) -> StoreResult<Vec<LogSize>> {
        self.refresh()?;
        let read = |row: &rusqlite::Row<'_>| {
            let json: String = row.get(6)?;
            let measured: Option<Measured> = serde_json::from_str(&json).ok();
            let bytes = measured.as_ref().map_or(0, |it| it.bytes);
            let size = row.get::<_, i64>(4)?.cast_unsigned();
            let folded = row.get::<_, i64>(5)?.cast_unsigned();
            // The metadata counts the bytes of all entries, the file holds only its own.
            let is_fork: bool = row.get(8)?;
            let start = match is_fork {
                true => bytes.saturating_sub(folded),
                false => 0,
            };
            Ok(LogSize {
                no: row.get(0)?,
                session: sized_session(id_from(row.get(1)?), row.get(7)?, row.get(3)?, measured),
                base: row.get(2)?,
                start,
                // Bytes of an interrupted append are in the file, too.
                end: start + folded.max(size),
                stored: size,
            })
        };
        self.catalogue()?.run(|connection| {
            connection
                .prepare_cached(
                    "SELECT no, id, owner, state, size, folded, row, title, base IS NOT NULL
                     FROM log ORDER BY no",
                )?
                .query_map([], read)?
                .collect()
        })
    }
}
