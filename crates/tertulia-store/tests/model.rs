//! Compares random histories on every backend with a model of plain vectors.

use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::model_suite;
use tertulia_testkit::place::Folder;
use tertulia_testkit::postgres::Schema;

model_suite!(sqlite, place: || Folder::new(|folder| SqliteStore::open(&folder.join("tertulia.db"))));
model_suite!(sqlite_in_memory, memory: SqliteStore::in_memory);
model_suite!(files, place: || Folder::new(|folder| FilesStore::open(&folder.join("sessions"))));
model_suite!(postgres, place: Schema::new);
