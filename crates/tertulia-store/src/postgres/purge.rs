//! Purges a session: removes entries that no fork shares, and shared ones with their last fork. Replaces
//! the log of a session that is sealed or unsealed.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::rows::{find, head_at, number, seq_of};
use super::server::{Answer, Mode, Server, Value, execute, query};
use super::write::insert_log;
use crate::salvage::derived_id;
use crate::selection::PURGED;
use crate::{StoreError, StoreResult, check_whole, shared_with_forks};
use tertulia_core::entry::{Entry, Hash, Head};
use tertulia_core::id::SessionId;

impl Server {
    /// Removes a session. Returns the logs that lost entries.
    pub(super) async fn purge(&self, id: SessionId) -> StoreResult<Vec<Uuid>> {
        let what = "cannot purge";
        let purged = self.transact(what, Some(id), Mode::Write, async |client, attempt| {
            let Some(found) = find(client, id, true).await? else {
                return match attempt.in_doubt {
                    true => Ok(Vec::new()),
                    false => Err(StoreError::NotFound(id).into()),
                };
            };
            let lease = "DELETE FROM tertulia_lease WHERE session = $1";
            execute(client, lease, &[(&id.uuid(), Type::UUID)]).await?;
            remove(client, found.log).await
        });
        let changed = purged.await?;
        self.metas.borrow_mut().forget(id);
        Ok(changed)
    }

    /// Returns the rows that hold a session's own entries.
    pub(super) async fn log_of(&self, id: SessionId) -> StoreResult<Uuid> {
        let found = self.run("cannot read", Some(id), Mode::Read, async |client, _| {
            Ok(find(client, id, false).await?.map(|found| found.log))
        });
        found.await?.ok_or(StoreError::NotFound(id))
    }

    /// Replaces the log of a session that ends at `after`. The new one has rows of another name, so
    /// that the local indexes of other clients forget the old one.
    pub(super) async fn replace(
        &self,
        id: SessionId,
        after: Head,
        entries: Vec<Entry>,
    ) -> StoreResult<()> {
        check_whole(&entries)?;
        let end = entries.last().map(Entry::head);
        let end =
            end.ok_or_else(|| StoreError::Refused("a session begins with an entry".into()))?;
        let what = "cannot replace a log";
        let replaced = self.transact(what, Some(id), Mode::Write, async |client, attempt| {
            let found = find(client, id, true).await?;
            let found = found.ok_or(StoreError::NotFound(id))?;
            let head = found.meta.head;
            if attempt.in_doubt && head == end {
                return Ok(());
            }
            if head != after {
                return Err(StoreError::Conflict { id, head }.into());
            }
            let forks = "SELECT 1 FROM tertulia_session WHERE base = $1 LIMIT 1";
            let forks = query(client, forks, &[(&found.log, Type::UUID)]).await?;
            if !forks.is_empty() {
                return Err(shared_with_forks(id).into());
            }
            remove(client, found.log).await?;
            let log = derived_id(&format!("{id} {}", end.hash));
            insert_log(client, log, id, None, &entries).await?;
            Ok(())
        });
        let replaced = replaced.await;
        self.metas.borrow_mut().forget(id);
        replaced
    }
}

async fn remove(client: &Client, log: Uuid) -> Answer<Vec<Uuid>> {
    make_shared_prefix(client, log).await?;
    let mut changed = Vec::new();
    let mut prefix = Some(log);
    while let Some(log) = prefix {
        prefix = trim(client, log, &mut changed).await?;
    }
    Ok(changed)
}

/// Turns a session's row into that of a shared prefix, without an id: a session with the id may be
/// created again, for example by an import.
async fn make_shared_prefix(client: &Client, log: Uuid) -> Answer<()> {
    let sql = format!(
        "UPDATE tertulia_session SET id = NULL, state = {PURGED}, team = NULL, project = NULL,
           title = NULL, changed = NULL, row = '', draft = NULL WHERE log = $1"
    );
    execute(client, &sql, &[(&log, Type::UUID)]).await?;
    Ok(())
}

/// Trims a purged session to what is shared. If nothing is, removes it and returns its base, which
/// may have been kept for this session alone.
pub(super) async fn trim(
    client: &Client,
    log: Uuid,
    changed: &mut Vec<Uuid>,
) -> Answer<Option<Uuid>> {
    let values: [Value<'_>; 1] = [(&log, Type::UUID)];
    let sql = "SELECT state, base, base_seq FROM tertulia_session WHERE log = $1 FOR UPDATE";
    let rows = query(client, sql, &values).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    if i64::from(row.try_get::<_, i16>(0)?) != PURGED {
        return Ok(None);
    }
    let base: Option<Uuid> = row.try_get(1)?;
    let base_seq: Option<i64> = row.try_get(2)?;
    let sql = "SELECT max(base_seq) FROM tertulia_session WHERE base = $1";
    let rows = query(client, sql, &values).await?;
    let shared: Option<i64> = match rows.first() {
        Some(row) => row.try_get(0)?,
        None => None,
    };
    let kept = seq_of(shared.unwrap_or(0));
    changed.push(log);
    for table in ["tertulia_entry", "tertulia_part", "tertulia_snapshot"] {
        let sql = format!("DELETE FROM {table} WHERE session = $1 AND seq > $2");
        let values: [Value<'_>; 2] = [(&log, Type::UUID), (&number(kept), Type::INT8)];
        execute(client, &sql, &values).await?;
    }
    if shared.is_none() {
        execute(
            client,
            "DELETE FROM tertulia_session WHERE log = $1",
            &values,
        )
        .await?;
        return Ok(base);
    }
    let place = (log, base.zip(base_seq.map(seq_of)));
    let head = head_at(client, place, kept).await?.unwrap_or(Head {
        seq: kept,
        hash: Hash::NONE,
    });
    let sql = "UPDATE tertulia_session SET head = $2, hash = $3 WHERE log = $1";
    let values: [Value<'_>; 3] = [
        (&log, Type::UUID),
        (&number(head.seq), Type::INT8),
        (&head.hash.bytes().to_vec(), Type::BYTEA),
    ];
    execute(client, sql, &values).await?;
    Ok(None)
}
