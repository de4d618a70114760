//! Words of the user that are not in the log of a session yet.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::schema;
use super::server::{Mode, Server, execute, query};
use crate::{StoreError, StoreResult, Unsent};
use tertulia_core::id::SessionId;

/// Not in a session that was taken over: the words would replace those of the other writer.
const KEEP: &str = "INSERT INTO tertulia_unsent SELECT $1, $2 WHERE $3 = 0 OR EXISTS
      (SELECT 1 FROM tertulia_lease WHERE session = $1 AND fence = $3)
    ON CONFLICT (id) DO UPDATE SET body = excluded.body";
const REMOVE: &str = "DELETE FROM tertulia_unsent WHERE id = $1 AND $2::bytea IS NOT NULL
    AND ($3 = 0 OR EXISTS (SELECT 1 FROM tertulia_lease WHERE session = $1 AND fence = $3))";

impl Server {
    pub(super) async fn keep_unsent(&self, id: SessionId, unsent: Unsent) -> StoreResult<()> {
        let body = unsent.encode()?;
        let what = "cannot keep unsent words";
        let fence = self.fence(id);
        let kept = self.run(what, None, Mode::Write, async |client, _| {
            let sql = match unsent.is_empty() {
                true => REMOVE,
                false => KEEP,
            };
            let values = [
                (&id.uuid() as _, Type::UUID),
                (&body as _, Type::BYTEA),
                (&fence as _, Type::INT8),
            ];
            match execute(client, sql, &values).await {
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                    client.batch_execute(schema::UNSENT).await?;
                    Ok(execute(client, sql, &values).await?)
                }
                kept => Ok(kept?),
            }
        });
        match kept.await? {
            0 if !unsent.is_empty() => Err(StoreError::NotFound(id)),
            _ => Ok(()),
        }
    }

    pub(super) async fn unsent(
        &self,
        id: Option<SessionId>,
    ) -> StoreResult<Vec<(SessionId, Unsent)>> {
        let what = "cannot read unsent words";
        let rows = self.run(what, None, Mode::Read, async |client, _| {
            let sql = "SELECT id, body FROM tertulia_unsent WHERE $1::uuid IS NULL OR id = $1";
            let id = id.map(SessionId::uuid);
            let rows = match query(client, sql, &[(&id, Type::UUID)]).await {
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Vec::new(),
                rows => rows?,
            };
            let mut read = Vec::new();
            for row in rows {
                let (id, body): (Uuid, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
                read.push((SessionId::new(id), body));
            }
            Ok(read)
        });
        let rows = rows.await?.into_iter();
        rows.map(|(id, body)| Ok((id, Unsent::decode(id, &body)?)))
            .collect()
    }
}
