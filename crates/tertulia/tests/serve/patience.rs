//! Misbehaving clients delay no others, and no message is lost.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::crowd::{Crowd, Delays, gather, rude_ones, talk};
use super::stage::Server;
use crate::home::Home;

/// Maximum additional delay caused by other clients.
const DELAY: Duration = Duration::from_millis(100);

/// Factor for machines whose cores are taken: what a server does besides waits in proportion there.
const SLOWER: u32 = 3;

/// Maximum number of measurements.
const TRIES: usize = 3;

/// Returns the 99th percentile.
fn nearly_worst(delays: &[Duration]) -> Duration {
    delays[delays.len() * 99 / 100]
}

/// Delays while clients misbehave towards another program, and towards the server: the 99th
/// percentiles. The load that misbehaving causes is the same in both.
#[derive(Debug)]
struct Waited {
    usual: Duration,
    now: Duration,
}

impl Waited {
    fn of(usual: &[Duration], now: &[Duration]) -> Waited {
        Waited {
            usual: nearly_worst(usual),
            now: nearly_worst(now),
        }
    }

    fn is_acceptable(&self) -> bool {
        self.now < self.usual * SLOWER + DELAY
    }
}

/// Measures requests that are answered from memory, and requests that ask the store.
fn waited(server: &Server, decoy: &Path, crowd: &mut Crowd) -> [Waited; 2] {
    let usual = beside_rude_ones(decoy, server, crowd);
    let now = beside_rude_ones(&server.path, server, crowd);
    [
        Waited::of(&usual.memory, &now.memory),
        Waited::of(&usual.store, &now.store),
    ]
}

fn beside_rude_ones(path: &Path, server: &Server, crowd: &mut Crowd) -> Delays {
    let sessions: Vec<String> = crowd.talkers.iter().map(|(_, id)| id.clone()).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let rude = rude_ones(path, &stop, &sessions);
    let delays = talk(server, crowd);
    stop.store(true, Ordering::Relaxed);
    for thread in rude {
        thread.join().unwrap();
    }
    assert!(delays.store.len() > 20, "{}", delays.store.len());
    delays
}

/// Starts a listener that reads and never answers. It ends with the test process.
fn decoy(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
}

/// Passes if one measurement is good: a server that can be slowed down fails every time, a busy
/// machine does not.
#[test]
fn a_hundred_clients_are_not_slowed_by_some_that_do_not_behave() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut crowd = gather(&server);
    let decoy_path = home.path().join("decoy");
    decoy(&decoy_path);
    let mut tries = Vec::new();
    while !tries
        .iter()
        .any(|waited: &[Waited; 2]| waited.iter().all(Waited::is_acceptable))
    {
        assert!(tries.len() < TRIES, "usually and among them: {tries:?}");
        tries.push(waited(&server, &decoy_path, &mut crowd));
    }
    let peak = server.peak_memory();
    assert!(peak < 500_000_000, "{peak}");
    server.end().ok();
}
