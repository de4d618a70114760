//! Eight processes append to one store, each to a session of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tertulia_core::entry::Entry;
use tertulia_testkit::ask::now;

use crate::logs::{BACKENDS, MESSAGE, open, said, session, text};
use crate::table::Table;

const WRITERS: usize = 8;
const SPAN: Duration = Duration::from_secs(5);

pub fn measure(table: &mut Table) {
    for backend in BACKENDS {
        println!("eight writers, {backend}");
        let folder = tempfile::tempdir_in(".").unwrap();
        drop(open(backend, folder.path()));
        let mut writers: Vec<Child> = (0..WRITERS)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .env("TERTULIA_BENCH_ROLE", "writer")
                    .env("TERTULIA_BENCH_BACKEND", backend)
                    .env("TERTULIA_BENCH_FOLDER", folder.path())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut outputs: Vec<_> = writers
            .iter_mut()
            .map(|writer| BufReader::new(writer.stdout.take().unwrap()))
            .collect();
        let mut line = String::new();
        for output in &mut outputs {
            output.read_line(&mut line).unwrap();
        }
        for writer in &mut writers {
            writer.stdin.take().unwrap().write_all(b"go\n").unwrap();
        }
        let mut turns = Vec::new();
        let mut worst: f64 = 0.0;
        for (output, writer) in outputs.iter_mut().zip(&mut writers) {
            line.clear();
            output.read_line(&mut line).unwrap();
            let (done, wait) = line.trim().split_once(' ').expect("a writer's figures");
            turns.push(done.parse::<f64>().unwrap());
            worst = worst.max(wait.parse().unwrap());
            assert!(writer.wait().unwrap().success());
        }
        let rate = turns.iter().sum::<f64>() / SPAN.as_secs_f64();
        let must = if backend == "sqlite" {
            1_300.0
        } else {
            5_000.0
        };
        table.at_least(
            &format!("{backend}: 8 writers, turns a second"),
            rate,
            must,
            "",
        );
        table.at_most(
            &format!("{backend}: 8 writers, longest wait"),
            worst,
            0.2,
            "s",
        );
        let fastest = turns.iter().copied().fold(0.0, f64::max);
        let slowest = turns.iter().copied().fold(f64::INFINITY, f64::min);
        table.at_most(
            &format!("{backend}: 8 writers, fastest to slowest"),
            fastest / slowest.max(1.0),
            3.0,
            "×",
        );
    }
}

pub fn be_a_writer() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let folder = variable("TERTULIA_BENCH_FOLDER");
    let store = open(&variable("TERTULIA_BENCH_BACKEND"), Path::new(&folder));
    let (id, mut head) = session(store.as_ref(), 10, MESSAGE, 7, "bench");
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let started = Instant::now();
    let (mut turns, mut worst) = (0_u64, Duration::ZERO);
    while started.elapsed() < SPAN {
        for half in 0..2 {
            let entries =
                Entry::chain(&head, vec![said(half, text(turns * 2 + half, MESSAGE))]).unwrap();
            let asked = Instant::now();
            head = now(store.append(id, head, &entries)).unwrap();
            worst = worst.max(asked.elapsed());
        }
        turns += 1;
    }
    println!("{turns} {}", worst.as_secs_f64());
}
