//! Named cases of a sync.

use std::sync::Arc;

use tertulia_core::entry::{Body, Merged, Origin, Relation};
use tertulia_core::id::SessionId;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::sync::{Branches, Diverged, Partner};
use tertulia_store::{Doing, Redaction, Sessions, Store};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human, renamed, tagged, undone};
use tertulia_testkit::scratch::Scratch;

use super::{all_written, assert_sound, log, metas, move_all, push, sync, written};

fn memory() -> SqliteStore {
    SqliteStore::in_memory().unwrap()
}

fn meta(store: &dyn Store, id: SessionId) -> tertulia_core::session::SessionMeta {
    metas(store).into_iter().find(|meta| meta.id == id).unwrap()
}

#[test]
fn what_is_there_is_not_moved_again() {
    let (one, other) = (memory(), memory());
    let clock = still_clock(1);
    let mut first = Writer::begin(&one, &clock);
    first.say(&one, "hello");
    let fork = first.fork(&one, 2);
    let moved = push(&one, &other);
    assert_eq!((moved.created, moved.entries), (2, 3));
    // The fork shares its beginning there, too.
    assert_eq!(meta(&other, fork.id).parent.unwrap().id, first.id);
    assert_eq!(log(&other, fork.id), fork.log);
    assert!(push(&one, &other).is_empty());
    first.append(&one, vec![human("more"), ai("demo", "yes")]);
    let moved = push(&one, &other);
    assert_eq!((moved.extended, moved.entries), (1, 2));
    assert_eq!(log(&other, first.id), first.log);
    assert!(push(&other, &one).is_empty());
    assert_sound(&other);
}

/// A session in two stores that both continue it.
fn diverged(one: &dyn Store, other: &dyn Store) -> (Writer, Writer) {
    let clock = still_clock(1);
    let mut ours = Writer::begin(one, &clock);
    ours.append(one, vec![human("hello"), renamed("plans")]);
    push(one, other);
    let mut theirs = ours.clone();
    ours.say(one, "here");
    theirs.say(other, "there");
    (ours, theirs)
}

#[test]
fn both_continuations_survive_and_grow() {
    let (one, other) = (memory(), memory());
    let (mut ours, mut theirs) = diverged(&one, &other);
    let (pulled, pushed) = sync(&one, &other);
    let [Diverged { session, fork, .. }] = pulled.diverged[..] else {
        panic!("{pulled:?}");
    };
    assert_eq!(session, ours.id);
    assert_eq!(written(&one, fork), written(&other, ours.id));
    assert_eq!(pushed.diverged.len(), 1);
    let parent = meta(&one, fork).parent.unwrap();
    assert_eq!((parent.id, parent.relation), (ours.id, Relation::Conflict));
    let (pulled, pushed) = sync(&one, &other);
    assert!(pulled.is_empty() && pushed.is_empty());
    assert_eq!((metas(&one).len(), metas(&other).len()), (2, 2));
    // A branch that grows extends the same fork, whichever store it grows in.
    theirs.say(&other, "there again");
    let (pulled, _) = sync(&one, &other);
    assert_eq!((pulled.extended, pulled.entries), (1, 1));
    assert_eq!(written(&one, fork), written(&other, ours.id));
    let mut in_fork = Writer::named(fork, &still_clock(9));
    in_fork.log = log(&one, fork);
    in_fork.say(&one, "from here into theirs");
    let (_, pushed) = sync(&one, &other);
    assert_eq!((pushed.extended, pushed.entries), (1, 1));
    assert_eq!(written(&one, fork), written(&other, ours.id));
    ours.say(&one, "here again");
    sync(&one, &other);
    assert_eq!(all_written(&one), all_written(&other));
    assert_eq!(metas(&one).len(), 2);
    assert_sound(&one);
    assert_sound(&other);
}

#[test]
fn every_store_makes_the_same_fork() {
    let (one, other, third, fourth) = (memory(), memory(), memory(), memory());
    let (ours, _) = diverged(&one, &other);
    for store in [&third, &fourth] {
        push(&one, store);
        push(&other, store);
    }
    let fork = metas(&third).into_iter().find(|meta| meta.id != ours.id);
    let fork = fork.unwrap().id;
    assert_eq!(log(&third, fork), log(&fourth, fork));
    push(&other, &one);
    assert_eq!(log(&third, fork), log(&one, fork));
}

#[test]
fn an_undone_change_is_undone_in_the_fork() {
    let (one, other) = (memory(), memory());
    let (_, mut theirs) = diverged(&one, &other);
    // Entry 3 is the shared rename, 5 a tag of this branch.
    theirs.append(&other, vec![tagged(&["x"], &[])]);
    theirs.append(&other, vec![undone(5)]);
    theirs.append(&other, vec![undone(3)]);
    let pulled = push(&other, &one);
    let kept = meta(&one, pulled.diverged[0].fork);
    assert!(kept.tags.is_empty(), "{:?}", kept.tags);
    assert!(meta(&other, theirs.id).tags.is_empty());
    assert_ne!(kept.title.as_deref(), Some("plans"));
    assert!(push(&one, &other).diverged.len() == 1 && push(&other, &one).is_empty());
}

#[test]
fn an_open_session_waits() {
    let (scratch, other) = (Scratch::new(), memory());
    let one = FilesStore::open(scratch.path()).unwrap();
    let mut writer = Writer::begin(&other, &still_clock(1));
    push(&other, &one);
    writer.append(&other, vec![human("a"), ai("demo", "b")]);
    let lock = now(one.claim(writer.id)).unwrap().unwrap();
    let moved = push(&other, &one);
    assert!(moved.is_empty());
    assert!(moved.skipped[0].is_open() && moved.skipped[0].entries == 2);
    drop(lock);
    assert_eq!(push(&other, &one).entries, 2);
    assert!(push(&other, &one).skipped.is_empty());
}

#[test]
fn another_session_with_the_same_id_is_left_alone() {
    let (one, other) = (memory(), memory());
    let writer = Writer::begin(&one, &still_clock(1));
    let mut stranger = Writer::named(writer.id, &still_clock(2));
    stranger
        .open(&other, |_| {}, vec![human("not the same")])
        .unwrap();
    let moved = push(&other, &one);
    assert!(moved.is_empty());
    assert_eq!(moved.skipped[0].session, Some(writer.id));
    assert_eq!(log(&one, writer.id), writer.log);
}

#[test]
fn a_preview_says_the_same_and_writes_nothing() {
    let (one, other) = (memory(), memory());
    diverged(&one, &other);
    let mut new = Writer::begin(&other, &still_clock(5));
    new.say(&other, "new");
    new.fork(&other, 1);
    let before = all_written(&one);
    let (from, to) = (Branches::of(&other), Branches::of(&one));
    let planned = move_all(&from, &to, Doing::Preview).unwrap();
    assert_eq!(all_written(&one), before);
    let moved = push(&other, &one);
    assert_eq!(
        (planned.created, planned.diverged, planned.sessions),
        (moved.created, moved.diverged, moved.sessions)
    );
}

#[test]
fn a_fork_of_a_kept_branch_finds_its_beginning_where_the_branch_is_the_session() {
    let (one, other) = (memory(), memory());
    let (ours, _) = diverged(&one, &other);
    let fork = sync(&one, &other).0.diverged[0].fork;
    let mut kept = Writer::named(fork, &still_clock(9));
    kept.log = log(&one, fork);
    let mut of_fork = kept.fork(&one, kept.log.len() as u64);
    of_fork.say(&one, "in the fork of the fork");
    sync(&one, &other);
    assert_eq!(log(&other, of_fork.id), of_fork.log);
    assert_eq!(log(&other, ours.id).len(), 4);
    let (pulled, pushed) = sync(&one, &other);
    assert!(pulled.is_empty() && pushed.is_empty());
    assert_sound(&other);
}

#[test]
fn origins_are_called_what_each_store_calls_them() {
    let (one, other) = (Arc::new(memory()), memory());
    let (ours, theirs) = diverged(&*one, &other);
    let (pulled, pushed) = sync(&*one, &other);
    let (here, there) = (pulled.diverged[0].fork, pushed.diverged[0].fork);
    let end = |id: SessionId| {
        let head = meta(&other, id).head;
        Origin {
            id,
            seq: head.seq,
            hash: head.hash,
        }
    };
    let merged = |ours: SessionId, theirs_end: SessionId| {
        let joins = Body::Merged(Merged {
            ours: end(ours),
            theirs: end(theirs_end),
        });
        let mut merge = theirs.fork(&other, 3);
        merge.append(&other, vec![joins]);
        sync(&*one, &other);
        let sessions = Sessions::new(one.clone(), still_clock(5), Redaction::On);
        let (mut meta, mut entries) = (meta(&*one, merge.id), log(&*one, merge.id));
        now(sessions.name_origins(&mut meta, &mut entries)).unwrap();
        let named = [meta.parent.unwrap(), meta.merged.unwrap()].map(|it| (it.id, it.seq.0));
        (named, entries)
    };
    // Their branch is a fork here, with its opening before it; ours is the session itself. What one
    // of them is called here may be what the other was called there.
    let (named, _) = merged(there, theirs.id);
    assert_eq!(named, [(ours.id, 4), (here, 5)]);
    let (named, entries) = merged(theirs.id, there);
    assert_eq!(named, [(here, 5), (ours.id, 4)]);
    let Body::Merged(joins) = &entries[4].body else {
        panic!("{entries:?}");
    };
    assert_eq!((joins.ours.id, joins.theirs.id), (here, ours.id));
    assert_eq!(log(&*one, here)[4].body, theirs.log[3].body);
}

/// What a fork keeps is computed once for each end of its log, and then taken from a derived file.
#[test]
fn the_ends_of_kept_branches_are_remembered() {
    let folder = Scratch::new();
    for is_files in [false, true] {
        let path = folder.path().join(if is_files { "logs" } else { "t.db" });
        let store: Box<dyn Store> = match is_files {
            true => Box::new(FilesStore::open(&path).unwrap()),
            false => Box::new(SqliteStore::open(&path).unwrap()),
        };
        let other = memory();
        let (ours, mut theirs) = diverged(&*store, &other);
        sync(&*store, &other);
        let ends = || {
            let page = now(Branches::of(&*store).page(None, 100)).unwrap();
            let mut ends: Vec<_> = page.branches.iter().map(|it| (it.root, it.head)).collect();
            ends.sort_by_key(|(_, head)| head.hash.to_string());
            ends
        };
        let right = ends();
        let remembered = store.derived_file("forks").unwrap();
        let text = std::fs::read_to_string(&remembered).unwrap();
        let wrong = text.replace(
            &theirs.head().hash.to_string(),
            &ours.log[0].hash.to_string(),
        );
        assert_ne!(text, wrong, "the file has the end of their branch");
        std::fs::write(&remembered, wrong).unwrap();
        assert_ne!(ends(), right, "the file is used");
        // Another end of the log: what is remembered does not count.
        theirs.say(&other, "more");
        std::fs::write(&remembered, &text).unwrap();
        sync(&*store, &other);
        assert!(ends().contains(&(ours.id, theirs.head())));
        for unusable in ["", "{}", &text.replace("\"version\":1", "\"version\":99")] {
            std::fs::write(&remembered, unusable).unwrap();
            assert!(ends().contains(&(ours.id, theirs.head())), "{unusable}");
        }
        // A fork that is gone is forgotten.
        let fork = metas(&*store).into_iter().find(|meta| meta.id != ours.id);
        now(store.purge(fork.unwrap().id)).unwrap();
        assert_eq!(ends(), [(ours.id, ours.head())]);
        sync(&*store, &other);
        assert!(ends().contains(&(ours.id, theirs.head())));
        assert_eq!(all_written(&*store), all_written(&other));
    }
}
