//! Clients and servers that are killed while they write: what was acknowledged is there, once.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use tertulia_core::entry::Head;
use tertulia_core::id::Seq;
use tertulia_core::session::Log;
use tertulia_store::Store;
use tertulia_store::postgres::PostgresStore;
use tertulia_testkit::ask::{assert_log, assert_sound, everything, lines, list};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::Writer;
use tertulia_testkit::postgres::{OwnServer, Schema, options};
use tertulia_testkit::scratch::Scratch;
use tertulia_testkit::soak;
use tertulia_testkit::waiting::wait_until;

/// URL of the store for the process that is killed.
const URL: &str = "TERTULIA_TEST_KILLED_STORE";

/// Appends until it is killed, and prints the number of each entry that is acknowledged.
#[test]
#[ignore = "it is started, and killed, by the test below"]
fn writes_until_it_is_killed() {
    let url = std::env::var(URL).unwrap();
    let scratch = Scratch::new();
    let store = PostgresStore::open(options(&url, scratch.path())).unwrap();
    let seed = u64::from(std::process::id());
    let mut writer = Writer::begin(&store, &still_clock(seed));
    let mut out = std::io::stdout();
    loop {
        writer.say(&store, "some words of a turn");
        writeln!(out, "acknowledged {} {}", writer.id, writer.head().seq.0).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn a_killed_client_loses_nothing() {
    let schema = Schema::new();
    let kills = if soak::soak() { 40 } else { 5 };
    let mut acknowledged = Vec::new();
    for kill in 0..kills {
        let mut client = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture"])
            .arg("postgres::kills::writes_until_it_is_killed")
            .env(URL, schema.url())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(client.stdout.take().unwrap());
        let mut last = None;
        let mut count = 0;
        for line in said.lines().map_while(Result::ok) {
            let Some(rest) = line.rsplit_once("acknowledged ").map(|(_, rest)| rest) else {
                continue;
            };
            last = rest.split_once(' ').map(|(id, seq)| {
                let id: uuid::Uuid = id.parse().unwrap();
                (tertulia_core::id::SessionId::new(id), seq.parse().unwrap())
            });
            count += 1;
            if count == 10 + kill * 3 {
                client.kill().unwrap();
            }
        }
        client.wait().unwrap();
        acknowledged.push(last.unwrap());
    }
    let store = schema.open_store().unwrap();
    for (id, seq) in acknowledged {
        let read = lines(&store, id);
        let log = Log::read(id, Some(Head::START), Seq::START, &read);
        assert_eq!(log.damage, []);
        assert!(log.entries.last().unwrap().seq >= Seq(seq));
    }
    assert_eq!(list(&store, &everything()).rows.len(), kills);
    assert_sound(&store);
}

/// The server is killed, or told to stop at once, while several writers append: they wait until it is
/// back, and go on.
#[test]
fn a_killed_server_loses_nothing() {
    let scratch = Scratch::new();
    let server = server_in(&scratch);
    let mut process = server.start();
    let store = PostgresStore::open(options(&server.url(), scratch.path())).unwrap();
    let kills = if soak::soak() { 10 } else { 2 };
    let ended = std::sync::atomic::AtomicBool::new(false);
    let writers: Vec<Writer> = std::thread::scope(|scope| {
        let started: Vec<_> = (1..=3)
            .map(|seed| {
                let (store, ended) = (&store, &ended);
                scope.spawn(move || {
                    let mut writer = Writer::begin(store, &still_clock(seed));
                    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                        writer.say(store, "some words of a turn");
                    }
                    writer
                })
            })
            .collect();
        for kill in 0..kills {
            let before = store_entries(&store);
            wait_until("more is written", || store_entries(&store) >= before + 20);
            match kill % 2 {
                0 => process.kill().unwrap(),
                _ => immediate_stop(&process),
            }
            process.wait().unwrap();
            process = server.start();
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        let ended = started.into_iter().map(|writer| writer.join().unwrap());
        ended.collect()
    });
    for writer in &writers {
        assert_log(&store, writer);
    }
    assert_sound(&store);
    drop(store);
    immediate_stop(&process);
    process.wait().unwrap();
}

/// Creates a server that a test can kill.
pub(super) fn server_in(scratch: &Scratch) -> OwnServer {
    let folder = scratch.path().join("server");
    std::fs::create_dir(&folder).unwrap();
    // The account of the server must reach its folder.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    OwnServer::create(&folder)
}

fn store_entries(store: &dyn Store) -> u64 {
    let rows = list(store, &everything()).rows;
    rows.iter().map(|row| row.meta.head.seq.0).sum()
}

pub(super) fn immediate_stop(process: &std::process::Child) {
    let pid = rustix::process::Pid::from_child(process);
    rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
}
