//! Purges: removed sessions, and the prefix that their forks still need.

use tertulia_core::entry::Entry;
use tertulia_core::id::Seq;
use tertulia_core::query::Lookup;
use tertulia_core::sizes::{Sizes, TotalSize};
use tertulia_store::{NewSession, Store};

use super::assert_not_found;
use crate::ask::{assert_log, draft, everything, find, found, lines, list, now};
use crate::clock::still_clock;
use crate::logs::{Writer, ai, human, renamed, trashed};

fn talk(store: &dyn Store, seed: u64, words: &str) -> Writer {
    let mut writer = Writer::begin(store, &still_clock(seed));
    for turn in 0..4 {
        writer.say(store, &format!("{words} {turn}"));
    }
    writer
}

fn purge(store: &dyn Store, writer: &Writer) {
    now(store.purge(writer.id)).unwrap();
}

fn entries(store: &dyn Store) -> u64 {
    now(store.info()).unwrap().entries
}

/// Asserts that no query returns a purged session.
#[track_caller]
fn assert_gone(store: &dyn Store, writer: &Writer) {
    let id = writer.id;
    assert_not_found(now(store.read(id, Seq::START, 9)), id);
    assert_not_found(writer.clone().try_append(store, vec![human("x")]), id);
    assert_not_found(now(store.purge(id)), id);
    assert_eq!(find(store, &Lookup::Id(id)), []);
    assert_eq!(find(store, &Lookup::Part(id.short())), []);
    let listed = list(store, &everything()).rows;
    assert!(listed.iter().all(|row| row.meta.id != id));
}

/// A purged session is in no list, look-up, log or search.
pub fn gone_everywhere(store: &dyn Store) {
    let mut writer = talk(store, 1, "needle");
    writer.append(store, vec![renamed("Haystack")]);
    writer.append(store, vec![trashed()]);
    let mut live = talk(store, 2, "needle");
    live.append(store, vec![renamed("Haystack")]);
    assert_eq!(found(store, "needle").len(), 4);
    purge(store, &writer);
    assert_gone(store, &writer);
    assert_eq!(find(store, &Lookup::Title("Haystack".into())), [live.id]);
    purge(store, &live);
    assert_gone(store, &live);
    assert_eq!(found(store, "needle"), []);
    assert_eq!(entries(store), 0);
}

/// Forks of a purged session remain readable and writable.
pub fn forks_keep_what_they_share(store: &dyn Store) {
    let writer = talk(store, 1, "talk");
    let mut early = writer.fork(store, 2);
    let mut late = writer.fork(store, 5);
    purge(store, &writer);
    assert_gone(store, &writer);
    for fork in [&mut early, &mut late] {
        assert_log(store, fork);
        fork.append(store, vec![human("go on"), ai("claude", "yes")]);
        assert_log(store, fork);
        assert_log(store, &fork.fork(store, 1));
        assert_log(store, &fork.fork(store, 4));
    }
}

/// The same through several levels, in any order of purges.
pub fn forks_of_forks_keep_what_they_share(store: &dyn Store) {
    for (seed, order) in [[0, 1], [1, 0]].into_iter().enumerate() {
        let base = talk(store, seed as u64, "talk");
        let mut middle = base.fork(store, 4);
        middle.append(store, vec![human("a"), human("b")]);
        let top = middle.fork(store, 6);
        let low = middle.fork(store, 2);
        let family = [base, middle];
        for n in order {
            purge(store, &family[n]);
            assert_gone(store, &family[n]);
            assert_log(store, &top);
            assert_log(store, &low);
        }
    }
}

/// The sizes of sessions say what each has alone, before and after its base is purged.
pub fn sizes_of_what_is_shared(store: &dyn Store) {
    let sizes = || Sizes::of(&now(store.sizes()).unwrap());
    assert_eq!(sizes(), Sizes::default());
    let base = talk(store, 1, "talk");
    let size = |entries: &[Entry]| -> u64 {
        entries
            .iter()
            .map(|entry| entry.line().len() as u64 + 1)
            .sum()
    };
    let (all, shared) = (size(&base.log), size(&base.log[..4]));
    let fork = base.fork(store, 4);
    let extra = size(&fork.log[4..]);
    let both = sizes();
    let total = |own, shared, trash| TotalSize { own, shared, trash };
    assert_eq!(both.total, total(all - shared + extra, shared, 0));
    let of = |writer: &Writer| {
        let mut them = both.sessions.iter().filter(|it| it.id == writer.id);
        let it = them.next().unwrap();
        (it.own, it.shared, it.forks)
    };
    assert_eq!(of(&base), (all - shared, shared, 1));
    assert_eq!(of(&fork), (extra, shared, 0));
    purge(store, &base);
    let alone = sizes();
    assert_eq!(alone.total, total(shared + extra, 0, 0));
    assert_eq!(
        (alone.sessions[0].own, alone.sessions[0].shared),
        (shared + extra, 0)
    );
    // A fork of the fork, from the purged part: it shares what the other fork had alone.
    let mut low = fork.fork(store, 2);
    low.append(store, vec![trashed()]);
    let shared = size(&base.log[..2]);
    let trash = size(&low.log[2..]);
    assert_eq!(
        sizes().total,
        total(size(&fork.log) - shared, shared, trash)
    );
    purge(store, &fork);
    assert_eq!(sizes().total, total(0, 0, size(&low.log)));
}

/// Shared entries are still found through forks; others are not.
pub fn searched_through_forks(store: &dyn Store) {
    let writer = talk(store, 1, "needle");
    let fork = writer.fork(store, 3);
    assert_eq!(found(store, "needle").len(), 4);
    purge(store, &writer);
    assert_eq!(found(store, "needle"), [(fork.id, 2), (fork.id, 3)]);
}

/// The id of a purged session can be used for a new session.
pub fn id_can_be_used_again(store: &dyn Store) {
    let writer = talk(store, 1, "old");
    now(store.keep_draft(writer.id, &writer.draft("old draft"))).unwrap();
    assert_eq!(found(store, "old").len(), 4);
    purge(store, &writer);
    let mut again = Writer::named(writer.id, &still_clock(9));
    again.open(store, |_| {}, vec![human("new")]).unwrap();
    assert_log(store, &again);
    assert_eq!(draft(store, again.id), None);
    assert_eq!(found(store, "old"), []);
    assert_eq!(found(store, "new"), [(again.id, 2)]);
    // The same log can be created again, as the import of a backup does.
    purge(store, &again);
    let head = now(store.create(&NewSession {
        id: writer.id,
        base: None,
        entries: writer.log.clone(),
    }));
    assert_eq!(head.unwrap(), writer.head());
    assert_log(store, &writer);
    assert_eq!(found(store, "old").len(), 4);
}

/// The same while forks still read the old log.
pub fn id_can_be_used_again_while_forks_live(store: &dyn Store) {
    let writer = talk(store, 1, "old");
    let fork = writer.fork(store, 4);
    purge(store, &writer);
    let mut again = Writer::named(writer.id, &still_clock(9));
    again
        .open(store, |_| {}, vec![human("new"), human("newer")])
        .unwrap();
    assert_log(store, &again);
    assert_log(store, &fork);
    let fork_of_new = again.fork(store, 2);
    assert_log(store, &fork_of_new);
    purge(store, &again);
    assert_gone(store, &again);
    assert_log(store, &fork);
    assert_log(store, &fork_of_new);
}

/// When the last fork is purged, the shared prefix is removed.
pub fn nothing_stays_behind_the_last_fork(store: &dyn Store) {
    let base = talk(store, 1, "needle");
    let middle = base.fork(store, 4);
    let top = middle.fork(store, 5);
    for writer in [&base, &middle, &top] {
        purge(store, writer);
        assert_gone(store, writer);
    }
    assert_eq!(found(store, "needle"), []);
    assert_eq!(entries(store), 0);
}

/// Only entries that a fork still reads are kept.
pub fn forks_share_no_more_than_the_longest(store: &dyn Store) {
    let base = talk(store, 1, "talk");
    let early = base.fork(store, 2);
    let late = base.fork(store, 4);
    purge(store, &base);
    assert_eq!(entries(store), 4 + 2);
    purge(store, &late);
    assert_eq!(entries(store), 2 + 1);
    assert_log(store, &early);
}

/// A purged fork keeps no more of its original than its own forks need.
pub fn purged_forks_share_no_more_than_their_forks(store: &dyn Store) {
    let base = talk(store, 1, "talk");
    let middle = base.fork(store, 4);
    let low = middle.fork(store, 2);
    purge(store, &middle);
    assert_eq!(entries(store), 5 + 1);
    purge(store, &base);
    assert_eq!(entries(store), 2 + 1);
    assert_log(store, &low);
}

/// A purged session cannot be forked, not even within the shared prefix.
pub fn a_purged_base_is_no_base(store: &dyn Store) {
    let base = talk(store, 1, "talk");
    let fork = base.fork(store, 3);
    purge(store, &base);
    for at in [1, 3, 5] {
        let answer = base.try_fork(store, base.origin(at), |_| {}, vec![]);
        assert_not_found(answer, base.id);
    }
    assert_log(store, &fork);
}

/// A purged session has no draft and accepts none.
pub fn a_purged_base_has_no_draft(store: &dyn Store) {
    let base = talk(store, 1, "talk");
    let fork = base.fork(store, 3);
    now(store.keep_draft(base.id, &base.draft("x"))).unwrap();
    purge(store, &base);
    assert_not_found(now(store.draft(base.id)), base.id);
    assert_not_found(now(store.keep_draft(base.id, &base.draft("y"))), base.id);
    assert_log(store, &fork);
}

/// A purge removes the draft.
pub fn the_draft_goes_too(store: &dyn Store) {
    let writer = talk(store, 1, "talk");
    now(store.keep_draft(writer.id, &writer.draft("x"))).unwrap();
    purge(store, &writer);
    assert_not_found(now(store.draft(writer.id)), writer.id);
}

/// Other sessions are not affected.
pub fn others_stay(store: &dyn Store) {
    let mut writers: Vec<_> = (0..5).map(|seed| talk(store, seed, "needle")).collect();
    for seed in [2, 4, 0] {
        purge(store, &writers[seed]);
        assert_eq!(found(store, "needle").len(), lines_left(store));
    }
    for seed in [1, 3] {
        writers[seed].say(store, "needle again");
        assert_log(store, &writers[seed]);
    }
    assert_eq!(found(store, "again").len(), 2);
}

/// Number of messages with the word: all entries but the first ones.
fn lines_left(store: &dyn Store) -> usize {
    let rows = list(store, &everything()).rows;
    rows.iter()
        .map(|row| lines(store, row.meta.id).len() - 1)
        .sum()
}
