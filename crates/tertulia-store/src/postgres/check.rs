//! Checks every byte, and rebuilds derived data. Sessions are taken one by one, each in a transaction
//! of its own: a large store must not hold back the server's housekeeping.

use std::collections::HashSet;

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::rows::{
    Derived, Found, find_log, own_lines, put_snapshot, read_lines, row_of, summary_at,
};
use super::server::{Answer, Mode, Server, Value, execute, query};
use crate::selection::PURGED;
use crate::{Progress, Report, StoreResult, chain};
use tertulia_core::entry::Head;
use tertulia_core::id::Seq;
use tertulia_core::session::{Log, SessionMeta};

/// What a check found of one log.
pub(super) struct Checked {
    pub(super) found: Found,
    pub(super) log: Log,
    entries: u64,
    faults: Vec<String>,
}

impl Server {
    /// Returns the names of all logs.
    pub(super) async fn all_logs(&self) -> StoreResult<Vec<Uuid>> {
        self.run("cannot list logs", None, Mode::Read, async |client, _| {
            let sql = "SELECT log FROM tertulia_session ORDER BY log";
            let mut logs = Vec::new();
            for row in query(client, sql, &[]).await? {
                logs.push(row.try_get(0)?);
            }
            Ok(logs)
        })
        .await
    }

    pub(super) async fn look(&self, progress: Progress) -> StoreResult<Report> {
        self.look_beside(&HashSet::new(), progress).await
    }

    /// Checks everything but some logs.
    pub(super) async fn look_beside(
        &self,
        left: &HashSet<Uuid>,
        progress: Progress,
    ) -> StoreResult<Report> {
        let mut report = Report::default();
        let mut logs = self.all_logs().await?;
        logs.retain(|log| !left.contains(log));
        let total = logs.len() as u64;
        for (done, log) in logs.into_iter().enumerate() {
            progress.at("checking", done as u64, total);
            let Some(mut checked) = self.check_log(log).await? else {
                continue;
            };
            report.sessions += u64::from(i64::from(checked.found.state) != PURGED);
            report.entries += checked.entries;
            report.faults.append(&mut checked.faults);
            report.damage.append(&mut checked.log.damage);
        }
        for (_, count) in self.orphans().await? {
            report
                .faults
                .push(format!("{count} entries belong to no session"));
        }
        progress.at("checking", total, total);
        Ok(report)
    }

    /// Checks one log.
    pub(super) async fn check_log(&self, log: Uuid) -> StoreResult<Option<Checked>> {
        self.transact("cannot check", None, Mode::Read, async |client, _| {
            check_log(client, log).await
        })
        .await
    }

    /// Returns the logs that have entries and no row, with the number of their entries.
    pub(super) async fn orphans(&self) -> StoreResult<Vec<(Uuid, i64)>> {
        let sql = "SELECT session, count(*) FROM tertulia_entry AS entry WHERE NOT EXISTS
                   (SELECT 1 FROM tertulia_session WHERE log = entry.session) GROUP BY session";
        self.run("cannot check", None, Mode::Read, async |client, _| {
            let mut orphans = Vec::new();
            for row in query(client, sql, &[]).await? {
                orphans.push((row.try_get(0)?, row.try_get(1)?));
            }
            Ok(orphans)
        })
        .await
    }

    /// Derives the rows of all sessions and their snapshots from the logs. Returns the number of
    /// sessions.
    pub(super) async fn derive_rows(&self, progress: Progress) -> StoreResult<u64> {
        let logs = self.all_logs().await?;
        let total = logs.len() as u64;
        let mut sessions = 0;
        for (done, log) in logs.into_iter().enumerate() {
            progress.at("rebuilding", done as u64, total);
            let what = "cannot rebuild";
            let derived = self.transact(what, None, Mode::Write, async |client, _| {
                derive_row(client, log).await
            });
            sessions += u64::from(derived.await?);
        }
        self.metas.borrow_mut().clear();
        Ok(sessions)
    }
}

async fn check_log(client: &Client, log: Uuid) -> Answer<Option<Checked>> {
    let Some(found) = find_log(client, log, false).await? else {
        return Ok(None);
    };
    let id = found.name();
    let is_purged = i64::from(found.state) == PURGED;
    let mut faults = Vec::new();
    let (start, mut folded) = match found.base {
        None => (Head::START, SessionMeta::blank(id)),
        Some((base, base_seq)) => match find_log(client, base, false).await? {
            Some(base) => {
                let meta = summary_at(client, &base, base_seq).await?;
                (meta.head, meta)
            }
            None => {
                faults.push(format!(
                    "session {id}: the session that it continues is gone"
                ));
                let head = Head {
                    seq: base_seq,
                    ..Head::START
                };
                (head, SessionMeta::blank(id))
            }
        },
    };
    let lines = own_lines(client, log, start.seq, Seq(u64::MAX), usize::MAX).await?;
    let stored = found.stored.as_ref();
    let known = stored.map_or(Seq::START, |row| row.head.seq);
    let read = chain::verify(id, start, &lines, (!is_purged).then_some(known));
    let checked = |faults| Checked {
        found: found.clone(),
        entries: lines.len() as u64,
        log: read.clone(),
        faults,
    };
    if is_purged {
        return Ok(Some(checked(faults)));
    }
    read.entries.iter().for_each(|entry| folded.apply(entry));
    // A lost or altered opening does not change the session's id.
    folded.id = id;
    match stored {
        None => faults.push(format!("session {id}: its row in the list is unreadable")),
        Some(stored) => {
            let is_same = stored.is_same_row(&folded)
                && columns(client, log).await? == Some(Derived::of(&folded));
            if read.damage.is_empty() && !is_same {
                faults.push(format!(
                    "session {id}: its row in the list is not what its log says"
                ));
            }
        }
    }
    Ok(Some(checked(faults)))
}

/// Returns the derived columns of a row.
async fn columns(client: &Client, log: Uuid) -> Answer<Option<Derived>> {
    let sql = "SELECT state, kind, team, project, title, hour, updated, changed, head,
                 hash
               FROM tertulia_session WHERE log = $1";
    let rows = query(client, sql, &[(&log, Type::UUID)]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    Ok(Some(Derived {
        state: row.try_get(0)?,
        kind: row.try_get(1)?,
        team: row.try_get(2)?,
        project: row.try_get(3)?,
        title: row.try_get(4)?,
        hour: row.try_get(5)?,
        updated: row.try_get(6)?,
        changed: row.try_get(7)?,
        head: row.try_get(8)?,
        hash: row.try_get(9)?,
    }))
}

/// Derives the row of a log and its snapshots. Returns true for a session, false for a shared prefix.
pub(super) async fn derive_row(client: &Client, log: Uuid) -> Answer<bool> {
    let Some(found) = find_log(client, log, true).await? else {
        return Ok(false);
    };
    let sql = "DELETE FROM tertulia_snapshot WHERE session = $1";
    execute(client, sql, &[(&log, Type::UUID)]).await?;
    let place = (log, found.base);
    let lines = read_lines(client, place, Seq::START, Seq(u64::MAX), usize::MAX).await?;
    let own_after = found.base.map_or(Seq::START, |(_, seq)| seq);
    let mut meta = SessionMeta::blank(found.name());
    for line in &lines {
        chain::apply(&mut meta, line);
        if line.seq > own_after && chain::is_snapshot_due(&meta, line.seq) {
            put_snapshot(client, log, &meta).await?;
        }
    }
    if i64::from(found.state) == PURGED {
        return Ok(false);
    }
    meta.id = found.name();
    update_row(client, log, &meta).await?;
    Ok(true)
}

/// Writes the derived part of a session's row.
pub(super) async fn update_row(client: &Client, log: Uuid, meta: &SessionMeta) -> Answer<()> {
    let columns = Derived::of(meta);
    let sql =
        "UPDATE tertulia_session SET state = $2, kind = $3, team = $4, project = $5, title = $6,
                 hour = $7, updated = $8, changed = $9, head = $10, hash = $11, row = $12
         WHERE log = $1";
    let values: [Value<'_>; 12] = [
        (&log, Type::UUID),
        (&columns.state, Type::INT2),
        (&columns.kind, Type::TEXT),
        (&columns.team, Type::INT8),
        (&columns.project, Type::INT8),
        (&columns.title, Type::INT8),
        (&columns.hour, Type::INT8),
        (&columns.updated, Type::INT8),
        (&columns.changed, Type::INT8),
        (&columns.head, Type::INT8),
        (&columns.hash, Type::BYTEA),
        (&row_of(meta)?, Type::BYTEA),
    ];
    execute(client, sql, &values).await?;
    Ok(())
}
