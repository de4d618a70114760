//! Imports of sessions whose messages have ids: growth, forks, divergence and previews, on both
//! stores.

use std::sync::Arc;

use jiff::Timestamp;
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

use super::*;
use crate::files::FilesStore;
use crate::sqlite::SqliteStore;
use crate::{Redaction, Sessions, Store};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{ImportedParent, ImportedRelation, Role, ToolCall, human, plain};
use tertulia_core::foreign::{Compaction, ForeignFork, Said};

const PROGRAM: &str = "program";

fn with_each_store(check: impl Fn(&Sessions)) {
    let folder = tempfile::tempdir().unwrap();
    let files: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path()).unwrap());
    let sqlite: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().unwrap());
    for store in [sqlite, files] {
        let clock = Clock::new(|| Timestamp::MAX, Uuid::now_v7);
        check(&Sessions::new(store, clock, Redaction::On));
    }
}

/// A session whose messages are named by their ids. `!` in front makes a message of only a tool
/// call, `?` adds thinking.
fn session(original: &str, ids: &[&str]) -> Foreign {
    let said = ids.iter().enumerate().map(|(place, id)| {
        let mut message = plain(&human(), Role::User, (*id).to_owned());
        if id.starts_with('!') {
            message.content.clear();
            message.tool_calls.push(ToolCall {
                id: (*id).to_owned(),
                name: "read".to_owned(),
                arguments: serde_json::json!({}),
            });
        }
        Said {
            id: Foreign::entry_id(PROGRAM, id),
            at: Timestamp::from_second(10 + place as i64).unwrap(),
            message,
            compacts: None,
            thought: id.starts_with('?').then(|| format!("about {id}")),
        }
    });
    let created_at = Timestamp::from_second(1).unwrap();
    Foreign {
        said: said.collect(),
        ..Foreign::chat(PROGRAM, original, created_at)
    }
}

fn take_in(sessions: &Sessions, talk: &Foreign) -> Adopted {
    let mut intake = sessions.intake(Doing::Write);
    block_on(intake.take_in(talk)).unwrap().adopted
}

/// The messages of a session by their ids in the program, each with its thinking.
fn content(sessions: &Sessions, id: SessionId) -> Vec<String> {
    let log = block_on(sessions.load(id)).unwrap();
    assert!(log.damage.is_empty(), "{:?}", log.damage);
    let mut words = Vec::new();
    for message in log.entries.iter().filter_map(Entry::message) {
        words.push(match message.content.is_empty() {
            true => message.tool_calls[0].id.clone(),
            false => message.content.clone(),
        });
        words.extend(message.reasoning.clone());
    }
    words
}

#[test]
fn every_new_message_is_added_once() {
    with_each_store(|sessions| {
        let all = ["a", "!b", "!c", "?d", "e"];
        let id = take_in(sessions, &session("s", &all[..1])).id();
        for end in 1..=all.len() {
            let talk = session("s", &all[..end]);
            take_in(sessions, &talk);
            assert_eq!(take_in(sessions, &talk), Adopted::Known { id }, "{end}");
        }
        let expected = ["a", "!b", "!c", "?d", "about ?d", "e"];
        assert_eq!(content(sessions, id), expected);
        let meta = block_on(sessions.row(id)).unwrap().meta;
        let source = meta.source.unwrap();
        assert_eq!(
            (source.id.as_str(), source.program.as_str()),
            ("s", PROGRAM)
        );
        // An older state of the file adds nothing either.
        let older = session("s", &all[..2]);
        assert_eq!(take_in(sessions, &older), Adopted::Known { id });
    });
}

#[test]
fn a_copied_beginning_makes_a_fork() {
    with_each_store(|sessions| {
        let origin = take_in(sessions, &session("s", &["a", "?b", "c"])).id();
        let fork = session("t", &["a", "?b", "d"]);
        let taken = take_in(sessions, &fork);
        assert!(
            matches!(taken, Adopted::Forked { from, .. } if from == origin),
            "{taken:?}"
        );
        assert_eq!(content(sessions, taken.id()), ["a", "?b", "about ?b", "d"]);
        let meta = block_on(sessions.row(taken.id())).unwrap().meta;
        assert_eq!(
            meta.parent.map(|parent| parent.relation),
            Some(Relation::Fork)
        );
        assert_eq!(meta.source.map(|source| source.id).as_deref(), Some("t"));
        let id = taken.id();
        assert_eq!(take_in(sessions, &fork), Adopted::Known { id });
        // The fork of the fork shares most with the fork.
        let third = take_in(sessions, &session("u", &["a", "?b", "d", "e"]));
        assert!(
            matches!(third, Adopted::Forked { from, .. } if from == id),
            "{third:?}"
        );
        take_in(sessions, &session("t", &["a", "?b", "d", "f"]));
        assert_eq!(content(sessions, id).last().map(String::as_str), Some("f"));
    });
}

#[test]
fn a_beginning_that_is_only_referred_to_is_inherited() {
    with_each_store(|sessions| {
        let origin = take_in(sessions, &session("s", &["a", "b", "c"])).id();
        let refers = |ids: &[&str]| Foreign {
            fork: Some(ForeignFork {
                from: Foreign::session_id(PROGRAM, "s"),
                beginning: Beginning::Referred(vec![
                    Foreign::entry_id(PROGRAM, "a"),
                    Foreign::entry_id(PROGRAM, "x"),
                    Foreign::entry_id(PROGRAM, "b"),
                ]),
            }),
            ..session("t", ids)
        };
        let taken = take_in(sessions, &refers(&["d"]));
        assert!(
            matches!(taken, Adopted::Forked { from, .. } if from == origin),
            "{taken:?}"
        );
        let id = taken.id();
        assert_eq!(content(sessions, id), ["a", "b", "d"]);
        assert_eq!(take_in(sessions, &refers(&["d"])), Adopted::Known { id });
        take_in(sessions, &refers(&["d", "e"]));
        assert_eq!(content(sessions, id), ["a", "b", "d", "e"]);
        // Without the origin the session has what its file has.
        let mut alone = refers(&["d"]);
        alone.id = Foreign::session_id(PROGRAM, "v");
        alone.fork.as_mut().unwrap().from = Foreign::session_id(PROGRAM, "gone");
        let taken = take_in(sessions, &alone);
        assert!(matches!(taken, Adopted::Created { .. }), "{taken:?}");
        assert_eq!(content(sessions, taken.id()), ["d"]);
    });
}

#[test]
fn a_session_that_went_on_here_and_there_becomes_two() {
    with_each_store(|sessions| {
        let id = take_in(sessions, &session("s", &["a", "b"])).id();
        let head = block_on(sessions.row(id)).unwrap().meta.head;
        let own = plain(&human(), Role::User, "here".to_owned());
        block_on(sessions.append(id, head, vec![Body::Message(own)])).unwrap();
        let grown = session("s", &["a", "b", "there"]);
        let taken = take_in(sessions, &grown);
        assert_eq!(content(sessions, id), ["a", "b", "here"]);
        assert_eq!(content(sessions, taken.id()), ["a", "b", "there"]);
        assert_eq!(take_in(sessions, &grown), Adopted::Known { id: taken.id() });
    });
}

#[test]
fn a_preview_says_what_a_write_does() {
    with_each_store(|sessions| {
        let talks = [
            session("s", &["a", "b"]),
            session("t", &["a", "c"]),
            session("s", &["a", "b", "d"]),
            session("t", &["a", "c"]),
        ];
        let take_in_all = |doing| {
            let mut intake = sessions.intake(doing);
            talks
                .iter()
                .map(|talk| block_on(intake.take_in(talk)).unwrap().adopted)
                .collect::<Vec<_>>()
        };
        let preview = take_in_all(Doing::Preview);
        assert!(block_on(sessions.row(talks[0].id)).is_err());
        assert_eq!(preview, take_in_all(Doing::Write));
    });
}

/// A session that an agent of the session "s" started.
fn subagent(ids: &[&str]) -> Foreign {
    let mut talk = session("s/agent-1", ids);
    talk.source.parent = Some(ImportedParent {
        original: "s".to_owned(),
        relation: ImportedRelation::Subagent,
    });
    talk
}

fn parent_of(sessions: &Sessions, id: SessionId) -> Option<(SessionId, Relation)> {
    let meta = block_on(sessions.row(id)).unwrap().meta;
    meta.parent.map(|parent| (parent.id, parent.relation))
}

#[test]
fn a_subagent_is_a_child_of_its_session() {
    with_each_store(|sessions| {
        // It may be imported first.
        let child = take_in(sessions, &subagent(&["x", "y"])).id();
        let parent = take_in(sessions, &session("s", &["a", "b"])).id();
        assert_eq!(
            parent_of(sessions, child),
            Some((parent, Relation::Subagent))
        );
        assert_eq!(
            take_in(sessions, &subagent(&["x", "y"])),
            Adopted::Known { id: child }
        );
        assert_eq!(content(sessions, child), ["x", "y"]);
        let children = Filter {
            parent: Some(parent),
            ..Filter::default()
        };
        let found = block_on(sessions.store().list(&children, &Page::first(10))).unwrap();
        let found: Vec<SessionId> = found.rows.iter().map(|row| row.meta.id).collect();
        assert_eq!(found, [child]);
    });
}

#[test]
fn a_later_import_names_the_parent_of_a_subagent() {
    with_each_store(|sessions| {
        // Messages of their own: a session that begins like another is its fork.
        for ids in [&["x"][..], &["y", "z"]] {
            let mut earlier = subagent(&ids[..1]);
            earlier.id = SessionId::new(derived(&[&ids.len().to_string()]));
            earlier.source.parent = None;
            let id = take_in(sessions, &earlier).id();
            assert_eq!(parent_of(sessions, id), None);
            let mut later = subagent(ids);
            later.id = id;
            let taken = take_in(sessions, &later);
            assert!(matches!(taken, Adopted::Extended { .. }), "{taken:?}");
            let parent = Foreign::session_id(PROGRAM, "s");
            assert_eq!(parent_of(sessions, id), Some((parent, Relation::Subagent)));
            assert_eq!(take_in(sessions, &later), Adopted::Known { id });
            assert_eq!(content(sessions, id), ids);
        }
    });
}

#[test]
fn a_summary_of_the_program_is_a_compaction() {
    with_each_store(|sessions| {
        // Read at once, after what it covers, and after what it keeps.
        for (case, keeps, starts) in [(0, false, 5), (1, true, 5), (2, true, 2)] {
            let id = SessionId::new(derived(&["case", &case.to_string()]));
            // Messages of their own: a session that begins like another is its fork.
            let all = ["a", "?b", "c", "summary", "d"].map(|name| format!("{name}{case}"));
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            for end in starts..=all.len() {
                let mut talk = session("s", &all[..end]);
                talk.id = id;
                if let Some(said) = talk.said.get_mut(3) {
                    let keeps = keeps.then(|| Foreign::entry_id(PROGRAM, all[2]));
                    said.compacts = Some(Compaction { keeps });
                }
                take_in(sessions, &talk);
                assert_eq!(
                    take_in(sessions, &talk),
                    Adopted::Known { id },
                    "{case} {end}"
                );
            }
            let log = block_on(sessions.load(id)).unwrap();
            let covered = log.entries.iter().find_map(|entry| match &entry.body {
                Body::Compacted(compacted) => Some((compacted.upto, compacted.summary.as_str())),
                _ => None,
            });
            let thought = format!("about {}", all[1]);
            let last = if keeps { thought.as_str() } else { all[2] };
            let upto = log
                .entries
                .iter()
                .find(|entry| entry.body.searchable().ends_with(last))
                .unwrap()
                .seq;
            assert_eq!(covered, Some((upto, all[3])), "{case}");
            let meta = block_on(sessions.row(id)).unwrap().meta;
            assert_eq!((meta.messages, meta.compacted), (4, Some(upto)), "{case}");
            assert_eq!(
                content(sessions, id),
                [all[0], all[1], thought.as_str(), all[2], all[4]],
                "{case}"
            );
        }
    });
}
