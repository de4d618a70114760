//! Ends of logs that are replaced by others, as a merge of changes of two machines does.

use tertulia_core::entry::{Body, Head};
use tertulia_core::session::SessionMeta;
use tertulia_store::{Store, StoreError};

use crate::ask::{assert_log, draft, found, now, row, view};
use crate::clock::still_clock;
use crate::logs::{Writer, ai, human, renamed, tagged, trashed};

/// A session of five entries.
fn five(store: &dyn Store) -> Writer {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.say(store, "hello");
    writer.append(store, vec![ai("demo", "yes")]);
    writer.append(store, vec![renamed("tomatoes")]);
    writer.append(store, vec![tagged(&["red"], &[])]);
    writer
}

/// The log, the row and the words are those of the new end alone.
pub fn are_replaced(store: &dyn Store) {
    let mut writer = five(store);
    assert_eq!(found(store, "tomatoes"), [(writer.id, 4)]);
    let end = vec![renamed("potatoes"), human("and now")];
    writer.replace_end(store, 3, end).unwrap();
    assert_log(store, &writer);
    assert_eq!(found(store, "tomatoes"), []);
    assert_eq!(found(store, "potatoes"), [(writer.id, 4)]);
    assert_eq!(found(store, "now"), [(writer.id, 5)]);
    writer.append(store, vec![tagged(&["green"], &[])]);
    assert_log(store, &writer);
    writer.replace_end(store, 5, vec![trashed()]).unwrap();
    assert_log(store, &writer);
    assert_eq!(found(store, "potatoes"), []);
}

/// A session that continues another one keeps what it shares.
pub fn of_a_fork(store: &dyn Store) {
    let base = five(store);
    let mut fork = base.fork(store, 3);
    fork.append(store, vec![renamed("cabbage")]);
    let words = vec![human("pumpkin"), tagged(&["orange"], &[])];
    fork.replace_end(store, 4, words).unwrap();
    assert_log(store, &fork);
    assert_log(store, &base);
    assert_eq!(found(store, "cabbage"), []);
    assert_eq!(found(store, "pumpkin"), [(fork.id, 5)]);
    assert_eq!(found(store, "tomatoes"), [(base.id, 4)]);
    assert_eq!(found(store, "hello").len(), 1);
    let mut again = fork.fork(store, 5);
    again.say(store, "leek");
    assert_log(store, &again);
}

/// Forks keep what they share: an end after that is replaced, another one is not.
pub fn beside_forks(store: &dyn Store) {
    let mut writer = five(store);
    let mut early = writer.fork(store, 3);
    early.say(store, "early");
    let forks = [early, writer.fork(store, 4)];
    writer
        .replace_end(store, 4, vec![tagged(&["green"], &[])])
        .unwrap();
    assert_log(store, &writer);
    forks.iter().for_each(|fork| assert_log(store, fork));
    let before = view(store);
    let refused = writer.replace_end(store, 3, vec![renamed("potatoes")]);
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "{refused:?}"
    );
    let [mut early, _] = forks;
    // What the session that it continues has.
    assert!(early.replace_end(store, 2, vec![human("other")]).is_err());
    assert_eq!(view(store), before);
}

/// An end that is not the expected one, or that does not follow the kept entries, stays.
pub fn of_another_head(store: &dyn Store) {
    let mut writer = five(store);
    let late = writer.clone();
    writer.append(store, vec![tagged(&["green"], &[])]);
    let entries = late.chain(vec![renamed("potatoes")]);
    let (old, end) = (late.head(), writer.head());
    let forged = Head {
        seq: old.seq,
        hash: end.hash,
    };
    for (after, keep) in [(old, old), (end, forged)] {
        let answer = now(store.replace_end(writer.id, after, keep, &entries));
        assert!(
            matches!(answer, Err(StoreError::Conflict { head, .. }) if head == end),
            "{answer:?}"
        );
        assert_log(store, &writer);
    }
    let unknown = still_clock(9).session_id();
    let answer = now(store.replace_end(unknown, end, old, &entries));
    super::assert_not_found(answer, unknown);
}

/// An unfinished answer stays until there are other words.
pub fn beside_a_draft(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.say(store, "hello");
    let kept = writer.draft("Once");
    now(store.keep_draft(writer.id, &kept)).unwrap();
    writer.append(store, vec![renamed("tomatoes")]);
    writer
        .replace_end(store, 2, vec![tagged(&["red"], &[])])
        .unwrap();
    assert_eq!(draft(store, writer.id), Some(kept));
    writer
        .replace_end(store, 2, vec![human("never mind")])
        .unwrap();
    assert_eq!(draft(store, writer.id), None);
    writer
        .replace_end(store, 2, vec![tagged(&["red"], &[])])
        .unwrap();
    assert_eq!(draft(store, writer.id), None);
}

/// Long logs and long lines: nothing that was derived from the old end is left.
pub fn of_a_long_log(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let changes = |word: &str| {
        let change = |turn| renamed(&format!("{word} {turn}"));
        (0..400).map(change).collect::<Vec<Body>>()
    };
    writer.append(store, changes("tomatoes"));
    writer.say(store, &"long ".repeat(120_000));
    let mut end = changes("potatoes");
    end.push(human(&"longer ".repeat(120_000)));
    writer.replace_end(store, 1, end).unwrap();
    assert_log(store, &writer);
    for at in [255, 256, 402] {
        let fork = writer.fork(store, at);
        let meta = row(store, fork.id).meta;
        assert_eq!(meta, SessionMeta::of(fork.id, &fork.log), "{at}");
    }
}
