//! Comparing two long sessions.

use std::process::{Command, Stdio};
use std::time::Instant;

use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::SessionId;
use tertulia_store::{NewSession, Store};
use tertulia_testkit::ask::now;
use uuid::Uuid;

use crate::append::shown;
use crate::logs::{BACKENDS, open, opening, said, text};
use crate::table::Table;

const MESSAGES: u64 = 100_000;
const RUNS: usize = 5;

/// Creates a session in which each message with a number divisible by `edited` has other words.
fn session(store: &dyn Store, edited: u64) -> SessionId {
    let id = SessionId::new(Uuid::now_v7());
    let first = Entry::chain(&Head::START, vec![opening(id, 0, "bench")]).unwrap();
    let new = NewSession {
        id,
        base: None,
        entries: first,
    };
    let mut head = now(store.create(&new)).unwrap();
    for start in (0..MESSAGES).step_by(2000) {
        let messages = (start..start + 2000).map(|number| {
            let mut content = text(number, 250);
            if number.is_multiple_of(edited) {
                content.push_str(&format!("edited {edited}"));
            }
            said(number, content)
        });
        let entries = Entry::chain(&head, messages.collect()).unwrap();
        head = now(store.append(id, head, &entries)).unwrap();
    }
    id
}

/// Measures `diff` of two sessions that share no entry, with the start of the program.
pub fn measure(table: &mut Table) {
    for backend in BACKENDS {
        println!("diff, {backend}");
        let folder = tempfile::tempdir_in(".").unwrap();
        let store = open(backend, folder.path());
        let ids = [7, 11].map(|edited| session(store.as_ref(), edited).to_string());
        drop(store);
        let url = shown(backend, folder.path());
        let run = || {
            let started = Instant::now();
            let status = Command::new(env!("CARGO_BIN_EXE_tertulia"))
                .args(["--store", &url, "diff", &ids[0], &ids[1]])
                .env_clear()
                .env("HOME", folder.path())
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(1), "the sessions differ");
            started.elapsed().as_secs_f64()
        };
        let best = (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min);
        let name = format!("{backend}: diff of two sessions of 100 000 messages, with start");
        table.at_most(&name, best, 2.0, "s");
    }
}
