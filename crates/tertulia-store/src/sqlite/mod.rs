//! SQLite backend, the default: one database.
//!
//! ```text
//! tertulia.db          session (one row each, derived), entry (the log lines), draft, snapshot, tally
//! tertulia.db-search   the full-text index, derived: may be deleted
//! tertulia.db-ledger   usage, tool calls and files touched, derived: may be deleted
//! tertulia.db-forks    the diverged branches that forks keep, for `sync`, derived: may be deleted
//! tertulia.db-lock     the queue of writers
//! tertulia.db-open/    a lock file per open session
//! ```
//!
//! Writers queue on an operating-system lock before `BEGIN IMMEDIATE`: SQLite's own busy handler
//! polls, and with eight writers it starves some of them. Pages are small (see `open::PAGE_SIZE`),
//! because an append writes whole pages. The search index is a separate file, so that an append
//! neither waits for it nor pays for it.

mod ahead;
mod busy;
mod check;
mod engine;
mod image;
mod journal;
mod list;
mod open;
mod pack;
mod pages;
mod placement;
mod places;
mod purge;
mod remains;
mod repair;
mod rescue;
mod rows;
mod search;
mod sizes;
#[cfg(test)]
mod tests;
mod unsent;
mod wal;

use std::path::{Path, PathBuf};

use super::engine::Threaded;
use super::queue::Patience;
use super::session_lock::Claims;
use super::{StoreError, StoreResult, place};
use engine::SqliteEngine;

pub(crate) use journal::use_wal_patiently;
pub use open::FORMAT;

/// Location of a database.
#[derive(Clone, Debug)]
pub enum Location {
    /// In this file.
    File(PathBuf),
    /// In the memory of this process.
    Memory,
}

impl Location {
    fn path(&self) -> &Path {
        match self {
            Location::File(path) => path,
            Location::Memory => Path::new(":memory:"),
        }
    }

    /// Returns the path beside the database whose name ends in `-suffix`.
    fn beside(&self, suffix: &str) -> Option<PathBuf> {
        match self {
            Location::Memory => None,
            Location::File(path) => Some(place::with_suffix(path, &format!("-{suffix}"))),
        }
    }
}

/// A store in an SQLite database.
pub type SqliteStore = Threaded<SqliteEngine>;

impl SqliteStore {
    /// Opens the database in a file; creates it if there is none.
    pub fn open(path: &Path) -> StoreResult<SqliteStore> {
        Self::open_with(path, &Patience::default())
    }

    /// Opens the database with a given [`Patience`] for other processes.
    pub fn open_with(path: &Path, patience: &Patience) -> StoreResult<SqliteStore> {
        let claims = Claims::folder(Self::lock_folder(path));
        Self::start(Location::File(path.to_owned()), claims, patience)
    }

    /// Returns the folder of session locks of the database in a file.
    pub fn lock_folder(path: &Path) -> PathBuf {
        place::with_suffix(path, "-open")
    }

    /// Creates a store that ends with the process.
    pub fn in_memory() -> StoreResult<SqliteStore> {
        Self::start(Location::Memory, Claims::memory(), &Patience::default())
    }
}

/// Maps an SQLite error to the `StoreError` variant that callers handle.
pub(super) fn trouble(path: &Path, what: &str, error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    let place = path.display().to_string();
    let code = error.sqlite_error_code();
    let io_failed = matches!(
        code,
        Some(Code::SystemIoFailure | Code::CannotOpen | Code::FileLockingProtocolFailed)
    );
    if code == Some(Code::CannotOpen) && place::is_out_of_files() {
        return StoreError::failed(
            format!("{what} in {place}"),
            "too many files are open; `ulimit -n 1024` allows more",
        );
    }
    match code {
        Some(Code::DiskFull) => StoreError::Full { place },
        // SQLite reports a disk that fills up during its housekeeping as a failed write.
        _ if io_failed && open::no_space_left(path) => StoreError::Full { place },
        Some(Code::ReadOnly | Code::PermissionDenied | Code::CannotOpen) => StoreError::ReadOnly {
            place,
            reason: error.to_string(),
        },
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreError::Locked { place },
        Some(Code::DatabaseCorrupt) => StoreError::damaged(place, error.to_string()),
        Some(Code::NotADatabase) => StoreError::NotAStore {
            place,
            reason: "it is not an SQLite database, or its first page is damaged".into(),
        },
        // This program never writes a value of another type.
        _ if is_wrong_value(&error) => StoreError::damaged(place, error.to_string()),
        _ => StoreError::failed(format!("{what} in {place}"), error),
    }
}

fn is_wrong_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as Wrong;
    matches!(
        error,
        Wrong::InvalidColumnType(..)
            | Wrong::FromSqlConversionFailure(..)
            | Wrong::IntegralValueOutOfRange(..)
            | Wrong::Utf8Error(..)
    )
}
