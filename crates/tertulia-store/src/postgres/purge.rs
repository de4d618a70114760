//! Purges a session: removes entries that no fork shares, and shared ones with their last fork. Replaces
//! the log of a session that is sealed or unsealed, and the end of a log.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::check::update_row;
use super::rows::{find, head_at, number, seq_of, summary_at};
use super::server::{Answer, Mode, Server, Value, execute, query};
use super::write::{insert_entries, insert_log};
use crate::salvage::derived_id;
use crate::selection::PURGED;
use crate::{StoreError, StoreResult, Unsent, check_whole, has_words, shared_with_forks};
use tertulia_core::entry::{Entry, Hash, Head};
use tertulia_core::id::{Seq, SessionId};

impl Server {
    /// Removes a session. Returns the logs that lost entries.
    pub(super) async fn purge(&self, id: SessionId) -> StoreResult<Vec<Uuid>> {
        let what = "cannot purge";
        self.keep_unsent(id, Unsent::default()).await?;
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

    /// Replaces the entries after `keep` of a session that ends at `after`. Returns the rows that hold
    /// them. Their name stays, because forks refer to it: an index that has the old end finds another
    /// hash where it stopped, and forgets the log.
    pub(super) async fn replace_end(
        &self,
        id: SessionId,
        (after, keep): (Head, Head),
        entries: Vec<Entry>,
    ) -> StoreResult<Uuid> {
        check_whole(&entries)?;
        let end = entries.last().map_or(keep, Entry::head);
        let what = "cannot replace the end of a log";
        let replaced = self.transact(what, Some(id), Mode::Write, async |client, attempt| {
            let found = find(client, id, true).await?;
            let found = found.ok_or(StoreError::NotFound(id))?;
            let (log, head) = (found.log, found.meta.head);
            if attempt.in_doubt && head == end {
                return Ok(log);
            }
            let mut meta = summary_at(client, &found, keep.seq).await?;
            if head != after || meta.head != keep {
                return Err(StoreError::Conflict { id, head }.into());
            }
            // A fork waits for the lock on the row, and then finds the new end.
            let shared = shared_upto(client, log).await?;
            let base = found.base.map(|(_, base)| base);
            if shared.max(base).is_some_and(|shared| shared > keep.seq) {
                return Err(shared_with_forks(id).into());
            }
            cut_after(client, log, keep.seq).await?;
            insert_entries(client, log, &mut meta, &entries).await?;
            meta.id = id;
            update_row(client, log, &meta).await?;
            if has_words(&entries) {
                let sql = "UPDATE tertulia_session SET draft = NULL WHERE log = $1";
                execute(client, sql, &[(&log, Type::UUID)]).await?;
            }
            Ok(log)
        });
        let replaced = replaced.await;
        self.metas.borrow_mut().forget(id);
        replaced
    }
}

/// Returns the last entry of a log that a fork shares.
async fn shared_upto(client: &Client, log: Uuid) -> Answer<Option<Seq>> {
    let sql = "SELECT max(base_seq) FROM tertulia_session WHERE base = $1";
    let rows = query(client, sql, &[(&log, Type::UUID)]).await?;
    let shared: Option<i64> = match rows.first() {
        Some(row) => row.try_get(0)?,
        None => None,
    };
    Ok(shared.map(seq_of))
}

/// Removes the entries of a log after one of them.
async fn cut_after(client: &Client, log: Uuid, kept: Seq) -> Answer<()> {
    for table in ["tertulia_entry", "tertulia_part", "tertulia_snapshot"] {
        let sql = format!("DELETE FROM {table} WHERE session = $1 AND seq > $2");
        let values: [Value<'_>; 2] = [(&log, Type::UUID), (&number(kept), Type::INT8)];
        execute(client, &sql, &values).await?;
    }
    Ok(())
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
    let shared = shared_upto(client, log).await?;
    let kept = shared.unwrap_or_default();
    changed.push(log);
    cut_after(client, log, kept).await?;
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
