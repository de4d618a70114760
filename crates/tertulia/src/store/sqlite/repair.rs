//! Salvage: a new database with everything that is readable takes the place of the damaged one, which
//! is kept beside it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::Location;
use super::engine::Engine;
use super::list::id_from;
use super::purge::make_husk;
use super::rows::{Found, PURGED, find, find_no, insert_log, read_lines};
use crate::entry::{Body, Entry, Head};
use crate::id::{Seq, SessionId};
use crate::session::{Line, Summary};
use crate::store::salvage::{Known, in_words, salvage};
use crate::store::{Draft, Progress, Report, StoreError, StoreResult, index, place};

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
        let derived_only = report.damage.is_empty() && structure_is_sound(&self.connection);
        if derived_only {
            let rebuilt = self.rebuild(progress)?;
            report.repaired.push(format!(
                "the list rows of {} sessions and the search index were derived anew",
                rebuilt.sessions
            ));
            if self.check(progress)?.is_clean() {
                return Ok(report);
            }
        }
        let Location::File(path) = self.location.clone() else {
            return Err(StoreError::damaged(
                "the store in memory",
                "it cannot be repaired",
            ));
        };
        // Whoever writes meanwhile waits, and then writes to the repaired store.
        self.alone(|engine| engine.salvage_into_new(&path, now, progress, &mut report))?;
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
        let mut salvage = Move {
            old: &self.connection,
            fresh: &mut fresh,
            all: &remains,
            moved: HashMap::new(),
            now,
            report,
        };
        for (done, (no, session)) in remains.iter().enumerate() {
            progress.at("salvaging", done as u64, total);
            salvage.session(*no, session)?;
        }
        let moved = salvage.moved.values().flatten().count();
        drop(fresh);
        let kept = with_suffix(path, &format!("-damaged-{}", now.as_second()));
        self.swap(path, &temporary, &kept)?;
        report
            .repaired
            .push(format!("{moved} sessions were salvaged"));
        report
            .repaired
            .push(format!("the damaged store is kept as {}", kept.display()));
        Ok(())
    }

    /// Puts the repaired file in the place of the damaged one. Writers that wait in the queue notice
    /// that the file is another and open it anew.
    fn swap(&mut self, path: &Path, repaired: &Path, kept: &Path) -> StoreResult<()> {
        // What is still in the database's own log belongs to the old file, and must not be found by the new.
        let log = with_suffix(path, "-wal");
        let written_back =
            self.connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                    row.get::<_, i64>(0)
                });
        match written_back {
            Ok(0) => {}
            Ok(_) => {
                return Err(StoreError::Locked {
                    place: path.to_owned(),
                });
            }
            // Too damaged for that: then the log is kept beside the copy as it is.
            Err(_) => {
                let _ = fs::copy(&log, with_suffix(kept, "-wal"));
            }
        }
        self.close();
        let at = |what, error| place::trouble(path, what, error);
        fs::hard_link(path, kept)
            .or_else(|_| fs::copy(path, kept).map(|_| ()))
            .map_err(|error| at("cannot keep a copy of", error))?;
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(with_suffix(path, suffix));
        }
        // One step: there is never a moment without a store.
        fs::rename(repaired, path).map_err(|error| at("cannot replace", error))?;
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
            // The row is gone, but the first entry says which session it opens. If it only has another
            // number now, what else it knew is still good.
            let known = sessions
                .iter()
                .find(|(_, known)| known.id == session.id)
                .map(|(no, _)| *no);
            let session = match known.and_then(|known| sessions.remove(&known)) {
                Some(known) => Remains {
                    entries: session.entries,
                    ..known
                },
                None => session,
            };
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
                let json = row.get_ref(4)?.as_bytes_or_null()?.unwrap_or_default();
                let summary: Option<Summary> = serde_json::from_slice(json).ok();
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

/// The state of a salvage: what is left, and where it went.
struct Move<'a> {
    old: &'a Connection,
    fresh: &'a mut Engine,
    all: &'a BTreeMap<i64, Remains>,
    /// The new numbers of sessions by their old ones; `None` for what had nothing left.
    moved: HashMap<i64, Option<i64>>,
    now: Timestamp,
    report: &'a mut Report,
}

impl Move<'_> {
    /// Salvages one session into the new database, its base first.
    fn session(&mut self, no: i64, session: &Remains) -> StoreResult<()> {
        if self.moved.contains_key(&no) {
            return Ok(());
        }
        self.moved.insert(no, None);
        let base = match session.base {
            None => None,
            Some((base_no, base_seq)) => self.base(session, base_no, base_seq)?,
        };
        let parent = base.as_ref().map_or(Head::START, |(_, head)| *head);
        let parent_was = fork_point(self.old, session)
            .filter(|_| base.is_some())
            .unwrap_or(parent);
        let mut lines = BTreeMap::new();
        for (seq, n) in &session.entries {
            if let Some(bytes) = line_of(self.old, *n) {
                lines.insert(*seq, Line { seq: *seq, bytes });
            }
        }
        let known = Known {
            session: session.id,
            parent,
            parent_was,
            last: session.last,
            now: self.now,
        };
        let mut salvaged = salvage(&known, &lines);
        if session.state != PURGED {
            salvaged.close_append(&known);
        }
        self.report.lost.extend(in_words(session.id, &salvaged));
        if salvaged.entries.is_empty() {
            return Ok(());
        }
        let purged = session.state == PURGED;
        if find(&self.fresh.connection, &self.fresh.say(), session.id)?.is_some() {
            self.report.lost.push(format!(
                "session {}: a second log of that name is left in the damaged store",
                session.id
            ));
            return Ok(());
        }
        let new_no = self.fresh.write(|transaction, say| {
            let (new_no, _) = insert_log(transaction, say, session.id, base, &salvaged.entries)?;
            if let Some(found) = find_no(transaction, say, new_no)?.filter(|_| purged) {
                make_husk(transaction, &found).map_err(say.of("cannot salvage"))?;
            }
            Ok(new_no)
        })?;
        self.moved.insert(no, Some(new_no));
        self.draft(no, session.id)
    }

    /// A half-written answer is words too.
    fn draft(&mut self, no: i64, id: SessionId) -> StoreResult<()> {
        let body = self
            .old
            .query_row("SELECT body FROM draft WHERE session = ?1", [no], |row| {
                row.get::<_, String>(0)
            });
        let Some(mut draft) = body
            .ok()
            .and_then(|body| serde_json::from_str::<Draft>(&body).ok())
        else {
            return Ok(());
        };
        if let Some(found) = find(&self.fresh.connection, &self.fresh.say(), id)? {
            draft.after = found.summary.head;
            self.fresh.keep_draft(id, &draft)?;
        }
        Ok(())
    }

    /// The base as it is in the new database, with its head at the fork.
    fn base(
        &mut self,
        session: &Remains,
        base_no: i64,
        base_seq: Seq,
    ) -> StoreResult<Option<(Found, Head)>> {
        if let Some(base) = self.all.get(&base_no) {
            self.session(base_no, base)?;
        }
        let say = self.fresh.say();
        let found = match self.moved.get(&base_no) {
            Some(Some(new_no)) => find_no(&self.fresh.connection, &say, *new_no)?,
            _ => None,
        };
        let Some(found) = found else {
            self.report.lost.push(format!(
                "session {}: the beginning that it shared is gone",
                session.id
            ));
            return Ok(None);
        };
        let lines = read_lines(
            &self.fresh.connection,
            &say,
            found.no,
            found.base,
            base_seq.back(1),
            base_seq,
            1,
        )?;
        let head = lines
            .first()
            .and_then(|line| Entry::decode(&line.bytes).ok())
            .map(|entry| entry.head());
        if head.is_none() {
            self.report.lost.push(format!(
                "session {}: the beginning that it shared is gone",
                session.id
            ));
        }
        Ok(head.map(|head| (found, head)))
    }
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
