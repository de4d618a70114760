//! Reads the SQLite databases of other programs: possibly in use, of another version, or damaged.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::{Input, ReadError};

/// First bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Bytes of the header up to the journal mode.
const HEADER: usize = 20;
/// Time to wait for a program that is writing.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that a row needs at least. A damaged database could yield the same rows for ever.
const SMALLEST_ROW: u64 = 4;

/// A database of another program, opened for reading only.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// Number of rows that a database of this size can have.
    limit: u64,
}

impl Database {
    /// Opens the database to import.
    pub fn of(input: &Input<'_>) -> Result<Database, ReadError> {
        match input.content {
            None => Database::open(input.path),
            Some(_) => {
                let words = "a database cannot be read from standard input; name its file";
                Err(ReadError::Invalid(words.to_owned()))
            }
        }
    }

    /// Opens a database. Neither the database nor its write-ahead log is changed.
    pub fn open(path: &Path) -> Result<Database, ReadError> {
        let mut header = Vec::with_capacity(HEADER);
        let file = File::open(path)?;
        let size = file.metadata()?.len() + size_of(&beside(path, "-wal"));
        file.take(HEADER as u64).read_to_end(&mut header)?;
        let immutable = has_log(&header) && !is_in_use(path);
        let uri = uri(path, immutable);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags).map_err(unreadable)?;
        let database = Database {
            connection,
            limit: size / SMALLEST_ROW + 1_000,
        };
        database.protect().map_err(unreadable)?;
        Ok(database)
    }

    fn protect(&self) -> rusqlite::Result<()> {
        let connection = &self.connection;
        connection.busy_timeout(PATIENCE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // A view in the place of a table can have rows without end, or compute without giving one.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        connection.execute_batch(
            "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON",
        )
    }

    /// Reads something in one transaction, so that it is of one moment.
    pub fn read<T>(
        &self,
        read: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ReadError> {
        let transaction = self.connection.unchecked_transaction();
        let transaction = transaction.map_err(unreadable)?;
        read(&transaction).map_err(unreadable)
    }

    /// Returns true if the database has a table with this column.
    pub fn has(&self, table: &str, column: &str) -> Result<bool, ReadError> {
        let mut found = false;
        self.rows(
            "SELECT name FROM pragma_table_info(?1) WHERE name = ?2",
            &[table, column],
            &mut |_| found = true,
        )?;
        Ok(found)
    }

    /// Runs a query and gives each row to `each`. `values` replace `?1`, `?2` and so on.
    pub fn rows(
        &self,
        sql: &str,
        values: &[&str],
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), ReadError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(unreadable)?;
        let mut rows = statement
            .query(params_from_iter(values))
            .map_err(unreadable)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(unreadable)? {
            count += 1;
            if count > self.limit {
                let words = "the database is damaged: it has more rows than its size allows";
                return Err(ReadError::Invalid(words.to_owned()));
            }
            each(&Row(row));
        }
        Ok(())
    }

    /// Returns the texts of the first column.
    pub fn texts(&self, sql: &str, values: &[&str]) -> Result<Vec<String>, ReadError> {
        let mut texts = Vec::new();
        self.rows(sql, values, &mut |row| texts.extend(row.first()))?;
        Ok(texts)
    }
}

/// A row of a result. A column that is missing, or of another type, has no value.
#[derive(Debug)]
pub struct Row<'a>(&'a rusqlite::Row<'a>);

impl Row<'_> {
    /// Returns a text, unless it is empty.
    pub fn text(&self, column: &str) -> Option<String> {
        text(self.0.get_ref(column).ok()?)
    }

    /// Returns the text of the first column, unless it is empty.
    fn first(&self) -> Option<String> {
        text(self.0.get_ref(0).ok()?)
    }

    /// Returns a number.
    pub fn number(&self, column: &str) -> Option<i64> {
        match self.0.get_ref(column).ok()? {
            ValueRef::Integer(number) => Some(number),
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            ValueRef::Real(number) if number.is_finite() => Some(number as i64),
            ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns a number that is not negative, or 0.
    pub fn count(&self, column: &str) -> u64 {
        let number = self.number(column).unwrap_or_default();
        u64::try_from(number).unwrap_or_default()
    }
}

fn text(value: ValueRef<'_>) -> Option<String> {
    let text = match value {
        // Some programs store text as bytes.
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null => String::new(),
    };
    (!text.is_empty()).then_some(text)
}

/// Returns true if a file that begins with these bytes is a database.
pub fn is_database(beginning: &[u8]) -> bool {
    beginning.starts_with(MAGIC)
}

/// Names the rows of a table that could not be read, for the report.
pub fn damaged_rows(table: &str, rows: &[String]) -> Option<String> {
    const LISTED: usize = 20;
    let listed = &rows[..rows.len().min(LISTED)];
    let more = match rows.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!rows.is_empty()).then(|| format!("damaged rows of {table}: {}{more}", listed.join(", ")))
}

/// Returns true if a file is a database with these columns. A database that cannot be read is
/// recognised by its name, so that the import reports the fault.
pub fn is_database_with(
    path: &Path,
    beginning: &[u8],
    name: &str,
    columns: &[(&str, &str)],
) -> bool {
    let has_all = |database: Database| {
        for (table, column) in columns {
            if !database.has(table, column)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    is_database(beginning)
        && match Database::open(path).and_then(has_all) {
            Ok(found) => found,
            Err::<_, ReadError>(_) => path.file_name().is_some_and(|found| found == name),
        }
}

/// Returns true if the header says that changes go to a write-ahead log.
fn has_log(header: &[u8]) -> bool {
    header.get(18..HEADER) == Some(&[2, 2])
}

/// Returns true if there is a write-ahead log to read, or a program that may write one.
fn is_in_use(path: &Path) -> bool {
    beside(path, "-shm").exists() || size_of(&beside(path, "-wal")) > 0
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn size_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns the URI of a database. `immutable` makes SQLite create no files beside it.
fn uri(path: &Path, immutable: bool) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro");
    if immutable {
        uri.push_str("&immutable=1");
    }
    uri
}

fn unreadable(error: rusqlite::Error) -> ReadError {
    let words = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program is writing to the database; try again later"
        }
        Some(ErrorCode::CannotOpen) => {
            "the database cannot be opened; copy it with its -wal file to a folder that you can \
             write to"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "the database is damaged",
        _ => "the database cannot be read",
    };
    ReadError::Invalid(format!("{words} ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(database: &Database) -> usize {
        let texts = database.texts("SELECT text FROM notes", &[]);
        texts.unwrap().len()
    }

    #[test]
    fn a_database_in_use_is_read_with_its_log_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in use?#%.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
            .unwrap();
        writer
            .execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('one')")
            .unwrap();
        let bytes = || {
            (
                fs::read(&path).unwrap(),
                fs::read(beside(&path, "-wal")).unwrap(),
            )
        };
        let before = bytes();
        assert!(!before.1.is_empty());
        let database = Database::open(&path).unwrap();
        assert_eq!(count(&database), 1);
        writer
            .execute_batch("INSERT INTO notes VALUES ('two')")
            .unwrap();
        assert_eq!(count(&database), 2);
        assert!(
            database
                .connection
                .execute_batch("DELETE FROM notes")
                .is_err()
        );
        let before = bytes();
        drop(database);
        assert_eq!(bytes(), before);
    }

    #[test]
    fn a_log_that_was_left_behind_is_read_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE notes (text);
                 INSERT INTO notes VALUES ('one')",
            )
            .unwrap();
        fs::copy(&path, &copy).unwrap();
        fs::copy(beside(&path, "-wal"), beside(&copy, "-wal")).unwrap();
        let before = (
            fs::read(&copy).unwrap(),
            fs::read(beside(&copy, "-wal")).unwrap(),
        );
        let database = Database::open(&copy).unwrap();
        assert_eq!(count(&database), 1);
        drop(database);
        let after = (
            fs::read(&copy).unwrap(),
            fs::read(beside(&copy, "-wal")).unwrap(),
        );
        assert_eq!(after, before);
    }

    #[test]
    fn a_database_at_rest_gets_no_files_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE notes (text, size);
                 INSERT INTO notes VALUES ('one', '7'), (x'74776f', 1.5), (NULL, x'00')",
            )
            .unwrap();
        drop(writer);
        let database = Database::open(&path).unwrap();
        let mut rows = Vec::new();
        let each = &mut |row: &Row<'_>| {
            rows.push((row.text("text"), row.number("size"), row.text("none")));
        };
        database.rows("SELECT * FROM notes", &[], each).unwrap();
        assert_eq!(
            rows,
            [
                (Some("one".to_owned()), Some(7), None),
                (Some("two".to_owned()), Some(1), None),
                (None, None, None),
            ]
        );
        assert!(database.has("notes", "size").unwrap());
        assert!(!database.has("notes", "none").unwrap() && !database.has("none", "x").unwrap());
        drop(database);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// The first view has no end, the second gives no row.
    #[test]
    fn views_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let endless = "WITH RECURSIVE n(text) AS (SELECT 1 UNION ALL SELECT text + 1 FROM n)";
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!(
                "CREATE VIEW notes AS {endless} SELECT text FROM n;
                 CREATE VIEW silent AS {endless} SELECT text FROM n WHERE text < 0;"
            ))
            .unwrap();
        let database = Database::open(&path).unwrap();
        for view in ["notes", "silent"] {
            let refused = database.texts(&format!("SELECT text FROM {view}"), &[]);
            // Names of a recursive view are looked for as tables.
            let error = refused.unwrap_err().to_string();
            let is_named = error.contains("view") || error.contains("no such table");
            assert!(is_named, "{error}");
        }
    }

    #[test]
    fn faults_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert!(matches!(Database::open(&path), Err(ReadError::Io(_))));
        fs::write(&path, [MAGIC, &[7; 4_000]].concat()).unwrap();
        let error = Database::open(&path)
            .and_then(|database| database.has("notes", "text"))
            .unwrap_err();
        assert!(
            error.to_string().contains("the database is damaged"),
            "{error}"
        );
        let beginning = fs::read(&path).unwrap();
        let content = Some(&beginning[..]);
        let input = Input {
            path: &path,
            content,
        };
        let error = Database::of(&input).unwrap_err();
        assert!(error.to_string().contains("standard input"), "{error}");
        let columns = [("notes", "text")];
        assert!(is_database_with(&path, &beginning, "a.db", &columns));
        assert!(!is_database_with(&path, &beginning, "b.db", &columns));
        assert!(!is_database_with(&path, b"notes", "a.db", &columns));
    }
}
