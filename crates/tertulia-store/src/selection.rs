//! Lists and lookups in SQL, over a table with one row per session. SQLite's `session` and the
//! catalogue of a folder of files share the columns that are named here.

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use serde::Deserialize;

use super::paging::Counts;
use tertulia_core::id::{SHORT, SessionId};
use tertulia_core::query::{Cursor, Filter, Lookup, Order, Page, ProjectIds, Trash};
use tertulia_core::session::{IMPORTED_TAG, LONG, LONG_TAG, SessionMeta};
use tertulia_core::sizes::SizedSession;

/// State of a row of which only a shared prefix remains. 0 is live, 1 in the trash.
pub(super) const PURGED: i64 = 2;

/// Maximum number of project ids with one select each.
const FEW: usize = 16;

/// Maximum number of rows that a lookup finds.
const LONGEST_CHOICE: usize = 1000;

/// Condition on rows with a tag.
const TAGGED: &str = "EXISTS (SELECT 1 FROM json_each(row, '$.tags') WHERE value = ?)";

/// A table of sessions.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Condition on rows that a list can show.
    pub(super) listed: &'static str,
    /// Condition on a row whose session was imported under an id, and its value.
    pub(super) original: fn(&str) -> (&'static str, String),
}

/// An SQL query for `row` and `no` of sessions, and its values.
pub(super) struct Select {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Table {
    /// Selects the rows of a page and one more, if there is one.
    pub(super) fn page(&self, filter: &Filter, page: &Page) -> Select {
        let mut conditions = Conditions::of(filter);
        conditions.sql.push(self.listed.to_owned());
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
            "SELECT row, no, {column}, id FROM {} WHERE {}",
            self.name,
            conditions.sql.join(" AND ")
        );
        let sql = format!(
            "{} ORDER BY {column} DESC, id DESC LIMIT {}",
            of_project(&every, filter.project.as_ref(), &mut conditions.values),
            limit.saturating_add(1)
        );
        Select {
            sql,
            values: conditions.values,
        }
    }

    /// Selects the rows that may match a lookup, newest first. The caller checks them: digits alone
    /// may match where the text with its hyphens does not.
    pub(super) fn find(&self, lookup: &Lookup) -> Select {
        let name = self.name;
        let (condition, values): (String, Vec<Value>) = match lookup {
            Lookup::Id(id) => (
                "id = ?1".to_owned(),
                vec![id.uuid().as_bytes().to_vec().into()],
            ),
            Lookup::Title(title) => ("title = ?1".to_owned(), vec![title.clone().into()]),
            Lookup::Original(id) => {
                let (condition, value) = (self.original)(id);
                (condition.to_owned(), vec![value.into()])
            }
            Lookup::Part(part) => {
                let digits: String = part.chars().filter(|c| *c != '-').collect();
                let backwards: String = digits.chars().rev().collect();
                let (low, high) = range(&digits);
                let (end_low, end_high) = range(&backwards);
                // The short form begins inside the id, so no index order helps: scans all ids in an
                // index that holds nothing else.
                (
                    format!(
                        "(id BETWEEN ?1 AND ?2 OR id_end BETWEEN ?3 AND ?4
                          OR id IN (SELECT id FROM {name} WHERE substr(hex(id), ?5, ?6) = ?7))"
                    ),
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
        let listed = self.listed;
        let sql = format!(
            "SELECT row, no FROM {name} WHERE {condition} AND state < {PURGED} AND {listed}
             ORDER BY updated DESC, id DESC LIMIT {LONGEST_CHOICE}"
        );
        Select { sql, values }
    }
}

/// Counts the sessions of the store, and those of a project, from the table `tally`.
pub(super) fn counts(
    connection: &Connection,
    project: Option<&ProjectIds>,
) -> rusqlite::Result<(Counts, Counts)> {
    let sums = "SELECT coalesce(sum(live), 0), coalesce(sum(trashed), 0) FROM tally";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Counts {
            live: row.get(0)?,
            trashed: row.get(1)?,
        })
    };
    let all = connection
        .prepare_cached(sums)?
        .query_row(params![], read)?;
    let Some(ids) = project else {
        return Ok((all, all));
    };
    let mut select = connection.prepare_cached(&format!("{sums} WHERE project = ?1"))?;
    let mut here = Counts::default();
    for id in ids.iter() {
        here = here + select.query_row([id], read)?;
    }
    Ok((all, here))
}

/// SQL conditions and their values, in order.
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

    /// Returns the condition that the working directory is one of the folders, or below one.
    fn within(&mut self, folders: &[String]) -> String {
        let cwd = "row ->> '$.cwd'";
        let mut any = vec!["FALSE".to_owned()];
        for folder in folders {
            self.values.push(folder.clone().into());
            let place = self.values.len();
            any.push(format!(
                "{cwd} = ?{place} OR substr({cwd}, 1, length(?{place}) + 1) = ?{place} || '/'"
            ));
        }
        format!("({})", any.join(" OR "))
    }

    fn of(filter: &Filter) -> Conditions {
        let mut conditions = Conditions::default();
        match filter.trash {
            Trash::Without => conditions.add("state = ?", 0),
            Trash::Only => conditions.add("state = ?", 1),
            Trash::With => conditions.add("state < ?", PURGED),
        }
        if let Some(tree) = &filter.worktree {
            let paths = conditions.within(&tree.paths);
            let others = conditions.within(&tree.others);
            conditions.sql.push(format!("{paths} AND NOT {others}"));
        }
        if let Some(kind) = filter.kind {
            conditions.add("kind = ?", kind.name().to_owned());
        }
        if let Some(team) = &filter.team {
            conditions.add("team = ?", team.clone());
        }
        if let Some(author) = &filter.author {
            conditions.add(&TAGGED.replace("tags", "authors"), author.clone());
        }
        if let Some(tag) = &filter.tag {
            let mut any = vec![TAGGED.to_owned()];
            if filter.auto_tags {
                any.push(TAGGED.replace("tags", "uses"));
                any.extend((tag == LONG_TAG).then(|| format!("row ->> '$.messages' >= {LONG}")));
                let imported = "row ->> '$.source.id' IS NOT NULL".to_owned();
                any.extend((tag == IMPORTED_TAG).then_some(imported));
            }
            conditions.add(&format!("({})", any.join(" OR ")), tag.clone());
        }
        if let Some(parent) = filter.parent {
            conditions.add(
                "(row ->> '$.parent.id' = ? OR row ->> '$.merged.id' = ?)",
                parent.to_string(),
            );
        }
        if let Some(since) = filter.since {
            conditions.add("updated >= ?", since.as_microsecond());
        }
        if let Some(until) = filter.until {
            conditions.add("updated < ?", until.as_microsecond());
        }
        if filter.sealed {
            // Every sealed session shows such a project, and there is an index on projects.
            let range = "project >= 'sealed:' AND project < 'sealed;'".to_owned();
            conditions.sql.push(range);
        }
        if filter.order == Order::Changed {
            conditions.sql.push("changed IS NOT NULL".into());
        }
        conditions
    }
}

/// Returns the select `every`, which ends in an open `WHERE`, narrowed to a project; adds the
/// project ids to `values`.
///
/// A few ids become one ordered select each, which SQLite merges by the index instead of sorting
/// all rows.
fn of_project(every: &str, project: Option<&ProjectIds>, values: &mut Vec<Value>) -> String {
    let Some(ids) = project else {
        return every.to_owned();
    };
    let places: Vec<String> = ids
        .iter()
        .map(|id| {
            values.push(id.to_owned().into());
            format!("?{}", values.len())
        })
        .collect();
    if places.is_empty() || places.len() > FEW {
        return format!("{every} AND project IN ({})", places.join(", "));
    }
    places
        .iter()
        .map(|place| format!("{every} AND project = {place}"))
        .collect::<Vec<_>>()
        .join(" UNION ALL ")
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

/// Reverses the digits of an id, so that its end can be looked up as a prefix.
pub(super) fn reversed(id: SessionId) -> [u8; 16] {
    let mut bytes = *id.uuid().as_bytes();
    bytes.reverse();
    bytes.map(|byte| byte.rotate_left(4))
}

/// The part of a session's metadata that its size needs.
#[derive(Deserialize)]
pub(super) struct Measured {
    /// Size of the log with what it shares.
    pub(super) bytes: u64,
    parent: Option<ParentId>,
}

#[derive(Deserialize)]
struct ParentId {
    id: SessionId,
}

/// Returns the session of a row; `None` if only a shared prefix remains of it.
pub(super) fn sized_session(
    id: SessionId,
    title: Option<String>,
    state: i64,
    measured: Option<Measured>,
) -> Option<SizedSession> {
    let parent = measured.and_then(|it| it.parent);
    (state < PURGED).then_some(SizedSession {
        id,
        title,
        parent: parent.map(|parent| parent.id),
        trashed: state > 0,
    })
}

/// Converts a blob to a session id.
pub(super) fn id_from(bytes: [u8; 16]) -> SessionId {
    SessionId::new(uuid::Uuid::from_bytes(bytes))
}

/// Returns the state of a session's row.
pub(super) fn state_of(meta: &SessionMeta) -> i64 {
    i64::from(meta.trashed_at.is_some())
}
