//! A disk that is full, fills up, or cannot be written to loses no messages.
//!
//! The disk is a small tmpfs in a mount namespace of its own, which this binary enters by running
//! itself again: whatever happens, nothing stays mounted.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::world::{Backend, Place, Ran, finish, world};

/// Repeated, this exceeds the free part of a file's last block on a full disk.
pub const LONG: &str = "word ";

const INSIDE: &str = "TERTULIA_TEST_INSIDE";

/// Runs the test of this name in `durability` again where it may mount. Returns true inside of that
/// run.
pub fn may_mount(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let is_root = rustix::process::geteuid().is_root();
    let flags = if is_root { "-m" } else { "-Urm" };
    let output = Command::new("unshare")
        .arg(flags)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("durability::{test}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap_or_else(|error| panic!("unshare (util-linux) cannot be run: {error}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    eprintln!("{}", said(&output.stderr));
    let ran = said(&output.stdout).contains("running 1 test");
    assert!(
        output.status.success() && ran,
        "in a mount namespace of its own (unshare {flags}; it needs root or user namespaces) the test fails:\n{}\n{}",
        said(&output.stdout),
        said(&output.stderr)
    );
    false
}

/// A small disk, unmounted when dropped.
pub struct Small(PathBuf);

impl Small {
    fn mount(at: &Path) -> Small {
        fs::create_dir(at).unwrap();
        system(
            &["mount", "-t", "tmpfs", "-o", "size=1m", "tertulia-test"],
            at,
        );
        Small(at.to_owned())
    }

    pub fn remount(&self, how: &str) {
        system(&["mount", "-o", &format!("remount,{how}")], &self.0);
    }

    pub fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Fills the disk, then frees so many bytes.
    pub fn fill(&self, leave: u64) {
        let mut file = fs::File::create(self.filler()).unwrap();
        let error = loop {
            if let Err(error) = file.write_all(&[b'x'; 512]) {
                break error;
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        let size = file.metadata().unwrap().len();
        file.set_len(size - leave).unwrap();
    }

    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn system(words: &[&str], at: &Path) {
    let output = Command::new(words[0]).args(&words[1..]).arg(at).output();
    let output = output.unwrap_or_else(|error| panic!("{words:?} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{words:?} is not permitted here: {}; these tests need root or user namespaces",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A world whose store is on a small disk and has one session.
pub fn small_world(backend: Backend) -> (Small, tempfile::TempDir, Place) {
    let (small, root, place) = bare_world(backend);
    place.turn(&["echo from better days"]);
    (small, root, place)
}

/// A small disk without a store.
pub fn bare_world(backend: Backend) -> (Small, tempfile::TempDir, Place) {
    let (root, mut place) = world(backend);
    let disk = place.work.with_file_name("disk");
    let small = Small::mount(&disk);
    place.store = Some(match backend {
        Backend::Sqlite => format!("sqlite:{}/tertulia.db", disk.display()),
        Backend::Files => format!("files:{}/talks", disk.display()),
    });
    (small, root, place)
}

/// Returns the one file with an unsaved session; the error must have named it.
#[track_caller]
pub fn rescued(place: &Place, ran: &Ran) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(&place.work)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    assert_eq!(
        found.len(),
        1,
        "the talk is in one file in the folder: {ran:?}"
    );
    let file = found.remove(0);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(ran.err.contains(name), "{name} is not named: {ran:?}");
    file
}

/// Checks the output of a session that could not be saved.
#[track_caller]
pub fn assert_told(ran: &Ran, answer: &str) {
    assert!(!ran.broke(), "{ran:?}");
    assert!(ran.out.contains(answer), "the answer is not shown: {ran:?}");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let err = ran.err.to_lowercase();
    assert!(
        err.contains("saved"),
        "nothing says that it was not saved: {ran:?}"
    );
    assert!(
        err.contains("space") || err.contains("full"),
        "nor why: {ran:?}"
    );
    let told = err
        .matches("saving is tried again with the next message")
        .count();
    assert!(told <= 1, "said more than once: {ran:?}");
}

/// Counts the messages with this text in all sessions.
pub fn said(place: &Place, words: &str) -> usize {
    let everything = place.everything();
    let entries = everything
        .values()
        .flat_map(|shown| shown["entries"].as_array().unwrap());
    entries.filter(|entry| entry["content"] == words).count()
}

/// Imports the session from its file twice: the second import changes nothing.
pub fn bring_back(place: &Place, file: &Path) {
    let file = file.to_str().unwrap();
    place.run(&["import", file]).ok("importing the talk");
    let once = place.everything();
    place.run(&["import", file]).ok("importing it again");
    assert_eq!(place.everything(), once, "a second import adds nothing");
    place.assert_sound("after the import");
}

fn full(backend: Backend, test: &str, args: &[&str], leave: u64) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(backend);
    let before = place.everything();
    small.fill(leave);
    let words = format!("{}precious", LONG.repeat(800));
    let prompt = format!("echo {words}");
    let mut all = vec!["chat", "-p", &prompt];
    all.extend(args);
    let ran = place.run(&all);
    assert_told(&ran, &words);
    assert_eq!(place.everything(), before, "earlier talks are as they were");
    place.assert_sound("on a full disk");
    let file = rescued(&place, &ran);
    small.make_room();
    place.assert_sound("with room again");
    bring_back(&place, &file);
    assert_eq!(said(&place, &prompt), 1);
    assert_eq!(said(&place, &words), 1);
    for (id, shown) in &before {
        let now = place.show(id).unwrap();
        let had = shown["entries"].as_array().unwrap();
        assert!(now["entries"].as_array().unwrap().starts_with(had), "{id}");
    }
}

/// The working directory is full, too: the session is rescued elsewhere, and no empty files are
/// left.
#[test]
fn a_full_work_folder_is_not_littered() {
    if !may_mount("full::a_full_work_folder_is_not_littered") {
        return;
    }
    let (small, root, mut place) = small_world(Backend::Sqlite);
    place.work = small.filler().with_file_name("work");
    fs::create_dir(&place.work).unwrap();
    small.fill(0);
    let words = format!("{}precious", LONG.repeat(800));
    let mut command = place.command(&["chat", "-p", &format!("echo {words}")]);
    command.env("TMPDIR", root.path());
    let ran = finish(command.spawn().unwrap(), "a talk on a full disk");
    assert_told(&ran, &words);
    let left = fs::read_dir(&place.work).unwrap().count();
    assert_eq!(left, 0, "files are left behind: {ran:?}");
    let rescued = fs::read_dir(root.path()).unwrap();
    let mut rescued = rescued.map(|entry| entry.unwrap().path());
    let file = rescued.find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    small.make_room();
    bring_back(&place, &file.expect("the talk is in a file"));
    assert_eq!(said(&place, &words), 1);
}

#[test]
fn sqlite_on_a_full_disk_loses_no_new_talk() {
    full(
        Backend::Sqlite,
        "full::sqlite_on_a_full_disk_loses_no_new_talk",
        &[],
        0,
    );
}

#[test]
fn files_on_a_full_disk_lose_no_new_talk() {
    full(
        Backend::Files,
        "full::files_on_a_full_disk_lose_no_new_talk",
        &[],
        0,
    );
}

#[test]
fn sqlite_on_a_full_disk_loses_no_resumed_talk() {
    full(
        Backend::Sqlite,
        "full::sqlite_on_a_full_disk_loses_no_resumed_talk",
        &["-c"],
        0,
    );
}

#[test]
fn files_on_a_full_disk_lose_no_resumed_talk() {
    full(
        Backend::Files,
        "full::files_on_a_full_disk_lose_no_resumed_talk",
        &["-c"],
        0,
    );
}

/// There is no room even to create a store.
fn first_talk(backend: Backend, test: &str) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = bare_world(backend);
    small.fill(0);
    let ran = place.run(&["chat", "-p", "echo precious"]);
    assert_told(&ran, "precious");
    let file = rescued(&place, &ran);
    small.make_room();
    bring_back(&place, &file);
    assert_eq!(said(&place, "echo precious"), 1);
    place.assert_sound("with room again");
}

#[test]
fn sqlite_on_a_full_disk_loses_no_first_talk() {
    first_talk(
        Backend::Sqlite,
        "full::sqlite_on_a_full_disk_loses_no_first_talk",
    );
}

#[test]
fn files_on_a_full_disk_lose_no_first_talk() {
    first_talk(
        Backend::Files,
        "full::files_on_a_full_disk_lose_no_first_talk",
    );
}

/// There is room for SQLite's shared memory, and for little more.
#[test]
fn sqlite_on_a_nearly_full_disk_loses_no_new_talk() {
    let test = "full::sqlite_on_a_nearly_full_disk_loses_no_new_talk";
    full(Backend::Sqlite, test, &[], 36 * 1024);
}

#[test]
fn sqlite_on_a_nearly_full_disk_loses_no_resumed_talk() {
    let test = "full::sqlite_on_a_nearly_full_disk_loses_no_resumed_talk";
    full(Backend::Sqlite, test, &["-c"], 36 * 1024);
}

/// A conversation continues in memory, but no tool runs before its call is in the log.
fn does_nothing(backend: Backend, test: &str, has_store: bool) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = if has_store {
        small_world(backend)
    } else {
        bare_world(backend)
    };
    small.fill(0);
    let mark = place.work.join("done");
    let padding = "x".repeat(100_000);
    let wanted = format!(
        "use shell {{\"command\": \"touch {}\", \"description\": \"{padding}\"}}",
        mark.display()
    );
    let ran = place.run(&["chat", "--approve", "all", "--json", "-p", &wanted]);
    assert!(!mark.exists(), "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let messages = document["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4, "what was said is told: {ran:?}");
    assert!(
        messages[2]["content"].as_str().unwrap().contains("not run"),
        "{ran:?}"
    );
}

#[test]
fn sqlite_on_a_full_disk_does_nothing_unsaved() {
    let test = "full::sqlite_on_a_full_disk_does_nothing_unsaved";
    does_nothing(Backend::Sqlite, test, true);
}

#[test]
fn files_on_a_full_disk_do_nothing_unsaved() {
    let test = "full::files_on_a_full_disk_do_nothing_unsaved";
    does_nothing(Backend::Files, test, true);
}

#[test]
fn without_room_for_a_store_nothing_is_done() {
    let test = "full::without_room_for_a_store_nothing_is_done";
    does_nothing(Backend::Sqlite, test, false);
}

/// Reading needs no disk space.
fn readable(backend: Backend, test: &str) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(backend);
    let before = place.everything();
    let id = before.keys().next().unwrap().clone();
    small.fill(0);
    let shown = place.show(&id);
    assert_eq!(shown.as_ref().ok(), before.get(&id), "{shown:?}");
    assert_eq!(place.everything(), before);
    place.assert_sound("on a full disk");
    let exported = place.run(&["export", &id]).ok("export");
    assert!(exported.contains("from better days"), "{exported}");
}

#[test]
fn sqlite_on_a_full_disk_can_be_read() {
    readable(Backend::Sqlite, "full::sqlite_on_a_full_disk_can_be_read");
}

#[test]
fn files_on_a_full_disk_can_be_read() {
    readable(Backend::Files, "full::files_on_a_full_disk_can_be_read");
}

/// The agent itself fills the disk before it answers.
fn fills_up(backend: Backend, test: &str) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(backend);
    let before = place.everything();
    let settings = place.home.join(".config/tertulia");
    fs::create_dir_all(&settings).unwrap();
    let script = format!(
        "cat >/dev/null; dd if=/dev/zero of={} bs=512 2>/dev/null; echo precious answer; seq 1 2000",
        small.filler().display()
    );
    let agent = format!(
        "[agents.filler]\ntype = \"command\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"{script}\"]\nconfine = false\n"
    );
    fs::write(settings.join("config.toml"), agent).unwrap();
    let ran = place.run(&["chat", "-p", "--agent", "filler", "my words"]);
    assert_told(&ran, "precious answer");
    assert_eq!(
        said(&place, "my words"),
        1,
        "they were durable before the disk was full"
    );
    for (id, shown) in &before {
        assert_eq!(&place.show(id).unwrap(), shown);
    }
    place.assert_sound("on a full disk");
    let file = rescued(&place, &ran);
    small.make_room();
    bring_back(&place, &file);
    assert_eq!(said(&place, "my words"), 1);
    let answers = place.everything();
    let entries = answers
        .values()
        .flat_map(|shown| shown["entries"].as_array().unwrap());
    let is_answer = |entry: &&Value| {
        let content = entry["content"].as_str().unwrap_or_default();
        content.starts_with("precious answer\n1\n2\n") && content.trim_end().ends_with("\n2000")
    };
    assert_eq!(entries.filter(is_answer).count(), 1);
}

#[test]
fn sqlite_on_a_disk_that_fills_up_loses_nothing() {
    fills_up(
        Backend::Sqlite,
        "full::sqlite_on_a_disk_that_fills_up_loses_nothing",
    );
}

#[test]
fn files_on_a_disk_that_fills_up_lose_nothing() {
    fills_up(
        Backend::Files,
        "full::files_on_a_disk_that_fills_up_lose_nothing",
    );
}

/// Collects every file below a folder with its bytes.
fn snapshot(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            into.insert(path.clone(), Vec::new());
            snapshot(&path, into);
        } else {
            into.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

fn read_only(backend: Backend, test: &str) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(backend);
    let before = place.everything();
    let id = before.keys().next().unwrap().clone();
    let mut bytes = BTreeMap::new();
    snapshot(&small.0, &mut bytes);
    small.remount("ro");
    for args in [
        &["chat", "-p", "echo words"][..],
        &["chat", "-p", "-c", "echo words"],
    ] {
        let ran = place.run(args);
        assert!(!ran.broke(), "{ran:?}");
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        let err = ran.err.to_lowercase();
        let is_clear = err.contains("read-only") || err.contains("cannot be written");
        assert!(is_clear, "{args:?}: the error is not clear: {ran:?}");
        assert!(
            err.contains("--store") || err.contains("tertulia import"),
            "{args:?}: it does not say what to do: {ran:?}"
        );
    }
    assert_eq!(place.everything(), before, "list and show still work");
    let exported = place.run(&["export", &id]).ok("export");
    assert!(exported.contains("from better days"), "{exported}");
    let found = place.run(&["search", "better"]).ok("search");
    assert!(found.contains("days"), "{found}");
    let checked = place.run(&["doctor", "--repair"]).ok("doctor --repair");
    assert!(checked.contains("all hashes valid"), "{checked}");
    let mut after = BTreeMap::new();
    snapshot(&small.0, &mut after);
    assert!(after == bytes, "something was changed");
    small.remount("rw");
    place.assert_sound("writable again");
    assert_eq!(place.everything(), before);
}

#[test]
fn sqlite_on_a_read_only_disk_can_be_read() {
    read_only(
        Backend::Sqlite,
        "full::sqlite_on_a_read_only_disk_can_be_read",
    );
}

#[test]
fn files_on_a_read_only_disk_can_be_read() {
    read_only(
        Backend::Files,
        "full::files_on_a_read_only_disk_can_be_read",
    );
}
