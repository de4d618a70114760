//! Merges of random sessions on every backend: what is written is what the two sessions have.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tertulia_core::entry::{Body, Entry, Head, Kind, Message, Origin, Relation};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::merge::{MergeOrder, Side, merged};
use tertulia_core::session::SessionMeta;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{
    Divergence, MergeBase, NewMerge, Redaction, Sessions, Start, Store, StoreError,
};
use tertulia_testkit::ask::{assert_sound, now, row};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, calling, failed, human, renamed, tool_result, trashed};

/// Runs a check on each backend.
fn on_both(check: impl Fn(&Sessions)) {
    let folder = tempfile::tempdir().unwrap();
    let sqlite: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("tertulia.db")).unwrap());
    let files: Arc<dyn Store> =
        Arc::new(FilesStore::open(&folder.path().join("sessions")).unwrap());
    for store in [sqlite, files] {
        check(&Sessions::new(store, still_clock(77), Redaction::On));
    }
}

/// Part of a session.
#[derive(Clone, Debug)]
enum Part {
    Turn(String, String),
    Tool,
    Failure,
    Title,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        ("[a-c ]{1,8}", "[a-c ]{1,8}").prop_map(|(one, other)| Part::Turn(one, other)),
        Just(Part::Tool),
        Just(Part::Failure),
        Just(Part::Title),
    ];
    prop::collection::vec(part, 0..5)
}

fn write(store: &dyn Store, writer: &mut Writer, parts: &[Part]) {
    for part in parts {
        writer.append(
            store,
            match part {
                Part::Turn(question, answer) => vec![human(question), ai("demo", answer)],
                Part::Tool => vec![
                    calling("demo", "look", json!({ "at": "." })),
                    tool_result("look", "found"),
                ],
                Part::Failure => vec![human("oh"), failed("demo", "it is down")],
                Part::Title => vec![renamed("another title")],
            },
        );
    }
}

fn end(writer: &Writer) -> Origin {
    writer.origin(writer.head().seq.0)
}

fn meta(sessions: &Sessions, id: SessionId) -> SessionMeta {
    row(sessions.store(), id).meta
}

fn diverge(sessions: &Sessions, ours: &Writer, theirs: &Writer) -> Divergence {
    let [one, other] = [ours, theirs].map(|writer| meta(sessions, writer.id));
    now(sessions.diverge(&one, &other)).unwrap()
}

/// Merges as the command does.
fn merge(
    sessions: &Sessions,
    ours: &Writer,
    theirs: &Writer,
    order: MergeOrder,
) -> Result<SessionMeta, StoreError> {
    let divergence = diverge(sessions, ours, theirs);
    let [meta_ours, meta_theirs] = [ours, theirs].map(|writer| meta(sessions, writer.id));
    let side = |meta, own| Side { meta, own };
    let entries = merged(
        side(&meta_ours, &divergence.ours.entries),
        side(&meta_theirs, &divergence.theirs.entries),
        order,
        sessions.clock().entry_id(),
    );
    let id = sessions.clock().session_id();
    let base = match divergence.shared {
        Head::START => MergeBase::New(Start {
            id,
            kind: Kind::Chat,
            title: None,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
        }),
        head => MergeBase::Shared { head, bytes: 0 },
    };
    let new = NewMerge {
        id,
        title: Some("Merged".into()),
        base,
        ours: end(ours),
        theirs: end(theirs),
    };
    now(sessions.merge(&new, entries))
}

fn messages(entries: &[Entry]) -> BTreeMap<EntryId, Message> {
    let messages = entries
        .iter()
        .filter_map(|entry| Some((entry.id, entry.message()?.clone())));
    messages
        .map(|(id, message)| {
            let usage_id = None;
            (
                id,
                Message {
                    usage_id,
                    ..message
                },
            )
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_has_every_message_of_both_once(
        common in parts(), ours in parts(), theirs in parts(), related in any::<bool>(),
        order in prop::sample::select(vec![MergeOrder::Time, MergeOrder::Ours, MergeOrder::Theirs]),
    ) {
        on_both(|sessions| {
            let store = sessions.store();
            let clock = still_clock(5);
            let mut one = Writer::begin(store, &clock);
            write(store, &mut one, &common);
            let shared = one.head();
            let mut other = match related {
                true => one.fork(store, shared.seq.0),
                false => {
                    let mut other = Writer::begin(store, &clock);
                    write(store, &mut other, &common);
                    other
                }
            };
            write(store, &mut one, &ours);
            write(store, &mut other, &theirs);
            let divergence = diverge(sessions, &one, &other);
            let expected = if related { shared } else { Head::START };
            assert_eq!(divergence.shared, expected);
            let at = usize::try_from(expected.seq.0).unwrap();
            assert_eq!(divergence.ours.entries, one.log[at..]);
            assert_eq!(divergence.theirs.entries, other.log[at..]);
            let pair = (one.id, other.id);
            assert!(now(sessions.existing_merge(pair, &divergence)).unwrap().is_none());

            let merged = merge(sessions, &one, &other, order).unwrap();
            let log = now(sessions.load(merged.id)).unwrap();
            assert!(log.damage.is_empty());
            assert_eq!(log.entries[..at], one.log[..at]);
            let mut all = messages(&one.log);
            all.extend(messages(&other.log));
            assert_eq!(log.messages().count(), all.len());
            assert_eq!(messages(&log.entries), all);
            for pair in log.entries.windows(2) {
                let calls = pair[0].message().is_some_and(|message| !message.tool_calls.is_empty());
                assert!(!calls || pair[1].message().unwrap().tool_call_id.is_some());
            }
            let parent = merged.parent.clone().unwrap();
            assert_eq!((parent.id, parent.seq, parent.relation), (one.id, one.head().seq, Relation::Merge));
            assert_eq!(merged.merged.clone().unwrap().id, other.id);
            // Both orders of the arguments find it.
            for pair in [pair, (other.id, one.id)] {
                let found = now(sessions.existing_merge(pair, &divergence)).unwrap();
                assert_eq!(found.unwrap().meta.id, merged.id);
            }
            assert_sound(store);
        });
    }
}

#[test]
fn a_merge_in_the_trash_does_not_count_nor_one_that_lacks_something() {
    on_both(|sessions| {
        let store = sessions.store();
        let mut one = Writer::begin(store, &still_clock(5));
        one.say(store, "common");
        let mut other = one.fork(store, 2);
        one.say(store, "ours");
        other.say(store, "theirs");
        let merged = merge(sessions, &one, &other, MergeOrder::Time).unwrap();
        let existing = |one: &Writer, other: &Writer| {
            let divergence = diverge(sessions, one, other);
            let found = now(sessions.existing_merge((one.id, other.id), &divergence)).unwrap();
            found.map(|row| row.meta.id)
        };
        one.append(store, vec![renamed("tidied up")]);
        assert_eq!(
            existing(&one, &other),
            Some(merged.id),
            "a title is no message"
        );
        one.say(store, "more");
        assert_eq!(existing(&one, &other), None);
        let again = merge(sessions, &one, &other, MergeOrder::Time).unwrap();
        assert_eq!(existing(&one, &other), Some(again.id));
        let entries = now(sessions.append(again.id, again.head, vec![trashed()])).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(existing(&one, &other), None);
    });
}

/// What is shared is stored once, and survives the sessions that it came from.
#[test]
fn a_merge_outlives_both_sessions() {
    on_both(|sessions| {
        let store = sessions.store();
        let mut one = Writer::begin(store, &still_clock(5));
        one.say(store, "common");
        let mut other = one.fork(store, 2);
        one.say(store, "ours");
        other.say(store, "theirs");
        let merged = merge(sessions, &one, &other, MergeOrder::Time).unwrap();
        now(store.purge(one.id)).unwrap();
        now(store.purge(other.id)).unwrap();
        let log = now(sessions.load(merged.id)).unwrap();
        let said: Vec<&str> = log
            .messages()
            .map(|(_, message)| message.content.as_str())
            .collect();
        assert_eq!(said, ["common", "ours", "theirs"]);
        assert_sound(store);
    });
}

#[test]
fn a_merge_that_would_be_too_large_makes_nothing() {
    on_both(|sessions| {
        let store = sessions.store();
        let mut one = Writer::begin(store, &still_clock(5));
        one.say(store, "common");
        let mut other = one.fork(store, 2);
        other.say(store, "theirs");
        let divergence = diverge(sessions, &one, &other);
        let new = NewMerge {
            id: sessions.clock().session_id(),
            title: None,
            base: MergeBase::Shared {
                head: divergence.shared,
                bytes: 99_999_999,
            },
            ours: end(&one),
            theirs: end(&other),
        };
        let refused = now(sessions.merge(&new, tertulia_core::merge::MergedEntries::default()));
        assert!(
            matches!(refused, Err(StoreError::TooLarge { .. })),
            "{refused:?}"
        );
        assert!(now(sessions.row(new.id)).is_err());
    });
}

/// The entries of a merge are one append: a crash leaves all of it, or nothing.
#[test]
fn a_merge_is_one_append() {
    on_both(|sessions| {
        let store = sessions.store();
        let mut one = Writer::begin(store, &still_clock(5));
        one.say(store, "common");
        let mut other = one.fork(store, 2);
        one.say(store, "ours");
        other.say(store, "theirs");
        let merged = merge(sessions, &one, &other, MergeOrder::Time).unwrap();
        let log = now(sessions.load(merged.id)).unwrap();
        let own: Vec<u32> = log.entries[2..].iter().map(|entry| entry.then).collect();
        assert_eq!(own, [3, 2, 1, 0]);
        assert!(matches!(log.entries[2].body, Body::Forked(_)));
        assert_eq!(log.entries[2].seq, Seq(3));
    });
}
