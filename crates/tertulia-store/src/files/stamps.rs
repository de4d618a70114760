//! What the catalogue knows of files and folders: where each log is, and how it was when it was folded.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::params;

use super::catalogue::Catalogue;
use super::file_stamp::FileStamp;
use super::names::Key;
use crate::StoreResult;
use crate::selection::id_from;
use tertulia_core::id::SessionId;

/// Inode and modification time of each folder, by its name.
pub(super) type Folders = HashMap<Vec<u8>, (u64, i64)>;

/// A log, where it is in the store's folder, and its stamp at its last fold.
pub(super) type Stamped = (Key, PathBuf, FileStamp);

impl Catalogue {
    /// Returns each log's number, and its place and stamp at its last fold.
    pub(super) fn stamps(&self) -> StoreResult<HashMap<Key, (i64, PathBuf, FileStamp)>> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT id, husk, no, path, inode, size, modified FROM log")?
                .query_map([], |row| {
                    let key = (id_from(row.get(0)?), row.get(1)?);
                    let path = path_from(row.get(3)?);
                    Ok((key, (row.get(2)?, path, FileStamp::in_row(row, 4)?)))
                })?
                .collect()
        })
    }

    /// Returns the highest number of a log: about how many there are, without counting them.
    pub(super) fn last_number(&self) -> StoreResult<i64> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT coalesce(max(no), 0) FROM log")?
                .query_row([], |row| row.get(0))
        })
    }

    /// Returns `count` logs that are next to each other, from a random one on.
    pub(super) fn sample(&self, count: i64) -> StoreResult<Vec<Stamped>> {
        self.stamped(
            "no >= (SELECT abs(random() % max(no)) + 1 - ?1 / 2 FROM log) ORDER BY no LIMIT ?1",
            params![count],
        )
    }

    /// Returns the logs of an id: the live one, then the shared prefixes.
    pub(super) fn logs_of(&self, id: SessionId) -> StoreResult<Vec<Stamped>> {
        self.stamped("id = ?1 ORDER BY husk", params![id.uuid().as_bytes()])
    }

    fn stamped(&self, condition: &str, values: impl rusqlite::Params) -> StoreResult<Vec<Stamped>> {
        let sql =
            format!("SELECT id, husk, path, inode, size, modified FROM log WHERE {condition}");
        self.run(|connection| {
            connection
                .prepare_cached(&sql)?
                .query_map(values, |row| {
                    let key = (id_from(row.get(0)?), row.get(1)?);
                    let stamp = FileStamp::in_row(row, 3)?;
                    Ok((key, path_from(row.get(2)?), stamp))
                })?
                .collect()
        })
    }

    /// Records that a log has another file with the same content, if its row was folded from the one
    /// before.
    pub(super) fn restamp(
        &self,
        (id, shared_prefix): Key,
        before: FileStamp,
        stamp: FileStamp,
    ) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached(
                    "UPDATE log SET inode = ?3, size = ?4, modified = ?5
                     WHERE id = ?1 AND husk = ?2 AND inode = ?6 AND size = ?7 AND modified = ?8",
                )?
                .execute(params![
                    id.uuid().as_bytes(),
                    shared_prefix,
                    stamp.inode.cast_signed(),
                    stamp.size.cast_signed(),
                    stamp.modified,
                    before.inode.cast_signed(),
                    before.size.cast_signed(),
                    before.modified,
                ])
                .map(drop)
        })
    }

    /// Returns the folders as they were when the catalogue last knew all names in them.
    pub(super) fn folders(&self) -> StoreResult<Folders> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT name, inode, modified FROM folder")?
                .query_map([], |row| {
                    let inode = row.get::<_, i64>(1)?.cast_unsigned();
                    Ok((row.get(0)?, (inode, row.get(2)?)))
                })?
                .collect()
        })
    }

    pub(super) fn put_folders(&self, folders: &Folders) -> StoreResult<()> {
        self.run(|connection| {
            connection.execute("DELETE FROM folder", [])?;
            let mut insert = connection.prepare_cached("INSERT INTO folder VALUES(?1, ?2, ?3)")?;
            for (name, (inode, modified)) in folders {
                insert.execute(params![name, inode.cast_signed(), modified])?;
            }
            Ok(())
        })
    }
}

/// Returns the folder and the name of a log, as the catalogue keeps them.
pub(super) fn path_bytes(path: &Path) -> Vec<u8> {
    let mut parts = path.components().rev();
    let name = parts.next().map(|part| part.as_os_str().as_bytes());
    let folder = parts.next().map(|part| part.as_os_str().as_bytes());
    [folder.unwrap_or_default(), name.unwrap_or_default()].join(&b'/')
}

/// Returns the path of a log within the store's folder.
pub(super) fn path_from(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes))
}
