//! Drafts: unfinished answers, one per session. They stand in the row of the session, so that the
//! append that replaces one removes it without a statement of its own.

use tokio_postgres::types::Type;

use super::rows::{find, read_lines};
use super::server::{Mode, Server, execute, query};
use crate::{Draft, StoreError, StoreResult};
use tertulia_core::id::{Seq, SessionId};

impl Server {
    pub(super) async fn keep_draft(&self, id: SessionId, draft: Draft) -> StoreResult<()> {
        let body = serde_json::to_vec(&draft)
            .map_err(|error| StoreError::failed("cannot write a draft", error))?;
        // Not in a session that was taken over: the draft would be the other writer's.
        let sql = "UPDATE tertulia_session SET draft = $2 WHERE id = $1 AND ($3 = 0 OR EXISTS
                     (SELECT 1 FROM tertulia_lease WHERE session = $1 AND fence = $3))";
        let what = "cannot keep a draft";
        let fence = self.fence(id);
        let kept = self.run(what, Some(id), Mode::Write, async |client, _| {
            let values = [
                (&id.uuid() as _, Type::UUID),
                (&body as _, Type::BYTEA),
                (&fence as _, Type::INT8),
            ];
            Ok(execute(client, sql, &values).await?)
        });
        match kept.await? {
            0 => Err(StoreError::NotFound(id)),
            _ => Ok(()),
        }
    }

    pub(super) async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        let what = "cannot read a draft";
        self.transact(what, Some(id), Mode::Read, async |client, _| {
            let found = find(client, id, false).await?;
            let found = found.ok_or(StoreError::NotFound(id))?;
            let sql = "SELECT draft FROM tertulia_session WHERE log = $1 AND draft IS NOT NULL";
            let rows = query(client, sql, &[(&found.log, Type::UUID)]).await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let Ok(draft) = serde_json::from_slice::<Draft>(row.try_get(0)?) else {
                return Ok(None);
            };
            let log = (found.log, found.base);
            let end = Seq(u64::MAX);
            let lines = read_lines(client, log, draft.after.seq, end, usize::MAX).await?;
            Ok(draft.if_current(&lines, Some(found.meta.head)))
        })
        .await
    }
}
