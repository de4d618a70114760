//! Session locks.

use tertulia_store::Store;

use crate::ask::{everything, list, now, row};
use crate::clock::still_clock;
use crate::logs::Writer;

/// A session has one lock holder at a time, and can be locked again after release.
pub fn one_holder(store: &dyn Store) {
    let writer = Writer::begin(store, &still_clock(1));
    let claim = now(store.claim(writer.id)).unwrap().unwrap();
    assert_eq!(claim.session(), writer.id);
    assert!(now(store.claim(writer.id)).unwrap().is_none());
    drop(claim);
    let again = now(store.claim(writer.id)).unwrap();
    assert!(again.is_some());
}

/// Lists and look-ups show locked sessions as open.
pub fn shown_in_rows(store: &dyn Store) {
    let clock = still_clock(1);
    let first = Writer::begin(store, &clock);
    let second = Writer::begin(store, &clock);
    let open = || {
        let rows = list(store, &everything()).rows;
        let open = rows.into_iter().filter(|row| row.open);
        open.map(|row| row.meta.id).collect::<Vec<_>>()
    };
    assert_eq!(open(), []);
    let claim = now(store.claim(first.id)).unwrap();
    assert_eq!(open(), [first.id]);
    assert!(row(store, first.id).open && !row(store, second.id).open);
    drop(claim);
    assert_eq!(open(), []);
    assert!(!row(store, first.id).open);
}

/// Several sessions may be locked at once, and appending needs no lock.
pub fn one_per_session(store: &dyn Store) {
    let clock = still_clock(1);
    let mut first = Writer::begin(store, &clock);
    let second = Writer::begin(store, &clock);
    let claims = (
        now(store.claim(first.id)).unwrap(),
        now(store.claim(second.id)).unwrap(),
    );
    assert!(claims.0.is_some() && claims.1.is_some());
    first.say(store, "while it is open");
    drop(claims.1);
    assert!(row(store, first.id).open);
}
