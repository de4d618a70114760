//! Queue of team members waiting to speak, on one line.

use tertulia_core::entry::Intent;
use tertulia_engine::event::QueuedMember;
use tertulia_engine::team::events::QueueUpdate;
use tertulia_engine::team::queue::Item;

use crate::text::{cut, width};

/// Text before the first name.
pub const NEXT: &str = "next: ";
/// Text between two names.
pub const THEN: &str = " → ";
/// Maximum width of a name.
const NAME_COLUMNS: usize = 24;

/// QueuedMember members, next one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    waiting: Vec<QueuedMember>,
}

impl Queue {
    /// Creates a queue, next one first.
    pub fn new(waiting: Vec<QueuedMember>) -> Queue {
        Queue { waiting }
    }

    /// Replaces the queue after an update. `member` maps an id to the display name and to whether
    /// it is the user at this screen. The most urgent come first, as the queue takes them; replies
    /// to the last message may still precede them.
    pub fn take(&mut self, update: &QueueUpdate, member: impl Fn(&str) -> (String, bool)) {
        let mut pending: Vec<&Item> = update.pending.iter().collect();
        pending.sort_by_key(|item| (item.request.intent, item.order));
        let waiting = pending.into_iter().map(|item| {
            let (name, is_you) = member(&item.request.target);
            QueuedMember {
                name,
                intent: item.request.intent,
                is_you,
            }
        });
        self.waiting = waiting.collect();
    }

    /// Returns true if a member of this display name waits.
    pub fn has(&self, display_name: &str) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|member| member.name == display_name)
    }

    /// Number of rows needed.
    pub fn height(&self) -> u16 {
        u16::from(!self.waiting.is_empty())
    }

    /// Names that fit into a width, and the number of names that do not. The first is always
    /// included.
    pub fn seen(&self, columns: usize) -> (Vec<String>, usize) {
        let room = columns.saturating_sub(width(NEXT));
        let mut seen: Vec<String> = Vec::new();
        let mut taken = 0;
        for (place, waiting) in self.waiting.iter().enumerate() {
            let words = label(waiting);
            let arrow = if place == 0 { 0 } else { width(THEN) };
            let left = self.waiting.len() - place - 1;
            let needed = taken + arrow + width(&words);
            if place > 0 && needed + width(&more(left)) > room {
                return (seen, left + 1);
            }
            taken = needed;
            seen.push(words);
        }
        (seen, 0)
    }
}

/// ` +3 more`, or nothing for zero.
pub fn more(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(" +{count} more"),
    }
}

/// `Ben`, `Cleo (P1)`, `you`. The default urgency is not shown.
fn label(member: &QueuedMember) -> String {
    let name = match member.is_you {
        true => "you".to_owned(),
        false => cut(&member.name, NAME_COLUMNS),
    };
    match member.intent {
        Intent::P2 => name,
        intent => format!("{name} ({intent})"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tertulia_core::id::EntryId;
    use tertulia_engine::team::queue::{Request, Stats};

    use super::*;
    use crate::test_support::{any_size, look, screen};
    use crate::view;

    fn somebody(name: &str, intent: Intent) -> QueuedMember {
        QueuedMember {
            name: name.to_owned(),
            intent,
            is_you: name == "Ann",
        }
    }

    fn some() -> Queue {
        Queue::new(vec![
            somebody("Ben", Intent::P2),
            somebody("Cleo", Intent::P1),
            somebody("Ann", Intent::P2),
            somebody("漢字 \u{1b}[31m", Intent::P3),
            somebody(&"a long name ".repeat(30), Intent::P2),
            somebody("Dora", Intent::P2),
        ])
    }

    fn drawn(queue: &Queue, size: (u16, u16)) -> String {
        screen(size, |area, buffer| {
            view::queue::draw(queue, look(), area, buffer);
            None
        })
    }

    fn line(queue: &Queue, columns: u16) -> String {
        drawn(queue, (columns, 1)).trim_end().to_owned()
    }

    #[test]
    fn it_is_one_line_of_the_screen() {
        insta::assert_snapshot!("queue_80", drawn(&some(), (80, 24)));
        insta::assert_snapshot!("queue_120", drawn(&some(), (120, 40)));
    }

    #[test]
    fn who_does_not_fit_is_counted() {
        let queue = some();
        assert_eq!(line(&queue, 41), "next: Ben → Cleo (P1) → you +3 more");
        assert_eq!(line(&queue, 35), "next: Ben → Cleo (P1) → you +3 more");
        assert_eq!(line(&queue, 34), "next: Ben → Cleo (P1) +4 more");
        assert_eq!(line(&queue, 17), "next: Ben +5 more");
        assert_eq!(line(&queue, 16), "next: Ben +5 mo…");
        assert_eq!(line(&Queue::default(), 30), "");
        assert_eq!((queue.height(), Queue::default().height()), (1, 0));
    }

    #[test]
    fn the_most_urgent_come_first() {
        let entry: EntryId = "01936f5e-6c5a-7b3a-9d2f-0000a0000001".parse().unwrap();
        let item = |target: &str, intent, order| Item {
            request: Request {
                target: target.to_owned(),
                parent: entry,
                trigger: entry,
                intent,
            },
            order,
        };
        let update = QueueUpdate {
            changes: Vec::new(),
            pending: vec![
                item("m1", Intent::P3, 1),
                item("m2", Intent::P2, 2),
                item("m3", Intent::P2, 3),
                item("m4", Intent::P1, 4),
            ],
            asked: None,
            stats: Stats::default(),
        };
        let mut queue = Queue::default();
        queue.take(&update, |id| (id.to_uppercase(), id == "m3"));
        assert_eq!(line(&queue, 80), "next: M4 (P1) → M2 → you → M1 (P3)");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn no_size_and_no_names_break_it(
            size in any_size(), names in proptest::collection::vec(any::<String>(), 0..8),
        ) {
            let all = names.iter().map(|name| somebody(name, Intent::P1)).collect();
            let queue = Queue::new(all);
            drawn(&queue, size);
            let (seen, left) = queue.seen(size.0.into());
            prop_assert_eq!(seen.len() + left, names.len());
            let taken = width(NEXT) + width(&seen.join(THEN)) + width(&more(left));
            prop_assert!(seen.len() < 2 || taken <= usize::from(size.0));
        }
    }
}
