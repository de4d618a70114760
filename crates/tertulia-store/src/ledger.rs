//! Ledger of usage: tokens, tool calls and files touched, derived from the logs of any [`Store`].
//!
//! It is a database of its own beside the store's other derived data. Deleting it loses nothing, and
//! commands that do not need it never touch it. Entries are followed by a watermark per session, so
//! that catching up reads only what is new.
//!
//! **Each usage event counts once.** Sessions can share an event: a fork that lost its parent, an
//! import of a copied conversation, a merge, an export that was imported. The answer that tertulia
//! recorded itself owns the event, else the session that was created first; an export never does if
//! there is another one. Its figures are the highest of all copies, and a copy tells the model if the
//! owner does not. Which copy counts depends on the copies alone, not on the order in which they were
//! read. What a program wrote while tertulia waited for its answer counts for the session that ran it,
//! not for an import of the program's file, nor of a copy of that: the recorded answer names its
//! requests, and where it does not, the times tell.
//!
//! Parts: `facts` (an entry to rows, pure), `catch_up` (reads the store), `coverage`
//! (imports of what tertulia ran), `record` (writes rows),
//! `figures` (queries).

mod catch_up;
mod coverage;
mod facts;
mod figures;
mod record;
mod state;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::index::discard;
use super::sqlite::{trouble, use_wal_patiently};
use super::{Store, StoreError, StoreResult, place};
use tertulia_core::id::SessionId;

pub use catch_up::{CaughtUp, Extent};
pub use figures::FileTouched;

/// Name of the derived file.
pub(super) const NAME: &str = "ledger";
/// Changes whenever rows are derived differently; a ledger of another version is rebuilt.
pub(super) const VERSION: u32 = 5;
/// How long removing a purged session waits for another process that catches up.
const PURGE_PATIENCE: Duration = Duration::from_secs(5);

/// - `state`: whether all sessions were counted once, the last one that a call with little time
///   looked at, and how often sessions were removed.
/// - `session`: one row per session. Its own entries follow `base`; `seq` and `hash` are the
///   watermark. `messages`, `first` and `last` are of its own messages, `unread` counts entries that
///   could not be read. `program` and `original` name the session that it was imported from,
///   `exported` tells whether that one was exported from here.
/// - `entry`: messages and compactions. `event` identifies the usage, `own` tells whether the entry
///   itself does so, `counts` is how it counts (see `record`). `prompt` tells whether an agent was
///   given the message, `covered` whether another session ran the program that wrote it.
/// - `request`: events of a program's file that the usage of an entry is of.
/// - `link`: the programs' own sessions that a session ran.
/// - `call`: tool calls, the `n`th of an entry. `outcome` is empty until the result is there.
/// - `file`: files that a call names.
/// - `name`, `path`: models, agents and tools; files.
const SCHEMA: &str = "
CREATE TABLE state(complete INTEGER NOT NULL, reached TEXT, removals INTEGER NOT NULL);
INSERT INTO state VALUES(0, NULL, 0);
CREATE TABLE name(no INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE path(no INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE session(
  no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, seq INTEGER NOT NULL, hash BLOB NOT NULL,
  base INTEGER NOT NULL, created INTEGER NOT NULL, kind TEXT NOT NULL, team TEXT, project TEXT,
  cwd TEXT, tags TEXT NOT NULL, trashed INTEGER NOT NULL, messages INTEGER NOT NULL,
  first INTEGER, last INTEGER, unread INTEGER NOT NULL,
  program TEXT, original TEXT, exported INTEGER NOT NULL
);
CREATE TABLE entry(
  session INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, event BLOB NOT NULL,
  own INTEGER NOT NULL, message INTEGER NOT NULL, agent INTEGER, model INTEGER, input INTEGER, output INTEGER,
  cache_read INTEGER, cache_written INTEGER, estimated INTEGER, counts INTEGER NOT NULL,
  prompt INTEGER NOT NULL, covered INTEGER NOT NULL,
  PRIMARY KEY(session, seq)
) WITHOUT ROWID;
CREATE TABLE request(
  event BLOB NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(event, session, seq)
) WITHOUT ROWID;
CREATE INDEX request_session ON request(session);
CREATE INDEX session_original ON session(original) WHERE original IS NOT NULL;
CREATE TABLE link(
  session INTEGER NOT NULL, seq INTEGER NOT NULL, agent INTEGER NOT NULL, native TEXT NOT NULL,
  PRIMARY KEY(session, seq)
) WITHOUT ROWID;
CREATE INDEX link_native ON link(native);
CREATE INDEX entry_event ON entry(event);
CREATE INDEX entry_at ON entry(at);
CREATE TABLE call(
  session INTEGER NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, name INTEGER NOT NULL,
  id TEXT NOT NULL, outcome TEXT, PRIMARY KEY(session, seq, n)
) WITHOUT ROWID;
CREATE INDEX call_open ON call(session, id) WHERE outcome IS NULL;
CREATE TABLE file(
  session INTEGER NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, path INTEGER NOT NULL,
  written INTEGER NOT NULL, PRIMARY KEY(session, seq, n, path)
) WITHOUT ROWID;
CREATE INDEX file_path ON file(path);";

const TABLES: &[&str] = &[
    "state", "name", "path", "session", "link", "entry", "request", "call", "file",
];

/// The open ledger. Its operations block the calling thread.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    path: PathBuf,
}

impl Ledger {
    /// Opens the ledger of a store, or a new one in memory if the store has no place for it.
    /// `patience` limits the wait for another process that writes to it.
    pub fn of(store: &dyn Store, patience: Duration) -> StoreResult<Ledger> {
        match store.derived_file(NAME) {
            Some(path) => Ledger::open(&path, patience),
            None => Ledger::in_memory(),
        }
    }

    /// Opens the ledger in a file. Recreates one that is damaged or of another version.
    fn open(path: &Path, patience: Duration) -> StoreResult<Ledger> {
        if !path.exists() {
            place::make_folder(place::folder_of(path))?;
            match place::create_file(path) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(place::trouble(path, "cannot make", error)),
            }
        }
        let open = || Connection::open(path).and_then(|made| lay_out(made, patience));
        let connection = open().or_else(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                discard(path);
                let _ = place::create_file(path);
                open()
            }
            _ => Err(error),
        });
        match connection {
            Ok(connection) => Ok(Ledger {
                connection,
                path: path.to_owned(),
            }),
            Err(error) => Err(trouble(path, "cannot open the ledger", error)),
        }
    }

    /// Creates a ledger that ends with the process.
    pub fn in_memory() -> StoreResult<Ledger> {
        let path = PathBuf::from(":memory:");
        let made = Connection::open_in_memory().and_then(|made| lay_out(made, Duration::ZERO));
        match made {
            Ok(connection) => Ok(Ledger { connection, path }),
            Err(error) => Err(trouble(&path, "cannot make the ledger", error)),
        }
    }

    /// Returns true if a later process finds nothing of this ledger.
    pub fn is_in_memory(&self) -> bool {
        self.path == Path::new(":memory:")
    }

    /// Returns true if the ledger once held every session of the store.
    pub fn is_complete(&self) -> StoreResult<bool> {
        let complete = self
            .connection
            .query_row("SELECT complete FROM state", [], |row| row.get(0));
        complete.map_err(|error| self.trouble(error))
    }

    /// Removes everything, so that the next catching up reads all logs again.
    pub fn clear(&mut self) -> StoreResult<()> {
        let anew = format!("BEGIN IMMEDIATE; {} COMMIT;", tables());
        let cleared = self.connection.execute_batch(&anew);
        cleared.map_err(|error| self.trouble(error))
    }

    /// Removes a purged session from the ledger in a file, if there is one. Its rows name files, so
    /// they must not outlive it: if they cannot be removed, the whole ledger is.
    pub(super) fn forget(path: &Path, id: SessionId) {
        if !path.exists() {
            return;
        }
        let forget = || -> StoreResult<()> {
            let mut ledger = Ledger::open(path, PURGE_PATIENCE)?;
            ledger.remove(&[id])?;
            // The WAL still holds the old pages until they are checkpointed.
            let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
            let emptied = ledger.connection.query_row(empty, [], |_| Ok(()));
            emptied.map_err(|error| ledger.trouble(error))
        };
        if forget().is_err() {
            discard(path);
        }
    }

    fn trouble(&self, error: rusqlite::Error) -> StoreError {
        trouble(&self.path, "cannot use the ledger", error)
    }
}

/// Returns the statements that replace all tables by empty ones.
fn tables() -> String {
    let drops: String = TABLES
        .iter()
        .map(|table| format!("DROP TABLE IF EXISTS {table};"))
        .collect();
    format!("{drops} {SCHEMA} PRAGMA user_version={VERSION};")
}

fn lay_out(connection: Connection, patience: Duration) -> rusqlite::Result<Connection> {
    connection.busy_timeout(patience)?;
    // Overwrites the rows of purged sessions instead of only unlinking them.
    connection.pragma_update(None, "secure_delete", "ON")?;
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
    };
    if version(&connection)? != VERSION {
        use_wal_patiently(&connection, patience)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have made the tables meanwhile.
        if version(&connection)? != VERSION {
            connection.execute_batch(&tables())?;
        }
        connection.execute_batch("COMMIT")?;
    }
    // Rows lost in a crash are derived again, so there is no need to wait for the disk.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
