use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;
use crate::entry::{Author, Created, Kind, Role, human, plain};
use crate::session::SessionMeta;

const ID: SessionId = SessionId::new(Uuid::from_u128(7));

fn bytes(byte: u8) -> KeyBytes {
    Zeroizing::new([byte; KEY_BYTES])
}

fn new_entry(number: u128, body: Body) -> NewEntry {
    NewEntry {
        id: EntryId::new(Uuid::from_u128(number)),
        at: jiff::Timestamp::from_second(number as i64).unwrap(),
        body,
        redacted: BTreeMap::new(),
        author: Some(Author {
            name: "ada".into(),
            host: "tower".into(),
        }),
    }
}

fn message(words: &str) -> Body {
    Body::Message(plain(&human(), Role::User, words.to_owned()))
}

fn created() -> Body {
    Body::Created(Created {
        session: ID,
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    })
}

/// A log, and the keys of its author.
#[derive(Clone)]
struct Written {
    keys: SessionKeys,
    log: Vec<Entry>,
}

impl Written {
    fn new() -> Written {
        let mut written = Written {
            keys: SessionKeys::of_new(ID, &bytes(1), "first".to_owned()),
            log: Vec::new(),
        };
        written.write(created());
        written
    }

    fn head(&self) -> Head {
        self.log.last().map_or(Head::START, Entry::head)
    }

    fn next(&self, body: Body) -> NewEntry {
        new_entry(self.log.len() as u128 + 1, body)
    }

    fn write(&mut self, body: Body) {
        let new = vec![self.next(body)];
        let chained = self.keys.chain(&self.head(), &Numbering::default(), new);
        self.log.extend(chained.unwrap());
    }

    fn say(&mut self, words: &str) {
        self.write(message(words));
    }

    fn take(&mut self, (entry, keys): (Entry, SessionKeys)) {
        self.log.push(entry);
        self.keys = keys;
    }

    fn add(&mut self, recipient: &str) {
        let new = self.next(Body::Keyed(Keyed::default()));
        let place = (&self.head(), &Numbering::default());
        let wrapped = format!("for {recipient}");
        let added = self.keys.add(place, new, recipient.to_owned(), wrapped);
        self.take(added.unwrap());
    }

    fn renew(&mut self, byte: u8, recipients: &[&str], removed: &[&str]) {
        let new = self.next(Body::Keyed(Keyed::default()));
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let started = NewKey {
            key: bytes(byte),
            wrapped: vec![format!("key {byte}")],
            recipients: owned(recipients),
        };
        let place = (&self.head(), &Numbering::default());
        let renewed = self.keys.renew(place, new, started, owned(removed));
        self.take(renewed.unwrap());
    }

    fn stored(&self) -> Vec<Entry> {
        let decode = |entry: &Entry| Entry::decode(entry.line().as_bytes()).unwrap();
        self.log.iter().map(decode).collect()
    }
}

fn ring(log: &[Entry], pool: &[KeyBytes]) -> Ring {
    let seal = log[0].body.seal().unwrap();
    let keyed: Vec<KeyEntry> = log
        .iter()
        .filter(|entry| matches!(entry.body, Body::Keyed(_)))
        .map(|entry| KeyEntry {
            entry: entry.clone(),
            numbering: Numbering::default(),
        })
        .collect();
    Ring::of(seal, &log[0], &keyed, pool).unwrap()
}

fn whole(log: &[Entry], pool: &[KeyBytes]) -> SessionKeys {
    match ring(log, pool) {
        Ring::Whole(keys) => *keys,
        other => panic!("{other:?}"),
    }
}

/// Returns what the messages say; `None` for an entry that is refused.
fn said(log: &[Entry], keys: &SessionKeys) -> Vec<Option<String>> {
    let mut said = Vec::new();
    for entry in log {
        match keys.open(&Numbering::default(), entry.clone()) {
            Ok(entry) => said.extend(entry.message().map(|it| Some(it.content.clone()))),
            Err(_) => said.push(None),
        }
    }
    said
}

fn three_keys() -> Written {
    let mut written = Written::new();
    written.say("one");
    written.add("x");
    written.say("two");
    written.renew(2, &["me", "y"], &["x"]);
    written.say("three");
    written.renew(3, &["me"], &["x", "y"]);
    written.say("four");
    written
}

#[test]
fn the_newest_key_opens_all_and_an_older_one_no_later_entry() {
    let log = three_keys().stored();
    let words = ["one", "two", "three", "four"].map(|words| Some(words.to_owned()));
    let keys = whole(&log, &[bytes(3)]);
    assert_eq!(said(&log, &keys), words);
    assert_eq!(keys.recipients().known, ["me"]);
    assert_eq!(keys.recipients().removed, ["x", "y"]);
    assert_eq!(keys.wrapped(), ["key 3"]);
    // Who was removed has the first key, and can tell from where on it is not enough.
    assert!(matches!(ring(&log, &[bytes(1)]), Ring::LockedAt(1)));
    assert!(matches!(ring(&log, &[bytes(2)]), Ring::LockedAt(2)));
    assert!(matches!(ring(&log, &[bytes(9)]), Ring::Locked));
    let old = SessionKeys::new(&bytes(1), log[0].body.seal().unwrap()).unwrap();
    let [one, two, ..] = words;
    let read: Vec<_> = said(&log, &old).into_iter().flatten().collect();
    assert_eq!(read, [one.unwrap(), two.unwrap()]);
}

#[test]
fn an_added_recipient_stays_one_until_removed() {
    let mut written = Written::new();
    written.add("x");
    let keys = whole(&written.stored(), &[bytes(1)]);
    assert_eq!(keys.recipients().known, ["x"]);
    assert!(!keys.recipients().is_complete);
    assert_eq!(keys.wrapped(), ["first", "for x"]);
    written.renew(2, &["me"], &["x"]);
    written.add("x");
    let keys = whole(&written.stored(), &[bytes(2)]);
    assert_eq!(keys.recipients().known, ["me", "x"]);
    assert_eq!(keys.recipients().removed, Vec::<String>::new());
}

/// Everything that a writer can put in who has no key of the session, only one of their own.
#[test]
fn a_forged_key_entry_changes_nothing() {
    let mut honest = Written::new();
    honest.say("one");
    let mut mallory = honest.clone();
    mallory.keys = SessionKeys::new(&bytes(66), honest.keys.seal()).unwrap();
    let mut renews = mallory.clone();
    renews.renew(99, &["mallory"], &["me"]);
    let mut adds = mallory;
    adds.add("mallory");
    for forged in [renews, adds] {
        let forged = forged.log.last().unwrap();
        let mut log = honest.clone();
        log.log.push(forged.clone());
        // The keys of the forger do not help, even if they come first.
        let pool = [bytes(99), bytes(66), bytes(1)];
        let keys = whole(&log.stored(), &pool);
        assert_eq!(keys.entries().count(), 0);
        assert_eq!(keys.newest().as_slice(), bytes(1).as_slice());
        assert_eq!(said(&log.stored(), &keys), [Some("one".to_owned()), None]);
        // Later entries are sealed with the key in force, and readable.
        log.keys = keys;
        log.say("two");
        log.add("x");
        let keys = whole(&log.stored(), &pool);
        let words = [Some("one".to_owned()), None, Some("two".to_owned())];
        assert_eq!(said(&log.stored(), &keys), words);
        assert_eq!(keys.recipients().known, ["x"]);
        assert!(matches!(ring(&log.stored(), &pool[..2]), Ring::Locked));
    }
}

#[test]
fn an_altered_or_moved_key_entry_is_refused() {
    let written = three_keys();
    let log = written.stored();
    let alter = |at: usize, change: &dyn Fn(&mut Keyed)| {
        let mut altered = log[..=at].to_vec();
        let Body::Keyed(mut keyed) = altered[at].body.clone() else {
            panic!("no keys");
        };
        change(&mut keyed);
        let parent = altered[at - 1].head();
        let body = Body::Keyed(keyed);
        altered[at] = altered[at]
            .clone()
            .with_body(&parent, body, BTreeMap::new())
            .unwrap();
        altered
    };
    let Body::Keyed(added) = log[2].body.clone() else {
        panic!("no keys");
    };
    let changes: [&dyn Fn(&mut Keyed); 4] = [
        &|keyed| keyed.keys[0] = "for mallory".to_owned(),
        &|keyed| keyed.keys.push("for mallory".to_owned()),
        &|keyed| keyed.before = None,
        &|keyed| keyed.proof = "AAAA".to_owned(),
    ];
    for change in changes {
        let altered = alter(4, change);
        let keys = whole(&altered, &[bytes(2), bytes(1)]);
        assert_eq!(keys.entries().count(), 1);
        assert!(matches!(
            keys.open(&Numbering::default(), altered[4].clone()),
            Err(SealError::ForeignKey)
        ));
    }
    // The entry that gave x the first key, put in again where x was removed.
    let moved = alter(6, &|keyed| *keyed = added.clone());
    let keys = whole(&moved, &[bytes(2)]);
    assert_eq!(keys.recipients().known, ["me", "y"]);
}

#[test]
fn unsealing_keeps_places_and_sealing_again_gives_the_same_lines() {
    let written = three_keys();
    let log = written.stored();
    let keys = whole(&log, &[bytes(3)]);
    let none = Numbering::default();
    let (mut head, mut plain) = (Head::START, Vec::new());
    for entry in &log {
        let entry = keys.unseal_entry(&head, &none, entry).unwrap();
        assert!(!entry.is_sealed());
        head = entry.head();
        plain.push(entry);
    }
    assert!(SessionMeta::of(ID, &plain).keyed.is_empty());
    let mut head = Head::START;
    for (plain, sealed) in plain.iter().zip(&log) {
        let again = keys.seal_entry(&head, &none, plain).unwrap();
        assert_eq!(again.line(), sealed.line());
        head = again.head();
    }
    // Under another key, the places stay empty.
    let other = SessionKeys::of_new(ID, &bytes(8), "other".to_owned());
    let sealed = other
        .seal_entry(&plain[1].head(), &none, &plain[2])
        .unwrap();
    assert!(matches!(&sealed.body, Body::Keyed(keyed) if keyed.is_empty()));
}

#[test]
fn programs_that_know_no_key_entries_refuse_them_by_their_version() {
    let written = three_keys();
    for entry in written.stored() {
        let is_keyed = matches!(entry.body, Body::Keyed(_));
        assert_eq!(entry.line().starts_with("{\"v\":2,"), is_keyed);
        assert_eq!(entry.line().starts_with("{\"v\":1,"), !is_keyed);
    }
    // A session that was sealed by an earlier version has the version of its key entries in lists.
    let mut written = Written::new();
    let seal = Seal {
        v: 1,
        finder: None,
        ..written.keys.seal().clone()
    };
    written = Written {
        keys: SessionKeys::new(&bytes(1), &seal).unwrap(),
        log: Vec::new(),
    };
    written.write(created());
    assert_eq!(SessionMeta::of(ID, &written.stored()).seal.unwrap().v, 1);
    written.add("x");
    let meta = SessionMeta::of(ID, &written.stored());
    assert_eq!((meta.seal.unwrap().v, meta.keyed.len()), (2, 1));
    // What it is sealed with stays as it was.
    let keys = whole(&written.stored(), &[bytes(1)]);
    assert_eq!(keys.seal().v, 1);
}
