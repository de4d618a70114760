//! The file of the ledger: where it is, and what happens if it is damaged, deleted or out of date.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use tertulia_core::entry::ToolOutcome;
use tertulia_core::entry::Usage;
use tertulia_store::Store;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human};
use tertulia_testkit::scratch::Scratch;

use super::{call, catch_up, everything, everything_in, ledger, result, sums};

type Open = fn(&Path) -> Box<dyn Store>;

fn backends() -> [(Open, &'static str); 2] {
    let sqlite: Open = |folder| Box::new(SqliteStore::open(&folder.join("t.db")).unwrap());
    let files: Open = |folder| Box::new(FilesStore::open(&folder.join("logs")).unwrap());
    [(sqlite, "t.db-ledger"), (files, "logs/.index/ledger.db")]
}

/// Runs a test on each backend, with a session and the path of its ledger.
fn on_each(test: impl Fn(&dyn Store, &mut Writer, PathBuf)) {
    for (open, file) in backends() {
        let scratch = Scratch::new();
        let store = open(scratch.path());
        let mut writer = Writer::begin(store.as_ref(), &still_clock(1));
        writer.append(store.as_ref(), vec![human("hi"), ai("ada", "yes")]);
        test(store.as_ref(), &mut writer, scratch.path().join(file));
    }
}

#[test]
fn it_lies_beside_the_other_derived_data_and_is_private() {
    on_each(|store, writer, file| {
        assert!(!file.exists());
        catch_up(&mut ledger(store), store);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Another process goes on where this one ended.
        writer.append(store, vec![ai("ada", "more")]);
        let mut again = ledger(store);
        assert!(!again.is_in_memory());
        assert_eq!(catch_up(&mut again, store).entries, 1);
        assert_eq!(sums(&again), (3, Usage::told(14, 10)));
    });
}

#[test]
fn it_may_be_deleted_or_damaged() {
    on_each(|store, _, file| {
        let mut first = ledger(store);
        catch_up(&mut first, store);
        let expected = everything_in(&first);
        drop(first);
        for bytes in [None, Some(&b"no database, but long enough to look at"[..])] {
            for suffix in ["", "-wal", "-shm"] {
                let mut name = file.clone().into_os_string();
                name.push(suffix);
                let _ = fs::remove_file(name);
            }
            if let Some(bytes) = bytes {
                fs::write(&file, bytes).unwrap();
            }
            let mut again = ledger(store);
            catch_up(&mut again, store);
            assert_eq!(everything_in(&again), expected);
        }
    });
}

#[test]
fn a_ledger_of_another_version_is_rebuilt() {
    on_each(|store, _, file| {
        catch_up(&mut ledger(store), store);
        let other = rusqlite::Connection::open(&file).unwrap();
        other
            .execute_batch("PRAGMA user_version=999; UPDATE entry SET input = 1000000;")
            .unwrap();
        drop(other);
        let mut again = ledger(store);
        catch_up(&mut again, store);
        assert_eq!(sums(&again), (2, Usage::told(7, 5)));
    });
}

#[test]
fn a_replaced_log_is_read_again() {
    let scratch = Scratch::new();
    let path = scratch.path().join("t.db");
    let backup = scratch.path().join("backup.db");
    let clock = still_clock(1);
    let mut writer = {
        let store = SqliteStore::open(&path).unwrap();
        let mut writer = Writer::begin(&store, &clock);
        writer.append(&store, vec![ai("ada", "kept")]);
        writer
    };
    fs::copy(&path, &backup).unwrap();
    let mut other = writer.clone();
    {
        let store = SqliteStore::open(&path).unwrap();
        writer.append(&store, vec![ai("ada", "lost"), ai("ada", "lost")]);
        catch_up(&mut ledger(&store), &store);
    }
    // The backup is put in place, and another answer is appended to it.
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(scratch.path().join(format!("t.db{suffix}")));
    }
    fs::copy(&backup, &path).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    for _ in 0..3 {
        other.append(&store, vec![ai("ada", "new")]);
        let mut ledger = ledger(&store);
        catch_up(&mut ledger, &store);
        let count = other.log.len() as u64 - 1;
        assert_eq!(sums(&ledger), (count, Usage::told(7 * count, 5 * count)));
    }
}

#[test]
fn purging_a_session_removes_its_traces() {
    on_each(|store, writer, file| {
        let mut other = Writer::begin(store, &still_clock(2));
        let shared = || call("b", "Read", json!({"file_path": "/shared/path"}));
        other.append(store, vec![shared()]);
        writer.append(
            store,
            vec![
                call("a", "Read", json!({"file_path": "/secret/path"})),
                result("a", ToolOutcome::Ok),
                shared(),
            ],
        );
        let mut before = ledger(store);
        catch_up(&mut before, store);
        assert_eq!(before.files(&everything()).unwrap().len(), 2);
        drop(before);
        now(store.purge(writer.id)).unwrap();
        let has = |text: &str| {
            let names = ["", "-wal"].map(|suffix| {
                let mut name = file.clone().into_os_string();
                name.push(suffix);
                name
            });
            names.iter().any(|name| {
                let bytes = fs::read(name).unwrap_or_default();
                bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
            })
        };
        assert!(!has("/secret/path") && has("/shared/path"));
        let after = ledger(store);
        assert_eq!(after.sessions(&everything()).unwrap().len(), 1);
        assert_eq!(after.files(&everything()).unwrap().len(), 1);
    });
}

#[test]
fn damaged_entries_are_counted() {
    let scratch = Scratch::new();
    let store = FilesStore::open(&scratch.path().join("logs")).unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    writer.append(&store, vec![ai("ada", "first")]);
    writer.append(&store, vec![ai("ada", "broken")]);
    writer.append(&store, vec![ai("ada", "last")]);
    drop(store);
    let chats = fs::read_dir(scratch.path().join("logs/chat")).unwrap();
    let log = chats.map(|entry| entry.unwrap().path()).next().unwrap();
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("broken"));
    fs::write(&log, text.replace("\"message\",\"speaker\":{\"id\":\"ada\",\"name\":\"ada\",\"displayName\":\"ada\",\"type\":\"ai\"},\"role\":\"assistant\",\"content\":\"broken\"", "\"mess")).unwrap();
    let store = FilesStore::open(&scratch.path().join("logs")).unwrap();
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger), (2, Usage::told(14, 10)));
    assert_eq!(ledger.unread(&everything()).unwrap(), 1);
    // It is not read again and again.
    assert_eq!(catch_up(&mut ledger, &store).sessions, 0);
}

#[test]
fn several_processes_may_catch_up_at_once() {
    on_each(|store, _, _| {
        let clock = still_clock(3);
        for _ in 0..20 {
            let mut writer = Writer::begin(store, &clock);
            writer.append(store, (0..30).map(|_| ai("ada", "x")).collect());
        }
        std::thread::scope(|scope| {
            let run = || {
                let mut ledger = ledger(store);
                catch_up(&mut ledger, store);
                sums(&ledger)
            };
            let others: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            for other in others {
                assert_eq!(other.join().unwrap(), (602, Usage::told(601 * 7, 601 * 5)));
            }
        });
    });
}
