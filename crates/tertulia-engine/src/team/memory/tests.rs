use super::super::events::{Ending, Event, Voice};
use super::super::names::{Member, Nature};
use super::super::routing::Router;
use super::*;
use std::time::{Duration, Instant};
use tertulia_core::team::markers::shown;

use proptest::prelude::*;
use uuid::Uuid;

fn id(number: u32) -> EntryId {
    EntryId::new(Uuid::from_u128(u128::from(number)))
}

fn spoken(number: u32, replies_to: Option<u32>, text: &str) -> Spoken {
    Spoken {
        id: id(number),
        seq: None,
        by: "ana".into(),
        from: "Ana".into(),
        to: Vec::new(),
        replies_to: replies_to.map(id),
        text: text.into(),
        attachments: Vec::new(),
    }
}

/// A memory with messages of ten bytes, numbered from 1.
fn memory(window: usize, max_bytes: usize, messages: u32) -> Memory {
    let mut memory = Memory::new(window, max_bytes);
    for number in 1..=messages {
        memory.add(spoken(number, None, "ten bytes."), None);
    }
    memory
}

fn numbers(messages: &[&Spoken]) -> Vec<u128> {
    let numbers = messages.iter();
    numbers.map(|one| one.id.uuid().as_u128()).collect()
}

/// Checks the recalled messages by number: the context, and the message to reply to.
fn check_recall(memory: &Memory, parent: u32, context: &[u128], found: Option<u32>) {
    let recalled = memory.recall(id(parent)).unwrap();
    assert_eq!(numbers(&recalled.context), context, "asked for {parent}");
    assert_eq!(recalled.parent.map(|one| one.id), found.map(id));
}

#[test]
fn nothing_is_recalled_if_nothing_was_said() {
    let mut memory = Memory::new(10, 100);
    memory.forget(&[id(1)]);
    assert_eq!(memory.recall(id(1)), None);
    assert!(memory.is_empty());
}

#[test]
fn the_first_message_stands_alone() {
    let memory = memory(10, 100, 1);
    check_recall(&memory, 1, &[], None);
    assert_eq!(memory.recall(id(1)).unwrap().message.id, id(1));
    assert!(!memory.is_empty());
}

#[test]
fn the_window_is_what_was_said_before_the_last() {
    for (window, expected) in [
        (0, &[][..]),
        (1, &[4]),
        (3, &[2, 3, 4]),
        (4, &[1, 2, 3, 4]),
        (usize::MAX, &[1, 2, 3, 4]),
    ] {
        let mut memory = memory(window, 1000, 5);
        check_recall(&memory, 5, expected, None);
        memory.forget(&[]);
        check_recall(&memory, 5, expected, None);
        assert_eq!(memory.len(), expected.len() + 1);
    }
}

#[test]
fn no_more_text_than_allowed_but_always_the_last_message() {
    for (max_bytes, expected) in [
        (50, &[1, 2, 3, 4][..]),
        (49, &[2, 3, 4]),
        (40, &[2, 3, 4]),
        (10, &[]),
        (9, &[]),
        (0, &[]),
    ] {
        let mut memory = memory(10, max_bytes, 5);
        check_recall(&memory, 5, expected, None);
        memory.forget(&[]);
        check_recall(&memory, 5, expected, None);
        assert_eq!(memory.len(), expected.len() + 1);
    }
}

#[test]
fn what_is_replied_to_is_kept_until_nobody_waits() {
    let mut memory = memory(2, 1000, 9);
    memory.forget(&[id(3), id(8), id(77)]);
    assert_eq!(memory.len(), 4);
    // It is not part of the context: many messages lie in between.
    check_recall(&memory, 9, &[7, 8], None);
    check_recall(&memory, 3, &[7, 8], Some(3));
    check_recall(&memory, 8, &[7], Some(8));
    check_recall(&memory, 77, &[7, 8], None);
    memory.forget(&[]);
    assert_eq!(memory.len(), 3);
    check_recall(&memory, 3, &[7, 8], None);
}

#[test]
fn what_is_kept_is_no_context_where_text_is_short_of() {
    let mut memory = memory(5, 20, 9);
    memory.forget(&[id(2), id(4)]);
    check_recall(&memory, 4, &[8], Some(4));
}

#[test]
fn the_place_of_what_is_replied_to_is_known() {
    let mut memory = memory(3, 1000, 6);
    memory.forget(&[id(1)]);
    for (parent, place) in [(1, 0), (3, 0), (4, 1), (5, 2), (6, 0)] {
        assert_eq!(memory.recall(id(parent)).unwrap().parent_at, place);
    }
}

#[test]
fn other_replies_to_the_same_message_are_related() {
    let mut memory = memory(20, 1000, 1);
    for (number, replies_to) in [(2, 1), (3, 2), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1)] {
        memory.add(spoken(number, Some(replies_to), "reply"), None);
    }
    memory.add(spoken(9, Some(1), "the last"), None);
    let related = memory.recall(id(1)).unwrap().related;
    assert_eq!(numbers(&related), [4, 5, 6, 7, 8]);
    assert_eq!(numbers(&memory.recall(id(2)).unwrap().related), [3]);
    assert_eq!(numbers(&memory.recall(id(9)).unwrap().related), []);
}

/// A conversation of the humans `Ana` and `Bo` and three agents.
struct Talk {
    router: Router,
    memory: Memory,
    messages: u32,
}

impl Talk {
    fn new(window: usize) -> Talk {
        let member = |(order, name): (usize, &str)| Member {
            id: name.to_lowercase(),
            name: name.into(),
            display_name: name.into(),
            nature: match name.len() {
                1 => Nature::Ai,
                _ => Nature::Human,
            },
            order,
            usual: Vec::new(),
        };
        let members = ["Ana", "Bo", "a", "b", "c"].into_iter().enumerate();
        Talk {
            router: Router::new(members.map(member).collect(), 0).unwrap(),
            memory: Memory::new(window, usize::MAX),
            messages: 0,
        }
    }

    /// The current speaker says something and ends its turn.
    fn says(&mut self, text: &str) {
        let asked = self.router.asked();
        let asked = asked.map(|(turn, item)| (turn, item.request.parent));
        let by = match asked {
            Some((turn, _)) => Voice::Ai(turn),
            None => Voice::Human("ana".into()),
        };
        self.messages += 1;
        let said = spoken(self.messages, None, &shown(text));
        let spoken = Spoken {
            replies_to: asked.map(|(_, parent)| parent),
            ..said
        };
        self.memory.add(spoken, None);
        self.router.step(Event::Said {
            by,
            id: id(self.messages),
            text: text.into(),
        });
        if let Some((turn, _)) = asked {
            let how = Ending::Finished;
            self.router.step(Event::Ended { turn, how });
        }
        self.memory.forget(&self.awaited());
    }

    /// Returns the messages to which queued and prompted members are to reply.
    fn awaited(&self) -> Vec<EntryId> {
        let waiting = self.router.queue().items().iter();
        let asked = self.router.asked().map(|(_, item)| item);
        waiting
            .chain(asked)
            .map(|item| item.request.parent)
            .collect()
    }

    /// Returns the prompted member, and its recalled messages.
    fn asked(&self) -> (&str, Recalled<'_>) {
        let (_, item) = self.router.asked().unwrap();
        let recalled = self.memory.recall(item.request.parent).unwrap();
        (&item.request.target, recalled)
    }
}

#[test]
fn of_several_addressees_each_hears_those_before() {
    let mut talk = Talk::new(50);
    talk.says("Hello. [NEXT: a, b, c]");
    let (who, recalled) = talk.asked();
    assert_eq!(
        (who, recalled.message.text.as_str(), recalled.parent),
        ("a", "Hello. ", None)
    );
    talk.says("I am a.");
    let (who, recalled) = talk.asked();
    assert_eq!((who, recalled.message.text.as_str()), ("b", "I am a."));
    assert_eq!(recalled.parent.unwrap().text, "Hello. ");
    assert!(recalled.context.is_empty() && recalled.related.is_empty());
    talk.says("I am b.");
    let (who, recalled) = talk.asked();
    assert_eq!((who, recalled.message.text.as_str()), ("c", "I am b."));
    assert_eq!(recalled.parent.unwrap().text, "Hello. ");
    assert_eq!(numbers(&recalled.context), [2]);
    assert_eq!(numbers(&recalled.related), [2]);
}

#[test]
fn who_waits_long_still_knows_why() {
    let mut talk = Talk::new(2);
    talk.says("Go. [NEXT: a, b!P3]");
    // After five consecutive replies the queue prefers older requests.
    for _ in 0..5 {
        assert_eq!(talk.asked().0, "a");
        talk.says("Once more. [NEXT: a]");
    }
    while talk.asked().0 != "b" {
        talk.says("Done.");
    }
    let (_, recalled) = talk.asked();
    assert_eq!(recalled.parent.unwrap().text, "Go. ");
    assert_eq!(recalled.context.len(), 2);
}

/// With a time quadratic in the window, this would take many minutes.
#[test]
fn a_large_window_takes_no_longer_per_message() {
    let begun = Instant::now();
    let mut memory = Memory::new(100_000, usize::MAX);
    for number in 0..200_000 {
        memory.add(spoken(number, None, "x"), None);
        memory.forget(&[id(0)]);
    }
    assert_eq!(memory.len(), 100_002);
    assert_eq!(memory.recall(id(0)).unwrap().context.len(), 100_000);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// Returns the context that a memory without a limit would recall.
fn context(all: &[Spoken], window: usize, max_bytes: usize, parent: EntryId) -> Vec<&Spoken> {
    let (newest, before) = all.split_last().unwrap();
    let mut bytes = newest.text.len();
    let mut context: Vec<&Spoken> = before
        .iter()
        .rev()
        .take(window)
        .take_while(|spoken| {
            bytes += spoken.text.len();
            bytes <= max_bytes
        })
        .collect();
    context.reverse();
    context.retain(|spoken| spoken.id != parent);
    context
}

proptest! {
    /// Dropped messages would not have been recalled.
    #[test]
    fn what_is_forgotten_is_not_missed(
        window in 0usize..6, max_bytes in 0usize..60,
        steps in prop::collection::vec((0usize..20, any::<bool>(), any::<prop::sample::Index>()), 1..40),
    ) {
        let mut memory = Memory::new(window, max_bytes);
        let mut all = Vec::new();
        let mut awaited: Vec<EntryId> = Vec::new();
        for (number, (length, wait, done)) in steps.into_iter().enumerate() {
            let number = u32::try_from(number).unwrap();
            let said = spoken(number, None, &"x".repeat(length));
            all.push(said.clone());
            memory.add(said, None);
            if wait {
                awaited.push(id(number));
            } else if !awaited.is_empty() {
                awaited.remove(done.index(awaited.len()));
            }
            memory.forget(&awaited);
            prop_assert!(memory.len() <= window + 1 + awaited.len());
            for parent in awaited.iter().chain([&id(number)]) {
                let recalled = memory.recall(*parent).unwrap();
                let newest = all.last().unwrap();
                prop_assert_eq!(recalled.message, newest);
                prop_assert_eq!(&recalled.context, &context(&all, window, max_bytes, *parent));
                let found = all.iter().find(|spoken| spoken.id == *parent && *parent != newest.id);
                prop_assert_eq!(recalled.parent, found);
                let before = recalled.context.iter().filter(|spoken| spoken.id < *parent).count();
                prop_assert!(found.is_none() || recalled.parent_at == before);
            }
        }
    }

    /// In every conversation a prompted member gets the message to reply to, from bounded memory.
    #[test]
    fn a_talk_of_any_length_is_remembered_in_little(
        window in 0usize..4,
        texts in prop::collection::vec("(\\[NEXT: [abc](!P[13])?(, [abc](!P[13])?){0,3}\\]|\\[DROP: [abc]\\]|word){1,2}", 1..40),
    ) {
        let mut talk = Talk::new(window);
        for text in &texts {
            talk.says(text);
            prop_assert!(talk.memory.len() <= window + 1 + talk.awaited().len());
            for parent in talk.awaited() {
                let recalled = talk.memory.recall(parent).unwrap();
                let found = recalled.parent.unwrap_or(recalled.message).id;
                prop_assert_eq!(found, parent);
            }
        }
    }
}
