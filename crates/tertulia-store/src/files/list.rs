//! Lists and lookups.

use std::cmp::Reverse;

use rusqlite::params_from_iter;

use super::engine::FilesEngine;
use super::file_stamp::FileStamp;
use super::log_file::{self, is_there};
use super::names::{self, LogName};
use super::open;
use crate::index::Index;
use crate::paging;
use crate::selection::{Select, Table, counts};
use crate::{Info, StoreResult};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Listing, Lookup, Page, Row};
use tertulia_core::session::SessionMeta;

/// The table of logs. Those without a readable entry are counted as damaged.
const LOGS: Table = Table {
    name: "log",
    listed: "last > 0 AND head_seq > 0",
    original: |id| ("row ->> '$.source.id' = ?1", id.to_owned()),
};

/// A lookup stores its fold in the catalogue above this number of new entries; fewer are faster to
/// fold again than to store.
const WORTH_KEEPING: u64 = 200;

impl FilesEngine {
    pub(super) fn list_page(&mut self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let metas = self.select(|| LOGS.page(filter, page))?;
        let catalogue = self.catalogue()?;
        let counts = counts(&catalogue.connection, filter.project.as_ref())
            .map_err(|error| catalogue.say(error))?;
        let damaged = catalogue.damaged()?;
        Ok(paging::listing(
            filter,
            page,
            metas,
            counts,
            damaged,
            |id| self.claims.is_open(id),
        ))
    }

    pub(super) fn look_up(&mut self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let mut metas: Vec<SessionMeta> = match lookup {
            Lookup::Id(id) => self.by_id(*id)?.into_iter().collect(),
            lookup => self.select(|| LOGS.find(lookup))?,
        };
        metas.retain(|meta| lookup.matches(meta));
        metas.sort_by_key(|meta| Reverse((meta.updated_at, meta.id)));
        metas.truncate(limit);
        Ok(paging::rows(metas, |id| self.claims.is_open(id)))
    }

    /// Brings the catalogue up to date and returns the metadata that a query selects from it. If one
    /// of the logs behind them is another than the catalogue knows, takes it in and repeats.
    fn select(&mut self, select: impl Fn() -> Select) -> StoreResult<Vec<SessionMeta>> {
        let compared_all = self.refresh_for_list()?;
        let metas = self.selected(select())?;
        if compared_all {
            return Ok(metas);
        }
        let mut differing = Vec::new();
        for meta in &metas {
            let logs = self.catalogue()?.logs_of(meta.id)?;
            differing.extend(self.differing(logs));
        }
        if differing.is_empty() {
            return Ok(metas);
        }
        match differing.iter().all(|log| is_there(&log.path)) {
            true => self.take_in_some(&differing, None)?,
            false => self.refresh()?,
        }
        self.selected(select())
    }

    fn selected(&mut self, select: Select) -> StoreResult<Vec<SessionMeta>> {
        let catalogue = self.catalogue()?;
        let read = || -> rusqlite::Result<Vec<String>> {
            catalogue
                .connection
                .prepare_cached(&select.sql)?
                .query_map(params_from_iter(select.values), |row| row.get(0))?
                .collect()
        };
        let rows = read().map_err(|error| catalogue.say(error))?;
        let metas = rows
            .iter()
            .map(|row| SessionMeta::from_json(row.as_bytes()));
        Ok(metas.filter_map(Result::ok).collect())
    }

    fn by_id(&mut self, id: SessionId) -> StoreResult<Option<SessionMeta>> {
        let Some(path) = self.live_if_any(id)? else {
            return Ok(None);
        };
        match LogName::parse(&path) {
            Some(log) => self.summary_of(&log),
            None => Ok(None),
        }
    }

    /// Returns the current metadata of one log without folding others.
    pub(super) fn summary_of(&mut self, log: &LogName) -> StoreResult<Option<SessionMeta>> {
        let stored = self.catalogue()?.record(log.id, log.shared_prefix)?;
        let stored = stored.map(|(_, record)| record);
        if let Some(record) = &stored
            && log_file::metadata(&log.path)
                .is_ok_and(|found| FileStamp::of(&found) == record.stamp)
        {
            return Ok(Some(record.meta.clone()));
        }
        let known = stored
            .as_ref()
            .map_or(Seq::START, |record| record.meta.head.seq);
        let folded = match self.fold(log, stored) {
            // Purged meanwhile.
            Err(_) if !is_there(&log.path) => None,
            folded => folded?,
        };
        let meta = folded
            .filter(|folded| folded.record.last > Seq::START)
            .map(|folded| folded.record.meta);
        if meta
            .as_ref()
            .is_some_and(|meta| meta.head.seq.0 > known.0 + WORTH_KEEPING)
        {
            // If the store is not writable, the next lookup folds again with the same result.
            let _ = self.take_in_some(std::slice::from_ref(log), None);
        }
        Ok(meta)
    }

    pub(super) fn describe(&mut self) -> StoreResult<Info> {
        self.refresh()?;
        let catalogue = self.catalogue()?;
        let counts: [i64; 4] = catalogue
            .connection
            .query_row(
                "SELECT coalesce(sum(state < 2), 0), coalesce(sum(state = 1), 0),
                   coalesce(sum(last - coalesce(base_seq, 0)), 0), coalesce(sum(size), 0) FROM log",
                [],
                |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]),
            )
            .map_err(|error| catalogue.say(error))?;
        let [sessions, trashed, entries, bytes] = counts.map(|count| count.max(0).cast_unsigned());
        let index = self.dir.join(names::INDEX_FOLDER);
        Ok(Info {
            backend: "files",
            place: self.dir.display().to_string(),
            format: open::format(&self.dir)?,
            sessions,
            trashed,
            entries,
            bytes,
            index_bytes: Index::bytes(Some(&index.join("search.db")))
                + Index::bytes(Some(&index.join(names::CATALOGUE))),
            server: None,
            latency_ms: None,
        })
    }
}
