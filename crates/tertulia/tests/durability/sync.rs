//! Every acknowledgement follows the sync of its data, and no append needs two syncs.

use std::process::Stdio;

use super::disk::{Disk, Synced};
use super::trace::{Step, traced};
use super::world::{Backend, Place, world};
use super::writers;

/// Returns true for files that hold messages. Derived files may be lost.
fn is_log(name: &str) -> bool {
    name == "tertulia.db" || name == "tertulia.db-wal" || name.contains(".jsonl")
}

/// Returns true for names that may be lost: locks, session locks, shared memory, derived files.
fn is_expendable(name: &str) -> bool {
    let is_claim = name.len() == 36 && name.chars().filter(|c| *c == '-').count() == 4;
    let is_derived = name.starts_with("catalogue.db") || name.contains("-search");
    // Who holds the writers' queue; only waiting processes read it.
    let is_holder = name == "writer";
    is_claim
        || is_derived
        || is_holder
        || name.ends_with("-shm")
        || name.ends_with("-lock")
        || name.ends_with("-turn")
}

/// Replays a trace and checks the disk at each acknowledgement. Returns their number, and the syncs
/// up to the last of them.
fn watch(
    place: &Place,
    mut disk: Disk,
    steps: &[Step],
    acknowledges: &str,
) -> (usize, Vec<Synced>) {
    let (mut acks, mut syncs) = (0, Vec::new());
    for step in steps {
        disk.step(step);
        let Step::Says(1, said) = step else { continue };
        let said = String::from_utf8_lossy(said);
        if !said.contains(acknowledges) {
            continue;
        }
        acks += said.matches(acknowledges).count();
        let unsynced = disk.unsynced_files(is_log);
        assert!(
            unsynced.is_empty(),
            "{:?}: acknowledged before {unsynced:?} was synced: {said}",
            place.backend
        );
        let mut names = disk.unsynced_names();
        names.retain(|name| !is_expendable(name));
        assert!(
            names.is_empty(),
            "{:?}: acknowledged before the folders of {names:?} were synced: {said}",
            place.backend
        );
        syncs.clone_from(&disk.syncs);
    }
    assert!(acks > 0, "nothing was acknowledged");
    (acks, syncs)
}

/// Returns the syncs that made entries durable. The header of a new write-ahead log is synced
/// separately, once.
fn of_entries(syncs: &[Synced]) -> Vec<&Synced> {
    let is_entry = |sync: &&Synced| {
        let beyond_head = |(_, end): (usize, usize)| !sync.name.ends_with("-wal") || end > 32;
        is_log(&sync.name) && sync.covered.is_some_and(beyond_head)
    };
    syncs.iter().filter(is_entry).collect()
}

const TURN: [&str; 4] = ["chat", "-p", "--output-format", "stream-json"];

fn synced_before_acknowledged(backend: Backend) {
    let (_root, place) = world(backend);
    // The first turn creates the store.
    for more in [
        &["hello"][..],
        &["-c", "echo twice"],
        &["-c", "--fork", "echo fork"],
    ] {
        let args = [&TURN[..], more].concat();
        let disk = Disk::of(&place.home, &place.work);
        let (ran, steps) = traced(&place, &place.command(&args));
        ran.ok("a traced turn");
        let (acks, syncs) = watch(&place, disk, &steps, "\"type\":\"message\"");
        assert_eq!(acks, 2, "{more:?}");
        if more == ["-c", "echo twice"] {
            let found = of_entries(&syncs);
            eprintln!("{backend:?}: a turn of 2 appends: {found:?}");
            assert_eq!(found.len(), 2, "two appends, one sync each: {syncs:#?}");
            let others = syncs.len() - found.len();
            eprintln!("{backend:?}: besides, by the last acknowledgement: {others}");
        }
    }
}

#[test]
fn sqlite_syncs_before_it_acknowledges() {
    synced_before_acknowledged(Backend::Sqlite);
}

#[test]
fn files_sync_before_they_acknowledge() {
    synced_before_acknowledged(Backend::Files);
}

/// One connection, many appends: one sync each, and no other sync in between.
fn one_sync_per_append(backend: Backend, test: &str) {
    if writers::is_writer() {
        return;
    }
    const APPENDS: u32 = 25;
    let (_root, place) = world(backend);
    place.turn(&["hello"]);
    let disk = Disk::of(&place.home, &place.work);
    let mut command = writers::writer(&place, test, Some(APPENDS));
    command.stdin(Stdio::null());
    let (ran, steps) = traced(&place, &command);
    ran.ok("a traced writer");
    let (acks, syncs) = watch(&place, disk, &steps, "\"durable\":");
    assert_eq!(acks, APPENDS as usize);
    let found = of_entries(&syncs);
    // One more for the session's first entry.
    let made = 1 + APPENDS as usize;
    eprintln!(
        "{backend:?}: {} syncs of the log for {made} appends, {} of anything else",
        found.len(),
        syncs.len() - found.len()
    );
    assert_eq!(found.len(), made, "one sync per append: {syncs:#?}");
    let last = &syncs[syncs.len() - APPENDS as usize..];
    assert!(
        last.iter().all(|sync| is_log(&sync.name)),
        "an append syncs nothing but the log: {last:#?}"
    );
}

#[test]
fn sqlite_syncs_once_per_append() {
    one_sync_per_append(Backend::Sqlite, "sync::sqlite_syncs_once_per_append");
}

#[test]
fn files_sync_once_per_append() {
    one_sync_per_append(Backend::Files, "sync::files_sync_once_per_append");
}
