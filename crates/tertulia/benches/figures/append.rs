//! Cost of a turn, which is two durable appends: bytes written, time and syncs, and whether any of
//! them grows with the length of the log.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tertulia_core::entry::{Body, Entry, Forked, Head, Origin, Relation};
use tertulia_core::id::SessionId;
use tertulia_store::{NewSession, Store};
use tertulia_testkit::ask::now;
use uuid::Uuid;

use crate::logs::{BACKENDS, MESSAGE, open, place, said, session, text};
use crate::table::Table;

const TURNS: usize = 300;

/// Cost of a number of turns.
struct Cost {
    bytes: f64,
    cpu_ms: f64,
    walls: Vec<Duration>,
    raw: Vec<Duration>,
    raw_cpu_ms: f64,
}

pub fn measure(table: &mut Table) {
    for backend in BACKENDS {
        println!("append, {backend}");
        let limit = if backend == "sqlite" { 40.0 } else { 8.0 };
        let mut bytes_by_length = Vec::new();
        let mut walls_by_length = Vec::new();
        for length in [10, 1_000, 100_000] {
            let folder = tempfile::tempdir_in(".").unwrap();
            let store = open(backend, folder.path());
            let (id, head) = session(store.as_ref(), length, MESSAGE, 7, "bench");
            let cost = turns(store.as_ref(), id, head, folder.path());
            let name = format!("{backend}: turn at {length} messages");
            table.at_most(
                &format!("{name}, written"),
                cost.bytes / 1000.0,
                limit,
                "kB",
            );
            table.at_most(&format!("{name}, processor"), cost.cpu_ms, 0.5, "ms");
            let ratio = percentile(&cost.walls, 50) / percentile(&cost.raw, 50);
            table.at_most(&format!("{name}, wall p50 to raw"), ratio, 1.5, "×");
            let tail = percentile(&cost.walls, 99) / percentile(&cost.walls, 50);
            table.at_most(&format!("{name}, p99 to p50"), tail, 3.0, "×");
            table.fact(&format!("{name}, raw processor"), cost.raw_cpu_ms, "ms");
            table.fact(
                &format!("{name}, raw p50"),
                percentile(&cost.raw, 50) * 1000.0,
                "ms",
            );
            table.fact(
                &format!("{name}, raw p99 to p50"),
                percentile(&cost.raw, 99) / percentile(&cost.raw, 50),
                "×",
            );
            bytes_by_length.push(cost.bytes);
            walls_by_length.push(ratio);
        }
        table.at_most(
            &format!("{backend}: written at 100 000 to at 10"),
            bytes_by_length[2] / bytes_by_length[0],
            1.1,
            "×",
        );
        table.at_most(
            &format!("{backend}: wall to raw at 100 000 to at 10"),
            walls_by_length[2] / walls_by_length[0],
            1.3,
            "×",
        );
        table.at_most(
            &format!("{backend}: syncs per append"),
            syncs_per_append(backend),
            1.05,
            "",
        );
    }
}

fn turns(store: &dyn Store, id: SessionId, mut head: Head, folder: &Path) -> Cost {
    let mut raw_file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("raw"))
        .unwrap();
    let mut cost = Cost {
        bytes: 0.0,
        cpu_ms: 0.0,
        walls: Vec::new(),
        raw: Vec::new(),
        raw_cpu_ms: 0.0,
    };
    for turn in 0..TURNS + 10 {
        // Raw writes alternate with the turns, so that both see the same disk and the same load.
        let line = text(turn as u64, MESSAGE + 400);
        let (raw_cpu, started) = (cpu_time(), Instant::now());
        for _ in 0..2 {
            raw_file.write_all(line.as_bytes()).unwrap();
            raw_file.sync_data().unwrap();
        }
        let (raw, raw_cpu) = (started.elapsed(), cpu_time() - raw_cpu);
        let new = [0, 1].map(|half| said(half, text(turn as u64 * 2 + half, MESSAGE)));
        let (bytes, cpu, started) = (bytes_written(), cpu_time(), Instant::now());
        for new_entry in new {
            let entries = Entry::chain(&head, vec![new_entry]).unwrap();
            head = now(store.append(id, head, &entries)).unwrap();
        }
        // Skip the first turns, which open files and prepare statements.
        if turn >= 10 {
            cost.walls.push(started.elapsed());
            cost.raw.push(raw);
            cost.raw_cpu_ms += raw_cpu.as_secs_f64() * 1000.0 / TURNS as f64;
            cost.bytes += (bytes_written() - bytes) as f64 / TURNS as f64;
            cost.cpu_ms += (cpu_time() - cpu).as_secs_f64() * 1000.0 / TURNS as f64;
        }
    }
    cost
}

pub fn fork(table: &mut Table) {
    for backend in BACKENDS {
        println!("fork, {backend}");
        let mut walls = Vec::new();
        for length in [10, 100_000] {
            let folder = tempfile::tempdir_in(".").unwrap();
            let store = open(backend, folder.path());
            let (id, head) = session(store.as_ref(), length, 500, 7, "bench");
            let mut times = Vec::new();
            let before = bytes_written();
            const FORKS: u32 = 50;
            for _ in 0..FORKS {
                let started = Instant::now();
                fork_once(store.as_ref(), id, head);
                times.push(started.elapsed());
            }
            let bytes = (bytes_written() - before) as f64 / f64::from(FORKS);
            let name = format!("{backend}: fork of {length} messages");
            table.at_most(&format!("{name}, written"), bytes / 1000.0, 16.0, "kB");
            table.at_most(
                &format!("{name}, wall p50"),
                percentile(&times, 50) * 1000.0,
                3.0,
                "ms",
            );
            walls.push(percentile(&times, 50));
        }
        table.at_most(
            &format!("{backend}: fork of 100 000 to of 10"),
            walls[1] / walls[0],
            1.5,
            "×",
        );
    }
}

fn fork_once(store: &dyn Store, id: SessionId, head: Head) {
    let fork = SessionId::new(Uuid::now_v7());
    let from = Origin {
        id,
        seq: head.seq,
        hash: head.hash,
    };
    let body = Body::Forked(Forked {
        session: fork,
        from: from.clone(),
        relation: Relation::Fork,
        title: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    });
    let mut new = said(0, String::new());
    new.body = body;
    let entries = Entry::chain(&head, vec![new]).unwrap();
    now(store.create(&NewSession {
        id: fork,
        base: Some(from),
        entries,
    }))
    .unwrap();
}

/// Counts the syncs of appends to an open store, with strace.
fn syncs_per_append(backend: &str) -> f64 {
    let count = |turns: usize| {
        let folder = tempfile::tempdir_in(".").unwrap();
        let output = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(folder.path().join("trace"))
            .arg(std::env::current_exe().unwrap())
            .env("TERTULIA_BENCH_ROLE", "turns")
            .env("TERTULIA_BENCH_BACKEND", backend)
            .env("TERTULIA_BENCH_FOLDER", folder.path())
            .env("TERTULIA_BENCH_TURNS", turns.to_string())
            .stdin(Stdio::null())
            .status()
            .expect("strace is needed: apt-get install strace");
        assert!(output.success());
        let trace = std::fs::read_to_string(folder.path().join("trace")).unwrap();
        trace
            .lines()
            .filter(|line| {
                line.contains("sync(") && line.contains("= 0") || line.contains("sync resumed")
            })
            .count()
    };
    // The difference cancels the syncs of opening and closing.
    (count(250) as f64 - count(50) as f64) / 400.0
}

pub fn be_traced() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let folder = variable("TERTULIA_BENCH_FOLDER");
    let store = open(&variable("TERTULIA_BENCH_BACKEND"), Path::new(&folder));
    let turns: usize = variable("TERTULIA_BENCH_TURNS").parse().unwrap();
    let (id, mut head) = session(store.as_ref(), 10, MESSAGE, 7, "bench");
    for number in 0..turns as u64 * 2 {
        let entries = Entry::chain(&head, vec![said(number, text(number, MESSAGE))]).unwrap();
        head = now(store.append(id, head, &entries)).unwrap();
    }
}

/// Returns the number of bytes that this process has passed to write calls.
pub fn bytes_written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: "))
        .unwrap()
        .parse()
        .unwrap()
}

/// Returns the CPU time that this process has used.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

/// Returns a percentile, in seconds.
pub fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)].as_secs_f64()
}

/// Reads a file that was just written, and so is in the page cache, as a baseline.
pub fn read_all(path: &Path) -> Duration {
    let started = Instant::now();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut File::open(path).unwrap(), &mut bytes).unwrap();
    assert!(!bytes.is_empty());
    started.elapsed()
}

/// Returns the URL of a backend's store.
pub fn shown(backend: &str, folder: &Path) -> String {
    format!("{backend}:{}", place(backend, folder).display())
}
