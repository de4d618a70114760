use super::*;
use Intent::{P1, P2, P3};
use proptest::prelude::*;
use uuid::Uuid;

fn message(number: u8) -> EntryId {
    EntryId::new(Uuid::from_u128(u128::from(number)))
}

fn request(target: &str, parent: u8, intent: Intent) -> Request {
    Request {
        target: target.into(),
        parent: message(parent),
        trigger: message(parent),
        intent,
    }
}

fn queue(requests: &[(&str, u8, Intent)]) -> Queue {
    let mut queue = Queue::default();
    for (target, parent, intent) in requests {
        let change = queue.put(request(target, *parent, *intent));
        assert!(matches!(change, Change::Queued(_)), "{change:?}");
    }
    queue
}

fn check_order(mut queue: Queue, expected: &str) {
    let mut order = Vec::new();
    while let Some(item) = queue.take() {
        order.push(item.request.target);
    }
    assert_eq!(order.join(" "), expected);
}

fn targets(items: &[Item]) -> Vec<&str> {
    items
        .iter()
        .map(|item| item.request.target.as_str())
        .collect()
}

#[test]
fn an_empty_queue_has_nobody() {
    assert_eq!(Queue::default().take(), None);
    assert_eq!(Queue::default().stats(), Stats::default());
    assert!(Queue::default().is_empty());
}

#[test]
fn who_came_first_is_first() {
    check_order(queue(&[("a", 1, P2), ("b", 1, P2), ("c", 2, P2)]), "a b c");
}

#[test]
fn replies_come_before_additions_and_the_urgent_before_all() {
    check_order(
        queue(&[
            ("a", 1, P3),
            ("b", 1, P2),
            ("c", 1, P1),
            ("d", 1, P2),
            ("e", 1, P1),
        ]),
        "c e b d a",
    );
}

#[test]
fn replies_to_the_last_message_come_first() {
    let mut local = queue(&[("a", 1, P2), ("b", 2, P3), ("c", 2, P2)]);
    local.said(message(2));
    check_order(local, "c b a");
    let mut urgent = queue(&[("a", 1, P1), ("b", 2, P2)]);
    urgent.said(message(2));
    check_order(urgent, "a b");
}

#[test]
fn those_who_wait_longer_are_not_starved() {
    let mut long = queue(&[("old", 1, P2)]);
    for target in ["a", "b", "c", "d", "e", "f", "g"] {
        long.put(request(target, 2, P2));
    }
    long.said(message(2));
    check_order(long, "a b c d e old f g");
}

#[test]
fn an_urgent_one_begins_the_count_anew() {
    let mut long = queue(&[("old", 1, P2)]);
    for target in ["a", "b", "c", "d", "e", "f"] {
        long.put(request(target, 2, P2));
    }
    long.said(message(2));
    for _ in 0..4 {
        long.take();
    }
    long.put(request("now", 3, P1));
    check_order(long, "now e f old");
}

#[test]
fn the_same_request_waits_once() {
    let mut twice = queue(&[("a", 1, P2), ("b", 1, P2)]);
    let again = request("a", 1, P2);
    assert_eq!(
        twice.put(again.clone()),
        Change::Skipped(again, Skip::Duplicate)
    );
    assert!(matches!(twice.put(request("a", 1, P3)), Change::Queued(_)));
    assert!(matches!(twice.put(request("b", 2, P2)), Change::Queued(_)));
    // Once taken, it may be queued again.
    twice.take();
    assert!(matches!(twice.put(request("a", 1, P2)), Change::Queued(_)));
}

#[test]
fn nobody_waits_twice_in_a_row() {
    let mut adjacent = queue(&[("a", 1, P2)]);
    let again = request("a", 2, P1);
    assert_eq!(
        adjacent.put(again.clone()),
        Change::Skipped(again, Skip::Adjacent)
    );
    adjacent.put(request("b", 1, P2));
    assert!(matches!(
        adjacent.put(request("a", 2, P1)),
        Change::Queued(_)
    ));
}

#[test]
fn too_many_replies_to_one_message_are_less_urgent() {
    let mut many = Queue::default();
    for number in 0..PER_PARENT {
        let change = many.put(request(&format!("m{number}"), 1, P2));
        assert!(matches!(change, Change::Queued(_)));
    }
    let Change::Demoted { item, asked } = many.put(request("x", 1, P1)) else {
        panic!("not demoted")
    };
    assert_eq!((item.request.intent, asked), (P3, P1));
    assert!(matches!(many.put(request("y", 1, P3)), Change::Queued(_)));
    assert!(matches!(many.put(request("z", 2, P1)), Change::Queued(_)));
    // Demoted before it is compared: the demoted request is queued already.
    let change = many.put(request("x", 1, P2));
    assert!(
        matches!(change, Change::Skipped(_, Skip::Duplicate)),
        "{change:?}"
    );
}

#[test]
fn a_full_queue_takes_nobody() {
    let mut full = Queue::default();
    for number in 0..LONGEST {
        full.put(request(
            &format!("m{number}"),
            u8::try_from(number).unwrap(),
            P2,
        ));
    }
    let more = request("x", 200, P1);
    assert_eq!(full.put(more.clone()), Change::Skipped(more, Skip::Full));
    // Fullness is checked first, also for duplicates.
    let change = full.put(request("m0", 0, P2));
    assert!(
        matches!(change, Change::Skipped(_, Skip::Full)),
        "{change:?}"
    );
    full.take();
    assert!(matches!(full.put(request("x", 200, P1)), Change::Queued(_)));
}

#[test]
fn members_are_taken_out() {
    let mut some = queue(&[("a", 1, P2), ("b", 1, P2), ("a", 2, P1)]);
    assert_eq!(targets(&some.drop_target("a")), ["a", "a"]);
    assert_eq!(targets(&some.drop_target("nobody")), Vec::<&str>::new());
    assert_eq!(targets(some.items()), ["b"]);
}

#[test]
fn clearing_keeps_what_was_said_last() {
    let mut cleared = queue(&[("a", 1, P2), ("b", 1, P2)]);
    cleared.said(message(2));
    assert_eq!(targets(&cleared.clear()), ["a", "b"]);
    assert!(cleared.is_empty());
    cleared.put(request("a", 1, P2));
    cleared.put(request("b", 2, P2));
    check_order(cleared, "b a");
}

#[test]
fn the_queue_is_counted() {
    let mut some = queue(&[("a", 1, P1), ("b", 2, P2), ("c", 2, P3), ("d", 2, P3)]);
    some.said(message(2));
    assert_eq!(
        some.stats(),
        Stats {
            pending: 4,
            p1: 1,
            p2: 1,
            p3: 2,
            local: 3
        }
    );
}

proptest! {
    /// The limit holds, each accepted request is taken once or stays queued, and orders rise.
    #[test]
    fn nobody_is_lost_and_the_limit_holds(
        steps in prop::collection::vec((0u8..12, 0u8..4, 0u8..4), 0..300),
    ) {
        let mut queue = Queue::default();
        let (mut entered, mut left) = (0, 0);
        for (target, parent, step) in steps {
            let intent = [P1, P2, P3][usize::from(step % 3)];
            if step == 3 {
                left += usize::from(queue.take().is_some());
                queue.said(message(parent));
            } else if !matches!(
                queue.put(request(&target.to_string(), parent * 16 + target, intent)),
                Change::Skipped(..)
            ) {
                entered += 1;
            }
            prop_assert!(queue.items().len() <= LONGEST);
            prop_assert_eq!(queue.items().len(), entered - left);
            prop_assert_eq!(queue.stats().pending, entered - left);
            prop_assert!(queue.items().is_sorted_by_key(|item| item.order));
        }
    }
}
