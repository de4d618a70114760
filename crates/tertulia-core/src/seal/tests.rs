use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::entry::{Kind, Linked, Message, Renamed, Role, Touched, human, plain};
use crate::session::SessionMeta;

const ID: SessionId = SessionId::new(Uuid::from_u128(7));

fn seal() -> Seal {
    Seal {
        v: 1,
        origin: ID,
        key: "wrapped".to_owned(),
        finder: None,
        data: None,
    }
}

fn key(byte: u8) -> SessionKeys {
    SessionKeys::new(&Zeroizing::new([byte; KEY_BYTES]), &seal()).unwrap()
}

fn new_entry(number: u128, body: Body) -> NewEntry {
    NewEntry {
        id: EntryId::new(Uuid::from_u128(number)),
        at: Timestamp::from_second(number as i64).unwrap(),
        body,
        redacted: BTreeMap::from([("aws".to_owned(), 1)]),
        author: Some(Author {
            name: "ada".into(),
            host: "tower".into(),
        }),
    }
}

fn message(words: &str) -> Body {
    Body::Message(plain(&human(), Role::User, words.to_owned()))
}

/// Returns the entries of a session, in plain.
fn bodies(words: &[String]) -> Vec<NewEntry> {
    let created = Body::Created(Created {
        session: ID,
        kind: Kind::Chat,
        title: Some("marker title".to_owned()),
        team: Some("marker team".to_owned()),
        project: Some("marker project".to_owned()),
        project_ids: vec!["marker project".to_owned()],
        cwd: Some("/marker".to_owned()),
        terms: None,
        seal: None,
    });
    let operation = EntryId::new(Uuid::from_u128(99));
    let renamed = Body::Renamed(Renamed {
        title: "marker renamed".to_owned(),
        operation,
    });
    let all = std::iter::once(created)
        .chain(words.iter().map(|words| message(words)))
        .chain([renamed, Body::Trashed(Touched { operation })]);
    (1..).zip(all).map(|(n, body)| new_entry(n, body)).collect()
}

fn stored(entries: &[Entry]) -> Vec<Entry> {
    let decode = |entry: &Entry| Entry::decode(entry.line().as_bytes()).unwrap();
    entries.iter().map(decode).collect()
}

#[test]
fn nothing_of_the_words_is_in_the_lines_and_counts_are() {
    let entries = key(1)
        .chain(
            &Head::START,
            &Numbering::default(),
            bodies(&["marker words".to_owned()]),
        )
        .unwrap();
    for entry in &entries {
        assert!(!entry.line().contains("marker"), "{}", entry.line());
        let is_trashed = matches!(entry.body, Body::Trashed(_));
        assert!(is_trashed || !entry.line().contains("aws"));
    }
    let meta = SessionMeta::of(ID, &stored(&entries));
    assert_eq!((meta.messages, meta.title.as_deref()), (1, None));
    assert!(meta.trashed_at.is_some() && meta.is_locked() && meta.seal.is_some());
    // In memory the entries have their words.
    let meta = SessionMeta::of(ID, &entries);
    assert_eq!(meta.title.as_deref(), Some("marker renamed"));
    assert!(!meta.is_locked());
}

#[test]
fn sealing_and_unsealing_a_log_gives_the_same_lines() {
    let plain = Entry::chain(&Head::START, bodies(&["one".to_owned(), "two".to_owned()])).unwrap();
    // Fields of a later version are kept, too.
    let mut all = plain;
    let novel = all[0]
        .with_body_fields(
            &all[4].head(),
            r#"{"type":"novel","number":1.50,"words":"\u00e4"}"#,
        )
        .unwrap();
    assert!(novel.line().contains(r#""number":1.50"#));
    all.push(novel);
    let key = key(1);
    let mut head = Head::START;
    let mut sealed = Vec::new();
    for entry in &all {
        let entry = key.seal_entry(&head, &Numbering::default(), entry).unwrap();
        assert!(entry.follows(&head));
        head = entry.head();
        sealed.push(entry);
    }
    let mut head = Head::START;
    for (before, sealed) in all.iter().zip(&sealed) {
        let again = key
            .unseal_entry(&head, &Numbering::default(), sealed)
            .unwrap();
        assert_eq!(before.line(), again.line());
        head = again.head();
    }
}

#[test]
fn another_key_opens_nothing() {
    let entries = key(1)
        .chain(
            &Head::START,
            &Numbering::default(),
            bodies(&["words".to_owned()]),
        )
        .unwrap();
    for entry in stored(&entries).into_iter().filter(Entry::is_sealed) {
        assert!(matches!(
            key(2).open(&Numbering::default(), entry),
            Err(SealError::Altered)
        ));
    }
}

/// Another program's file is compared with a sealed session by what that shows of the program's ids.
#[test]
fn ids_of_other_programs_are_shown_as_hashes() {
    let linked = Body::Linked(Linked {
        agent: "codex".to_owned(),
        native: "marker-session".to_owned(),
        cwd: None,
        inherited: None,
    });
    let answer = Body::Message(Message {
        usage_id: Some("marker-1".to_owned()),
        requests: (1..9).map(|n| format!("marker-{n}")).collect(),
        ..plain(&human(), Role::User, "words".to_owned())
    });
    let mut new = bodies(&[]);
    new.insert(1, new_entry(21, linked));
    new.insert(2, new_entry(22, answer));
    let keys = SessionKeys::of_new(ID, &Zeroizing::new([1; KEY_BYTES]), "wrapped".to_owned());
    let finder = keys.seal().finder.clone().unwrap();
    let chain = |keys: &SessionKeys| {
        let entries = keys.chain(&Head::START, &Numbering::default(), new.clone());
        stored(&entries.unwrap())
    };
    let entries = chain(&keys);
    let meta = SessionMeta::of(ID, &entries);
    let session = hidden_id(&finder, HiddenId::Session, "marker-session");
    assert_eq!(meta.hidden_ids.sessions, [session]);
    let usages = (1..5).map(|n| hidden_id(&finder, HiddenId::Usage, &format!("marker-{n}")));
    assert_eq!(meta.hidden_ids.usages, usages.collect::<Vec<_>>());
    assert!(entries.iter().all(|entry| !entry.line().contains("marker")));
    // They cannot be taken out, or changed together with the key of the hashes.
    let Body::Sealed(mut sealed) = entries[1].body.clone() else {
        panic!("not sealed");
    };
    sealed.ids.clear();
    let altered = entries[1]
        .clone()
        .with_body(&entries[0].head(), Body::Sealed(sealed), BTreeMap::new())
        .unwrap();
    let opened = keys.open(&Numbering::default(), altered);
    assert!(matches!(opened, Err(SealError::Altered)));
    let other = Seal {
        finder: Some("00".repeat(16)),
        ..keys.seal().clone()
    };
    let other = SessionKeys::new(&Zeroizing::new([1; KEY_BYTES]), &other).unwrap();
    let opened = other.open(&Numbering::default(), entries[0].clone());
    assert!(matches!(opened, Err(SealError::Altered)));
    // Seals of version 1 stay as they are.
    let entries = chain(&key(1));
    assert!(SessionMeta::of(ID, &entries).hidden_ids.is_empty());
    assert!(entries[0].line().contains(r#""seal":{"v":1,"#));
}

proptest! {
    #[test]
    fn entries_open_as_they_were(words in prop::collection::vec(".{0,200}", 1..6)) {
        let new = bodies(&words);
        let entries = key(1).chain(&Head::START, &Numbering::default(), new.clone()).unwrap();
        // The same entries have the same bytes every time.
        let again = key(1).chain(&Head::START, &Numbering::default(), new.clone()).unwrap();
        prop_assert_eq!(stored(&entries), stored(&again));
        for (entry, new) in stored(&entries).into_iter().zip(new) {
            let opened = key(1).open(&Numbering::default(), entry).unwrap();
            prop_assert_eq!(&opened.redacted, &new.redacted);
            if let Body::Message(message) = &new.body {
                prop_assert_eq!(opened.message(), Some(message));
            }
        }
    }

    #[test]
    fn a_moved_entry_is_refused(words in prop::collection::vec("[a-z]{1,20}", 2..6), pick in any::<(u8, u8)>()) {
        let entries = stored(&key(1).chain(&Head::START, &Numbering::default(), bodies(&words)).unwrap());
        let from = 1 + usize::from(pick.0) % words.len();
        let to = 1 + usize::from(pick.1) % words.len();
        prop_assume!(from != to);
        // The whole entry with its id and time, at another place of the log, with a valid hash.
        let parent = entries[to - 1].head();
        let moved = entries[from].clone().with_body(&parent, entries[from].body.clone(), BTreeMap::new()).unwrap();
        prop_assert!(moved.follows(&parent));
        prop_assert!(matches!(key(1).open(&Numbering::default(), moved), Err(SealError::Altered)));
        // Its words alone, in the entry of that place.
        let swapped = entries[to].clone().with_body(&parent, entries[from].body.clone(), BTreeMap::new()).unwrap();
        prop_assert!(matches!(key(1).open(&Numbering::default(), swapped), Err(SealError::Altered)));
    }

    #[test]
    fn any_flipped_bit_is_refused(words in "[a-z]{1,40}", at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let entries = stored(&key(1).chain(&Head::START, &Numbering::default(), bodies(&[words])).unwrap());
        let entry = &entries[1];
        let mut line = entry.line().as_bytes().to_vec();
        let content = line.len() - 75;
        line[at.index(content)] ^= 1 << bit;
        // An attacker can compute the hash of an altered line again.
        let Ok(altered) = Entry::decode(&line) else { return Ok(()); };
        let altered = altered.continuing(&entries[0].head());
        let same_place = altered.seq == entry.seq;
        match key(1).open(&Numbering::default(), altered.clone()) {
            Ok(opened) => prop_assert!(!altered.is_sealed() && opened.message().is_none() || same_place && opened.message() == key(1).open(&Numbering::default(), entry.clone()).unwrap().message()),
            Err(error) => prop_assert!(matches!(error, SealError::Altered), "{error}"),
        }
    }

    #[test]
    fn cut_words_are_refused(words in "[a-z]{1,40}", at in any::<prop::sample::Index>()) {
        let entries = stored(&key(1).chain(&Head::START, &Numbering::default(), bodies(&[words])).unwrap());
        let Body::Sealed(mut sealed) = entries[1].body.clone() else { panic!("not sealed") };
        sealed.data.truncate(at.index(sealed.data.len()));
        let cut = entries[1].clone().with_body(&entries[0].head(), Body::Sealed(sealed), BTreeMap::new()).unwrap();
        prop_assert!(matches!(key(1).open(&Numbering::default(), cut), Err(SealError::Altered)));
    }
}
