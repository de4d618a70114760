//! Opens a database: identifies it, checks its format, creates it atomically, applies its settings.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, OpenFlags};

use super::{Location, busy, journal, trouble};
use crate::{StoreError, StoreResult, place};

/// The newest version of the database layout that this program reads.
pub const FORMAT: u32 = 2;

/// The version without compressed sessions, which new databases have: earlier programs read them, too.
pub(super) const PLAIN_FORMAT: u32 = 1;

/// Application id ("Tert") in the SQLite header, where `file` and others look.
const APPLICATION_ID: u32 = 0x5465_7274;

/// An append rewrites every page that it touches: with the usual 4096 bytes a turn of 4.6 kB wrote
/// more than ten times its size, with 1024 a third of that. Large messages take overflow pages.
pub(super) const PAGE_SIZE: u32 = 1024;

/// How much of the file is read as memory. More would count as memory of the process while everything is
/// read, as for the index of a store of gigabytes.
const MAPPED: i64 = 64 << 20;

/// Pages in the WAL before it is checkpointed: rarely enough not to delay a turn, often enough that
/// opening after a crash stays quick.
const CHECKPOINT_PAGES: u32 = 8000;

/// The oldest SQLite without the race that could damage a database in WAL mode.
const OLDEST_SQLITE: i32 = 3_051_003;

pub(super) const SCHEMA: &str = "
CREATE TABLE session(
  no INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,        -- the UUID
  id_end BLOB NOT NULL,           -- its hexadecimal digits in reverse, to find it by its end
  base INTEGER,                   -- the session whose log it continues,
  base_seq INTEGER,               -- up to which entry
  kind TEXT NOT NULL,
  team TEXT,
  project TEXT,
  title TEXT,
  state INTEGER NOT NULL,         -- 0 live, 1 in the trash, 2 purged but shared by forks
  updated INTEGER NOT NULL,       -- microseconds
  changed INTEGER,
  row TEXT NOT NULL               -- the summary: derived from the log
);
CREATE INDEX session_by_end ON session(id_end);
CREATE INDEX session_by_title ON session(title) WHERE title IS NOT NULL;
CREATE INDEX session_by_time ON session(updated, id);
CREATE INDEX session_by_project ON session(project, updated, id);
CREATE INDEX session_by_change ON session(changed, id) WHERE changed IS NOT NULL;
CREATE INDEX session_by_base ON session(base) WHERE base IS NOT NULL;
CREATE TABLE entry(
  n INTEGER PRIMARY KEY,          -- the order of arrival, which the search index follows
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  line TEXT NOT NULL              -- the entry's only form at rest
);
CREATE UNIQUE INDEX entry_by_place ON entry(session, seq);
CREATE TABLE snapshot(            -- the summary every so many entries, so that a fork need not fold all
  session INTEGER NOT NULL, seq INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY(session, seq)
) WITHOUT ROWID;
CREATE TABLE draft(session INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE tally(project TEXT PRIMARY KEY, live INTEGER NOT NULL, trashed INTEGER NOT NULL) WITHOUT ROWID;
";

/// Migration steps by the format that they start from. Applied after a backup.
const MIGRATIONS: &[(u32, &str)] = &[];

/// Opens the database; creates it first if there is none.
pub(super) fn open(location: &Location) -> StoreResult<Opened> {
    assert_sqlite()?;
    let opened = match location {
        Location::Memory => {
            let connection = Connection::open_in_memory()
                .map_err(|error| trouble(location.path(), "cannot open a database", error))?;
            lay_out(&connection)
                .map_err(|error| trouble(location.path(), "cannot lay out the database", error))?;
            Opened {
                connection,
                company: Company::Alone,
            }
        }
        Location::File(path) => open_file(path)?,
    };
    opened.connection.set_prepared_statement_cache_capacity(64);
    Ok(opened)
}

/// A connection, and whether other connections can be open beside it.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) company: Company,
}

/// Whether another connection can be open beside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    Welcome,
    Alone,
}

fn assert_sqlite() -> StoreResult<()> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::failed(
            format!("SQLite {} can damage databases", rusqlite::version()),
            "3.51.3 or newer is needed",
        ));
    }
    Ok(())
}

fn open_file(path: &Path) -> StoreResult<Opened> {
    if !exists(path)? {
        create_file(path)?;
    }
    let format = identify(path)?;
    let writable = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let say = |error| trouble(path, "cannot open the database", error);
    let opened = match Connection::open_with_flags(path, writable).and_then(settle) {
        Ok(connection) => Opened {
            connection,
            company: Company::Welcome,
        },
        Err(error) => match open_unwritable(path) {
            Some(connection) => Opened {
                connection,
                company: Company::Welcome,
            },
            None if no_space_left(path) => {
                let connection = Connection::open_with_flags(path, writable).and_then(settle_alone);
                Opened {
                    connection: connection.map_err(say)?,
                    company: Company::Alone,
                }
            }
            None => return Err(say(error)),
        },
    };
    if format < PLAIN_FORMAT {
        migrate(&opened.connection, path, format)?;
    }
    Ok(opened)
}

fn exists(path: &Path) -> StoreResult<bool> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(StoreError::not_a_store(
            path,
            "it is a folder; for a folder of files write files:DIR",
        )),
        Ok(found) if found.len() == 0 && was_used(path) => Err(StoreError::damaged(
            path.display().to_string(),
            "it is empty (0 bytes), but the files beside it show that it was in use",
        )),
        // Empty because its creation by another process was interrupted: creating it again loses
        // nothing.
        Ok(found) => Ok(found.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(place::trouble(path, "cannot look at", error)),
    }
}

/// Returns true if files beside a database show that it was written to.
fn was_used(path: &Path) -> bool {
    let beside = |suffix| Location::File(path.to_owned()).beside(suffix);
    let size = |suffix| beside(suffix).and_then(|path| fs::metadata(path).ok());
    size("lock").is_some()
        || size("search").is_some()
        || size("wal").is_some_and(|wal| wal.len() > 0)
}

/// Reads application id and format from the file's header, without changing anything.
///
/// Uses SQLite if possible: a process that opens and closes the file itself loses all locks that
/// its other connections hold on it, and other processes then take the database for unused.
pub(super) fn identify(path: &Path) -> StoreResult<u32> {
    let read = |connection: Connection| -> rusqlite::Result<(i64, i64)> {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        Ok((number("application_id")?, number("user_version")?))
    };
    match open_immutable(path).and_then(read) {
        Ok((application, format)) => judge(
            path,
            u32::try_from(application).unwrap_or(0),
            u32::try_from(format).unwrap_or(u32::MAX),
        ),
        Err(_) => identify_damaged(path),
    }
}

fn identify_damaged(path: &Path) -> StoreResult<u32> {
    let mut head = [0; 100];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut head))
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                StoreError::not_a_store(path, "it is too short to be a database")
            }
            _ => place::trouble(path, "cannot read", error),
        })?;
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if !head.starts_with(b"SQLite format 3\0") {
        return Err(StoreError::not_a_store(
            path,
            "it is not an SQLite database",
        ));
    }
    judge(path, number(68), number(60))
}

fn judge(path: &Path, application: u32, format: u32) -> StoreResult<u32> {
    if is_nearly_ours(application) {
        return Err(StoreError::damaged(
            path.display().to_string(),
            "the mark of the program in its header is damaged",
        ));
    }
    if application != APPLICATION_ID {
        return Err(StoreError::not_a_store(
            path,
            "it is an SQLite database of another program",
        ));
    }
    match format {
        found if found > FORMAT => Err(StoreError::NewerFormat {
            place: path.display().to_string(),
            found,
            known: FORMAT,
        }),
        found => Ok(found),
    }
}

/// Returns true if the application id differs from ours in exactly one byte.
fn is_nearly_ours(application: u32) -> bool {
    let different = (application ^ APPLICATION_ID).to_be_bytes();
    different.iter().filter(|byte| **byte != 0).count() == 1
}

/// Returns true if a file is an SQLite database with the application id of another program, or with
/// none.
pub(super) fn is_of_another_program(path: &Path) -> bool {
    let mut head = [0; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let application = u32::from_be_bytes([head[68], head[69], head[70], head[71]]);
    read.is_ok()
        && head.starts_with(b"SQLite format 3\0")
        && application != APPLICATION_ID
        && !is_nearly_ours(application)
}

/// Creates the database under a temporary name and renames it when complete: an interrupted
/// creation leaves no partial store, and of two concurrent ones one wins.
fn create_file(path: &Path) -> StoreResult<()> {
    place::make_folder(place::folder_of(path))?;
    static MAKERS: AtomicU32 = AtomicU32::new(0);
    let maker = MAKERS.fetch_add(1, Ordering::Relaxed);
    let temporary = place::with_suffix(path, &format!("-new-{}-{maker}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    place::create_file(&temporary).map_err(|error| place::trouble(path, "cannot make", error))?;
    let made = make_whole(&temporary, path);
    let _ = fs::remove_file(&temporary);
    made
}

fn make_whole(temporary: &Path, path: &Path) -> StoreResult<()> {
    let make = || -> rusqlite::Result<()> {
        let connection = Connection::open(temporary)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        lay_out(&connection)?;
        connection.close().map_err(|(_, error)| error)
    };
    make().map_err(|error| trouble(path, "cannot lay out the database", error))?;
    if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        let _ = fs::remove_file(path);
    }
    match fs::hard_link(temporary, path) {
        Ok(()) => place::sync_folder_of(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Not every file system has hard links; a rename is as atomic, but may replace a concurrent
        // creation.
        Err(_) => {
            fs::rename(temporary, path)
                .map_err(|error| place::trouble(path, "cannot name", error))?;
            place::sync_folder_of(path)
        }
    }
}

pub(super) fn lay_out(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    connection.execute_batch(&format!(
        "BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={PLAIN_FORMAT}; {SCHEMA} COMMIT;"
    ))?;
    settings(connection)
}

fn settle(mut connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_handler(Some(busy::try_again))?;
    settings(&connection)?;
    Ok(connection)
}

/// Opens without the shared-memory file, for which a full disk has no room: reading, or reporting
/// that nothing can be saved, does not need it.
fn settle_alone(connection: Connection) -> rusqlite::Result<Connection> {
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    settle(connection)
}

fn settings(connection: &Connection) -> rusqlite::Result<()> {
    journal::use_wal(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "mmap_size", MAPPED)?;
    // Overwrites purged content instead of only unlinking it.
    connection.pragma_update(None, "secure_delete", "ON")
}

/// Preallocates the WAL: syncing a file that grows costs about twice as much, because its new size
/// must be made durable too. SQLite ignores the unwritten part. If preallocation fails, writes are
/// only slower.
pub(super) fn make_room(location: &Location) {
    let size = u64::from(CHECKPOINT_PAGES + 100) * u64::from(PAGE_SIZE + 24);
    let Some(log) = location.beside("wal") else {
        return;
    };
    let Ok(file) = fs::OpenOptions::new().write(true).open(log) else {
        return;
    };
    if file.metadata().is_ok_and(|found| found.len() < size) && !no_space_left(location.path()) {
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size);
    }
}

/// Opens a store on a read-only medium, unless its WAL is not empty, that is, a write was in
/// progress.
fn open_unwritable(path: &Path) -> Option<Connection> {
    let folder = place::folder_of(path);
    let denied = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err();
    let log = place::with_suffix(path, "-wal");
    if !denied || fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    open_immutable(path).ok()
}

/// Opens a database as it is in its file, without locks and without its WAL.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?immutable=1", percent_encoded(path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(uri, flags)
}

fn percent_encoded(path: &Path) -> String {
    let mut encoded = String::new();
    for &byte in std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()) {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

/// Migrates an older database, after saving a copy beside it.
fn migrate(connection: &Connection, path: &Path, from: u32) -> StoreResult<()> {
    migrate_by(connection, path, from, PLAIN_FORMAT, MIGRATIONS)
}

fn migrate_by(
    connection: &Connection,
    path: &Path,
    from: u32,
    to: u32,
    steps: &[(u32, &str)],
) -> StoreResult<()> {
    let say = |error| trouble(path, "cannot bring the database up to date", error);
    let mut batch = String::from("BEGIN IMMEDIATE;");
    for format in from..to {
        let Some((_, step)) = steps.iter().find(|(start, _)| *start == format) else {
            return Err(StoreError::not_a_store(
                path,
                format!("its format {format} is not one that this program ever wrote"),
            ));
        };
        batch.push_str(step);
    }
    batch.push_str(&format!("PRAGMA user_version={to}; COMMIT;"));
    // All steps are known: only now is there something to keep a copy for.
    let backup = place::with_suffix(path, &format!("-format-{from}-backup"));
    if !backup.exists() {
        let failed = |what| {
            let backup = backup.clone();
            move |error| place::trouble(&backup, what, error)
        };
        place::create_file(&backup).map_err(failed("cannot make"))?;
        connection
            .backup("main", &backup, None::<fn(rusqlite::backup::Progress)>)
            .map_err(say)?;
        place::make_private(&backup).map_err(failed("cannot keep private"))?;
        place::sync_folder_of(&backup)?;
    }
    connection.execute_batch(&batch).map_err(say)
}

/// Returns true if the file system is full: SQLite has several error codes for it.
pub(super) fn no_space_left(path: &Path) -> bool {
    rustix::fs::statvfs(place::folder_of(path))
        .is_ok_and(|space| space.f_bavail * space.f_frsize < 256 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_database_is_migrated_after_a_backup() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("t.db");
        let connection = open_file(&path).unwrap().connection;
        let steps = [
            (1, "CREATE TABLE later(x);"),
            (2, "INSERT INTO later VALUES(7);"),
        ];
        migrate_by(&connection, &path, 1, 3, &steps).unwrap();
        let value: i64 = connection
            .query_row("SELECT x FROM later", [], |row| row.get(0))
            .unwrap();
        assert_eq!(value, 7);
        // A program of the old format rejects the new file without changing it, and can read the
        // backup.
        assert!(
            matches!(
                identify(&path),
                Err(StoreError::NewerFormat { found: 3, .. })
            ) || {
                connection
                    .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
                    .unwrap();
                matches!(
                    identify(&path),
                    Err(StoreError::NewerFormat { found: 3, .. })
                )
            }
        );
        let backup = home.path().join("t.db-format-1-backup");
        assert_eq!(identify(&backup).unwrap(), 1);
        // A missing step changes nothing.
        assert!(migrate_by(&connection, &path, 3, 5, &[(3, "CREATE TABLE half(x);")]).is_err());
        assert!(connection.prepare("SELECT * FROM half").is_err());
        assert!(!home.path().join("t.db-format-3-backup").exists());
    }

    /// Without a write-ahead log, a commit is not as durable as promised.
    #[test]
    fn a_database_without_a_write_ahead_log_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let uri = format!("file:{}?vfs=unix-none", home.path().join("t.db").display());
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags).unwrap();
        let refused = lay_out(&connection).unwrap_err();
        assert!(refused.to_string().contains("journal mode"), "{refused}");
    }

    #[test]
    fn what_is_no_store_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let check = |content: &[u8]| {
            let path = home.path().join("x.db");
            fs::write(&path, content).unwrap();
            assert!(matches!(
                open_file(&path),
                Err(StoreError::NotAStore { .. })
            ));
            assert_eq!(fs::read(&path).unwrap(), content);
        };
        check(b"just a text");
        check(&[0; 4096]);
        let foreign = home.path().join("foreign.db");
        Connection::open(&foreign)
            .unwrap()
            .execute_batch("CREATE TABLE a(b)")
            .unwrap();
        check(&fs::read(&foreign).unwrap());
    }
}
