//! Creates sessions and appends to them.
//!
//! An append is one statement: it moves the session's head from the expected entry to the new one, and
//! inserts the lines only if it could. A second writer, or a repeated statement whose first answer was
//! lost, finds another head and inserts nothing.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::lease::{NO_FENCE, not_taken};
use super::planned::{Literal, Statement, execute_inline, execute_planned};
use super::rows::{
    Base, Batch, Derived, Found, batches, find, insert_lines, insert_parts, number, own_lines,
    owner_of, put_snapshot, row_of, summary_at,
};
use super::server::{Answer, Connection, Failure, Mode, Server, Value, execute, query};
use crate::salvage::derived_id;
use crate::{NewSession, StoreError, StoreResult, chain, check_whole, has_words};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tokio_postgres::error::SqlState;

impl Server {
    pub(super) async fn create(&self, new: NewSession) -> StoreResult<Head> {
        check_whole(&new.entries)?;
        let what = "cannot create a session";
        let done = self.transact(what, Some(new.id), Mode::Write, async |client, attempt| {
            if let Some(found) = find(client, new.id, false).await? {
                let is_ours = attempt.in_doubt && has_entries(client, &found, &new.entries).await?;
                return match is_ours {
                    true => Ok((found.log, found.meta)),
                    false => Err(StoreError::Exists(new.id).into()),
                };
            }
            let base = base_of(client, &new).await?;
            let log = free_log(client, new.id).await?;
            let created = insert_log(client, log, new.id, base, &new.entries).await;
            created
                .map(|meta| (log, meta))
                .map_err(|failure| match failure {
                    // Another client creates the same session at the same time.
                    Failure::Server(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                        Failure::Repeat(StoreError::Exists(new.id))
                    }
                    failure => failure,
                })
        });
        let (log, meta) = done.await?;
        let head = meta.head;
        self.metas.borrow_mut().put(new.id, log, meta);
        Ok(head)
    }

    pub(super) async fn append(
        &self,
        id: SessionId,
        after: Head,
        entries: Vec<Entry>,
    ) -> StoreResult<Head> {
        check_whole(&entries)?;
        let what = "cannot append";
        let done = self
            .run(what, Some(id), Mode::Write, async |client, attempt| {
                let known = self.metas.borrow().get(id, after);
                let (log, meta) = match known {
                    Some(known) if !entries.is_empty() => known,
                    _ => {
                        let found = find(client, id, false).await?;
                        let found = found.ok_or(StoreError::NotFound(id))?;
                        if found.meta.head != after {
                            return refused(client, &found, &entries, attempt.in_doubt).await;
                        }
                        (found.log, found.meta)
                    }
                };
                let append = Append::new(id, log, after, meta, &entries);
                if self.append_once(client, &append).await? {
                    return Ok((log, append.meta));
                }
                let found = find(client, id, false).await?;
                let found = found.ok_or(StoreError::NotFound(id))?;
                refused(client, &found, &entries, attempt.in_doubt).await
            })
            .await;
        match done {
            Ok((log, meta)) => {
                let head = meta.head;
                self.metas.borrow_mut().put(id, log, meta);
                Ok(head)
            }
            Err(error) => {
                self.metas.borrow_mut().forget(id);
                Err(error)
            }
        }
    }

    /// Appends if the log ends as expected; returns whether it did.
    async fn append_once(&self, connection: &Connection, append: &Append<'_>) -> Answer<bool> {
        let fence = self.fence(append.id);
        let batches = batches(append.entries);
        if let [batch] = &batches[..]
            && batch.more.is_empty()
            && append.snapshots.is_empty()
        {
            // A transaction of its own, with one round trip.
            let statement = append.moving_head(batch, fence)?;
            return Ok(execute_planned(connection, &statement).await? > 0);
        }
        connection.batch_execute(&self.begin(Mode::Write)).await?;
        let done = append.write(connection, &batches, fence).await;
        let end = if matches!(done, Ok(true)) {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        let ended = connection.batch_execute(end).await;
        let done = done?;
        ended?;
        Ok(done)
    }
}

/// Entries to append to a log.
struct Append<'a> {
    id: SessionId,
    log: Uuid,
    after: Head,
    entries: &'a [Entry],
    /// Derived columns before.
    before: Derived,
    /// Metadata afterwards.
    meta: SessionMeta,
    snapshots: Vec<SessionMeta>,
}

impl<'a> Append<'a> {
    fn new(
        id: SessionId,
        log: Uuid,
        after: Head,
        mut meta: SessionMeta,
        entries: &'a [Entry],
    ) -> Append<'a> {
        let before = Derived::of(&meta);
        let snapshots = apply(&mut meta, entries);
        Append {
            id,
            log,
            after,
            entries,
            before,
            meta,
            snapshots,
        }
    }

    /// Builds the statement that moves the head and inserts a first batch, unless the log ends elsewhere or
    /// the session's lock was taken over. It has no part that an append of one message does not need.
    fn moving_head(&self, batch: &Batch<'_>, fence: i64) -> Answer<Statement> {
        let columns = Derived::of(&self.meta);
        let mut values = vec![
            Literal::uuid(self.log),
            Literal::uuid(self.id.uuid()),
            Literal::int8(number(self.after.seq)),
            Literal::bytes(self.after.hash.bytes()),
            Literal::int8(columns.head),
            Literal::bytes(&columns.hash),
            Literal::int8(columns.updated),
            Literal::bytes(&row_of(&self.meta)?),
        ];
        let lines = match (&batch.seqs[..], &batch.parts[..], &batch.lines[..]) {
            ([seq], [parts], [line]) => {
                values.push(Literal::int8(*seq));
                values.push(Literal::int4(*parts));
                values.push(Literal::bytes(line));
                "SELECT log, $9, $10, $11 FROM moved"
            }
            _ => {
                values.push(Literal::int8s(&batch.seqs));
                values.push(Literal::int4s(&batch.parts));
                values.push(Literal::bytes_list(&batch.lines));
                "SELECT log, seq, parts, line
                 FROM moved, unnest($9, $10, $11) AS one(seq, parts, line)"
            }
        };
        let mut set = String::new();
        if has_words(self.entries) {
            set.push_str(", draft = NULL");
        }
        if !columns.is_found_as(&self.before) {
            set.push_str(", state = $12, project = $13, title = $14, changed = $15, hour = $16");
            values.push(Literal::int2(columns.state));
            values.push(Literal::int8(columns.project));
            values.push(Literal::int8(columns.title));
            values.push(Literal::int8(columns.changed));
            values.push(Literal::int8(columns.hour));
        }
        let mut fenced = String::new();
        if fence != NO_FENCE {
            values.push(Literal::int8(fence));
            fenced = not_taken(2, values.len());
        }
        // An `id = $2` would make the server consider a second index.
        let sql = format!(
            "WITH moved AS (
               UPDATE tertulia_session SET head = $5, hash = $6, updated = $7, row = $8{set}
               WHERE log = $1 AND head = $3 AND hash = $4 AND id IS NOT DISTINCT FROM $2{fenced}
               RETURNING log)
             INSERT INTO tertulia_entry(session, seq, parts, line) {lines}"
        );
        Ok(Statement { sql, values })
    }

    /// Writes what does not fit into one statement. The caller ends the transaction.
    async fn write(&self, client: &Client, batches: &[Batch<'_>], fence: i64) -> Answer<bool> {
        let Some((first, rest)) = batches.split_first() else {
            return Ok(true);
        };
        let statement = self.moving_head(first, fence)?;
        if execute_inline(client, &statement).await? == 0 {
            return Ok(false);
        }
        insert_parts(client, self.log, first).await?;
        for batch in rest {
            insert_lines(client, self.log, batch).await?;
        }
        for snapshot in &self.snapshots {
            put_snapshot(client, self.log, snapshot).await?;
        }
        Ok(true)
    }
}

/// Applies entries to metadata, and returns the snapshots that are due.
fn apply(meta: &mut SessionMeta, entries: &[Entry]) -> Vec<SessionMeta> {
    let mut snapshots = Vec::new();
    for entry in entries {
        meta.apply(entry);
        if chain::is_snapshot_due(meta, entry.seq) {
            snapshots.push(meta.clone());
        }
    }
    snapshots
}

/// Returns the result of an append to a log that ends elsewhere: the entries may be there already, by
/// an attempt whose answer was lost.
async fn refused(
    client: &Client,
    found: &Found,
    entries: &[Entry],
    in_doubt: bool,
) -> Answer<(Uuid, SessionMeta)> {
    if in_doubt && has_entries(client, found, entries).await? {
        return match entries.last() {
            Some(last) if last.head() != found.meta.head => {
                let meta = summary_at(client, found, last.seq).await?;
                Ok((found.log, meta))
            }
            _ => Ok((found.log, found.meta.clone())),
        };
    }
    let (id, head) = (found.name(), found.meta.head);
    Err(StoreError::Conflict { id, head }.into())
}

/// Returns true if a log has exactly these entries.
async fn has_entries(client: &Client, found: &Found, entries: &[Entry]) -> Answer<bool> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Ok(true);
    };
    let lines = own_lines(
        client,
        found.log,
        first.seq.back(1),
        last.seq,
        entries.len(),
    )
    .await?;
    let same = |(line, entry): (&tertulia_core::session::Line, &Entry)| {
        line.bytes == entry.line().as_bytes()
    };
    Ok(lines.len() == entries.len() && lines.iter().zip(entries).all(same))
}

/// Returns a name for the log of a new session: its id, unless forks of a purged session of that id
/// still use it.
async fn free_log(client: &Client, id: SessionId) -> Answer<Uuid> {
    let mut log = id.uuid();
    let mut number = 1;
    let sql = "SELECT 1 FROM tertulia_session WHERE log = $1";
    while !query(client, sql, &[(&log, Type::UUID)]).await?.is_empty() {
        log = derived_id(&format!("{id} {number}"));
        number += 1;
    }
    Ok(log)
}

/// Returns the log that a fork continues and its metadata there. The log is locked, so that a purge
/// waits and then sees the fork.
async fn base_of(client: &Client, new: &NewSession) -> Answer<Option<(Uuid, SessionMeta)>> {
    let Some(origin) = &new.base else {
        return Ok(None);
    };
    let found = find(client, origin.id, true).await?;
    let found = found.ok_or(StoreError::NotFound(origin.id))?;
    let meta = summary_at(client, &found, origin.seq).await?;
    let head = Head {
        seq: origin.seq,
        hash: origin.hash,
    };
    if meta.head != head {
        let (id, head) = (found.name(), found.meta.head);
        return Err(StoreError::Conflict { id, head }.into());
    }
    let owner = owner_of(client, (found.log, found.base), head.seq).await?;
    if owner != found.log {
        // The row alone: the log of a shared prefix need not be read.
        let sql = "SELECT 1 FROM tertulia_session WHERE log = $1 FOR UPDATE";
        query(client, sql, &[(&owner, Type::UUID)]).await?;
    }
    Ok(Some((owner, meta)))
}

/// Inserts a session with its first entries.
pub(super) async fn insert_log(
    client: &Client,
    log: Uuid,
    id: SessionId,
    base: Option<(Uuid, SessionMeta)>,
    entries: &[Entry],
) -> Answer<SessionMeta> {
    let (base, mut meta): (Base, SessionMeta) = match base {
        None => (None, SessionMeta::blank(id)),
        Some((owner, meta)) => (Some((owner, meta.head.seq)), meta),
    };
    insert_entries(client, log, &mut meta, entries).await?;
    meta.id = id;
    insert_row(client, log, id, base, &meta).await?;
    Ok(meta)
}

/// Inserts entries into a log, and applies them to the metadata of the session before them.
pub(super) async fn insert_entries(
    client: &Client,
    log: Uuid,
    meta: &mut SessionMeta,
    entries: &[Entry],
) -> Answer<()> {
    for batch in batches(entries) {
        insert_lines(client, log, &batch).await?;
    }
    for snapshot in apply(meta, entries) {
        put_snapshot(client, log, &snapshot).await?;
    }
    Ok(())
}

/// Inserts a session's row.
pub(super) async fn insert_row(
    client: &Client,
    log: Uuid,
    id: SessionId,
    base: Base,
    meta: &SessionMeta,
) -> Answer<()> {
    let columns = Derived::of(meta);
    let (owner, base_seq) = (
        base.map(|(owner, _)| owner),
        base.map(|(_, seq)| number(seq)),
    );
    let sql =
        "INSERT INTO tertulia_session(log, id, base, base_seq, state, kind, team, project, title,
                 hour, updated, changed, head, hash, row)
               VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    let values: [Value<'_>; 15] = [
        (&log, Type::UUID),
        (&id.uuid(), Type::UUID),
        (&owner, Type::UUID),
        (&base_seq, Type::INT8),
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
