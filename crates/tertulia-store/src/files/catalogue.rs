//! The catalogue, `.index/catalogue.db`: list rows derived from the logs. Deleting it loses
//! nothing.
//!
//! Each log has a number here, which the search index uses; numbers are never reused. A rebuilt
//! catalogue has a new identity, so that an index of the old one is detected.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::file_stamp::FileStamp;
use super::names::{Key, LIVE, LogName};
use super::stamps::{path_bytes, path_from};
use crate::selection::{PURGED, id_from, reversed, state_of};
use crate::sqlite::{trouble, use_wal_patiently};
use crate::{StoreError, StoreResult, index, place};
use tertulia_core::entry::{Hash, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::DamagedSession;
use tertulia_core::session::SessionMeta;

/// Changes whenever rows are derived differently; a catalogue of another version is rebuilt.
const VERSION: u32 = 5;
/// Busy timeout: another process may be deriving many rows.
const PATIENCE: Duration = Duration::from_secs(120);

/// The columns by which lists and lookups select are those of SQLite's table `session`.
const SCHEMA: &str = "
CREATE TABLE about(identity BLOB NOT NULL);
CREATE TABLE folder(name BLOB PRIMARY KEY, inode INTEGER NOT NULL, modified INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE log(
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL, id_end BLOB NOT NULL,
  husk INTEGER NOT NULL,          -- 0, or the number of what forks share with a purged session
  path BLOB NOT NULL,             -- folder and name of the file
  inode INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL,  -- the file as it was folded
  folded INTEGER NOT NULL,        -- up to which offset,
  last INTEGER NOT NULL,          -- and the place of the last line there
  known INTEGER NOT NULL,         -- the last place that the log was ever seen to have
  damage TEXT,                    -- what is wrong with the log, in words
  unreadable TEXT,                -- why it could not be read when it was last looked at
  base BLOB, base_seq INTEGER, base_hash BLOB,
  owner INTEGER,                  -- the number of the log in which that entry of the base stands
  state INTEGER NOT NULL,         -- 0 live, 1 in the trash, 2 husk
  kind TEXT NOT NULL, team TEXT,
  project TEXT, title TEXT,
  updated INTEGER NOT NULL, changed INTEGER,
  head_seq INTEGER NOT NULL, head_hash BLOB NOT NULL,
  row TEXT NOT NULL,
  UNIQUE(id, husk)
);
CREATE INDEX log_by_end ON log(id_end);
CREATE INDEX log_damaged ON log(no) WHERE damage IS NOT NULL OR unreadable IS NOT NULL;
CREATE INDEX log_by_time ON log(updated, id);
CREATE INDEX log_by_project ON log(project, updated, id, state);
CREATE INDEX log_by_change ON log(changed, id) WHERE changed IS NOT NULL;
CREATE INDEX log_by_title ON log(title) WHERE title IS NOT NULL;
CREATE INDEX log_by_original ON log(row ->> '$.source.id') WHERE row ->> '$.source.id' IS NOT NULL;
CREATE INDEX log_by_base ON log(base, owner) WHERE base IS NOT NULL;
CREATE INDEX log_by_owner ON log(owner) WHERE owner IS NOT NULL;
CREATE INDEX log_without_owner ON log(no) WHERE base IS NOT NULL AND owner IS NULL;
CREATE TABLE snapshot(no INTEGER NOT NULL, seq INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY(no, seq)) WITHOUT ROWID;
CREATE TABLE tally(project TEXT PRIMARY KEY, live INTEGER NOT NULL, trashed INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIEW listed AS SELECT no, coalesce(project, '') AS project, state FROM log WHERE state < 2 AND last > 0 AND head_seq > 0;
CREATE TRIGGER log_inserted AFTER INSERT ON log BEGIN
  INSERT INTO tally SELECT project, 0, 0 FROM listed WHERE no = new.no AND project NOT IN (SELECT project FROM tally);
  UPDATE tally SET live = live + (new.state = 0), trashed = trashed + (new.state = 1)
    WHERE project = (SELECT project FROM listed WHERE no = new.no);
END;
CREATE TRIGGER log_deleted BEFORE DELETE ON log BEGIN
  UPDATE tally SET live = live - (old.state = 0), trashed = trashed - (old.state = 1)
    WHERE project = (SELECT project FROM listed WHERE no = old.no);
END;
CREATE TRIGGER log_updating BEFORE UPDATE OF state, project, last, head_seq ON log BEGIN
  UPDATE tally SET live = live - (old.state = 0), trashed = trashed - (old.state = 1)
    WHERE project = (SELECT project FROM listed WHERE no = old.no);
END;
CREATE TRIGGER log_updated AFTER UPDATE OF state, project, last, head_seq ON log BEGIN
  INSERT INTO tally SELECT project, 0, 0 FROM listed WHERE no = new.no AND project NOT IN (SELECT project FROM tally);
  UPDATE tally SET live = live + (new.state = 0), trashed = trashed + (new.state = 1)
    WHERE project = (SELECT project FROM listed WHERE no = new.no);
END;
";

/// The open catalogue database.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) connection: Connection,
    path: Option<PathBuf>,
    inode: Option<u64>,
}

/// Data derived from one log.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: SessionId,
    pub(super) shared_prefix: u32,
    pub(super) path: PathBuf,
    pub(super) stamp: FileStamp,
    pub(super) folded: u64,
    pub(super) last: Seq,
    /// The highest sequence number ever seen in the log: above `last` if its end was lost.
    pub(super) known: Seq,
    /// Damage of the log, human-readable.
    pub(super) damage: Option<String>,
    pub(super) base: Option<Origin>,
    pub(super) meta: SessionMeta,
}

impl Record {
    /// Creates the record of a log of which nothing is known yet.
    pub(super) fn blank(log: &LogName) -> Record {
        let id = log.id;
        Record {
            id,
            shared_prefix: log.shared_prefix,
            path: log.path.clone(),
            stamp: FileStamp::NONE,
            folded: 0,
            last: Seq::START,
            known: Seq::START,
            damage: None,
            base: None,
            meta: SessionMeta::blank(id),
        }
    }

    fn state(&self) -> i64 {
        match self.shared_prefix {
            LIVE => state_of(&self.meta),
            _ => PURGED,
        }
    }
}

/// A log's number and head, for the search index.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) no: u64,
    pub(super) id: SessionId,
    pub(super) shared_prefix: u32,
    pub(super) head: Head,
    pub(super) base_seq: Seq,
}

impl Catalogue {
    /// Opens the catalogue in a file, or in memory. Recreates one that is damaged or of another
    /// version.
    pub(super) fn open(path: Option<&Path>) -> StoreResult<Catalogue> {
        let shown = path.unwrap_or(Path::new(":memory:"));
        let opened = match path {
            None => Connection::open_in_memory().and_then(lay_out),
            Some(path) => open_file(path)?,
        };
        let connection =
            opened.map_err(|error| trouble(shown, "cannot open the catalogue", error))?;
        connection.set_prepared_statement_cache_capacity(32);
        let inode = path.and_then(inode_of);
        Ok(Catalogue {
            connection,
            path: path.map(Path::to_owned),
            inode,
        })
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.path.is_none()
    }

    /// Returns true if the file was deleted or replaced since it was opened.
    pub(super) fn is_gone(&self) -> bool {
        self.path
            .as_deref()
            .is_some_and(|path| inode_of(path) != self.inode)
    }

    pub(super) fn say(&self, error: rusqlite::Error) -> StoreError {
        let path = self.path.as_deref().unwrap_or(Path::new(":memory:"));
        trouble(path, "cannot use the catalogue", error)
    }

    pub(super) fn run<R>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> StoreResult<R> {
        job(&self.connection).map_err(|error| self.say(error))
    }

    /// Returns the random identity that tells this catalogue from a recreated one.
    pub(super) fn identity(&self) -> StoreResult<Hash> {
        let bytes: Vec<u8> = self.run(|connection| {
            connection.query_row("SELECT identity FROM about", [], |row| row.get(0))
        })?;
        Ok(Hash::from_bytes(&bytes).unwrap_or(Hash::NONE))
    }

    pub(super) fn begin(&self) -> StoreResult<()> {
        self.run(|connection| connection.execute_batch("BEGIN IMMEDIATE"))
    }

    /// Ends the transaction: commits on success, rolls back on error.
    pub(super) fn end<R>(&self, done: StoreResult<R>) -> StoreResult<R> {
        let verb = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.run(|connection| connection.execute_batch(verb));
        done.and_then(|done| ended.map(|()| done))
    }

    /// Returns a log's number and record. `None` also if its row is damaged.
    pub(super) fn record(
        &self,
        id: SessionId,
        shared_prefix: u32,
    ) -> StoreResult<Option<(i64, Record)>> {
        let read = |row: &rusqlite::Row<'_>| {
            let Ok(meta) = SessionMeta::from_json(row.get::<_, String>(9)?.as_bytes()) else {
                return Ok(None);
            };
            let base: Option<[u8; 16]> = row.get(6)?;
            let base_seq: Option<i64> = row.get(7)?;
            let base_hash: Option<Vec<u8>> = row.get(8)?;
            let record = Record {
                id,
                shared_prefix,
                path: path_from(row.get(12)?),
                stamp: FileStamp::in_row(row, 1)?,
                folded: row.get::<_, i64>(4)?.cast_unsigned(),
                last: Seq(row.get::<_, i64>(5)?.cast_unsigned()),
                known: Seq(row.get::<_, i64>(10)?.cast_unsigned()),
                damage: row.get(11)?,
                base: base.zip(base_seq).map(|(id, seq)| Origin {
                    id: id_from(id),
                    seq: Seq(seq.cast_unsigned()),
                    hash: base_hash
                        .and_then(|hash| Hash::from_bytes(&hash))
                        .unwrap_or(Hash::NONE),
                }),
                meta,
            };
            Ok(Some((row.get(0)?, record)))
        };
        self.run(|connection| {
            connection
                .prepare_cached(
                    "SELECT no, inode, size, modified, folded, last, base, base_seq, base_hash, row, known, damage, path
                     FROM log WHERE id = ?1 AND husk = ?2",
                )?
                .query_row(params![id.uuid().as_bytes(), shared_prefix], read)
                .optional()
                .map(Option::flatten)
        })
    }

    /// Returns the number of a log.
    pub(super) fn number(&self, id: SessionId, shared_prefix: u32) -> StoreResult<Option<i64>> {
        self.run(|connection| {
            connection
                .prepare_cached("SELECT no FROM log WHERE id = ?1 AND husk = ?2")?
                .query_row(params![id.uuid().as_bytes(), shared_prefix], |row| {
                    row.get(0)
                })
                .optional()
        })
    }

    /// Inserts or updates the row of a log and returns its number.
    pub(super) fn put(&self, record: &Record) -> StoreResult<i64> {
        let row = serde_json::to_string(&record.meta)
            .map_err(|error| StoreError::failed("cannot write a list row", error))?;
        let meta = &record.meta;
        let base = record.base.as_ref();
        self.run(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO log(id, husk, inode, size, modified, folded, last, base, base_seq, base_hash,
                       state, project, title, updated, changed, head_seq, head_hash, row, known, damage,
                       id_end, path, kind, team)
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                       ?21, ?22, ?23, ?24)
                     ON CONFLICT(id, husk) DO UPDATE SET inode = excluded.inode, size = excluded.size,
                       modified = excluded.modified, folded = excluded.folded, last = excluded.last,
                       base = excluded.base, base_seq = excluded.base_seq, base_hash = excluded.base_hash,
                       state = excluded.state, project = excluded.project, title = excluded.title,
                       updated = excluded.updated, changed = excluded.changed, head_seq = excluded.head_seq,
                       head_hash = excluded.head_hash, row = excluded.row, known = excluded.known,
                       damage = excluded.damage, path = excluded.path, kind = excluded.kind,
                       team = excluded.team, unreadable = NULL",
                )?
                .execute(params![
                    record.id.uuid().as_bytes(),
                    record.shared_prefix,
                    record.stamp.inode.cast_signed(),
                    record.stamp.size.cast_signed(),
                    record.stamp.modified,
                    record.folded.cast_signed(),
                    record.last.0.cast_signed(),
                    base.map(|base| *base.id.uuid().as_bytes()),
                    base.map(|base| base.seq.0.cast_signed()),
                    base.map(|base| *base.hash.bytes()),
                    record.state(),
                    meta.project,
                    meta.title,
                    meta.updated_at.as_microsecond(),
                    meta.changed_at().map(jiff::Timestamp::as_microsecond),
                    meta.head.seq.0.cast_signed(),
                    meta.head.hash.bytes(),
                    row,
                    record.known.0.cast_signed(),
                    record.damage,
                    reversed(record.id),
                    path_bytes(&record.path),
                    meta.kind.name(),
                    meta.team,
                ])
        })?;
        let no = self.number(record.id, record.shared_prefix)?;
        no.ok_or_else(|| StoreError::failed("cannot write a list row", "it is not there"))
    }

    /// Records that a log could not be read. Keeps its row; the log is read again at the next
    /// refresh.
    pub(super) fn put_unreadable(&self, (id, shared_prefix): Key, why: &str) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached(
                    "UPDATE log SET unreadable = ?3, inode = 0 WHERE id = ?1 AND husk = ?2",
                )?
                .execute(params![id.uuid().as_bytes(), shared_prefix, why])
                .map(drop)
        })
    }

    /// Returns the sessions that are damaged or could not be read.
    pub(super) fn damaged(&self) -> StoreResult<Vec<DamagedSession>> {
        self.run(|connection| {
            connection
                .prepare_cached(
                    "SELECT id, coalesce(unreadable, damage) FROM log
                     WHERE state < 2 AND (damage IS NOT NULL OR unreadable IS NOT NULL) ORDER BY no",
                )?
                .query_map([], |row| {
                    Ok(DamagedSession {
                        id: Some(id_from(row.get(0)?)),
                        reason: row.get(1)?,
                    })
                })?
                .collect()
        })
    }

    pub(super) fn remove(&self, no: i64) -> StoreResult<()> {
        self.drop_snapshots(no)?;
        self.disown(no)?;
        self.run(|connection| {
            connection
                .execute("DELETE FROM log WHERE no = ?1", [no])
                .map(drop)
        })
    }

    /// Checkpoints and truncates the WAL, so that purged data does not remain in it, nor the row of a
    /// project without sessions, which names its folder.
    pub(super) fn settle(&self) -> StoreResult<()> {
        self.run(|connection| {
            connection.execute("DELETE FROM tally WHERE live = 0 AND trashed = 0", [])?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })
    }

    pub(super) fn put_snapshot(&self, no: i64, seq: Seq, row: &str) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO snapshot VALUES(?1, ?2, ?3)")?
                .execute(params![no, seq.0, row])
                .map(drop)
        })
    }

    pub(super) fn drop_snapshots(&self, no: i64) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .prepare_cached("DELETE FROM snapshot WHERE no = ?1")?
                .execute([no])
                .map(drop)
        })
    }

    /// Returns the newest metadata snapshot at or before `upto`.
    pub(super) fn snapshot(&self, no: i64, upto: Seq) -> StoreResult<Option<SessionMeta>> {
        let row: Option<String> = self.run(|connection| {
            connection
                .prepare_cached(
                    "SELECT row FROM snapshot WHERE no = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
                )?
                .query_row(params![no, upto.0], |row| row.get(0))
                .optional()
        })?;
        Ok(row.and_then(|row: String| SessionMeta::from_json(row.as_bytes()).ok()))
    }

    /// Returns all logs with their heads.
    pub(super) fn numbered(&self) -> StoreResult<Vec<Numbered>> {
        self.run(|connection| {
            connection
                .prepare_cached(
                    "SELECT no, id, husk, head_seq, head_hash, coalesce(base_seq, 0) FROM log ORDER BY no",
                )?
                .query_map([], |row| {
                    Ok(Numbered {
                        no: row.get::<_, i64>(0)?.cast_unsigned(),
                        id: id_from(row.get(1)?),
                        shared_prefix: row.get(2)?,
                        head: Head {
                            seq: Seq(row.get::<_, i64>(3)?.cast_unsigned()),
                            hash: Hash::from_bytes(&row.get::<_, Vec<u8>>(4)?)
                                .unwrap_or(Hash::NONE),
                        },
                        base_seq: Seq(row.get::<_, i64>(5)?.cast_unsigned()),
                    })
                })?
                .collect()
        })
    }

    /// Deletes all rows, to derive them again in the same transaction.
    pub(super) fn clear(&self) -> StoreResult<()> {
        self.run(|connection| {
            connection
                .execute_batch("DELETE FROM log; DELETE FROM snapshot; DELETE FROM tally;")?;
            connection
                .execute("UPDATE about SET identity = randomblob(32)", [])
                .map(drop)
        })
    }

    /// Describes damage of the catalogue file, if any.
    pub(super) fn fault(&self) -> Option<String> {
        let said: rusqlite::Result<String> =
            self.connection
                .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
        match said {
            Ok(said) if said == "ok" => None,
            Ok(said) => Some(format!("the list of sessions is damaged: {}", said.trim())),
            Err(error) => Some(format!("the list of sessions is damaged: {error}")),
        }
    }
}

fn inode_of(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.ino())
}

fn open_file(path: &Path) -> StoreResult<rusqlite::Result<Connection>> {
    let make = || match place::create_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(place::trouble(path, "cannot make", error))
        }
        _ => Ok(()),
    };
    if !path.exists() {
        make()?;
    }
    let open = || Connection::open(path).and_then(lay_out);
    match open() {
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
            ) =>
        {
            index::discard(path);
            make()?;
            Ok(open())
        }
        opened => Ok(opened),
    }
}

fn lay_out(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(PATIENCE)?;
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
    };
    if version(&connection)? != VERSION {
        use_wal_patiently(&connection, PATIENCE)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        if version(&connection)? != VERSION {
            connection.execute_batch(&format!(
                "DROP VIEW IF EXISTS listed; DROP TABLE IF EXISTS about; DROP TABLE IF EXISTS folder;
                 DROP TABLE IF EXISTS log; DROP TABLE IF EXISTS snapshot; DROP TABLE IF EXISTS tally;
                 {SCHEMA} PRAGMA user_version={VERSION};"
            ))?;
            connection.execute("INSERT INTO about VALUES(randomblob(32))", [])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    // Rows lost in a crash are derived again, so there is no need to wait for the disk.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    Ok(connection)
}
