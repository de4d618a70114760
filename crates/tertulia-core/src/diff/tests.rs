//! Differences of random forks and of sessions that only look alike.

use proptest::prelude::*;

use super::words::{WordOp, words};
use super::*;
use crate::merge::tests::{Fork, Writer, parts};

fn compared<'a>(a: &'a [Entry], b: &'a [Entry]) -> Comparison<'a> {
    Comparison::of(Scope::Messages, (Kind::Chat, a), (Kind::Chat, b))
}

fn texts<'a>(items: impl Iterator<Item = &'a Item<'a>>) -> Vec<String> {
    items.map(|item| item.text().into_owned()).collect()
}

fn ids<'a>(items: impl Iterator<Item = &'a Item<'a>>) -> Vec<crate::id::EntryId> {
    items.map(|item| item.entry.id).collect()
}

fn session(messages: &[&str]) -> Vec<Entry> {
    let mut log = Writer::new(7);
    log.create(Kind::Chat);
    for (at, message) in messages.iter().enumerate() {
        match at % 2 {
            0 => log.human(message),
            _ => log.answer(message, &[]),
        }
    }
    log.entries
}

proptest! {
    #[test]
    fn a_session_does_not_differ_from_itself(common in parts()) {
        let fork = Fork::of(&common, &[], &[], 0);
        for scope in [Scope::Messages, Scope::Tools] {
            let entries = (Kind::Chat, &fork.ours.entries[..]);
            prop_assert!(Comparison::of(scope, entries, entries).is_identical());
        }
    }

    /// Against its original without own messages, a fork differs by exactly its own messages.
    #[test]
    fn a_fork_differs_by_its_own_messages(common in parts(), ours in parts()) {
        let fork = Fork::of(&common, &ours, &[], 0);
        let (ours, theirs) = fork.own();
        let comparison = compared(ours, theirs);
        let own: Vec<_> = ours.iter().filter(|entry| entry.message().is_some()).map(|entry| entry.id).collect();
        prop_assert_eq!(ids(comparison.only_a()), own);
        prop_assert_eq!(comparison.only_b().count() + comparison.changed().count(), 0);
    }

    /// Each message is equal, changed or in one session only; swapping the sessions swaps all.
    #[test]
    fn the_difference_is_complete_and_symmetric(common in parts(), ours in parts(), theirs in parts()) {
        let fork = Fork::of(&common, &ours, &theirs, 5);
        let (ours, theirs) = fork.own();
        let (there, back) = (compared(ours, theirs), compared(theirs, ours));
        prop_assert_eq!(ids(there.only_a()), ids(back.only_b()));
        prop_assert_eq!(ids(there.only_b()), ids(back.only_a()));
        let swapped = |comparison: &Comparison<'_>| -> Vec<_> {
            comparison.changed().map(|(a, b)| (b.entry.id, a.entry.id)).collect()
        };
        let changed: Vec<_> = there.changed().map(|(a, b)| (a.entry.id, b.entry.id)).collect();
        prop_assert_eq!(changed, swapped(&back));
        let messages = |entries: &[Entry]| entries.iter().filter(|entry| entry.message().is_some()).count();
        let both = there.equal() + there.changed().count();
        prop_assert_eq!(there.only_a().count() + both, messages(ours));
        prop_assert_eq!(there.only_b().count() + both, messages(theirs));
        prop_assert_eq!(there.is_identical(), back.is_identical());
    }

    #[test]
    fn words_make_both_texts_again(a in "[a-c ,\n漢é🦀]{0,60}", b in "[a-c ,\n漢é🦀]{0,60}") {
        let parts = words(&a, &b);
        let text = |left_out: WordOp| -> String {
            parts.iter().filter(|part| part.op != left_out).map(|part| part.text).collect()
        };
        prop_assert_eq!(text(WordOp::Insert), a.clone());
        prop_assert_eq!(text(WordOp::Delete), b.clone());
        prop_assert!(parts.windows(2).all(|two| two[0].op != two[1].op));
        prop_assert_eq!(a == b, parts.iter().all(|part| part.op == WordOp::Equal));
    }
}

fn marked(a: &str, b: &str) -> String {
    let parts = words(a, b).into_iter();
    parts
        .map(|part| match part.op {
            WordOp::Equal => part.text.to_owned(),
            WordOp::Insert => format!("{{+{}+}}", part.text),
            WordOp::Delete => format!("[-{}-]", part.text),
        })
        .collect()
}

#[test]
fn words_are_compared() {
    let check = |a: &str, b: &str, expected: &str| assert_eq!(marked(a, b), expected);
    check("", "", "");
    check(
        "use tabs here",
        "use spaces here",
        "use [-tabs-]{+spaces+} here",
    );
    check("one two three", "one 2 3", "one [-two three-]{+2 3+}");
    check("a.b", "a,b", "a[-.-]{+,+}b");
    check("漢字です", "漢語です", "漢[-字-]{+語+}です");
    check("same\nline", "same\nother", "same\n[-line-]{+other+}");
    check("only", "", "[-only-]");
}

/// Long texts are compared by lines, and even longer ones as a whole; nothing takes long.
#[test]
fn long_texts_are_compared_coarsely() {
    let lines = |count: usize, changed: usize| -> String {
        let line = |at: usize| match at == changed {
            true => "another line\n".to_owned(),
            false => format!("line {at} of many words here\n"),
        };
        (0..count).map(line).collect()
    };
    let (a, b) = (lines(3000, 0), lines(3000, 2999));
    assert_eq!(
        words(&a, &b)
            .iter()
            .filter(|part| part.op != WordOp::Equal)
            .count(),
        4
    );
    let (a, b) = (lines(30_000, 0), lines(30_000, 29_999));
    assert_eq!(words(&a, &b).len(), 2);
}

#[test]
fn sessions_without_a_common_entry_are_aligned() {
    let one = session(&["Name a bird", "The wren.", "Why?", "It sings."]);
    let other = session(&[
        "Name a bird",
        "A long answer about owls and their ears.",
        "Why?",
        "It sings loudly.",
    ]);
    let comparison = compared(&one, &other);
    assert_eq!(comparison.equal(), 2);
    assert_eq!(texts(comparison.only_a()), ["The wren."]);
    assert_eq!(
        texts(comparison.only_b()),
        ["A long answer about owls and their ears."]
    );
    let changed: Vec<_> = comparison
        .changed()
        .map(|(a, b)| (a.text(), b.text()))
        .collect();
    assert_eq!(changed, [("It sings.".into(), "It sings loudly.".into())]);
    assert!(comparison.has_common());
    assert!(!compared(&one, &session(&["Quite another thing"])).has_common());
}

#[test]
fn roles_are_told_apart() {
    let mut one = Writer::new(1);
    one.human("the same words");
    let mut other = Writer::new(2);
    other.answer("the same words", &[]);
    let comparison = compared(&one.entries, &other.entries);
    assert_eq!(
        (comparison.only_a().count(), comparison.only_b().count()),
        (1, 1)
    );
}

#[test]
fn tool_calls_are_compared_with_their_results() {
    let session = |arguments: &str, result: &str, words: &str| {
        let mut log = Writer::new(1);
        log.human(words);
        log.answer(arguments, &["call-0"]);
        log.result("call-0", result);
        log.entries
    };
    let one = session("src", "three files", "look");
    let tools = |other: &[Entry]| {
        let comparison = Comparison::of(Scope::Tools, (Kind::Chat, &one), (Kind::Chat, other));
        (
            comparison.equal(),
            comparison.changed().count(),
            comparison.only_b().count(),
        )
    };
    assert_eq!(
        tools(&session("src", "three files", "other words")),
        (1, 0, 0)
    );
    assert_eq!(tools(&session("src", "four files", "look")), (0, 1, 0));
    assert_eq!(
        tools(&session(
            "docs",
            "nothing like that was found anywhere here",
            "look"
        )),
        (0, 0, 1)
    );
}

/// Two sessions of 100 000 messages: the release build has to compare them in 2 s, of which this is
/// the part without the store.
#[test]
fn long_sessions_are_compared_quickly() {
    let text = |at: usize, word: &str| {
        format!("message {at} about {word} with a few more words so that it has an ordinary length")
    };
    let long = |changed: usize| -> Vec<Entry> {
        let mut log = Writer::new(1);
        for at in 0..20_000 {
            match at % changed {
                0 => log.human(&text(at, &format!("edit{changed}"))),
                _ => log.human(&text(at, "birds")),
            }
        }
        log.entries
    };
    let (one, other) = (long(7), long(11));
    let begun = std::time::Instant::now();
    let comparison = compared(&one, &other);
    let differing = comparison
        .changed()
        .map(|(a, b)| words(&a.text(), &b.text()).len());
    assert!(differing.count() > 4000);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn rows_have_both_sessions_side_by_side() {
    let one = session(&[
        "same",
        "first",
        "quite another thing",
        "edited words here",
        "end",
    ]);
    let other = session(&["same", "1", "2", "edited words there", "end"]);
    let comparison = compared(&one, &other);
    let text =
        |item: Option<&Item<'_>>| item.map_or("-".to_owned(), |item| item.text().into_owned());
    let rows: Vec<String> = comparison
        .rows()
        .into_iter()
        .map(|row| match row {
            SideBySide::Equal(count) => format!("{count} equal"),
            SideBySide::Changed(a, b) => format!("{} ~ {}", text(Some(a)), text(Some(b))),
            SideBySide::Only(a, b) => format!("{} | {}", text(a), text(b)),
        })
        .collect();
    assert_eq!(
        rows,
        [
            "1 equal",
            "first | 1",
            "quite another thing | 2",
            "edited words here ~ edited words there",
            "1 equal"
        ]
    );
    let longer = session(&["same", "first", "second"]);
    let rows = compared(&longer, &other[..2]);
    let only = |row: &SideBySide<'_, '_>| matches!(row, SideBySide::Only(Some(_), None));
    assert_eq!(rows.rows().iter().filter(|row| only(row)).count(), 2);
}
