//! Cost of a server for its clients: latency of a cheap request, streaming rate, and the effect of
//! a few misbehaving clients on a hundred others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::crowd::{Turns, gather, rude_ones, talk};
use crate::home::Home;
use crate::stage::Server;
use crate::table::Table;

/// Number of cheap requests.
const QUESTIONS: usize = 2000;
/// How far the demo agent counts.
const NUMBERS: usize = 200_000;

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub fn measure(table: &mut Table) {
    println!("serve");
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut client = server.client().trusting();
    let mut times: Vec<Duration> = (0..QUESTIONS)
        .map(|_| {
            let begun = Instant::now();
            client.answer(json!({ "type": "session_save" }));
            begun.elapsed()
        })
        .collect();
    times.sort();
    table.at_most(
        "a cheap request, median",
        millis(times[QUESTIONS / 2]),
        1.0,
        "ms",
    );
    let begun = Instant::now();
    let (said, _) = client.query(&format!("count to {NUMBERS}"));
    assert!(said.ends_with(&NUMBERS.to_string()));
    let rate = NUMBERS as f64 / begun.elapsed().as_secs_f64();
    table.at_least("tokens streamed to one client", rate, 50_000.0, "per s");
    among_many(table, &server);
    server.end().ok();
}

fn among_many(table: &mut Table, server: &Server) {
    let mut crowd = gather(server);
    let usual = talk(server, &mut crowd, &Turns::default());
    let sessions: Vec<String> = crowd.talkers.iter().map(|(_, id)| id.clone()).collect();
    let turns = Arc::new(Turns::default());
    let rude = rude_ones(&server.path, &turns, &sessions);
    let delays = talk(server, &mut crowd, &turns);
    for thread in rude {
        thread.join().unwrap();
    }
    let worst = |delays: &[Duration]| millis(*delays.last().unwrap());
    table.fact(
        "100 clients, 20 sessions, worst delay",
        worst(&usual.memory),
        "ms",
    );
    table.fact("the same asking the store", worst(&usual.store), "ms");
    table.at_most(
        "the same among rude ones, worst delay",
        worst(&delays.memory),
        100.0,
        "ms",
    );
    table.at_most(
        "the same among rude ones, asking the store",
        worst(&delays.store),
        100.0,
        "ms",
    );
    let peak = server.peak_memory() as f64 / 1e6;
    table.at_most("the server's memory, at its peak", peak, 250.0, "MB");
}
