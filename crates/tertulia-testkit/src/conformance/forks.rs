//! Forks: they share entries with the original without copying, and then diverge.

use tertulia_core::entry::{Head, Relation};
use tertulia_core::id::Seq;
use tertulia_core::query::Filter;
use tertulia_core::session::{Line, Log};
use tertulia_store::{Store, StoreError};

use crate::ask::{assert_log, ids, lines, list, now, row};
use crate::clock::still_clock;
use crate::logs::{Writer, ai, human, renamed, tagged, trashed};

/// A session with a first entry and `turns` messages.
fn talk(store: &dyn Store, seed: u64, turns: usize) -> Writer {
    let mut writer = Writer::begin(store, &still_clock(seed));
    for turn in 0..turns {
        writer.say(store, &format!("turn {turn}"));
    }
    writer
}

/// A fork reads shared and own entries.
pub fn share_their_beginning(store: &dyn Store) {
    let base = talk(store, 1, 3);
    let mut fork = base.fork_with(store, 4, |_| {}, vec![human("in the same append")]);
    assert_log(store, &fork);
    fork.say(store, "on its own");
    assert_log(store, &fork);
    assert_log(store, &base);
}

/// A fork of a fork reads through both.
pub fn through_two_levels(store: &dyn Store) {
    let base = talk(store, 1, 3);
    let mut middle = base.fork(store, 3);
    middle.say(store, "middle");
    let mut top = middle.fork(store, 5);
    top.say(store, "top");
    let mut higher = top.fork(store, 6);
    higher.say(store, "higher");
    for writer in [&base, &middle, &top, &higher] {
        assert_log(store, writer);
    }
}

/// A fork of an early entry has none of the later ones.
pub fn in_the_middle(store: &dyn Store) {
    let base = talk(store, 1, 5);
    for at in 1..=6 {
        let mut fork = base.fork(store, at);
        assert_log(store, &fork);
        fork.say(store, "and on");
        assert_log(store, &fork);
    }
    assert_log(store, &base);
}

/// A fork of a fork may begin within the part shared with the original: the middle session then
/// contributes nothing.
pub fn of_a_fork_before_its_fork_point(store: &dyn Store) {
    let base = talk(store, 1, 5);
    let mut middle = base.fork(store, 4);
    middle.say(store, "middle");
    for at in 1..=4 {
        let mut top = middle.fork(store, at);
        assert_log(store, &top);
        top.append(store, vec![human("top"), ai("claude", "answer")]);
        assert_log(store, &top);
        let higher = top.fork(store, 1);
        assert_log(store, &higher);
    }
    assert_log(store, &middle);
    assert_log(store, &base);
}

/// A fork of a fork at the last shared entry has no own entries of the middle session.
pub fn of_a_fork_at_its_fork_point(store: &dyn Store) {
    let mut base = talk(store, 1, 3);
    let mut middle = base.fork(store, 3);
    let mut top = middle.fork(store, 3);
    base.say(store, "base");
    middle.say(store, "middle");
    top.say(store, "top");
    for writer in [&base, &middle, &top] {
        assert_log(store, writer);
    }
    let own_opening = middle.fork(store, 4);
    assert_log(store, &own_opening);
}

/// Any window across several levels returns the right lines.
pub fn windows_across_levels(store: &dyn Store) {
    let base = talk(store, 1, 4);
    let mut middle = base.fork(store, 3);
    middle.say(store, "middle");
    let mut top = middle.fork(store, 5);
    top.append(store, vec![human("a"), human("b")]);
    let all: Vec<Line> = top.log.iter().map(Line::from).collect();
    for after in 0..=all.len() {
        for limit in 0..=all.len() + 1 {
            let window = now(store.read(top.id, Seq(after as u64), limit)).unwrap();
            let expected: Vec<_> = all.iter().skip(after).take(limit).cloned().collect();
            assert_eq!(window, expected, "after {after}, at most {limit}");
            let parent = match after {
                0 => Head::START,
                _ => top.log[after - 1].head(),
            };
            let log = Log::read(top.id, Some(parent), Seq(after as u64), &window);
            assert_eq!(log.damage, []);
        }
    }
}

/// Entries appended to the original after the fork do not appear in the fork, and vice versa.
pub fn base_goes_on_alone(store: &dyn Store) {
    let mut base = talk(store, 1, 2);
    let mut fork = base.fork(store, 3);
    for turn in 0..3 {
        base.append(
            store,
            vec![human(&format!("base {turn}")), ai("codex", "x")],
        );
        fork.say(store, &format!("fork {turn}"));
        assert_log(store, &base);
        assert_log(store, &fork);
    }
    base.append(store, vec![renamed("base"), tagged(&["base"], &[])]);
    base.append(store, vec![trashed()]);
    assert_log(store, &base);
    assert_log(store, &fork);
    assert_eq!(ids(&list(store, &Filter::default()).rows), [fork.id]);
}

/// A fork must refer to an existing entry by sequence number and hash.
pub fn wrong_base_is_an_error(store: &dyn Store) {
    let base = talk(store, 1, 3);
    let mut wrong_hash = base.origin(2);
    wrong_hash.hash = base.log[2].hash;
    let mut beyond = base.origin(4);
    beyond.seq = Seq(9);
    let before = list(store, &Filter::default());
    for origin in [wrong_hash, beyond] {
        let answer = base.try_fork(store, origin, |_| {}, vec![]);
        assert!(
            !matches!(answer, Ok(_) | Err(StoreError::Exists(_))),
            "{answer:?}"
        );
    }
    assert_eq!(list(store, &Filter::default()), before);
    assert_log(store, &base);
}

/// A fork at any position of a long log has the right row, also if the backend stores snapshots of
/// the fold.
pub fn anywhere_in_a_long_log(store: &dyn Store) {
    let mut base = talk(store, 1, 1);
    for part in 0..11 {
        let mut bodies: Vec<_> = (0..50).map(|n| human(&format!("{part}.{n}"))).collect();
        bodies.push(renamed(&format!("part {part}")));
        base.append(store, bodies);
    }
    assert_log(store, &base);
    let mut forks = Vec::new();
    for at in [1, 53, 255, 256, 257, 511, 512, 513] {
        let mut fork = base.fork(store, at);
        let more: Vec<_> = (0..9).map(|n| human(&format!("fork {at}.{n}"))).collect();
        fork.append(store, more);
        assert_log(store, &fork);
        forks.push(fork);
    }
    let top = forks[5].fork(store, 516);
    assert_log(store, &top);
    let top = forks[5].fork(store, 300);
    assert_log(store, &top);
}

/// Rows have the parent, and the data given by the fork.
pub fn rows_say_where_they_come_from(store: &dyn Store) {
    let mut base = talk(store, 1, 1);
    base.append(store, vec![renamed("Original"), tagged(&["kept"], &[])]);
    let plain = base.fork(store, 4);
    let edited = base.fork_with(
        store,
        2,
        |forked| {
            forked.title = Some("Another".into());
            forked.project = Some("/elsewhere".into());
            forked.relation = Relation::Replay;
        },
        vec![],
    );
    assert_log(store, &plain);
    assert_log(store, &edited);
    let meta = row(store, plain.id).meta;
    assert_eq!(meta.title.as_deref(), Some("Original (fork)"));
    assert_eq!(meta.tags, ["kept"]);
    let parent = meta.parent.unwrap();
    assert_eq!((parent.id, parent.seq), (base.id, Seq(4)));
    let meta = row(store, edited.id).meta;
    assert_eq!(meta.title.as_deref(), Some("Another"));
    assert_eq!(meta.project.as_deref(), Some("/elsewhere"));
    assert_eq!(meta.parent.unwrap().relation, Relation::Replay);
    let elsewhere = Filter {
        project: Some("/elsewhere".into()),
        ..Filter::default()
    };
    assert_eq!(ids(&list(store, &elsewhere).rows), [edited.id]);
}

/// A fork of a trashed session is not in the trash.
pub fn of_a_trashed_session(store: &dyn Store) {
    let mut base = talk(store, 1, 2);
    base.append(store, vec![trashed()]);
    let fork = base.fork(store, 4);
    assert_log(store, &fork);
    assert_eq!(ids(&list(store, &Filter::default()).rows), [fork.id]);
    assert_eq!(lines(store, base.id).len(), 4);
}
