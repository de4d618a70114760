//! Lists and lookups.

use std::cmp::Reverse;

use rusqlite::types::Value;
use rusqlite::{Row as SqlRow, params_from_iter};

use super::check::session_numbers;
use super::engine::SqliteEngine;
use super::rows::{PURGED, find_no};
use crate::by_project::of_project;
use crate::{Report, StoreResult};
use tertulia_core::entry::Entry;
use tertulia_core::id::{SHORT, Seq, SessionId};
use tertulia_core::query::{
    Cursor, DamagedSession, Filter, Hidden, Listing, Lookup, Order, Page, Row, Trash,
};
use tertulia_core::session::{SessionMeta, Source};

/// SQL conditions and their parameter values, in order.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, sql: &str, value: impl Into<Value>) {
        self.sql
            .push(sql.replace('?', &format!("?{}", self.values.len() + 1)));
        self.values.push(value.into());
    }

    fn of(filter: &Filter) -> Conditions {
        let mut conditions = Conditions::default();
        match filter.trash {
            Trash::Without => conditions.add("state = ?", 0),
            Trash::Only => conditions.add("state = ?", 1),
            Trash::With => conditions.add("state < ?", PURGED),
        }
        if let Some(kind) = filter.kind {
            conditions.add("kind = ?", kind.name().to_owned());
        }
        if let Some(team) = &filter.team {
            conditions.add("team = ?", team.clone());
        }
        if let Some(tag) = &filter.tag {
            conditions.add(
                "EXISTS (SELECT 1 FROM json_each(row, '$.tags') WHERE value = ?)",
                tag.clone(),
            );
        }
        if let Some(parent) = filter.parent {
            conditions.add("row ->> '$.parent.id' = ?", parent.to_string());
        }
        if let Some(since) = filter.since {
            conditions.add("updated >= ?", since.as_microsecond());
        }
        if let Some(until) = filter.until {
            conditions.add("updated < ?", until.as_microsecond());
        }
        if filter.order == Order::Changed {
            conditions.sql.push("changed IS NOT NULL".into());
        }
        conditions
    }
}

impl SqliteEngine {
    pub(super) fn list_page(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let say = self.say();
        let mut conditions = Conditions::of(filter);
        let column = match filter.order {
            Order::Updated => "updated",
            Order::Changed => "changed",
        };
        if let Some(Cursor { at, id }) = &page.cursor {
            let (time, tie) = (conditions.values.len() + 1, conditions.values.len() + 2);
            conditions
                .sql
                .push(format!("({column}, id) < (?{time}, ?{tie})"));
            conditions.values.push(at.as_microsecond().into());
            conditions.values.push(id.uuid().as_bytes().to_vec().into());
        }
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX - 1);
        let every = format!(
            "SELECT row, no, {column}, id FROM session WHERE {}",
            conditions.sql.join(" AND ")
        );
        let sql = format!(
            "{} ORDER BY {column} DESC, id DESC LIMIT {}",
            of_project(&every, filter.project.as_ref(), &mut conditions.values),
            limit.saturating_add(1)
        );
        let (mut metas, mut damaged) = match self.metas(&sql, conditions.values) {
            Err(error) if error.is_damage() => return self.list_row_by_row(filter, page),
            read => read?,
        };
        let more = metas.len() > page.limit;
        metas.truncate(page.limit);
        let next = metas.last().filter(|_| more).map(|last| Cursor {
            at: filter.sort_key(last),
            id: last.id,
        });
        let (hidden, sessions) = match self.hidden(filter).map_err(say.of("cannot count sessions"))
        {
            Err(error) if error.is_damage() => return self.list_row_by_row(filter, page),
            hidden => hidden?,
        };
        for meta in &metas {
            if let Some(reason) = self.without_its_end(meta) {
                let id = Some(meta.id);
                damaged.push(DamagedSession { id, reason });
            }
        }
        Ok(Listing {
            rows: self.rows(metas),
            hidden,
            sessions,
            next,
            damaged,
        })
    }

    /// Lists a database with damaged indexes by looking up each row.
    fn list_row_by_row(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        let (all, damaged) = self.row_by_row()?;
        let key = |meta: &SessionMeta| (filter.sort_key(meta), meta.id);
        let mut matching: Vec<SessionMeta> = all
            .iter()
            .filter(|meta| filter.matches(meta))
            .cloned()
            .collect();
        matching.sort_by_key(|meta| Reverse(key(meta)));
        if let Some(Cursor { at, id }) = &page.cursor {
            matching.retain(|meta| key(meta) < (*at, *id));
        }
        let more = matching.len() > page.limit;
        matching.truncate(page.limit);
        let next = matching.last().filter(|_| more).map(|last| Cursor {
            at: filter.sort_key(last),
            id: last.id,
        });
        let here = |meta: &&SessionMeta| filter.has_project(meta);
        let count = |trashed: bool, is_here: bool| {
            let counted =
                |meta: &&SessionMeta| meta.trashed_at.is_some() == trashed && here(meta) == is_here;
            all.iter().filter(counted).count() as u64
        };
        let hidden = match filter.trash {
            Trash::Without => Hidden {
                elsewhere: count(false, false),
                trashed: count(true, true),
            },
            Trash::Only => Hidden {
                elsewhere: count(true, false),
                trashed: 0,
            },
            Trash::With => Hidden {
                elsewhere: count(false, false) + count(true, false),
                trashed: 0,
            },
        };
        Ok(Listing {
            rows: self.rows(matching),
            hidden,
            sessions: all.len() as u64,
            next,
            damaged,
        })
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
                Ok(_) => continue,
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
        let (condition, values): (&str, Vec<Value>) = match lookup {
            Lookup::Id(id) => ("id = ?1", vec![id.uuid().as_bytes().to_vec().into()]),
            Lookup::Title(title) => ("title = ?1", vec![title.clone().into()]),
            Lookup::Original(id) => ("instr(row, ?1) > 0", vec![Source::row_fragment(id).into()]),
            Lookup::Part(part) => {
                let digits: String = part.chars().filter(|c| *c != '-').collect();
                let backwards: String = digits.chars().rev().collect();
                let (low, high) = range(&digits);
                let (end_low, end_high) = range(&backwards);
                // The short form begins inside the id, so no index order helps: scans all ids in an
                // index that holds nothing else.
                (
                    "(id BETWEEN ?1 AND ?2 OR id_end BETWEEN ?3 AND ?4
                      OR id IN (SELECT id FROM session WHERE substr(hex(id), ?5, ?6) = ?7))",
                    vec![
                        low.into(),
                        high.into(),
                        end_low.into(),
                        end_high.into(),
                        i64::try_from(33 - SHORT).unwrap_or(0).into(),
                        i64::try_from(digits.len()).unwrap_or(0).into(),
                        digits.to_ascii_uppercase().into(),
                    ],
                )
            }
        };
        let sql = format!(
            "SELECT row, no FROM session WHERE {condition} AND state < {PURGED} ORDER BY updated DESC, id DESC LIMIT 1000"
        );
        let mut metas = match self.metas(&sql, values) {
            Err(error) if error.is_damage() => {
                let mut all = self.row_by_row()?.0;
                all.sort_by_key(|meta| Reverse((meta.updated_at, meta.id)));
                all
            }
            read => read?.0,
        };
        // Hyphens have fixed positions: digits alone may match where the text does not.
        metas.retain(|meta| lookup.matches(meta));
        metas.truncate(limit);
        Ok(self.rows(metas))
    }

    /// Returns the metadata that a query selects, and the damaged rows among them. Metadata of a
    /// damaged row is folded from the log: a damaged derived row must not hide a session.
    fn metas(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> StoreResult<(Vec<SessionMeta>, Vec<DamagedSession>)> {
        let say = self.say();
        let read = |row: &SqlRow<'_>| {
            let json = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
            Ok((
                row.get::<_, i64>(1)?,
                serde_json::from_slice::<SessionMeta>(json).ok(),
            ))
        };
        let rows: Vec<(i64, Option<SessionMeta>)> = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_map(params_from_iter(values), read)?.collect())
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

    fn rows(&self, metas: Vec<SessionMeta>) -> Vec<Row> {
        metas
            .into_iter()
            .map(|meta| Row {
                open: self.claims.is_open(meta.id),
                meta,
            })
            .collect()
    }

    fn hidden(&self, filter: &Filter) -> rusqlite::Result<(Hidden, u64)> {
        let (live, trashed): (i64, i64) = self
            .connection
            .prepare_cached("SELECT coalesce(sum(live), 0), coalesce(sum(trashed), 0) FROM tally")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let all = live + trashed;
        let here = match &filter.project {
            None => (live, trashed),
            Some(ids) => {
                let mut select = self.connection.prepare_cached(
                    "SELECT coalesce(sum(live), 0), coalesce(sum(trashed), 0) FROM tally WHERE project = ?1",
                )?;
                let mut here = (0, 0);
                for id in ids.iter() {
                    let (live, trashed): (i64, i64) =
                        select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
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
}

/// Returns the lowest and highest id that begin with these digits.
fn range(digits: &str) -> (Vec<u8>, Vec<u8>) {
    let fill = |filler: char| {
        let mut text: String = digits.chars().take(32).collect();
        while text.len() < 32 {
            text.push(filler);
        }
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap_or(0);
        (0..16).map(|byte| digit(byte * 2)).collect()
    };
    (fill('0'), fill('f'))
}

/// Converts a blob to a session id.
pub(super) fn id_from(bytes: [u8; 16]) -> SessionId {
    SessionId::new(uuid::Uuid::from_bytes(bytes))
}
