//! Sizes of logs, from the rows of sessions, and the description of the store. Of entries only those
//! between a snapshot and the entry that a fork continues are looked at, and of these only the lengths.

use std::collections::HashMap;
use std::time::Instant;

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::rows::{Base, number, seq_of, snapshot_before};
use super::schema::FORMAT;
use super::server::{Answer, Mode, Server, Value, query};
use crate::selection::{Measured, PURGED, sized_session};
use crate::{Info, StoreResult};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;
use tertulia_core::sizes::LogSize;

/// Tables whose size is that of the store.
const TABLES: &str = "tertulia_session,tertulia_entry,tertulia_part,tertulia_snapshot";

/// A row of the table of sessions.
struct SizeRow {
    log: Uuid,
    id: SessionId,
    base: Base,
    state: i64,
    title: Option<String>,
    /// `None` if the metadata cannot be read.
    measured: Option<Measured>,
}

impl Server {
    pub(super) async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        let what = "cannot measure sessions";
        self.transact(what, None, Mode::Read, async |client, _| {
            let rows = size_rows(client).await?;
            let bases: HashMap<Uuid, (Uuid, Seq)> = rows
                .iter()
                .filter_map(|row| Some((row.log, row.base?)))
                .collect();
            let mut starts = HashMap::new();
            for row in &rows {
                find_start(client, row.log, &bases, &mut starts).await?;
            }
            let numbers: HashMap<Uuid, i64> = rows.iter().map(|row| row.log).zip(1..).collect();
            sizes_of(client, rows, &bases, &starts, &numbers).await
        })
        .await
    }

    pub(super) async fn info(&self) -> StoreResult<Info> {
        let what = "cannot describe the store";
        let asked = Instant::now();
        self.run(what, None, Mode::Read, async |client, _| {
            Ok(client.batch_execute("SELECT 1").await?)
        })
        .await?;
        let latency_ms = asked.elapsed().as_secs_f64() * 1000.0;
        // Not every relative of PostgreSQL counts the bytes of a table.
        let bytes = self.run(what, None, Mode::Read, async |client, _| {
            let sql = "SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint
                       FROM unnest(string_to_array($1, ',')) AS name";
            let rows = query(client, sql, &[(&TABLES, Type::TEXT)]).await?;
            Ok(match rows.first() {
                Some(row) => row.try_get::<_, Option<i64>>(0)?.unwrap_or(0),
                None => 0,
            })
        });
        let bytes = bytes.await.unwrap_or(0);
        self.run(what, None, Mode::Read, async |client, _| {
            let sql = format!(
                "SELECT (SELECT count(*) FROM tertulia_session WHERE state < {PURGED}),
                   (SELECT count(*) FROM tertulia_session WHERE state = 1),
                   (SELECT count(*) FROM tertulia_entry), current_setting('server_version')"
            );
            let row = client.query_typed_one(&sql, &[]).await?;
            let count = |column| -> Answer<u64> {
                Ok(row.try_get::<_, i64>(column)?.max(0).cast_unsigned())
            };
            Ok(Info {
                backend: "postgres",
                place: self.address.to_string(),
                format: FORMAT,
                sessions: count(0)?,
                trashed: count(1)?,
                entries: count(2)?,
                bytes: bytes.max(0).cast_unsigned(),
                index_bytes: 0,
                server: Some(format!("PostgreSQL {}", row.try_get::<_, String>(3)?)),
                latency_ms: Some(latency_ms),
            })
        })
        .await
    }
}

async fn sizes_of(
    client: &Client,
    rows: Vec<SizeRow>,
    bases: &HashMap<Uuid, (Uuid, Seq)>,
    starts: &HashMap<Uuid, u64>,
    numbers: &HashMap<Uuid, i64>,
) -> Answer<Vec<LogSize>> {
    let start = |log: &Uuid| starts.get(log).copied().unwrap_or(0);
    // A shared prefix ends where its last fork starts.
    let mut last_fork: HashMap<Uuid, u64> = HashMap::new();
    for (log, (base, _)) in bases {
        let last = last_fork.entry(*base).or_default();
        *last = start(log).max(*last);
    }
    let mut sizes = Vec::with_capacity(rows.len());
    for row in rows {
        let start = start(&row.log);
        let end = match &row.measured {
            _ if row.state == PURGED => last_fork.get(&row.log).copied().unwrap_or(start),
            Some(measured) => measured.bytes,
            None => start + own_bytes(client, row.log, Seq::START, Seq(u64::MAX)).await?,
        };
        sizes.push(LogSize {
            no: numbers.get(&row.log).copied().unwrap_or(0),
            session: sized_session(row.id, row.title, row.state, row.measured),
            base: row.base.and_then(|(base, _)| numbers.get(&base).copied()),
            start,
            end,
            stored: end.saturating_sub(start),
        });
    }
    Ok(sizes)
}

async fn size_rows(client: &Client) -> Answer<Vec<SizeRow>> {
    let sql = "SELECT log, id, base, base_seq, state, row FROM tertulia_session ORDER BY log";
    let mut rows = Vec::new();
    for row in query(client, sql, &[]).await? {
        let log: Uuid = row.try_get(0)?;
        let base: Option<Uuid> = row.try_get(2)?;
        let base_seq: Option<i64> = row.try_get(3)?;
        let json: &[u8] = row.try_get(5)?;
        let meta = SessionMeta::from_json(json).ok();
        rows.push(SizeRow {
            log,
            id: SessionId::new(row.try_get::<_, Option<Uuid>>(1)?.unwrap_or(log)),
            base: base.zip(base_seq).map(|(log, seq)| (log, seq_of(seq))),
            state: row.try_get::<_, i16>(4)?.into(),
            title: meta.and_then(|meta| meta.title),
            measured: serde_json::from_slice(json).ok(),
        });
    }
    Ok(rows)
}

/// Finds the position at which a log starts, and those of the logs that it continues.
async fn find_start(
    client: &Client,
    log: Uuid,
    bases: &HashMap<Uuid, (Uuid, Seq)>,
    starts: &mut HashMap<Uuid, u64>,
) -> Answer<()> {
    let mut chain = vec![log];
    while let Some(last) = chain.last()
        && let Some((base, _)) = bases.get(last)
        && !starts.contains_key(last)
        // Logs that continue each other in a circle have no beginning.
        && !chain.contains(base)
    {
        chain.push(*base);
    }
    for log in chain.into_iter().rev() {
        if starts.contains_key(&log) {
            continue;
        }
        let start = match bases.get(&log) {
            None => 0,
            Some((base, seq)) => {
                let start = starts.get(base).copied().unwrap_or(0);
                position_after(client, *base, start, *seq).await?
            }
        };
        starts.insert(log, start);
    }
    Ok(())
}

/// Returns the position after an entry of a log that starts at `start`.
async fn position_after(client: &Client, log: Uuid, start: u64, seq: Seq) -> Answer<u64> {
    let snapshot = snapshot_before(client, log, seq).await?;
    let known = snapshot.and_then(|(seq, row)| {
        let measured: Measured = serde_json::from_slice(&row).ok()?;
        Some((seq, measured.bytes))
    });
    let (after, before) = known.unwrap_or((Seq::START, start));
    Ok(before + own_bytes(client, log, after, seq).await?)
}

/// Returns the bytes of a log's own lines, with their line feeds, after `after` up to `upto`.
async fn own_bytes(client: &Client, log: Uuid, after: Seq, upto: Seq) -> Answer<u64> {
    let sql = "SELECT (SELECT coalesce(sum(octet_length(line) + 1), 0)::bigint FROM tertulia_entry
                       WHERE session = $1 AND seq > $2 AND seq <= $3)
                 + (SELECT coalesce(sum(octet_length(line)), 0)::bigint FROM tertulia_part
                    WHERE session = $1 AND seq > $2 AND seq <= $3)";
    let values: [Value<'_>; 3] = [
        (&log, Type::UUID),
        (&number(after), Type::INT8),
        (&number(upto), Type::INT8),
    ];
    let row = client.query_typed_one(sql, &values).await?;
    Ok(row.try_get::<_, i64>(0)?.max(0).cast_unsigned())
}
