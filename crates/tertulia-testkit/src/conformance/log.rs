//! Logs: entries are read in order and byte for byte, and appends are atomic.

use serde_json::json;
use tertulia_core::entry::{Body, Head};
use tertulia_core::id::Seq;
use tertulia_core::query::Lookup;
use tertulia_store::{NewSession, Store, StoreError};

use super::assert_not_found;
use crate::ask::{assert_log, everything, find, lines, list, look, now, row};
use crate::clock::still_clock;
use crate::logs::{
    Writer, ai, calling, created, failed, human, renamed, restored, tagged, tool_result, trashed,
    undone,
};

/// Created and appended entries are read back unchanged.
pub fn round_trip_byte_for_byte(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writer = Writer::begin(store, &clock);
    assert_log(store, &writer);
    for turn in 0..5 {
        writer.say(store, &format!("question {turn}"));
        writer.append(store, vec![ai("claude", &format!("answer {turn}"))]);
        assert_log(store, &writer);
    }
    let other = Writer::begin_with(store, &clock, |_| {}, vec![human("at once")]);
    assert_log(store, &other);
    assert_log(store, &writer);
}

/// Any window returns exactly its lines, in order.
pub fn windows(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    for turn in 0..9 {
        writer.say(store, &format!("turn {turn}"));
    }
    let all = lines(store, writer.id);
    assert_eq!(
        all.iter().map(|line| line.seq.0).collect::<Vec<_>>(),
        (1..=10).collect::<Vec<_>>()
    );
    for after in 0..=11 {
        for limit in 0..=12 {
            let window = now(store.read(writer.id, Seq(after as u64), limit)).unwrap();
            let expected: Vec<_> = all.iter().skip(after).take(limit).cloned().collect();
            assert_eq!(window, expected, "after {after}, at most {limit}");
        }
    }
}

/// Positions beyond the end are not an error, because users type them.
pub fn windows_of_extreme_size(store: &dyn Store) {
    let writer = Writer::begin(store, &still_clock(1));
    let read = |after, limit| now(store.read(writer.id, Seq(after), limit)).unwrap();
    assert_eq!(read(0, usize::MAX).len(), 1);
    assert_eq!(read(0, 0), []);
    assert_eq!(read(1, usize::MAX), []);
    assert_eq!(read(i64::MAX as u64, 5), []);
    assert_eq!(read(u64::MAX, usize::MAX), []);
}

/// All entries of one append are present, in order.
pub fn append_of_several_is_one(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.append(
        store,
        vec![
            human("one"),
            calling("claude", "read", json!({"path": "a"})),
            tool_result("read", "two"),
            ai("claude", "three"),
        ],
    );
    assert_log(store, &writer);
    let then: Vec<u32> = writer.log.iter().map(|entry| entry.then).collect();
    assert_eq!(then, [0, 3, 2, 1, 0]);
    // All or none: a conflicting append of several entries writes nothing.
    let mut late = writer.clone();
    late.log.truncate(1);
    assert!(
        late.try_append(store, vec![human("x"), human("y")])
            .is_err()
    );
    assert_log(store, &writer);
}

/// An append whose last entry announces more would look truncated: every store rejects it.
pub fn an_append_without_its_rest_is_refused(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writer = Writer::begin(store, &clock);
    let mut cut = writer.chain(vec![human("one"), human("two"), human("three")]);
    cut.truncate(2);
    let appended = now(store.append(writer.id, writer.head(), &cut));
    assert!(
        matches!(appended, Err(StoreError::Damaged { .. })),
        "{appended:?}"
    );
    let other = Writer::named(clock.session_id(), &clock);
    let mut opening = other.chain(vec![Body::Created(created(other.id)), human("one")]);
    opening.truncate(1);
    let made = now(store.create(&NewSession {
        id: other.id,
        base: None,
        entries: opening,
    }));
    assert!(matches!(made, Err(StoreError::Damaged { .. })), "{made:?}");
    writer.say(store, "goes on");
}

/// An append after an old head fails with the current head, and writes nothing.
pub fn stale_head_is_a_conflict(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let mut late = writer.clone();
    writer.append(store, vec![human("first"), ai("claude", "answer")]);
    match late.try_append(store, vec![human("late")]) {
        Err(StoreError::Conflict { id, head }) => {
            assert_eq!(id, writer.id);
            assert_eq!(head, writer.head());
        }
        other => panic!("expected a conflict, not {other:?}"),
    }
    assert_log(store, &writer);
    // The sequence number alone is not enough: the hash must match, too.
    let same_place = Head {
        hash: late.log[0].hash,
        ..writer.head()
    };
    let entries = writer.chain(vec![human("forged")]);
    let answer = now(store.append(writer.id, same_place, &entries));
    assert!(
        matches!(answer, Err(StoreError::Conflict { head, .. }) if head == writer.head()),
        "{answer:?}"
    );
    // A head beyond the end is a conflict, too.
    let mut ahead = writer.clone();
    ahead.log.extend(ahead.chain(vec![human("never sent")]));
    assert!(matches!(
        ahead.try_append(store, vec![human("after that")]),
        Err(StoreError::Conflict { head, .. }) if head == writer.head()
    ));
    assert_log(store, &writer);
    writer.say(store, "in time");
    assert_log(store, &writer);
}

/// A rejected append changes neither row, nor draft, nor search, nor other sessions.
pub fn conflict_leaves_everything_alone(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writer = Writer::begin(store, &clock);
    let other = Writer::begin(store, &clock);
    let mut late = writer.clone();
    writer.say(store, "first");
    let before = list(store, &everything());
    let late_bodies = vec![renamed("overtaken"), trashed(), human("overtaken")];
    assert!(late.try_append(store, late_bodies).is_err());
    assert_eq!(list(store, &everything()), before);
    assert_eq!(crate::ask::found(store, "overtaken"), []);
    assert_log(store, &other);
}

/// All operations on an unknown session return `NotFound`.
pub fn unknown_session_is_not_found(store: &dyn Store) {
    let clock = still_clock(1);
    let writer = Writer::begin(store, &clock);
    let mut nobody = Writer::named(clock.session_id(), &clock);
    let id = nobody.id;
    assert_not_found(now(store.read(id, Seq::START, 10)), id);
    assert_not_found(nobody.try_append(store, vec![human("x")]), id);
    assert_not_found(now(store.keep_draft(id, &writer.draft("x"))), id);
    assert_not_found(now(store.draft(id)), id);
    assert_not_found(now(store.purge(id)), id);
    let mut origin = writer.origin(1);
    origin.id = id;
    assert_not_found(writer.try_fork(store, origin, |_| {}, vec![]), id);
    assert_eq!(find(store, &Lookup::Id(id)), []);
    assert_eq!(list(store, &everything()).rows.len(), 1);
    assert_eq!(look(store).sessions, 1);
}

/// An existing id is rejected, for new sessions and for forks.
pub fn taken_id_exists(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writer = Writer::begin(store, &clock);
    writer.say(store, "mine");
    let mut second = Writer::named(writer.id, &clock);
    let answer = second.open(store, |_| {}, vec![human("yours")]);
    assert!(
        matches!(answer, Err(StoreError::Exists(id)) if id == writer.id),
        "{answer:?}"
    );
    let answer = now(store.create(&NewSession {
        id: writer.id,
        base: Some(writer.origin(1)),
        entries: second.chain(vec![human("forked onto itself")]),
    }));
    assert!(
        matches!(answer, Err(StoreError::Exists(id)) if id == writer.id),
        "{answer:?}"
    );
    assert_log(store, &writer);
}

/// The row equals the fold of the log after every kind of entry.
pub fn rows_follow_every_kind_of_entry(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let each = vec![
        human("what is this about?"),
        calling("claude", "look", json!({"at": ["this", {"deep": "that"}]})),
        tool_result("look", "it is about that"),
        ai("claude", "about that"),
        ai("codex", "and about more"),
        failed("claude", "it is out of breath"),
        renamed("About that"),
        tagged(&["b", "a"], &[]),
        tagged(&["c"], &["b", "never had"]),
        trashed(),
        restored(),
        undone(12),
        undone(3),
        undone(99),
    ];
    for body in each {
        let kind = body.kind().to_owned();
        writer.append(store, vec![body]);
        assert_eq!(row(store, writer.id).meta, writer.meta(), "{kind}");
        let listed = list(store, &everything()).rows.remove(0).meta;
        assert_eq!(listed, writer.meta(), "listed after {kind}");
    }
    let meta = row(store, writer.id).meta;
    assert_eq!(meta.title.as_deref(), Some("About that"));
    assert_eq!(meta.tags, ["a", "c"]);
    assert_eq!(meta.agents, ["claude", "codex"]);
    assert_eq!(meta.messages, 5);
    assert!(meta.trashed_at.is_some(), "the restoring was undone");
    assert_log(store, &writer);
}

/// Every change can be undone, which is visible in lists, look-ups and the trash.
pub fn undo_of_every_change(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.append(store, vec![human("derived title")]);
    writer.append(store, vec![renamed("given title")]);
    writer.append(store, vec![tagged(&["x"], &[])]);
    writer.append(store, vec![trashed()]);
    let live = |store| list(store, &Default::default()).rows.len();
    assert_eq!(live(store), 0);
    writer.append(store, vec![undone(5)]);
    assert_eq!(live(store), 1);
    writer.append(store, vec![undone(4)]);
    assert!(row(store, writer.id).meta.tags.is_empty());
    writer.append(store, vec![undone(3)]);
    let title = |title: &str| find(store, &Lookup::Title(title.into()));
    assert_eq!(title("given title"), []);
    assert_eq!(title("derived title"), [writer.id]);
    assert_eq!(row(store, writer.id).meta.changed_at(), None);
    assert_log(store, &writer);
}

/// The row stays small: only the newest changes can be undone.
pub fn more_changes_than_can_be_undone(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    for turn in 0..30 {
        writer.append(store, vec![renamed(&format!("title {turn}"))]);
    }
    assert_log(store, &writer);
    for change in (2..=31).rev() {
        writer.append(store, vec![undone(change)]);
    }
    assert_log(store, &writer);
    assert_eq!(row(store, writer.id).meta.title_or_untitled(), "title 9");
}

/// Counts in the store's info.
pub fn info_counts(store: &dyn Store) {
    let clock = still_clock(1);
    let info = || now(store.info()).unwrap();
    let counts = || (info().sessions, info().trashed, info().entries);
    assert_eq!(counts(), (0, 0, 0));
    assert!(!info().backend.is_empty() && !info().place.is_empty() && info().format > 0);
    let mut first = Writer::begin(store, &clock);
    first.append(store, vec![human("a"), human("b")]);
    let mut second = Writer::begin(store, &clock);
    assert_eq!(counts(), (2, 0, 4));
    second.append(store, vec![trashed()]);
    assert_eq!(counts(), (2, 1, 5));
    // Shared entries are counted once.
    first.fork(store, 3);
    assert_eq!(counts(), (3, 1, 6));
    second.append(store, vec![restored()]);
    now(store.purge(second.id)).unwrap();
    assert_eq!(counts(), (2, 0, 4));
}
