//! Titles, tags and trash that two machines changed are merged, without a fork.

use tertulia_core::entry::Body;
use tertulia_core::session::SessionMeta;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::sync::{Branches, MergedEnd, Partner};
use tertulia_store::{Doing, Progress, Store};
use tertulia_testkit::ask::{found, now};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human, renamed, restored, tagged, trashed, undone};
use tertulia_testkit::postgres::Schema;
use tertulia_testkit::scratch::Scratch;

use super::{assert_sound, ends, log, metas, move_all, push, sync};

fn memory() -> SqliteStore {
    SqliteStore::in_memory().unwrap()
}

/// A session in two stores, with writers whose entries have different ids.
fn shared(one: &dyn Store, other: &dyn Store) -> (Writer, Writer) {
    let mut ours = Writer::begin(one, &still_clock(1));
    ours.append(one, vec![human("hello"), ai("demo", "yes")]);
    push(one, other);
    let mut theirs = Writer::named(ours.id, &still_clock(2));
    theirs.log = ours.log.clone();
    (ours, theirs)
}

/// Returns the only session of a store.
fn only(store: &dyn Store) -> SessionMeta {
    let mut metas = metas(store);
    assert_eq!(metas.len(), 1, "{metas:#?}");
    metas.remove(0)
}

fn in_stores(test: impl Fn(&dyn Store, &dyn Store)) {
    let (one, other) = (Scratch::new(), Scratch::new());
    let files = FilesStore::open(one.path()).unwrap();
    test(&memory(), &files);
    let files = FilesStore::open(other.path()).unwrap();
    test(&files, &memory());
    let (one, other) = (Schema::new(), Schema::new());
    test(&memory(), &one.open_store().unwrap());
    test(&other.open_store().unwrap(), &memory());
}

#[test]
fn changes_of_both_sides_are_merged() {
    let changes: [(Vec<Body>, Vec<Body>); 5] = [
        (vec![renamed("ours")], vec![tagged(&["x"], &[])]),
        (vec![renamed("ours")], vec![renamed("theirs")]),
        (vec![tagged(&["y"], &[])], vec![trashed()]),
        (vec![trashed()], vec![trashed(), restored()]),
        (vec![renamed("ours"), undone(4)], vec![tagged(&["x"], &[])]),
    ];
    for (ours, theirs) in changes {
        in_stores(|one, other| {
            let (mut first, mut second) = shared(one, other);
            for body in &ours {
                first.append(one, vec![body.clone()]);
            }
            for body in &theirs {
                second.append(other, vec![body.clone()]);
            }
            let (from, to) = (Branches::of(other), Branches::of(one));
            let planned = move_all(&from, &to, Doing::Preview).unwrap();
            assert_eq!((planned.extended, planned.entries), (1, theirs.len()));
            let (pulled, pushed) = sync(one, other);
            assert_eq!((pulled.extended, pulled.entries), (1, theirs.len()));
            assert!(pulled.diverged.is_empty() && pushed.diverged.is_empty());
            assert_eq!(log(one, first.id), log(other, first.id));
            assert_eq!(only(one), only(other));
            assert_eq!(log(one, first.id).len(), 3 + ours.len() + theirs.len());
            let (pulled, pushed) = sync(one, other);
            assert!(pulled.is_empty() && pushed.is_empty());
            assert_sound(one);
            assert_sound(other);
        });
    }
}

#[test]
fn a_session_in_the_trash_there_is_in_the_trash_here() {
    in_stores(|one, other| {
        let (mut ours, mut theirs) = shared(one, other);
        ours.append(one, vec![tagged(&["x"], &[])]);
        theirs.append(other, vec![trashed()]);
        sync(one, other);
        for store in [one, other] {
            let meta = only(store);
            assert!(meta.trashed_at.is_some());
            assert_eq!(meta.tags.iter().collect::<Vec<_>>(), ["x"]);
        }
    });
}

#[test]
fn changes_here_follow_words_there() {
    in_stores(|one, other| {
        let (mut ours, mut theirs) = shared(one, other);
        ours.append(one, vec![renamed("tomatoes")]);
        theirs.append(other, vec![tagged(&["x"], &[])]);
        theirs.append(other, vec![human("potatoes"), ai("demo", "yes")]);
        theirs.append(other, vec![tagged(&["y"], &[])]);
        now(one.index(&Progress::unseen())).unwrap();
        now(other.index(&Progress::unseen())).unwrap();
        // The words there take the place of the end here; they are not moved themselves.
        sync(one, other);
        assert_eq!(log(one, ours.id), log(other, ours.id));
        let whole = log(one, ours.id);
        assert_eq!(whole[..6], theirs.log[..6]);
        assert_eq!(whole.len(), 8);
        for store in [one, other] {
            assert_eq!(only(store).title.as_deref(), Some("tomatoes"));
            for word in ["tomatoes", "potatoes"] {
                assert_eq!(found(store, word).len(), 1, "{word}");
            }
            assert_sound(store);
        }
    });
}

#[test]
fn three_machines_end_alike_whoever_syncs_first() {
    for order in [[0, 1, 2, 0, 1], [2, 1, 0, 2, 1], [1, 2, 0, 1, 2]] {
        let hub = memory();
        let stores = [memory(), memory(), memory()];
        let mut writer = Writer::begin(&stores[0], &still_clock(1));
        writer.append(&stores[0], vec![human("hello")]);
        push(&stores[0], &stores[1]);
        push(&stores[0], &stores[2]);
        for (number, store) in stores.iter().enumerate() {
            let mut own = Writer::named(writer.id, &still_clock(10 + number as u64));
            own.log = writer.log.clone();
            own.append(store, vec![renamed(&format!("by {number}"))]);
            own.append(store, vec![tagged(&[&format!("t{number}")], &[])]);
        }
        for at in order {
            sync(&stores[at], &hub);
        }
        let expected = ends(&hub);
        assert_eq!(log(&hub, writer.id).len(), 8);
        for store in &stores {
            assert_eq!(ends(store), expected, "{order:?}");
            assert_eq!(only(store).tags.len(), 3);
        }
    }
}

#[test]
fn what_a_fork_shares_stays() {
    in_stores(|one, other| {
        let (mut ours, mut theirs) = shared(one, other);
        ours.append(one, vec![renamed("ours")]);
        theirs.append(other, vec![renamed("theirs")]);
        let fork = theirs.fork(other, 4);
        sync(one, other);
        sync(one, other);
        assert_eq!(ends(one), ends(other));
        assert_eq!(metas(one).len(), 2);
        assert_eq!(log(one, fork.id), fork.log);
        assert_eq!(log(one, ours.id)[..4], theirs.log[..]);
        assert_eq!(log(one, ours.id).len(), 5);
        // Forks share both ends: now they diverged.
        ours.log = log(one, ours.id);
        theirs.log = ours.log.clone();
        ours.append(one, vec![renamed("ours again")]);
        ours.fork(one, 6);
        theirs.append(other, vec![renamed("theirs again")]);
        theirs.fork(other, 6);
        let (pulled, _) = sync(one, other);
        assert_eq!(pulled.diverged.len(), 1);
        sync(one, other);
        assert_eq!(ends(one), ends(other));
        assert_sound(one);
        assert_sound(other);
    });
}

#[test]
fn changes_of_a_kept_branch_are_merged_in_its_fork() {
    in_stores(|one, other| {
        let (mut ours, mut theirs) = shared(one, other);
        ours.say(one, "here");
        theirs.say(other, "there");
        let fork = sync(one, other).0.diverged[0].fork;
        let mut kept = Writer::named(fork, &still_clock(7));
        kept.log = log(one, fork);
        kept.append(one, vec![renamed("their branch, here")]);
        theirs.append(other, vec![tagged(&["x"], &[])]);
        theirs.append(other, vec![undone(5)]);
        let (pulled, pushed) = sync(one, other);
        assert!(pulled.diverged.is_empty() && pushed.diverged.is_empty());
        assert_eq!(ends(one), ends(other));
        assert_eq!((metas(one).len(), metas(other).len()), (2, 2));
        let fork = metas(one).into_iter().find(|meta| meta.id == fork);
        let fork = fork.unwrap();
        assert_eq!(fork.title.as_deref(), Some("their branch, here"));
        assert!(fork.tags.is_empty(), "{:?}", fork.tags);
        assert_sound(one);
        assert_sound(other);
    });
}

#[test]
fn an_open_session_keeps_its_end() {
    let (scratch, other) = (Scratch::new(), memory());
    let one = FilesStore::open(scratch.path()).unwrap();
    let (mut ours, mut theirs) = shared(&one, &other);
    ours.append(&one, vec![renamed("ours")]);
    theirs.append(&other, vec![tagged(&["x"], &[])]);
    let lock = now(one.claim(ours.id)).unwrap().unwrap();
    let moved = push(&other, &one);
    assert!(moved.is_empty() && moved.skipped[0].is_open());
    assert_eq!(log(&one, ours.id), ours.log);
    drop(lock);
    assert_eq!(push(&other, &one).entries, 1);
}

/// The other end of a link may ask for any new end.
#[test]
fn nothing_is_taken_away_by_a_new_end() {
    let (one, other) = (memory(), memory());
    let (mut ours, mut theirs) = shared(&one, &other);
    ours.append(&one, vec![renamed("ours")]);
    ours.append(&one, vec![human("words")]);
    ours.append(&one, vec![tagged(&["x"], &[])]);
    theirs.append(&other, vec![renamed("theirs")]);
    let partner = Branches::of(&one);
    for common in [2, 3, 4] {
        let end = MergedEnd {
            after: ours.head(),
            common: ours.log[common - 1].head(),
            fixed: ours.log[0].seq,
            entries: theirs.log[common.min(theirs.log.len())..].to_vec(),
        };
        assert!(now(partner.merge_end(ours.id, &end)).is_err(), "{common}");
    }
    assert_eq!(log(&one, ours.id), ours.log);
}
