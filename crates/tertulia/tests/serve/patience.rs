//! Misbehaving clients keep no others from being answered, and no message is lost. How long an answer
//! takes among them is a figure of `./bench serve`.

use std::sync::Arc;

use super::crowd::{Turns, gather, rude_ones, talk};
use super::stage::Server;
use crate::home::Home;

#[test]
fn a_hundred_clients_are_answered_beside_some_that_do_not_behave() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut crowd = gather(&server);
    let sessions: Vec<String> = crowd.talkers.iter().map(|(_, id)| id.clone()).collect();
    let turns = Arc::new(Turns::default());
    let rude = rude_ones(&server.path, &turns, &sessions);
    let delays = talk(&server, &mut crowd, &turns);
    for thread in rude {
        thread.join().unwrap();
    }
    // A client of its own was answered all the time, from memory and by the store.
    assert!(delays.memory.len() > 20, "{}", delays.memory.len());
    assert_eq!(delays.memory.len(), delays.store.len());
    let peak = server.peak_memory();
    assert!(peak < 500_000_000, "{peak}");
    server.end().ok();
}
