//! Sealed sessions on every backend: what is written without the key, forks, merges, diverged logs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tertulia_core::entry::{Body, Compacted, Entry, Kind, NewEntry, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::merge::{MergeOrder, Side, merged};
use tertulia_core::query::{Filter, Page};
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients};
use tertulia_core::session::SessionMeta;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{
    Adopted, Fork, KeyError, KeySource, MergeBase, NewMerge, Progress, Redaction, Sessions, Start,
    Store, StoreError, Unlocking,
};
use tertulia_testkit::ask::{assert_sound, now, query};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{ai, human};
use tertulia_testkit::postgres::Schema;
use uuid::Uuid;

use crate::sync::{metas, push, sync};

/// Wraps every key as it is: what is tested is where words go, not who can read them.
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

    fn unwrap_key(&self, wrapped: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        assert_eq!(wrapped, "seven");
        Ok(KeyBytes::new([7; KEY_BYTES]))
    }
}

/// Makes another key each time, and wraps it as its number.
#[derive(Debug, Default)]
struct ManyKeys(AtomicU8);

impl KeySource for ManyKeys {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Ok((KeyBytes::new([number; KEY_BYTES]), number.to_string()))
    }

    fn renew(&self, _: &Recipients, _: &[String]) -> Result<NewKey, KeyError> {
        Err(KeyError("its keys do not change".to_owned()))
    }

    fn wrap(&self, _: &KeyBytes, _: &str) -> Result<String, KeyError> {
        Err(KeyError("its keys do not change".to_owned()))
    }

    fn unwrap_key(&self, wrapped: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        let number = wrapped.parse().map_err(|_| KeyError("no key".to_owned()))?;
        Ok(KeyBytes::new([number; KEY_BYTES]))
    }
}

/// Runs a check on each backend, with a handle that has the key and one that has not.
fn on_each(check: impl Fn(&Sessions, &Sessions)) {
    on_each_store(|store| {
        let locked = Sessions::new(store.clone(), still_clock(77), Redaction::On);
        check(&with_key(store, 99), &locked);
    });
}

/// Runs a check on each backend, which is sound afterwards.
fn on_each_store(check: impl Fn(Arc<dyn Store>)) {
    on_each_store_unchecked(|store| {
        check(store.clone());
        assert_sound(store.as_ref());
    });
}

/// Runs a check on each backend.
pub fn on_each_store_unchecked(check: impl Fn(Arc<dyn Store>)) {
    let folder = tempfile::tempdir().unwrap();
    let sqlite: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("tertulia.db")).unwrap());
    let files: Arc<dyn Store> =
        Arc::new(FilesStore::open(&folder.path().join("sessions")).unwrap());
    let schema = Schema::new();
    let postgres: Arc<dyn Store> = Arc::new(schema.open_store().unwrap());
    for store in [sqlite, files, postgres] {
        check(store);
    }
}

pub fn without_key(store: Arc<dyn Store>, seed: u64) -> Sessions {
    Sessions::new(store, still_clock(seed), Redaction::On)
}

pub fn with_key(store: Arc<dyn Store>, seed: u64) -> Sessions {
    let sessions = Sessions::new(store, still_clock(seed), Redaction::On);
    sessions.with_keys(Arc::new(OneKey))
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
        terms: None,
    }
}

pub fn sealed(sessions: &Sessions, number: u128, bodies: Vec<Body>) -> SessionId {
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
    on_each(|unlocked, locked| {
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
    on_each(|unlocked, locked| {
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
fn a_diverged_sealed_log_becomes_a_fork_without_the_key() {
    on_each(|unlocked, locked| {
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
        let Adopted::Forked { id: fork, .. } = now(locked.adopt(&log)).unwrap() else {
            panic!("not forked");
        };
        assert_eq!(said(unlocked, fork), ["one", "elsewhere"]);
        assert_eq!(said(unlocked, id), ["one", "here"]);
        is_sealed(now(locked.load(fork)));
    });
}

/// The longest log whose messages are these.
fn session_with(sessions: &Sessions, words: &[&str]) -> SessionId {
    let metas = metas(sessions.stored());
    let mut ids = metas.iter().map(|meta| meta.id);
    let found = ids.find(|id| said(sessions, *id) == words);
    found.unwrap_or_else(|| panic!("no session with {words:?}"))
}

fn compacted(upto: Seq) -> Body {
    Body::Compacted(Compacted {
        upto,
        summary: "they met".to_owned(),
        agent: "demo".to_owned(),
        model: None,
        usage: None,
        thread: None,
    })
}

fn go_on(sessions: &Sessions, id: SessionId, bodies: Vec<Body>) {
    let meta = now(sessions.row(id)).unwrap().meta;
    now(sessions.append(id, meta.head, bodies)).unwrap();
}

/// Sync needs no key: it compares and moves sealed entries by their hashes.
#[test]
fn branches_of_a_sealed_session_stay_readable_in_every_store() {
    let stores = [(); 3].map(|()| Arc::new(SqliteStore::in_memory().unwrap()) as Arc<dyn Store>);
    let [one, other, third] = [0, 1, 2].map(|n| with_key(stores[n].clone(), 7 + n as u64));
    let id = sealed(&one, 8, vec![human("hello"), ai("demo", "yes")]);
    push(one.stored(), other.stored());
    for (sessions, words) in [(&one, "here"), (&other, "there")] {
        go_on(sessions, id, vec![human(words)]);
    }
    sync(one.stored(), other.stored());
    // Each goes on in what the other began, with a summary that names an earlier entry.
    let at = session_with(&one, &["hello", "yes", "there"]);
    let upto = now(one.row(at)).unwrap().meta.head.seq;
    go_on(&one, at, vec![compacted(upto), ai("demo", "and back")]);
    let at = session_with(&other, &["hello", "yes", "here"]);
    go_on(&other, at, vec![ai("demo", "too")]);
    sync(one.stored(), other.stored());
    sync(other.stored(), third.stored());
    for sessions in [&one, &other, &third] {
        session_with(sessions, &["hello", "yes", "here", "too"]);
        let at = session_with(sessions, &["hello", "yes", "there", "and back"]);
        // The summary covers the same entries everywhere.
        let log = now(sessions.load(at)).unwrap();
        let upto = log.entries.iter().find_map(|entry| match &entry.body {
            Body::Compacted(compacted) => Some(compacted.upto),
            _ => None,
        });
        let last = log
            .messages()
            .find(|(entry, _)| Some(entry.seq) == upto)
            .map(|(_, message)| message.content.clone());
        assert_eq!(last.as_deref(), Some("there"));
        assert_sound(sessions.stored());
    }
    // A fork that the user makes of such a branch shares its entries, and can be sealed elsewhere.
    let branch = session_with(&one, &["hello", "yes", "there", "and back"]);
    let branch = now(one.row(branch)).unwrap().meta;
    let fork = Fork {
        id: SessionId::new(Uuid::from_u128(9)),
        at: None,
        title: Some("mine".to_owned()),
        relation: Relation::Fork,
    };
    now(one.fork(&branch, &fork, vec![human("on")])).unwrap();
    sync(one.stored(), third.stored());
    for sessions in [&one, &third] {
        let words = ["hello", "yes", "there", "and back", "on"];
        assert_eq!(said(sessions, fork.id), words);
    }
}

#[test]
fn a_session_is_sealed_and_unsealed_in_place() {
    on_each(|unlocked, locked| {
        let (meta, _) = now(unlocked.create(&start(12), vec![human("a secret word")])).unwrap();
        let plain = now(locked.load_stored(meta.id)).unwrap().entries;
        let found = |sessions: &Sessions| hits(sessions, "secret");
        assert_eq!(found(locked), 1);
        assert!(now(unlocked.seal(meta.id)).unwrap().seal.is_some());
        assert_eq!((found(locked), found(unlocked)), (0, 1));
        is_sealed(now(locked.load(meta.id)));
        assert_eq!(said(unlocked, meta.id), ["a secret word"]);
        let head = now(unlocked.row(meta.id)).unwrap().meta.head;
        let stale = now(unlocked.stored().replace(meta.id, meta.head, &plain));
        assert!(matches!(stale, Err(StoreError::Conflict { head: there, .. }) if there == head));
        assert!(now(unlocked.unseal(meta.id)).unwrap().seal.is_none());
        assert_eq!(now(locked.load_stored(meta.id)).unwrap().entries, plain);
        assert_eq!(found(locked), 1);
        // A fork shares its entries, and is sealed with it.
        let fork = Fork {
            id: SessionId::new(Uuid::from_u128(13)),
            at: None,
            title: None,
            relation: Relation::Fork,
        };
        let meta = now(unlocked.row(meta.id)).unwrap().meta;
        now(unlocked.fork(&meta, &fork, Vec::new())).unwrap();
        assert!(now(unlocked.seal(meta.id)).unwrap().seal.is_some());
        is_sealed(now(locked.load(fork.id)));
        assert_eq!(found(locked), 0);
        assert_eq!(said(unlocked, fork.id), ["a secret word"]);
        // They share a key, and so the hashes of what they share.
        let [ours, theirs] = [meta.id, fork.id].map(|id| now(locked.load_stored(id)).unwrap());
        assert_eq!(ours.entries[..2], theirs.entries[..2]);
        now(unlocked.unseal(meta.id)).unwrap();
        assert_eq!(said(locked, fork.id), ["a secret word"]);
    });
}

#[test]
fn a_fork_with_a_title_is_unsealed_with_its_session() {
    on_each(|unlocked, locked| {
        let id = sealed(unlocked, 14, vec![human("one")]);
        let fork = Fork {
            id: SessionId::new(Uuid::from_u128(15)),
            at: None,
            title: Some("a title".to_owned()),
            relation: Relation::Fork,
        };
        let base = now(unlocked.row(id)).unwrap().meta;
        now(unlocked.fork(&base, &fork, vec![human("two")])).unwrap();
        now(unlocked.unseal(id)).unwrap();
        let meta = now(locked.row(fork.id)).unwrap().meta;
        assert!(meta.seal.is_none());
        assert_eq!(meta.title.as_deref(), Some("a title"));
        assert_eq!(said(locked, fork.id), ["one", "two"]);
    });
}

/// A server keeps keys in memory, while commands seal and unseal its sessions.
#[test]
fn what_another_program_sealed_again_is_opened_with_its_new_key() {
    on_each_store(|stored| {
        let keys = Arc::new(ManyKeys::default());
        let [server, command] = [21, 22].map(|seed| {
            let sessions = Sessions::new(stored.clone(), still_clock(seed), Redaction::On);
            sessions.with_keys(keys.clone())
        });
        let (meta, _) = now(server.create(&start(20), vec![human("an ocelot")])).unwrap();
        assert_eq!(hits(&server, "ocelot"), 1);
        now(command.seal(meta.id)).unwrap();
        assert_eq!(hits(&server, "ocelot"), 1);
        assert_eq!(said(&server, meta.id), ["an ocelot"]);
        now(command.unseal(meta.id)).unwrap();
        now(command.seal(meta.id)).unwrap();
        assert_eq!(said(&server, meta.id), ["an ocelot"]);
        // What is written now can be read by all.
        go_on(&server, meta.id, vec![human("precious")]);
        assert_eq!(said(&command, meta.id), ["an ocelot", "precious"]);
        // A writer that has not looked since finds another end, and writes nothing.
        let head = now(server.row(meta.id)).unwrap().meta.head;
        now(command.unseal(meta.id)).unwrap();
        let late = now(server.append(meta.id, head, vec![human("late")]));
        assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
        assert_eq!(said(&command, meta.id), ["an ocelot", "precious"]);
    });
}

#[test]
fn rows_are_kept_encrypted_and_continued() {
    on_each_store(|stored| {
        let unlocked = &with_key(stored.clone(), 99);
        let id = sealed(
            unlocked,
            30,
            vec![human("the first xyzzy"), ai("demo", "yes")],
        );
        let row = |seed| {
            let fresh = with_key(stored.clone(), seed);
            let rows = now(fresh.store().list(&Filter::default(), &Page::first(100))).unwrap();
            let found = rows.rows.into_iter().find(|row| row.meta.id == id);
            found.unwrap().meta
        };
        assert_eq!(row(41).title.as_deref(), Some("the first xyzzy"));
        let file = stored
            .derived_file("sealed-rows")
            .unwrap()
            .join(id.to_string());
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(!kept.contains("xyzzy") && !kept.contains("demo"), "{kept}");
        // The kept row is continued: only the new entries are read.
        let operation = unlocked.clock().entry_id();
        now(unlocked.rename(id, "another xyzzy", operation)).unwrap();
        go_on(unlocked, id, vec![human("more")]);
        let meta = row(42);
        assert_eq!(meta.title.as_deref(), Some("another xyzzy"));
        assert_eq!(
            (meta.messages, meta.agents.as_slice()),
            (3, &["demo".to_owned()][..])
        );
        let log = now(unlocked.load(id)).unwrap();
        assert_eq!(meta, SessionMeta::of(id, &log.entries));
        // A fork begins with what its original was.
        let fork = Fork {
            id: SessionId::new(Uuid::from_u128(31)),
            at: None,
            title: None,
            relation: Relation::Fork,
        };
        let (forked, _) = now(unlocked.fork(&meta, &fork, Vec::new())).unwrap();
        assert_eq!(forked.title.as_deref(), Some("another xyzzy (fork)"));
        // An altered row is not believed.
        std::fs::write(&file, kept.replace("data\":\"", "data\":\"AAAA")).unwrap();
        assert_eq!(row(43), meta);
        now(unlocked.store().purge(id)).unwrap();
        assert!(!file.exists());
    });
}

fn hits(sessions: &Sessions, words: &str) -> usize {
    let hits = now(sessions.store().search(&query(words), &Progress::unseen()));
    hits.unwrap().hits.len()
}

#[test]
fn a_merge_of_sealed_sessions_is_sealed() {
    on_each(|unlocked, locked| {
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

/// Makes a fork of a session while its key is made: its forks were listed before.
#[derive(Debug)]
struct ForksMeanwhile {
    sessions: Sessions,
    id: SessionId,
}

impl KeySource for ForksMeanwhile {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        let base = now(self.sessions.row(self.id)).unwrap().meta;
        let fork = Fork {
            id: SessionId::new(Uuid::from_u128(71)),
            at: None,
            title: None,
            relation: Relation::Fork,
        };
        match now(self.sessions.fork(&base, &fork, vec![human("meanwhile")])) {
            Ok(_) | Err(StoreError::Exists(_)) => OneKey.make(),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn renew(&self, recipients: &Recipients, wrapped: &[String]) -> Result<NewKey, KeyError> {
        OneKey.renew(recipients, wrapped)
    }

    fn wrap(&self, key: &KeyBytes, recipient: &str) -> Result<String, KeyError> {
        OneKey.wrap(key, recipient)
    }

    fn unwrap_key(&self, wrapped: &str, unlocking: Unlocking) -> Result<KeyBytes, KeyError> {
        OneKey.unwrap_key(wrapped, unlocking)
    }
}

#[test]
fn a_fork_that_is_made_while_its_session_is_sealed_is_sealed_too() {
    on_each_store(|store| {
        let plain = without_key(store.clone(), 70);
        let id = now(plain.create(&start(70), vec![human("one")]))
            .unwrap()
            .0
            .id;
        let forking = ForksMeanwhile {
            sessions: plain.clone(),
            id,
        };
        let sessions = without_key(store, 72).with_keys(Arc::new(forking));
        now(sessions.seal(id)).unwrap();
        for meta in metas(sessions.stored()) {
            assert!(meta.seal.is_some(), "{meta:?}");
        }
        let fork = SessionId::new(Uuid::from_u128(71));
        assert_eq!(said(&sessions, fork), ["one", "meanwhile"]);
    });
}
