//! Imports of what a program wrote while tertulia ran it.

use proptest::prelude::*;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Imported, Linked, Usage};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Ledger, Store};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human};

use super::{answer, catch_up, everything_in, sums};

fn linked(native: &str) -> Body {
    Body::Linked(Linked {
        agent: "ada".to_owned(),
        native: native.to_owned(),
        cwd: None,
        inherited: None,
    })
}

fn imported(store: &dyn Store, clock: &Clock, original: &str) -> Writer {
    let source = Body::Imported(Imported::new("codex", original));
    Writer::begin_with(store, clock, |_| {}, vec![source])
}

#[test]
fn an_import_of_what_tertulia_ran_counts_for_the_session_that_ran_it() {
    let store = SqliteStore::in_memory().unwrap();
    // Each entry is one second later than the one before.
    let clock = still_clock(1);
    let mut run = Writer::begin(&store, &clock);
    run.append(&store, vec![human("hi"), linked("v")]);
    let mut file = imported(&store, &clock, "v");
    let mut other = imported(&store, &clock, "w");
    let part = |input, id| answer(Usage::told(input, 1), Some(id));
    file.append(&store, vec![human("hi"), part(4, "m1"), part(6, "m2")]);
    other.append(&store, vec![part(100, "m3")]);
    let mut early = Ledger::in_memory().unwrap();
    catch_up(&mut early, &store);
    run.append(&store, vec![answer(Usage::told(10, 2), None)]);
    file.append(&store, vec![human("by itself"), part(3, "m4")]);
    run.append(&store, vec![human("more"), answer(Usage::told(1, 1), None)]);
    let mut late = Ledger::in_memory().unwrap();
    for ledger in [&mut early, &mut late] {
        catch_up(ledger, &store);
        // Of the file, only the turn that the program ran by itself.
        assert_eq!(
            sums(ledger),
            (4 + 2 + 1, Usage::told(11 + 3 + 100, 3 + 1 + 1))
        );
    }
    assert_eq!(everything_in(&early), everything_in(&late));
    now(store.purge(run.id)).unwrap();
    catch_up(&mut late, &store);
    assert_eq!(sums(&late), (5 + 1, Usage::told(13 + 100, 4)));
}

/// A copy that the program made of its session has another id and other times: the requests tell.
#[test]
fn a_copy_of_what_tertulia_ran_counts_for_the_session_that_ran_it() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut run = Writer::begin(&store, &clock);
    let mut file = imported(&store, &clock, "copy of v");
    let part = |input, id| answer(Usage::told(input, 1), Some(id));
    file.append(&store, vec![human("hi"), part(4, "m1"), part(6, "m2")]);
    let mut early = Ledger::in_memory().unwrap();
    catch_up(&mut early, &store);
    assert_eq!(sums(&early), (3, Usage::told(10, 2)));
    let mut said = answer(Usage::told(10, 2), None);
    if let Body::Message(message) = &mut said {
        message.requests = vec!["m1".to_owned(), "m2".to_owned()];
    }
    run.append(&store, vec![human("hi"), linked("v"), said]);
    file.append(&store, vec![human("more"), part(3, "m3")]);
    let mut late = Ledger::in_memory().unwrap();
    for ledger in [&mut early, &mut late] {
        catch_up(ledger, &store);
        assert_eq!(sums(ledger), (2 + 3, Usage::told(10 + 3, 2 + 1)));
    }
    assert_eq!(everything_in(&early), everything_in(&late));
    now(store.purge(run.id)).unwrap();
    catch_up(&mut late, &store);
    assert_eq!(sums(&late), (5, Usage::told(4 + 6 + 3, 3)));
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Prompt,
    Answer,
    Link(usize),
    CatchUp,
    Purge,
}

fn op() -> impl Strategy<Value = (usize, Op)> {
    let op = prop_oneof![
        4 => Just(Op::Prompt),
        6 => Just(Op::Answer),
        3 => (0..2_usize).prop_map(Op::Link),
        3 => Just(Op::CatchUp),
        1 => Just(Op::Purge),
    ];
    (0..4_usize, op)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_is_covered_does_not_depend_on_the_order_of_reading(ops in prop::collection::vec(op(), 1..40)) {
        let store = SqliteStore::in_memory().unwrap();
        let clock = still_clock(3);
        let mut writers = [
            Some(Writer::begin(&store, &clock)),
            Some(Writer::begin(&store, &clock)),
            Some(imported(&store, &clock, "v0")),
            Some(imported(&store, &clock, "v1")),
        ];
        let mut ledger = Ledger::in_memory().unwrap();
        for (count, (at, op)) in ops.into_iter().enumerate() {
            let is_import = at > 1;
            let Some(writer) = &mut writers[at] else {
                continue;
            };
            let id = is_import.then(|| format!("m{count}"));
            match op {
                Op::Prompt => writer.append(&store, vec![human("hi")]),
                Op::Answer => writer.append(&store, vec![answer(Usage::told(5, 1), id.as_deref())]),
                Op::Link(native) => writer.append(&store, vec![linked(&format!("v{native}"))]),
                Op::CatchUp => drop(catch_up(&mut ledger, &store)),
                Op::Purge => {
                    now(store.purge(writer.id)).unwrap();
                    writers[at] = None;
                }
            }
        }
        let mut at_once = Ledger::in_memory().unwrap();
        catch_up(&mut at_once, &store);
        catch_up(&mut ledger, &store);
        prop_assert_eq!(everything_in(&ledger), everything_in(&at_once));
    }
}
