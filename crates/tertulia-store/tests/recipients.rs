//! Sealed sessions whose readers change: who can read which entries, in every backend and after copies.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tertulia_core::entry::{Body, Entry, Head, Keyed, NewEntry, Numbering, Origin, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::merge::{MergeOrder, Side, merged};
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients, SessionKeys};
use tertulia_core::session::SessionMeta;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::sync::Branches;
use tertulia_store::{
    CheckMode, Doing, Draft, Fork, KeyError, KeySource, MergeBase, NewMerge, Progress, Redaction,
    Sessions, Store, StoreError, Unlocking,
};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{ai, human};
use uuid::Uuid;

use crate::sealed::{on_each_store_unchecked, sealed};
use crate::sync::{metas, move_all, push, sync};

/// Number of the next key that anybody makes.
static KEYS: AtomicU8 = AtomicU8::new(1);

/// Keys of one person. A wrapped key names those who can unwrap it, and its number.
#[derive(Debug)]
struct Person(&'static str);

fn wrapped(number: u8, names: &[String]) -> String {
    format!("{number}:{}", names.join(","))
}

fn make(names: &[String]) -> (KeyBytes, String) {
    let number = KEYS.fetch_add(1, Ordering::Relaxed);
    (KeyBytes::new([number; KEY_BYTES]), wrapped(number, names))
}

impl KeySource for Person {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        Ok(make(&[self.0.to_owned()]))
    }

    fn renew(&self, recipients: &Recipients, _: &[String]) -> Result<NewKey, KeyError> {
        let mut names = recipients.known.clone();
        names.push(self.0.to_owned());
        names.retain(|name| !recipients.removed.contains(name));
        names.sort();
        names.dedup();
        let (key, wrapped) = make(&names);
        Ok(NewKey {
            key,
            wrapped: vec![wrapped],
            recipients: names,
        })
    }

    fn wrap(&self, key: &KeyBytes, recipient: &str) -> Result<String, KeyError> {
        Ok(wrapped(key[0], &[recipient.to_owned()]))
    }

    fn unwrap_key(&self, wrapped: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        let other = || KeyError(format!("it is not for {}", self.0));
        let (number, names) = wrapped.split_once(':').ok_or_else(other)?;
        match names.split(',').any(|name| name == self.0) {
            true => Ok(KeyBytes::new([number.parse().unwrap(); KEY_BYTES])),
            false => Err(other()),
        }
    }
}

fn of(store: &Arc<dyn Store>, name: &'static str) -> Sessions {
    let seed = 100 + name.len() as u64;
    let sessions = Sessions::new(store.clone(), still_clock(seed), Redaction::On);
    sessions.with_keys(Arc::new(Person(name)))
}

fn meta(sessions: &Sessions, id: SessionId) -> SessionMeta {
    now(sessions.row(id)).unwrap().meta
}

fn say(sessions: &Sessions, id: SessionId, words: &str) {
    let head = meta(sessions, id).head;
    now(sessions.append(id, head, vec![human(words)])).unwrap();
}

/// Returns what a person reads in a session; `None` if it is sealed to them.
fn read(sessions: &Sessions, id: SessionId) -> Option<Vec<String>> {
    let log = match now(sessions.load(id)) {
        Err(StoreError::Sealed { .. }) => return None,
        log => log.unwrap(),
    };
    assert!(log.damage.is_empty(), "{:?}", log.damage);
    let messages = log.messages();
    Some(messages.map(|(_, it)| it.content.clone()).collect())
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|&word| word.to_owned()).collect())
}

fn fork(number: u128, at: Option<Seq>) -> Fork {
    Fork {
        id: SessionId::new(Uuid::from_u128(number)),
        at,
        title: Some("a fork".to_owned()),
        relation: Relation::Fork,
    }
}

fn in_memory() -> Arc<dyn Store> {
    Arc::new(SqliteStore::in_memory().unwrap())
}

/// ada's session, which eve could read up to "two".
fn without_eve(store: &Arc<dyn Store>, number: u128) -> SessionId {
    let ada = of(store, "ada");
    let id = sealed(&ada, number, vec![human("one")]);
    now(ada.add_recipient(id, "eve")).unwrap();
    say(&ada, id, "two");
    now(ada.remove_recipients(id, &["eve".to_owned()])).unwrap();
    say(&ada, id, "three");
    id
}

#[test]
fn an_added_recipient_reads_all_and_a_removed_one_nothing_new() {
    on_each_store_unchecked(|store| {
        let [ada, eve, bert] = ["ada", "eve", "bert"].map(|name| of(&store, name));
        let id = sealed(&ada, 1, vec![human("one"), ai("demo", "two")]);
        assert_eq!(read(&eve, id), None);
        now(ada.add_recipient(id, "eve")).unwrap();
        say(&ada, id, "three");
        assert_eq!(read(&eve, id), words(&["one", "two", "three"]));
        // Who can read it can write, and add others.
        say(&eve, id, "four");
        now(eve.add_recipient(id, "bert")).unwrap();
        assert_eq!(read(&bert, id), words(&["one", "two", "three", "four"]));
        assert!(matches!(
            now(ada.add_recipient(id, "bert")),
            Err(StoreError::Refused(_))
        ));
        now(ada.remove_recipients(id, &["eve".to_owned()])).unwrap();
        // eve's program has the keys of before in memory.
        let late = now(eve.append(id, meta(&eve, id).head, vec![human("late")]));
        assert!(matches!(late, Err(StoreError::Sealed { .. })), "{late:?}");
        say(&bert, id, "five");
        assert_eq!(read(&eve, id), None);
        assert_eq!(read(&of(&store, "eve"), id), None);
        for reader in [&ada, &bert, &of(&store, "ada"), &of(&store, "bert")] {
            let all = words(&["one", "two", "three", "four", "five"]);
            assert_eq!(read(reader, id), all);
        }
        let unknown = now(ada.remove_recipients(id, &["eve".to_owned()]));
        assert!(matches!(unknown, Err(StoreError::Refused(_))));
        let report = now(ada.store().check(CheckMode::Look, &Progress::unseen())).unwrap();
        assert!(report.is_clean(), "{report:?}");
        // Once more, and she reads all.
        now(ada.add_recipient(id, "eve")).unwrap();
        assert_eq!(read(&eve, id).unwrap().len(), 5);
    });
}

/// A key entry of a writer who has no key of the session, only those of their own.
fn forged(sessions: &Sessions, id: SessionId, wrapped: &str) -> Entry {
    let stored = now(sessions.load_stored(id)).unwrap().entries;
    let seal = stored[0].body.seal().unwrap();
    let own = SessionKeys::new(&KeyBytes::new([66; KEY_BYTES]), seal).unwrap();
    let new = NewEntry {
        id: sessions.clock().entry_id(),
        at: sessions.clock().now(),
        body: Body::Keyed(Keyed::default()),
        redacted: Default::default(),
        author: None,
    };
    let started = NewKey {
        key: KeyBytes::new([67; KEY_BYTES]),
        wrapped: vec![wrapped.to_owned()],
        recipients: vec!["mallory".to_owned()],
    };
    let head = stored.last().unwrap().head();
    let place = (&head, &Numbering::default());
    own.renew(place, new, started, Vec::new()).unwrap().0
}

#[test]
fn a_forged_key_entry_is_damage_and_takes_no_words() {
    // Wrapped for the forger, and for the reader, whose public key anybody may know.
    for wrapped in ["67:mallory", "67:mallory,ada"] {
        on_each_store_unchecked(|store| {
            let [ada, mallory] = ["ada", "mallory"].map(|name| of(&store, name));
            let id = sealed(&ada, 2, vec![human("one")]);
            let head = meta(&ada, id).head;
            let entry = forged(&mallory, id, wrapped);
            now(mallory
                .stored()
                .append(id, head, std::slice::from_ref(&entry)))
            .unwrap();
            for ada in [&ada, &of(&store, "ada")] {
                say(ada, id, "two");
                let log = now(ada.load(id)).unwrap();
                let [damage] = log.damage.as_slice() else {
                    panic!("{:?}", log.damage);
                };
                assert_eq!(damage.seq, entry.seq);
                assert!(damage.reason.contains("change of keys"), "{damage}");
            }
            assert_eq!(read(&mallory, id), None);
            let report = now(ada.store().check(CheckMode::Look, &Progress::unseen())).unwrap();
            assert!(report.altered.iter().any(|it| it.seq == entry.seq));
            // Keys can still be changed.
            now(ada.add_recipient(id, "eve")).unwrap();
            let log = now(of(&store, "eve").load(id)).unwrap();
            assert_eq!(log.messages().count(), 3);
            // Other stores do not take it in, where the key is at hand.
            let entries = now(ada.load_stored(id)).unwrap().entries;
            let text: String = entries
                .iter()
                .map(|it| format!("{}\n", it.line()))
                .collect();
            let log = jsonl::read(text.as_bytes()).unwrap();
            let refused = now(of(&in_memory(), "ada").adopt(&log));
            let reason = refused.unwrap_err().to_string();
            assert!(reason.contains("change of keys"), "{reason}");
        });
    }
}

#[test]
fn unsealing_a_session_with_several_keys_keeps_its_places() {
    on_each_store_unchecked(|store| {
        let ada = of(&store, "ada");
        let id = without_eve(&store, 3);
        let forked = fork(31, None);
        now(ada.fork(&meta(&ada, id), &forked, vec![human("four")])).unwrap();
        let before = now(ada.load(id)).unwrap().entries;
        now(ada.unseal(id)).unwrap();
        let locked = of(&store, "nobody");
        assert_eq!(read(&locked, id), words(&["one", "two", "three"]));
        assert_eq!(
            read(&locked, forked.id),
            words(&["one", "two", "three", "four"])
        );
        let plain = now(locked.load_stored(id)).unwrap().entries;
        let places =
            |entries: &[Entry]| -> Vec<_> { entries.iter().map(|it| (it.seq, it.id)).collect() };
        assert_eq!(places(&plain), places(&before));
        let text: String = plain.iter().map(|it| it.line().to_owned()).collect();
        assert!(!text.contains("ada") && !text.contains("eve"), "{text}");
        // Sealed again, it has one key.
        now(ada.seal(id)).unwrap();
        assert_eq!(read(&ada, id), words(&["one", "two", "three"]));
        assert_eq!(read(&of(&store, "eve"), id), None);
        assert!(meta(&ada, id).keyed.is_empty());
    });
}

/// Who was removed reads nothing that is written later, in whatever is made of the session.
#[test]
fn what_is_made_of_the_session_is_for_those_who_can_read_it_now() {
    on_each_store_unchecked(|store| {
        let [ada, eve] = ["ada", "eve"].map(|name| of(&store, name));
        let id = without_eve(&store, 4);
        let base = meta(&ada, id);
        let earlier = fork(41, Some(Seq(2)));
        now(ada.fork(&base, &earlier, vec![human("secret")])).unwrap();
        assert_eq!(read(&ada, earlier.id), words(&["one", "secret"]));
        assert_eq!(read(&eve, earlier.id), None);
        let title = now(ada.unlocked(meta(&ada, earlier.id))).unwrap().title;
        assert_eq!(title.as_deref(), Some("a fork"));
        let later = fork(42, None);
        now(ada.fork(&base, &later, vec![human("more")])).unwrap();
        assert_eq!(
            read(&ada, later.id),
            words(&["one", "two", "three", "more"])
        );
        assert_eq!(read(&eve, later.id), None);
        // Forks from before need the key, others do not.
        let untitled = |number, at| Fork {
            title: None,
            ..fork(number, at)
        };
        let refused = now(eve.fork(&meta(&eve, id), &untitled(43, Some(Seq(2))), Vec::new()));
        assert!(matches!(refused, Err(StoreError::Sealed { .. })));
        now(eve.fork(&meta(&eve, id), &untitled(44, None), Vec::new())).unwrap();
        // A merge of what left before she was removed has words of both.
        let (a, b) = (meta(&ada, earlier.id), meta(&ada, later.id));
        let divergence = now(ada.diverge(&a, &b)).unwrap();
        let end = |meta: &SessionMeta| Origin {
            id: meta.id,
            seq: meta.head.seq,
            hash: meta.head.hash,
        };
        let side = |meta, own| Side { meta, own };
        let entries = merged(
            side(&a, &divergence.ours.entries),
            side(&b, &divergence.theirs.entries),
            MergeOrder::Time,
            ada.clock().entry_id(),
        );
        let merge = NewMerge {
            id: SessionId::new(Uuid::from_u128(45)),
            title: Some("both".to_owned()),
            base: MergeBase::Shared {
                head: divergence.shared,
                bytes: 0,
            },
            ours: end(&a),
            theirs: end(&b),
        };
        now(ada.merge(&merge, entries)).unwrap();
        let mut all = read(&ada, merge.id).unwrap();
        all.sort();
        assert_eq!(all, ["more", "one", "secret", "three", "two"]);
        assert_eq!(read(&eve, merge.id), None);
        let title = now(ada.unlocked(meta(&ada, merge.id))).unwrap().title;
        assert_eq!(title.as_deref(), Some("both"));
    });
}

/// Copies need no key, and have the keys that their own log says.
#[test]
fn copies_and_branches_keep_their_keys() {
    let stores = [in_memory(), in_memory()];
    let id = without_eve(&stores[0], 5);
    push(stores[0].as_ref(), stores[1].as_ref());
    let [here, there] = [0, 1].map(|at: usize| of(&stores[at], "ada"));
    say(&here, id, "here");
    now(there.add_recipient(id, "eve")).unwrap();
    say(&there, id, "there");
    now(there.remove_recipients(id, &["eve".to_owned()])).unwrap();
    say(&there, id, "again");
    sync(stores[0].as_ref(), stores[1].as_ref());
    for store in &stores {
        let ada = of(store, "ada");
        let all: Vec<_> = metas(store.as_ref())
            .iter()
            .map(|meta| read(&ada, meta.id).unwrap())
            .collect();
        let beginning = ["one", "two", "three"];
        for end in [&["here"][..], &["there", "again"]] {
            let words = [&beginning[..], end].concat();
            assert!(all.iter().any(|said| *said == words), "{all:?}");
        }
        // Each goes on with the keys of its own.
        for one in metas(store.as_ref()) {
            say(&ada, one.id, "on");
            assert!(read(&ada, one.id).unwrap().contains(&"on".to_owned()));
            assert_eq!(read(&of(store, "eve"), one.id), None);
        }
    }
}

/// A store that has the session in plain seals it as the other one has it, byte for byte.
#[test]
fn a_plain_copy_is_sealed_with_all_keys() {
    let stores = [in_memory(), in_memory()];
    let id = without_eve(&stores[0], 6);
    push(stores[0].as_ref(), stores[1].as_ref());
    let [here, there] = [0, 1].map(|at: usize| of(&stores[at], "ada"));
    now(here.unseal(id)).unwrap();
    let heads = |sessions: &Sessions| {
        let branches = tertulia_store::sync::Branches::of(sessions.stored());
        now(tertulia_store::sync::Heads::of(&branches)).unwrap()
    };
    let partner = tertulia_store::sync::Branches::of(there.stored());
    let done = now(here.seal_copies(&partner, (&heads(&here), &heads(&there)))).unwrap();
    assert_eq!(done.len(), 1);
    let lines = |sessions: &Sessions| -> Vec<String> {
        let log = now(sessions.load_stored(id)).unwrap();
        log.entries.iter().map(|it| it.line().to_owned()).collect()
    };
    assert_eq!(lines(&here), lines(&there));
    assert_eq!(read(&here, id), words(&["one", "two", "three"]));
}

#[test]
fn a_draft_survives_a_change_of_keys() {
    on_each_store_unchecked(|store| {
        let ada = of(&store, "ada");
        let id = sealed(&ada, 7, vec![human("one")]);
        let after = meta(&ada, id).head;
        let Body::Message(answer) = ai("demo", "half an answer and more") else {
            panic!("no message");
        };
        let draft = Draft {
            after,
            id: ada.clock().entry_id(),
            at: ada.clock().now(),
            speaker: answer.speaker,
            model: None,
            thread: None,
            content: answer.content,
            reasoning: None,
            sealed: false,
        };
        now(ada.keep_draft(id, draft)).unwrap();
        now(ada.remove_recipients(id, &["eve".to_owned()])).unwrap();
        let said = read(&of(&store, "ada"), id).unwrap();
        assert_eq!(said, ["one", "half an answer and "]);
        assert_ne!(after, Head::START);
    });
}

/// A change that was sealed with the key before is sealed with the new one where it follows that.
#[test]
fn changes_of_one_machine_follow_a_new_key_of_another() {
    let (stores, clock) = ([in_memory(), in_memory()], still_clock(3));
    let (one, other) = (of(&stores[0], "ada"), of(&stores[1], "ada"));
    let id = sealed(&one, 60, vec![human("hello")]);
    now(one.add_recipient(id, "ben")).unwrap();
    sync(one.stored(), other.stored());
    now(one.remove_recipients(id, &["ben".to_owned()])).unwrap();
    say(&one, id, "for ada alone");
    now(other.rename(id, "tomatoes", clock.entry_id())).unwrap();
    let ours = Branches::of_sessions(&one);
    let theirs = Branches::of_sessions(&other);
    for (from, to) in [(&theirs, &ours), (&ours, &theirs)] {
        let moved = move_all(from, to, Doing::Write).unwrap();
        assert!(moved.diverged.is_empty(), "{moved:?}");
    }
    let head = meta(&one, id).head;
    for sessions in [&one, &other] {
        assert_eq!(metas(sessions.stored()).len(), 1);
        assert_eq!(meta(sessions, id).head, head);
        assert_eq!(meta(sessions, id).title.as_deref(), Some("tomatoes"));
        assert_eq!(read(sessions, id), words(&["hello", "for ada alone"]));
    }
    let ben = of(&stores[0], "ben");
    assert_eq!(meta(&ben, id).title, None);
}
