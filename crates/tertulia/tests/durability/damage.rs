//! A single flipped byte is found, nothing crashes, and nothing else is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tertulia_testkit::soak::soak;

use super::world::{Backend, Place, copy, seed, world};

/// Returns the distance between two flipped bytes; the seed determines the first one.
fn stride(file: &Path) -> usize {
    let all = match file.extension().and_then(|end| end.to_str()) {
        Some("jsonl") => 17,
        _ if is_derived(file) => 1499,
        _ => 97,
    };
    if soak() { all } else { 6 * all }
}

/// Returns true for derived files, which may be deleted: the index and the catalogue.
fn is_derived(file: &Path) -> bool {
    let name = file.file_name().unwrap().to_str().unwrap();
    name.ends_with("-search") || name == "search.db" || name == "catalogue.db"
}

const THREADS: usize = 2;

/// How the sessions of a store are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Plain,
    Compressed,
}

/// Creates a small store: two sessions and a fork of the first, which is long enough to be compressed.
fn small_store(place: &Place, stored: Stored) {
    let first = place.turn(&["hello"]);
    let id = first[0].session.as_str();
    let words = match stored {
        Stored::Plain => "count to 40",
        Stored::Compressed => "count to 1500",
    };
    place.turn(&["--resume", id, words]);
    place.turn(&["echo something else"]);
    place.run(&["rename", "@", "Other"]).ok("rename");
    place.turn(&["--resume", id, "--fork", "echo apart"]);
    if stored == Stored::Compressed {
        let ran = place.run(&["store", "compress", "--older-than", "0s", "--json"]);
        let done: Value = serde_json::from_str(&ran.ok("compress")).unwrap();
        assert_eq!(done["sessions"], 1, "{done}");
    }
}

/// Results of the flips.
#[derive(Default)]
struct Tally {
    flips: u32,
    meaningless: u32,
    found: u32,
    unopened: u32,
    wrong: Vec<String>,
}

/// A byte to flip in a file of the store.
struct Flip<'a> {
    file: &'a Path,
    offset: usize,
    mask: u8,
}

impl Flip<'_> {
    fn apply(&self, home: &Path) -> String {
        let path = home.join(self.file);
        let mut bytes = fs::read(&path).unwrap();
        bytes[self.offset] ^= self.mask;
        fs::write(&path, bytes).unwrap();
        let Flip { file, offset, mask } = self;
        format!("{} byte {offset} ^ {mask:#04x}", file.display())
    }
}

fn try_flip(
    place: &Place,
    before: &BTreeMap<String, Value>,
    flip: &Flip<'_>,
    stored: Stored,
    tally: &mut Tally,
) {
    let fresh = tempfile::tempdir().unwrap();
    let home = fresh.path().join("home");
    copy(&place.home, &home);
    let what = flip.apply(&home);
    let place = place.with_home(&home);
    let mut wrong = |said: String| tally.wrong.push(format!("{what}: {said}"));
    let doctor = place.run(&["doctor", "--json"]);
    tally.flips += 1;
    if doctor.broke() {
        return wrong(format!("doctor broke: {doctor:?}"));
    }
    match doctor.code {
        Some(0) => {
            tally.meaningless += 1;
            for id in before.keys() {
                match place.show(id) {
                    Ok(shown) if shown == before[id] => {}
                    other => wrong(format!("the doctor is content, but {id} reads {other:?}")),
                }
            }
        }
        Some(5) if doctor.out.trim().is_empty() => {
            tally.unopened += 1;
            if !doctor.err.contains("error") {
                wrong(format!("nothing says why it cannot be opened: {doctor:?}"));
            }
        }
        Some(5) => {
            tally.found += 1;
            if let Err(said) = found_and_repaired(&place, before, &doctor.out, stored) {
                wrong(said);
            }
        }
        _ => wrong(format!("doctor: {doctor:?}")),
    }
}

fn found_and_repaired(
    place: &Place,
    before: &BTreeMap<String, Value>,
    report: &str,
    stored: Stored,
) -> Result<(), String> {
    let names = |report: &str, id: &str| {
        let parent = before[id]["parent"]["id"].as_str();
        report.contains(id) || parent.is_some_and(|parent| report.contains(parent))
    };
    let parsed: Value = serde_json::from_str(report).map_err(|error| error.to_string())?;
    let lists = ["damage", "faults"].map(|key| parsed[key].as_array().map_or(0, Vec::len));
    if lists == [0, 0] {
        return Err(format!("exit 5, but nothing is named: {report}"));
    }
    // Reading a damaged session may fail, but must not crash.
    for id in before.keys() {
        match place.show(id) {
            Ok(_) => {}
            Err(ran) if ran.broke() => return Err(format!("show broke: {ran:?}")),
            Err(_) => {}
        }
    }
    let repair = place.run(&["doctor", "--repair", "--json"]);
    if !matches!(repair.code, Some(0 | 1)) {
        return Err(format!("doctor --repair: {repair:?} after {report}"));
    }
    let again = place.run(&["doctor"]);
    if again.code != Some(0) {
        return Err(format!(
            "after the repair: {again:?}; repaired: {}",
            repair.out
        ));
    }
    // Of a compressed log, a block may be lost.
    if place.backend == Backend::Files && stored == Stored::Plain {
        let hit = before.iter().filter(|(id, _)| names(&repair.out, id));
        keep_the_rest(place, hit).map_err(|said| format!("{said} after {}", repair.out))?;
    }
    for (id, shown) in before {
        if names(&repair.out, id) {
            continue;
        }
        match place.show(id) {
            Ok(now) if now == *shown => {}
            other => {
                return Err(format!(
                    "{id} was not hit, but reads {other:?} after {}",
                    repair.out
                ));
            }
        }
    }
    Ok(())
}

/// Checks that a damaged log keeps its id, and that at most the damaged line and the one merged
/// with it are lost.
fn keep_the_rest<'a>(
    place: &Place,
    hit: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<(), String> {
    let now = place.everything();
    let left: BTreeSet<&str> = now.values().flat_map(messages).collect();
    for (id, before) in hit {
        if !now.contains_key(id) {
            return Err(format!("{id} is not found under its name any more"));
        }
        let mut lost = messages(before);
        lost.retain(|content| !left.contains(content));
        if lost.len() > 2 {
            return Err(format!("{id}: more is lost than was hit: {lost:?}"));
        }
    }
    Ok(())
}

fn messages(shown: &Value) -> Vec<&str> {
    let entries = shown["entries"].as_array().unwrap().iter();
    entries
        .filter_map(|entry| entry["content"].as_str())
        .collect()
}

/// Collects the files of a store that hold messages, or data derived from them.
fn logs(home: &Path, below: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(home.join(below)).unwrap() {
        let name = below.join(entry.unwrap().file_name());
        let is_log = name.extension().is_some_and(|end| {
            ["db", "jsonl", "zst", "db-search"]
                .iter()
                .any(|known| end == *known)
        });
        if home.join(&name).is_dir() {
            logs(home, &name, into);
        } else if is_log {
            into.push(name);
        }
    }
}

fn flipped(backend: Backend, stored: Stored) {
    let (_root, place) = world(backend);
    small_store(&place, stored);
    place.assert_sound("before any damage");
    let before = place.everything();
    assert_eq!(before.len(), 3);
    let mut files = Vec::new();
    logs(&place.home, Path::new(""), &mut files);
    let seed = seed() as usize;
    let mut flips = Vec::new();
    for file in &files {
        let size = fs::metadata(place.home.join(file)).unwrap().len() as usize;
        let stride = stride(file);
        // The last byte of a log ends its last line, so it counts as well.
        let offsets = (seed % stride..size - 1).step_by(stride);
        for offset in offsets.chain([size - 1]) {
            // One bit, the case of a letter, all bits.
            let mask = [0x01, 0x20, 0xff][flips.len() % 3];
            flips.push(Flip { file, offset, mask });
        }
    }
    assert!(flips.len() > 20, "{files:?}");
    let share = flips.len().div_ceil(THREADS);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let work = |part| {
            let mut tally = Tally::default();
            for flip in part {
                try_flip(&place, &before, flip, stored, &mut tally);
            }
            tally
        };
        let started: Vec<_> = flips
            .chunks(share)
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        started
            .into_iter()
            .map(|part| part.join().unwrap())
            .collect()
    });
    let sum = |part: fn(&Tally) -> u32| tallies.iter().map(part).sum::<u32>();
    let wrong: Vec<&String> = tallies.iter().flat_map(|tally| &tally.wrong).collect();
    eprintln!(
        "{backend:?}: {} flips in {files:?}: {} found, {} keep the store from being opened, {} without meaning, {} wrong",
        sum(|tally| tally.flips),
        sum(|tally| tally.found),
        sum(|tally| tally.unopened),
        sum(|tally| tally.meaningless),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_flipped_byte_in_a_database_is_found() {
    flipped(Backend::Sqlite, Stored::Plain);
}

#[test]
fn a_flipped_byte_in_a_log_is_found() {
    flipped(Backend::Files, Stored::Plain);
}

#[test]
fn a_flipped_byte_in_a_database_with_compressed_sessions_is_found() {
    flipped(Backend::Sqlite, Stored::Compressed);
}

#[test]
fn a_flipped_byte_in_a_compressed_log_is_found() {
    flipped(Backend::Files, Stored::Compressed);
}
