//! Lists and lookups.

use std::cmp::Reverse;

use rusqlite::{Row as SqlRow, params_from_iter};

use super::check::session_numbers;
use super::engine::SqliteEngine;
use super::rows::find_no;
use crate::paging;
use crate::selection::{PURGED, Select, Table, counts};
use crate::{Report, StoreResult};
use tertulia_core::entry::Entry;
use tertulia_core::id::Seq;
use tertulia_core::query::{DamagedSession, Filter, Listing, Lookup, Page, Row};
use tertulia_core::session::{SessionMeta, Source};

/// The table of sessions.
const SESSIONS: Table = Table {
    name: "session",
    listed: "TRUE",
    // No index has it, but only rows with the text are parsed.
    original: |id| ("instr(row, ?1) > 0", Source::row_fragment(id)),
};

impl SqliteEngine {
    pub(super) fn list_page(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        match self.select_page(filter, page) {
            Err(error) if error.is_damage() => {
                // The indexes are damaged: looks up each row.
                let (all, damaged) = self.row_by_row()?;
                Ok(paging::listing_of_all(filter, page, all, damaged, |id| {
                    self.claims.is_open(id)
                }))
            }
            listing => listing,
        }
    }

    fn select_page(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let (metas, mut damaged) = self.metas(SESSIONS.page(filter, page))?;
        let counts = counts(&self.connection, filter.project.as_ref())
            .map_err(self.say().of("cannot count sessions"))?;
        for meta in metas.iter().take(page.limit) {
            if let Some(reason) = self.without_its_end(meta) {
                let id = Some(meta.id);
                damaged.push(DamagedSession { id, reason });
            }
        }
        Ok(paging::listing(
            filter,
            page,
            metas,
            counts,
            damaged,
            |id| self.claims.is_open(id),
        ))
    }

    /// Returns all readable sessions, and the unreadable ones.
    fn row_by_row(&self) -> StoreResult<(Vec<SessionMeta>, Vec<DamagedSession>)> {
        let say = self.say();
        let mut report = Report::default();
        let numbers = session_numbers(&self.connection, &say, &mut report)?;
        let of_rows = report.faults.into_iter();
        let mut damaged: Vec<DamagedSession> = of_rows
            .map(|reason| DamagedSession { id: None, reason })
            .collect();
        let mut metas = Vec::new();
        for (no, id) in numbers {
            let reason = match find_no(&self.connection, &say, no) {
                Ok(Some(found)) if found.state < PURGED && found.meta.head.seq > Seq::START => {
                    metas.push(found.meta);
                    continue;
                }
                Ok(Some(found)) if found.state < PURGED => "none of its entries can be read".into(),
                Ok(Some(_)) => continue,
                Ok(None) => "its row is out of order".to_owned(),
                Err(error) if error.is_damage() => error.to_string(),
                Err(error) => return Err(error),
            };
            damaged.push(DamagedSession {
                id: Some(id),
                reason,
            });
        }
        Ok((metas, damaged))
    }

    /// Describes the damage if the log lacks the last entry that its row knows. The rest of the log
    /// is left to a check.
    fn without_its_end(&self, meta: &SessionMeta) -> Option<String> {
        let head = meta.head.seq;
        let line = self.lines(meta.id, head.back(1), 1);
        match line {
            Ok(lines) => {
                let entry = lines
                    .first()
                    .and_then(|line| Entry::decode(&line.bytes).ok());
                let is_there = entry.is_some_and(|entry| entry.head() == meta.head);
                (!is_there).then(|| format!("entry {head} is missing or altered"))
            }
            Err(error) => error.is_damage().then(|| error.to_string()),
        }
    }

    pub(super) fn look_up(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let mut metas = match self.metas(SESSIONS.find(lookup)) {
            Err(error) if error.is_damage() => {
                let mut all = self.row_by_row()?.0;
                all.sort_by_key(|meta| Reverse((meta.updated_at, meta.id)));
                all
            }
            read => read?.0,
        };
        metas.retain(|meta| lookup.matches(meta));
        metas.truncate(limit);
        Ok(paging::rows(metas, |id| self.claims.is_open(id)))
    }

    /// Returns the metadata that a query selects, and the damaged rows among them. Metadata of a
    /// damaged row is folded from the log: a damaged derived row must not hide a session.
    fn metas(&self, select: Select) -> StoreResult<(Vec<SessionMeta>, Vec<DamagedSession>)> {
        let say = self.say();
        let read = |row: &SqlRow<'_>| {
            let json = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
            Ok((row.get::<_, i64>(1)?, SessionMeta::from_json(json).ok()))
        };
        let rows: Vec<(i64, Option<SessionMeta>)> = self
            .connection
            .prepare_cached(&select.sql)
            .and_then(|mut prepared| {
                let values = params_from_iter(select.values);
                prepared.query_map(values, read)?.collect()
            })
            .map_err(say.of("cannot list sessions"))?;
        let mut metas = Vec::with_capacity(rows.len());
        let mut damaged = Vec::new();
        for (no, meta) in rows {
            if let Some(meta) = meta {
                metas.push(meta);
                continue;
            }
            let Some(found) = find_no(&self.connection, &say, no)? else {
                continue;
            };
            damaged.push(DamagedSession {
                id: Some(found.meta.id),
                reason: "its row in the list is unreadable".into(),
            });
            if found.meta.head.seq > Seq::START {
                metas.push(found.meta);
            }
        }
        Ok((metas, damaged))
    }
}
