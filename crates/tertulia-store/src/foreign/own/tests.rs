//! Files of sessions that tertulia ran or exported, on both stores.

mod sealed;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

use super::*;
use crate::files::FilesStore;
use crate::sqlite::SqliteStore;
use crate::{Adopted, Redaction, Sessions, Start, Store};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind, Linked, Role, human, plain};
use tertulia_core::foreign::{Beginning, ForeignFork, Said};
use tertulia_core::id::EntryId;

const PROGRAM: &str = "codex";
const AGENT: &str = "my-codex";

/// A store whose clock shows what the test says.
struct World {
    store: Arc<dyn Store>,
    sessions: Sessions,
    seconds: Arc<AtomicI64>,
}

fn with_each_store(check: impl Fn(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let files: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path()).unwrap());
    let sqlite: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().unwrap());
    for store in [sqlite, files] {
        let seconds = Arc::new(AtomicI64::new(0));
        let shown = seconds.clone();
        let time = move || Timestamp::from_second(shown.load(Ordering::Relaxed)).unwrap();
        let clock = Clock::new(time, Uuid::now_v7);
        check(&World {
            store: store.clone(),
            sessions: Sessions::new(store, clock, Redaction::On),
            seconds,
        });
    }
}

impl World {
    fn begin(&self) -> SessionId {
        let id = self.sessions.clock().session_id();
        let start = Start {
            id,
            kind: Kind::Chat,
            title: None,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
        };
        block_on(self.sessions.create(&start, Vec::new())).unwrap();
        id
    }

    fn add(&self, id: SessionId, second: i64, body: Body) {
        self.seconds.store(second, Ordering::Relaxed);
        let head = block_on(self.sessions.row(id)).unwrap().meta.head;
        block_on(self.sessions.append(id, head, vec![body])).unwrap();
    }

    fn prompt(&self, id: SessionId, second: i64, words: &str) {
        let message = plain(&human(), Role::User, words.to_owned());
        self.add(id, second, Body::Message(message));
    }

    fn answer(&self, id: SessionId, second: i64, agent: &str, words: &str) {
        let speaker = Speaker::plain(agent, SpeakerKind::Ai);
        let message = plain(&speaker, Role::Assistant, words.to_owned());
        self.add(id, second, Body::Message(message));
    }

    fn link(&self, id: SessionId, second: i64, agent: &str, native: &str) {
        let linked = Linked {
            agent: agent.to_owned(),
            native: native.to_owned(),
            cwd: None,
            inherited: None,
        };
        self.add(id, second, Body::Linked(linked));
    }

    /// A session with one turn of the program, from second 10 to 20.
    fn run(&self) -> SessionId {
        let id = self.begin();
        self.prompt(id, 10, "do it");
        self.link(id, 11, AGENT, "v");
        self.answer(id, 20, AGENT, "done");
        id
    }

    fn take_in(&self, talk: &Foreign) -> Taken {
        block_on(self.sessions.intake(Doing::Write).take_in(talk)).unwrap()
    }

    fn words(&self, id: SessionId) -> Vec<String> {
        let log = block_on(self.sessions.load(id)).unwrap();
        assert!(log.damage.is_empty(), "{:?}", log.damage);
        log.messages()
            .map(|(_, message)| format!("{}: {}", message.speaker.name, message.content))
            .collect()
    }

    fn count(&self) -> usize {
        let (all, page) = (Filter::default(), Page::first(usize::MAX));
        block_on(self.sessions.store().list(&all, &page))
            .unwrap()
            .rows
            .len()
    }
}

/// The program's file: speaker, second and words of each message.
fn file(original: &str, lines: &[(char, i64, &str)]) -> Foreign {
    let said = lines.iter().map(|(speaker, second, words)| {
        let message = match speaker {
            'u' => plain(&human(), Role::User, (*words).to_owned()),
            _ => plain(
                &Speaker::plain("codex", SpeakerKind::Ai),
                Role::Assistant,
                (*words).to_owned(),
            ),
        };
        Said {
            compacts: None,
            id: Foreign::entry_id(PROGRAM, &format!("{second} {words}")),
            at: Timestamp::from_second(*second).unwrap(),
            message,
            thought: None,
        }
    });
    Foreign {
        said: said.collect(),
        ..Foreign::chat(PROGRAM, original, Timestamp::from_second(12).unwrap())
    }
}

#[test]
fn the_file_of_a_program_that_tertulia_ran_adds_nothing() {
    with_each_store(|world| {
        let id = world.run();
        // The hand-over form of a prompt and the program's own words for a tool are no new words.
        let talk = file(
            "v",
            &[
                ('u', 12, "earlier: x\n\ndo it"),
                ('a', 13, "running"),
                ('a', 19, "done"),
            ],
        );
        let taken = world.take_in(&talk);
        assert_eq!(taken.adopted, Adopted::Known { id });
        assert_eq!(taken.own, Some(Provenance::Run(AGENT.to_owned())));
        assert_eq!(world.count(), 1);
        // A file of a session that tertulia did not run is one of its own.
        world.take_in(&file("w", &[('u', 12, "do it"), ('a', 19, "done")]));
        assert_eq!(world.count(), 2);
    });
}

#[test]
fn words_are_recognised_if_the_clocks_differ() {
    with_each_store(|world| {
        let id = world.run();
        let talk = file("v", &[('u', 512, "x\n\ndo it"), ('a', 519, "done\n")]);
        assert_eq!(world.take_in(&talk).adopted, Adopted::Known { id });
    });
}

#[test]
fn what_was_typed_in_the_program_later_is_appended() {
    with_each_store(|world| {
        let id = world.run();
        let lines = [
            ('u', 12, "do it"),
            ('a', 19, "done"),
            ('u', 30, "do it"),
            ('a', 31, "done"),
        ];
        let talk = file("v", &lines);
        let preview = block_on(world.sessions.intake(Doing::Preview).take_in(&talk)).unwrap();
        let taken = world.take_in(&talk).adopted;
        assert_eq!(taken, Adopted::Extended { id, entries: 2 });
        assert_eq!(preview.adopted, taken);
        let own = format!("{AGENT}: done");
        let expected = ["you: do it", &own, "you: do it", &own];
        assert_eq!(world.words(id), expected);
        assert_eq!(world.take_in(&talk).adopted, Adopted::Known { id });
        // The agent goes on with its session, and then the program by itself once more.
        world.prompt(id, 40, "more");
        world.answer(id, 42, AGENT, "yes");
        let more = [('u', 41, "more"), ('a', 42, "yes"), ('u', 50, "last")];
        let talk = file("v", &[&lines[..], &more[..]].concat());
        let taken = world.take_in(&talk).adopted;
        assert_eq!(taken, Adopted::Extended { id, entries: 1 });
    });
}

#[test]
fn what_both_went_on_with_becomes_a_fork() {
    with_each_store(|world| {
        let id = world.run();
        world.prompt(id, 25, "here");
        world.answer(id, 26, "other", "there");
        let mut lines = vec![
            ('u', 12, "do it"),
            ('a', 19, "done"),
            ('u', 30, "and"),
            ('a', 31, "yes"),
        ];
        let taken = world.take_in(&file("v", &lines)).adopted;
        let fork = taken.id();
        assert!(
            matches!(taken, Adopted::Forked { from, .. } if from == id),
            "{taken:?}"
        );
        let own = |words: &str| format!("{AGENT}: {words}");
        let expected = [
            "you: do it".to_owned(),
            own("done"),
            "you: and".to_owned(),
            own("yes"),
        ];
        assert_eq!(world.words(fork), expected);
        let meta = block_on(world.sessions.row(fork)).unwrap().meta;
        assert_eq!(meta.parent.unwrap().relation, Relation::Fork);
        let known = world.take_in(&file("v", &lines)).adopted;
        assert_eq!(known, Adopted::Known { id: fork });
        lines.push(('u', 50, "more"));
        let more = world.take_in(&file("v", &lines)).adopted;
        assert_eq!(
            more,
            Adopted::Extended {
                id: fork,
                entries: 1
            }
        );
    });
}

#[test]
fn a_turn_in_the_program_between_two_of_ours_is_kept() {
    with_each_store(|world| {
        let id = world.run();
        world.prompt(id, 40, "more");
        world.answer(id, 45, AGENT, "yes");
        let talk = file(
            "v",
            &[
                ('u', 12, "do it"),
                ('a', 19, "done"),
                ('u', 30, "by itself"),
                ('a', 31, "so"),
                ('u', 41, "more"),
                ('a', 44, "yes"),
            ],
        );
        let taken = world.take_in(&talk).adopted;
        assert!(
            matches!(taken, Adopted::Forked { from, .. } if from == id),
            "{taken:?}"
        );
        let all = world.words(taken.id());
        assert_eq!(all.len(), 6, "{all:?}");
        assert_eq!(all[2], "you: by itself");
        let id = taken.id();
        assert_eq!(world.take_in(&talk).adopted, Adopted::Known { id });
    });
}

#[test]
fn a_session_that_is_open_is_left_to_its_process() {
    with_each_store(|world| {
        let id = world.run();
        world.prompt(id, 30, "more");
        let talk = file(
            "v",
            &[
                ('u', 12, "do it"),
                ('a', 19, "done"),
                ('u', 31, "more"),
                ('a', 32, "yes"),
            ],
        );
        let lock = block_on(world.sessions.store().claim(id)).unwrap();
        assert!(lock.is_some());
        let taken = world.take_in(&talk);
        assert_eq!((taken.adopted, taken.waits), (Adopted::Known { id }, true));
        // What is known needs no lock.
        let known = world.take_in(&file("v", &[('u', 12, "do it"), ('a', 19, "done")]));
        assert!(!known.waits);
        drop(lock);
        let taken = world.take_in(&talk);
        assert_eq!(taken.adopted, Adopted::Extended { id, entries: 1 });
    });
}

#[test]
fn a_session_of_the_program_that_another_one_replaced_is_recognised() {
    with_each_store(|world| {
        let id = world.run();
        world.prompt(id, 30, "more");
        world.link(id, 31, AGENT, "w");
        world.answer(id, 35, AGENT, "yes");
        let first = file("v", &[('u', 12, "do it"), ('a', 19, "done")]);
        assert_eq!(world.take_in(&first).adopted, Adopted::Known { id });
        let second = file("w", &[('u', 32, "do it\n\ndone\n\nmore"), ('a', 34, "yes")]);
        assert_eq!(world.take_in(&second).adopted, Adopted::Known { id });
        assert_eq!(world.count(), 1);
    });
}

#[test]
fn an_export_that_comes_back_is_the_same_session() {
    with_each_store(|world| {
        let id = world.run();
        let original = Foreign::export_id(PROGRAM, id);
        let mut lines = vec![('u', 10, "do it"), ('a', 20, "done")];
        let taken = world.take_in(&file(&original, &lines));
        assert_eq!(taken.adopted, Adopted::Known { id });
        assert_eq!(taken.own, Some(Provenance::Export));
        lines.extend([('u', 30, "there"), ('a', 31, "yes")]);
        let taken = world.take_in(&file(&original, &lines)).adopted;
        assert_eq!(taken, Adopted::Extended { id, entries: 2 });
        assert_eq!(world.words(id)[3], "codex: yes");
        // It goes on here and there.
        world.prompt(id, 40, "here");
        lines.push(('u', 41, "and there"));
        let taken = world.take_in(&file(&original, &lines)).adopted;
        assert!(
            matches!(taken, Adopted::Forked { from, .. } if from == id),
            "{taken:?}"
        );
        assert_eq!(world.words(taken.id()).len(), 5);
        assert_eq!(world.count(), 2);
    });
}

#[test]
fn lines_of_an_export_are_known_by_the_entries_they_were_made_from() {
    with_each_store(|world| {
        let id = world.run();
        let log = block_on(world.sessions.load(id)).unwrap();
        let entries: Vec<EntryId> = log.messages().map(|(entry, _)| entry.id).collect();
        let mut talk = file(
            &Foreign::export_id(PROGRAM, id),
            &[('u', 500, "[You] do it!"), ('a', 501, "rewritten")],
        );
        for (said, entry) in talk.said.iter_mut().zip(entries) {
            said.id = Foreign::entry_id(PROGRAM, &entry.to_string());
        }
        assert_eq!(world.take_in(&talk).adopted, Adopted::Known { id });
    });
}

#[test]
fn a_fork_that_the_program_made_continues_the_session_here() {
    with_each_store(|world| {
        let id = world.run();
        world.prompt(id, 25, "more");
        world.answer(id, 29, AGENT, "yes");
        let lines = [
            ('u', 12, "do it"),
            ('a', 19, "done"),
            ('u', 26, "more"),
            ('a', 28, "yes"),
        ];
        let own = file("v", &lines);
        let mut fork = file("w", &[('u', 40, "instead"), ('a', 41, "so")]);
        // It left after the first answer.
        let shared = own.said[..2].iter().map(|said| said.id).collect();
        fork.fork = Some(ForeignFork {
            from: Foreign::session_id(PROGRAM, "v"),
            beginning: Beginning::Referred(shared),
        });
        let mut intake = world.sessions.intake(Doing::Write);
        let known = block_on(intake.take_in(&own)).unwrap().adopted;
        assert_eq!(known, Adopted::Known { id });
        let forked = block_on(intake.take_in(&fork)).unwrap().adopted;
        assert!(
            matches!(forked, Adopted::Forked { from, .. } if from == id),
            "{forked:?}"
        );
        let words = world.words(forked.id());
        let own = format!("{AGENT}: done");
        assert_eq!(words, ["you: do it", &own, "you: instead", "codex: so"]);
    });
}
