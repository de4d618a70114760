//! Reading: startup, the last messages of a long session, a whole session, lists, searches.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, HitFilter, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_store::{NewSession, Progress, Store};
use tertulia_testkit::ask::now;
use uuid::Uuid;

use crate::append::{percentile, read_all, shown};
use crate::logs::{BACKENDS, open, opening, said, session, text};
use crate::table::Table;

const RUNS: usize = 31;

/// Returns the median time of a run of the program, in milliseconds.
fn program(folder: &Path, args: &[&str]) -> f64 {
    let times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            let status = Command::new(env!("CARGO_BIN_EXE_tertulia"))
                .args(args)
                .env_clear()
                .env("HOME", folder)
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{args:?}");
            started.elapsed()
        })
        .collect();
    percentile(&times, 50) * 1000.0
}

pub fn start(table: &mut Table) {
    println!("start-up");
    let folder = tempfile::tempdir_in(".").unwrap();
    table.at_most(
        "start: --version",
        program(folder.path(), &["--version"]),
        10.0,
        "ms",
    );
    program(folder.path(), &["list"]);
    table.at_most(
        "start: list of an empty store",
        program(folder.path(), &["list"]),
        10.0,
        "ms",
    );
}

pub fn last_and_whole(table: &mut Table) {
    for backend in BACKENDS {
        println!("read, {backend}");
        let folder = tempfile::tempdir_in(".").unwrap();
        let url = shown(backend, folder.path());
        let ids: Vec<SessionId> = [10_000, 100_000]
            .map(|length| {
                session(
                    open(backend, folder.path()).as_ref(),
                    length,
                    700,
                    7,
                    "bench",
                )
                .0
            })
            .to_vec();
        for (length, id) in ["10 000", "100 000"].iter().zip(&ids) {
            let time = program(
                folder.path(),
                &["--store", &url, "show", &id.to_string(), "--last", "50"],
            );
            table.at_most(
                &format!("{backend}: show the last 50 of {length}, with start"),
                time,
                10.0,
                "ms",
            );
        }
        // About 100 MB; the same bytes are written to a file as a baseline.
        let store = open(backend, folder.path());
        let lines = now(store.read(ids[1], Seq::START, usize::MAX)).unwrap();
        let raw = folder.path().join("raw");
        let bytes: Vec<u8> = lines
            .iter()
            .flat_map(|line| line.bytes.iter().copied().chain([b'\n']))
            .collect();
        std::fs::write(&raw, &bytes).unwrap();
        let raw = (0..5).map(|_| read_all(&raw)).min().unwrap();
        let whole = (0..5)
            .map(|_| {
                let started = Instant::now();
                assert_eq!(
                    now(store.read(ids[1], Seq::START, usize::MAX))
                        .unwrap()
                        .len(),
                    lines.len()
                );
                started.elapsed()
            })
            .min()
            .unwrap();
        table.fact(
            &format!("{backend}: whole session"),
            bytes.len() as f64 / 1e6,
            "MB",
        );
        table.at_most(
            &format!("{backend}: whole session to reading its bytes"),
            whole.as_secs_f64() / raw.as_secs_f64(),
            2.0,
            "×",
        );
    }
}

pub fn list(table: &mut Table) {
    for backend in BACKENDS {
        println!("list, {backend}");
        let mut times = Vec::new();
        for count in [1_000_u64, 100_000] {
            // Build in memory, to avoid 100 000 syncs, and measure on disk.
            let memory = tempfile::tempdir_in("/dev/shm").unwrap();
            let store = open(backend, memory.path());
            for number in 0..count {
                let id = SessionId::new(Uuid::now_v7());
                let new = vec![opening(id, number, "bench"), said(number, text(number, 60))];
                let entries = Entry::chain(&Head::START, new).unwrap();
                now(store.create(&NewSession {
                    id,
                    base: None,
                    entries,
                }))
                .unwrap();
            }
            drop(store);
            let folder = tempfile::tempdir_in(".").unwrap();
            let copied = Command::new("cp")
                .arg("-a")
                .arg(memory.path())
                .arg(folder.path())
                .status()
                .unwrap();
            assert!(copied.success());
            let inner = folder.path().join(memory.path().file_name().unwrap());
            let url = shown(backend, &inner);
            program(folder.path(), &["--store", &url, "list", "--all"]);
            let time = program(folder.path(), &["--store", &url, "list", "--all"]);
            let name = format!("{backend}: list the newest 20 of {count} sessions, with start");
            if backend == "sqlite" {
                table.at_most(&name, time, 10.0, "ms");
            } else {
                table.fact(&name, time, "ms");
            }
            times.push(time);
        }
        if backend == "sqlite" {
            table.at_most(
                "sqlite: list of 100 000 sessions to of 1 000",
                times[1] / times[0],
                1.5,
                "×",
            );
        }
    }
}

pub fn search(table: &mut Table) {
    println!("search");
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = open("sqlite", folder.path());
    for part in 0..100 {
        session(store.as_ref(), 10_000, 200, part * 1_000_003, "bench");
    }
    let (id, head) = session(store.as_ref(), 2, 200, 1, "bench");
    let rare = Entry::chain(&head, vec![said(0, "the zeitgeist of a tertulia".into())]).unwrap();
    now(store.append(id, head, &rare)).unwrap();
    let started = Instant::now();
    ask(store.as_ref(), "zeitgeist");
    table.fact(
        "search: indexing 1 000 000 messages",
        started.elapsed().as_secs_f64(),
        "s",
    );
    for (kind, words, limit) in [
        ("rare word", "zeitgeist", 10.0),
        ("common word", "common", 50.0),
    ] {
        let times: Vec<Duration> = (0..RUNS).map(|_| ask(store.as_ref(), words)).collect();
        table.at_most(
            &format!("search: {kind} among 1 000 000 messages"),
            percentile(&times, 50) * 1000.0,
            limit,
            "ms",
        );
    }
    // Three words that occur in almost every message: the hardest kind of phrase.
    let times: Vec<Duration> = (0..RUNS)
        .map(|_| ask(store.as_ref(), "\"every word before\""))
        .collect();
    table.fact(
        "search: phrase of the commonest words among 1 000 000",
        percentile(&times, 50) * 1000.0,
        "ms",
    );
}

fn ask(store: &dyn Store, words: &str) -> Duration {
    let query = SearchQuery {
        words: SearchTerms::parse(words).unwrap(),
        filter: Filter::default(),
        said: HitFilter::default(),
        limit: 20,
    };
    let started = Instant::now();
    let hits = now(store.search(&query, &Progress::unseen())).unwrap();
    assert!(!hits.hits.is_empty(), "{words}");
    started.elapsed()
}
