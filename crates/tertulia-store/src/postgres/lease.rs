//! Session locks: a row per session with an expiry by the server's clock. The holder renews it in the
//! background; the lock of a holder that died ends by itself.
//!
//! Each new holder gets a higher fence number. An append of a holder whose lock was taken meanwhile
//! is refused, because it names the lower number. The row goes with the lock; numbers grow all the
//! same, because they are those of the server's transactions.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::runner::Runner;
use super::server::{Mode, Server, execute, query};
use crate::session_lock::{Guard, SessionLock};
use crate::{LockHolder, StoreError, StoreResult};
use tertulia_core::id::SessionId;

/// Number of renewals within the time after which a lease ends.
const RENEWALS: u32 = 3;
/// How long dropping a lock waits for the server.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);
/// Time for which the row of an expired lock is kept: a holder that slept goes on if no other has
/// come.
const SWEPT: &str = "7 days";
/// Stands for a session without a lock of this store.
pub(super) const NO_FENCE: i64 = 0;

/// Returns the condition of an append under a lock: no other holder has taken it, also none that has
/// released it since. The values are the session and the fence number. A value is planned faster than
/// a join.
pub(super) fn not_taken(session: usize, fence: usize) -> String {
    format!(
        " AND coalesce((SELECT fence FROM tertulia_lease WHERE session = ${session}), 0) = ${fence}"
    )
}

/// A lock that this store holds.
#[derive(Debug)]
pub(super) struct HeldLease {
    token: Uuid,
    fence: i64,
    renewal: AbortHandle,
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl Server {
    /// Returns the number of the lock that this store holds on a session.
    pub(super) fn fence(&self, id: SessionId) -> i64 {
        self.leases
            .borrow()
            .get(&id)
            .map_or(NO_FENCE, |lease| lease.fence)
    }

    /// Takes the lock of a session, if no other holder has it or it is taken over. `token` tells this holder from others;
    /// `wanted` ends with the guard, or with a caller that did not wait for it.
    pub(super) async fn take_lease(
        self: Rc<Self>,
        id: SessionId,
        token: Uuid,
        wanted: Weak<()>,
        take_over: bool,
    ) -> StoreResult<bool> {
        let holder = self.patience().holder();
        let holder = serde_json::to_vec(&holder)
            .map_err(|error| StoreError::failed("cannot lock a session", error))?;
        let sql = "INSERT INTO tertulia_lease AS held(session, token, fence, expires, holder)
                   VALUES($1, $2, txid_current(), now() + $3 * interval '1 millisecond', $4)
                   ON CONFLICT (session) DO UPDATE SET token = excluded.token,
                     fence = greatest(held.fence + 1, excluded.fence),
                     expires = excluded.expires, holder = excluded.holder
                   WHERE held.expires <= now() OR $5
                   RETURNING fence";
        let milliseconds = self.lease_milliseconds();
        let what = "cannot lock a session";
        let taken = self.run(what, Some(id), Mode::Write, async |client, attempt| {
            let values = [
                (&id.uuid() as _, Type::UUID),
                (&token as _, Type::UUID),
                (&milliseconds as _, Type::FLOAT8),
                (&holder as _, Type::BYTEA),
                (&take_over as _, Type::BOOL),
            ];
            let mut rows = query(client, sql, &values).await?;
            if rows.is_empty() && attempt.in_doubt {
                let sql = "SELECT fence FROM tertulia_lease WHERE session = $1 AND token = $2";
                rows = query(client, sql, &values[..2]).await?;
            }
            Ok(match rows.first() {
                Some(row) => Some(row.try_get::<_, i64>(0)?),
                None => None,
            })
        });
        let Some(fence) = taken.await? else {
            return Ok(false);
        };
        let renewal =
            tokio::task::spawn_local(self.clone().renew(id, token, wanted)).abort_handle();
        let lease = HeldLease {
            token,
            fence,
            renewal,
        };
        self.leases.borrow_mut().insert(id, lease);
        self.sweep_leases().await;
        Ok(true)
    }

    /// Removes the rows of holders that died long ago.
    async fn sweep_leases(&self) {
        let sql = format!("DELETE FROM tertulia_lease WHERE expires < now() - interval '{SWEPT}'");
        let what = "cannot remove old locks";
        let swept = self.run(what, None, Mode::Write, async |client, _| {
            Ok(execute(client, &sql, &[]).await?)
        });
        // Ignore errors: the next lock that is taken removes them.
        let _ = swept.await;
    }

    fn lease_milliseconds(&self) -> f64 {
        self.limits.lease.as_secs_f64() * 1000.0
    }

    /// Renews a lock until it is dropped or another holder has it.
    async fn renew(self: Rc<Self>, id: SessionId, token: Uuid, wanted: Weak<()>) {
        let milliseconds = self.lease_milliseconds();
        let is_held = Cell::new(true);
        while is_held.get() {
            tokio::time::sleep(self.limits.lease / RENEWALS).await;
            if wanted.strong_count() == 0 {
                // Without renewal it ends by itself.
                let mut leases = self.leases.borrow_mut();
                if leases.get(&id).is_some_and(|lease| lease.token == token) {
                    leases.remove(&id);
                }
                return;
            }
            let sql = "UPDATE tertulia_lease SET expires = now() + $3 * interval '1 millisecond'
                       WHERE session = $1 AND token = $2";
            let renewed = self.run(
                "cannot renew a lock",
                Some(id),
                Mode::Write,
                async |client, _| {
                    let values = [
                        (&id.uuid() as _, Type::UUID),
                        (&token as _, Type::UUID),
                        (&milliseconds as _, Type::FLOAT8),
                    ];
                    Ok(execute(client, sql, &values).await?)
                },
            );
            // A server that is out of reach may be back at the next renewal.
            is_held.set(!matches!(renewed.await, Ok(0)));
        }
    }

    /// Releases a lock. A renewal that is under way finds no lock to renew.
    pub(super) async fn release_lease(&self, id: SessionId) -> StoreResult<()> {
        let Some(lease) = self.leases.borrow_mut().remove(&id) else {
            return Ok(());
        };
        let sql = "DELETE FROM tertulia_lease WHERE session = $1 AND token = $2";
        self.run(
            "cannot release a lock",
            Some(id),
            Mode::Write,
            async |client, _| {
                let values = [
                    (&id.uuid() as _, Type::UUID),
                    (&lease.token as _, Type::UUID),
                ];
                execute(client, sql, &values).await?;
                Ok(())
            },
        )
        .await
    }

    /// Returns the holder of a session's lock, if it is locked.
    pub(super) async fn lease_holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        let sql = "SELECT holder FROM tertulia_lease WHERE session = $1 AND expires > now()";
        self.run(
            "cannot look at a lock",
            Some(id),
            Mode::Read,
            async |client, _| {
                let rows = query(client, sql, &[(&id.uuid(), Type::UUID)]).await?;
                Ok(match rows.first() {
                    Some(row) => Some(serde_json::from_slice(row.try_get(0)?).unwrap_or_default()),
                    None => None,
                })
            },
        )
        .await
    }
}

/// Releases a lock when it is dropped.
#[derive(Debug)]
struct Lease {
    id: SessionId,
    runner: Arc<Runner>,
    _wanted: Arc<()>,
}

impl Guard for Lease {}

impl Drop for Lease {
    fn drop(&mut self) {
        let id = self.id;
        // Waits, so that a lock that was dropped is free for the next holder, and a program that ends
        // now leaves none behind. Without an answer the lock ends by itself.
        let release = move |server: Rc<Server>| async move { server.release_lease(id).await };
        let _ = self.runner.call_blocking(Some(RELEASE_WITHIN), release);
    }
}

/// Takes the lock of a session: if it is free, or from any holder.
pub(super) async fn claim(
    runner: &Arc<Runner>,
    id: SessionId,
    token: Uuid,
    take_over: bool,
) -> StoreResult<Option<SessionLock>> {
    let wanted = Arc::new(());
    let theirs = Arc::downgrade(&wanted);
    let taken = runner.call(move |server| server.take_lease(id, token, theirs, take_over));
    let guard = taken.await?.then(|| Lease {
        id,
        runner: runner.clone(),
        _wanted: wanted,
    });
    Ok(guard.map(|guard| SessionLock::new(id, guard)))
}
