//! Lists and lookups.

use std::cmp::Reverse;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::engine::FilesEngine;
use super::names::{self, LogName, Walk};
use super::open;
use crate::by_project::of_project;
use crate::index::Index;
use crate::{Info, StoreResult};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Cursor, Filter, Hidden, Listing, Lookup, Order, Page, Row, Trash};
use tertulia_core::session::{SessionMeta, Source};

/// Condition on rows that a list can show; other logs are counted as damaged.
const READABLE: &str = "last > 0 AND head_seq > 0";

/// Maximum number of sessions found by part of an id.
const LONGEST_CHOICE: usize = 1000;

/// A lookup stores its fold in the catalogue above this number of new entries; fewer are faster to
/// fold again than to store.
const WORTH_KEEPING: u64 = 200;

impl FilesEngine {
    pub(super) fn list_page(&mut self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        self.refresh()?;
        let catalogue = self.catalogue()?;
        let (mut metas, (hidden, sessions)) = page_of(&catalogue.connection, filter, page)
            .and_then(|rows| Ok((rows, hidden(&catalogue.connection, filter)?)))
            .map_err(|error| catalogue.say(error))?;
        let more = metas.len() > page.limit;
        metas.truncate(page.limit);
        let next = metas.last().filter(|_| more).map(|last| Cursor {
            at: filter.sort_key(last),
            id: last.id,
        });
        let damaged = catalogue.damaged()?;
        Ok(Listing {
            rows: self.rows(metas),
            hidden,
            sessions,
            next,
            damaged,
        })
    }

    pub(super) fn look_up(&mut self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let mut metas = match lookup {
            Lookup::Id(id) => self.by_id(*id)?.into_iter().collect(),
            Lookup::Part(part) => self.by_part(part)?,
            Lookup::Title(title) => self.where_row("title = ?1", title)?,
            Lookup::Original(id) => {
                self.where_row("instr(row, ?1) > 0", &Source::row_fragment(id))?
            }
        };
        metas.sort_by_key(|meta| Reverse((meta.updated_at, meta.id)));
        metas.truncate(limit);
        Ok(self.rows(metas))
    }

    fn by_id(&mut self, id: SessionId) -> StoreResult<Option<SessionMeta>> {
        let Some(path) = self.names.live(&self.dir, id)? else {
            return Ok(None);
        };
        match LogName::parse(&path) {
            Some(log) => self.summary_of(&log),
            None => Ok(None),
        }
    }

    fn by_part(&mut self, part: &str) -> StoreResult<Vec<SessionMeta>> {
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        let mut found = Vec::new();
        for log in walk.logs.iter().rev().filter(|log| !log.is_shared_prefix()) {
            if log.id.is_named_by(part) {
                found.extend(self.summary_of(log)?);
            }
            if found.len() == LONGEST_CHOICE {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the sessions whose list row meets a condition on one value, trashed ones included.
    fn where_row(&mut self, condition: &str, value: &str) -> StoreResult<Vec<SessionMeta>> {
        self.refresh()?;
        let catalogue = self.catalogue()?;
        let sql = format!(
            "SELECT row FROM log WHERE {condition} AND state < 2 ORDER BY updated DESC, id DESC LIMIT 1000"
        );
        let read = || -> rusqlite::Result<Vec<String>> {
            catalogue
                .connection
                .prepare_cached(&sql)?
                .query_map([value], |row| row.get(0))?
                .collect()
        };
        let rows = read().map_err(|error| catalogue.say(error))?;
        Ok(rows
            .iter()
            .filter_map(|row| serde_json::from_str(row).ok())
            .collect())
    }

    /// Returns the current metadata of one log without folding others.
    pub(super) fn summary_of(&mut self, log: &LogName) -> StoreResult<Option<SessionMeta>> {
        let stored = self.catalogue()?.record(log.id, log.shared_prefix)?;
        let stored = stored.map(|(_, record)| record);
        if let Some(record) = &stored
            && std::fs::metadata(&log.path)
                .is_ok_and(|found| super::file_stamp::FileStamp::of(&found) == record.stamp)
        {
            return Ok(Some(record.meta.clone()));
        }
        let known = stored
            .as_ref()
            .map_or(Seq::START, |record| record.meta.head.seq);
        let folded = match self.fold(log, stored) {
            // Purged meanwhile.
            Err(_) if !log.path.exists() => None,
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
            let _ = self.keep_up(log);
        }
        Ok(meta)
    }

    fn keep_up(&mut self, log: &LogName) -> StoreResult<()> {
        self.catalogue()?.begin()?;
        let done = self.bring_up(log).and_then(|()| self.settle_owners());
        self.catalogue()?.end(done)
    }

    fn rows(&self, metas: Vec<SessionMeta>) -> Vec<Row> {
        metas
            .into_iter()
            .map(|meta| Row {
                open: self.claims.is_open(meta.id),
                meta,
            })
            .collect()
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
            format: open::FORMAT,
            sessions,
            trashed,
            entries,
            bytes,
            index_bytes: Index::bytes(Some(&index.join("search.db")))
                + Index::bytes(Some(&index.join("catalogue.db"))),
        })
    }
}

/// Returns the rows of a page plus one more, if there is one. Parses no further rows.
fn page_of(
    connection: &Connection,
    filter: &Filter,
    page: &Page,
) -> rusqlite::Result<Vec<SessionMeta>> {
    let column = match filter.order {
        Order::Updated => "updated",
        Order::Changed => "changed",
    };
    let mut conditions = vec![
        "state < 2".to_owned(),
        READABLE.to_owned(),
        format!("{column} IS NOT NULL"),
    ];
    let mut values: Vec<Value> = Vec::new();
    if let Some(Cursor { at, id }) = &page.cursor {
        values.push(at.as_microsecond().into());
        values.push(id.uuid().as_bytes().to_vec().into());
        let (time, tie) = (values.len() - 1, values.len());
        conditions.push(format!("({column}, id) < (?{time}, ?{tie})"));
    }
    let every = format!(
        "SELECT row, {column}, id FROM log WHERE {}",
        conditions.join(" AND ")
    );
    let sql = format!(
        "{} ORDER BY {column} DESC, id DESC",
        of_project(&every, filter.project.as_ref(), &mut values)
    );
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(values))?;
    let mut metas = Vec::new();
    while metas.len() <= page.limit
        && let Some(row) = rows.next()?
    {
        let json = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
        if let Ok(meta) = serde_json::from_slice::<SessionMeta>(json)
            && filter.matches(&meta)
        {
            metas.push(meta);
        }
    }
    Ok(metas)
}

fn hidden(connection: &Connection, filter: &Filter) -> rusqlite::Result<(Hidden, u64)> {
    let count = |project: Option<&str>| -> rusqlite::Result<(i64, i64)> {
        connection
            .prepare_cached(&format!(
                "SELECT coalesce(sum(state = 0), 0), coalesce(sum(state = 1), 0) FROM log
                     WHERE {READABLE} AND (?1 IS NULL OR project = ?1)"
            ))?
            .query_row([project], |row| Ok((row.get(0)?, row.get(1)?)))
    };
    let (live, trashed) = count(None)?;
    let all = live + trashed;
    let here = match &filter.project {
        None => (live, trashed),
        Some(ids) => {
            let mut here = (0, 0);
            for id in ids.iter() {
                let (live, trashed) = count(Some(id))?;
                here = (here.0 + live, here.1 + trashed);
            }
            here
        }
    };
    let (elsewhere, trashed) = match filter.trash {
        Trash::Without => (live - here.0, here.1),
        Trash::Only => (trashed - here.1, 0),
        Trash::With => (live + trashed - here.0 - here.1, 0),
    };
    let hidden = Hidden {
        elsewhere: elsewhere.max(0).cast_unsigned(),
        trashed: trashed.max(0).cast_unsigned(),
    };
    Ok((hidden, all.max(0).cast_unsigned()))
}
