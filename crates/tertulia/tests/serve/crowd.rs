//! A hundred clients in twenty sessions, and some misbehaving clients.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Client, Server, string};

const SESSIONS: usize = 20;
/// Clients per session: one sends prompts, the others follow.
const EACH: usize = 5;
const TURNS: usize = 8;
/// Pause between two rounds of misbehaviour, so that the machine's load is not what is tested.
const RUDE_PAUSE: Duration = Duration::from_millis(50);
/// Pause before the next prompt.
const TALK_PAUSE: Duration = Duration::from_millis(100);

/// Repeats a misbehaviour in a thread until `stop` is set.
fn rudely(
    path: &Path,
    stop: &Arc<AtomicBool>,
    mut rude: impl FnMut(&Path) + Send + 'static,
) -> JoinHandle<()> {
    let (path, stop) = (path.to_owned(), stop.clone());
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            rude(&path);
        }
    })
}

pub fn rude_ones(path: &Path, stop: &Arc<AtomicBool>, sessions: &[String]) -> Vec<JoinHandle<()>> {
    let send = |path: &Path, bytes: &[u8]| {
        let stream = UnixStream::connect(path).ok();
        if let Some(mut stream) = stream {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
            let _ = stream.write_all(bytes);
            std::thread::sleep(RUDE_PAUSE);
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
        rudely(path, stop, move |path| send(path, &long)),
        rudely(path, stop, move |path| send(path, &rubbish)),
        rudely(path, stop, move |path| send(path, b"{\"type\":\"half a li")),
        rudely(path, stop, move |path| {
            // Disconnects in the middle of the answer.
            send(path, b"{\"type\":\"query\",\"query\":\"count to 2000\"}\n");
        }),
        rudely(path, stop, move |_| {
            let _ = (&deaf, &silent);
            std::thread::sleep(Duration::from_millis(50));
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
        let (at, reply) = client.next_within(Duration::from_secs(60)).unwrap();
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
            std::thread::sleep(Duration::from_millis(5));
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
pub fn talk(server: &Server, crowd: &mut Crowd) -> Delays {
    let stop = Arc::new(AtomicBool::new(false));
    let probe = probe(server, &stop);
    std::thread::scope(|scope| {
        for (client, session) in &mut crowd.talkers {
            scope.spawn(move || {
                for turn in 0..TURNS {
                    std::thread::sleep(TALK_PAUSE);
                    let words = format!("{session} {turn} {}", "word ".repeat(200).trim_end());
                    let (said, end) = client.query(&format!("echo {words}"));
                    assert!(said == words && end["status"] == "completed", "{end}");
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
