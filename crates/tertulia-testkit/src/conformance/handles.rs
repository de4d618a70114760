//! Several handles on one store, like several processes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tertulia_core::entry::Head;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::Log;
use tertulia_store::{Progress, Store, StoreError};

use super::assert_not_found;
use super::unsent::{kept, words};
use crate::ask::{
    assert_log, assert_sound, draft, everything, found, ids, lines, list, now, places, query, row,
    view,
};
use crate::clock::still_clock;
use crate::logs::{Writer, ai, human, renamed, trashed};
use crate::place::Place;

/// Appends through one handle are visible at once through the other.
pub fn sees_appends_at_once(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    for turn in 0..5 {
        assert_log(&*there, &writer);
        writer.say(&*here, &format!("here {turn}"));
        assert_log(&*there, &writer);
        writer.append(&*there, vec![renamed(&format!("there {turn}"))]);
        assert_log(&*here, &writer);
    }
}

/// The second of two conflicting appends fails, through either handle.
pub fn conflicts_over_two(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    let mut late = writer.clone();
    // The other handle has read the session before: its cache must not count.
    assert_log(&*there, &late);
    writer.say(&*here, "first");
    let answer = late.try_append(&*there, vec![human("second")]);
    assert!(
        matches!(answer, Err(StoreError::Conflict { id, head }) if id == writer.id && head == writer.head()),
        "{answer:?}"
    );
    assert_log(&*there, &writer);
    let mut taken = Writer::named(writer.id, &still_clock(2));
    let answer = taken.open(&*there, |_| {}, vec![]);
    assert!(matches!(answer, Err(StoreError::Exists(_))), "{answer:?}");
}

/// A search through one handle finds what the other wrote, even if its index is behind.
pub fn searches_what_the_other_wrote(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    for turn in 1..=4 {
        writer.say(&*here, "needle");
        assert_eq!(found(&*there, "needle").len(), turn * 2 - 1);
        writer.say(&*there, "needle");
        assert_eq!(found(&*here, "needle").len(), turn * 2);
    }
    writer.append(&*there, vec![trashed()]);
    assert_eq!(found(&*here, "needle"), []);
}

/// A purge through one handle is visible through the other.
pub fn sees_purges(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    writer.say(&*here, "needle");
    assert_eq!(found(&*there, "needle").len(), 1);
    assert_log(&*there, &writer);
    now(here.purge(writer.id)).unwrap();
    assert_not_found(writer.try_append(&*there, vec![human("x")]), writer.id);
    assert_eq!(found(&*there, "needle"), []);
    assert_eq!(list(&*there, &everything()).rows, []);
    let mut again = Writer::named(writer.id, &still_clock(2));
    again
        .open(&*there, |_| {}, vec![human("other needle")])
        .unwrap();
    assert_log(&*here, &again);
    assert_eq!(found(&*here, "needle"), [(again.id, 2)]);
}

/// A search through one handle finds the new end of a log that the other replaced, and not the old one.
pub fn searches_an_end_that_the_other_replaced(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut base = Writer::begin(&*here, &still_clock(1));
    base.say(&*here, "hello");
    let mut fork = base.fork(&*here, 2);
    let mut other = base.clone();
    for writer in [&mut fork, &mut other] {
        writer.append(&*here, vec![renamed("tomatoes")]);
    }
    assert_eq!(found(&*there, "tomatoes").len(), 2);
    for (writer, keep) in [(&mut fork, 3), (&mut other, 2)] {
        let end = vec![renamed("potatoes"), human("leek")];
        writer.replace_end(&*here, keep, end).unwrap();
        assert_log(&*there, writer);
    }
    assert_eq!(found(&*there, "tomatoes"), []);
    for word in ["potatoes", "leek"] {
        assert_eq!(found(&*there, word).len(), 2, "{word}");
    }
    fork.say(&*there, "carrot");
    assert_eq!(found(&*here, "carrot"), [(fork.id, 6)]);
}

/// A session that one handle compresses is read and continued through the other, which had it open.
pub fn compressed_by_the_other(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    for turn in 0..3 {
        writer.say(&*there, &format!("needle {turn} {}", "words ".repeat(200)));
        let done = now(here.compress(&[writer.id], &Progress::unseen())).unwrap();
        assert_eq!(done.sessions, 1, "{done:?}");
        for store in [&here, &there] {
            assert_log(&**store, &writer);
            assert_eq!(found(&**store, "needle").len(), turn + 1);
        }
        assert_log(&*there, &writer.fork(&*there, 2));
    }
    writer.say(&*here, "goes on");
    assert_log(&*there, &writer);
}

/// One handle compresses sessions again and again while others write to them and read them.
pub fn compressed_while_others_write(place: &dyn Place) {
    let store = place.open();
    let writers: Vec<Writer> = (1..=3)
        .map(|seed| Writer::begin(&*store, &still_clock(seed)))
        .collect();
    let ids: Vec<SessionId> = writers.iter().map(|writer| writer.id).collect();
    let ended = AtomicBool::new(false);
    let writers = thread::scope(|scope| {
        scope.spawn(|| {
            let store = place.open();
            while !ended.load(Ordering::Relaxed) {
                now(store.compress(&ids, &Progress::unseen())).unwrap();
            }
        });
        scope.spawn(|| {
            let store = place.open();
            while !ended.load(Ordering::Relaxed) {
                for id in &ids {
                    let read = lines(&*store, *id);
                    let log = Log::read(*id, Some(Head::START), Seq::START, &read);
                    assert_eq!(log.damage, []);
                    assert!(!log.entries.is_empty());
                }
            }
        });
        let started: Vec<_> = writers
            .into_iter()
            .map(|mut writer| {
                scope.spawn(move || {
                    let store = place.open();
                    for turn in 0..25 {
                        writer.say(&*store, &format!("turn {turn} {}", "words ".repeat(100)));
                    }
                    writer
                })
            })
            .collect();
        let written: Vec<_> = started.into_iter().map(|one| one.join()).collect();
        ended.store(true, Ordering::Relaxed);
        written
    });
    for writer in writers {
        assert_log(&*store, &writer.unwrap());
    }
}

/// A fork may continue an entry that another process has just written.
pub fn forks_what_the_other_wrote(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    assert_log(&*there, &writer);
    writer.say(&*here, "one");
    let mut fork = writer.fork(&*there, 2);
    fork.say(&*here, "two");
    writer.say(&*there, "three");
    for store in [&here, &there] {
        assert_log(&**store, &writer);
        assert_log(&**store, &fork);
    }
}

/// A draft survives the end of the process.
pub fn drafts_survive_reopening(place: &dyn Place) {
    let store = place.open();
    let mut writer = Writer::begin(&*store, &still_clock(1));
    writer.say(&*store, "a question");
    let kept = writer.draft("half an ans");
    now(store.keep_draft(writer.id, &kept)).unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(draft(&*store, writer.id), Some(kept));
    writer.append(
        &*store,
        vec![ai("claude", "half an answer and the other half")],
    );
    drop(store);
    assert_eq!(draft(&*place.open(), writer.id), None);
}

/// A draft is visible through other handles, and is removed when any of them appends.
pub fn drafts_of_the_other(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    let kept = writer.draft("half");
    now(here.keep_draft(writer.id, &kept)).unwrap();
    assert_eq!(draft(&*there, writer.id), Some(kept));
    writer.say(&*there, "never mind");
    assert_eq!(draft(&*here, writer.id), None);
}

/// They survive the end of the process, and other handles see them.
pub fn unsent_words_of_the_other(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let writer = Writer::begin(&*here, &still_clock(1));
    now(here.keep_unsent(writer.id, &words(&["waits"]))).unwrap();
    assert_eq!(kept(&*there, writer.id), Some(words(&["waits"])));
    drop((here, there));
    assert_eq!(kept(&*place.open(), writer.id), Some(words(&["waits"])));
}

/// A session that was taken over has only the words of its new holder.
pub fn unsent_words_taken_over(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let writer = Writer::begin(&*here, &still_clock(1));
    let _late = now(here.claim(writer.id)).unwrap().unwrap();
    let _lock = now(there.take_over(writer.id)).unwrap();
    now(there.keep_unsent(writer.id, &words(&["new"]))).unwrap();
    assert!(now(here.keep_unsent(writer.id, &words(&["late"]))).is_err());
    assert_eq!(kept(&*there, writer.id), Some(words(&["new"])));
}

/// A session lock holds across all handles, and all of them show the session as open.
pub fn claims_over_two(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let writer = Writer::begin(&*here, &still_clock(1));
    let claim = now(here.claim(writer.id)).unwrap();
    assert!(claim.is_some());
    assert!(now(there.claim(writer.id)).unwrap().is_none());
    for store in [&here, &there] {
        assert!(row(&**store, writer.id).open);
        assert!(list(&**store, &everything()).rows[0].open);
    }
    drop(claim);
    assert!(!row(&*there, writer.id).open);
    let claim = now(there.claim(writer.id)).unwrap();
    assert!(claim.is_some());
    assert!(now(here.claim(writer.id)).unwrap().is_none());
    drop(claim);
    assert!(!list(&*here, &everything()).rows[0].open);
}

/// A session is taken over: its holder is named, and its late appends are refused.
pub fn taken_over(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut late = Writer::begin(&*here, &still_clock(1));
    assert_eq!(now(there.holder(late.id)).unwrap(), None);
    let first = now(here.claim(late.id)).unwrap().unwrap();
    let holder = now(there.holder(late.id)).unwrap().unwrap();
    assert_eq!(holder.pid, std::process::id());
    let mut writer = late.clone();
    let second = now(there.take_over(late.id)).unwrap();
    assert!(now(here.claim(late.id)).unwrap().is_none());
    let refused = late.try_append(&*here, vec![human("too late")]);
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    writer.say(&*there, "goes on");
    assert_log(&*here, &writer);
    // Its unfinished answer would be taken for the other's.
    assert!(now(here.keep_draft(late.id, &late.draft("half"))).is_err());
    assert_eq!(draft(&*there, late.id), None);
    // The end of the earlier holder ends nothing of the other.
    drop(first);
    assert!(row(&*here, late.id).open);
    drop(second);
    assert!(!row(&*here, late.id).open);
    assert!(now(here.claim(late.id)).unwrap().is_some());
    assert_sound(&*here);
}

/// Listing must not block locks: a free session can always be locked meanwhile. Many attempts are
/// needed to hit the moment in which a list would interfere.
pub fn claims_while_others_list(place: &dyn Place) {
    const CLAIMS: usize = 5000;
    // A store on a server takes milliseconds for each.
    let until = Instant::now() + Duration::from_secs(5);
    let here = place.open();
    let others = [place.open(), place.open(), place.open()];
    let writer = Writer::begin(&*here, &still_clock(1));
    let done = AtomicBool::new(false);
    let refused = thread::scope(|scope| {
        for other in &others {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    row(&**other, writer.id);
                }
            });
        }
        // Must not panic, or the other threads would never end.
        let claim = |_: &usize| !matches!(now(here.claim(writer.id)), Ok(Some(_)));
        let claims = (0..CLAIMS).take_while(|_| Instant::now() < until);
        let refused = claims.filter(claim).count();
        done.store(true, Ordering::Relaxed);
        refused
    });
    assert_eq!(
        refused, 0,
        "of {CLAIMS} claims a mere look kept so many out"
    );
}

/// A reopened store has the same contents.
pub fn everything_survives_reopening(place: &dyn Place) {
    let store = place.open();
    let clock = still_clock(1);
    let mut writer = Writer::begin(&*store, &clock);
    writer.append(&*store, vec![human("needle"), ai("claude", "yes")]);
    let mut fork = writer.fork(&*store, 2);
    fork.append(&*store, vec![renamed("Fork"), human("needle")]);
    let mut gone = Writer::begin(&*store, &clock);
    gone.append(&*store, vec![trashed()]);
    let purged = Writer::begin(&*store, &clock);
    now(store.purge(purged.id)).unwrap();
    let before = (view(&*store), found(&*store, "needle"));
    let info = now(store.info()).unwrap();
    drop(store);
    for _ in 0..2 {
        let store = place.open();
        assert_eq!((view(&*store), found(&*store, "needle")), before);
        let again = now(store.info()).unwrap();
        assert_eq!(
            (again.sessions, again.trashed, again.entries),
            (info.sessions, info.trashed, info.entries)
        );
        assert_sound(&*store);
    }
}

/// Runs a job in two threads with a handle each. The store exists before: concurrent creation is
/// another case.
fn both(place: &dyn Place, job: impl Fn(&dyn Store, u64) + Sync) {
    let job = &job;
    let stores = [(1, place.open()), (2, place.open())];
    thread::scope(|scope| {
        for (seed, store) in stores {
            scope.spawn(move || job(&*store, seed));
        }
    });
}

/// Concurrent creation of a store by several handles gives one store.
pub fn several_make_the_store(place: &dyn Place) {
    let ready = Barrier::new(4);
    let ready = &ready;
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                ready.wait();
                let store = place.open();
                let mut writer = Writer::begin(&*store, &still_clock(seed));
                writer.say(&*store, "mine");
                assert_log(&*store, &writer);
            });
        }
    });
    assert_eq!(list(&*place.open(), &everything()).rows.len(), 4);
}

/// Two concurrent writers to one session: each gets a conflict if the other was first, no entry is
/// lost, and appends are not interleaved.
pub fn two_write_to_one_session(place: &dyn Place) {
    let first = Writer::begin(&*place.open(), &still_clock(9));
    both(place, |store, seed| {
        let clock = still_clock(seed);
        let mut writer = Writer::named(first.id, &clock);
        writer.log.clone_from(&first.log);
        for turn in 0..20 {
            loop {
                let words = format!("{seed}.{turn}");
                match writer.try_append(store, vec![human(&words), ai("claude", &words)]) {
                    Ok(_) => break,
                    Err(StoreError::Conflict { .. }) => {
                        let read =
                            Log::read(first.id, None, Default::default(), &lines(store, first.id));
                        assert_eq!(read.damage, []);
                        writer.log = read.entries;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    });
    let store = place.open();
    let mut all = Writer::named(first.id, &still_clock(3));
    all.log = Log::read(
        first.id,
        None,
        Default::default(),
        &lines(&*store, first.id),
    )
    .entries;
    assert_eq!(all.log.len(), 1 + 2 * 2 * 20);
    assert_log(&*store, &all);
    let said: Vec<String> = all.log[1..]
        .iter()
        .map(|entry| entry.message().unwrap().content.clone())
        .collect();
    assert!(said.chunks(2).all(|pair| pair[0] == pair[1]), "{said:?}");
    for seed in [1, 2] {
        let own = said
            .iter()
            .step_by(2)
            .filter(|words| words.starts_with(&format!("{seed}.")));
        let expected: Vec<_> = (0..20).map(|turn| format!("{seed}.{turn}")).collect();
        assert!(own.eq(&expected), "the turns of {seed} in their order");
    }
}

/// Two writers to different sessions do not conflict.
pub fn two_write_to_two_sessions(place: &dyn Place) {
    both(place, |store, seed| {
        let clock = still_clock(seed);
        for _ in 0..5 {
            let mut writer = Writer::begin(store, &clock);
            for turn in 0..5 {
                writer.say(store, &format!("needle {turn}"));
                now(store.keep_draft(writer.id, &writer.draft("x"))).unwrap();
                assert!(
                    found(store, "needle")
                        .iter()
                        .any(|(id, _)| *id == writer.id)
                );
            }
            let fork = writer.fork(store, 3);
            assert_log(store, &writer);
            assert_log(store, &fork);
            now(store.purge(writer.id)).unwrap();
            assert_log(store, &fork);
        }
    });
    let left: Vec<SessionId> = ids(&list(&*place.open(), &everything()).rows);
    assert_eq!(left.len(), 10);
}

/// A search finds everything while another handle rebuilds the index, however far that got.
pub fn searches_while_the_other_rebuilds(place: &dyn Place) {
    let (here, there) = (place.open(), place.open());
    let mut writer = Writer::begin(&*here, &still_clock(1));
    // How often a search says that the index has everything.
    let ends = Arc::new(AtomicUsize::new(0));
    let counted = ends.clone();
    let counting = Progress::new(move |what, done, total| {
        counted.fetch_add(
            usize::from(what == "indexing" && done == total),
            Ordering::Relaxed,
        );
    });
    writer.say(&*here, "needle");
    now(here.search(&query("needle"), &counting)).unwrap();
    writer.say(&*here, "needle");
    let (searched, is_searched) = mpsc::channel::<()>();
    let (emptied, is_emptied) = mpsc::channel::<()>();
    let is_searched = Mutex::new(is_searched);
    // It stops after it emptied the index, until the search is over.
    let rebuilding = Progress::new(move |what, done, _| {
        if what == "indexing" && done == 0 {
            let _ = emptied.send(());
            let _ = is_searched.lock().unwrap().recv();
        }
    });
    let (begin, is_begun) = mpsc::channel::<()>();
    let waiting = Mutex::new(Some((begin, is_emptied)));
    let searching = Progress::new(move |what, done, total| {
        let is_end = what == "indexing" && done == total;
        if is_end
            && ends.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some((begin, is_emptied)) = waiting.lock().unwrap().take()
        {
            begin.send(()).unwrap();
            is_emptied.recv().unwrap();
        }
    });
    thread::scope(|scope| {
        scope.spawn(move || {
            is_begun.recv().expect("the search updates the index");
            now(there.rebuild(&rebuilding)).unwrap();
        });
        let hits = now(here.search(&query("needle"), &searching)).unwrap();
        drop((searching, searched));
        assert_eq!(places(&hits), [(writer.id, 2), (writer.id, 3)]);
    });
}

/// A rebuild does not disturb a concurrent writer.
pub fn rebuild_beside_a_writer(place: &dyn Place) {
    both(place, |store, seed| {
        let mut writer = Writer::begin(store, &still_clock(seed));
        for turn in 0..10 {
            writer.say(store, "needle");
            if seed == 1 && turn % 3 == 0 {
                now(store.rebuild(&tertulia_store::Progress::unseen())).unwrap();
            }
            let own = found(store, "needle")
                .into_iter()
                .filter(|(id, _)| *id == writer.id);
            assert_eq!(own.count(), turn + 1);
        }
        assert_log(store, &writer);
    });
}
