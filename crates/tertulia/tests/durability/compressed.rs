//! A kill or a power cut at any step of compressing a session, or of going on with a compressed one,
//! loses nothing.

use serde_json::Value;
use tertulia_testkit::soak::soak;

use super::crash::{Promise, cut};
use super::disk::Disk;
use super::trace::{Step, traced};
use super::world::{Ack, Backend, Chance, Place, acks, seed, world};

/// Returns true for a step after which the disk is another.
fn is_change(step: &Step) -> bool {
    match step {
        Step::Done(call) => !["openat", "close", "mmap"].contains(&call.name.as_str()),
        Step::SyncBegins(..) | Step::SyncEnds(_) => true,
        Step::Says(..) => false,
    }
}

/// Ends the program after each of a sample of steps, by a kill and by two power cuts.
fn end_anywhere(place: &Place, args: &[&str], before: &[Ack], one_in: u64) -> String {
    let seed = seed();
    let mut chance = Chance::new(seed);
    let mut disk = Disk::of(&place.home, &place.work);
    let (ran, steps) = traced(place, &place.command(args));
    let (mut said, mut ends) = (String::new(), 0);
    for (at, step) in steps.iter().enumerate() {
        disk.step(step);
        if let Step::Says(1, bytes) = step {
            said.push_str(&String::from_utf8_lossy(bytes));
        }
        let is_last = at + 1 == steps.len();
        if !is_last && (!is_change(step) || chance.below(one_in) > 0) {
            continue;
        }
        let new = match args[0] {
            "chat" => acks(&said),
            _ => Vec::new(),
        };
        let promise = Promise::of_messages([before, &new].concat());
        let when = format!("seed {seed}, {args:?}, step {at} of {}", steps.len());
        let fresh = tempfile::tempdir().unwrap();
        let home = fresh.path().join("home");
        disk.after_kill(&home);
        let left = place.with_home(&home);
        promise.is_kept(&left, &format!("{when}, killed"));
        left.assert_sound(&format!("{when}, killed"));
        cut(place, &disk, &promise, &when, None);
        cut(
            place,
            &disk,
            &promise,
            &format!("{when}, torn"),
            Some(&mut chance),
        );
        ends += 1;
    }
    eprintln!(
        "{:?}: {args:?} ended after {ends} of {} steps",
        place.backend,
        steps.len()
    );
    ran.ok("the command")
}

fn nothing_is_lost(backend: Backend, one_in: u64) {
    let one_in = if soak() { 1 } else { one_in };
    let (_root, place) = world(backend);
    let mut kept = place.turn(&["count to 1500"]);
    let id = kept[0].session.clone();
    kept.extend(place.turn(&["--resume", &id, "--fork", "echo apart"]));
    // The index is derived, and would only add steps.
    let compress = ["store", "compress", "--older-than", "0s", "--json"];
    let done = end_anywhere(&place, &compress, &kept, one_in);
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done["sessions"], 1, "{done}");
    place.assert_has(&kept, "compressed");
    let args = [
        "chat",
        "-p",
        "--output-format",
        "stream-json",
        "--resume",
        &id,
        "echo on",
    ];
    let said = end_anywhere(&place, &args, &kept, one_in);
    kept.extend(acks(&said));
    place.assert_has(&kept, "gone on");
    place.assert_sound("gone on");
}

#[test]
fn a_kill_loses_nothing_of_a_compressed_database() {
    nothing_is_lost(Backend::Sqlite, 12);
}

#[test]
fn a_kill_loses_nothing_of_a_compressed_log() {
    nothing_is_lost(Backend::Files, 3);
}
