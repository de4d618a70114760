//! Lists and lookups. The server selects by numbers and by bytes that the metadata must contain; the
//! metadata itself decides.

use std::collections::HashSet;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row as SqlRow};
use uuid::Uuid;

use super::rows::{COLUMNS, Found, found, hour_of, key, number};
use super::server::{Answer, Mode, Server, Value, query};
use crate::StoreResult;
use crate::paging::{self, Counts};
use crate::selection::PURGED;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{
    Cursor, DamagedSession, Filter, Listing, Lookup, Order, Page, ProjectIds, Row, Trash,
};
use tertulia_core::session::{IMPORTED_TAG, LONG_TAG, SessionMeta, Source};

/// Rows of one query while a page is filled by a filter that the server knows only in part.
const BATCH: usize = 200;
/// Maximum number of rows that a lookup finds.
const LONGEST_CHOICE: i64 = 1000;
/// True for a session that a program has open.
const OPEN: &str = "EXISTS (SELECT 1 FROM tertulia_lease AS held
                     WHERE held.session = tertulia_session.id AND held.expires > now())";

/// A value of a statement.
enum Parameter {
    Number(i64),
    Bytes(Vec<u8>),
    Id(Uuid),
    Text(String),
}

impl Parameter {
    fn value(&self) -> Value<'_> {
        match self {
            Parameter::Number(number) => (number, Type::INT8),
            Parameter::Bytes(bytes) => (bytes, Type::BYTEA),
            Parameter::Id(id) => (id, Type::UUID),
            Parameter::Text(text) => (text, Type::TEXT),
        }
    }
}

/// SQL conditions and their values, in order.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Parameter>,
}

impl Conditions {
    /// Adds a value and returns its place.
    fn place(&mut self, value: Parameter) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn add(&mut self, sql: &str, value: Parameter) {
        let place = self.place(value);
        self.sql.push(sql.replace('?', &place));
    }

    /// Adds the condition that the metadata contains one of these bytes.
    fn contains_any(&mut self, fragments: Vec<Vec<u8>>) {
        let any: Vec<String> = fragments
            .into_iter()
            .map(|bytes| {
                let place = self.place(Parameter::Bytes(bytes));
                format!("position({place} IN row) > 0")
            })
            .collect();
        self.sql.push(match any.is_empty() {
            true => "FALSE".to_owned(),
            false => format!("({})", any.join(" OR ")),
        });
    }

    /// Conditions that every session of the filter meets. Others may meet them, too.
    fn of(filter: &Filter) -> Conditions {
        let mut conditions = Conditions::default();
        conditions.sql.push(match filter.trash {
            Trash::Without => "state = 0".to_owned(),
            Trash::Only => "state = 1".to_owned(),
            Trash::With => format!("state < {PURGED}"),
        });
        if let Some(ids) = &filter.project {
            let places: Vec<String> = ids
                .iter()
                .map(|id| conditions.place(Parameter::Number(key(id))))
                .collect();
            conditions.sql.push(match places.is_empty() {
                true => "FALSE".to_owned(),
                false => format!("project IN ({})", places.join(", ")),
            });
        }
        if let Some(kind) = filter.kind {
            conditions.add("kind = ?", Parameter::Text(kind.name().to_owned()));
        }
        if let Some(team) = &filter.team {
            conditions.add("team = ?", Parameter::Number(key(team)));
        }
        if let Some(tree) = &filter.worktree {
            // The end of the path, with the closing quote, may differ.
            let beginnings = tree.paths.iter().map(|path| {
                let mut text = json(path);
                text.pop();
                text
            });
            conditions.contains_any(beginnings.collect());
        }
        if let Some(author) = &filter.author {
            conditions.contains_any(vec![json(author)]);
        }
        if let Some(tag) = &filter.tag {
            let is_counted = filter.auto_tags && (tag == LONG_TAG || tag == IMPORTED_TAG);
            if !is_counted {
                conditions.contains_any(vec![json(tag)]);
            }
        }
        if let Some(parent) = filter.parent {
            conditions.contains_any(vec![parent.to_string().into_bytes()]);
        }
        if let Some(since) = filter.since {
            let since = since.as_microsecond();
            conditions.add("hour >= ?", Parameter::Number(hour_of(since)));
            conditions.add("updated >= ?", Parameter::Number(since));
        }
        if let Some(until) = filter.until {
            // A column holds whole microseconds.
            let until = until.as_microsecond();
            conditions.add("hour <= ?", Parameter::Number(hour_of(until)));
            conditions.add("updated <= ?", Parameter::Number(until));
        }
        if filter.order == Order::Changed {
            conditions.sql.push("changed IS NOT NULL".to_owned());
        }
        conditions
    }

    /// Selects the newest sessions by a column.
    async fn select(&self, client: &Client, by: Order, limit: i64) -> Answer<Vec<SqlRow>> {
        let conditions = self.sql.join(" AND ");
        let column = column(by);
        let order = match by {
            // The order of the index comes first, which leaves little to sort.
            Order::Updated => "hour DESC, updated DESC, id DESC",
            Order::Changed => "changed DESC, id DESC",
        };
        let sql = format!(
            "SELECT {COLUMNS}, {OPEN}, {column}, id FROM tertulia_session WHERE {conditions}
             ORDER BY {order} LIMIT {limit}"
        );
        let values: Vec<Value<'_>> = self.values.iter().map(Parameter::value).collect();
        Ok(query(client, &sql, &values).await?)
    }
}

/// Returns the column of an order.
fn column(order: Order) -> &'static str {
    match order {
        Order::Updated => "updated",
        Order::Changed => "changed",
    }
}

/// Returns a text as it stands in metadata.
fn json(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).unwrap_or_default()
}

/// Sessions that a query found.
#[derive(Default)]
struct Sessions {
    metas: Vec<SessionMeta>,
    /// Logs of the sessions, in the same order.
    logs: Vec<Uuid>,
    open: HashSet<SessionId>,
    damaged: Vec<DamagedSession>,
}

impl Sessions {
    fn add(&mut self, found: Found, is_open: bool) {
        let id = found.name();
        if found.stored.is_none() {
            self.damaged.push(DamagedSession {
                id: Some(id),
                reason: "its row in the list is unreadable".into(),
            });
            if found.meta.head.seq == Seq::START {
                return;
            }
        }
        if is_open {
            self.open.insert(id);
        }
        self.logs.push(found.log);
        self.metas.push(found.meta);
    }
}

impl Server {
    pub(super) async fn list(&self, filter: Filter, page: Page) -> StoreResult<Listing> {
        let what = "cannot list sessions";
        self.transact(what, None, Mode::Read, async |client, _| {
            let mut sessions = page_of(client, &filter, &page).await?;
            let counts = counts(client, filter.project.as_ref()).await?;
            missing_ends(client, &mut sessions, page.limit).await?;
            let Sessions {
                metas,
                open,
                damaged,
                ..
            } = sessions;
            let is_open = |id: SessionId| open.contains(&id);
            Ok(paging::listing(
                &filter, &page, metas, counts, damaged, is_open,
            ))
        })
        .await
    }

    pub(super) async fn find(&self, lookup: Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        let what = "cannot look up sessions";
        self.transact(what, None, Mode::Read, async |client, _| {
            let mut sessions = Sessions::default();
            let rows = matching(&lookup)
                .select(client, Order::Updated, LONGEST_CHOICE)
                .await?;
            for row in rows {
                let found = found(client, &row).await?;
                if lookup.matches(&found.meta) {
                    sessions.add(found, row.try_get(6)?);
                }
            }
            let Sessions {
                mut metas, open, ..
            } = sessions;
            metas.truncate(limit);
            Ok(paging::rows(metas, |id| open.contains(&id)))
        })
        .await
    }
}

/// Returns conditions that every session of a lookup meets.
fn matching(lookup: &Lookup) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.sql.push(format!("state < {PURGED}"));
    match lookup {
        Lookup::Id(id) => conditions.add("id = ?", Parameter::Id(id.uuid())),
        Lookup::Title(title) => conditions.add("title = ?", Parameter::Number(key(title))),
        Lookup::Original(id) => {
            conditions.contains_any(vec![Source::row_fragment(id).into_bytes()]);
        }
        // Looks at every id: the part may be at its end.
        Lookup::Part(part) => {
            conditions.add(
                "strpos(id::text, ?) > 0",
                Parameter::Text(part.replace('\0', "-")),
            );
        }
    }
    conditions
}

/// Returns the sessions of a page and one more, if there is one.
async fn page_of(client: &Client, filter: &Filter, page: &Page) -> Answer<Sessions> {
    let column = column(filter.order);
    let wanted = page.limit.saturating_add(1);
    let batch = wanted.max(BATCH);
    let limit = i64::try_from(batch).unwrap_or(i64::MAX);
    let mut sessions = Sessions::default();
    let mut after = page
        .cursor
        .map(|Cursor { at, id }| (at.as_microsecond(), id.uuid()));
    loop {
        let mut conditions = Conditions::of(filter);
        if let Some((at, id)) = after {
            if filter.order == Order::Updated {
                conditions.add("hour <= ?", Parameter::Number(hour_of(at)));
            }
            let time = conditions.place(Parameter::Number(at));
            let tie = conditions.place(Parameter::Id(id));
            conditions
                .sql
                .push(format!("({column}, id) < ({time}, {tie})"));
        }
        let rows = conditions.select(client, filter.order, limit).await?;
        for row in &rows {
            after = Some((row.try_get(7)?, row.try_get(8)?));
            let found = found(client, row).await?;
            if found.stored.is_none() || filter.matches(&found.meta) {
                sessions.add(found, row.try_get(6)?);
            }
            if sessions.metas.len() >= wanted {
                return Ok(sessions);
            }
        }
        if rows.len() < batch {
            return Ok(sessions);
        }
    }
}

/// Counts the sessions of the store, and those of a project.
async fn counts(client: &Client, project: Option<&ProjectIds>) -> Answer<(Counts, Counts)> {
    let sql = format!(
        "SELECT project, state, count(*) FROM tertulia_session WHERE state < {PURGED} GROUP BY 1, 2"
    );
    let wanted: Option<HashSet<i64>> = project.map(|ids| ids.iter().map(key).collect());
    let (mut all, mut here) = (Counts::default(), Counts::default());
    for row in query(client, &sql, &[]).await? {
        let project: Option<i64> = row.try_get(0)?;
        let count: i64 = row.try_get(2)?;
        let counted = match row.try_get::<_, i16>(1)? {
            0 => Counts {
                live: count,
                trashed: 0,
            },
            _ => Counts {
                live: 0,
                trashed: count,
            },
        };
        all = all + counted;
        let is_here = match (&wanted, project) {
            (None, _) => true,
            (Some(wanted), Some(project)) => wanted.contains(&project),
            (Some(_), None) => false,
        };
        if is_here {
            here = here + counted;
        }
    }
    Ok((all, here))
}

/// Reports sessions of which the last entry is missing. The rest of a log is left to a check.
async fn missing_ends(client: &Client, sessions: &mut Sessions, limit: usize) -> Answer<()> {
    let shown = sessions.logs.iter().zip(&sessions.metas).take(limit);
    let (logs, heads): (Vec<Uuid>, Vec<i64>) = shown
        .map(|(log, meta)| (*log, number(meta.head.seq)))
        .unzip();
    let sql = "SELECT entry.session FROM unnest($1, $2) AS wanted(log, seq)
               JOIN tertulia_entry AS entry ON entry.session = wanted.log AND entry.seq = wanted.seq";
    let values: [Value<'_>; 2] = [(&logs, Type::UUID_ARRAY), (&heads, Type::INT8_ARRAY)];
    let mut ends: HashSet<Uuid> = HashSet::new();
    for row in query(client, sql, &values).await? {
        ends.insert(row.try_get(0)?);
    }
    for (log, meta) in sessions.logs.iter().zip(&sessions.metas).take(limit) {
        if !ends.contains(log) {
            sessions.damaged.push(DamagedSession {
                id: Some(meta.id),
                reason: format!("entry {} is missing", meta.head.seq),
            });
        }
    }
    Ok(())
}
