//! Checks every byte, and rebuilds derived data.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::engine::SqliteEngine;
use super::rows::{
    Found, Say, base_of, find_no, put_snapshot_if_due, read_lines, refold_from, row_of, summary_at,
};
use super::search::catch_up;
use super::unsent;
use super::{open, pack};
use crate::selection::{PURGED, id_from, state_of};
use crate::{Progress, Rebuilt, Report, StoreError, StoreResult, chain};
use tertulia_core::entry::{Head, Kind};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

impl SqliteEngine {
    pub(super) fn look(&mut self, progress: &Progress) -> StoreResult<Report> {
        // One read transaction: a consistent state, whatever is written meanwhile.
        let say = self.say();
        let mut report = match self.connection.unchecked_transaction() {
            Ok(snapshot) => check_rows(&snapshot, &say, progress)?,
            Err(error) => Report {
                faults: vec![damage_or(&say, error)?],
                ..Report::default()
            },
        };
        if let Ok(index) = self.index() {
            report.faults.extend(index.fault());
        }
        if report.is_clean() {
            report.faults.extend(self.missing_entries()?);
        }
        Ok(report)
    }

    pub(super) fn derive_anew(&mut self, progress: &Progress) -> StoreResult<Rebuilt> {
        let sessions = session_numbers(&self.connection, &self.say(), &mut Report::default())?;
        let total = sessions.len() as u64;
        let mut rebuilt = Rebuilt::default();
        self.write(|transaction, say| {
            transaction
                .execute_batch("DELETE FROM snapshot")
                .map_err(say.of("cannot rebuild"))?;
            for (no, id) in bases_first(transaction, say, sessions)? {
                progress.at("rebuilding", rebuilt.sessions, total);
                rebuilt.sessions += rebuild_session(transaction, say, no, id)?;
            }
            recount(transaction).map_err(say.of("cannot rebuild"))
        })?;
        let (connection, index, say) = self.with_index()?;
        index.clear()?;
        catch_up(connection, index, &say, progress)?;
        rebuilt.entries = connection
            .query_row("SELECT count(*) FROM entry WHERE session > 0", [], |row| {
                row.get::<_, i64>(0)
            })
            .map(i64::cast_unsigned)
            .map_err(say.of("cannot count"))?;
        Ok(rebuilt)
    }
}

/// Orders sessions so that each comes after the session that it continues.
fn bases_first(
    connection: &Connection,
    say: &Say,
    sessions: Vec<(i64, SessionId)>,
) -> StoreResult<Vec<(i64, SessionId)>> {
    let mut waiting: BTreeMap<i64, SessionId> = sessions.into_iter().collect();
    let mut ordered = Vec::with_capacity(waiting.len());
    while let Some((no, _)) = waiting.first_key_value() {
        let mut chain = Vec::new();
        let mut next = Some(*no);
        // A session that was taken already is not waiting any more: circles end.
        while let Some((no, id)) = next.and_then(|no| waiting.remove_entry(&no)) {
            chain.push((no, id));
            next = base_of(connection, say, no)?.map(|(base, _)| base);
        }
        ordered.extend(chain.into_iter().rev());
    }
    Ok(ordered)
}

fn check_rows(connection: &Connection, say: &Say, progress: &Progress) -> StoreResult<Report> {
    let mut report = Report::default();
    report.faults.extend(structure_faults(connection, say)?);
    let sessions = session_numbers(connection, say, &mut report)?;
    let total = sessions.len() as u64;
    for (done, (no, id)) in sessions.into_iter().enumerate() {
        progress.at("checking", done as u64, total);
        // An unreadable session must not hide the others.
        match check_session(connection, say, no, id, &mut report) {
            Err(error) if error.is_damage() => {
                report.faults.push(format!("session {id}: {error}"));
            }
            checked => checked?,
        }
    }
    check_leftovers(connection, say, &mut report)?;
    progress.at("checking", total, total);
    Ok(report)
}

/// Describes the damage that an error indicates. Fails with the error if it is none, such as a busy
/// database or too many open files.
fn damage_or(say: &Say, error: rusqlite::Error) -> StoreResult<String> {
    let fault = format!("the database is damaged: {error}");
    match error.sqlite_error_code() {
        // Not an SQLite error: a value of an unexpected type.
        None => Ok(fault),
        Some(_) => match say.of("cannot check the database")(error) {
            trouble if trouble.is_damage() => Ok(fault),
            // A missing table or column.
            StoreError::Failed { .. } => Ok(fault),
            trouble => Err(trouble),
        },
    }
}

/// Returns the faults that SQLite itself finds.
pub(super) fn structure_faults(connection: &Connection, say: &Say) -> StoreResult<Vec<String>> {
    match layout_is_sound(connection) {
        Ok(true) => {}
        Ok(false) => return Ok(vec!["the layout of the database is damaged".to_owned()]),
        Err(error) => return Ok(vec![damage_or(say, error)?]),
    }
    let read = || -> rusqlite::Result<Vec<String>> {
        connection
            .prepare("PRAGMA integrity_check(20)")?
            .query_map([], |row| row.get(0))?
            .collect()
    };
    Ok(match read() {
        Ok(lines) if lines == ["ok"] => Vec::new(),
        Ok(lines) => lines
            .into_iter()
            .map(|line| format!("the database is damaged: {}", line.trim()))
            .collect(),
        Err(error) => vec![damage_or(say, error)?],
    })
}

/// Returns true if the schema is the expected one.
fn layout_is_sound(connection: &Connection) -> rusqlite::Result<bool> {
    let fresh = Connection::open_in_memory()?;
    open::lay_out(&fresh)?;
    if pack::format(connection)? > open::PLAIN_FORMAT {
        fresh.execute_batch(pack::SCHEMA)?;
    }
    if unsent::is_there(connection)? {
        fresh.execute_batch(unsent::TABLE)?;
    }
    let laid_out = |connection: &Connection| -> rusqlite::Result<Vec<(String, Option<String>)>> {
        connection
            .prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    };
    Ok(laid_out(connection)? == laid_out(&fresh)?)
}

/// Limit for session numbers that cannot be read at all, in one check.
const MOST_UNREADABLE: u32 = 10_000;

/// Returns all sessions, looked up one by one: an unreadable row must not hide the others.
pub(super) fn session_numbers(
    connection: &Connection,
    say: &Say,
    report: &mut Report,
) -> StoreResult<Vec<(i64, SessionId)>> {
    let last = connection.query_row("SELECT coalesce(max(no), 0) FROM session", [], |row| {
        row.get::<_, i64>(0)
    });
    let last = match last {
        Ok(last) => last,
        Err(error) => {
            report.faults.push(damage_or(say, error)?);
            last_reachable(connection)
        }
    };
    let mut sessions = Vec::new();
    let mut from = Some(1);
    let mut unreadable = 0;
    // Seeks the next row instead of counting up to `last`: a damaged number may be astronomic.
    while let Some(at) = from.filter(|at| *at <= last && unreadable < MOST_UNREADABLE) {
        let next = connection
            .prepare_cached("SELECT no, id FROM session WHERE no >= ?1 ORDER BY no LIMIT 1")
            .and_then(|mut select| {
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, [u8; 16]>(1)));
                select.query_row([at], row)
            });
        let reached = match next {
            // Rows out of order lead back to a row before, for ever.
            Ok((no, _)) if no < at => break,
            Ok((no, Ok(id))) => {
                sessions.push((no, id_from(id)));
                no
            }
            Ok((no, Err(error))) => {
                report.faults.push(damaged_row(no, &error));
                no
            }
            Err(rusqlite::Error::QueryReturnedNoRows) => break,
            Err(error) => {
                unreadable += 1;
                report.faults.push(damaged_row(at, &error));
                at
            }
        };
        from = reached.checked_add(1);
    }
    // A damaged number puts a row out of order, where no search finds it, nor the rows after it.
    sessions.extend(sessions_in_scan(connection));
    sessions.sort_unstable();
    sessions.dedup_by_key(|(no, _)| *no);
    Ok(sessions)
}

/// Returns the sessions that reading the whole table gives, whatever the order of its rows.
fn sessions_in_scan(connection: &Connection) -> Vec<(i64, SessionId)> {
    let mut sessions = Vec::new();
    let mut read = || -> rusqlite::Result<()> {
        let mut select = connection.prepare("SELECT no, id FROM session NOT INDEXED")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if let Ok(id) = row.get::<_, [u8; 16]>(1) {
                sessions.push((row.get(0)?, id_from(id)));
            }
        }
        Ok(())
    };
    // Damage ends the scan, not what it has found.
    let _ = read();
    sessions
}

fn damaged_row(no: i64, error: &rusqlite::Error) -> String {
    format!("the row of session number {no} is damaged: {error}")
}

/// Returns the last session number readable from the start of the table, for a table with a damaged
/// end.
fn last_reachable(connection: &Connection) -> i64 {
    let mut last = 0;
    let mut read = || -> rusqlite::Result<()> {
        let mut select = connection.prepare("SELECT no FROM session ORDER BY no")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
        }
        Ok(())
    };
    let _ = read();
    last
}

fn check_session(
    connection: &Connection,
    say: &Say,
    no: i64,
    id: SessionId,
    report: &mut Report,
) -> StoreResult<()> {
    let Some(found) = find_no(connection, say, no)? else {
        return Ok(());
    };
    report.sessions += u64::from(found.state != PURGED);
    let (start, mut folded) = match found.base {
        None => (Head::START, SessionMeta::blank(id)),
        Some((base, base_seq)) => match find_no(connection, say, base)? {
            Some(base) => {
                let meta = summary_at(connection, say, &base, base_seq)?;
                (meta.head, meta)
            }
            None => {
                report.faults.push(format!(
                    "session {id}: the session that it continues is gone"
                ));
                (
                    Head {
                        seq: base_seq,
                        ..Head::START
                    },
                    SessionMeta::blank(id),
                )
            }
        },
    };
    let lines = read_lines(
        connection,
        say,
        (no, None),
        start.seq,
        Seq(u64::MAX),
        usize::MAX,
    )?;
    report.entries += lines.len() as u64;
    let stored = stored_row(connection, no).and_then(Result::ok);
    let known = stored.as_ref().map_or(Seq::START, |row| row.head.seq);
    let known = (found.state != PURGED).then_some(known);
    let mut log = chain::verify(id, start, &lines, known);
    if found.state == PURGED {
        report.damage.append(&mut log.damage);
        return Ok(());
    }
    log.entries.iter().for_each(|entry| folded.apply(entry));
    // A lost or altered opening does not change the session's id.
    folded.id = id;
    if let Some(stored) = stored {
        if log.damage.is_empty() && !same_row(connection, &found, &stored, &folded) {
            report.faults.push(format!(
                "session {id}: its row in the list is not what its log says"
            ));
        }
    } else {
        report
            .faults
            .push(format!("session {id}: its row in the list is unreadable"));
    }
    report.damage.append(&mut log.damage);
    Ok(())
}

fn stored_row(connection: &Connection, no: i64) -> Option<Result<SessionMeta, serde_json::Error>> {
    let row: String = connection
        .query_row("SELECT row FROM session WHERE no = ?1", [no], |row| {
            row.get(0)
        })
        .ok()?;
    Some(SessionMeta::from_json(row.as_bytes()))
}

fn same_row(
    connection: &Connection,
    found: &Found,
    stored: &SessionMeta,
    folded: &SessionMeta,
) -> bool {
    let columns = connection.query_row(
        "SELECT kind, team, project, title, state, updated, changed FROM session WHERE no = ?1",
        [found.no],
        |row| {
            Ok(row.get::<_, String>(0)? == folded.kind.name()
                && row.get::<_, Option<String>>(1)? == folded.team
                && row.get::<_, Option<String>>(2)? == folded.project
                && row.get::<_, Option<String>>(3)? == folded.title
                && row.get::<_, i64>(4)? == state_of(folded)
                && row.get::<_, i64>(5)? == folded.updated_at.as_microsecond()
                && row.get::<_, Option<i64>>(6)?
                    == folded.changed_at().map(jiff::Timestamp::as_microsecond))
        },
    );
    stored.is_same_row(folded) && columns.unwrap_or(false)
}

fn check_leftovers(connection: &Connection, say: &Say, report: &mut Report) -> StoreResult<()> {
    let orphans = connection.query_row(
        "SELECT count(*) FROM entry WHERE session > 0 AND session NOT IN (SELECT no FROM session)",
        [],
        |row| row.get::<_, i64>(0),
    );
    match orphans {
        Ok(0) => {}
        Ok(count) => report
            .faults
            .push(format!("{count} entries belong to no session")),
        Err(error) => report.faults.push(damage_or(say, error)?),
    }
    // A project whose last session was removed may still have a row of zeros.
    let right =
        "SELECT coalesce(project, '') AS project, sum(state = 0) AS live, sum(state = 1) AS trashed
                 FROM session WHERE state < 2 GROUP BY 1";
    let counted = "SELECT project, live, trashed FROM tally WHERE live != 0 OR trashed != 0";
    let differs = |one: &str, other: &str| {
        let sql = format!("SELECT count(*) FROM ({one} EXCEPT {other})");
        let count = connection.query_row(&sql, [], |row| row.get::<_, i64>(0));
        !matches!(count, Ok(0))
    };
    if differs(right, counted) || differs(counted, right) {
        report
            .faults
            .push("the number of sessions per project is not what the sessions say".into());
    }
    Ok(())
}

fn rebuild_session(
    transaction: &Connection,
    say: &Say,
    no: i64,
    id: SessionId,
) -> StoreResult<u64> {
    let Some(found) = find_no(transaction, say, no)? else {
        return Ok(0);
    };
    // A fork begins with the metadata of its base, which is rebuilt before it.
    let start = match found.base {
        None => SessionMeta::blank(id),
        Some((base, seq)) => match find_no(transaction, say, base)? {
            Some(base) => summary_at(transaction, say, &base, seq)?,
            None => SessionMeta::blank(id),
        },
    };
    let meta = refold_from(transaction, say, (no, None), start, id, |meta, seq| {
        put_snapshot_if_due(transaction, no, meta, seq)
    })?;
    if found.state == PURGED {
        return Ok(0);
    }
    let write = || -> rusqlite::Result<()> {
        transaction
            .prepare_cached(
                "UPDATE session SET kind = ?2, team = ?3, project = ?4, title = ?5, state = ?6, updated = ?7,
                   changed = ?8, row = ?9 WHERE no = ?1",
            )?
            .execute(params![
                no,
                Kind::name(meta.kind),
                meta.team,
                meta.project,
                meta.title,
                state_of(&meta),
                meta.updated_at.as_microsecond(),
                meta.changed_at().map(jiff::Timestamp::as_microsecond),
                row_of(&meta)?,
            ])?;
        Ok(())
    };
    write().map_err(say.of("cannot rebuild"))?;
    Ok(1)
}

fn recount(transaction: &Connection) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DELETE FROM tally;
         INSERT INTO tally SELECT coalesce(project, ''), sum(state = 0), sum(state = 1)
         FROM session WHERE state < 2 GROUP BY 1;",
    )
}
