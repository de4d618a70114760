//! Stores with one flipped bit: a repair brings back every entry whose line is whole, and gives no
//! session less than reading gave before it.
//!
//! By default a sample of the cases runs; with `./test --soak` all of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a panic is the report of a test, and figures are its account"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tertulia_core::entry::{Body, Entry};
use tertulia_core::id::{Seq, SessionId};
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{CheckMode, Progress, Report, Store, StoreResult};
use tertulia_testkit::ask::{everything, list, look, now};
use tertulia_testkit::clock::{moment, still_clock};
use tertulia_testkit::logs::{Writer, ai, human};
use tertulia_testkit::soak::sampled;

/// Readable entries of sessions, by their sequence numbers.
type Shown = BTreeMap<SessionId, BTreeMap<Seq, Entry>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Files,
}

/// The files of a store, and what it holds.
struct Original {
    backend: Backend,
    files: BTreeMap<PathBuf, Vec<u8>>,
    sessions: Vec<Writer>,
}

impl Original {
    /// Creates six sessions of fifty entries together, two of which are forks.
    fn new(backend: Backend, compressed: bool) -> Original {
        let scratch = tempfile::tempdir().unwrap();
        let store = open(backend, scratch.path()).unwrap();
        let clock = still_clock(11);
        let mut sessions: Vec<Writer> = (0..4).map(|_| Writer::begin(&*store, &clock)).collect();
        for round in 0..5 {
            for (n, writer) in sessions.iter_mut().enumerate() {
                let question = human(&format!("question {round} of session {n}"));
                let answer = ai("demo", &format!("answer {round} to session {n}"));
                writer.append(&*store, vec![question, answer]);
            }
        }
        for n in [1, 2] {
            let mut fork = sessions[n].fork(&*store, 5);
            fork.say(&*store, &format!("apart from session {n}"));
            fork.say(&*store, "and on");
            sessions.push(fork);
        }
        if compressed {
            let ids: Vec<SessionId> = sessions.iter().map(|writer| writer.id).collect();
            now(store.compress(&ids, &Progress::unseen())).unwrap();
        }
        assert!(look(&*store).is_clean());
        drop(store);
        Original {
            backend,
            files: files_below(scratch.path()),
            sessions,
        }
    }

    /// Writes the files, with one bit flipped.
    fn damaged(&self, file: &Path, at: usize, bit: u8) -> tempfile::TempDir {
        let scratch = tempfile::tempdir().unwrap();
        for (name, bytes) in &self.files {
            let path = scratch.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = bytes.clone();
            if name == file {
                bytes[at] ^= 1 << bit;
            }
            fs::write(path, bytes).unwrap();
        }
        scratch
    }

    fn shown(&self, dir: &Path) -> Shown {
        let Ok(store) = open(self.backend, dir) else {
            return Shown::new();
        };
        let read = |writer: &Writer| {
            let lines = now(store.read(writer.id, Seq::START, usize::MAX)).ok()?;
            let entries = lines.iter().filter_map(|line| {
                let entry = Entry::decode(&line.bytes).ok()?;
                (entry.seq == line.seq).then_some((entry.seq, entry))
            });
            Some((writer.id, entries.collect()))
        };
        self.sessions.iter().filter_map(read).collect()
    }

    /// Repairs a store with a flipped bit. Asserts that it gives no less than before.
    fn check(&self, what: &str, file: &Path, at: usize, bit: u8) -> (Report, Shown) {
        let what = format!("{:?}, {what}: bit {bit} of byte {at}", self.backend);
        let scratch = self.damaged(file, at, bit);
        let before = self.shown(scratch.path());
        let report = match repair(self.backend, scratch.path()) {
            Ok(report) => report,
            Err(error) => {
                // What is refused is left as it is.
                assert_eq!(self.shown(scratch.path()), before, "{what}: {error}");
                return (Report::default(), before);
            }
        };
        let after = self.shown(scratch.path());
        for (id, entries) in before.iter().filter(|(_, entries)| !entries.is_empty()) {
            let there = after.get(id);
            let there = there.unwrap_or_else(|| panic!("{what}: session {id} is gone: {report:?}"));
            let original = self.sessions.iter().find(|writer| writer.id == *id);
            for (seq, entry) in entries {
                let kept = there.get(seq).filter(|kept| is_kept(kept, entry));
                assert!(
                    kept.is_some(),
                    "{what}: entry {seq} of session {id} was shown before: {report:?}"
                );
                let was = original.unwrap().log.iter().find(|was| was.seq == *seq);
                if was.is_some_and(|was| was.body == entry.body) && !is_opening(entry) {
                    assert_eq!(kept.unwrap().body, entry.body, "{what}");
                }
            }
        }
        (report, after)
    }
}

fn is_kept(kept: &Entry, before: &Entry) -> bool {
    !matches!(kept.body, Body::Lost(_)) || matches!(before.body, Body::Lost(_))
}

fn is_opening(entry: &Entry) -> bool {
    matches!(entry.body, Body::Created(_) | Body::Forked(_))
}

fn open(backend: Backend, dir: &Path) -> StoreResult<Box<dyn Store>> {
    Ok(match backend {
        Backend::Sqlite => Box::new(SqliteStore::open(&dir.join("t.db"))?),
        Backend::Files => Box::new(FilesStore::open(dir)?),
    })
}

/// Repairs a store in the same way as `doctor --repair`.
fn repair(backend: Backend, dir: &Path) -> StoreResult<Report> {
    let unseen = Progress::unseen();
    let mut report = Report::default();
    if backend == Backend::Sqlite {
        let path = dir.join("t.db");
        let salvaged = SqliteStore::salvage_unopenable(&path, moment(5), &unseen)?;
        report = salvaged.unwrap_or_default();
    }
    let store = open(backend, dir)?;
    let more = now(store.check(CheckMode::Repair(moment(6)), &unseen))?;
    report.repaired.extend(more.repaired);
    report.lost.extend(more.lost);
    Ok(report)
}

fn files_below(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Returns the offsets of all occurrences.
fn all_of(bytes: &[u8], piece: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(piece.len()).enumerate();
    let found = windows.filter(|(_, window)| *window == piece);
    found.map(|(at, _)| at).collect()
}

/// The columns before a line say where it is, and so does the line.
#[test]
fn a_flipped_bit_of_the_session_or_place_of_an_entry_loses_nothing() {
    let original = Original::new(Backend::Sqlite, false);
    let file = PathBuf::from("t.db");
    let bytes = &original.files[&file];
    let mut cases = Vec::new();
    for (n, writer) in original.sessions.iter().enumerate() {
        let own = writer
            .log
            .iter()
            .filter(|entry| n < 4 || entry.seq > Seq(5));
        for entry in own {
            // The numbers one take no byte: they are part of the row's header.
            let size = usize::from(n > 0) + usize::from(entry.seq > Seq(1));
            for start in all_of(bytes, entry.line().as_bytes()) {
                let columns = (start - size..start).flat_map(|at| (0..8).map(move |bit| (at, bit)));
                cases.extend(columns);
            }
        }
    }
    cases.sort_unstable();
    cases.dedup();
    let all = cases.len();
    let cases = sampled(cases.into_iter(), 29);
    let count = cases.len();
    for (at, bit) in cases {
        let (report, after) = original.check("session or place", &file, at, bit);
        assert_eq!(report.lost, Vec::<String>::new(), "byte {at}, bit {bit}");
        for writer in &original.sessions {
            let entries: Vec<&Entry> = after[&writer.id].values().collect();
            let expected: Vec<&Entry> = writer.log.iter().collect();
            assert_eq!(entries, expected, "byte {at}, bit {bit}: {report:?}");
        }
    }
    eprintln!("session or place: {count} of {all} cases, all entries back");
}

/// Rows of compressed sessions have the same columns, and lines in files begin with their place.
#[test]
fn a_flipped_bit_of_a_number_gives_no_session_less_than_before() {
    for (backend, compressed) in [(Backend::Sqlite, true), (Backend::Files, false)] {
        let original = Original::new(backend, compressed);
        let mut cases = Vec::new();
        for (name, bytes) in &original.files {
            let numbers = match backend {
                Backend::Sqlite => numbers_in_rows(bytes),
                Backend::Files => numbers_in_lines(bytes),
            };
            let bits = numbers
                .into_iter()
                .flat_map(|at| (0..8).map(move |bit| (at, bit)));
            cases.extend(bits.map(|(at, bit)| (name.clone(), at, bit)));
        }
        let all = cases.len();
        assert!(all >= 8 * 50, "{backend:?}: {all} cases");
        let cases = sampled(cases.into_iter(), 61);
        let count = cases.len();
        for (name, at, bit) in cases {
            original.check("number", &name, at, bit);
        }
        eprintln!("{backend:?}, numbers: {count} of {all} cases, none gives less");
    }
}

/// Returns the offsets of the session and sequence numbers in rows whose line is empty or a block. A
/// number one takes no byte.
fn numbers_in_rows(bytes: &[u8]) -> Vec<usize> {
    let one_or_more = [1_u8, 9];
    let mut numbers = Vec::new();
    for (session, seq) in one_or_more
        .into_iter()
        .flat_map(|a| one_or_more.map(|b| (a, b)))
    {
        let size = [session, seq].iter().filter(|kind| **kind == 1).count();
        let empty = [[5, 0, session, seq, 12], [5, 0, session, seq, 13]];
        for start in empty.iter().flat_map(|header| all_of(bytes, header)) {
            numbers.extend(start + 5..start + 5 + size);
        }
        for start in all_of(bytes, &[6, 0, session, seq]) {
            numbers.extend(start + 6..start + 6 + size);
        }
    }
    numbers.retain(|at| *at < bytes.len());
    numbers
}

/// Returns the offsets of the digits of all sequence numbers.
fn numbers_in_lines(bytes: &[u8]) -> Vec<usize> {
    let begin = b"{\"v\":1,\"seq\":";
    let starts = all_of(bytes, begin).into_iter();
    let digits = starts.flat_map(|start| {
        let first = start + begin.len();
        let after = bytes[first..].iter().position(|byte| *byte == b',');
        first..first + after.unwrap_or_default()
    });
    digits.collect()
}

/// A search among rows that are out of order led back to a row before, for ever.
#[test]
fn a_flipped_bit_of_a_session_number_ends_no_list() {
    let original = Original::new(Backend::Sqlite, false);
    let file = PathBuf::from("t.db");
    let bytes = &original.files[&file];
    for (n, writer) in original.sessions.iter().enumerate().take(4) {
        // A row is its size, its number, its header, which begins with the header's size, and its
        // values, the first of which is the id.
        let ids = all_of(bytes, writer.id.uuid().as_bytes());
        let is_number = |at: usize, id: usize| {
            usize::from(bytes[at]) == n + 1 && at + 1 + usize::from(bytes[at + 1]) == id
        };
        let row = ids
            .iter()
            .find_map(|id| (id - 30..*id).find(|at| is_number(*at, *id)));
        let scratch = original.damaged(&file, row.unwrap(), 4);
        let store = open(Backend::Sqlite, scratch.path()).unwrap();
        let listing = list(&*store, &everything());
        assert!(
            listing.rows.len() + listing.damaged.len() >= 5,
            "{listing:?}"
        );
        drop(store);
        original.check("session number", &file, row.unwrap(), 4);
    }
}

/// The row, the file's name, the index and the entries after it know what an altered opening says.
#[test]
fn a_flipped_bit_in_an_opening_leaves_ids_and_beginnings() {
    for backend in [Backend::Sqlite, Backend::Files] {
        let original = Original::new(backend, false);
        let mut cases = Vec::new();
        for n in [0, 4] {
            let writer = &original.sessions[n];
            let own = writer.log.iter().rev().find(|entry| is_opening(entry));
            let line = own.unwrap().line().as_bytes();
            for (name, bytes) in &original.files {
                for start in all_of(bytes, line) {
                    let bits =
                        (start..start + line.len()).flat_map(|at| (0..8).map(move |bit| (at, bit)));
                    cases.extend(bits.map(|(at, bit)| (n, name.clone(), at, bit)));
                }
            }
        }
        let cases = sampled(cases.into_iter(), 101);
        let count = cases.len();
        for (n, name, at, bit) in cases {
            let (report, after) = original.check("opening", &name, at, bit);
            let writer = &original.sessions[n];
            let there = after.get(&writer.id);
            let there = there.unwrap_or_else(|| panic!("byte {at}, bit {bit}: {report:?}"));
            for entry in writer.log.iter().filter(|entry| entry.message().is_some()) {
                let body = there.get(&entry.seq).map(|entry| &entry.body);
                assert_eq!(body, Some(&entry.body), "byte {at}, bit {bit}: {report:?}");
            }
        }
        eprintln!("{backend:?}, opening: {count} cases, ids and beginnings kept");
    }
}

#[test]
fn a_flipped_bit_anywhere_gives_no_session_less_than_before() {
    for backend in [Backend::Sqlite, Backend::Files] {
        for compressed in [false, true] {
            let original = Original::new(backend, compressed);
            let total: usize = original.files.values().map(Vec::len).sum();
            let cases = sampled(0..700_usize, 47);
            let count = cases.len();
            for n in cases {
                // The same numbers in every run.
                let mut at = (n + 1).wrapping_mul(2_654_435_761) % total;
                let bit = u8::try_from(n % 8).unwrap();
                let mut files = original.files.iter();
                let file = files.find(|(_, bytes)| {
                    let is_here = at < bytes.len();
                    at -= if is_here { 0 } else { bytes.len() };
                    is_here
                });
                let (name, _) = file.unwrap();
                original.check(&name.display().to_string(), name, at, bit);
            }
            eprintln!("{backend:?}, compressed {compressed}: {count} flips, none gives less");
        }
    }
}

/// SQLite ignores the type of the first column, which the pages cannot do without. The one session
/// is kept as it is read, and another one is repaired.
#[test]
fn what_only_reading_finds_stops_no_repair() {
    let original = Original::new(Backend::Sqlite, false);
    let file = PathBuf::from("t.db");
    let bytes = &original.files[&file];
    let (read, hurt) = (&original.sessions[1], &original.sessions[2]);
    let line = |writer: &Writer, n: usize| all_of(bytes, writer.log[n].line().as_bytes())[0];
    let header = line(read, 3) - 8;
    assert_eq!(bytes[header..header + 4], [6, 0, 1, 1], "size and types");
    let scratch = original.damaged(&file, header + 1, 3);
    let path = scratch.path().join(&file);
    let mut damaged = fs::read(&path).unwrap();
    damaged[line(hurt, 7)..][..20].fill(b'#');
    fs::write(&path, damaged).unwrap();

    let before = original.shown(scratch.path());
    assert_eq!(before[&read.id].len(), read.log.len());
    assert_eq!(before[&hurt.id].len(), hurt.log.len() - 1);
    let report = repair(Backend::Sqlite, scratch.path()).unwrap();
    let after = original.shown(scratch.path());
    for writer in original.sessions.iter().filter(|it| it.id != hurt.id) {
        let entries: Vec<_> = after[&writer.id].values().map(|it| &it.body).collect();
        let expected: Vec<_> = writer.log.iter().map(|it| &it.body).collect();
        assert!(entries.starts_with(&expected), "{report:?}");
    }
    let kept = |text: &str| report.repaired.iter().any(|done| done.contains(text));
    assert!(kept(&format!(
        "session {} is kept as it can be read",
        read.id
    )));
    assert!(matches!(after[&hurt.id][&Seq(8)].body, Body::Lost(_)));
    assert!(look(&*open(Backend::Sqlite, scratch.path()).unwrap()).is_clean());
}

/// No repair fills a gap of more than 100 000 entries, but reading gives what is behind it.
#[test]
fn a_log_that_a_repair_would_shorten_is_left_as_it_is() {
    let original = Original::new(Backend::Files, false);
    let scratch = tempfile::tempdir().unwrap();
    let (far, fork, hurt) = (
        &original.sessions[1],
        &original.sessions[4],
        &original.sessions[3],
    );
    let mut far_file = PathBuf::new();
    for (name, bytes) in &original.files {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = bytes.clone();
        let is_log_of = |writer: &Writer| {
            let end = format!("{}.jsonl", writer.id);
            name.to_string_lossy().ends_with(&end)
        };
        if is_log_of(far) {
            let mut text = String::from_utf8(bytes).unwrap();
            for seq in 7..=11 {
                let (from, to) = (format!("\"seq\":{seq},"), format!("\"seq\":20000{seq},"));
                text = text.replacen(&from, &to, 1);
            }
            bytes = text.into_bytes();
            far_file = path.clone();
        } else if is_log_of(hurt) {
            let at = all_of(&bytes, hurt.log[4].line().as_bytes())[0];
            bytes[at..][..20].fill(b'#');
        }
        fs::write(path, bytes).unwrap();
    }
    let far_bytes = fs::read(&far_file).unwrap();
    let before = original.shown(scratch.path());
    assert_eq!(before[&far.id].len(), far.log.len());
    let report = repair(Backend::Files, scratch.path()).unwrap();
    let after = original.shown(scratch.path());
    assert_eq!(after[&far.id], before[&far.id], "{report:?}");
    assert_eq!(after[&fork.id], before[&fork.id], "{report:?}");
    assert_eq!(fs::read(&far_file).unwrap(), far_bytes);
    let named = format!("session {}: left as it is", far.id);
    assert!(report.lost.iter().any(|it| it.starts_with(&named)));
    assert!(matches!(after[&hurt.id][&Seq(5)].body, Body::Lost(_)));
}
