//! Nobody waits for those who do not behave, and no message is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::crowd::{gather, rude_ones, talk};
use crate::home::Home;
use crate::stage::Server;

/// Nobody waits longer for somebody else.
const DELAY: Duration = Duration::from_millis(100);

/// All but one of a hundred waited no longer.
fn nearly_worst(delays: &[Duration]) -> Duration {
    delays[delays.len() * 99 / 100]
}

#[test]
fn a_hundred_clients_are_not_slowed_by_some_that_do_not_behave() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut crowd = gather(&server);
    let among_friends = talk(&server, &mut crowd);
    let sessions: Vec<String> = crowd.talkers.iter().map(|(_, id)| id.clone()).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let rude = rude_ones(&server, &stop, &sessions);
    let among_others = talk(&server, &mut crowd);
    stop.store(true, Ordering::Relaxed);
    for thread in rude {
        thread.join().unwrap();
    }
    let (usual, now) = (nearly_worst(&among_friends), nearly_worst(&among_others));
    assert!(now < usual + DELAY, "{now:?}, {usual:?} before");
    assert!(among_others.len() > 20, "{}", among_others.len());
    let peak = server.peak_memory();
    assert!(peak < 500_000_000, "{peak}");
    server.end().ok();
}
