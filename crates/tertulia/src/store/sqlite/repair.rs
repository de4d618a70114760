//! Salvage: a new database with everything that is readable takes the place of the damaged one, which
//! is kept beside it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::Location;
use super::engine::{Engine, PURGED};
use super::list::id_from;
use crate::entry::{Body, Entry, Head, Origin};
use crate::id::{Seq, SessionId};
use crate::session::{Line, Summary};
use crate::store::salvage::{Known, in_words, salvage};
use crate::store::{NewSession, Progress, Report, StoreError, StoreResult, index, place};

/// What can be known of a session in a damaged database.
struct Remains {
    id: SessionId,
    base: Option<(i64, Seq)>,
    state: i64,
    last: Seq,
    entries: BTreeMap<Seq, i64>,
}

impl Engine {
    pub(super) fn check_and_repair(
        &mut self,
        now: Timestamp,
        progress: &Progress,
    ) -> StoreResult<Report> {
        let mut report = self.check(progress)?;
        if report.is_clean() {
            return Ok(report);
        }
        let structure = !structure_is_sound(&self.connection);
        if report.damage.is_empty() && !structure {
            let rebuilt = self.rebuild(progress)?;
            report.repaired.push(format!(
                "the list rows of {} sessions and the search index were derived anew",
                rebuilt.sessions
            ));
            return Ok(report);
        }
        let Location::File(path) = self.location.clone() else {
            return Err(StoreError::damaged(
                "the store in memory",
                "it cannot be repaired",
            ));
        };
        self.salvage_into_new(&path, now, progress, &mut report)?;
        Ok(report)
    }

    fn salvage_into_new(
        &mut self,
        path: &Path,
        now: Timestamp,
        progress: &Progress,
        report: &mut Report,
    ) -> StoreResult<()> {
        let temporary = with_suffix(path, &format!("-repaired-{}", std::process::id()));
        remove_database(&temporary);
        let mut fresh = Engine::open(&Location::File(temporary.clone()), &self.claims)?;
        let remains = remains(&self.connection);
        let total = remains.len() as u64;
        let mut moved = HashMap::new();
        for (done, (no, session)) in remains.iter().enumerate() {
            progress.at("salvaging", done as u64, total);
            move_session(
                &self.connection,
                &mut fresh,
                *no,
                session,
                &remains,
                &mut moved,
                now,
                report,
            )?;
        }
        drop(fresh);
        let kept = with_suffix(path, &format!("-damaged-{}", now.as_second()));
        self.swap(path, &temporary, &kept)?;
        report
            .repaired
            .push(format!("{} sessions were salvaged", moved.len()));
        report
            .repaired
            .push(format!("the damaged store is kept as {}", kept.display()));
        Ok(())
    }

    /// Puts the repaired file in the place of the damaged one. Writers that wait in the queue notice
    /// that the file is another and open it anew.
    fn swap(&mut self, path: &Path, repaired: &Path, kept: &Path) -> StoreResult<()> {
        // Dropped first: a connection would look for its log under the old name.
        self.close();
        let rename = |from: &Path, to: &Path| {
            fs::rename(from, to).map_err(|error| place::trouble(from, "cannot rename", error))
        };
        rename(path, kept)?;
        for suffix in ["-wal", "-shm"] {
            let (from, to) = (with_suffix(path, suffix), with_suffix(kept, suffix));
            if from.exists() {
                rename(&from, &to)?;
            }
        }
        rename(repaired, path)?;
        remove_database(repaired);
        if let Some(search) = self.location.beside("search") {
            index::discard(&search);
        }
        place::sync_folder_of(path)?;
        self.reopen()
    }
}

fn structure_is_sound(connection: &Connection) -> bool {
    super::check::structure_faults(connection).is_empty()
}

/// Everything that can be reached row by row: by the tree of the table, without trusting its indexes.
fn remains(connection: &Connection) -> BTreeMap<i64, Remains> {
    let mut sessions = BTreeMap::new();
    let highest = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap_or(0)
    };
    for no in 1..=highest("SELECT coalesce(max(no), 0) FROM session") {
        if let Some(session) = remains_of_row(connection, no) {
            sessions.insert(no, session);
        }
    }
    for n in 1..=highest("SELECT coalesce(max(n), 0) FROM entry") {
        let place = connection
            .prepare_cached("SELECT session, seq FROM entry WHERE n = ?1")
            .and_then(|mut select| {
                select
                    .query_row([n], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                    })
                    .optional()
            });
        let Ok(Some((no, seq))) = place else { continue };
        if no == 0 {
            continue;
        }
        if let Some(session) = sessions.get_mut(&no) {
            session.entries.insert(Seq(seq.cast_unsigned()), n);
        } else if let Some(session) = remains_of_opening(connection, n) {
            // The row is gone, but the first entry says which session it opens.
            sessions.insert(no, session);
        }
    }
    sessions
}

fn remains_of_row(connection: &Connection, no: i64) -> Option<Remains> {
    connection
        .prepare_cached("SELECT id, base, base_seq, state, row FROM session WHERE no = ?1")
        .and_then(|mut select| {
            select.query_row([no], |row| {
                let base: Option<i64> = row.get(1)?;
                let base_seq: Option<i64> = row.get(2)?;
                let summary: Option<Summary> = row
                    .get::<_, String>(4)
                    .ok()
                    .and_then(|json| serde_json::from_str(&json).ok());
                let state: i64 = row.get(3)?;
                Ok(Remains {
                    id: id_from(row.get(0)?),
                    base: base
                        .zip(base_seq)
                        .map(|(no, seq)| (no, Seq(seq.cast_unsigned()))),
                    state,
                    last: summary
                        .filter(|_| state != PURGED)
                        .map_or(Seq::START, |summary| summary.head.seq),
                    entries: BTreeMap::new(),
                })
            })
        })
        .ok()
}

fn remains_of_opening(connection: &Connection, n: i64) -> Option<Remains> {
    let line = line_of(connection, n)?;
    let entry = Entry::decode(&line).ok()?;
    let (id, base) = match &entry.body {
        Body::Created(created) => (created.session, None),
        Body::Forked(forked) => (forked.session, Some(forked.from.clone())),
        _ => return None,
    };
    let base = match base {
        None => None,
        Some(origin) => {
            let no = connection
                .query_row(
                    "SELECT no FROM session WHERE id = ?1",
                    [origin.id.uuid().as_bytes()],
                    |row| row.get(0),
                )
                .ok()?;
            Some((no, origin.seq))
        }
    };
    Some(Remains {
        id,
        base,
        state: 0,
        last: entry.seq,
        entries: BTreeMap::from([(entry.seq, n)]),
    })
}

fn line_of(connection: &Connection, n: i64) -> Option<Vec<u8>> {
    connection
        .prepare_cached("SELECT CAST(line AS BLOB) FROM entry WHERE n = ?1")
        .and_then(|mut select| select.query_row([n], |row| row.get(0)))
        .ok()
}

/// Salvages one session into the new database, its base first.
#[expect(
    clippy::too_many_arguments,
    reason = "one step of a walk that carries its whole state"
)]
fn move_session(
    old: &Connection,
    fresh: &mut Engine,
    no: i64,
    session: &Remains,
    all: &BTreeMap<i64, Remains>,
    moved: &mut HashMap<i64, SessionId>,
    now: Timestamp,
    report: &mut Report,
) -> StoreResult<()> {
    if moved.contains_key(&no) {
        return Ok(());
    }
    moved.insert(no, session.id);
    let mut origin = None;
    let mut parents = (Head::START, Head::START);
    if let Some((base_no, base_seq)) = session.base {
        if let Some(base) = all.get(&base_no) {
            move_session(old, fresh, base_no, base, all, moved, now, report)?;
            let is = head_at(fresh, base.id, base_seq)?;
            parents = (is, fork_point(old, session).unwrap_or(is));
            origin = Some(Origin {
                id: base.id,
                seq: is.seq,
                hash: is.hash,
            });
        } else {
            report.lost.push(format!(
                "session {}: the beginning that it shared is gone",
                session.id
            ));
        }
    }
    let mut lines = BTreeMap::new();
    for (seq, n) in &session.entries {
        if let Some(bytes) = line_of(old, *n) {
            lines.insert(*seq, Line { seq: *seq, bytes });
        }
    }
    let known = Known {
        session: session.id,
        parent: parents.0,
        parent_was: parents.1,
        last: session.last,
        now,
    };
    let salvaged = salvage(&known, &lines);
    report.lost.extend(in_words(session.id, &salvaged));
    if salvaged.entries.is_empty() {
        return Ok(());
    }
    fresh.create(&NewSession {
        id: session.id,
        base: origin,
        entries: salvaged.entries,
    })?;
    if session.state == PURGED {
        fresh.hide(session.id)?;
    }
    Ok(())
}

fn head_at(fresh: &Engine, id: SessionId, seq: Seq) -> StoreResult<Head> {
    let lines = fresh.read_any(id, seq.back(1), 1)?;
    let entry = lines
        .first()
        .and_then(|line| Entry::decode(&line.bytes).ok());
    entry
        .map(|entry| entry.head())
        .ok_or_else(|| StoreError::damaged(format!("session {id}"), "its fork point is gone"))
}

/// The head that the fork itself says it continues.
fn fork_point(old: &Connection, session: &Remains) -> Option<Head> {
    let line = line_of(old, *session.entries.values().next()?)?;
    match Entry::decode(&line).ok()?.body {
        Body::Forked(forked) => Some(Head {
            seq: forked.from.seq,
            hash: forked.from.hash,
        }),
        _ => None,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove_database(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-lock", "-search"] {
        let _ = fs::remove_file(with_suffix(path, suffix));
    }
    let _ = fs::remove_dir(with_suffix(path, "-open"));
}
