//! What only the database itself shows.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use tertulia_core::entry::{Body, Entry, Forked, Head, NewEntry, Origin, Relation};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_testkit::logs::{created, human};
use uuid::Uuid;

use super::*;
use crate::engine::{Engine, Upkeep};
use crate::{CheckMode, NewSession, Progress};

fn id(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

fn engine(path: &Path) -> SqliteEngine {
    let location = Location::File(path.to_owned());
    SqliteEngine::open(&location, &Claims::memory(), &Patience::default()).unwrap()
}

fn chained(head: &Head, bodies: impl IntoIterator<Item = Body>) -> Vec<Entry> {
    let new_entry = |(n, body)| NewEntry {
        id: EntryId::new(Uuid::from_u128(n)),
        at: Timestamp::UNIX_EPOCH,
        body,
        redacted: Default::default(),
        author: None,
    };
    Entry::chain(head, (1..).zip(bodies).map(new_entry).collect()).unwrap()
}

/// Creates a session with its opening and this many messages.
fn create(engine: &mut SqliteEngine, n: u128, messages: usize) -> Vec<Entry> {
    let said = (0..messages).map(|n| human(&format!("message {n}")));
    let bodies = std::iter::once(Body::Created(created(id(n)))).chain(said);
    let entries = chained(&Head::START, bodies);
    let new = NewSession {
        id: id(n),
        base: None,
        entries: entries.clone(),
    };
    engine.create(&new).unwrap();
    entries
}

fn count(engine: &SqliteEngine, sql: &str) -> i64 {
    engine
        .connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap()
}

#[test]
fn snapshots_survive_a_rebuild() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(&home.path().join("t.db"));
    let entries = create(&mut engine, 1, 600);
    let head = entries.last().unwrap().head();
    let more = chained(&head, (0..200).map(|n| human(&format!("more {n}"))));
    engine.append(id(1), head, &more).unwrap();
    let kept = || "SELECT group_concat(seq) = '256,512,768' FROM snapshot";
    assert_eq!(count(&engine, kept()), 1);
    engine.rebuild(&Progress::unseen()).unwrap();
    assert_eq!(count(&engine, kept()), 1);
}

#[test]
fn a_count_of_sessions_that_are_not_there_is_a_fault() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(&home.path().join("t.db"));
    create(&mut engine, 1, 1);
    let faults = |engine: &mut SqliteEngine| {
        let report = engine.check(CheckMode::Look, &Progress::unseen()).unwrap();
        report.faults.len()
    };
    let tally = |sql: &str, engine: &SqliteEngine| engine.connection.execute_batch(sql).unwrap();
    tally("INSERT INTO tally VALUES('empty', 0, 0)", &engine);
    assert_eq!(faults(&mut engine), 0);
    tally("INSERT INTO tally VALUES('gone', 2, 0)", &engine);
    assert_eq!(faults(&mut engine), 1);
}

/// Two logs have one id, and a fork continues the one without a row.
#[test]
fn a_fork_of_a_duplicate_log_keeps_its_beginning() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(&home.path().join("t.db"));
    let entries = create(&mut engine, 1, 3);
    let from = Origin {
        id: id(1),
        seq: Seq(3),
        hash: entries[2].hash,
    };
    let opening = Body::Forked(Forked {
        session: id(2),
        from: from.clone(),
        relation: Relation::Fork,
        title: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    });
    let new = NewSession {
        id: id(2),
        base: Some(from),
        entries: chained(&entries[2].head(), [opening]),
    };
    engine.create(&new).unwrap();
    // The session has number 9 now; the fork's base is still log 1.
    engine
        .connection
        .execute_batch(
            "UPDATE session SET no = 9 WHERE base IS NULL;
             INSERT INTO entry(session, seq, line) SELECT 9, seq, line FROM entry WHERE session = 1;
             UPDATE session SET no = 10 WHERE no = 2; UPDATE entry SET session = 10 WHERE session = 2;",
        )
        .unwrap();
    let mode = CheckMode::Repair(Timestamp::UNIX_EPOCH);
    let report = engine.check(mode, &Progress::unseen()).unwrap();
    assert_eq!(report.lost, Vec::<String>::new());
    let lines = engine.read(id(2), Seq::START, 100).unwrap();
    let places: Vec<u64> = lines.iter().map(|line| line.seq.0).collect();
    assert_eq!(places, [1, 2, 3, 4]);
}

/// A database browser does not queue: opening the store meanwhile says what it waits for.
#[tokio::test]
async fn a_wait_for_a_foreign_program_is_announced() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    drop(engine(&path));
    let browser = rusqlite::Connection::open(&path).unwrap();
    browser
        .execute_batch(
            "PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; INSERT INTO tally VALUES('x', 0, 0); COMMIT",
        )
        .unwrap();
    let patience = Patience::default();
    let mut waits = patience.waits();
    let opening = std::thread::spawn({
        let (path, patience) = (path.clone(), patience.clone());
        move || SqliteStore::open_with(&path, &patience).map(drop)
    });
    let held = tokio::time::timeout(Duration::from_secs(5), waits.next()).await;
    let text = held.unwrap().to_string();
    assert_eq!(
        text,
        format!("{} is being written by another program", path.display())
    );
    drop(browser);
    opening.join().unwrap().unwrap();
    // Nothing waits any more.
    let next = tokio::time::timeout(Duration::from_millis(50), patience.waits().next()).await;
    assert!(next.is_err());
}
