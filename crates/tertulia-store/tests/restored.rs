//! A database that lacks entries which derived data has seen: its WAL was deleted, or an older copy
//! took its place.

#![allow(clippy::unwrap_used, reason = "a panic is the report of a test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tertulia_core::id::SessionId;
use tertulia_core::query::Lookup;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{CaughtUp, CheckMode, Extent, Ledger, Maintenance, Progress, Store};
use tertulia_testkit::ask::{found, look, now};
use tertulia_testkit::clock::{moment, still_clock};
use tertulia_testkit::logs::{Writer, ai};

use crate::ledger::sums;

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
    let mut ledger = counted(&store);
    now(store.purge(other.id)).unwrap();
    let report = look(&store);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(catch_up(&mut ledger, &store).removed, 0);
}

/// A purge that is killed after it removed the session from the ledger leaves a session that is there.
#[test]
fn a_killed_purge_leaves_a_session_that_is_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&scratch.path().join("t.db")).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(3));
    writer.append(&store, vec![ai("demo", "some words")]);
    let mut other = Writer::begin(&store, &still_clock(4));
    other.append(&store, vec![ai("demo", "other words")]);
    assert_eq!(found(&store, "words").len(), 2);
    let before = sums(&counted(&store));
    drop(store);
    let killed = copy_without(scratch.path(), &["t.db-ledger"]);
    let store = SqliteStore::open(&scratch.path().join("t.db")).unwrap();
    now(store.purge(other.id)).unwrap();
    drop(store);
    let ledger = "t.db-ledger";
    fs::copy(scratch.path().join(ledger), killed.path().join(ledger)).unwrap();
    let store = SqliteStore::open(&killed.path().join("t.db")).unwrap();
    let report = look(&store);
    assert!(report.is_clean(), "{report:?}");
    let mut ledger = Ledger::of(&store, Duration::from_secs(5)).unwrap();
    assert_ne!(sums(&ledger), before);
    let done = catch_up(&mut ledger, &store);
    assert_eq!((done.sessions, done.removed), (1, 0));
    assert_eq!(sums(&ledger), before);
    now(store.purge(other.id)).unwrap();
    assert!(look(&store).is_clean());
}

/// A session that is purged while it is counted is not known to the ledger afterwards.
#[test]
fn a_session_that_is_purged_while_it_is_counted_is_not_missed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    let writers: Vec<Writer> = (1..=3)
        .map(|seed| Writer::begin(&*store, &still_clock(seed)))
        .collect();
    let ids: Vec<_> = writers.iter().map(|writer| writer.id).collect();
    let mut ledger = Ledger::of(&*store, Duration::from_secs(5)).unwrap();
    let theirs = store.clone();
    let progress = Progress::new(move |_, done, _| {
        // All but the last were read, and none is written yet.
        if done == 2 && is_there(&theirs, &ids) {
            for id in &ids {
                let store = theirs.clone();
                let id = *id;
                let purged = std::thread::spawn(move || now(store.purge(id)));
                purged.join().unwrap().unwrap();
            }
        }
    });
    now(ledger.catch_up(&*store, Extent::All, &progress)).unwrap();
    drop(ledger);
    let report = look(&*store);
    assert!(report.is_clean(), "{report:?}");
}

fn is_there(store: &Arc<SqliteStore>, ids: &[SessionId]) -> bool {
    let (store, id) = (store.clone(), ids[0]);
    let found = std::thread::spawn(move || now(store.find(&Lookup::Id(id), 1)));
    !found.join().unwrap().unwrap().is_empty()
}

fn catch_up(ledger: &mut Ledger, store: &SqliteStore) -> CaughtUp {
    now(ledger.catch_up(store, Extent::All, &Progress::unseen())).unwrap()
}

/// Returns the ledger of a store, with all its sessions.
fn counted(store: &SqliteStore) -> Ledger {
    let mut ledger = Ledger::of(store, Duration::from_secs(5)).unwrap();
    catch_up(&mut ledger, store);
    ledger
}

/// Copies the files of a folder as a kill leaves them, but for some.
fn copy_without(folder: &Path, missing: &[&str]) -> tempfile::TempDir {
    let killed = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name();
        let from = folder.join(&name);
        if from.is_file() && !missing.iter().any(|missing| name == *missing) {
            fs::copy(from, killed.path().join(&name)).unwrap();
        }
    }
    killed
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
    drop(counted(&store));
    let killed = copy_without(scratch.path(), &["t.db-wal"]);
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

/// Without a search index the ledger alone knows what went with the WAL.
#[test]
fn a_session_that_only_the_ledger_knows_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    let store = SqliteStore::open(&path).unwrap();
    Writer::begin(&store, &still_clock(3)).say(&store, "early words");
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    let mut other = Writer::begin(&store, &still_clock(4));
    other.say(&store, "other words");
    drop(counted(&store));
    let killed = copy_without(scratch.path(), &["t.db-wal"]);
    let store = SqliteStore::open(&killed.path().join("t.db")).unwrap();
    let named = format!("session {}: entries 1-2 are missing", other.id);
    let report = look(&store);
    assert!(report.faults.contains(&named), "{report:?}");
    let repaired = now(store.check(CheckMode::Repair(moment(9)), &Progress::unseen())).unwrap();
    assert!(repaired.lost.contains(&named), "{repaired:?}");
    assert!(look(&store).is_clean());
}
