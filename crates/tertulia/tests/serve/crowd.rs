//! A hundred clients in twenty sessions, and some misbehaving clients.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Client, Server, string};
use crate::home::DEADLINE;

const SESSIONS: usize = 20;
/// Clients per session: one sends prompts, the others follow.
const EACH: usize = 5;
const TURNS: usize = 8;

/// Turns of all sessions so far. Misbehaviour keeps pace with them, so that the load of the machine
/// is not what is tested.
#[derive(Default)]
pub struct Turns {
    done: Mutex<usize>,
    changed: Condvar,
}

impl Turns {
    fn count(&self) {
        *self.done.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    /// Waits for the next turn. Returns false after the last.
    fn wait(&self, seen: &mut usize) -> bool {
        let done = self.done.lock().unwrap();
        let is_last = |done: &usize| *done == SESSIONS * TURNS;
        let done = self
            .changed
            .wait_while(done, |done| *done == *seen && !is_last(done))
            .unwrap();
        *seen = *done;
        !is_last(&done)
    }
}

/// Repeats a misbehaviour in a thread, once a turn.
fn rudely(
    path: &Path,
    turns: &Arc<Turns>,
    mut rude: impl FnMut(&Path) + Send + 'static,
) -> JoinHandle<()> {
    let (path, turns) = (path.to_owned(), turns.clone());
    std::thread::spawn(move || {
        let mut seen = 0;
        while turns.wait(&mut seen) {
            rude(&path);
        }
    })
}

/// Starts clients that misbehave until the last turn.
pub fn rude_ones(path: &Path, turns: &Arc<Turns>, sessions: &[String]) -> Vec<JoinHandle<()>> {
    let send = |path: &Path, bytes: &[u8]| {
        let stream = UnixStream::connect(path).ok();
        if let Some(mut stream) = stream {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
            let _ = stream.write_all(bytes);
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
    // Follows all sessions, sends nothing more and never reads.
    let mut deaf = UnixStream::connect(path).unwrap();
    deaf.write_all(&all).unwrap();
    let silent = UnixStream::connect(path).unwrap();
    vec![
        rudely(path, turns, move |path| send(path, &long)),
        rudely(path, turns, move |path| send(path, &rubbish)),
        rudely(path, turns, move |path| {
            send(path, b"{\"type\":\"half a li")
        }),
        rudely(path, turns, move |path| {
            // Disconnects in the middle of the answer.
            send(path, b"{\"type\":\"query\",\"query\":\"count to 2000\"}\n");
        }),
        rudely(path, turns, move |_| {
            let _ = (&deaf, &silent);
        }),
    ]
}

/// How long an unrelated client waited for its answers, shortest first.
pub struct Delays {
    /// Answers from the server's memory: the delay that other clients cause.
    pub memory: Vec<Duration>,
    /// Answers for which the server asks the store, which others write to at the same time.
    pub store: Vec<Duration>,
}

fn delay(client: &mut Client, request: &str) -> Duration {
    let begun = Instant::now();
    let id = client.ask(json!({ "type": request }));
    loop {
        let (at, reply) = client.next_within(DEADLINE).unwrap();
        if reply["id"] == id {
            return at.duration_since(begun);
        }
    }
}

/// Sends `ps` and `session_save` again and again and returns how long each answer took.
fn probe(server: &Server, stop: &Arc<AtomicBool>) -> JoinHandle<Delays> {
    let (mut client, stop) = (server.client().trusting(), stop.clone());
    client.answer(json!({ "type": "session_create" }));
    std::thread::spawn(move || {
        let (mut memory, mut store) = (Vec::new(), Vec::new());
        while !stop.load(Ordering::Relaxed) {
            memory.push(delay(&mut client, "ps"));
            store.push(delay(&mut client, "session_save"));
        }
        memory.sort();
        store.sort();
        Delays { memory, store }
    })
}

/// Clients that send prompts, each in a session of its own, and clients that follow them.
pub struct Crowd {
    pub talkers: Vec<(Client, String)>,
    followers: Vec<(Client, String)>,
}

pub fn gather(server: &Server) -> Crowd {
    let client = || server.client().trusting();
    let talkers: Vec<(Client, String)> = (0..SESSIONS)
        .map(|_| {
            let mut client = client();
            let made = client.answer(json!({ "type": "session_create" }));
            (client, string(&made, "session_id"))
        })
        .collect();
    let followers = (0..SESSIONS * (EACH - 1))
        .map(|n| {
            let mut client = client();
            let session = talkers[n % SESSIONS].1.clone();
            let answer = client.answer(json!({ "type": "subscribe", "session_id": session }));
            assert_eq!(answer["type"], "subscribed");
            (client, session)
        })
        .collect();
    Crowd { talkers, followers }
}

/// Runs all conversations at once and checks that followers receive every message. Returns the
/// delays that an unrelated client measured.
pub fn talk(server: &Server, crowd: &mut Crowd, turns: &Turns) -> Delays {
    let stop = Arc::new(AtomicBool::new(false));
    let probe = probe(server, &stop);
    std::thread::scope(|scope| {
        for (client, session) in &mut crowd.talkers {
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let words = format!("{session} {turn} {}", "word ".repeat(200).trim_end());
                    let (said, end) = client.query(&format!("echo {words}"));
                    assert!(said == words && end["status"] == "completed", "{end}");
                    turns.count();
                }
            });
        }
    });
    for (client, session) in &mut crowd.followers {
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
    probe.join().unwrap()
}
