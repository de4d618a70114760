//! Compressed sessions: everything stays as it is, and takes less room.

use tertulia_core::id::SessionId;
use tertulia_core::query::Lookup;
use tertulia_core::sizes::LogSize;
use tertulia_store::{Compressed, Progress, Store};

use crate::ask::{assert_log, assert_sound, draft, everything, find, found, lines, list, now, row};
use crate::clock::still_clock;
use crate::logs::{Writer, ai, human};

/// Number of turns of a session that takes several blocks.
const TURNS: u64 = 400;

/// Creates a long session.
fn long(store: &dyn Store, seed: u64) -> Writer {
    let mut writer = Writer::begin(store, &still_clock(seed));
    for turn in 0..TURNS {
        let words = format!("needle{seed}x{turn} {}", "some words again ".repeat(20));
        writer.append(store, vec![human(&words), ai("claude", &words)]);
    }
    writer
}

fn compress(store: &dyn Store, ids: &[SessionId]) -> Compressed {
    now(store.compress(ids, &Progress::unseen())).unwrap()
}

fn size(store: &dyn Store, id: SessionId) -> LogSize {
    let sizes = now(store.sizes()).unwrap();
    let mut sizes = sizes.into_iter();
    let is_it = |log: &LogSize| log.session.as_ref().is_some_and(|it| it.id == id);
    sizes.find(is_it).unwrap()
}

/// A compressed session is read, found, listed and searched as before.
pub fn stay_as_they_are(store: &dyn Store) {
    let writer = long(store, 1);
    let mut other = long(store, 2);
    other.fork(store, 100);
    now(store.keep_draft(writer.id, &writer.draft("half"))).unwrap();
    let (listed, drafted) = (list(store, &everything()), draft(store, writer.id));
    assert_eq!(found(store, "needle1x7").len(), 2);
    let done = compress(store, &[writer.id]);
    assert_eq!(
        (done.sessions, done.unchanged, done.skipped.len()),
        (1, 0, 0)
    );
    assert!(done.after * 10 < done.before, "{done:?}");
    assert_eq!(done.before, writer.meta().bytes);
    assert!(size(store, writer.id).is_compressed());
    assert_eq!(size(store, writer.id).stored, done.after);
    assert!(!size(store, other.id).is_compressed());
    assert_log(store, &writer);
    assert_eq!(list(store, &everything()), listed);
    assert_eq!(draft(store, writer.id), drafted);
    assert_eq!(row(store, writer.id).meta, writer.meta());
    assert_eq!(find(store, &Lookup::Id(writer.id)), [writer.id]);
    for (after, limit) in [(0, 1), (0, 3), (200, 7), (TURNS * 2, 5), (TURNS * 2 + 1, 1)] {
        let expected: Vec<_> = lines(store, writer.id)
            .into_iter()
            .filter(|line| line.seq.0 > after)
            .take(limit)
            .collect();
        let seq = tertulia_core::id::Seq(after);
        assert_eq!(now(store.read(writer.id, seq, limit)).unwrap(), expected);
    }
    assert_sound(store);
    // Searched by an index that was there before, and by a new one.
    assert_eq!(found(store, "needle1x7").len(), 2);
    now(store.rebuild(&Progress::unseen())).unwrap();
    assert_eq!(found(store, "needle1x399").len(), 2);
    assert_eq!(list(store, &everything()), listed);
    assert!(size(store, writer.id).is_compressed());
    // A second time changes nothing.
    let again = compress(store, &[writer.id]);
    assert_eq!((again.sessions, again.unchanged), (0, 1));
    other.say(store, "goes on");
    assert_log(store, &other);
}

/// The next append makes a compressed session plain.
pub fn are_plain_after_an_append(store: &dyn Store) {
    let mut writer = long(store, 1);
    compress(store, &[writer.id]);
    writer.say(store, "goes on");
    assert!(!size(store, writer.id).is_compressed());
    assert_log(store, &writer);
    assert_eq!(row(store, writer.id).meta, writer.meta());
    assert_eq!(found(store, "goes").len(), 1);
    assert_eq!(found(store, "needle1x399").len(), 2);
    // A stale writer gets a conflict, compressed or not.
    let mut stale = writer.clone();
    writer.say(store, "further");
    compress(store, &[writer.id]);
    assert!(stale.try_append(store, vec![human("late")]).is_err());
    assert_log(store, &writer);
    writer.say(store, "again");
    assert_log(store, &writer);
}

/// Forks begin anywhere in a compressed session, and are compressed without what they share.
pub fn have_forks(store: &dyn Store) {
    let writer = long(store, 1);
    let early = writer.fork(store, 33);
    compress(store, &[writer.id]);
    let mut late = writer.fork(store, 640);
    let mut of_fork = late.fork(store, 641);
    for turn in 0..TURNS {
        of_fork.say(store, &format!("turn {turn} {}", "and words ".repeat(20)));
    }
    let done = compress(store, &[late.id, of_fork.id]);
    assert_eq!(done.skipped, []);
    let all = [&writer, &early, &late, &of_fork];
    all.into_iter().for_each(|writer| assert_log(store, writer));
    assert!(size(store, writer.id).is_compressed());
    assert!(size(store, of_fork.id).is_compressed());
    late.say(store, "goes on");
    assert_log(store, &late);
    assert_log(store, &writer.fork(store, 2));
    assert_log(store, &of_fork.fork(store, 900));
    assert!(size(store, writer.id).is_compressed());
}

/// A purge of a compressed session leaves what its forks share.
pub fn are_purged(store: &dyn Store) {
    let writer = long(store, 1);
    let fork = writer.fork(store, 300);
    compress(store, &[writer.id, fork.id]);
    now(store.purge(writer.id)).unwrap();
    assert_log(store, &fork);
    assert_eq!(found(store, "needle1x399"), []);
    assert_eq!(found(store, "needle1x100").len(), 2);
    let mut again = Writer::named(writer.id, &still_clock(9));
    again.open(store, |_| {}, vec![human("new")]).unwrap();
    assert_log(store, &again);
    compress(store, &[fork.id]);
    now(store.purge(fork.id)).unwrap();
    assert_eq!(found(store, "needle1x100"), []);
    assert_eq!(now(store.info()).unwrap().entries, 2);
}

/// Open sessions and unknown ones are skipped, and others go on.
pub fn are_not_open(store: &dyn Store) {
    let (open, closed) = (long(store, 1), long(store, 2));
    let small = Writer::begin(store, &still_clock(3));
    let lock = now(store.claim(open.id)).unwrap().unwrap();
    let unknown = still_clock(4).session_id();
    let done = compress(store, &[open.id, unknown, small.id, closed.id]);
    assert_eq!(done.sessions + done.unchanged, 2);
    let skipped: Vec<SessionId> = done.skipped.iter().map(|(id, _)| *id).collect();
    assert_eq!(skipped, [open.id, unknown]);
    assert!(done.skipped[0].1.contains("open"), "{done:?}");
    assert!(!size(store, open.id).is_compressed());
    drop(lock);
    assert_eq!(compress(store, &[open.id]).sessions, 1);
    assert_log(store, &open);
}
