//! Tables of a store: creates them in an empty schema, and identifies those that are there.
//!
//! The statements are those that PostgreSQL shares with databases that speak its protocol: no trigger,
//! extension, sequence or foreign key. Each is repeatable, and the row in `tertulia_store` is written
//! last: without it the tables are not complete.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::server::{Answer, Failure, Mode, Server, execute, query};
use crate::{StoreError, StoreResult};

/// Version of the tables that this program writes.
pub const FORMAT: u32 = 1;

/// Free text is `bytea`: the text of PostgreSQL holds no zero byte, and depends on the encoding of the
/// database. Texts to look for have a number beside them, see [`super::rows::key`].
const TABLES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS tertulia_store(
       one smallint PRIMARY KEY, id uuid NOT NULL, format integer NOT NULL)",
    // `log` names the rows of its log. It stays when the session is purged and forks still share
    // entries; `id` is null from then on. State: 0 live, 1 in the trash, 2 purged.
    //
    // Every append updates the row. It does so without a new entry in each index as long as no
    // indexed column changes and the page has room: therefore lists are found by the hour, which
    // changes seldom, and sorted by the time within it, and half of each page is left free.
    "CREATE TABLE IF NOT EXISTS tertulia_session(
       log uuid PRIMARY KEY, id uuid UNIQUE, base uuid, base_seq bigint, state smallint NOT NULL,
       kind text NOT NULL, team bigint, project bigint, title bigint, hour bigint NOT NULL,
       updated bigint NOT NULL, changed bigint, head bigint NOT NULL, hash bytea NOT NULL,
       row bytea NOT NULL, draft bytea) WITH (fillfactor = 50)",
    "CREATE INDEX IF NOT EXISTS tertulia_session_by_time ON tertulia_session(hour)",
    "CREATE INDEX IF NOT EXISTS tertulia_session_by_project ON tertulia_session(project, hour)",
    // Most sessions have no title, are no forks and were not changed.
    "CREATE INDEX IF NOT EXISTS tertulia_session_by_title
       ON tertulia_session(title) WHERE title IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS tertulia_session_by_change
       ON tertulia_session(changed, id) WHERE changed IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS tertulia_session_by_base
       ON tertulia_session(base) WHERE base IS NOT NULL",
    // A line of more than `rows::LARGEST_PART` continues in so many rows of `tertulia_part`.
    "CREATE TABLE IF NOT EXISTS tertulia_entry(
       session uuid NOT NULL, seq bigint NOT NULL, parts integer NOT NULL, line bytea NOT NULL,
       PRIMARY KEY(session, seq))",
    "CREATE TABLE IF NOT EXISTS tertulia_part(
       session uuid NOT NULL, seq bigint NOT NULL, part integer NOT NULL, line bytea NOT NULL,
       PRIMARY KEY(session, seq, part))",
    "CREATE TABLE IF NOT EXISTS tertulia_snapshot(
       session uuid NOT NULL, seq bigint NOT NULL, row bytea NOT NULL, PRIMARY KEY(session, seq))",
    "CREATE TABLE IF NOT EXISTS tertulia_lease(
       session uuid PRIMARY KEY, token uuid NOT NULL, fence bigint NOT NULL,
       expires timestamptz NOT NULL, holder bytea NOT NULL)",
    UNSENT,
    "CREATE TABLE IF NOT EXISTS tertulia_damaged(
       session uuid NOT NULL, at bigint NOT NULL, seq bigint NOT NULL, part integer NOT NULL,
       line bytea NOT NULL, PRIMARY KEY(session, at, seq, part))",
];

/// Words of the user that are not in the log of a session yet, which need not have been created. Stores of
/// earlier versions get the table when it is first needed.
pub(super) const UNSENT: &str =
    "CREATE TABLE IF NOT EXISTS tertulia_unsent(id uuid PRIMARY KEY, body bytea NOT NULL)";

/// What makes appends faster where the server can do it, and changes nothing else: its usual compression took
/// a fifth of the time of an append.
const OPTIONS: &[&str] = &[
    "ALTER TABLE tertulia_entry ALTER COLUMN line SET COMPRESSION lz4",
    "ALTER TABLE tertulia_part ALTER COLUMN line SET COMPRESSION lz4",
];

/// Migration steps by the format that they start from.
const MIGRATIONS: &[(u32, &str)] = &[];

impl Server {
    /// Identifies the store, after creating its tables in an empty schema. Returns its id, which is
    /// `new_id` if there was none.
    pub(super) async fn identify(&self, new_id: Uuid) -> StoreResult<Uuid> {
        let place = self.address.to_string();
        let known = self.run(
            "cannot open the store",
            None,
            Mode::Read,
            async |client, _| identified(client, &place).await,
        );
        if let Some((format, id)) = known.await? {
            return self.check_format(format, id).await;
        }
        self.run(
            "cannot create the tables",
            None,
            Mode::Write,
            async |client, _| create(client, new_id).await,
        )
        .await?;
        let known = self.run(
            "cannot open the store",
            None,
            Mode::Read,
            async |client, _| identified(client, &place).await,
        );
        match known.await? {
            Some((format, id)) => self.check_format(format, id).await,
            None => Err(self.not_a_store("its row in tertulia_store is missing")),
        }
    }

    fn not_a_store(&self, reason: impl Into<String>) -> StoreError {
        StoreError::NotAStore {
            place: self.address.to_string(),
            reason: reason.into(),
        }
    }

    async fn check_format(&self, found: u32, id: Uuid) -> StoreResult<Uuid> {
        if found > FORMAT {
            return Err(StoreError::NewerFormat {
                place: self.address.to_string(),
                found,
                known: FORMAT,
            });
        }
        for (from, step) in MIGRATIONS.iter().filter(|(from, _)| *from >= found) {
            let next = i32::try_from(from + 1).unwrap_or(i32::MAX);
            self.transact(
                "cannot migrate the store",
                None,
                super::server::Mode::Write,
                async |client, _| {
                    let sql = "UPDATE tertulia_store SET format = $1 WHERE one = 1 AND format < $1";
                    if execute(client, sql, &[(&next, Type::INT4)]).await? > 0 {
                        client.batch_execute(step).await?;
                    }
                    Ok(())
                },
            )
            .await?;
        }
        Ok(id)
    }
}

/// Returns format and id of the store; `None` if its tables are not complete. Fails in a schema of
/// something else.
async fn identified(client: &Client, place: &str) -> Answer<Option<(u32, Uuid)>> {
    let found = query(
        client,
        "SELECT format, id FROM tertulia_store WHERE one = 1",
        &[],
    )
    .await;
    let other = |reason: String| {
        Failure::Store(StoreError::NotAStore {
            place: place.to_owned(),
            reason,
        })
    };
    match found {
        Ok(rows) => match rows.first() {
            None => Ok(None),
            Some(row) => {
                let format: i32 = row.try_get(0)?;
                Ok(Some((u32::try_from(format).unwrap_or(0), row.try_get(1)?)))
            }
        },
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => Err(other(
            "its table tertulia_store is not one of this program".to_owned(),
        )),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            let sql = "SELECT current_schema()::text,
                (SELECT min(table_name::text) FROM information_schema.tables
                 WHERE table_schema = current_schema() AND table_name NOT LIKE 'tertulia!_%' ESCAPE '!')";
            let rows = query(client, sql, &[]).await?;
            let row = rows.first();
            let text =
                |column| row.and_then(|row| row.try_get::<_, Option<String>>(column).ok()?);
            match (text(0), text(1)) {
                (None, _) => Err(other(
                    "its search_path names no schema that exists".to_owned(),
                )),
                (Some(schema), Some(table)) => Err(other(format!(
                    "its schema {schema} has other tables, such as {table}: use a database or a schema of its own"
                ))),
                (Some(_), None) => Ok(None),
            }
        }
        Err(error) => Err(error.into()),
    }
}

async fn create(client: &Client, id: Uuid) -> Answer<()> {
    for sql in TABLES {
        if let Err(error) = client.batch_execute(sql).await {
            // Another client creates the same tables: they are there at the next attempt.
            let is_race = matches!(
                error.code(),
                Some(
                    &SqlState::UNIQUE_VIOLATION
                        | &SqlState::DUPLICATE_TABLE
                        | &SqlState::DUPLICATE_OBJECT
                )
            ) || error
                .as_db_error()
                .is_some_and(|error| error.message().contains("concurrently"));
            return Err(match is_race {
                true => Failure::Repeat(StoreError::failed("cannot create the tables", error)),
                false => error.into(),
            });
        }
    }
    for sql in OPTIONS {
        match client.batch_execute(sql).await {
            // An older server, one that was built without it, or a relative of PostgreSQL.
            Err(error) if error.as_db_error().is_some() => break,
            done => done?,
        }
    }
    let format = i32::try_from(FORMAT).unwrap_or(i32::MAX);
    let sql = "INSERT INTO tertulia_store VALUES(1, $1, $2) ON CONFLICT DO NOTHING";
    execute(client, sql, &[(&id, Type::UUID), (&format, Type::INT4)]).await?;
    Ok(())
}
