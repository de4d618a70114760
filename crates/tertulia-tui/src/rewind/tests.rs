use proptest::prelude::*;

use super::*;
use crate::test_support::{any_key, any_size, before, key, look, noon, screen};
use crate::view;

/// Answers requests from a session with `count` messages of the user.
fn serve(rewind: &mut Rewind, count: u64) -> usize {
    let mut asked = 0;
    while let Some((ticket, wanted)) = rewind.wants() {
        asked += 1;
        let newest = wanted.before.map_or(count, |seq| seq.0 - 1);
        let oldest = newest.saturating_sub(wanted.count as u64);
        let moments = (oldest..newest).rev().map(|number| {
            let minutes = i64::try_from(count - number).unwrap();
            let text = format!("question {number} 漢字\nwith a second line\u{1b}");
            Moment::new(Seq(number + 1), before(minutes), &text)
        });
        rewind.put(ticket, moments.collect(), oldest > 0);
    }
    asked
}

fn shown(rewind: &Rewind, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::rewind::draw(rewind, look(), area, buffer);
        None
    })
}

#[test]
fn the_newest_message_comes_first() {
    let mut rewind = Rewind::default();
    serve(&mut rewind, 30);
    assert_eq!(rewind.key(key("enter"), noon()), Reaction::Rewind(Seq(30)));
    rewind.key(key("down"), noon());
    insta::assert_snapshot!("moments_80", shown(&rewind, (80, 24)));
    insta::assert_snapshot!("moments_120", shown(&rewind, (120, 40)));
    assert_eq!(rewind.key(key("enter"), noon()), Reaction::Rewind(Seq(29)));
    assert_eq!(rewind.key(key("esc"), noon()), Reaction::Close);
}

#[test]
fn files_that_were_changed_since_are_named() {
    let mut rewind = Rewind::default();
    let (ticket, _) = rewind.wants().unwrap();
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let moments = vec![
        Moment::new(Seq(9), before(1), "newest"),
        Moment::new(Seq(5), before(2), "middle").changing(files(&["src/main.rs"])),
        Moment::new(Seq(1), before(3), "oldest").changing(files(&["src/main.rs", "a.md"])),
    ];
    rewind.put(ticket, moments, false);
    assert!(!shown(&rewind, (80, 24)).contains("changed since"));
    rewind.key(key("down"), noon());
    let seen = shown(&rewind, (80, 24));
    assert!(
        seen.contains("1 file changed since, not put back: src/main.rs"),
        "{seen}"
    );
    rewind.key(key("down"), noon());
    let seen = shown(&rewind, (80, 24));
    assert!(
        seen.contains("2 files changed since, not put back: src/main.rs, a.md"),
        "{seen}"
    );
}

#[test]
fn a_long_talk_is_read_as_somebody_scrolls() {
    let mut rewind = Rewind::default();
    assert_eq!(serve(&mut rewind, 100_000), 1);
    for _ in 0..3 {
        rewind.key(key("end"), noon());
        assert_eq!(serve(&mut rewind, 100_000), 1);
    }
    assert_eq!(rewind.moments().len(), 400);
}

#[test]
fn nothing_said_and_nothing_read_are_told_apart() {
    let mut rewind = Rewind::default();
    let (ticket, _) = rewind.wants().unwrap();
    rewind.refused(ticket, "the disk is gone".into());
    assert!(rewind.wants().is_none());
    assert!(shown(&rewind, (80, 24)).contains("the disk is gone"));
    assert_eq!(rewind.key(key("enter"), noon()), Reaction::Nothing);
    let (ticket, _) = rewind.wants().unwrap();
    rewind.put(ticket, Vec::new(), true);
    assert!(rewind.wants().is_none());
    assert!(shown(&rewind, (80, 24)).contains("not sent a message"));
}

#[test]
fn only_the_beginning_of_a_message_is_kept() {
    let moment = Moment::new(Seq(1), before(1), &"漢".repeat(500_000));
    assert!(moment.text.len() <= MOST_BYTES + 3 && moment.text.ends_with('…'));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let mut rewind = Rewind::default();
        rewind.resize(Size::new(told.0, told.1));
        for key in keys {
            rewind.key(key, noon());
            serve(&mut rewind, 150);
            shown(&rewind, size);
        }
    }
}
