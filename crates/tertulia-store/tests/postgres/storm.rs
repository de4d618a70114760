//! Many clients write while their server is killed and their connections are cut at random: what was
//! acknowledged is there, once.

use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tertulia_store::postgres::PostgresStore;
use tertulia_testkit::ask::{assert_log, assert_sound, everything, list};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::Writer;
use tertulia_testkit::postgres::{OwnServer, options, sql};
use tertulia_testkit::postgres_proxy::{Cut, Proxy};
use tertulia_testkit::scratch::Scratch;
use tertulia_testkit::soak;
use tertulia_testkit::waiting::wait_until;

use super::kills::{immediate_stop, server_in};

/// Sessions of each client.
const SESSIONS: u64 = 4;

/// What the threads of the test share.
#[derive(Default)]
struct Storm {
    is_over: AtomicBool,
    acknowledged: AtomicU64,
}

impl Storm {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until so many more turns are acknowledged, or all is over.
    fn wait_for(&self, turns: u64) {
        let wanted = self.acknowledged.load(Ordering::Relaxed) + turns;
        let is_done = || self.acknowledged.load(Ordering::Relaxed) >= wanted;
        wait_until("turns are acknowledged", || is_done() || self.is_over());
    }

    /// Writes to several sessions in turn, with a store of its own as another process has.
    fn write(&self, store: &PostgresStore, number: u64) -> Vec<Writer> {
        let seeds = number * SESSIONS + 1..=(number + 1) * SESSIONS;
        let begin = |seed| Writer::begin(store, &still_clock(seed));
        let mut writers: Vec<Writer> = seeds.map(begin).collect();
        let mut turn = 0;
        while !self.is_over() {
            let place = turn % writers.len();
            writers[place].say(store, &format!("turn {turn} of client {number}"));
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            turn += 1;
        }
        writers
    }

    /// Cuts connections: around a commit, or wherever they are.
    fn cut(&self, proxy: &Proxy) {
        let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
        while !self.is_over() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            match random % 3 {
                0 => proxy.arm(Cut::BeforeCommit),
                1 => proxy.arm(Cut::AfterCommit),
                _ => {
                    proxy.cut_one((random >> 32) as usize);
                }
            }
            self.wait_for(1 + (random >> 16) % 8);
        }
    }
}

/// Ends the storm, also if the test fails.
struct End<'a>(&'a Storm);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// Kills the server while clients write, and starts it again.
fn kill_often(storm: &Storm, server: &OwnServer, mut process: Child, kills: usize) -> Child {
    let _end = End(storm);
    for _ in 0..kills {
        storm.wait_for(200);
        process.kill().unwrap();
        process.wait().unwrap();
        process = server.start();
    }
    storm.wait_for(200);
    process
}

#[test]
fn many_clients_lose_and_double_nothing() {
    let (clients, kills) = if soak::soak() { (50, 10) } else { (12, 2) };
    let scratch = Scratch::new();
    let server = server_in(&scratch);
    let storm = Storm::default();
    let process = server.start();
    let proxy = Proxy::start(server.port());
    let url = proxy.url(&server.url());
    let open = |_| PostgresStore::open(options(&url, scratch.path())).unwrap();
    let stores: Vec<PostgresStore> = (0..clients).map(open).collect();
    let (mut process, writers) = std::thread::scope(|scope| {
        let storm = &storm;
        let clients: Vec<_> = (0..)
            .zip(&stores)
            .map(|(number, store)| scope.spawn(move || storm.write(store, number)))
            .collect();
        let cutter = scope.spawn(|| storm.cut(&proxy));
        let process = kill_often(storm, &server, process, kills);
        cutter.join().unwrap();
        let written = clients.into_iter().map(|client| client.join().unwrap());
        (process, written.flatten().collect::<Vec<Writer>>())
    });
    drop(stores);
    assert!(proxy.cuts() > 20, "{} cuts", proxy.cuts());
    let direct = PostgresStore::open(options(&server.url(), scratch.path())).unwrap();
    for writer in &writers {
        assert_log(&direct, writer);
    }
    assert_eq!(list(&direct, &everything()).rows.len(), writers.len());
    let entries: usize = writers.iter().map(|writer| writer.log.len()).sum();
    let rows = sql(&server.url(), "SELECT count(*) FROM tertulia_entry");
    assert_eq!(rows[0][0], Some(entries.to_string()));
    assert_sound(&direct);
    drop(direct);
    immediate_stop(&process);
    process.wait().unwrap();
}
