//! The journal mode of a database. Only with a write-ahead log (WAL) is a commit as durable as
//! promised.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Switches a connection to the journal mode WAL; a database in memory has none. Fails if the
/// database is not in that mode afterwards: SQLite silently continues in another mode, where a commit
/// is the removal of a file, which can come back after a power cut.
pub(super) fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let mode = switch_to_wal(connection)?;
    if mode == "memory" || (mode == "wal" && has_wal(connection)?) {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
    let reason = match mode.as_str() {
        "wal" => "the database did not change to the journal mode WAL".to_owned(),
        mode => format!("the journal mode is {mode} instead of WAL"),
    };
    Err(rusqlite::Error::SqliteFailure(code, Some(reason)))
}

/// Switches a database of derived rows to the journal mode WAL. Several processes may do so at once;
/// SQLite fails for all but one of them, without waiting, so they try again for as long as `patience`.
pub(crate) fn use_wal_patiently(
    connection: &Connection,
    patience: Duration,
) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        match switch_to_wal(connection) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && began.elapsed() < patience =>
            {
                std::thread::sleep(PAUSE);
            }
            switched => return switched.map(drop),
        }
    }
}

/// Switches to the journal mode WAL. Returns the mode that SQLite reports before it commits the
/// switch; the commit happens at the end of the statement, which can fail.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<String> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let modes = statement.query_map([], |row| row.get(0))?;
    let modes: Vec<String> = modes.collect::<rusqlite::Result<_>>()?;
    Ok(modes.into_iter().next().unwrap_or_default())
}

/// Returns true if the connection uses a WAL. The reported journal mode does not prove it.
fn has_wal(connection: &Connection) -> rusqlite::Result<bool> {
    let frames = |row: &rusqlite::Row<'_>| row.get::<_, i64>(1);
    let frames = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], frames)?;
    Ok(frames >= 0)
}
