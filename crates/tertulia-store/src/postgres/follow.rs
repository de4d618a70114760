//! What the local index asks the server: where logs end, lines of many logs at once, and the rows that
//! judge hits.

use std::collections::HashMap;

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::rows::{COLUMNS, Found, found, lines_of, number, own_lines, seq_of};
use super::server::{Mode, Server, Value, query};
use crate::StoreResult;
use crate::selection::PURGED;
use tertulia_core::entry::{Hash, Head};
use tertulia_core::id::Seq;
use tertulia_core::session::Line;

/// Where a log ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogHead {
    pub(super) log: Uuid,
    pub(super) base_seq: Seq,
    pub(super) head: Head,
}

/// Lines of one log to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) log: Uuid,
    pub(super) after: Seq,
    pub(super) upto: Seq,
}

/// A fork of a log, and the last entry that it shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForkOf {
    pub(super) base: Uuid,
    pub(super) fork: Uuid,
    pub(super) shared: Seq,
}

impl Server {
    /// Returns where all logs end, the newest session last.
    pub(super) async fn log_heads(&self) -> StoreResult<Vec<LogHead>> {
        let sql = "SELECT log, coalesce(base_seq, 0), head, hash FROM tertulia_session
                   ORDER BY updated, log";
        self.run("cannot search", None, Mode::Read, async |client, _| {
            let mut heads = Vec::new();
            for row in query(client, sql, &[]).await? {
                heads.push(LogHead {
                    log: row.try_get(0)?,
                    base_seq: seq_of(row.try_get(1)?),
                    head: Head {
                        seq: seq_of(row.try_get(2)?),
                        hash: Hash::from_bytes(row.try_get(3)?).unwrap_or(Hash::NONE),
                    },
                });
            }
            Ok(heads)
        })
        .await
    }

    /// Returns own lines of several logs.
    pub(super) async fn lines_of_logs(
        &self,
        wanted: Vec<Wanted>,
    ) -> StoreResult<HashMap<Uuid, Vec<Line>>> {
        let logs: Vec<Uuid> = wanted.iter().map(|one| one.log).collect();
        let after: Vec<i64> = wanted.iter().map(|one| number(one.after)).collect();
        let upto: Vec<i64> = wanted.iter().map(|one| number(one.upto)).collect();
        let sql = "SELECT entry.seq, entry.parts, entry.line, entry.session
                   FROM unnest($1, $2, $3) AS wanted(log, after, upto) JOIN tertulia_entry AS entry
                   ON entry.session = wanted.log AND entry.seq > wanted.after AND entry.seq <= wanted.upto
                   ORDER BY entry.session, entry.seq";
        self.run(
            "cannot read entries",
            None,
            Mode::Read,
            async |client, _| {
                let values: [Value<'_>; 3] = [
                    (&logs, Type::UUID_ARRAY),
                    (&after, Type::INT8_ARRAY),
                    (&upto, Type::INT8_ARRAY),
                ];
                let rows = query(client, sql, &values).await?;
                let mut found = HashMap::new();
                let mut rest = &rows[..];
                while let Some(first) = rest.first() {
                    let log: Uuid = first.try_get(3)?;
                    let is_other = |row: &tokio_postgres::Row| row.try_get(3).ok() != Some(log);
                    let end = rest.iter().position(is_other).unwrap_or(rest.len());
                    let (own, others) = rest.split_at(end);
                    found.insert(log, lines_of(client, log, own).await?);
                    rest = others;
                }
                Ok(found)
            },
        )
        .await
    }

    /// Returns the rows of logs, without shared prefixes of purged sessions.
    pub(super) async fn rows_of_logs(&self, logs: Vec<Uuid>) -> StoreResult<Vec<Found>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tertulia_session WHERE log = ANY($1) AND state < {PURGED}"
        );
        self.run("cannot search", None, Mode::Read, async |client, _| {
            let values: [Value<'_>; 1] = [(&logs, Type::UUID_ARRAY)];
            let mut rows = Vec::new();
            for row in query(client, &sql, &values).await? {
                rows.push(found(client, &row).await?);
            }
            Ok(rows)
        })
        .await
    }

    /// Returns the logs that continue these logs.
    pub(super) async fn forks_of_logs(&self, logs: Vec<Uuid>) -> StoreResult<Vec<ForkOf>> {
        let sql = "SELECT base, log, base_seq FROM tertulia_session WHERE base = ANY($1)";
        self.run("cannot search", None, Mode::Read, async |client, _| {
            let values: [Value<'_>; 1] = [(&logs, Type::UUID_ARRAY)];
            let mut forks = Vec::new();
            for row in query(client, sql, &values).await? {
                forks.push(ForkOf {
                    base: row.try_get(0)?,
                    fork: row.try_get(1)?,
                    shared: seq_of(row.try_get(2)?),
                });
            }
            Ok(forks)
        })
        .await
    }

    /// Returns the lines of a session, through its bases.
    pub(super) async fn read(
        &self,
        id: tertulia_core::id::SessionId,
        after: Seq,
        limit: usize,
    ) -> StoreResult<Vec<Line>> {
        let what = "cannot read entries";
        self.transact(what, Some(id), Mode::Read, async |client, _| {
            let found = super::rows::find_place(client, id).await?;
            let (log, base) = found.ok_or(crate::StoreError::NotFound(id))?;
            match base {
                Some((_, shared)) if after < shared => {
                    let log = (log, base);
                    super::rows::read_lines(client, log, after, Seq(u64::MAX), limit).await
                }
                _ => own_lines(client, log, after, Seq(u64::MAX), limit).await,
            }
        })
        .await
    }
}
