//! Changes of two machines are merged by replacing the end of a log: killed at any system call, there
//! is the old end or the new one.

use std::process::Command;

use tertulia_testkit::soak::sampled;

use super::world::{Backend, Place, Ran, copy, finish, world};

/// Calls that change files.
const CALLS: &str =
    "write,pwrite64,pwritev,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate";

/// Runs a command and kills it at one of its calls.
fn killed_at(place: &Place, command: &Command, call: usize) -> Ran {
    let mut strace = place.bare("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={CALLS}"))
        .arg("-e")
        .arg(format!("inject={CALLS}:signal=SIGKILL:when={call}"))
        .arg(command.get_program())
        .args(command.get_args());
    finish(strace.spawn().unwrap(), "strace")
}

fn old_or_new(backend: Backend) {
    let (root, place) = world(backend);
    let session = place.turn(&["echo tomatoes"]).remove(0).session;
    let other = format!("sqlite:{}", root.path().join("other.db").display());
    place.run(&["push", &other]).ok("push");
    place.run(&["rename", &session, "ours"]).ok("rename");
    let there = Place {
        store: Some(other.clone()),
        ..place.clone()
    };
    there.run(&["tag", &session, "+theirs"]).ok("tag");
    there
        .run(&["chat", "-p", "--resume", &session, "echo potatoes"])
        .ok("a turn there");
    let raw = |place: &Place, when: &str| place.run(&["show", &session, "--raw"]).ok(when);
    let old = raw(&place, "before");
    let at = |name: &str| {
        let home = root.path().join(name);
        copy(&place.home, &home);
        place.with_home(&home)
    };
    let whole = at("whole");
    whole.run(&["pull", &other]).ok("pull");
    let new = raw(&whole, "after");
    assert_ne!(old, new);
    let (mut before, mut after) = (0, 0);
    for call in sampled(1..2000, 7) {
        let left = at(&format!("call-{call}"));
        let ran = killed_at(&left, &left.command(&["pull", &other]), call);
        if ran.code == Some(0) {
            break;
        }
        let when = format!("{backend:?}, killed at call {call}");
        left.assert_sound(&when);
        let found = raw(&left, &when);
        assert!(found == old || found == new, "{when}: {found}");
        match found == old {
            true => before += 1,
            false => after += 1,
        }
        left.run(&["pull", &other]).ok(&when);
        assert_eq!(raw(&left, &when), new, "{when}");
        assert_eq!(left.sessions().len(), 1, "{when}");
        left.run(&["search", "--all", "potatoes"]).ok(&when);
    }
    eprintln!("{backend:?}: {before} kills left the old end, {after} the new one");
    assert!(before > 0 && after > 0, "{before} {after}");
}

#[test]
fn sqlite_has_the_old_end_or_the_new_one() {
    old_or_new(Backend::Sqlite);
}

#[test]
fn files_have_the_old_end_or_the_new_one() {
    old_or_new(Backend::Files);
}
