//! Damage is reported where users look, and a repair restores what is intact.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::home::{Backend, Home, both, files_below, short};

/// Creates a home with so many sessions, each with one numbered message.
fn talks(backend: Backend, count: usize) -> (Home, Vec<String>) {
    let home = Home::with(backend);
    let ids = (0..count).map(|n| home.say(&format!("echo talk {n}")));
    let ids = ids.collect();
    (home, ids)
}

/// Returns the log files of a files store, sorted by name.
fn logs(home: &Home) -> Vec<PathBuf> {
    let mut logs = files_below(&home.files_folder());
    logs.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    logs.sort();
    logs
}

fn log_of(home: &Home, id: &str) -> PathBuf {
    let logs = logs(home);
    let is_it = |path: &&PathBuf| path.display().to_string().contains(id);
    logs.iter().find(is_it).unwrap().clone()
}

#[test]
fn a_database_cut_short_is_salvaged() {
    for cut in [1025, 2048, 5000] {
        let (home, ids) = talks(Backend::Sqlite, 8);
        let bytes = fs::read(home.database()).unwrap();
        fs::write(home.database(), &bytes[..bytes.len() - cut]).unwrap();
        home.run(&["doctor"]).code(5).notes("--repair");
        home.run(&["doctor", "--repair"])
            .repaired()
            .says("repaired:")
            .says("lost:");
        home.run(&["doctor"]).ok();
        let back = home.all();
        assert!(back.len() >= 4, "{cut}: {} of {}", back.len(), ids.len());
    }
}

#[test]
fn a_database_without_an_entry_is_not_called_repaired() {
    let (home, _) = talks(Backend::Sqlite, 2);
    let bytes = fs::read(home.database()).unwrap();
    fs::write(home.database(), &bytes[..2048]).unwrap();
    let output = home.run(&["doctor", "--repair"]).code(5);
    output.notes("no entry in it can be found").notes("mv ");
    assert_eq!(fs::read(home.database()).unwrap(), &bytes[..2048]);
}

#[test]
fn an_empty_file_that_was_a_database_is_told() {
    let (home, _) = talks(Backend::Sqlite, 2);
    fs::write(home.database(), b"").unwrap();
    for command in [&["list"][..], &["doctor"], &["doctor", "--repair"]] {
        home.run(command).code(5).notes("damaged");
    }
    home.run(&["chat", "-p", "echo on"]).code(5);
    assert_eq!(fs::metadata(home.database()).unwrap().len(), 0);
    // An empty file that never was a database is initialised.
    let fresh = Home::new();
    fs::create_dir_all(fresh.database().parent().unwrap()).unwrap();
    fs::write(fresh.database(), b"").unwrap();
    fresh.say("echo one");
}

/// A database that another program has locked is not damaged.
#[test]
fn a_busy_database_is_not_repaired() {
    let (home, ids) = talks(Backend::Sqlite, 2);
    let held = rusqlite::Connection::open(home.database()).unwrap();
    held.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))
        .unwrap();
    held.execute_batch("BEGIN EXCLUSIVE").unwrap();
    home.run(&["doctor", "--repair"]).code(4).lacks("repaired");
    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    let folder = home.database().parent().unwrap().to_owned();
    for file in files_below(&folder) {
        assert!(!file.display().to_string().contains("damaged"), "{file:?}");
    }
    assert_eq!(home.said(&ids[0]), ["echo talk 0", "talk 0"]);
}

/// A damaged database is not replaced while another process uses it or waits to write.
#[test]
fn a_database_in_use_is_not_replaced() {
    let damage = || {
        let (home, _) = talks(Backend::Sqlite, 3);
        let mut bytes = fs::read(home.database()).unwrap();
        let size = bytes.len();
        bytes[size - 1024..].fill(0);
        fs::write(home.database(), &bytes).unwrap();
        (home, bytes)
    };
    // A process is in the writers' queue.
    let (home, bytes) = damage();
    let queue = fs::File::create(format!("{}-lock", home.database().display())).unwrap();
    queue.lock().unwrap();
    home.run(&["doctor", "--repair"]).code(4);
    assert_eq!(fs::read(home.database()).unwrap(), bytes);
    queue.unlock().unwrap();
    home.run(&["doctor", "--repair"]).repaired();
    // A process has it open.
    let (home, _) = damage();
    let open = rusqlite::Connection::open(home.database()).unwrap();
    let count = "SELECT count(*) FROM sqlite_schema";
    open.query_row(count, [], |row| row.get::<_, i64>(0))
        .unwrap();
    home.run(&["doctor", "--repair"]).code(4);
    drop(open);
    home.run(&["doctor", "--repair"]).repaired();
}

/// An index page is zeroed: sessions that the rows still have are listed and found.
#[test]
fn a_damaged_index_does_not_hide_the_sessions() {
    let (home, ids) = talks(Backend::Sqlite, 3);
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let page = "SELECT pageno FROM dbstat WHERE name = 'session_by_project' LIMIT 1";
    let page: usize = database
        .query_row(page, [], |row| row.get::<_, i64>(0))
        .unwrap()
        .try_into()
        .unwrap();
    drop(database);
    let mut bytes = fs::read(home.database()).unwrap();
    bytes[(page - 1) * 1024..page * 1024].fill(0);
    fs::write(home.database(), bytes).unwrap();
    let output = home.run(&["list"]).ok();
    ids.iter()
        .for_each(|id| assert!(output.stdout.contains(&short(id))));
    home.run(&["doctor"]).code(5);
    home.run(&["doctor", "--repair"]).repaired();
    assert_eq!(home.all().len(), 3);
}

#[test]
fn damage_is_told_in_lists_and_searches() {
    let (home, ids) = talks(Backend::Files, 3);
    home.run(&["list"]).ok();
    fs::write(log_of(&home, &ids[0]), "garbage\n").unwrap();
    let listed = home.run(&["list", "--all"]).ok();
    listed
        .notes(&format!("1 session is damaged: {}", short(&ids[0])))
        .notes("tertulia doctor")
        .lacks("years ago");
    let listing = home.run(&["list", "--json"]).ok().json();
    assert_eq!(listing["damaged"][0]["id"], json!(ids[0]));
    assert_eq!(listing["damaged"].as_array().unwrap().len(), 1);
    assert_eq!(listing["sessions"].as_array().unwrap().len(), 2);
    home.run(&["search", "talk"])
        .ok()
        .notes("1 session is damaged");
    home.run(&["prune", "--older-than", "30d", "--dry-run"])
        .ok()
        .lacks(&short(&ids[0]));
    home.run(&["doctor"]).code(5).says(&ids[0]);
}

#[test]
fn a_row_of_the_database_that_holds_nothing_is_told() {
    let (home, ids) = talks(Backend::Sqlite, 2);
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let hex = ids[0].replace('-', "").to_uppercase();
    database
        .execute_batch(&format!(
            "UPDATE entry SET line = 'x' WHERE session = (SELECT no FROM session WHERE hex(id) = '{hex}');
             UPDATE session SET row = 'x' WHERE hex(id) = '{hex}';"
        ))
        .unwrap();
    drop(database);
    let listed = home.run(&["list", "--all"]).ok();
    listed
        .notes(&format!("1 session is damaged: {}", short(&ids[0])))
        .lacks("years ago");
    let listing = home.run(&["list", "--json"]).ok().json();
    assert_eq!(listing["damaged"][0]["id"], json!(ids[0]));
}

/// The row of a session names a last entry that the database no longer has, or has altered.
#[test]
fn a_session_of_the_database_without_its_end_is_damaged() {
    for spoil in [
        "DELETE FROM entry WHERE n =",
        "UPDATE entry SET line = 'x' WHERE n =",
    ] {
        let (home, ids) = talks(Backend::Sqlite, 2);
        let database = rusqlite::Connection::open(home.database()).unwrap();
        let hex = ids[0].replace('-', "").to_uppercase();
        let newest = format!(
            "(SELECT max(n) FROM entry WHERE session = (SELECT no FROM session WHERE hex(id) = '{hex}'))"
        );
        database
            .execute_batch(&format!("{spoil} {newest}"))
            .unwrap();
        drop(database);
        home.run(&["list", "--all"])
            .ok()
            .notes(&format!("1 session is damaged: {}", short(&ids[0])));
        let listing = home.run(&["list", "--json"]).ok().json();
        assert_eq!(listing["damaged"][0]["id"], json!(ids[0]), "{spoil}");
        home.run(&["doctor"]).code(5).says(&ids[0]);
        home.run(&["doctor", "--repair"]).repaired();
        home.run(&["list"]).ok().lacks("damaged");
    }
}

/// Iterating over all numbers up to this one would take forever.
#[test]
fn a_session_with_an_astronomic_number_is_told_at_once() {
    let (home, ids) = talks(Backend::Sqlite, 3);
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let hex = ids[0].replace('-', "").to_uppercase();
    database
        .execute_batch(&format!(
            "UPDATE session SET no = {} WHERE hex(id) = '{hex}'",
            i64::MAX
        ))
        .unwrap();
    drop(database);
    home.run(&["doctor"]).code(5).says(&ids[0]);
    home.run(&["doctor", "--repair"]).repaired();
    home.run(&["doctor"]).ok();
    assert_eq!(home.said(&ids[1]), ["echo talk 1", "talk 1"]);
}

/// Entries that the list has seen are missing at the end of a log.
#[test]
fn a_log_cut_at_its_end_is_damaged() {
    type Shorten = fn(&[u8]) -> Vec<u8>;
    let shortened: [(&str, Shorten); 3] = [
        ("whole lines", |bytes| {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            lines.take(3).collect::<Vec<_>>().concat()
        }),
        ("in a line", |bytes| bytes[..bytes.len() - 100].to_vec()),
        ("zeros", |bytes| vec![0; bytes.len()]),
    ];
    for (what, shorten) in shortened {
        let (home, ids) = talks(Backend::Files, 2);
        home.say_in(&ids[0], "echo more");
        home.run(&["list"]).ok();
        let log = log_of(&home, &ids[0]);
        let bytes = fs::read(&log).unwrap();
        fs::write(&log, shorten(&bytes)).unwrap();
        let output = home.run(&["doctor"]).code(5);
        assert!(output.stdout.contains(&ids[0]), "{what}: {output:?}");
        // Also after the list has read the log again.
        home.run(&["list"]).ok().notes("1 session is damaged");
        home.run(&["doctor"]).code(5).says(&ids[0]);
        home.run(&["doctor", "--repair"])
            .repaired()
            .says(&format!("lost: session {}", ids[0]));
        home.run(&["doctor"]).ok();
        home.run(&["list"]).ok().lacks("damaged");
        assert_eq!(home.said(&ids[1]), ["echo talk 1", "talk 1"]);
    }
}

#[test]
fn a_log_that_cannot_be_read_is_counted() {
    let (home, ids) = talks(Backend::Files, 2);
    let log = log_of(&home, &ids[0]);
    let bytes = fs::read(&log).unwrap();
    // A folder cannot be read as a file, not even by root.
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    home.run(&["list"])
        .ok()
        .notes(&format!("1 session is damaged: {}", short(&ids[0])));
    home.run(&["doctor"]).code(5).says(&ids[0]);
    // It is read again as soon as possible.
    fs::remove_dir(&log).unwrap();
    fs::write(&log, bytes).unwrap();
    home.run(&["list"])
        .ok()
        .lacks("damaged")
        .says(&short(&ids[0]));
    home.run(&["doctor"]).ok();
}

/// The process that created a session was killed before it had its final name.
#[test]
fn a_session_without_its_name_is_brought_in() {
    let (home, ids) = talks(Backend::Files, 2);
    let log = log_of(&home, &ids[0]);
    let mut name = log.clone().into_os_string();
    // No process has such a high id.
    name.push(".new-2000000000");
    fs::rename(&log, &name).unwrap();
    // It was never acknowledged, so this is not damage, but its messages are not ignored.
    let output = home.run(&["doctor"]).ok();
    assert!(format!("{output:?}").contains(&ids[0]), "{output:?}");
    home.run(&["doctor", "--repair"]).repaired().says(&ids[0]);
    assert_eq!(home.said(&ids[0]), ["echo talk 0", "talk 0"]);
    home.run(&["doctor"]).ok();
}

#[test]
fn logs_that_were_swapped_keep_all_their_words() {
    let (home, ids) = talks(Backend::Files, 2);
    home.say_in(&ids[1], "echo more");
    home.run(&["list"]).ok();
    let (one, other) = (log_of(&home, &ids[0]), log_of(&home, &ids[1]));
    let aside = home.path().join("aside");
    fs::rename(&one, &aside).unwrap();
    fs::rename(&other, &one).unwrap();
    fs::rename(&aside, &other).unwrap();
    home.run(&["doctor"]).code(5);
    home.run(&["doctor", "--repair"]).repaired().lacks("lost:");
    home.run(&["doctor"]).ok().says("2 sessions");
    assert_eq!(home.said(&ids[0]), ["echo talk 0", "talk 0"]);
    assert_eq!(
        home.said(&ids[1]),
        ["echo talk 1", "talk 1", "echo more", "more"]
    );
}

/// An intact store is reported as such, whatever was done to it before.
#[test]
fn nothing_is_told_of_a_sound_store() {
    both(|home| {
        let id = home.say("echo one");
        home.run(&["fork", &id]).ok();
        home.run(&["rm", "-y", &id]).ok();
        home.run(&["list", "--all"]).ok().lacks("damaged");
        let listing = home.run(&["list", "--json"]).ok().json();
        assert_eq!(listing.get("damaged"), None);
        home.run(&["search", "one"]).ok().lacks("damaged");
    });
}
