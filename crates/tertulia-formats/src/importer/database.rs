//! Reads the SQLite databases of other programs. They may be in use: nothing is written to them, and
//! nothing appears beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::ReadError;

/// Time to wait for a program that is writing.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database of another program.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
}

impl Database {
    /// Names the database at a path.
    pub fn new(path: &Path) -> Database {
        Database {
            path: path.to_owned(),
        }
    }

    /// Reads something in one transaction, so that it is of one moment.
    pub fn read<T>(
        &self,
        read: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ReadError> {
        let is_in_use = self.is_in_use();
        let mut result = self.transact(is_in_use, &read);
        // A program that began to write meanwhile may have changed what was read.
        if !is_in_use && self.is_in_use() {
            result = self.transact(true, &read);
        }
        result.map_err(|error| ReadError::Invalid(format!("its database cannot be read: {error}")))
    }

    fn transact<T>(
        &self,
        is_in_use: bool,
        read: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let connection = self.connect(is_in_use)?;
        let transaction = connection.unchecked_transaction()?;
        read(&transaction)
    }

    /// Returns true if another program has changes beside the database that are not yet in it.
    fn is_in_use(&self) -> bool {
        ["-wal", "-journal"].iter().any(|end| {
            let mut path = self.path.clone().into_os_string();
            path.push(end);
            fs::metadata(path).is_ok_and(|file| file.len() > 0)
        })
    }

    fn connect(&self, is_in_use: bool) -> rusqlite::Result<Connection> {
        let mut uri = String::from("file:");
        for byte in self.path.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                    uri.push(char::from(*byte));
                }
                byte => uri.push_str(&format!("%{byte:02x}")),
            }
        }
        // Without this, SQLite would create files beside a database that has no others.
        uri.push_str(match is_in_use {
            true => "?mode=ro",
            false => "?mode=ro&immutable=1",
        });
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(connection)
    }
}
