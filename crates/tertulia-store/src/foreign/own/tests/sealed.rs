//! Files of sealed sessions: without the key nothing of them comes in as plain.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::{KeyError, KeySource, Unlocking};
use tertulia_core::entry::{ImportedParent, Message};
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients};

/// One key, which can be taken away.
#[derive(Debug)]
struct OneKey(Arc<AtomicBool>);

impl KeySource for OneKey {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        Ok((KeyBytes::new([7; KEY_BYTES]), "seven".to_owned()))
    }

    fn renew(&self, _: &Recipients, _: &[String]) -> Result<NewKey, KeyError> {
        Ok(NewKey {
            key: KeyBytes::new([8; KEY_BYTES]),
            wrapped: vec!["eight".to_owned()],
            recipients: Vec::new(),
        })
    }

    fn wrap(&self, _: &KeyBytes, _: &str) -> Result<String, KeyError> {
        Ok("seven".to_owned())
    }

    fn unwrap_key(&self, wrapped: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        let number = if wrapped == "seven" { 7 } else { 8 };
        match self.0.load(Ordering::Relaxed) {
            true => Ok(KeyBytes::new([number; KEY_BYTES])),
            false => Err(KeyError("it is not at hand".to_owned())),
        }
    }
}

impl World {
    /// The same store, seen by a program that has the key, or not.
    fn with_key(&self, has_key: bool) -> World {
        let sessions = Sessions::new(
            self.store.clone(),
            self.sessions.clock().clone(),
            Redaction::On,
        );
        World {
            store: self.store.clone(),
            sessions: sessions.with_keys(Arc::new(OneKey(Arc::new(AtomicBool::new(has_key))))),
            seconds: self.seconds.clone(),
        }
    }

    /// Returns true if a word stands in a session that is not sealed.
    fn has_plain(&self, word: &str) -> bool {
        let everything = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let page = Page::first(usize::MAX);
        let rows = block_on(self.sessions.stored().list(&everything, &page)).unwrap();
        rows.rows.iter().any(|row| {
            let log = block_on(self.sessions.load_stored(row.meta.id)).unwrap();
            log.entries.iter().any(|entry| entry.line().contains(word))
        })
    }

    /// A sealed session with one turn of the program.
    fn run_sealed(&self) -> SessionId {
        let id = self.run();
        block_on(self.sessions.seal(id)).unwrap();
        id
    }

    /// The same, of which the answer names the program's request.
    fn run_requests(&self) -> SessionId {
        let id = self.begin();
        self.prompt(id, 10, "do it");
        self.link(id, 11, AGENT, "v");
        let speaker = Speaker::plain(AGENT, SpeakerKind::Ai);
        let message = Message {
            requests: vec!["req-1".to_owned(), "req-2".to_owned()],
            ..plain(&speaker, Role::Assistant, "done".to_owned())
        };
        self.add(id, 20, Body::Message(message));
        block_on(self.sessions.seal(id)).unwrap();
        id
    }
}

const LINES: [(char, i64, &str); 4] = [
    ('u', 12, "do it"),
    ('a', 19, "done"),
    ('u', 30, "marker"),
    ('a', 31, "marker, too"),
];

fn with_usage(mut talk: Foreign, id: &str) -> Foreign {
    talk.said[1].message.usage_id = Some(id.to_owned());
    talk
}

#[test]
fn the_file_of_a_sealed_session_waits_for_its_key() {
    with_each_store(|world| {
        let (locked, open) = (world.with_key(false), world.with_key(true));
        let id = open.run_sealed();
        for lines in [&LINES[..2], &LINES] {
            let taken = locked.take_in(&file("v", lines));
            assert!(taken.is_sealed);
            assert_eq!(taken.adopted, Adopted::Known { id });
        }
        assert_eq!(locked.count(), 1);
        assert!(!locked.take_in(&file("w", &LINES[..2])).is_sealed);
        let taken = open.take_in(&file("v", &LINES));
        assert_eq!(taken.adopted, Adopted::Extended { id, entries: 2 });
        assert_eq!(open.words(id).len(), 4);
        assert!(!open.has_plain("marker"));
        // Both go on: what the file has becomes a sealed fork.
        open.prompt(id, 40, "here");
        let there = [&LINES[..], &[('u', 45, "marker there")]].concat();
        let taken = open.take_in(&file("v", &there)).adopted;
        let Adopted::Forked { id: fork, from, .. } = taken else {
            panic!("{taken:?}");
        };
        assert_eq!(from, id);
        assert_eq!(open.words(fork).last().unwrap(), "you: marker there");
        assert!(!open.has_plain("marker"));
        let again = open.take_in(&file("v", &there)).adopted;
        assert_eq!(again, Adopted::Known { id: fork });
    });
}

/// A fork of the program has another id, and the same first messages or the name of the other one.
#[test]
fn a_fork_in_the_program_is_a_sealed_one() {
    let named = |original: &str| {
        let mut talk = file(original, &LINES);
        talk.source.parent = Some(ImportedParent {
            original: "v".to_owned(),
            relation: ImportedRelation::Fork,
        });
        talk
    };
    let copies = [
        with_usage(file("copy", &LINES), "req-2"),
        named("named copy"),
    ];
    for talk in copies {
        with_each_store(|world| {
            let (locked, open) = (world.with_key(false), world.with_key(true));
            let id = open.run_requests();
            let taken = locked.take_in(&talk);
            assert!(taken.is_sealed && taken.adopted == Adopted::Known { id });
            assert_eq!(locked.count(), 1);
            let taken = open.take_in(&talk).adopted;
            let Adopted::Forked { id: fork, from, .. } = taken else {
                panic!("{taken:?}");
            };
            assert_eq!((fork, from), (talk.id, id));
            assert_eq!(open.words(fork).len(), 4);
            assert_eq!(open.words(id).len(), 2);
            assert!(!open.has_plain("marker"));
            assert_eq!(open.take_in(&talk).adopted, Adopted::Known { id: fork });
            assert!(locked.take_in(&talk).is_sealed);
        });
    }
    // Other usage is of another session.
    with_each_store(|world| {
        let open = world.with_key(true);
        open.run_requests();
        let other = with_usage(file("other", &LINES), "req-9");
        let taken = world.with_key(false).take_in(&other);
        assert!(matches!(taken.adopted, Adopted::Created { .. }));
    });
}

#[test]
fn who_was_removed_reads_nothing_of_a_later_fork() {
    with_each_store(|world| {
        let open = world.with_key(true);
        let id = open.run_requests();
        block_on(open.sessions.remove_recipients(id, &["x".to_owned()])).unwrap();
        open.prompt(id, 40, "later");
        let talk = with_usage(file("copy", &LINES), "req-1");
        let fork = open.take_in(&talk).adopted.id();
        assert_eq!(open.words(fork).len(), 4);
        let meta = block_on(open.sessions.row(fork)).unwrap().meta;
        assert_eq!(meta.keyed.len(), 1);
    });
}

#[test]
fn an_imported_session_that_was_sealed_goes_on_sealed() {
    with_each_store(|world| {
        let (locked, open) = (world.with_key(false), world.with_key(true));
        let id = open.take_in(&file("x", &LINES[..2])).adopted.id();
        block_on(open.sessions.seal(id)).unwrap();
        let grown = file("x", &LINES);
        assert!(locked.take_in(&grown).is_sealed);
        let taken = open.take_in(&grown).adopted;
        assert_eq!(taken, Adopted::Extended { id, entries: 2 });
        assert!(!open.has_plain("marker"));
        // A task that it delegated.
        let mut task = file("x/agent", &[('u', 33, "marker task"), ('a', 34, "ok")]);
        task.source.parent = Some(ImportedParent {
            original: "x".to_owned(),
            relation: ImportedRelation::Subagent,
        });
        assert!(locked.take_in(&task).is_sealed);
        let child = open.take_in(&task).adopted;
        assert!(matches!(child, Adopted::Created { .. }), "{child:?}");
        assert!(!open.has_plain("marker"));
        assert_eq!(open.words(child.id()).len(), 2);
        let seal = block_on(open.sessions.row(child.id())).unwrap().meta.seal;
        assert_eq!(seal.unwrap().origin, child.id());
        assert_eq!(
            open.take_in(&task).adopted,
            Adopted::Known { id: child.id() }
        );
        block_on(open.sessions.unseal(id)).unwrap();
        assert_eq!(locked.words(child.id()).len(), 2);
    });
}

/// A task that an agent delegated shares no entries with its session, and is sealed with it.
#[test]
fn delegated_tasks_are_sealed_with_their_session() {
    with_each_store(|world| {
        let open = world.with_key(true);
        let id = open.take_in(&file("x", &LINES)).adopted.id();
        let mut task = file("x/agent", &[('u', 13, "marker task"), ('a', 14, "ok")]);
        task.source.parent = Some(ImportedParent {
            original: "x".to_owned(),
            relation: ImportedRelation::Subagent,
        });
        let child = open.take_in(&task).adopted.id();
        let fork = crate::Fork {
            id: SessionId::new(Uuid::from_u128(5)),
            at: None,
            title: None,
            relation: Relation::Fork,
        };
        let meta = block_on(open.sessions.row(child)).unwrap().meta;
        block_on(open.sessions.fork(&meta, &fork, Vec::new())).unwrap();
        open.prompt(fork.id, 50, "marker fork");
        let ids = [id, child, fork.id];
        let lines = || -> Vec<Vec<String>> {
            let log = |id| block_on(open.sessions.load_stored(id)).unwrap().entries;
            let lines = ids.map(log).into_iter().map(|entries| {
                let lines = entries.iter().map(|entry| entry.line().to_owned());
                lines.collect()
            });
            lines.collect()
        };
        let plain = lines();
        block_on(open.sessions.seal(id)).unwrap();
        assert!(!open.has_plain("marker"));
        let origins = ids.map(|id| {
            let meta = block_on(open.sessions.row(id)).unwrap().meta;
            meta.seal.unwrap().origin
        });
        // Each family of shared entries is one for itself.
        assert_eq!(origins, [id, child, child]);
        // Fresh programs read them, too, and list them as children.
        let fresh = world.with_key(true);
        assert_eq!(fresh.words(id).len(), 4);
        assert_eq!(fresh.words(child), ["you: marker task", "codex: ok"]);
        assert_eq!(fresh.words(fork.id).len(), 3);
        assert!(world.with_key(false).take_in(&task).is_sealed);
        block_on(fresh.sessions.unseal(id)).unwrap();
        assert_eq!(lines(), plain);
    });
}
