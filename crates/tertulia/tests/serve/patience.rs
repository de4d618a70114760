//! Nobody waits for those who do not behave, and no message is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::crowd::{Crowd, gather, rude_ones, talk};
use crate::home::Home;
use crate::stage::Server;

/// Nobody waits longer for somebody else.
const DELAY: Duration = Duration::from_millis(100);

/// How often it is measured at most.
const TRIES: usize = 3;

/// All but one of a hundred waited no longer.
fn nearly_worst(delays: &[Duration]) -> Duration {
    delays[delays.len() * 99 / 100]
}

/// How long all but one of a hundred waited, in order and then among clients that do not behave.
fn waited(server: &Server, crowd: &mut Crowd) -> (Duration, Duration) {
    let among_friends = talk(server, crowd);
    let sessions: Vec<String> = crowd.talkers.iter().map(|(_, id)| id.clone()).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let rude = rude_ones(server, &stop, &sessions);
    let among_others = talk(server, crowd);
    stop.store(true, Ordering::Relaxed);
    for thread in rude {
        thread.join().unwrap();
    }
    assert!(among_others.len() > 20, "{}", among_others.len());
    (nearly_worst(&among_friends), nearly_worst(&among_others))
}

/// A server that lets them slow it down does so every time, a busy machine does not.
#[test]
fn a_hundred_clients_are_not_slowed_by_some_that_do_not_behave() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut crowd = gather(&server);
    let mut tries = Vec::new();
    while !tries.iter().any(|(usual, now)| *now < *usual + DELAY) {
        assert!(tries.len() < TRIES, "usually and among them: {tries:?}");
        tries.push(waited(&server, &mut crowd));
    }
    let peak = server.peak_memory();
    assert!(peak < 500_000_000, "{peak}");
    server.end().ok();
}
