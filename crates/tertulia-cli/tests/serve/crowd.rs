//! A hundred clients in twenty sessions, and some that do not behave: nobody waits for those, and no message is
//! lost.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::Home;
use crate::stage::{Client, Server, string};

const SESSIONS: usize = 20;
/// One talks, the others follow.
const EACH: usize = 5;
const TURNS: usize = 8;
/// Nobody waits longer for somebody else.
const DELAY: Duration = Duration::from_millis(100);

/// Goes on with something rude until it is told to stop.
fn rudely(
    server: &Server,
    stop: &Arc<AtomicBool>,
    mut rude: impl FnMut(&std::path::Path) + Send + 'static,
) -> JoinHandle<()> {
    let (path, stop) = (server.path.clone(), stop.clone());
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            rude(&path);
        }
    })
}

fn rude_ones(server: &Server, stop: &Arc<AtomicBool>, sessions: &[String]) -> Vec<JoinHandle<()>> {
    let send = |path: &std::path::Path, bytes: &[u8]| {
        let stream = UnixStream::connect(path).ok();
        if let Some(mut stream) = stream {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
            let _ = stream.write_all(bytes);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut long = b"{\"type\":\"query\",\"query\":\"".to_vec();
    long.resize(11_000_000, b'x');
    long.push(b'\n');
    let rubbish: Vec<u8> = (0..50_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let all: Vec<u8> = sessions
        .iter()
        .flat_map(|session| {
            let ask = json!({ "type": "subscribe", "session_id": session, "detail": "full" });
            format!("{ask}\n").into_bytes()
        })
        .collect();
    // Follows everything, says nothing more and never reads.
    let mut deaf = UnixStream::connect(&server.path).unwrap();
    deaf.write_all(&all).unwrap();
    let silent = UnixStream::connect(&server.path).unwrap();
    vec![
        rudely(server, stop, move |path| send(path, &long)),
        rudely(server, stop, move |path| send(path, &rubbish)),
        rudely(server, stop, move |path| {
            send(path, b"{\"type\":\"half a li")
        }),
        rudely(server, stop, move |path| {
            // Leaves in the middle of its answer.
            send(path, b"{\"type\":\"query\",\"query\":\"count to 2000\"}\n");
        }),
        rudely(server, stop, move |_| {
            let _ = (&deaf, &silent);
            std::thread::sleep(Duration::from_millis(50));
        }),
    ]
}

/// How late this machine wakes a thread at worst, whatever the server does.
fn noise(stop: &Arc<AtomicBool>) -> JoinHandle<Duration> {
    let stop = stop.clone();
    std::thread::spawn(move || {
        let mut worst = Duration::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
            worst = worst.max(begun.elapsed());
        }
        worst
    })
}

/// One that asks again and again how things are. How long it waited each time.
fn probe(server: &Server, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<Duration>> {
    let (mut client, stop) = (server.client(), stop.clone());
    std::thread::spawn(move || {
        let mut delays = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let id = client.ask(json!({ "type": "ps" }));
            loop {
                let (at, reply) = client.next_within(Duration::from_secs(60)).unwrap();
                if reply["id"] == id {
                    delays.push(at.duration_since(begun));
                    break;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        delays
    })
}

#[test]
fn a_hundred_clients_are_not_slowed_by_some_that_do_not_behave() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut talkers: Vec<(Client, String)> = (0..SESSIONS)
        .map(|_| {
            let mut client = server.client();
            let made = client.answer(json!({ "type": "session_create" }));
            (client, string(&made, "session_id"))
        })
        .collect();
    let sessions: Vec<String> = talkers.iter().map(|(_, session)| session.clone()).collect();
    let followers: Vec<Client> = (0..SESSIONS * (EACH - 1))
        .map(|n| {
            let mut client = server.client();
            let session = &sessions[n % SESSIONS];
            let answer = client.answer(json!({ "type": "subscribe", "session_id": session }));
            assert_eq!(answer["type"], "subscribed");
            client
        })
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let rude = rude_ones(&server, &stop, &sessions);
    let (noise, probe) = (noise(&stop), probe(&server, &stop));
    let talking: Vec<JoinHandle<()>> = talkers
        .drain(..)
        .map(|(mut client, session)| {
            std::thread::spawn(move || {
                for turn in 0..TURNS {
                    let words = format!("{session} {turn} {}", "word ".repeat(200).trim_end());
                    let (said, end) = client.query(&format!("echo {words}"));
                    assert!(said == words && end["status"] == "completed", "{end}");
                }
            })
        })
        .collect();
    for thread in talking {
        thread.join().unwrap();
    }
    for (n, mut client) in followers.into_iter().enumerate() {
        let session = &sessions[n % SESSIONS];
        for turn in 0..TURNS {
            for begin in ["echo ", ""] {
                let message = client.until("message");
                let expected = format!("{begin}{session} {turn} ");
                let content = string(&message, "content");
                assert!(content.starts_with(&expected), "{content}");
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    for thread in rude {
        thread.join().unwrap();
    }
    let (worst_of_machine, mut delays) = (noise.join().unwrap(), probe.join().unwrap());
    delays.sort();
    let worst = *delays.last().unwrap();
    // A question and its answer wake four threads, each as late as the machine is.
    let allowed = DELAY + 4 * worst_of_machine;
    assert!(
        worst < allowed,
        "{worst:?} of {} delays (median {:?}), machine {worst_of_machine:?}",
        delays.len(),
        delays[delays.len() / 2]
    );
    assert!(delays.len() > 20, "{}", delays.len());
    assert!(
        server.peak_memory() < 500_000_000,
        "{}",
        server.peak_memory()
    );
    server.end().ok();
}
