//! Databases with pages zeroed, swapped or cut off: every entry with intact bytes is restored, and
//! every lost one is reported. The tests find the intact entries by their bytes, without the code
//! under test.
//!
//! By default a sample of the cases runs; with `./test --soak` all of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a panic is the report of a test, and figures are its account"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tertulia_core::entry::{Body, Entry};
use tertulia_core::id::EntryId;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{CheckMode, Maintenance, Progress, Report, StoreError};
use tertulia_testkit::ask::{everything, lines, list, look, now};
use tertulia_testkit::clock::{moment, still_clock};
use tertulia_testkit::logs::{Writer, ai, human, renamed};
use tertulia_testkit::soak::{sampled, soak};

const PAGE: usize = 1024;

/// The bytes of a store, and every entry in it.
struct Original {
    bytes: Vec<u8>,
    log: Vec<u8>,
    entries: Vec<Written>,
}

/// An entry, its session, and the pieces of its line in the file.
struct Written {
    entry: Entry,
    session: String,
    pieces: Vec<Vec<u8>>,
}

impl Original {
    /// Creates twenty sessions: short ones, messages of many pages, titles, forks.
    fn new() -> Original {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("t.db");
        let store = SqliteStore::open(&path).unwrap();
        let clock = still_clock(7);
        let mut writers: Vec<Writer> = (0..17).map(|_| Writer::begin(&store, &clock)).collect();
        for round in 0..4 {
            for (n, writer) in writers.iter_mut().enumerate() {
                let question = format!("question {round} of session {n}");
                let answer = match (n + round) % 5 {
                    0 => (0..150 + 30 * n)
                        .map(|word| format!("w{n}x{round}y{word} "))
                        .collect(),
                    _ => format!("answer {round} to session {n}"),
                };
                writer.append(&store, vec![human(&question), ai("demo", &answer)]);
            }
        }
        writers[3].append(&store, vec![renamed("a title")]);
        for n in [2, 5, 8] {
            let mut fork = writers[n].fork(&store, 5);
            fork.say(&store, &format!("apart from session {n}"));
            writers.push(fork);
        }
        let mut entries: BTreeMap<EntryId, (Entry, String)> = BTreeMap::new();
        for writer in &writers {
            for entry in &writer.log {
                let owner = || (entry.clone(), writer.id.to_string());
                entries.entry(entry.id).or_insert_with(owner);
            }
        }
        // The WAL is read too: the newest entries are not in the file itself.
        writers[0].say(&store, "the last words");
        let last = writers[0].log.last().unwrap().clone();
        let log = fs::read(scratch.path().join("t.db-wal")).unwrap();
        drop(store);
        let bytes = fs::read(&path).unwrap();
        entries.insert(last.id, (last, writers[0].id.to_string()));
        let entries = entries
            .into_values()
            .map(|(entry, session)| Written {
                pieces: pieces(&bytes, entry.line().as_bytes()),
                entry,
                session,
            })
            .collect();
        Original {
            bytes,
            log,
            entries,
        }
    }

    fn pages(&self) -> usize {
        self.bytes.len() / PAGE
    }

    /// Returns the entries whose bytes are all in a file.
    fn whole_in(&self, bytes: &[u8]) -> BTreeSet<EntryId> {
        let whole = |written: &&Written| written.pieces.iter().all(|piece| holds(bytes, piece));
        let entries = self.entries.iter().filter(whole);
        entries.map(|written| written.entry.id).collect()
    }

    /// Repairs a damaged copy, checks the result, and counts the intact and the restored entries.
    fn check(&self, what: &str, damaged: &[u8]) -> Outcome {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("t.db");
        fs::write(&path, damaged).unwrap();
        let whole = self.whole_in(damaged);
        let report = match repair(&path) {
            Ok(report) => report,
            Err(StoreError::Unsalvageable { .. }) if whole.is_empty() => {
                assert_eq!(fs::read(&path).unwrap(), damaged, "{what}: left as it is");
                return Outcome::default();
            }
            Err(error) => panic!("{what}: {error} ({} entries are whole)", whole.len()),
        };
        let store = SqliteStore::open(&path).unwrap();
        let after = look(&store);
        assert!(after.is_clean(), "{what}: {after:?}");
        let mut back: BTreeMap<EntryId, Body> = BTreeMap::new();
        for row in list(&store, &everything()).rows {
            for line in lines(&store, row.meta.id) {
                let entry = Entry::decode(&line.bytes).unwrap();
                back.insert(entry.id, entry.body);
            }
        }
        let mut outcome = Outcome {
            entries: whole.len(),
            ..Outcome::default()
        };
        for written in &self.entries {
            let name = format!("{what}: entry {} of {}", written.entry.seq, written.session);
            let there = back.get(&written.entry.id);
            if whole.contains(&written.entry.id) {
                let there =
                    there.unwrap_or_else(|| panic!("{name} is whole, but gone: {report:?}"));
                if let (Body::Message(there), Body::Message(was)) = (there, &written.entry.body) {
                    assert_eq!(there.content, was.content, "{name}");
                }
                outcome.back += 1;
            } else if there.is_none() {
                let said = report.lost.iter().any(|lost| {
                    lost.contains(&written.session) || lost.contains("is lost without a name")
                });
                assert!(said, "{name} is gone without a word: {report:?}");
            }
        }
        // If anything was salvaged, the original is kept.
        if report.repaired.iter().any(|done| done.contains("salvaged")) {
            let kept = fs::read_dir(scratch.path()).unwrap().any(|file| {
                let file = file.unwrap().path();
                file.display().to_string().contains("-damaged-")
                    && fs::read(&file).unwrap() == damaged
            });
            assert!(kept, "{what}: the original is not kept");
        }
        outcome
    }
}

#[derive(Default)]
struct Outcome {
    entries: usize,
    back: usize,
}

/// Repairs a database in the same way as `doctor --repair`.
fn repair(path: &Path) -> Result<Report, StoreError> {
    let unseen = Progress::unseen();
    let mut report = SqliteStore::salvage_unopenable(path, moment(5), &unseen)?.unwrap_or_default();
    let store = SqliteStore::open(path)?;
    let more = now(store.check(CheckMode::Repair(moment(6)), &unseen))?;
    report.repaired.extend(more.repaired);
    report.lost.extend(more.lost);
    Ok(report)
}

fn holds(bytes: &[u8], piece: &[u8]) -> bool {
    find(bytes, piece).is_some()
}

fn find(bytes: &[u8], piece: &[u8]) -> Option<usize> {
    let first = piece.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(|byte| byte == first)?;
        if bytes[at..].starts_with(piece) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Splits a line into its pieces in a file: the start in a cell, the rest on overflow pages, each
/// of which begins with four bytes of page number.
fn pieces(file: &[u8], line: &[u8]) -> Vec<Vec<u8>> {
    if holds(file, line) {
        return vec![line.to_vec()];
    }
    let start = find(file, &line[..80]).expect("a line begins in the file");
    let same = file[start..].iter().zip(line);
    let local = same.take_while(|(one, other)| one == other).count();
    let mut pieces = vec![line[..local].to_vec()];
    pieces.extend(line[local..].chunks(PAGE - 4).map(<[u8]>::to_vec));
    for piece in &pieces {
        assert!(holds(file, piece), "the line lies in the file as expected");
    }
    pieces
}

fn run(name: &str, cases: Vec<usize>, check: impl Fn(usize) -> Outcome) {
    let count = cases.len();
    let mut sum = Outcome::default();
    for case in cases {
        let outcome = check(case);
        sum.entries += outcome.entries;
        sum.back += outcome.back;
    }
    eprintln!(
        "{name}: {count} cases, {} entries whole in the files, {} back",
        sum.entries, sum.back
    );
}

#[test]
fn a_database_that_was_cut_short_brings_back_what_is_whole() {
    let original = Original::new();
    let pages = original.pages();
    run("whole pages cut off", sampled(1..46.min(pages), 9), |cut| {
        let bytes = &original.bytes[..original.bytes.len() - cut * PAGE];
        original.check(&format!("{cut} pages cut off"), bytes)
    });
    // The same numbers in every run.
    let random = |n: usize| (n * 2_654_435_761) % (original.bytes.len() - 4096) + 1;
    run("cut anywhere", sampled(1..61, 12), |n| {
        let cut = random(n);
        let bytes = &original.bytes[..original.bytes.len() - cut];
        original.check(&format!("{cut} bytes cut off"), bytes)
    });
}

#[test]
fn a_database_with_a_page_zeroed_brings_back_the_rest() {
    let original = Original::new();
    let pages = original.pages();
    run("a page zeroed", sampled(0..pages.min(300), 29), |page| {
        let mut bytes = original.bytes.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0);
        original.check(&format!("page {} zeroed", page + 1), &bytes)
    });
}

#[test]
fn a_database_with_pages_swapped_brings_back_what_is_whole() {
    let original = Original::new();
    let pages = original.pages();
    run("two pages swapped", sampled(0..60, 12), |n| {
        let (one, other) = ((n * 7919) % pages, (n * 104_729 + 1) % pages);
        let mut bytes = original.bytes.clone();
        for at in 0..PAGE {
            bytes.swap(one * PAGE + at, other * PAGE + at);
        }
        original.check(
            &format!("pages {} and {} swapped", one + 1, other + 1),
            &bytes,
        )
    });
}

#[test]
fn a_garbled_header_or_root_loses_nothing() {
    let original = Original::new();
    let flipped = |at: usize, mask: u8| {
        let mut bytes = original.bytes.clone();
        bytes[at] ^= mask;
        original.check(&format!("byte {at} ^ {mask}"), &bytes);
    };
    // The page count, the application id, the page size, the magic string, the type of page 1.
    for (at, mask) in [(31, 8), (28, 1), (70, 4), (16, 4), (3, 1), (100, 255)] {
        flipped(at, mask);
    }
    // The root pages of the tables.
    for page in 1..original.pages().min(16) {
        let mut bytes = original.bytes.clone();
        for (at, byte) in bytes[page * PAGE..(page + 1) * PAGE].iter_mut().enumerate() {
            *byte = u8::try_from(at % 251).unwrap() ^ 0x5a;
        }
        if page % 4 == 0 || soak() {
            original.check(&format!("page {} is garbage", page + 1), &bytes);
        }
    }
}

/// With the database empty but its WAL intact, the entries in the WAL are restored.
#[test]
fn what_is_in_the_log_comes_back() {
    let original = Original::new();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    // SQLite uses no frame after the zeroed one.
    for zeroed in [None, Some(40), Some(100)] {
        let mut log = original.log.clone();
        if let Some(frame) = zeroed {
            log[32 + frame * (PAGE + 24)..32 + (frame + 1) * (PAGE + 24)].fill(0);
        }
        let whole = original.whole_in(&log);
        assert!(
            whole.len() > 100,
            "the log has the entries: {}",
            whole.len()
        );
        fs::write(&path, b"").unwrap();
        fs::write(scratch.path().join("t.db-wal"), &log).unwrap();
        repair(&path).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        assert!(look(&store).is_clean());
        let rows = list(&store, &everything()).rows;
        let back: BTreeSet<EntryId> = rows
            .iter()
            .flat_map(|row| lines(&store, row.meta.id))
            .map(|line| Entry::decode(&line.bytes).unwrap().id)
            .collect();
        let missing: Vec<&EntryId> = whole.difference(&back).collect();
        assert!(
            missing.is_empty(),
            "{zeroed:?}: {missing:?} of {}",
            whole.len()
        );
        drop(store);
        for file in fs::read_dir(scratch.path()).unwrap() {
            let file = file.unwrap().path();
            if file.is_file() {
                fs::remove_file(file).unwrap();
            }
        }
    }
}

#[test]
fn what_holds_nothing_is_left_alone_and_not_called_repaired() {
    let original = Original::new();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    // The header and nothing else.
    let bytes = &original.bytes[..PAGE];
    fs::write(&path, bytes).unwrap();
    let refused = repair(&path).unwrap_err();
    assert!(
        matches!(refused, StoreError::Unsalvageable { .. }),
        "{refused:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // No store at all.
    fs::write(&path, [0x55; 8192]).unwrap();
    let refused = repair(&path).unwrap_err();
    assert!(
        matches!(refused, StoreError::NotAStore { .. }),
        "{refused:?}"
    );
}

/// A second connection of the same process must not release the locks of the first: other processes
/// would take the database for unused, and a repair would replace it.
#[test]
fn a_search_leaves_the_database_locked() {
    use std::os::unix::fs::MetadataExt;
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(3));
    writer.say(&store, "words");
    let inode = format!(":{} ", fs::metadata(&path).unwrap().ino());
    if fs::read_to_string("/proc/locks").is_err() {
        return;
    }
    // The list is read in parts while other processes change it, so that a line may be missed; a
    // lock that was released does not come back.
    let is_locked = || {
        let mut reads = (0..50).map(|_| fs::read_to_string("/proc/locks").unwrap());
        reads.any(|locks| locks.contains(&inode))
    };
    assert!(is_locked(), "open is locked");
    assert_eq!(tertulia_testkit::ask::found(&store, "words").len(), 1);
    assert!(is_locked(), "searched is still locked");
}
