//! A database that lacks entries which derived data has seen: its WAL was deleted, or an older copy
//! took its place.

#![allow(clippy::unwrap_used, reason = "a panic is the report of a test")]

use std::fs;
use std::time::Duration;

use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{CheckMode, Extent, Ledger, Maintenance, Progress};
use tertulia_testkit::ask::{found, look, now};
use tertulia_testkit::clock::{moment, still_clock};
use tertulia_testkit::logs::Writer;

#[test]
fn an_older_copy_of_a_database_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(3));
    writer.say(&store, "early words");
    drop(store);
    let older = fs::read(&path).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    writer.say(&store, "late words");
    writer.say(&store, "last words");
    assert_eq!(found(&store, "words").len(), 3);
    let mut ledger = Ledger::of(&store, Duration::from_secs(5)).unwrap();
    now(ledger.catch_up(&store, Extent::All, &Progress::unseen())).unwrap();
    assert!(look(&store).is_clean());
    drop((store, ledger));
    fs::write(&path, older).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let report = look(&store);
    let id = writer.id;
    let named = format!("session {id}: entries 3-4 are missing");
    assert!(report.faults.contains(&named), "{report:?}");
    let index = report
        .faults
        .iter()
        .any(|fault| fault.contains("2 entries that the database lacks"));
    assert!(index, "{report:?}");
    let repaired = now(store.check(CheckMode::Repair(moment(9)), &Progress::unseen())).unwrap();
    assert!(repaired.lost.contains(&named), "{repaired:?}");
    assert!(look(&store).is_clean());
}

#[test]
fn a_purged_session_is_not_missed() {
    let scratch = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&scratch.path().join("t.db")).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(3));
    writer.say(&store, "some words");
    let mut other = Writer::begin(&store, &still_clock(4));
    other.say(&store, "other words");
    assert_eq!(found(&store, "words").len(), 2);
    now(tertulia_store::Store::purge(&store, other.id)).unwrap();
    let report = look(&store);
    assert!(report.is_clean(), "{report:?}");
}

/// A killed writer leaves its last entries in the WAL alone.
#[test]
fn a_deleted_wal_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(3));
    writer.say(&store, "early words");
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    writer.say(&store, "late words");
    let mut other = Writer::begin(&store, &still_clock(4));
    other.say(&store, "other words");
    assert_eq!(found(&store, "words").len(), 3);
    let mut ledger = Ledger::of(&store, Duration::from_secs(5)).unwrap();
    now(ledger.catch_up(&store, Extent::All, &Progress::unseen())).unwrap();
    drop(ledger);
    // The files as a kill leaves them, but for the WAL.
    let killed = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(scratch.path()).unwrap() {
        let name = entry.unwrap().file_name();
        let from = scratch.path().join(&name);
        if name != "t.db-wal" && from.is_file() {
            fs::copy(from, killed.path().join(&name)).unwrap();
        }
    }
    assert!(scratch.path().join("t.db-wal").metadata().unwrap().len() > 0);
    let store = SqliteStore::open(&killed.path().join("t.db")).unwrap();
    let report = look(&store);
    let faults = report.faults.join("\n");
    for what in [
        format!("session {}: entry 3 is missing", writer.id),
        format!("session {}: entries 1-2 are missing", other.id),
        "3 entries that the database lacks".to_owned(),
    ] {
        assert!(faults.contains(&what), "{what}: {report:?}");
    }
}
