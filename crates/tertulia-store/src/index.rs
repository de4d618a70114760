//! Full-text index that backends keep beside their logs. Derived: deleting it loses nothing.
//!
//! The index is updated lazily: an append does not touch it, a search first brings it up to date.
//! Documents are numbers that the backend understands; the text itself is not stored twice.

pub(super) mod logs;
mod matching;
#[cfg(feature = "postgres")]
mod numbers;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::sqlite::{trouble, use_wal_patiently};
use super::{Deadline, StoreError, StoreResult, place};
use matching::Facts;
use tertulia_core::entry::{Entry, Hash};
use tertulia_core::search_text;

/// Changes whenever text is tokenised or kept differently; an index of another version is rebuilt.
const VERSION: u32 = 4;
/// Bytes of postings gathered before they are written: fewer, larger segments need less merging.
const GATHERED: u32 = 32 << 20;
/// Page cache in KiB.
const CACHED: i64 = 32 * 1024;
/// Pages in the WAL before it is checkpointed.
const CHECKPOINT_PAGES: u32 = 16_000;

/// Entries in the first batch: small, so that a search with a short time limit soon has results.
const FIRST_BATCH: usize = 250;
/// Maximum entries per batch.
const BATCH: usize = 16_000;
/// Maximum bytes of text per batch: keeps the wait of other searches for the index short.
const BATCH_BYTES: usize = 8_000_000;
/// Busy timeout: another search may be updating the index; it releases the lock between batches.
const PATIENCE: Duration = Duration::from_secs(120);

/// - `reached`: how far the index has followed each source.
/// - `removals`: how often documents were removed.
/// - `words`: the texts.
/// - `facts`: when and by whom each was written. Names are hashed: they are only compared.
const SCHEMA: &str = "
CREATE TABLE removals(count INTEGER NOT NULL);
INSERT INTO removals VALUES(0);
CREATE TABLE reached(source INTEGER PRIMARY KEY, upto INTEGER NOT NULL, mark BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
CREATE TABLE facts(
  document INTEGER PRIMARY KEY, at INTEGER NOT NULL, role TEXT, id INTEGER, name INTEGER, shown INTEGER
);";

const COUNT_REMOVAL: &str = "UPDATE removals SET count = count + 1";

/// How far the index has followed one source, and the hash of the entry there: a log restored from
/// a backup has another hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) upto: u64,
    pub(super) mark: Hash,
}

impl Reached {
    pub(super) const NOTHING: Reached = Reached {
        upto: 0,
        mark: Hash::NONE,
    };
}

/// Documents of one source to add: its expected position, and the position reached with them.
pub(super) struct Step {
    pub(super) source: u64,
    pub(super) from: Reached,
    pub(super) documents: Vec<Document>,
    pub(super) reached: Reached,
}

/// Sends steps to the thread that writes them.
pub(super) struct Steps(mpsc::SyncSender<Vec<Step>>);

impl Steps {
    /// Sends a chunk of steps; false means that no more are wanted.
    pub(super) fn send(&self, steps: Vec<Step>) -> bool {
        self.0.send(steps).is_ok()
    }
}

/// Batch size. It grows, because large batches are written in fewer and larger segments.
pub(super) struct Pace {
    entries: usize,
}

impl Pace {
    pub(super) const START: Pace = Pace {
        entries: FIRST_BATCH,
    };

    /// Maximum entries of the next batch.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// Returns true if the entries or bytes fill a batch.
    pub(super) fn is_reached(&self, entries: usize, bytes: usize) -> bool {
        entries >= self.entries || bytes >= BATCH_BYTES
    }

    /// Doubles the batch size, up to the maximum.
    pub(super) fn speed_up(&mut self) {
        self.entries = (self.entries * 2).min(BATCH);
    }
}

/// A text to add, and the position reached with it.
pub(super) struct Document {
    number: u64,
    text: String,
    facts: Facts,
    reached: Reached,
}

impl Document {
    /// Prepares the text of an entry for the index; `None` if it has none.
    pub(super) fn of(number: u64, entry: &Entry, reached: Reached) -> Option<Document> {
        let text = entry.body.searchable();
        (!text.is_empty()).then(|| Document {
            number,
            text: search_text::indexable(&text),
            facts: Facts::of(entry),
            reached,
        })
    }
}

/// The open index.
#[derive(Debug)]
pub(super) struct Index {
    connection: Connection,
    path: PathBuf,
}

impl Index {
    /// Opens the index in a file, or in memory. Recreates one that is damaged or of another
    /// version.
    pub(super) fn open(path: Option<&Path>) -> StoreResult<Index> {
        let Some(path) = path else {
            let connection = Connection::open_in_memory().and_then(lay_out);
            let path = PathBuf::from(":memory:");
            return match connection {
                Ok(connection) => Ok(Index { connection, path }),
                Err(error) => Err(trouble(&path, "cannot make the index", error)),
            };
        };
        if !path.exists() {
            match place::create_file(path) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(place::trouble(path, "cannot make", error)),
            }
        }
        let open = || Connection::open(path).and_then(lay_out);
        let connection = open().or_else(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                discard(path);
                let _ = place::create_file(path);
                open()
            }
            _ => Err(error),
        });
        match connection {
            Ok(connection) => Ok(Index {
                connection,
                path: path.to_owned(),
            }),
            Err(error) => Err(trouble(path, "cannot open the index", error)),
        }
    }

    /// Returns how far the index has followed a source.
    pub(super) fn reached(&self, source: u64) -> StoreResult<Reached> {
        reached(&self.connection, source).map_err(|error| self.trouble(error))
    }

    /// Returns how far the index has followed every source.
    pub(super) fn all_reached(&self) -> StoreResult<HashMap<u64, Reached>> {
        let read = || {
            let mut select = self
                .connection
                .prepare_cached("SELECT source, upto, mark FROM reached")?;
            let rows = select.query_map([], |row| {
                let reached = Reached {
                    upto: row.get::<_, i64>(1)?.cast_unsigned(),
                    mark: Hash::from_bytes(&row.get::<_, Vec<u8>>(2)?).unwrap_or(Hash::NONE),
                };
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), reached))
            })?;
            rows.collect::<rusqlite::Result<HashMap<u64, Reached>>>()
        };
        read().map_err(|error| self.trouble(error))
    }

    /// Returns how often documents were removed. A search during which this changes may have missed
    /// some: a rebuild removes all documents and puts them back later.
    pub(super) fn removals(&self) -> StoreResult<u64> {
        let select = self
            .connection
            .prepare_cached("SELECT count FROM removals")
            .and_then(|mut select| select.query_row([], |row| row.get::<_, i64>(0)));
        let count = select.map_err(|error| self.trouble(error))?;
        Ok(count.cast_unsigned())
    }

    /// Writes the steps that `read` sends, until the deadline. A thread of its own writes them, so
    /// that one chunk is read and decoded while the one before it is indexed.
    pub(super) fn follow(
        &mut self,
        deadline: Deadline,
        read: impl FnOnce(&Steps) -> StoreResult<()>,
    ) -> StoreResult<()> {
        let (send, chunks) = mpsc::sync_channel::<Vec<Step>>(1);
        let write = || {
            for steps in chunks {
                if !self.advance(&steps, deadline)? || deadline.has_passed() {
                    break;
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let writer = scope.spawn(write);
            let read = read(&Steps(send));
            match writer.join() {
                Ok(written) => written.and(read),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Adds steps in one transaction, until the deadline. Skips a step whose source is not at the
    /// expected position, because another process has advanced it. Returns false if all were
    /// skipped.
    pub(super) fn advance(&mut self, steps: &[Step], deadline: Deadline) -> StoreResult<bool> {
        let path = self.path.clone();
        let say = |error| trouble(&path, "cannot write the index", error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(say)?;
        let mut advanced = steps.is_empty();
        for step in steps {
            if reached(&transaction, step.source).map_err(say)? != step.from {
                continue;
            }
            advanced = true;
            if !write_step(&transaction, step, deadline).map_err(say)? {
                break;
            }
        }
        transaction.commit().map_err(say)?;
        Ok(advanced)
    }

    /// Removes sources and their documents, which are in the given ranges.
    pub(super) fn forget(&mut self, sources: &[(u64, std::ops::Range<u64>)]) -> StoreResult<()> {
        let path = self.path.clone();
        let say = |error| trouble(&path, "cannot write the index", error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(say)?;
        for (source, documents) in sources {
            transaction
                .execute(
                    "DELETE FROM words WHERE rowid >= ?1 AND rowid < ?2",
                    params![documents.start.cast_signed(), documents.end.cast_signed()],
                )
                .and_then(|_| {
                    transaction.execute(
                        "DELETE FROM facts WHERE document >= ?1 AND document < ?2",
                        params![documents.start.cast_signed(), documents.end.cast_signed()],
                    )
                })
                .and_then(|_| {
                    transaction.execute(
                        "DELETE FROM reached WHERE source = ?1",
                        [source.cast_signed()],
                    )
                })
                .map_err(say)?;
        }
        // Only merging the segments removes the text itself.
        transaction
            .execute_batch(&format!(
                "{COUNT_REMOVAL}; INSERT INTO words(words) VALUES('optimize');"
            ))
            .map_err(say)?;
        transaction.commit().map_err(say)
    }

    /// Returns true if the index is in memory: then a later process cannot finish the work of this
    /// one.
    pub(super) fn is_in_memory(&self) -> bool {
        self.path == Path::new(":memory:")
    }

    /// Removes documents.
    pub(super) fn remove(&mut self, documents: &[u64]) -> StoreResult<()> {
        let path = self.path.clone();
        let say = |error| trouble(&path, "cannot write the index", error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(say)?;
        for document in documents {
            for delete in [
                "DELETE FROM words WHERE rowid = ?1",
                "DELETE FROM facts WHERE document = ?1",
            ] {
                transaction
                    .execute(delete, [document.cast_signed()])
                    .map_err(say)?;
            }
        }
        // Only merging the segments removes the text itself.
        transaction
            .execute_batch(&format!(
                "{COUNT_REMOVAL}; INSERT INTO words(words) VALUES('optimize');"
            ))
            .map_err(say)?;
        transaction.commit().map_err(say)?;
        // The WAL still holds the old pages until they are checkpointed.
        self.connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(say)
    }

    /// Removes all documents. Replaces the file if it is too damaged for that.
    pub(super) fn clear(&mut self) -> StoreResult<()> {
        let emptied = self.connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; DELETE FROM reached; DELETE FROM facts; INSERT INTO words(words) VALUES('delete-all');
             {COUNT_REMOVAL}; COMMIT;"
        ));
        let Err(error) = emptied else {
            return Ok(());
        };
        if !is_damage(&error) || self.path == Path::new(":memory:") {
            return Err(self.trouble(error));
        }
        self.connection = Connection::open_in_memory().map_err(|error| self.trouble(error))?;
        discard(&self.path);
        *self = Index::open(Some(&self.path.clone()))?;
        Ok(())
    }

    /// Describes damage of the index, if any.
    pub(super) fn fault(&self) -> Option<String> {
        self.connection
            .execute("INSERT INTO words(words) VALUES('integrity-check')", [])
            .err()
            .map(|error| format!("the search index is damaged: {error}"))
    }

    /// Returns the index's size on disk.
    pub(super) fn bytes(path: Option<&Path>) -> u64 {
        path.and_then(|path| std::fs::metadata(path).ok())
            .map_or(0, |found| found.len())
    }

    fn trouble(&self, error: rusqlite::Error) -> StoreError {
        trouble(&self.path, "cannot read the index", error)
    }
}

/// Returns true if the file is damaged, as opposed to a temporary failure; a damaged index is
/// rebuilt.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    !matches!(
        error.sqlite_error_code(),
        Some(
            Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::DiskFull
                | Code::ReadOnly
                | Code::SystemIoFailure
                | Code::OutOfMemory
        )
    )
}

/// Removes an index file with SQLite's files beside it.
pub(super) fn discard(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(place::with_suffix(path, suffix));
    }
}

fn reached(connection: &Connection, source: u64) -> rusqlite::Result<Reached> {
    let found = connection
        .prepare_cached("SELECT upto, mark FROM reached WHERE source = ?1")?
        .query_row([source.cast_signed()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .optional()?;
    Ok(found.map_or(Reached::NOTHING, |(upto, mark)| Reached {
        upto: upto.cast_unsigned(),
        mark: Hash::from_bytes(&mark).unwrap_or(Hash::NONE),
    }))
}

/// Adds the documents of a step, at least one, until the deadline. Returns false if it stopped
/// early.
fn write_step(transaction: &Connection, step: &Step, deadline: Deadline) -> rusqlite::Result<bool> {
    let mut insert = transaction.prepare_cached("INSERT INTO words(rowid, text) VALUES(?1, ?2)")?;
    let mut describe = transaction
        .prepare_cached("INSERT OR REPLACE INTO facts VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut paused = None;
    for document in &step.documents {
        insert.execute(params![document.number.cast_signed(), document.text])?;
        let Facts { at, role, names } = &document.facts;
        let [id, name, shown] = names;
        describe.execute(params![
            document.number.cast_signed(),
            at,
            role,
            id,
            name,
            shown
        ])?;
        if deadline.has_passed() {
            paused = Some(document.reached);
            break;
        }
    }
    let reached = paused.unwrap_or(step.reached);
    transaction
        .prepare_cached("INSERT OR REPLACE INTO reached VALUES(?1, ?2, ?3)")?
        .execute(params![
            step.source.cast_signed(),
            reached.upto.cast_signed(),
            reached.mark.bytes()
        ])?;
    Ok(paused.is_none())
}

fn lay_out(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(PATIENCE)?;
    // Overwrites purged content instead of only unlinking it.
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "cache_size", -CACHED)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
    };
    if version(&connection)? == VERSION {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        return Ok(connection);
    }
    use_wal_patiently(&connection, PATIENCE)?;
    // Documents lost in a crash are indexed again, so there is no need to wait for the disk.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if version(&connection)? != VERSION {
        connection.execute_batch(&format!(
            "DROP TABLE IF EXISTS removals; DROP TABLE IF EXISTS reached;
             DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS facts; {SCHEMA}
             INSERT INTO words(words, rank) VALUES('hashsize', {GATHERED});
             PRAGMA user_version={VERSION};"
        ))?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(connection)
}
