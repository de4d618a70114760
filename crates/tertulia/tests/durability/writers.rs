//! Eight processes, eight sessions, one store: no process fails, no process starves.
//!
//! A writer is this test binary, run again with a variable that names the store.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind, Message, Role, Speaker, SpeakerKind};
use tertulia_store::{Redaction, Sessions, Start};
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

use super::world::{Backend, Place, world};
use crate::home::{DEADLINE, open_store};

/// Variable that makes this binary a writer and names its store.
const STORE: &str = "TERTULIA_TEST_WRITER";
/// Variable with the number of appends; without it, a writer writes until its input ends.
const APPENDS: &str = "TERTULIA_TEST_APPENDS";

const WRITERS: usize = 8;
/// Appends of the slowest writer after which all of them end. How long each waits, `./bench writers`
/// measures.
const ENOUGH: u64 = 200;

/// Returns a command that runs this binary, as the test of this name in `durability`, as a writer.
pub fn writer(place: &Place, test: &str, appends: Option<u32>) -> Command {
    let mut command = place.bare(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("durability::{test}")])
        .args(["--nocapture", "--test-threads=1"])
        .env(STORE, place.url())
        .stdin(Stdio::piped())
        .stderr(Stdio::inherit());
    if let Some(appends) = appends {
        command.env(APPENDS, appends.to_string());
    }
    command
}

/// Writes and returns true if this process is a writer.
pub fn is_writer() -> bool {
    let Ok(url) = std::env::var(STORE) else {
        return false;
    };
    write_to(&url);
    true
}

fn tell(value: &Value) {
    let mut stdout = std::io::stdout().lock();
    // The test harness begins a line before the test and does not end it.
    writeln!(stdout, "\n{value}").unwrap();
}

/// Prints `ready`, waits for a line, appends, and prints an acknowledgement each time.
fn write_to(url: &str) {
    let clock = Clock::new(jiff::Timestamp::now, Uuid::now_v7);
    let sessions = Sessions::new(open_store(url), clock, Redaction::Off);
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: Some("a writer's".into()),
        team: None,
        project: Some("dir:/writers".into()),
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    let (meta, _) = block_on(sessions.create(&start, Vec::new())).unwrap();
    let mut head = meta.head;
    tell(&json!({ "ready": start.id }));
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
    let limit: u64 = std::env::var(APPENDS).map_or(u64::MAX, |count| count.parse().unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    if limit == u64::MAX {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            is_over.store(true, Ordering::Relaxed);
        });
    }
    let mut appends = 0;
    while appends < limit && !is_over.load(Ordering::Relaxed) {
        let words = format!("the words of append {appends}: {}", "so on ".repeat(40));
        let entries = block_on(sessions.append(start.id, head, vec![said(words)]))
            .unwrap_or_else(|error| panic!("append {appends} failed: {error:?}"));
        head = entries.last().unwrap().head();
        appends += 1;
        if limit < u64::MAX {
            tell(&json!({ "durable": appends }));
        } else if appends == ENOUGH {
            tell(&json!({ "enough": appends }));
        }
    }
    tell(&json!({ "session": start.id, "appends": appends }));
}

fn said(content: String) -> Body {
    Body::Message(Message {
        speaker: Speaker::plain("writer", SpeakerKind::Human),
        role: Role::User,
        content,
        reasoning: None,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        usage_id: None,
        requests: Vec::new(),
        model: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    })
}

struct Writer {
    child: Child,
    stdin: Option<ChildStdin>,
    said: BufReader<ChildStdout>,
}

impl Writer {
    fn start(place: &Place, test: &str) -> Writer {
        let mut child = writer(place, test, None).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let stdin = child.stdin.take();
        Writer { child, stdin, said }
    }

    /// Reads until an object with this key is printed.
    fn hear(&mut self, key: &str) -> Value {
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0, "a writer ended before it said {key:?}");
            match serde_json::from_str::<Value>(&line) {
                Ok(value) if value.get(key).is_some() => return value,
                _ => {}
            }
        }
    }

    /// Reads the harness's remaining output; otherwise the writer would block on a full pipe.
    fn finish(mut self) {
        std::io::copy(&mut self.said, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success(), "a writer failed");
    }
}

/// Kills writers that hang, unless the returned sender is dropped in time.
fn watch(writers: &[Writer]) -> mpsc::Sender<()> {
    let pids: Vec<_> = writers
        .iter()
        .map(|writer| Pid::from_child(&writer.child))
        .collect();
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        if waiting.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("the writers hang: they are killed after {DEADLINE:?}");
            for pid in pids {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    });
    done
}

/// Lets eight processes write, up to three times until all get about the same share: a store that
/// starves a writer does so every time, a machine whose cores are taken only now and then.
fn eight(backend: Backend, test: &str) {
    if is_writer() {
        return;
    }
    let unfair: Vec<String> = (0..3).map_while(|_| shares(backend, test).err()).collect();
    assert!(unfair.len() < 3, "a writer was starved: {unfair:#?}");
}

/// Lets eight processes write and checks what they wrote. Fails with the figures if one of them got
/// less than a third of what another got.
fn shares(backend: Backend, test: &str) -> Result<(), String> {
    let (_root, place) = world(backend);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::start(&place, test)).collect();
    let watched = watch(&writers);
    for writer in &mut writers {
        writer.hear("ready");
    }
    // All writers start together, so that they compete from the first append.
    for writer in &mut writers {
        writeln!(writer.stdin.as_mut().unwrap(), "go").unwrap();
    }
    // A writer that gets no turn at all never has enough.
    for writer in &mut writers {
        writer.hear("enough");
    }
    for writer in &mut writers {
        writer.stdin = None;
    }
    let results: Vec<Value> = writers
        .iter_mut()
        .map(|writer| writer.hear("appends"))
        .collect();
    writers.into_iter().for_each(Writer::finish);
    drop(watched);
    let counts: Vec<u64> = results
        .iter()
        .map(|result| result["appends"].as_u64().unwrap())
        .collect();
    let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
    let measured = format!(
        "{backend:?}: {} appends by {WRITERS} processes, {least} to {most} each",
        counts.iter().sum::<u64>()
    );
    eprintln!("{measured}");
    place.assert_sound(&measured);
    for result in &results {
        let shown = place.show(result["session"].as_str().unwrap()).unwrap();
        assert_eq!(shown["messages"], result["appends"], "{measured}");
    }
    match least * 3 >= most {
        true => Ok(()),
        false => Err(measured),
    }
}

#[test]
fn eight_writers_share_a_database() {
    eight(Backend::Sqlite, "writers::eight_writers_share_a_database");
}

#[test]
fn eight_writers_share_a_folder() {
    eight(Backend::Files, "writers::eight_writers_share_a_folder");
}
