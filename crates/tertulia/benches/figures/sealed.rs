//! Sealed sessions: what encryption adds to an append, against one in plain in the same run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tertulia_core::entry::{Head, Kind};
use tertulia_core::id::SessionId;
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients};
use tertulia_store::{KeyError, KeySource, Redaction, Sessions, Start, Unlocking};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use uuid::Uuid;

use crate::append::{cpu_time, percentile};
use crate::logs::{BACKENDS, MESSAGE, open, said, text};
use crate::table::Table;

const ROUNDS: usize = 9;
/// Appends to each session in a round.
const APPENDS: usize = 200;

/// Wraps a key as it is: a session's key is unwrapped once, not at each append.
#[derive(Debug)]
struct OneKey;

impl KeySource for OneKey {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        Ok((KeyBytes::new([7; KEY_BYTES]), "seven".to_owned()))
    }

    fn renew(&self, _: &Recipients, _: &[String]) -> Result<NewKey, KeyError> {
        Err(KeyError("there is only one key".to_owned()))
    }

    fn wrap(&self, _: &KeyBytes, _: &str) -> Result<String, KeyError> {
        Err(KeyError("there is only one key".to_owned()))
    }

    fn unwrap_key(&self, _: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        Ok(KeyBytes::new([7; KEY_BYTES]))
    }
}

/// A session, where it ends, and what the appends of a round took.
struct Measured {
    id: SessionId,
    head: Head,
    walls: Vec<Duration>,
    cpu: Duration,
}

impl Measured {
    fn new(sessions: &Sessions, is_sealed: bool) -> Measured {
        let start = Start {
            id: SessionId::new(Uuid::now_v7()),
            kind: Kind::Chat,
            title: None,
            team: None,
            project: Some("bench".to_owned()),
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
        };
        if is_sealed {
            now(sessions.seal_new(start.id)).unwrap();
        }
        let (meta, _) = now(sessions.create(&start, Vec::new())).unwrap();
        assert_eq!(meta.seal.is_some(), is_sealed);
        Measured {
            id: meta.id,
            head: meta.head,
            walls: Vec::new(),
            cpu: Duration::ZERO,
        }
    }

    fn append(&mut self, sessions: &Sessions, number: u64) {
        let body = said(number, text(number, MESSAGE)).body;
        let (cpu, started) = (cpu_time(), Instant::now());
        let entries = now(sessions.append(self.id, self.head, vec![body])).unwrap();
        self.walls.push(started.elapsed());
        self.cpu += cpu_time() - cpu;
        self.head = entries.last().unwrap().head();
    }

    /// Returns the median wall time in seconds, and begins another round.
    fn median(&mut self) -> f64 {
        percentile(&std::mem::take(&mut self.walls), 50)
    }

    fn cpu_ms(&self) -> f64 {
        self.cpu.as_secs_f64() * 1000.0 / (ROUNDS * APPENDS) as f64
    }
}

pub fn measure(table: &mut Table) {
    for backend in BACKENDS {
        println!("sealed, {backend}");
        let folder = tempfile::tempdir_in(".").unwrap();
        let sessions = Sessions::new(open(backend, folder.path()), still_clock(7), Redaction::On);
        let sessions = sessions.with_keys(Arc::new(OneKey));
        let mut plain = Measured::new(&sessions, false);
        let mut sealed = Measured::new(&sessions, true);
        let mut ratios = Vec::new();
        for round in 0..ROUNDS as u64 {
            // One after the other, so that both see the same disk and the same load.
            for number in 0..APPENDS as u64 {
                plain.append(&sessions, round + number);
                sealed.append(&sessions, round + number);
            }
            ratios.push(sealed.median() / plain.median());
        }
        ratios.sort_by(f64::total_cmp);
        table.at_most(
            &format!("{backend}: sealed append to plain, wall p50"),
            ratios[ROUNDS / 2],
            1.2,
            "×",
        );
        for (name, measured) in [("plain", &plain), ("sealed", &sealed)] {
            let name = format!("{backend}: {name} append, processor");
            table.fact(&name, measured.cpu_ms(), "ms");
        }
    }
}
