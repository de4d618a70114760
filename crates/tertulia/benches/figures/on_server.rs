//! PostgreSQL: many clients that append, against single-row inserts on the same server in the same run,
//! and a store that is copied there and back.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tertulia_core::entry::{Entry, Head, NewEntry};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Page, Trash};
use tertulia_core::session::Log;
use tertulia_store::Store;
use tertulia_store::postgres::PostgresStore;
use tertulia_testkit::ask::now;
use tertulia_testkit::postgres::{Schema, options};
use tokio::runtime::Builder;
use tokio_postgres::NoTls;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::logs::{MESSAGE, open, place, said, session, text};
use crate::table::Table;

const CLIENTS: usize = 50;
const SESSIONS: usize = 200;
/// Different messages of a client.
const TEXTS: u64 = 64;
/// Sessions that are copied, and messages of each.
const COPIED: usize = 10_000;
const MESSAGES: u64 = 4;

/// Times of turns, in seconds.
struct Turns {
    times: Vec<f64>,
    span: Duration,
}

impl Turns {
    fn of(clients: Vec<Vec<f64>>, span: Duration) -> Turns {
        let mut times: Vec<f64> = clients.into_iter().flatten().collect();
        times.sort_by(f64::total_cmp);
        Turns { times, span }
    }

    fn rate(&self) -> f64 {
        self.times.len() as f64 / self.span.as_secs_f64()
    }

    fn percentile(&self, part: f64) -> f64 {
        let place = (self.times.len() as f64 * part) as usize;
        self.times[place.min(self.times.len() - 1)] * 1000.0
    }
}

/// Returns a number from the environment, so that a run can be shorter.
fn setting(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(otherwise)
}

pub fn measure(table: &mut Table) {
    let span = Duration::from_secs(setting("TERTULIA_BENCH_SECONDS", 60));
    println!("PostgreSQL: {CLIENTS} clients, {SESSIONS} sessions, {span:?}");
    let (schema, other) = (Schema::new(), Schema::new());
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let value = schema.sql(&format!("SHOW {setting}"));
        assert_eq!(value[0][0].as_deref(), Some("on"), "{setting}");
    }
    // Before and after, so that a busy machine does not favour one of them.
    let before = raw_turns(&other, span / 4, "raw_before");
    let commits = committed(&other);
    let ours = store_turns(&schema, span, false);
    let commits = committed(&other) - commits;
    let after = raw_turns(&other, span / 4, "raw_after");
    let locked = store_turns(&schema, span / 4, true);
    let raw = Turns::of(vec![before.times, after.times], before.span + after.span);
    table.fact("postgres: turns a second", ours.rate(), "");
    table.fact("postgres: raw inserts in pairs a second", raw.rate(), "");
    table.fact("postgres: turns a second under locks", locked.rate(), "");
    table.at_most(
        "postgres: commits per turn",
        commits / ours.times.len() as f64,
        2.1,
        "",
    );
    table.fact("postgres: p50 of a turn", ours.percentile(0.5), "ms");
    table.fact("postgres: p99 of a turn", ours.percentile(0.99), "ms");
    table.at_most(
        "postgres: raw inserts to turns a second",
        raw.rate() / ours.rate(),
        2.0,
        "×",
    );
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        table.at_most(
            &format!("postgres: {name} of a turn to that of raw inserts"),
            ours.percentile(part) / raw.percentile(part),
            2.0,
            "×",
        );
    }
    copies(table);
}

/// Returns the number of transactions that were committed in the database. Connections that ended
/// have reported theirs.
fn committed(schema: &Schema) -> f64 {
    // The end of a connection is noticed a little later.
    std::thread::sleep(Duration::from_secs(1));
    let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    let count = schema.sql(sql).remove(0).remove(0);
    count.and_then(|count| count.parse().ok()).unwrap()
}

/// Messages that a client writes, over and over: generating text is no part of a turn.
fn messages(number: u64) -> Vec<String> {
    (0..TEXTS)
        .map(|no| text(number * TEXTS + no, MESSAGE))
        .collect()
}

/// Builds a message entry of now, as a session has it: the time of its last entry changes with each.
fn said_now(half: u64, content: &str) -> NewEntry {
    NewEntry {
        at: Timestamp::now(),
        ..said(half, content.to_owned())
    }
}

/// Two inserts of a row each per turn, in transactions of their own.
fn raw_turns(schema: &Schema, span: Duration, name: &str) -> Turns {
    schema.sql(&format!(
        "CREATE TABLE {name}(session uuid, seq bigint, line bytea, PRIMARY KEY(session, seq))"
    ));
    let insert = format!("INSERT INTO {name} VALUES($1, $2, $3)");
    let client = |number: usize| {
        let (url, insert) = (schema.url().to_owned(), insert.clone());
        // The same bytes that a store writes.
        let line = |content: &String| {
            let entries = Entry::chain(&Head::START, vec![said_now(0, content)]).unwrap();
            entries[0].line().as_bytes().to_vec()
        };
        let lines: Vec<Vec<u8>> = messages(number as u64).iter().map(line).collect();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                tokio::spawn(connection);
                let session = Uuid::now_v7();
                let mut times = Vec::new();
                let started = Instant::now();
                let mut seq = 0_i64;
                while started.elapsed() < span {
                    let asked = Instant::now();
                    for _ in 0..2 {
                        seq += 1;
                        let line = &lines[seq as usize % lines.len()];
                        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
                            (&session, Type::UUID),
                            (&seq, Type::INT8),
                            (line, Type::BYTEA),
                        ];
                        client.execute_typed(&insert, &values).await.unwrap();
                    }
                    times.push(asked.elapsed().as_secs_f64());
                }
                times
            })
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let times = clients.into_iter().map(|one| one.join().unwrap());
    Turns::of(times.collect(), span)
}

/// Two appends per turn. Afterwards every log is read: nothing is lost or doubled.
/// Under locks, as sessions that are open are, an append compares the number of its lock, too.
fn store_turns(schema: &Schema, span: Duration, locked: bool) -> Turns {
    drop(schema.open_store().unwrap());
    let client = |number: usize| {
        let options = options(schema.url(), schema.scratch().path());
        std::thread::spawn(move || {
            let store = PostgresStore::open(options).unwrap();
            let mut sessions: Vec<(SessionId, Head)> = (0..SESSIONS / CLIENTS)
                .map(|_| session(&store, 2, MESSAGE, number as u64, "bench"))
                .collect();
            let locks: Vec<_> = sessions
                .iter()
                .filter(|_| locked)
                .map(|(id, _)| now(store.claim(*id)).unwrap().unwrap())
                .collect();
            let messages = messages(number as u64);
            let mut times = Vec::new();
            let started = Instant::now();
            let mut turn = 0_usize;
            while started.elapsed() < span {
                let place = turn % sessions.len();
                let (id, head) = &mut sessions[place];
                let mut taken = 0.0;
                for half in 0..2 {
                    let content = &messages[(turn * 2 + half) % messages.len()];
                    let new = said_now(half as u64, content);
                    let entries = Entry::chain(head, vec![new]).unwrap();
                    let asked = Instant::now();
                    *head = now(store.append(*id, *head, &entries)).unwrap();
                    taken += asked.elapsed().as_secs_f64();
                }
                times.push(taken);
                turn += 1;
            }
            drop(locks);
            (times, sessions)
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let ended: Vec<_> = clients.into_iter().map(|one| one.join().unwrap()).collect();
    let store = schema.open_store().unwrap();
    for (id, head) in ended.iter().flat_map(|(_, sessions)| sessions) {
        let lines = now(store.read(*id, Seq::START, usize::MAX)).unwrap();
        let log = Log::read(*id, Some(Head::START), Seq::START, &lines);
        assert_eq!(log.damage, []);
        assert_eq!(log.entries.last().map(Entry::head), Some(*head));
    }
    Turns::of(ended.into_iter().map(|(times, _)| times).collect(), span)
}

/// Copies a store of many sessions to the server and back, with the program.
fn copies(table: &mut Table) {
    let count = setting("TERTULIA_BENCH_COPIED", COPIED as u64);
    println!("PostgreSQL: {count} sessions there and back");
    let (schema, home) = (Schema::new(), tempfile::tempdir().unwrap());
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    for folder in [&first, &second] {
        std::fs::create_dir(folder).unwrap();
    }
    let store = open("sqlite", &first);
    for number in 0..count {
        session(store.as_ref(), MESSAGES, 500, number, "bench");
    }
    let expected = heads(store.as_ref());
    assert_eq!(expected.len() as u64, count);
    drop(store);
    let sqlite = |folder: &Path| format!("sqlite:{}", place("sqlite", folder).display());
    let copy = |from: &str, to: &str| {
        let asked = Instant::now();
        let done = Command::new(env!("CARGO_BIN_EXE_tertulia"))
            .args(["store", "copy", from, to])
            .env("TERTULIA_HOME", home.path())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words}");
        count as f64 / asked.elapsed().as_secs_f64()
    };
    let there = copy(&sqlite(&first), schema.url());
    let back = copy(schema.url(), &sqlite(&second));
    let copied = heads(open("sqlite", &second).as_ref());
    assert!(copied == expected, "the copies have the same hashes");
    table.fact("postgres: sessions a second copied there", there, "");
    table.fact("postgres: sessions a second copied back", back, "");
}

/// Returns all sessions with the hashes of their last entries.
fn heads(store: &dyn Store) -> std::collections::BTreeMap<SessionId, Head> {
    let filter = Filter {
        trash: Trash::With,
        ..Filter::default()
    };
    let listing = now(store.list(&filter, &Page::first(1_000_000))).unwrap();
    let head = |row: tertulia_core::query::Row| (row.meta.id, row.meta.head);
    listing.rows.into_iter().map(head).collect()
}
