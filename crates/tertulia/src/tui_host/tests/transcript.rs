//! Parts of transcripts.

use proptest::prelude::*;
use serde_json::json;
use tertulia_core::entry::{Entry, Message, ToolCall};
use tertulia_testkit::logs::{failed, message, renamed};

use super::*;
use tertulia_core::entry::{Role, SpeakerKind};
use tertulia_tui::entries;
use tertulia_tui::item::What;
use tertulia_tui::transcript::{Loaded, Wanted};

fn load(world: &World, session: SessionId, wanted: Wanted) -> Loaded {
    let request = Request::Transcript {
        session,
        kind: Kind::Chat,
        wanted,
    };
    let loaded = held!(world.answer(request), Answer::Transcript { session: of, loaded, .. } => {
        assert_eq!(of, session);
        loaded.unwrap()
    });
    assert_eq!(loaded.wanted, wanted);
    loaded
}

fn before(seq: u64, count: usize) -> Wanted {
    let seq = Seq(seq);
    Wanted::Before { seq, count }
}

fn after(seq: u64, count: usize) -> Wanted {
    let seq = Seq(seq);
    Wanted::After { seq, count }
}

fn around(seq: u64, count: usize) -> Wanted {
    let seq = Seq(seq);
    Wanted::Around { seq, count }
}

fn seqs(items: &[Item]) -> Vec<u64> {
    items.iter().map(|item| item.seq.unwrap().0).collect()
}

/// A session of `turns` questions and answers.
fn long(world: &World, turns: usize) -> Writer {
    let mut writer = world.talk("long", Vec::new());
    for part in (0..turns).collect::<Vec<_>>().chunks(1000) {
        let bodies = part.iter().flat_map(|turn| {
            [
                human(&format!("question {turn}")),
                ai("demo", &format!("answer {turn}")),
            ]
        });
        writer.append(world.store(), bodies.collect());
    }
    writer
}

#[test]
fn a_window_costs_what_it_shows_however_long_the_talk_is() {
    for world in World::each() {
        let mut costs = Vec::new();
        for turns in [1_000, 10_000] {
            let writer = long(&world, turns);
            let head = writer.head().seq.0;
            let middle = head / 2;
            let mut cost = Vec::new();
            for wanted in [
                before(head + 1, 400),
                before(middle, 400),
                after(middle, 400),
                around(middle, 400),
                around(head, 400),
            ] {
                world.store.lines();
                let loaded = load(&world, writer.id, wanted);
                let read = world.store.lines();
                let many = loaded.items.len();
                assert!((200..=400).contains(&many), "{many} things for {wanted:?}");
                assert!(read <= 2 * 400 + 40, "{read} lines for {wanted:?}");
                let places = seqs(&loaded.items);
                assert!(places.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                cost.push(read);
            }
            costs.push(cost);
        }
        assert_eq!(
            costs[0], costs[1],
            "a talk ten times as long costs the same"
        );
    }
}

#[test]
fn windows_begin_and_end_where_they_should() {
    for world in World::each() {
        let writer = long(&world, 10);
        let check = |wanted, first: u64, last: u64, more: (bool, bool)| {
            let loaded = load(&world, writer.id, wanted);
            let expected: Vec<u64> = (first..=last).collect();
            assert_eq!(seqs(&loaded.items), expected, "{wanted:?}");
            assert_eq!((loaded.more_before, loaded.more_after), more, "{wanted:?}");
        };
        check(before(22, 5), 17, 21, (true, false));
        check(before(12, 5), 7, 11, (true, true));
        check(before(4, 50), 2, 3, (false, true));
        check(before(u64::MAX, 2), 20, 21, (true, false));
        check(after(11, 5), 12, 16, (true, true));
        check(after(17, 50), 18, 21, (true, false));
        check(after(0, 3), 2, 4, (false, true));
        check(around(10, 4), 8, 11, (true, true));
        check(around(10, 100), 2, 21, (false, false));
        check(around(500, 4), 19, 21, (true, false));
        check(around(0, 4), 2, 3, (false, true));
        for nothing in [before(2, 5), before(0, 5), before(9, 0), after(21, 5)] {
            assert!(load(&world, writer.id, nothing).items.is_empty());
        }
        assert!(load(&world, writer.id, after(u64::MAX, 5)).items.is_empty());
    }
}

#[test]
fn a_talk_that_is_not_in_the_store_is_empty() {
    for world in World::each() {
        let loaded = load(&world, world.nobody(), before(1, 100));
        assert!(loaded.items.is_empty() && !loaded.more_before && !loaded.more_after);
    }
}

#[test]
fn a_fork_shows_what_it_shares() {
    for world in World::each() {
        let writer = long(&world, 10);
        let mut fork = writer.fork(world.store(), 9);
        fork.say(world.store(), "another way");
        let loaded = load(&world, fork.id, before(12, 100));
        assert_eq!(seqs(&loaded.items), (2..=11).collect::<Vec<_>>());
        assert_eq!(loaded.items, entries::items(&fork.log, Kind::Chat));
        let loaded = load(&world, fork.id, before(6, 2));
        assert_eq!(seqs(&loaded.items), [4, 5]);
    }
}

#[test]
fn big_things_come_a_few_at_a_time() {
    for world in World::each() {
        let mut writer = world.talk("big", Vec::new());
        for _ in 0..3 {
            let bodies = (0..4).map(|_| human(&"x".repeat(900_000)));
            writer.append(world.store(), bodies.collect());
        }
        world.store.bytes();
        let loaded = load(&world, writer.id, before(14, 400));
        assert_eq!(seqs(&loaded.items), [9, 10, 11, 12, 13]);
        assert!(loaded.more_before);
        let read = world.store.bytes();
        assert!(read < 10_000_000, "{read} bytes");
        let loaded = load(&world, writer.id, after(1, 400));
        assert_eq!(seqs(&loaded.items), [2, 3, 4, 5, 6]);
        assert!(loaded.more_after);
    }
}

#[test]
fn what_is_not_shown_never_looks_like_the_end() {
    let world = World::new("sqlite");
    let mut writer = world.small("tidied up");
    for round in 0..5 {
        let bodies = (0..1000).map(|number| renamed(&format!("{round} {number}")));
        writer.append(world.store(), bodies.collect());
    }
    let loaded = load(&world, writer.id, before(writer.head().seq.0 + 1, 50));
    assert_eq!((seqs(&loaded.items), loaded.more_before), (vec![3], true));
    let loaded = load(&world, writer.id, before(3, 50));
    assert_eq!((seqs(&loaded.items), loaded.more_before), (vec![2], false));
}

#[test]
fn what_is_damaged_is_named_and_hides_nothing() {
    let world = World::new("sqlite");
    let writer = long(&world, 5);
    let database = rusqlite::Connection::open(world.folder.path().join("home/t.db")).unwrap();
    let spoil = "UPDATE entry SET line = 'nothing' WHERE seq = 5";
    assert_eq!(database.execute(spoil, []).unwrap(), 1);
    for wanted in [before(12, 100), after(0, 100), around(5, 100)] {
        let items = load(&world, writer.id, wanted).items;
        assert_eq!(seqs(&items), (2..=11).collect::<Vec<_>>(), "{wanted:?}");
        let What::Notice { text, .. } = &items[3].what else {
            panic!("{:?}", items[3]);
        };
        assert!(text.starts_with("entry 5 is damaged: "), "{text}");
    }
}

#[test]
fn a_store_that_cannot_be_read_says_why() {
    let world = World::new("sqlite");
    let writer = long(&world, 5);
    let database = rusqlite::Connection::open(world.folder.path().join("home/t.db")).unwrap();
    database.execute("DROP TABLE entry", []).unwrap();
    let request = Request::Transcript {
        session: writer.id,
        kind: Kind::Chat,
        wanted: before(5, 10),
    };
    let loaded = held!(world.answer(request), Answer::Transcript { loaded, .. } => loaded);
    assert!(!refused(loaded).is_empty());
}

fn calling(ids: &[u8], words: &str) -> Body {
    let calls = ids.iter().map(|id| ToolCall {
        id: format!("call-{id}"),
        name: "look".to_owned(),
        arguments: json!({}),
    });
    Body::Message(Message {
        tool_calls: calls.collect(),
        ..message("demo", SpeakerKind::Ai, Role::Assistant, words)
    })
}

fn result(id: Option<u8>) -> Body {
    Body::Message(Message {
        tool_call_id: id.map(|id| format!("call-{id}")),
        ..message("look", SpeakerKind::Tool, Role::Tool, "looked")
    })
}

fn any_body() -> impl Strategy<Value = Body> {
    let ids = || proptest::collection::vec(0..3_u8, 1..4);
    prop_oneof![
        Just(human("go on")),
        Just(ai("demo", "yes")),
        Just(renamed("a title")),
        Just(failed("demo", "no")),
        ids().prop_map(|ids| calling(&ids, "")),
        ids().prop_map(|ids| calling(&ids, "let me look")),
        (0..3_u8).prop_map(|id| result(Some(id))),
        (0..3_u8).prop_map(|id| result(Some(id))),
        Just(result(None)),
    ]
}

#[test]
fn a_result_that_comes_late_stands_with_its_call() {
    let world = World::new("sqlite");
    let mut bodies = vec![calling(&[1, 2], "")];
    bodies.extend((0..150).map(|_| human("meanwhile")));
    bodies.extend([result(Some(2)), result(Some(1)), human("then")]);
    let writer = world.talk("late", bodies);
    let outputs = |items: &[Item]| {
        let used = items.iter().filter_map(|item| match &item.what {
            What::Used(used) => Some(used.output.is_some()),
            _ => None,
        });
        used.collect::<Vec<_>>()
    };
    let head = writer.head().seq.0;
    let late = load(&world, writer.id, before(head + 1, 5)).items;
    assert!(late.iter().all(|item| matches!(item.what, What::Said(_))));
    let early = load(&world, writer.id, after(1, 5)).items;
    assert_eq!(outputs(&early), [true, true]);
    let early = load(&world, writer.id, before(4, 5)).items;
    assert_eq!(outputs(&early), [true, true]);
    let behind = load(&world, writer.id, after(2, 400)).items;
    assert!(behind.iter().all(|item| matches!(item.what, What::Said(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However a session is split into windows, together they show the same as the whole.
    #[test]
    fn windows_put_together_are_the_whole(
        bodies in proptest::collection::vec(any_body(), 1..60),
        count in 1..9_usize,
    ) {
        let world = World::new("memory");
        let writer = world.talk("cut", bodies);
        let whole = entries::items(&writer.log, Kind::Chat);
        let mut at = writer.head().seq.next();
        let mut back: Vec<Item> = Vec::new();
        while let loaded = load(&world, writer.id, before(at.0, count)) && !loaded.items.is_empty() {
            prop_assert!(loaded.items[0].seq < Some(at));
            at = loaded.items[0].seq.unwrap();
            back.splice(0..0, loaded.items);
        }
        prop_assert_eq!(&back, &whole);
        let mut at = Seq::START;
        let mut on: Vec<Item> = Vec::new();
        while let loaded = load(&world, writer.id, after(at.0, count)) && !loaded.items.is_empty() {
            at = loaded.items.last().unwrap().seq.unwrap();
            on.extend(loaded.items);
        }
        prop_assert_eq!(on, whole);
    }

    /// The number of items of an entry is known without converting it.
    #[test]
    fn things_are_counted_as_they_are_shown(body in any_body()) {
        let world = World::new("memory");
        let writer = world.talk("one", vec![body]);
        let entry: &Entry = &writer.log[1];
        let is_result = entry.message().is_some_and(entries::is_result);
        let shown = entries::items(std::slice::from_ref(entry), Kind::Chat).len();
        prop_assert_eq!(entries::things(entry), if is_result { 0 } else { shown });
    }
}
