//! Imports of conversations: once, repeated, extended, and after two diverged.

use std::sync::Arc;

use jiff::Timestamp;
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

use super::super::adopt::CHUNK;
use super::*;
use crate::Redaction;
use crate::sqlite::SqliteStore;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Speaker, SpeakerKind};
use tertulia_formats::snapshot::{Remembered, Snapshot};

const SECRET: &str = "the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";

fn sessions() -> Sessions {
    let store = SqliteStore::in_memory().unwrap();
    // A clock whose time would show if the import used it.
    let clock = Clock::new(|| Timestamp::MAX, Uuid::now_v7);
    Sessions::new(Arc::new(store), clock, Redaction::On)
}

/// Builds a snapshot of a conversation with these messages.
fn save(words: &[&str], task: Option<&str>) -> Snapshot {
    let messages = words.iter().enumerate().map(|(place, words)| Remembered {
        id: format!("msg-{}", place + 1),
        at: Timestamp::from_second(10 + place as i64).unwrap(),
        speaker: Speaker::plain("ana", SpeakerKind::Human),
        content: (*words).to_owned(),
        routing: None,
    });
    let created_at = Timestamp::from_second(1).unwrap();
    Snapshot {
        team: "review".into(),
        session: "session-1".into(),
        created_at,
        updated_at: created_at,
        team_task: task.map(str::to_owned),
        messages: messages.collect(),
    }
}

fn take_in(sessions: &Sessions, save: &Snapshot) -> Adopted {
    let mut intake = sessions.intake(Doing::Write);
    block_on(intake.take_in(&save.talk())).unwrap().adopted
}

fn lines(sessions: &Sessions, id: SessionId) -> Vec<String> {
    let log = block_on(sessions.load(id)).unwrap();
    assert!(log.damage.is_empty(), "{:?}", log.damage);
    let lines = log.entries.iter().map(|entry| entry.line().to_owned());
    lines.collect()
}

fn said(sessions: &Sessions, id: SessionId) -> Vec<String> {
    let log = block_on(sessions.load(id)).unwrap();
    log.messages()
        .map(|(_, message)| message.content.clone())
        .collect()
}

#[test]
fn the_same_talk_makes_the_same_log_everywhere() {
    let save = save(&["a", "b", SECRET], Some("ship it"));
    let (one, other) = (sessions(), sessions());
    let made = take_in(&one, &save);
    assert_eq!(made, take_in(&other, &save));
    assert_eq!(
        made,
        Adopted::Created {
            id: save.session_id(),
            entries: 6
        }
    );
    let log = lines(&one, made.id());
    assert_eq!(log, lines(&other, made.id()));
    assert!(!log.concat().contains("sk-ant"), "{log:?}");
    let meta = block_on(one.row(made.id())).unwrap().meta;
    assert_eq!(meta.task.as_deref(), Some("ship it"));
    assert_eq!(meta.created_at, save.created_at);
    assert_eq!(meta.updated_at.as_second(), 12);
}

#[test]
fn a_second_time_adds_nothing_and_a_later_save_only_what_is_new() {
    let sessions = sessions();
    let id = take_in(&sessions, &save(&["a", SECRET], Some("t"))).id();
    let first = lines(&sessions, id);
    let again = save(&["a", SECRET], Some("t"));
    assert_eq!(take_in(&sessions, &again), Adopted::Known { id });
    assert_eq!(lines(&sessions, id), first);

    let later = save(&["a", SECRET, "c", "d"], Some("u"));
    let extended = Adopted::Extended { id, entries: 3 };
    assert_eq!(take_in(&sessions, &later), extended);
    assert_eq!(lines(&sessions, id)[..first.len()], first);
    assert_eq!(said(&sessions, id).len(), 4);
    let task = |sessions: &Sessions| block_on(sessions.row(id)).unwrap().meta.task;
    assert_eq!(task(&sessions).as_deref(), Some("u"));
    // The older snapshot, with its older task, adds nothing.
    assert_eq!(take_in(&sessions, &again), Adopted::Known { id });
    assert_eq!(take_in(&sessions, &later), Adopted::Known { id });
    assert_eq!(task(&sessions).as_deref(), Some("u"));
}

#[test]
fn what_went_another_way_is_a_fork_that_goes_on_with_its_own_later_saves() {
    let sessions = sessions();
    let id = take_in(&sessions, &save(&["a", "b", "c"], None)).id();
    let ours = lines(&sessions, id);
    let Adopted::Forked {
        id: fork,
        from,
        entries,
    } = take_in(&sessions, &save(&["a", "b", "X"], Some("t")))
    else {
        panic!("no fork");
    };
    assert_eq!((from, entries), (id, 2));
    assert_eq!(said(&sessions, fork), ["a", "b", "X"]);
    // The shared entries are identical.
    assert_eq!(lines(&sessions, fork)[..3], ours[..3]);
    let longer = save(&["a", "b", "X", "Y"], Some("t"));
    let extended = Adopted::Extended {
        id: fork,
        entries: 1,
    };
    assert_eq!(take_in(&sessions, &longer), extended);
    assert_eq!(take_in(&sessions, &longer), Adopted::Known { id: fork });
    // A third variant forks from the second where it diverges from that.
    let third = take_in(&sessions, &save(&["a", "b", "X", "Z"], None));
    assert!(matches!(third, Adopted::Forked { from, .. } if from == fork));
    assert_eq!(said(&sessions, third.id()), ["a", "b", "X", "Z"]);
    assert_eq!(lines(&sessions, id), ours);
}

#[test]
fn what_shares_no_word_is_a_session_of_its_own() {
    let sessions = sessions();
    let id = take_in(&sessions, &save(&["a"], None)).id();
    let other = save(&["x", "y"], None);
    let made = take_in(&sessions, &other);
    assert!(matches!(made, Adopted::Created { entries: 4, .. }));
    assert_ne!(made.id(), id);
    assert_eq!(said(&sessions, made.id()), ["x", "y"]);
    assert_eq!(take_in(&sessions, &other), Adopted::Known { id: made.id() });
}

#[test]
fn words_that_we_added_since_are_left_alone() {
    let sessions = sessions();
    let mut told = save(&["a", "b"], None);
    let id = take_in(&sessions, &told).id();
    let mut ours = told.messages[1].message();
    ours.content = "ours".into();
    let head = block_on(sessions.row(id)).unwrap().meta.head;
    block_on(sessions.append(id, head, vec![Body::Message(ours)])).unwrap();
    assert_eq!(take_in(&sessions, &told), Adopted::Known { id });
    told = save(&["a", "b", "theirs"], None);
    let fork = take_in(&sessions, &told);
    assert!(matches!(fork, Adopted::Forked { from, entries: 1, .. } if from == id));
    assert_eq!(said(&sessions, id), ["a", "b", "ours"]);
    assert_eq!(said(&sessions, fork.id()), ["a", "b", "theirs"]);
}

#[test]
fn a_preview_says_what_writing_does_and_writes_nothing() {
    let sessions = sessions();
    let saves = [
        save(&["a", "b", "c"], Some("t")),
        save(&["a", "b"], None),
        save(&["a", "X"], None),
        save(&["a", "X", "Y"], Some("u")),
        save(&["q"], None),
        save(&["a", "b", "c", "d"], Some("t")),
    ];
    let take_in_all = |doing| -> Vec<Adopted> {
        let mut intake = sessions.intake(doing);
        saves
            .iter()
            .map(|save| block_on(intake.take_in(&save.talk())).unwrap().adopted)
            .collect()
    };
    let previewed = take_in_all(Doing::Preview);
    assert_eq!(block_on(sessions.store().info()).unwrap().sessions, 0);
    assert_eq!(take_in_all(Doing::Write), previewed);
    assert_eq!(block_on(sessions.store().info()).unwrap().sessions, 3);
    let known = |adopted: &Adopted| matches!(adopted, Adopted::Known { .. });
    for doing in [Doing::Preview, Doing::Write] {
        assert!(take_in_all(doing).iter().all(known));
    }
}

#[test]
fn more_than_one_append_takes_is_taken_in_whole() {
    let sessions = sessions();
    let words: Vec<String> = (0..CHUNK + 10).map(|n| n.to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = take_in(&sessions, &save(&words, Some("t"))).id();
    assert_eq!(said(&sessions, id), words);
    assert_eq!(lines(&sessions, id).len(), words.len() + 3);
}

#[test]
fn a_fork_of_an_imported_session_is_not_told_again_where_it_comes_from() {
    let sessions = sessions();
    let id = take_in(&sessions, &save(&["a", "b"], None)).id();
    let other = save(&["a", "x"], None);
    let fork = take_in(&sessions, &other).id();
    assert_ne!(fork, id);
    assert_eq!(take_in(&sessions, &other), Adopted::Known { id: fork });
    let source = |id| block_on(sessions.row(id)).unwrap().meta.source;
    assert_eq!(source(id).unwrap().id, "session-1");
    assert_eq!(source(fork), None);
}

#[test]
fn a_later_save_is_recorded_once() {
    let sessions = sessions();
    let mut later = save(&["a"], None);
    let id = take_in(&sessions, &later).id();
    later.updated_at = Timestamp::from_second(500).unwrap();
    let made = take_in(&sessions, &later);
    assert_eq!(made, Adopted::Extended { id, entries: 1 });
    assert_eq!(take_in(&sessions, &later), Adopted::Known { id });
    assert_eq!(
        take_in(&sessions, &save(&["a"], None)),
        Adopted::Known { id }
    );
}
