//! Window over a long session, and the invariant that the visible rows are contiguous.

use proptest::prelude::*;

use super::super::window::MOST_ITEMS;
use super::*;

#[test]
fn older_things_come_before_without_a_move() {
    let mut transcript = Transcript::new(1_000);
    transcript.fit(SCREEN, DARK);
    let wanted = transcript.wants().unwrap();
    assert_eq!(
        wanted,
        Wanted::Before {
            seq: Seq(1_001),
            count: 400
        }
    );
    assert_eq!(transcript.wants(), None);
    transcript.put(load(1_000, wanted));
    transcript.fit(SCREEN, DARK);
    assert_eq!(transcript.wants(), None);
    for _ in 0..40 {
        transcript.page(-1);
    }
    let before = seen(&transcript);
    let wanted = transcript.wants().unwrap();
    assert_eq!(
        wanted,
        Wanted::Before {
            seq: Seq(601),
            count: 400
        }
    );
    assert!(transcript.put(load(1_000, wanted)));
    transcript.fit(SCREEN, DARK);
    assert_eq!(seen(&transcript), before);
    assert!(
        !transcript.put(load(1_000, wanted)),
        "it was not asked for twice"
    );
}

#[test]
fn what_cannot_be_loaded_is_asked_for_again_when_one_moves() {
    let mut transcript = Transcript::new(10);
    let wanted = transcript.wants().unwrap();
    transcript.not_loaded(wanted);
    assert_eq!(transcript.wants(), None);
    transcript.page(-1);
    assert_eq!(transcript.wants(), Some(wanted));
}

/// With a hundred thousand messages, never more than a window of them is loaded.
#[test]
fn a_long_talk_is_never_loaded_as_a_whole() {
    let total = 100_000;
    let mut transcript = loaded(total);
    for _ in 0..500 {
        transcript.page(-1);
        serve(&mut transcript, total);
        assert!(transcript.items.len() <= MOST_ITEMS + 400);
    }
    assert!(transcript.made < 30_000, "{}", transcript.made);
    let before = transcript.made;
    transcript.go_to_top();
    serve(&mut transcript, total);
    assert_eq!(seen(&transcript)[2], "message 1");
    transcript.jump(Seq(54_321));
    serve(&mut transcript, total);
    assert_eq!(seen(&transcript)[2], "message 54321");
    assert!(
        transcript.rows().nth(1).unwrap().stands_out,
        "its name is marked"
    );
    // Scrolling row by row to the end skips nothing at the edges of the window.
    transcript.jump(Seq(99_000));
    serve(&mut transcript, total);
    let mut expected = 99_000;
    while !transcript.follows() {
        transcript.scroll(3);
        serve(&mut transcript, total);
        expected += 1;
        if !transcript.follows() {
            assert_eq!(seen(&transcript)[2], format!("message {expected}"));
        }
    }
    assert_eq!(seen(&transcript).last().unwrap(), "message 100000");
    assert!(
        transcript.made - before < 6_000,
        "{}",
        transcript.made - before
    );
    assert!(transcript.items.len() <= MOST_ITEMS + 400);
}

#[test]
fn what_comes_while_one_is_far_away_is_there_at_the_end() {
    let total = 10_000;
    let mut transcript = loaded(total);
    transcript.jump(Seq(100));
    serve(&mut transcript, total);
    transcript.push(speaking());
    assert!(transcript.stream("half an "));
    transcript.push(tool(10_002, "late", json!({}), None));
    assert!(transcript.used("call-10002", "done", ToolOutcome::Ok));
    assert!(transcript.stream("answer"));
    assert_eq!(seen(&transcript)[2], "message 100");
    transcript.go_to_end();
    transcript.fit(SCREEN, DARK);
    let end = seen(&transcript);
    assert_eq!(
        end[end.len() - 2..],
        ["half an answer", "  ▸ late ✓ 1 line"]
    );
    transcript.page(-20);
    serve(&mut transcript, total);
    transcript.page(-20);
    serve(&mut transcript, total);
    assert!(transcript.items.len() > 400);
}

#[test]
fn big_messages_are_let_go_of_earlier() {
    let mut transcript = Transcript::new(0);
    let big = "x".repeat(900_000);
    for seq in 1..600 {
        let mut item = agent(seq, "");
        if let What::Said(said) = &mut item.what {
            said.text.clone_from(&big);
            said.text.truncate(if seq < 300 { 900_000 } else { 10 });
        }
        transcript.push(item);
    }
    transcript.fit(SCREEN, DARK);
    assert!(transcript.bytes < 34_000_000, "{}", transcript.bytes);
    let counted: usize = transcript
        .items
        .iter()
        .map(|entry| layout::weight(&entry.item))
        .sum();
    assert_eq!(counted, transcript.bytes);
    assert!(transcript.more_before);
}

/// With large messages only a few of a page are kept, and they are not requested repeatedly.
#[test]
fn pages_of_big_messages_are_not_kept_as_a_whole() {
    let total = 2_000;
    let mut transcript = Transcript::new(total);
    transcript.fit(SCREEN, DARK);
    let mut asked = 0;
    for _ in 0..60 {
        transcript.scroll(-4_000);
        while let Some(wanted) = transcript.wants() {
            asked += 1;
            let mut loaded = load(total, wanted);
            for item in &mut loaded.items {
                if let What::Said(said) = &mut item.what {
                    said.text.push_str(&"\nx".repeat(100_000));
                }
            }
            transcript.put(loaded);
            transcript.fit(SCREEN, DARK);
            assert!(transcript.bytes < 34_000_000, "{}", transcript.bytes);
        }
        transcript.fit(SCREEN, DARK);
    }
    assert!(asked < 60, "{asked}");
}

#[test]
fn a_loader_that_has_nothing_is_not_asked_forever() {
    let mut transcript = Transcript::new(100);
    for _ in 0..3 {
        if let Some(wanted) = transcript.wants() {
            transcript.put(Loaded {
                wanted,
                items: Vec::new(),
                more_before: true,
                more_after: true,
            });
        }
    }
    assert_eq!(transcript.wants(), None);
}

#[derive(Clone, Debug)]
enum Step {
    Scroll(i8),
    Page(bool),
    Top,
    End,
    Jump(u16),
    Push(u8),
    Stream(u8),
    Finish,
    Resize(u8, u8),
    Key(char),
    Serve,
    Fold(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<i8>().prop_map(Step::Scroll),
        any::<bool>().prop_map(Step::Page),
        Just(Step::Top),
        Just(Step::End),
        (0u16..3_100).prop_map(Step::Jump),
        (1u8..40).prop_map(Step::Push),
        any::<u8>().prop_map(Step::Stream),
        Just(Step::Finish),
        (0u8..90, 0u8..40).prop_map(|(width, height)| Step::Resize(width, height)),
        prop::sample::select(vec!['v', 'V', 'j', 'k', 'y', 'o', 'a', 'n', '\u{1b}'])
            .prop_map(Step::Key),
        Just(Step::Serve),
        any::<bool>().prop_map(Step::Fold),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// After any steps the loaded items are contiguous, without gaps or duplicates.
    #[test]
    fn what_is_seen_hangs_together(steps in prop::collection::vec(step(), 1..40)) {
        let mut total = 3_000;
        let mut transcript = loaded(total);
        let mut size = SCREEN;
        for step in steps {
            match step {
                Step::Scroll(by) => transcript.scroll(isize::from(by)),
                Step::Page(down) => transcript.page(if down { 1 } else { -1 }),
                Step::Top => transcript.go_to_top(),
                Step::End => transcript.go_to_end(),
                Step::Jump(seq) => transcript.jump(Seq(u64::from(seq))),
                // No new message is added while another one is streaming.
                Step::Push(count) => for _ in 0..count {
                    if transcript.newest().iter().any(Entry::is_streaming) {
                        break;
                    }
                    total += 1;
                    transcript.push(agent(total, &format!("message {total}")));
                },
                Step::Stream(n) => {
                    if !transcript.stream(&format!("*{n}*\n")) {
                        transcript.push(speaking());
                    }
                }
                Step::Finish => if transcript.newest().iter().any(Entry::is_streaming) {
                    total += 1;
                    transcript.replace_last(agent(total, &format!("message {total}")));
                },
                Step::Resize(width, height) => {
                    size = Size { width: width.into(), height: height.into() };
                    transcript.fit(size, DARK);
                }
                Step::Key(c) => { press(&mut transcript, &c.to_string()); }
                Step::Serve => while let Some(wanted) = transcript.wants() {
                    transcript.put(load(total, wanted));
                    transcript.fit(size, DARK);
                },
                Step::Fold(folded) => transcript.fold_all(folded),
            }
            transcript.fit(size, DARK);
            prop_assert!(transcript.visible.len() <= usize::from(size.height));
            prop_assert_eq!(transcript.rows().count(), transcript.visible.len());
            let ids: Vec<Spot> = transcript.visible.clone();
            for pair in ids.windows(2) {
                let next = transcript.moved(pair[0], 1);
                prop_assert_eq!(next, pair[1]);
            }
            let seqs: Vec<u64> = transcript.items.iter().filter_map(|entry| entry.item.seq).map(|seq| seq.0).collect();
            prop_assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{:?}", seqs);
        }
        // In the end the newest entry can be reached.
        transcript.fit(SCREEN, DARK);
        transcript.go_to_end();
        serve(&mut transcript, total);
        prop_assert!(transcript.follows());
        let newest = transcript.items.iter().rev().find_map(|entry| entry.item.seq);
        prop_assert_eq!(newest, Some(Seq(total)));
    }
}

/// Items of one entry are loaded together, so dropping one of them would lose it.
fn whole_entries<'a>(items: impl Iterator<Item = &'a Item>, each: usize) {
    let mut counts = std::collections::BTreeMap::new();
    for item in items.filter(|item| item.seq.is_some()) {
        *counts.entry(item.seq).or_insert(0) += 1;
    }
    for (seq, count) in counts {
        assert_eq!(count, each, "{seq:?}");
    }
}

#[test]
fn no_entry_is_dropped_by_half() {
    let entry = |seq: u64| (0..3).map(move |_| agent(seq, &format!("part of {seq}")));
    // From the front of the window.
    let mut transcript = of((1..=1_000).flat_map(entry).collect());
    for _ in 0..3 {
        transcript.drop_far();
        whole_entries(transcript.items.iter().map(|entry| &entry.item), 3);
    }
    assert!(transcript.items.len() < 3_000);
    // From the newest items that are kept while the view is elsewhere.
    let mut transcript = loaded(10_000);
    transcript.jump(Seq(100));
    serve(&mut transcript, 10_000);
    for item in (10_001..=11_000).flat_map(entry) {
        transcript.push(item);
    }
    transcript.drop_far();
    let new = |item: &&Item| item.seq > Some(Seq(10_000));
    let tail = transcript.tail.iter().map(|entry| &entry.item);
    whole_entries(tail.filter(new), 3);
}
