//! Sealed sessions on every backend: what is written without the key, forks, merges, diverged logs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tertulia_core::entry::{Body, Entry, Kind, NewEntry, Relation};
use tertulia_core::id::SessionId;
use tertulia_core::jsonl;
use tertulia_core::merge::{MergeOrder, Side, merged};
use tertulia_core::seal::{KEY_BYTES, KeyBytes};
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{
    Adopted, Fork, KeyError, KeySource, MergeBase, NewMerge, Redaction, Sessions, Start, Store,
    StoreError, Unlocking,
};
use tertulia_testkit::ask::{assert_sound, now};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{ai, human};
use uuid::Uuid;

/// Wraps every key as it is: what is tested is where words go, not who can read them.
#[derive(Debug)]
struct OneKey;

impl KeySource for OneKey {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        Ok((KeyBytes::new([7; KEY_BYTES]), "seven".to_owned()))
    }

    fn unwrap_key(&self, wrapped: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        assert_eq!(wrapped, "seven");
        Ok(KeyBytes::new([7; KEY_BYTES]))
    }
}

/// Runs a check on each backend, with a handle that has the key and one that has not.
fn on_both(check: impl Fn(&Sessions, &Sessions)) {
    let folder = tempfile::tempdir().unwrap();
    let sqlite: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("tertulia.db")).unwrap());
    let files: Arc<dyn Store> =
        Arc::new(FilesStore::open(&folder.path().join("sessions")).unwrap());
    for store in [sqlite, files] {
        let locked = Sessions::new(store.clone(), still_clock(77), Redaction::On);
        let unlocked = Sessions::new(store.clone(), still_clock(99), Redaction::On);
        check(&unlocked.with_keys(Arc::new(OneKey)), &locked);
        assert_sound(store.as_ref());
    }
}

fn start(number: u128) -> Start {
    Start {
        id: SessionId::new(Uuid::from_u128(number)),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: Some("here".to_owned()),
        project_ids: Vec::new(),
        cwd: None,
    }
}

fn sealed(sessions: &Sessions, number: u128, bodies: Vec<Body>) -> SessionId {
    let start = start(number);
    now(sessions.seal_new(start.id)).unwrap();
    now(sessions.create(&start, bodies)).unwrap().0.id
}

fn said(sessions: &Sessions, id: SessionId) -> Vec<String> {
    let log = now(sessions.load(id)).unwrap();
    assert!(log.damage.is_empty(), "{:?}", log.damage);
    let messages = log.messages();
    messages
        .map(|(_, message)| message.content.clone())
        .collect()
}

fn is_sealed<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::Sealed { .. })),
        "{result:?}"
    );
}

#[test]
fn words_cannot_be_added_without_the_key() {
    on_both(|unlocked, locked| {
        let id = sealed(unlocked, 1, vec![human("one")]);
        let meta = now(locked.row(id)).unwrap().meta;
        assert!(meta.is_locked() && meta.messages == 1);
        is_sealed(now(locked.append(id, meta.head, vec![human("plain")])));
        is_sealed(now(locked.load(id)));
        // Entries that were chained in plain are refused, too.
        let plain = NewEntry {
            id: locked.clock().entry_id(),
            at: locked.clock().now(),
            body: human("plain"),
            redacted: BTreeMap::new(),
            author: None,
        };
        let plain = Entry::chain(&meta.head, vec![plain]).unwrap();
        is_sealed(now(locked.store().append(id, meta.head, &plain)));
        // Without words, changes need no key.
        let operation = locked.clock().entry_id();
        assert!(
            now(locked.trash(id, operation))
                .unwrap()
                .trashed_at
                .is_some()
        );
        assert_eq!(said(unlocked, id), ["one"]);
    });
}

#[test]
fn a_fork_made_without_the_key_opens_with_it() {
    on_both(|unlocked, locked| {
        let id = sealed(unlocked, 2, vec![human("one"), ai("demo", "two")]);
        let fork = Fork {
            id: SessionId::new(Uuid::from_u128(3)),
            at: None,
            title: None,
            relation: Relation::Fork,
        };
        let base = now(locked.row(id)).unwrap().meta;
        now(locked.fork(&base, &fork, Vec::new())).unwrap();
        let meta = now(unlocked.row(fork.id)).unwrap().meta;
        now(unlocked.append(fork.id, meta.head, vec![human("three")])).unwrap();
        assert_eq!(said(unlocked, fork.id), ["one", "two", "three"]);
        // The original may go: the fork repeats its key.
        now(locked.stored().purge(id)).unwrap();
        assert_eq!(said(unlocked, fork.id), ["one", "two", "three"]);
    });
}

#[test]
fn a_diverged_sealed_log_becomes_a_readable_fork_with_the_key_only() {
    on_both(|unlocked, locked| {
        let id = sealed(unlocked, 4, vec![human("one")]);
        let meta = now(unlocked.row(id)).unwrap().meta;
        let lines: Vec<String> = now(unlocked.load_stored(id))
            .unwrap()
            .entries
            .iter()
            .map(|entry| entry.line().to_owned())
            .collect();
        let other = now(unlocked.chain(id, &meta.head, vec![human("elsewhere")])).unwrap();
        let other = format!("{}\n{}\n", lines.join("\n"), other[0].line());
        now(unlocked.append(id, meta.head, vec![human("here")])).unwrap();
        let log = jsonl::read(other.as_bytes()).unwrap();
        is_sealed(now(locked.adopt(&log)));
        let Adopted::Forked { id: fork, .. } = now(unlocked.adopt(&log)).unwrap() else {
            panic!("not forked");
        };
        assert_eq!(said(unlocked, fork), ["one", "elsewhere"]);
        assert_eq!(said(unlocked, id), ["one", "here"]);
    });
}

#[test]
fn a_merge_of_sealed_sessions_is_sealed() {
    on_both(|unlocked, locked| {
        let ours = sealed(unlocked, 5, vec![human("secret one")]);
        let theirs = sealed(unlocked, 6, vec![human("secret two")]);
        let [a, b] = [ours, theirs].map(|id| now(unlocked.row(id)).unwrap().meta);
        let divergence = now(unlocked.diverge(&a, &b)).unwrap();
        let end = |meta: &tertulia_core::session::SessionMeta| tertulia_core::entry::Origin {
            id: meta.id,
            seq: meta.head.seq,
            hash: meta.head.hash,
        };
        let side = |meta, own| Side { meta, own };
        let entries = merged(
            side(&a, &divergence.ours.entries),
            side(&b, &divergence.theirs.entries),
            MergeOrder::Time,
            unlocked.clock().entry_id(),
        );
        let merge = NewMerge {
            id: SessionId::new(Uuid::from_u128(7)),
            title: Some("secret title".to_owned()),
            base: MergeBase::New(start(7)),
            ours: end(&a),
            theirs: end(&b),
        };
        now(unlocked.merge(&merge, entries)).unwrap();
        assert_eq!(said(unlocked, merge.id), ["secret one", "secret two"]);
        let stored = now(locked.load_stored(merge.id)).unwrap();
        assert!(
            stored
                .entries
                .iter()
                .all(|entry| !entry.line().contains("secret"))
        );
        is_sealed(now(locked.load(merge.id)));
    });
}

/// Median time of an append in microseconds, in plain and sealed, taken in turns.
#[test]
#[ignore = "a measurement, which fails if sealing costs more than a fifth of an append"]
fn sealing_costs_little_per_append() {
    on_both(|unlocked, _| {
        let words = "a message of about a kilobyte ".repeat(34);
        let plain = now(unlocked.create(&start(10), vec![])).unwrap().0.id;
        let sealed = sealed(unlocked, 11, vec![]);
        let mut logs = [plain, sealed].map(|id| (id, now(unlocked.row(id)).unwrap().meta.head));
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..400 {
            for ((id, head), times) in logs.iter_mut().zip(&mut times) {
                let begun = Instant::now();
                let entries = now(unlocked.append(*id, *head, vec![human(&words)])).unwrap();
                times.push(begun.elapsed().as_micros());
                *head = entries[0].head();
            }
        }
        let [plain, sealed] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        assert!(
            sealed * 5 < plain * 6,
            "plain {plain} µs, sealed {sealed} µs"
        );
    });
}
