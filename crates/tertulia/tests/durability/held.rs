//! Another process that blocks all writers is named, waited for up to a limit, and costs no
//! messages.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::full::{bring_back, rescued, said};
use super::world::{Backend, Place, Ran, finish, world};

/// Returns the file whose lock blocks all writers of a store, or all new sessions in a files store.
fn lock_file(place: &Place) -> PathBuf {
    match place.backend {
        Backend::Sqlite => place.database().with_extension("db-lock"),
        Backend::Files => place.home.join("talks/tertulia-store.json"),
    }
}

/// Creates a store with one session, and holds its lock in this process.
fn held(backend: Backend) -> (tempfile::TempDir, Place, File) {
    let (root, place) = world(backend);
    place.turn(&["echo from better days"]);
    let lock = File::open(lock_file(&place)).unwrap();
    lock.lock().unwrap();
    (root, place, lock)
}

fn start(place: &Place, args: &[&str], limit: u64) -> Child {
    let mut command = place.command(args);
    command.env("TERTULIA_LOCK_TIMEOUT", limit.to_string());
    command.spawn().unwrap()
}

/// Reads stderr until the program has named what it waits for. The rest is still to be read.
fn until_named(child: &mut Child) -> String {
    let stderr = child.stderr.as_mut().unwrap();
    let mut said = Vec::new();
    let mut byte = [0];
    while stderr.read(&mut byte).unwrap() == 1 {
        said.push(byte[0]);
        let text = String::from_utf8_lossy(&said);
        if byte == *b"\n" && text.contains("waiting to save") {
            return text.into_owned();
        }
    }
    panic!("it never waited: {}", String::from_utf8_lossy(&said));
}

#[track_caller]
fn assert_named(ran: &Ran) {
    let pid = format!("process {}", std::process::id());
    assert!(ran.err.contains("waiting to save"), "{ran:?}");
    assert!(ran.err.contains(&pid), "the holder is not named: {ran:?}");
}

fn gives_up(backend: Backend) {
    let (_root, place, lock) = held(backend);
    let before = place.everything();
    let began = Instant::now();
    let stream = ["--output-format", "stream-json"];
    let args = [&["chat", "-p", "echo precious"][..], &stream].concat();
    let ran = finish(start(&place, &args, 2), "a held session");
    let took = began.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}: {ran:?}");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_named(&ran);
    assert!(!ran.out.contains(r#""type":"message""#), "{ran:?}");
    assert_eq!(place.everything(), before, "readers go on");
    let file = rescued(&place, &ran);
    drop(lock);
    bring_back(&place, &file);
    assert_eq!(said(&place, "echo precious"), 1);
    assert_eq!(said(&place, "precious"), 1);
}

#[test]
fn sqlite_that_is_held_is_given_up() {
    gives_up(Backend::Sqlite);
}

#[test]
fn files_that_are_held_are_given_up() {
    gives_up(Backend::Files);
}

fn obeys(backend: Backend) {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (_root, place, lock) = held(backend);
        let mut child = start(&place, &["chat", "-p", "echo precious"], 300);
        let named = until_named(&mut child);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let mut ran = finish(child, "a held session that is told to end");
        ran.err.insert_str(0, &named);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_named(&ran);
        let file = rescued(&place, &ran);
        drop(lock);
        bring_back(&place, &file);
        assert_eq!(said(&place, "echo precious"), 1);
    }
}

#[test]
fn whoever_waits_for_sqlite_obeys_signals() {
    obeys(Backend::Sqlite);
}

#[test]
fn whoever_waits_for_files_obeys_signals() {
    obeys(Backend::Files);
}

/// A lock that is released in time causes nothing but a delay.
#[test]
fn a_lock_that_is_let_go_is_taken() {
    for backend in [Backend::Sqlite, Backend::Files] {
        let (_root, place, lock) = held(backend);
        let mut child = start(&place, &["chat", "-p", "echo precious"], 30);
        let named = until_named(&mut child);
        drop(lock);
        let mut ran = finish(child, "a session that waits");
        ran.err.insert_str(0, &named);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_named(&ran);
        assert_eq!(said(&place, "precious"), 1);
        place.assert_sound("after a wait");
    }
}

/// The log of a session in a files store is locked by the process that appends to it.
#[test]
fn a_log_that_is_held_is_given_up() {
    let (_root, place) = world(Backend::Files);
    place.turn(&["echo from better days"]);
    let folder = place.home.join("talks/chat");
    let log = fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let lock = File::open(log.path()).unwrap();
    lock.lock().unwrap();
    let child = start(&place, &["chat", "-c", "-p", "echo precious"], 2);
    let ran = finish(child, "a session whose log is held");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_named(&ran);
    let file = rescued(&place, &ran);
    drop(lock);
    bring_back(&place, &file);
    assert_eq!(said(&place, "precious"), 1);
}

/// Other commands that write name the holder too, and fail with the same code.
#[test]
fn other_commands_name_the_holder() {
    let (_root, place, _lock) = held(Backend::Sqlite);
    let ran = finish(start(&place, &["rename", "@", "new title"], 2), "rename");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_named(&ran);
    place.run(&["list"]).ok("list");
    place.run(&["search", "better"]).ok("search");
}

/// A process that was stopped while it writes is named with its start time.
#[test]
fn a_stopped_writer_is_named_with_its_time() {
    let (_root, place) = world(Backend::Sqlite);
    place.turn(&["echo from better days"]);
    let log = place.home.join("strace.log");
    let mut strace = place.bare("strace");
    strace.args(["-f", "-qq", "-e", "trace=fdatasync", "-e"]);
    strace.arg("inject=fdatasync:signal=SIGSTOP:when=1");
    strace.arg("-o").arg(&log);
    strace.arg(env!("CARGO_BIN_EXE_tertulia"));
    strace.args(["chat", "-p", "echo stopped"]);
    // In a process group of its own, which is killed as a whole.
    let mut stopped = strace.process_group(0).spawn().unwrap();
    crate::home::until("the writer is stopped", || {
        let traced = std::fs::read_to_string(&log).unwrap_or_default();
        traced.contains("stopped by SIGSTOP").then_some(())
    });
    let ran = finish(
        start(&place, &["chat", "-p", "echo precious"], 2),
        "beside it",
    );
    kill_process_group(Pid::from_child(&stopped), Signal::KILL).unwrap();
    stopped.wait().unwrap();
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let named = format!("tertulia {} (process", env!("CARGO_PKG_VERSION"));
    assert!(ran.err.contains(&named), "{ran:?}");
    assert!(ran.err.contains("since 20"), "{ran:?}");
    place.assert_sound("after the stopped one is gone");
}
