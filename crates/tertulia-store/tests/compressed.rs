//! Compressed sessions on disk: the two files of a log, what a kill leaves, and damaged blocks.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is the report of a test"
)]

use std::fs;
use std::path::{Path, PathBuf};

use tertulia_core::session::SessionMeta;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{CheckMode, Maintenance, Progress, Report, Store, StoreError};
use tertulia_testkit::ask::{assert_log, assert_sound, lines, look, now, row};
use tertulia_testkit::clock::{moment, still_clock};
use tertulia_testkit::logs::{Writer, human};

const TURNS: usize = 600;

/// Writes a session of several blocks.
fn long(store: &dyn Store, seed: u64) -> Writer {
    let mut writer = Writer::begin(store, &still_clock(seed));
    for turn in 0..TURNS {
        writer.say(store, &format!("turn {turn} {}", "some words ".repeat(30)));
    }
    writer
}

fn compress(store: &dyn Store, writer: &Writer) {
    let done = now(store.compress(&[writer.id], &Progress::unseen())).unwrap();
    assert_eq!((done.sessions, done.skipped.len()), (1, 0), "{done:?}");
}

fn repair(store: &dyn Store) -> Report {
    now(store.check(CheckMode::Repair(moment(9)), &Progress::unseen())).unwrap()
}

/// A files store with one session.
struct Home {
    dir: tempfile::TempDir,
    store: FilesStore,
    writer: Writer,
    log: PathBuf,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesStore::open(dir.path()).unwrap();
        let writer = long(&store, 1);
        let folder = dir.path().join("chat");
        let mut files = fs::read_dir(folder).unwrap();
        let log = files.next().unwrap().unwrap().path();
        Home {
            dir,
            store,
            writer,
            log,
        }
    }

    fn packed(&self) -> PathBuf {
        PathBuf::from(format!("{}.zst", self.log.display()))
    }

    /// Opens the store anew, as the next program does.
    fn again(&self) -> FilesStore {
        FilesStore::open(self.dir.path()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.log.parent().unwrap()).unwrap();
        let name = |file: fs::DirEntry| file.file_name().into_string().unwrap();
        let mut names: Vec<String> = files.map(|file| name(file.unwrap())).collect();
        names.sort();
        names
    }
}

#[test]
fn one_of_two_files_holds_the_log() {
    let mut home = Home::new();
    let plain = fs::read(&home.log).unwrap();
    compress(&home.store, &home.writer);
    assert!(!home.log.exists() && home.packed().exists());
    let marker = fs::read_to_string(home.dir.path().join("tertulia-store.json")).unwrap();
    assert_eq!(marker, "{\"format\":2,\"backend\":\"files\"}\n");
    // Any program that knows zstd reads it.
    let unpacked = zstd::decode_all(&fs::read(home.packed()).unwrap()[..]).unwrap();
    assert_eq!(unpacked, plain);
    home.writer.say(&home.store, "goes on");
    assert!(home.log.exists() && !home.packed().exists());
    assert!(fs::read(&home.log).unwrap().starts_with(&plain));
    assert_sound(&home.store);
}

#[test]
fn a_kill_may_leave_both_files() {
    // After the compressed file got its name, or after an append made the log plain again.
    let mut home = Home::new();
    let plain = fs::read(&home.log).unwrap();
    compress(&home.store, &home.writer);
    fs::write(&home.log, &plain).unwrap();
    for store in [&home.store, &home.again()] {
        assert_log(store, &home.writer);
        let report = look(store);
        assert!(report.is_clean() && report.notes.is_empty(), "{report:?}");
        assert_eq!(report.sessions, 1);
    }
    home.writer.say(&home.again(), "goes on");
    assert!(!home.packed().exists());
    assert_log(&home.store, &home.writer);
    // Compressing again replaces what is left of an earlier time.
    let earlier = fs::read(&home.log).unwrap();
    compress(&home.store, &home.writer);
    fs::write(&home.log, &earlier).unwrap();
    compress(&home.again(), &home.writer);
    assert!(!home.log.exists());
    assert_log(&home.store, &home.writer);
    assert_sound(&home.store);
}

#[test]
fn the_longer_of_both_files_counts() {
    let home = Home::new();
    let plain = fs::read(&home.log).unwrap();
    compress(&home.store, &home.writer);
    fs::write(&home.log, &plain[..plain.len() / 2]).unwrap();
    let store = home.again();
    assert_log(&store, &home.writer);
    assert_log(&home.store, &home.writer);
    assert!(look(&store).is_clean());
    let mut writer = home.writer.clone();
    writer.say(&store, "goes on");
    assert!(fs::read(&home.log).unwrap().starts_with(&plain));
    assert_log(&home.store, &writer);
}

#[test]
fn a_file_that_was_being_written_does_not_count() {
    let home = Home::new();
    let part = PathBuf::from(format!("{}.part-77", home.packed().display()));
    fs::write(&part, "half").unwrap();
    let report = look(&home.store);
    assert!(report.is_clean() && report.notes.is_empty(), "{report:?}");
    compress(&home.store, &home.writer);
    assert_eq!(home.names().len(), 1, "{:?}", home.names());
    assert_log(&home.again(), &home.writer);
    fs::write(&part, "half").unwrap();
    now(home.store.purge(home.writer.id)).unwrap();
    assert_eq!(home.names(), Vec::<String>::new());
}

#[test]
fn what_is_damaged_is_not_compressed() {
    let home = Home::new();
    let mut bytes = fs::read(&home.log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&home.log, &bytes).unwrap();
    let done = now(home.store.compress(&[home.writer.id], &Progress::unseen())).unwrap();
    assert_eq!(done.sessions, 0);
    assert!(done.skipped[0].1.contains("damaged"), "{done:?}");
    bytes[middle] ^= 1;
    bytes.extend(b"{\"v\":1,\"seq\":9");
    fs::write(&home.log, &bytes).unwrap();
    let done = now(home.store.compress(&[home.writer.id], &Progress::unseen())).unwrap();
    assert!(done.skipped[0].1.contains("cut off"), "{done:?}");
    assert_eq!(fs::read(&home.log).unwrap(), bytes);
}

/// Flips a byte in the middle one of the compressed blocks of a file.
fn damage_a_block(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let blocks: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(&magic))
        .collect();
    assert!(blocks.len() >= 3, "{blocks:?}");
    bytes[blocks[blocks.len() / 2] + 60] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

/// Checks that the damage is named, that the rest is read, and that a repair keeps the rest.
fn one_block_is_lost(open: &dyn Fn() -> Box<dyn Store>, writer: &Writer, other: &Writer) {
    let opened = open();
    let store = &*opened;
    let report = look(store);
    assert!(
        report
            .damage
            .iter()
            .all(|damage| damage.session == writer.id)
    );
    assert!(!report.damage.is_empty(), "{report:?}");
    assert_log(store, other);
    let intact = |store: &dyn Store| {
        let read = lines(store, writer.id);
        let is_there = |line: &str| read.iter().any(|it| it.bytes == line.as_bytes());
        let lines = writer.log.iter().map(|entry| entry.line());
        lines.filter(|line| is_there(line)).count()
    };
    let before = intact(store);
    assert!(before > TURNS / 2 && before < TURNS, "{before}");
    let report = repair(store);
    assert!(
        !report.lost.is_empty() && !report.repaired.is_empty(),
        "{report:?}"
    );
    let opened = open();
    let store = &*opened;
    assert_log(store, other);
    let found: SessionMeta = row(store, writer.id).meta;
    // What follows the lost block has new hashes, and the same words.
    assert_eq!(found.messages as usize, before - 1);
    assert_sound(store);
}

#[test]
fn a_damaged_block_of_a_log_loses_only_its_lines() {
    let home = Home::new();
    let other = long(&home.store, 2);
    compress(&home.store, &home.writer);
    compress(&home.store, &other);
    damage_a_block(&home.packed());
    let store = home.again();
    let mut writer = home.writer.clone();
    let refused = writer.try_append(&store, vec![human("on")]);
    assert!(
        matches!(refused, Err(StoreError::Damaged { .. })),
        "{refused:?}"
    );
    one_block_is_lost(&|| Box::new(home.again()), &home.writer, &other);
    assert!(home.log.exists() && !home.packed().exists());
    let kept = home.names();
    assert!(
        kept.iter().any(|name| name.contains(".zst.damaged-")),
        "{kept:?}"
    );
}

#[test]
fn a_damaged_block_of_a_database_loses_only_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    let store = SqliteStore::open(&path).unwrap();
    let (other, writer) = (long(&store, 2), long(&store, 1));
    compress(&store, &writer);
    drop(store);
    damage_a_block(&path);
    let store = SqliteStore::open(&path).unwrap();
    let mut late = writer.clone();
    let refused = late.try_append(&store, vec![human("on")]);
    assert!(
        matches!(refused, Err(StoreError::Damaged { .. })),
        "{refused:?}"
    );
    drop(store);
    let open = || SqliteStore::open(&path).unwrap();
    one_block_is_lost(&|| Box::new(open()), &writer, &other);
    // The repaired database is plain.
    let store = open();
    assert_eq!(now(store.info()).unwrap().format, 1);
}

#[test]
fn the_database_gets_smaller() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    // About as long as most messages are: each takes a page for itself, which compression empties
    // without freeing it.
    for turn in 0..2000 {
        writer.say(&store, &format!("turn {turn} {}", "some words ".repeat(30)));
    }
    let size = || now(store.info()).unwrap().bytes;
    let before = size();
    compress(&store, &writer);
    assert!(size() * 5 < before, "{before} {}", size());
    assert_log(&store, &writer);
}
