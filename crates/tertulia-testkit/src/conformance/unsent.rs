//! Words of the user that are not in a log yet.

use tertulia_core::id::SessionId;
use tertulia_store::{Store, Unsent, UnsentMessage};

use crate::ask::{assert_log, found, now};
use crate::clock::still_clock;
use crate::conformance::texts::ODD;
use crate::logs::Writer;

/// Returns words with these texts.
pub(super) fn words(texts: &[&str]) -> Unsent {
    let at = jiff::Timestamp::UNIX_EPOCH;
    let message = |(n, text): (usize, &&str)| UnsentMessage {
        is_queued: n % 2 == 0,
        ..UnsentMessage::typed(format!("m{n}"), at, (*text).to_owned())
    };
    Unsent {
        project: Some("dir:/work".to_owned()),
        messages: texts.iter().enumerate().map(message).collect(),
        sealed: None,
    }
}

/// Returns the words of a session.
pub(super) fn kept(store: &dyn Store, id: SessionId) -> Option<Unsent> {
    let mut found = now(store.unsent(Some(id))).unwrap();
    assert!(found.len() <= 1 && found.iter().all(|(of, _)| *of == id));
    found.pop().map(|(_, unsent)| unsent)
}

/// Later words replace earlier ones, and empty ones remove them.
pub fn kept_and_replaced(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    now(store.keep_unsent(writer.id, &Unsent::default())).unwrap();
    assert_eq!(kept(store, writer.id), None);
    for texts in [&["one"][..], &["one", "two"], &["three"], ODD] {
        now(store.keep_unsent(writer.id, &words(texts))).unwrap();
        assert_eq!(kept(store, writer.id), Some(words(texts)));
    }
    // They are no entries, and stay when the log goes on.
    assert_eq!(found(store, "three"), []);
    writer.say(store, "a question");
    assert_log(store, &writer);
    assert_eq!(kept(store, writer.id), Some(words(ODD)));
    now(store.keep_unsent(writer.id, &Unsent::default())).unwrap();
    assert_eq!(kept(store, writer.id), None);
    assert_eq!(now(store.unsent(None)).unwrap(), []);
}

/// Each session has its own words, also one that was not created yet.
pub fn of_each_session(store: &dyn Store) {
    let clock = still_clock(1);
    let writer = Writer::begin(store, &clock);
    let unborn = clock.session_id();
    now(store.keep_unsent(writer.id, &words(&["here"]))).unwrap();
    now(store.keep_unsent(unborn, &words(&["there"]))).unwrap();
    assert_eq!(kept(store, writer.id), Some(words(&["here"])));
    assert_eq!(kept(store, unborn), Some(words(&["there"])));
    let fork = writer.fork(store, 1);
    assert_eq!(kept(store, fork.id), None);
    let mut all: Vec<SessionId> = now(store.unsent(None))
        .unwrap()
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    all.sort_unstable();
    let mut expected = [writer.id, unborn];
    expected.sort_unstable();
    assert_eq!(all, expected);
}

/// A purge removes them.
pub fn purged(store: &dyn Store) {
    let writer = Writer::begin(store, &still_clock(1));
    now(store.keep_unsent(writer.id, &words(&["gone"]))).unwrap();
    now(store.purge(writer.id)).unwrap();
    assert_eq!(kept(store, writer.id), None);
}
