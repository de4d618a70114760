//! Merges of random sessions, and those whose order matters.

mod log;

use jiff::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::entry::{
    Merged, Message, Origin, Paired, PairedAgent, Relation, Role, Speaker, SpeakerKind, Usage,
    human, plain,
};
use crate::id::SessionId;
use crate::session::Status;
pub(crate) use log::{Part, Writer, parts};

fn order() -> impl Strategy<Value = MergeOrder> {
    prop::sample::select(vec![MergeOrder::Time, MergeOrder::Ours, MergeOrder::Theirs])
}

/// Two sessions that share their first entries.
pub(crate) struct Fork {
    pub(crate) ours: Writer,
    pub(crate) theirs: Writer,
    pub(crate) shared: usize,
}

impl Fork {
    pub(crate) fn of(common: &[Part], ours: &[Part], theirs: &[Part], later: i64) -> Fork {
        let mut base = Writer::new(1);
        base.create(Kind::Chat);
        common.iter().for_each(|part| base.part(part));
        let mut fork = Fork {
            shared: base.entries.len(),
            ours: base.fork(2, 2000),
            theirs: base.fork(3, 2000 + later),
        };
        ours.iter().for_each(|part| fork.ours.part(part));
        theirs.iter().for_each(|part| fork.theirs.part(part));
        fork
    }

    pub(crate) fn own(&self) -> (&[Entry], &[Entry]) {
        (
            &self.ours.entries[self.shared..],
            &self.theirs.entries[self.shared..],
        )
    }

    fn merge(&self, order: MergeOrder) -> MergedEntries {
        let (ours, theirs) = self.own();
        let meta = |writer: &Writer| SessionMeta::of(session(writer.session), &writer.entries);
        let (meta_ours, meta_theirs) = (meta(&self.ours), meta(&self.theirs));
        let ours = Side {
            meta: &meta_ours,
            own: ours,
        };
        let theirs = Side {
            meta: &meta_theirs,
            own: theirs,
        };
        merged(ours, theirs, order, EntryId::new(Uuid::from_u128(9)))
    }

    /// The merged session as a log.
    fn merged(&self, order: MergeOrder) -> Writer {
        let mut log = Writer::new(4);
        log.entries = self.ours.entries[..self.shared].to_vec();
        let origin = |writer: &Writer| Origin {
            id: session(writer.session),
            seq: writer.head().seq,
            hash: writer.head().hash,
        };
        log.write(Body::Merged(Merged {
            ours: origin(&self.ours),
            theirs: origin(&self.theirs),
        }));
        let merged = self.merge(order);
        merged.copies.into_iter().for_each(|new| log.copy(new));
        merged.closing.into_iter().for_each(|body| log.write(body));
        log
    }
}

fn session(number: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(number))
}

fn message_ids(entries: &[Entry]) -> Vec<EntryId> {
    let messages = entries.iter().filter(|entry| entry.message().is_some());
    messages.map(|entry| entry.id).collect()
}

/// Returns the calls with their results, as places in a list of entries.
fn pairs(entries: &[&Body]) -> Vec<(usize, usize)> {
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, body) in entries.iter().enumerate() {
        let Body::Message(message) = body else {
            continue;
        };
        for call in &message.tool_calls {
            open.insert(call.id.clone(), at);
        }
        if let Some(call) = message.tool_call_id.as_ref().and_then(|id| open.remove(id)) {
            pairs.push((call, at));
        }
    }
    pairs
}

proptest! {
    /// Every message of both sides is there once, in the order of its side.
    #[test]
    fn nothing_is_lost_and_nothing_doubled(
        common in parts(), ours in parts(), theirs in parts(), order in order(), later in -20..20_i64,
    ) {
        let fork = Fork::of(&common, &ours, &theirs, later);
        let merged = fork.merge(order);
        let copies: Vec<EntryId> = merged.copies.iter().map(|copy| copy.id).collect();
        let (ours, theirs) = fork.own();
        let (ours, theirs) = (message_ids(ours), message_ids(theirs));
        prop_assert_eq!(merged.messages, ours.len() + theirs.len());
        for side in [&ours, &theirs] {
            let kept: Vec<EntryId> = copies.iter().filter(|id| side.contains(id)).copied().collect();
            prop_assert_eq!(&kept, side);
        }
        let distinct: HashSet<EntryId> = copies.iter().copied().collect();
        prop_assert_eq!(distinct.len(), copies.len());
    }

    /// Between a call and its result there is nothing of the other side.
    #[test]
    fn tool_calls_stay_with_their_results(
        common in parts(), ours in parts(), theirs in parts(), order in order(), later in -20..20_i64,
    ) {
        let fork = Fork::of(&common, &ours, &theirs, later);
        let merged = fork.merge(order);
        let (ours, theirs) = fork.own();
        for side in [ours, theirs] {
            let bodies: Vec<&Body> = side.iter().map(|entry| &entry.body).collect();
            for (call, result) in pairs(&bodies) {
                let place = |at: usize| merged.copies.iter().position(|copy| copy.id == side[at].id);
                let (call, result) = (place(call).unwrap(), place(result).unwrap());
                prop_assert!(call < result);
                for copy in &merged.copies[call..=result] {
                    prop_assert!(side.iter().any(|entry| entry.id == copy.id));
                }
            }
        }
    }

    /// A merge contains both sides, so that merging again has nothing to do; and what is new on one
    /// side afterwards is merged without doubling the rest.
    #[test]
    fn merging_again_adds_only_what_is_new(
        common in parts(), ours in parts(), theirs in parts(), more in parts(), order in order(),
        again in order(),
    ) {
        let mut fork = Fork::of(&common, &ours, &theirs, 3);
        let merged = fork.merged(order);
        let (own_ours, own_theirs) = fork.own();
        prop_assert!(contains(&merged.entries, own_ours) && contains(&merged.entries, own_theirs));
        fork.theirs.second = 5000;
        let before = fork.theirs.entries.len();
        more.iter().for_each(|part| fork.theirs.part(part));
        let new = message_ids(&fork.theirs.entries[before..]);
        let second = Fork { ours: merged.clone(), ..fork };
        let twice = second.merge(again);
        let mut expected: HashSet<EntryId> = message_ids(second.own().0).into_iter().collect();
        expected.extend(new);
        prop_assert_eq!(twice.messages, expected.len());
        let copied: HashSet<EntryId> = twice.copies.iter().filter_map(|copy| {
            matches!(copy.body, Body::Message(_)).then_some(copy.id)
        }).collect();
        prop_assert_eq!(copied, expected);
    }

    /// A fork without own messages is contained in its original.
    #[test]
    fn an_unchanged_fork_is_contained(common in parts(), ours in parts()) {
        let fork = Fork::of(&common, &ours, &[], 0);
        let (ours, theirs) = fork.own();
        prop_assert!(contains(ours, theirs));
        prop_assert_eq!(contains(theirs, ours), message_ids(ours).is_empty());
    }

    /// By time, groups are sorted if the clocks are right.
    #[test]
    fn times_rise(common in parts(), ours in parts(), theirs in parts(), later in -20..20_i64) {
        let fork = Fork::of(&common, &ours, &theirs, later);
        let (ours, theirs) = fork.own();
        let groups = in_order(grouped(Kind::Chat, ours), grouped(Kind::Chat, theirs), MergeOrder::Time);
        let times: Vec<Timestamp> = groups.iter().map(|group| group[0].at).collect();
        prop_assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn the_metadata_counts_both_sides(
        common in parts(), ours in parts(), theirs in parts(), order in order(),
    ) {
        let fork = Fork::of(&common, &ours, &theirs, 3);
        let log = fork.merged(order);
        let meta = SessionMeta::of(session(4), &log.entries);
        let count = |entries: &[Entry]| message_ids(entries).len() as u64;
        let (ours, theirs) = fork.own();
        let shared = &fork.ours.entries[..fork.shared];
        prop_assert_eq!(meta.messages, count(shared) + count(ours) + count(theirs));
        let (parent, merged) = (meta.parent.unwrap(), meta.merged.unwrap());
        prop_assert_eq!((parent.id, parent.relation), (session(2), Relation::Merge));
        prop_assert_eq!((merged.id, merged.seq), (session(3), fork.theirs.head().seq));
    }
}

fn said(merged: &MergedEntries) -> Vec<&str> {
    let copies = merged.copies.iter();
    copies
        .map(|copy| match &copy.body {
            Body::Message(message) => message.content.as_str(),
            body => body.kind(),
        })
        .collect()
}

fn two_sides() -> Fork {
    let mut fork = Fork::of(&[Part::Human("hi".into())], &[], &[], 1);
    fork.ours.second = 2000;
    fork.ours.human("o1");
    fork.ours.second = 2010;
    fork.ours.answer("o2", &[]);
    fork.theirs.second = 2005;
    fork.theirs.human("t1");
    fork.theirs.second = 2020;
    fork.theirs.answer("t2", &[]);
    fork
}

#[test]
fn the_order_is_chosen() {
    let fork = two_sides();
    assert_eq!(
        said(&fork.merge(MergeOrder::Time)),
        ["o1", "t1", "o2", "t2"]
    );
    assert_eq!(
        said(&fork.merge(MergeOrder::Ours)),
        ["o1", "o2", "t1", "t2"]
    );
    assert_eq!(
        said(&fork.merge(MergeOrder::Theirs)),
        ["t1", "t2", "o1", "o2"]
    );
}

#[test]
fn a_failure_stays_with_its_prompt() {
    let mut fork = Fork::of(&[], &[], &[], 1);
    fork.ours.second = 2000;
    fork.ours.human("o1");
    fork.ours.second = 2010;
    fork.ours.fail();
    fork.theirs.second = 2005;
    fork.theirs.human("t1");
    assert_eq!(said(&fork.merge(MergeOrder::Time)), ["o1", "failed", "t1"]);
}

/// The common part ends with a call: its results come first, also those of the second session.
#[test]
fn results_of_a_common_call_follow_it() {
    let mut fork = Fork::of(&[Part::Tools(1, 0, false)], &[], &[], 1);
    fork.ours.second = 2000;
    fork.ours.result("call-0", "o-result");
    fork.ours.answer("o-answer", &[]);
    fork.theirs.second = 3000;
    fork.theirs.result("call-0", "t-result");
    fork.theirs.human("t1");
    for order in [MergeOrder::Time, MergeOrder::Ours] {
        let merged = fork.merge(order);
        assert_eq!(said(&merged), ["o-result", "t-result", "o-answer", "t1"]);
    }
}

#[test]
fn copies_keep_ids_times_and_the_identity_of_their_usage() {
    let mut fork = two_sides();
    fork.ours.write(Body::Message(Message {
        usage: Some(Usage::told(1, 1)),
        usage_id: Some("m:r".into()),
        ..plain(&human(), Role::Assistant, "imported".into())
    }));
    let merged = fork.merge(MergeOrder::Ours);
    let (ours, _) = fork.own();
    let usage_id = |at: usize| match &merged.copies[at].body {
        Body::Message(message) => message.usage_id.clone(),
        _ => None,
    };
    for (copy, original) in merged.copies.iter().zip(ours) {
        assert_eq!((copy.id, copy.at), (original.id, original.at));
    }
    assert_eq!(usage_id(0), None, "a message without usage needs none");
    assert_eq!(usage_id(1), Some(ours[1].id.to_string()));
    assert_eq!(usage_id(2), Some("m:r".to_owned()));
}

/// Two messages may have one id after a repair; both are kept.
#[test]
fn one_id_with_two_contents_is_two_messages() {
    let mut fork = two_sides();
    fork.theirs.session = fork.ours.session;
    fork.theirs.entries.truncate(fork.shared);
    fork.theirs.human("same id, other words");
    let merged = fork.merge(MergeOrder::Time);
    assert_eq!(merged.messages, 3);
    assert_ne!(merged.copies[0].id, merged.copies[1].id);
    let (ours, theirs) = fork.own();
    assert!(!contains(ours, theirs));
}

#[test]
fn what_is_left_out_is_counted() {
    let fork = Fork::of(
        &[],
        &[Part::Compaction],
        &[Part::Compaction, Part::Failure],
        1,
    );
    let merged = fork.merge(MergeOrder::Time);
    assert_eq!(merged.left_out, BTreeMap::from([("compacted".into(), 2)]));
}

#[test]
fn tags_of_both_are_kept() {
    let mut fork = two_sides();
    let tagged = |add: &[&str], remove: &[&str]| {
        let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect();
        Body::Tagged(Tagged {
            add: owned(add),
            remove: owned(remove),
            operation: EntryId::new(Uuid::from_u128(5)),
        })
    };
    fork.ours.write(tagged(&["a"], &["old"]));
    fork.theirs.write(tagged(&["b"], &[]));
    let merged = fork.merge(MergeOrder::Time);
    let Some(Body::Tagged(tags)) = merged.closing.first() else {
        panic!("{:?}", merged.closing);
    };
    assert_eq!(
        (&tags.add[..], &tags.remove[..]),
        (&["a".into(), "b".into()][..], &["old".into()][..])
    );
}

#[test]
fn other_kinds_and_teams_are_refused() {
    let mut ours = SessionMeta::blank(session(1));
    let mut theirs = SessionMeta::blank(session(2));
    assert_eq!(check(&ours, &theirs), Ok(()));
    theirs.kind = Kind::Team;
    let error = check(&ours, &theirs).unwrap_err();
    assert!(error.to_string().contains("is a chat and"), "{error}");
    ours.kind = Kind::Team;
    ours.team = Some("birds".into());
    theirs.team = Some("bees".into());
    let error = check(&ours, &theirs).unwrap_err();
    assert!(
        error.to_string().contains("'birds'") && error.to_string().contains("'bees'"),
        "{error}"
    );
}

fn pair_message(thread: &str, kind: SpeakerKind, role: Role, content: &str) -> Body {
    Body::Message(Message {
        thread: Some(thread.into()),
        ..plain(&Speaker::plain("someone", kind), role, content.into())
    })
}

/// Writes one task of a pair: the human's message, an instruction, the work, and DONE.
fn pair_task(log: &mut Writer, task: &str) {
    log.write(pair_message(
        "instructor",
        SpeakerKind::Human,
        Role::User,
        task,
    ));
    let instruction = format!("Tell worker: {task}");
    log.write(pair_message(
        "instructor",
        SpeakerKind::Ai,
        Role::Assistant,
        &instruction,
    ));
    log.write(pair_message("worker", SpeakerKind::Ai, Role::User, task));
    log.write(pair_message(
        "worker",
        SpeakerKind::Ai,
        Role::Assistant,
        "worked",
    ));
    log.write(pair_message(
        "instructor",
        SpeakerKind::Ai,
        Role::User,
        "worked",
    ));
    log.write(pair_message(
        "instructor",
        SpeakerKind::Ai,
        Role::Assistant,
        "DONE",
    ));
}

#[test]
fn tasks_of_a_pair_stay_whole_and_its_state_is_sound() {
    let mut base = Writer::new(1);
    base.create(Kind::Pair);
    let agent = |name: &str| PairedAgent {
        agent: name.into(),
        model: None,
    };
    base.write(Body::Paired(Paired {
        instructor: agent("a"),
        worker: agent("b"),
        ..Paired::default()
    }));
    base.write(Body::Budgeted(Budgeted {
        budget: Budget::Calls(10),
    }));
    pair_task(&mut base, "first");
    let mut fork = Fork {
        shared: base.entries.len(),
        ours: base.fork(2, 2000),
        theirs: base.fork(3, 2003),
    };
    pair_task(&mut fork.ours, "ours");
    pair_task(&mut fork.ours, "ours again");
    pair_task(&mut fork.theirs, "theirs");
    let log = fork.merged(MergeOrder::Time);
    let meta = SessionMeta::of(session(4), &log.entries);
    let pair = meta.pair.as_deref().unwrap();
    assert_eq!((pair.round, pair.worker_calls), (8, 4));
    // Ours has 7 calls left, theirs 8.
    assert_eq!(pair.remaining, Budget::Calls(7));
    assert_eq!(
        (meta.status, pair.instructor.agent.as_str()),
        (Status::Paused, "a")
    );
    let human = |entry: &Entry| {
        let message = entry.message()?;
        (message.speaker.kind == SpeakerKind::Human).then(|| message.content.clone())
    };
    let tasks: Vec<String> = log.entries.iter().filter_map(human).collect();
    assert_eq!(tasks, ["first", "ours", "theirs", "ours again"]);
}

#[test]
fn a_team_ends_with_an_empty_queue_and_all_heirs() {
    let mut base = Writer::new(1);
    base.create(Kind::Team);
    let mut fork = Fork {
        shared: base.entries.len(),
        ours: base.fork(2, 2000),
        theirs: base.fork(3, 3000),
    };
    let seated = |file: &str, old: &str, new: &str| {
        Body::Seated(Seated {
            file: Some(file.into()),
            heirs: BTreeMap::from([(old.into(), new.into())]),
        })
    };
    fork.ours.write(seated("ours.json", "ada", "eve"));
    fork.ours.human("[TEAM_TASK: x]");
    fork.theirs.write(seated("theirs.json", "ben", "eve"));
    fork.theirs.human("hello");
    let merged = fork.merge(MergeOrder::Time);
    let Some(Body::Seated(last)) = merged.closing.last() else {
        panic!("{:?}", merged.closing);
    };
    assert_eq!(last.file.as_deref(), Some("ours.json"));
    assert_eq!(last.heirs.len(), 2);
}
