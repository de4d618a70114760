//! Queries.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::Ledger;
use super::record::{ALONE, COPY, OWNER, TAG_BORDER, id_of};
use crate::StoreResult;
use tertulia_core::entry::{Kind, ToolOutcome, Usage};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Trash};
use tertulia_core::stats::{Cell, FileUse, SLOT, SessionFacts, ToolUse};

/// Microseconds in a time slot.
const MICROS: i64 = SLOT * 1_000_000;

/// Entries that are found one by one in less time than it takes to read a ledger of usual size.
const FEW: i64 = 20_000;

/// One call that read or changed a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTouched {
    /// The session.
    pub session: SessionId,
    /// The message that made the call.
    pub seq: Seq,
    /// Time of the message.
    pub at: Timestamp,
    /// Name of the tool.
    pub tool: String,
    /// Path of the file.
    pub path: String,
    /// True if the call changes the file.
    pub written: bool,
    /// Outcome of the call, if its result was recorded.
    pub outcome: Option<ToolOutcome>,
}

/// The condition that a filter means, and its values.
struct Condition {
    sql: String,
    values: Vec<Value>,
}

impl Condition {
    /// Of sessions: project, kind, team, tag and trash.
    fn of_sessions(filter: &Filter) -> Condition {
        let mut made = Condition {
            sql: "TRUE".to_owned(),
            values: Vec::new(),
        };
        if let Some(ids) = &filter.project {
            let ids: Vec<&str> = ids.iter().collect();
            let places = vec!["?"; ids.len()].join(",");
            made.sql.push_str(&format!(" AND s.project IN ({places})"));
            made.values
                .extend(ids.into_iter().map(|id| Value::from(id.to_owned())));
        }
        let kind = filter.kind.map(|kind| kind.name().to_owned());
        for (column, value) in [("kind", kind), ("team", filter.team.clone())] {
            if let Some(value) = value {
                made.and(&format!("s.{column} = ?"), value);
            }
        }
        if let Some(tag) = &filter.tag {
            let tag = format!("{TAG_BORDER}{tag}{TAG_BORDER}");
            made.and("instr(s.tags, ?) > 0", tag);
        }
        match filter.trash {
            Trash::Without => made.sql.push_str(" AND NOT s.trashed"),
            Trash::Only => made.sql.push_str(" AND s.trashed"),
            Trash::With => {}
        }
        made
    }

    /// Of entries: the sessions that the filter selects, and the time.
    fn of_entries(filter: &Filter) -> Condition {
        let mut made = Condition::of_sessions(filter);
        for (sign, moment) in [(">=", filter.since), ("<", filter.until)] {
            if let Some(moment) = moment {
                made.and(&format!("e.at {sign} ?"), moment.as_microsecond());
            }
        }
        made
    }

    fn and(&mut self, sql: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.push(value.into());
    }
}

impl Ledger {
    /// Returns the messages and the usage of the entries that a filter selects, by session and by
    /// time. Every message and every usage event counts once.
    pub fn cells(&self, filter: &Filter) -> StoreResult<Vec<Cell>> {
        let Condition { sql, values } = Condition::of_entries(filter);
        // An event with copies has the highest of their figures.
        let figure = |name: &str, best: &str| {
            format!(
                "CASE e.counts WHEN {ALONE} THEN e.{name} WHEN {OWNER} THEN
                   (SELECT {best}(c.{name}) FROM entry c WHERE c.event = e.event) END"
            )
        };
        let sum = |name: &str| format!("coalesce(sum({}), 0)", figure(name, "max"));
        // An owner that does not tell its model is told by a copy.
        let model = format!(
            "CASE WHEN e.model IS NULL AND e.counts = {OWNER} THEN
               (SELECT c.model FROM entry c JOIN name t ON t.no = c.model WHERE c.event = e.event
                ORDER BY t.text LIMIT 1) ELSE e.model END"
        );
        let index = match self.are_few(filter).map_err(|error| self.trouble(error))? {
            true => "INDEXED BY entry_at",
            false => "",
        };
        let sql = format!(
            "SELECT s.id, g.slot, a.text, m.text, g.messages, g.input, g.output, g.cache_read,
               g.cache_written, g.estimated
             FROM (SELECT e.session, (e.at - (e.at % {MICROS} + {MICROS}) % {MICROS}) / {MICROS} AS slot,
                 e.agent, {model} AS model, sum(e.message) AS messages, {} AS input, {} AS output,
                 {} AS cache_read, {} AS cache_written, max({}) AS estimated
               FROM entry e {index} CROSS JOIN session s ON s.no = e.session
               WHERE e.counts <> {COPY} AND {sql} GROUP BY 1, 2, 3, 4) g
             JOIN session s ON s.no = g.session
             LEFT JOIN name a ON a.no = g.agent LEFT JOIN name m ON m.no = g.model",
            sum("input"),
            sum("output"),
            sum("cache_read"),
            sum("cache_written"),
            figure("estimated", "min"),
        );
        let mut names: HashSet<Arc<str>> = HashSet::new();
        let mut name = |text: Option<String>| {
            let text = text?;
            if let Some(known) = names.get(text.as_str()) {
                return Some(known.clone());
            }
            let new: Arc<str> = text.into();
            names.insert(new.clone());
            Some(new)
        };
        let cells = self.rows(&sql, values, |row| {
            Ok(Cell {
                session: session_in(row, 0)?,
                slot: row.get(1)?,
                agent: name(row.get(2)?),
                model: name(row.get(3)?),
                messages: row.get(4)?,
                usage: Usage {
                    input: row.get(5)?,
                    output: row.get(6)?,
                    cache_read: row.get(7)?,
                    cache_written: row.get(8)?,
                    estimated: row.get::<_, Option<bool>>(9)?.unwrap_or(false),
                },
            })
        });
        cells.map_err(|error| self.trouble(error))
    }

    /// Returns the sessions that a filter selects. Its times do not matter here.
    pub fn sessions(&self, filter: &Filter) -> StoreResult<Vec<SessionFacts>> {
        let Condition { sql, values } = Condition::of_sessions(filter);
        let sql = format!(
            "SELECT id, kind, team, project, cwd, first, last, trashed, messages FROM session s WHERE {sql}"
        );
        let sessions = self.rows(&sql, values, |row| {
            Ok(SessionFacts {
                id: session_in(row, 0)?,
                kind: kind_of(&row.get::<_, String>(1)?),
                team: row.get(2)?,
                project: row.get(3)?,
                cwd: row.get(4)?,
                first: row.get::<_, Option<i64>>(5)?.map(time_of),
                last: row.get::<_, Option<i64>>(6)?.map(time_of),
                trashed: row.get(7)?,
                messages: row.get(8)?,
            })
        });
        sessions.map_err(|error| self.trouble(error))
    }

    /// Returns the number of entries that could not be read, of the sessions that a filter selects.
    pub fn unread(&self, filter: &Filter) -> StoreResult<u64> {
        let Condition { sql, values } = Condition::of_sessions(filter);
        let sql = format!("SELECT coalesce(sum(unread), 0) FROM session s WHERE {sql}");
        let sum = self.rows(&sql, values, |row| row.get::<_, u64>(0));
        let sum = sum.map_err(|error| self.trouble(error))?;
        Ok(sum.first().copied().unwrap_or(0))
    }

    /// Returns the tools that were called, most calls first.
    pub fn tools(&self, filter: &Filter) -> StoreResult<Vec<ToolUse>> {
        let Condition { sql, values } = Condition::of_entries(filter);
        let sql = format!(
            "SELECT n.text, count(DISTINCT c.session), count(*), sum(c.outcome IS 'ok'),
               sum(c.outcome IS 'failed'), sum(c.outcome IS 'denied')
             FROM call c JOIN entry e ON e.session = c.session AND e.seq = c.seq
             JOIN session s ON s.no = c.session JOIN name n ON n.no = c.name
             WHERE e.counts <> {COPY} AND {sql} GROUP BY c.name ORDER BY 3 DESC, 1"
        );
        let tools = self.rows(&sql, values, |row| {
            let (calls, ok, failed, denied): (u64, u64, u64, u64) =
                (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
            Ok(ToolUse {
                name: row.get(0)?,
                sessions: row.get(1)?,
                calls,
                ok,
                failed,
                denied,
                unfinished: calls.saturating_sub(ok + failed + denied),
            })
        });
        tools.map_err(|error| self.trouble(error))
    }

    /// Returns the files that tools read or changed, most touched first. Calls that failed or were
    /// denied touched nothing.
    pub fn files(&self, filter: &Filter) -> StoreResult<Vec<FileUse>> {
        let Condition { sql, values } = Condition::of_entries(filter);
        let sql = format!(
            "SELECT n.text, count(DISTINCT f.session), sum(NOT f.written), sum(f.written), max(e.at)
             FROM file f JOIN call c ON c.session = f.session AND c.seq = f.seq AND c.n = f.n
             JOIN entry e ON e.session = f.session AND e.seq = f.seq
             JOIN session s ON s.no = f.session JOIN path n ON n.no = f.path
             WHERE e.counts <> {COPY} AND c.outcome IS NOT 'failed' AND c.outcome IS NOT 'denied'
               AND {sql} GROUP BY f.path ORDER BY count(*) DESC, 5 DESC, 1"
        );
        let files = self.rows(&sql, values, |row| {
            Ok(FileUse {
                path: row.get(0)?,
                sessions: row.get(1)?,
                reads: row.get(2)?,
                writes: row.get(3)?,
                last: time_of(row.get(4)?),
            })
        });
        files.map_err(|error| self.trouble(error))
    }

    /// Returns the calls that named a file, newest first. `path` begins at the root; calls that
    /// recorded only the end of a path, without the folder that it begins in, are found by it.
    pub fn touched(&self, path: &str) -> StoreResult<Vec<FileTouched>> {
        let sql = format!(
            "SELECT s.id, e.seq, e.at, t.text, n.text, f.written, c.outcome
             FROM path n JOIN file f ON f.path = n.no
             JOIN call c ON c.session = f.session AND c.seq = f.seq AND c.n = f.n
             JOIN entry e ON e.session = f.session AND e.seq = f.seq
             JOIN session s ON s.no = f.session JOIN name t ON t.no = c.name
             WHERE e.counts <> {COPY} AND (n.text = ?1 OR
               (substr(n.text, 1, 1) <> '/' AND substr(?1, -length(n.text) - 1) = '/' || n.text))
             ORDER BY e.at DESC, e.seq DESC"
        );
        let touched = self.rows(&sql, vec![Value::from(path.to_owned())], |row| {
            Ok(FileTouched {
                session: session_in(row, 0)?,
                seq: Seq(row.get(1)?),
                at: time_of(row.get(2)?),
                tool: row.get(3)?,
                path: row.get(4)?,
                written: row.get(5)?,
                outcome: row
                    .get::<_, Option<String>>(6)?
                    .as_deref()
                    .and_then(outcome_of),
            })
        });
        touched.map_err(|error| self.trouble(error))
    }

    /// Returns true if few entries are as new as the filter asks for: then an index finds them
    /// faster than reading all entries in their order. SQLite itself knows no numbers.
    fn are_few(&self, filter: &Filter) -> rusqlite::Result<bool> {
        let Some(since) = filter.since else {
            return Ok(false);
        };
        let count: i64 = self
            .connection
            .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM entry WHERE at >= ?1 LIMIT ?2)")?
            .query_row([since.as_microsecond(), FEW + 1], |row| row.get(0))?;
        Ok(count <= FEW)
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: Vec<Value>,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map(params_from_iter(values), |row| read(row))?;
        rows.collect()
    }
}

fn session_in(row: &Row<'_>, column: usize) -> rusqlite::Result<SessionId> {
    let bytes: [u8; 16] = row.get(column)?;
    Ok(id_of(bytes))
}

fn time_of(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn kind_of(name: &str) -> Kind {
    let kinds = [Kind::Chat, Kind::Team, Kind::Pair];
    let known = kinds.into_iter().find(|kind| kind.name() == name);
    known.unwrap_or_default()
}

fn outcome_of(name: &str) -> Option<ToolOutcome> {
    let outcomes = [
        ToolOutcome::Ok,
        ToolOutcome::Failed,
        ToolOutcome::Denied,
        ToolOutcome::Interrupted,
    ];
    outcomes.into_iter().find(|outcome| outcome.name() == name)
}
