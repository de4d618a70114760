//! Rows: sessions with their metadata, and lines read through the bases of forks.

use std::collections::HashMap;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::server::{Answer, execute, query};
use crate::StoreError;
use crate::chain::{self, Owners};
use crate::selection::state_of;
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Line, SessionMeta};

/// Most bytes of a line in one row.
pub(super) const LARGEST_PART: usize = 512 * 1024;
/// Bytes of lines that one statement inserts, unless a single line is larger.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Lines that one statement inserts.
const BATCH_LINES: usize = 1000;

/// What a log continues: another log, up to an entry.
pub(super) type Base = Option<(Uuid, Seq)>;

/// A session's row.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) log: Uuid,
    /// `None` for a shared prefix of a purged session.
    pub(super) id: Option<SessionId>,
    pub(super) base: Base,
    pub(super) state: i16,
    pub(super) meta: SessionMeta,
    /// The metadata as it stands in the row; `None` if that cannot be read.
    pub(super) stored: Option<SessionMeta>,
}

impl Found {
    /// Returns the id of the session, or the name of the log of which a shared prefix remains.
    pub(super) fn name(&self) -> SessionId {
        self.id.unwrap_or(SessionId::new(self.log))
    }
}

/// Columns that [`found`] reads.
pub(super) const COLUMNS: &str = "log, id, base, base_seq, state, row";

/// Returns a number as the server stores it.
pub(super) fn number(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub(super) fn seq_of(number: i64) -> Seq {
    Seq(number.max(0).cast_unsigned())
}

/// Returns a number by which a text is looked up, whatever bytes it has and however long it is. The
/// text itself is in the metadata, by which a result is checked.
pub(super) fn key(text: &str) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
    i64::from_be_bytes(bytes)
}

/// Returns the hour of a time in microseconds.
pub(super) fn hour_of(microseconds: i64) -> i64 {
    microseconds.div_euclid(3_600_000_000)
}

/// Serialises metadata.
pub(super) fn row_of(meta: &SessionMeta) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(meta).map_err(|error| StoreError::failed("cannot write metadata", error))
}

/// Returns the row of a session. A purged session is no longer found.
pub(super) async fn find(client: &Client, id: SessionId, lock: bool) -> Answer<Option<Found>> {
    let lock = if lock { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM tertulia_session WHERE id = $1{lock}");
    let rows = query(client, &sql, &[(&id.uuid(), Type::UUID)]).await?;
    match rows.first() {
        Some(row) => Ok(Some(found(client, row).await?)),
        None => Ok(None),
    }
}

/// Returns the row of a log.
pub(super) async fn find_log(client: &Client, log: Uuid, lock: bool) -> Answer<Option<Found>> {
    let lock = if lock { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM tertulia_session WHERE log = $1{lock}");
    let rows = query(client, &sql, &[(&log, Type::UUID)]).await?;
    match rows.first() {
        Some(row) => Ok(Some(found(client, row).await?)),
        None => Ok(None),
    }
}

/// Reads a row of [`COLUMNS`]. The metadata is derived: if it is damaged, the log still has it.
pub(super) async fn found(client: &Client, row: &Row) -> Answer<Found> {
    let log: Uuid = row.try_get(0)?;
    let id = row.try_get::<_, Option<Uuid>>(1)?.map(SessionId::new);
    let base: Option<Uuid> = row.try_get(2)?;
    let base_seq: Option<i64> = row.try_get(3)?;
    let base = base.zip(base_seq).map(|(log, seq)| (log, seq_of(seq)));
    let state: i16 = row.try_get(4)?;
    let stored = SessionMeta::from_json(row.try_get(5)?).ok();
    let name = id.unwrap_or(SessionId::new(log));
    let meta = match &stored {
        Some(meta) => meta.clone(),
        None => refold(client, (log, base), name).await?,
    };
    Ok(Found {
        log,
        id,
        base,
        state,
        meta,
        stored,
    })
}

/// Folds a whole log.
pub(super) async fn refold(
    client: &Client,
    log: (Uuid, Base),
    id: SessionId,
) -> Answer<SessionMeta> {
    let lines = read_lines(client, log, Seq::START, Seq(u64::MAX), usize::MAX).await?;
    let mut meta = SessionMeta::blank(id);
    chain::fold(&mut meta, &lines);
    meta.id = id;
    Ok(meta)
}

/// Returns what a log continues.
pub(super) async fn base_of(client: &Client, log: Uuid) -> Answer<Base> {
    let sql = "SELECT base, base_seq FROM tertulia_session WHERE log = $1 AND base IS NOT NULL";
    let rows = query(client, sql, &[(&log, Type::UUID)]).await?;
    Ok(match rows.first() {
        Some(row) => Some((row.try_get(0)?, seq_of(row.try_get(1)?))),
        None => None,
    })
}

/// Returns the log that holds an entry of a session.
pub(super) async fn owner_of(client: &Client, log: (Uuid, Base), seq: Seq) -> Answer<Uuid> {
    let mut owners = Owners::of(log, seq);
    while let Some(&(_, Some((base, shared)))) = owners.oldest()
        && seq <= shared
        && owners.add((base, base_of(client, base).await?), shared)
    {}
    Ok(owners.oldest().map_or(log.0, |(owner, _)| *owner))
}

/// Returns the metadata at an earlier entry.
pub(super) async fn summary_at(client: &Client, found: &Found, seq: Seq) -> Answer<SessionMeta> {
    if seq == found.meta.head.seq {
        return Ok(found.meta.clone());
    }
    let owner = owner_of(client, (found.log, found.base), seq).await?;
    let snapshot = snapshot_before(client, owner, seq).await?;
    let mut meta = snapshot
        .and_then(|(_, row)| SessionMeta::from_json(&row).ok())
        .unwrap_or_else(|| SessionMeta::blank(found.meta.id));
    let log = (owner, base_of(client, owner).await?);
    let lines = read_lines(client, log, meta.head.seq, seq, usize::MAX).await?;
    chain::fold(&mut meta, &lines);
    Ok(meta)
}

/// Returns the last snapshot of a log up to an entry.
pub(super) async fn snapshot_before(
    client: &Client,
    log: Uuid,
    seq: Seq,
) -> Answer<Option<(Seq, Vec<u8>)>> {
    let sql = "SELECT seq, row FROM tertulia_snapshot WHERE session = $1 AND seq <= $2
               ORDER BY seq DESC LIMIT 1";
    let values = [(&log as _, Type::UUID), (&number(seq) as _, Type::INT8)];
    let rows = query(client, sql, &values).await?;
    Ok(match rows.first() {
        Some(row) => Some((seq_of(row.try_get(0)?), row.try_get(1)?)),
        None => None,
    })
}

/// Reads lines after `after` up to `upto`, through all bases.
pub(super) async fn read_lines(
    client: &Client,
    log: (Uuid, Base),
    after: Seq,
    upto: Seq,
    limit: usize,
) -> Answer<Vec<Line>> {
    let mut owners = Owners::of(log, upto);
    while let Some(&(_, Some((base, shared)))) = owners.oldest()
        && after < shared
        && owners.add((base, base_of(client, base).await?), shared)
    {}
    let mut lines: Vec<Line> = Vec::new();
    for ((owner, _), upto) in owners.oldest_first() {
        let after = lines.last().map_or(after, |line| line.seq).max(after);
        lines.extend(own_lines(client, *owner, after, upto, limit - lines.len()).await?);
        if lines.len() >= limit {
            break;
        }
    }
    Ok(lines)
}

/// Reads at most `limit` lines of the log itself.
pub(super) async fn own_lines(
    client: &Client,
    log: Uuid,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> Answer<Vec<Line>> {
    let sql = "SELECT seq, parts, line FROM tertulia_entry
               WHERE session = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [
        (&log as _, Type::UUID),
        (&number(after) as _, Type::INT8),
        (&number(upto) as _, Type::INT8),
        (&limit as _, Type::INT8),
    ];
    let rows = query(client, sql, &values).await?;
    lines_of(client, log, &rows).await
}

/// Reads rows of sequence number, number of parts and line.
pub(super) async fn lines_of(client: &Client, log: Uuid, rows: &[Row]) -> Answer<Vec<Line>> {
    let mut lines = Vec::with_capacity(rows.len());
    let mut in_parts: Option<(i64, i64)> = None;
    for row in rows {
        let seq: i64 = row.try_get(0)?;
        if row.try_get::<_, i32>(1)? > 0 {
            in_parts = Some((in_parts.map_or(seq, |(first, _)| first), seq));
        }
        lines.push(Line {
            seq: seq_of(seq),
            bytes: row.try_get(2)?,
        });
    }
    let Some((first, last)) = in_parts else {
        return Ok(lines);
    };
    let sql = "SELECT seq, line FROM tertulia_part
               WHERE session = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq, part";
    let values = [
        (&log as _, Type::UUID),
        (&first as _, Type::INT8),
        (&last as _, Type::INT8),
    ];
    let mut rest: HashMap<Seq, Vec<u8>> = HashMap::new();
    for row in query(client, sql, &values).await? {
        let part: &[u8] = row.try_get(1)?;
        rest.entry(seq_of(row.try_get(0)?))
            .or_default()
            .extend_from_slice(part);
    }
    for line in &mut lines {
        if let Some(more) = rest.get(&line.seq) {
            line.bytes.extend_from_slice(more);
        }
    }
    Ok(lines)
}

/// Lines to insert with one statement.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    pub(super) seqs: Vec<i64>,
    pub(super) parts: Vec<i32>,
    pub(super) lines: Vec<&'a [u8]>,
    /// Parts of long lines: sequence number, number of the part, bytes.
    pub(super) more: Vec<(i64, i32, &'a [u8])>,
}

/// Cuts lines into batches of moderate size.
pub(super) fn batches<'a>(entries: &'a [Entry]) -> Vec<Batch<'a>> {
    let mut batches: Vec<Batch<'a>> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let line = entry.line().as_bytes();
        let is_full = batches.last().is_none_or(|batch| {
            batch.seqs.len() >= BATCH_LINES || bytes + line.len() > BATCH_BYTES
        });
        if is_full {
            batches.push(Batch::default());
            bytes = 0;
        }
        bytes += line.len();
        let mut parts = line.chunks(LARGEST_PART);
        let first = parts.next().unwrap_or_default();
        let seq = number(entry.seq);
        if let Some(batch) = batches.last_mut() {
            let more = parts.zip(1..).map(|(part, no)| (seq, no, part));
            let before = batch.more.len();
            batch.more.extend(more);
            batch.seqs.push(seq);
            batch
                .parts
                .push(i32::try_from(batch.more.len() - before).unwrap_or(i32::MAX));
            batch.lines.push(first);
        }
    }
    batches
}

/// Inserts the parts of long lines.
pub(super) async fn insert_parts(client: &Client, log: Uuid, batch: &Batch<'_>) -> Answer<()> {
    let sql = "INSERT INTO tertulia_part(session, seq, part, line) VALUES($1, $2, $3, $4)";
    for (seq, part, bytes) in &batch.more {
        let values = [
            (&log as _, Type::UUID),
            (seq as _, Type::INT8),
            (part as _, Type::INT4),
            (bytes as _, Type::BYTEA),
        ];
        execute(client, sql, &values).await?;
    }
    Ok(())
}

/// Inserts lines into a log.
pub(super) async fn insert_lines(client: &Client, log: Uuid, batch: &Batch<'_>) -> Answer<()> {
    let sql = "INSERT INTO tertulia_entry(session, seq, parts, line)
               SELECT $1, seq, parts, line FROM unnest($2, $3, $4) AS one(seq, parts, line)";
    let values = [
        (&log as _, Type::UUID),
        (&batch.seqs as _, Type::INT8_ARRAY),
        (&batch.parts as _, Type::INT4_ARRAY),
        (&batch.lines as _, Type::BYTEA_ARRAY),
    ];
    execute(client, sql, &values).await?;
    insert_parts(client, log, batch).await
}

/// Keeps a metadata snapshot.
pub(super) async fn put_snapshot(client: &Client, log: Uuid, meta: &SessionMeta) -> Answer<()> {
    let sql = "INSERT INTO tertulia_snapshot(session, seq, row) VALUES($1, $2, $3)
               ON CONFLICT (session, seq) DO UPDATE SET row = excluded.row";
    let values = [
        (&log as _, Type::UUID),
        (&number(meta.head.seq) as _, Type::INT8),
        (&row_of(meta)? as _, Type::BYTEA),
    ];
    execute(client, sql, &values).await?;
    Ok(())
}

/// Values of the columns that are derived from metadata.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Derived {
    pub(super) state: i16,
    pub(super) kind: String,
    pub(super) team: Option<i64>,
    pub(super) project: Option<i64>,
    pub(super) title: Option<i64>,
    /// Hour of the last entry, by which lists are found.
    pub(super) hour: i64,
    pub(super) updated: i64,
    pub(super) changed: Option<i64>,
    pub(super) head: i64,
    pub(super) hash: Vec<u8>,
}

impl Derived {
    pub(super) fn of(meta: &SessionMeta) -> Derived {
        Derived {
            state: i16::from(state_of(meta) > 0),
            kind: meta.kind.name().to_owned(),
            team: meta.team.as_deref().map(key),
            project: meta.project.as_deref().map(key),
            title: meta.title.as_deref().map(key),
            hour: hour_of(meta.updated_at.as_microsecond()),
            updated: meta.updated_at.as_microsecond(),
            changed: meta.changed_at().map(jiff::Timestamp::as_microsecond),
            head: number(meta.head.seq),
            hash: meta.head.hash.bytes().to_vec(),
        }
    }

    /// Returns true if a session is found and listed by the same values as before.
    pub(super) fn is_found_as(&self, before: &Derived) -> bool {
        let by = |columns: &Derived| {
            let Derived {
                state,
                project,
                title,
                changed,
                hour,
                ..
            } = columns;
            (*state, *project, *title, *changed, *hour)
        };
        by(self) == by(before)
    }
}

/// Returns the head of a log at an entry, if that entry is readable.
pub(super) async fn head_at(client: &Client, log: (Uuid, Base), seq: Seq) -> Answer<Option<Head>> {
    if seq == Seq::START {
        return Ok(Some(Head::START));
    }
    let lines = read_lines(client, log, seq.back(1), seq, 1).await?;
    let entry = lines
        .first()
        .and_then(|line| Entry::decode(&line.bytes).ok());
    Ok(entry.map(|entry| entry.head()))
}

/// Returns where the log of a session is, without its metadata.
pub(super) async fn find_place(client: &Client, id: SessionId) -> Answer<Option<(Uuid, Base)>> {
    let sql = "SELECT log, base, base_seq FROM tertulia_session WHERE id = $1";
    let rows = query(client, sql, &[(&id.uuid(), Type::UUID)]).await?;
    Ok(match rows.first() {
        None => None,
        Some(row) => {
            let base: Option<Uuid> = row.try_get(1)?;
            let base_seq: Option<i64> = row.try_get(2)?;
            let base = base.zip(base_seq).map(|(log, seq)| (log, seq_of(seq)));
            Some((row.try_get(0)?, base))
        }
    })
}
