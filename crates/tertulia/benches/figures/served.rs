//! Cost of a server for its clients: latency of a cheap request, streaming rate, the effect of a few
//! misbehaving clients on a hundred others and of an attack on the page, and how soon words that were
//! shown survive a kill.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use tertulia_testkit::ask::now;

use crate::home::{Home, open_store};
use crate::serve::crowd::{Turns, gather, rude_ones, talk};
use crate::serve::stage::{Server, string};
use crate::table::Table;

/// Number of cheap requests.
const QUESTIONS: usize = 2000;
/// How long an answer is watched until its words are kept.
const WATCHED: Duration = Duration::from_secs(6);
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
    until_kept(table);
    #[cfg(feature = "web")]
    besieged::measure(table);
}

/// Measures how long words are shown that a kill would take along.
fn until_kept(table: &mut Table) {
    let home = Home::new();
    let settings = "agent = \"slow\"\n[agents.slow]\ntype = \"demo\"\npace = 20\n";
    home.settings(settings);
    let server = Server::start(&home, &[]);
    let mut client = server.client().trusting();
    let made = client.answer(json!({ "type": "session_create" }));
    let id = string(&made, "session_id").parse().unwrap();
    client.ask(json!({ "type": "query", "query": "count to 100000" }));
    let store = open_store(&home.store_url());
    // When words were shown, and where they end in the answer.
    let mut shown: VecDeque<(Instant, usize)> = VecDeque::new();
    let (mut length, mut worst) = (0, Duration::ZERO);
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        while let Some((at, reply)) = client.next_within(Duration::from_millis(1)) {
            length += reply["text"].as_str().unwrap_or_default().len();
            shown.push_back((at, length));
        }
        let draft = now(store.draft(id)).unwrap();
        let kept = draft.map_or(0, |draft| draft.content.len());
        // Those that are not kept yet count, too.
        if let Some((at, _)) = shown.front() {
            worst = worst.max(at.elapsed());
        }
        while shown.pop_front_if(|(_, end)| *end <= kept).is_some() {}
    }
    assert!(length > 100, "the agent said nothing");
    table.at_most(
        "shown words are kept, longest time",
        millis(worst),
        1000.0,
        "ms",
    );
    server.kill();
}

/// The page under attack.
#[cfg(feature = "web")]
mod besieged {
    use super::{Duration, Home, Instant, Table, json, millis};
    use crate::http::siege::besieged;
    use crate::http::stage::{WebServer, head};

    /// Number of right logins per attack.
    const LOGINS: usize = 10;

    pub fn measure(table: &mut Table) {
        let home = Home::new();
        let server = WebServer::start(&home, &[]);
        let told = home.run(&["web", "token", "create", "t", "--json"]).ok();
        let token = told.json()["token"].clone();
        let host = server.host();
        let wrong = json!({ "code": "WRONG", "token": "wrong" }).to_string();
        let wrong = head("POST", "/login", &[("Host", &host)], &wrong);
        let asking = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for (what, request) in [("wrong logins", wrong), ("requests", asking)] {
            let mut worst = Duration::ZERO;
            besieged(&server, "127.0.0.1", &request, || {
                for _ in 0..LOGINS {
                    let begun = Instant::now();
                    let login = server.log_in_with(&json!({ "token": token })).login();
                    assert_eq!(server.get("/", &login.cookie).status, 200);
                    worst = worst.max(begun.elapsed());
                }
            });
            table.at_most(
                &format!("a login and a page among 300 {what}, worst"),
                millis(worst),
                2000.0,
                "ms",
            );
        }
        server.end().ok();
    }
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
