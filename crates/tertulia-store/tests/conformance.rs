//! Runs the conformance suite of [`tertulia_store::Store`] against every backend.

use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::conformance_suite;
use tertulia_testkit::place::Folder;
use tertulia_testkit::postgres::Schema;

conformance_suite!(sqlite, folder: || Folder::new(|folder| SqliteStore::open(&folder.join("tertulia.db"))));
conformance_suite!(sqlite_in_memory, memory: SqliteStore::in_memory);
conformance_suite!(files, folder: || Folder::new(|folder| FilesStore::open(&folder.join("sessions"))));
conformance_suite!(postgres, place: Schema::new);
