//! `doctor`: damage is found, named and salvaged.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::home::{Backend, Home, both, files_below};

/// Returns the files that hold messages.
fn logs(home: &Home) -> Vec<PathBuf> {
    match home.backend() {
        Backend::Sqlite => vec![home.database()],
        Backend::Files => files_below(&home.files_folder())
            .into_iter()
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .collect(),
    }
}

/// Changes one letter of a message in the store's files, in place.
pub(super) fn flip(home: &Home, words: &str) {
    let mut flipped = 0;
    for path in logs(home) {
        let mut bytes = fs::read(&path).unwrap();
        // Match the log line itself, not metadata or an index that quotes it.
        let needle = format!("\"content\":\"{words}\"").into_bytes();
        let places: Vec<usize> = bytes
            .windows(needle.len())
            .enumerate()
            .filter(|(_, window)| *window == needle)
            .map(|(at, _)| at)
            .collect();
        for at in places {
            bytes[at + needle.len() - 2] ^= 1;
            flipped += 1;
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(flipped, 1, "the words stand in one place");
}

#[test]
fn a_sound_store_is_clean() {
    both(|home| {
        home.run(&["doctor"]).ok().says("all hashes valid");
        let id = home.say("count to 3");
        home.run(&["fork", &id]).ok();
        home.run(&["rm", "-y", &id]).ok();
        home.run(&["doctor"]).ok().says("2 sessions");
        let report = home.run(&["doctor", "--json"]).ok().json();
        assert_eq!(
            (&report["clean"], &report["damage"]),
            (&json!(true), &json!([]))
        );
        assert_eq!(report["sessions"], 2);
    });
}

/// Creates a store with a damaged entry 3 in the first of two sessions.
fn damaged(home: &Home) -> (String, String) {
    let (hurt, sound) = (home.say("echo tomatoes"), home.say("echo potatoes"));
    home.say_in(&hurt, "echo later words");
    flip(home, "tomatoes");
    (hurt, sound)
}

#[test]
fn damage_is_found_and_named() {
    both(|home| {
        let (hurt, sound) = damaged(home);
        let output = home.run(&["doctor"]).code(5);
        output
            .says(&format!("session {hurt} entry 3"))
            .notes("--repair")
            .lacks(&sound);
        let output = home.run(&["doctor", "--json"]).code(5);
        let report = output.json();
        assert_eq!(report["clean"], false);
        let first = &report["damage"][0];
        assert_eq!(
            (&first["session"], &first["seq"]),
            (&json!(hurt), &json!(3))
        );
        assert_eq!(output.error()["kind"], "invalid");
    });
}

#[test]
fn everything_else_stays_readable() {
    both(|home| {
        let (hurt, sound) = damaged(home);
        assert_eq!(home.said(&sound), ["echo potatoes", "potatoes"]);
        let output = home.run(&["show", &hurt]).ok();
        output
            .says("echo tomatoes")
            .says("later words")
            .notes("entry 3");
        let session = home.show(&hurt);
        assert_eq!(session["damage"][0]["seq"], 3);
        home.run(&["export", &hurt])
            .ok()
            .says("later words")
            .notes("entry 3");
        assert_eq!(
            home.run(&["list", "--json"]).ok().json()["sessions"][1]["id"],
            sound.as_str()
        );
        home.run(&["search", "potatoes"]).ok().notes("2 hits");
        assert_eq!(
            home.run(&["-r", &sound, "-p", "echo on"]).ok().stdout,
            "on\n"
        );
        let output = home.run(&["-r", &hurt, "-p", "echo on"]).ok();
        assert_eq!(output.stdout, "on\n");
        output.notes("damaged");
    });
}

#[test]
fn repair_salvages_and_names_what_is_lost() {
    both(|home| {
        let (hurt, sound) = damaged(home);
        let before = logs(home)
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect::<Vec<_>>();
        let output = home.run(&["doctor", "--repair"]).repaired();
        output.says(&hurt).says("repaired:");
        home.run(&["doctor"]).ok().says("all hashes valid");
        let said = home.said(&hurt);
        assert_eq!(said.first().map(String::as_str), Some("echo tomatoes"));
        assert!(said.contains(&"later words".to_owned()), "{said:?}");
        assert_eq!(home.said(&sound), ["echo potatoes", "potatoes"]);
        // The damaged original is kept.
        let kept = files_below(home.path())
            .into_iter()
            .map(|path| fs::read(path).unwrap());
        let kept: Vec<Vec<u8>> = kept.collect();
        let damaged_file = before
            .iter()
            .find(|bytes| contains(bytes, b"\"content\":\"tomatoer\""));
        let damaged_file = damaged_file.expect("the damaged file");
        match home.backend() {
            Backend::Files => assert!(kept.contains(damaged_file)),
            // A database may be copied page by page; it is enough that the bytes exist.
            Backend::Sqlite => {
                assert!(
                    kept.iter()
                        .any(|bytes| contains(bytes, b"\"content\":\"tomatoer\""))
                );
            }
        }
        home.say_in(&hurt, "echo on");
        home.run(&["doctor"]).ok();
        home.run(&["undo"]).code(3);
    });
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn repair_of_a_sound_store_changes_nothing() {
    both(|home| {
        let id = home.say("count to 3");
        let before = home.run(&["show", &id, "--raw"]).ok().stdout;
        home.run(&["doctor", "--repair"]).repaired();
        assert_eq!(home.run(&["show", &id, "--raw"]).ok().stdout, before);
        assert!(
            files_below(home.path())
                .iter()
                .all(|path| { !path.display().to_string().contains("damaged") })
        );
    });
}

#[test]
fn an_append_that_was_cut_off_loses_nothing_else() {
    let home = Home::with(Backend::Files);
    let id = home.say("echo one");
    let log = logs(&home).remove(0);
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend(b"{\"v\":1,\"seq\":4,\"id\":\"01a1e12f-45");
    fs::write(&log, bytes).unwrap();
    assert_eq!(home.said(&id), ["echo one", "one"]);
    assert_eq!(home.run(&["-r", &id, "-p", "echo on"]).ok().stdout, "on\n");
    assert_eq!(home.said(&id).len(), 4);
    home.run(&["doctor"]).ok();
}

#[test]
fn derived_data_may_be_deleted() {
    both(|home| {
        let id = home.say("echo tomato");
        home.run(&["search", "tomato"]).ok();
        match home.backend() {
            Backend::Sqlite => {
                let folder = home.database().parent().unwrap().to_owned();
                for path in files_below(&folder) {
                    if path.display().to_string().contains("-search") {
                        fs::remove_file(path).unwrap();
                    }
                }
            }
            Backend::Files => fs::remove_dir_all(home.files_folder().join(".index")).unwrap(),
        }
        assert_eq!(home.said(&id), ["echo tomato", "tomato"]);
        assert_eq!(home.all().len(), 1);
        home.run(&["search", "tomato"]).ok().notes("2 hits");
        home.run(&["store", "rebuild"]).ok();
        home.run(&["search", "tomato"]).ok().notes("2 hits");
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn a_damaged_session_is_not_copied_as_if_it_were_sound() {
    both(|home| {
        let (hurt, sound) = damaged(home);
        let target = format!("files:{}", home.path().join("copy").display());
        let output = home
            .run(&["store", "copy", &home.store_url(), &target])
            .code(5);
        output.notes(&hurt);
        let copy = Home::new();
        let prepared = copy.prepare(&["list", "--all", "--json", "--store", &target]);
        let listing: Value = prepared.run().ok().json();
        assert_eq!(listing["sessions"][0]["id"], sound.as_str());
        assert_eq!(listing["sessions"].as_array().unwrap().len(), 1);
    });
}

/// A session whose list row is missing is restored from the log.
#[test]
fn a_session_without_its_row_is_brought_back() {
    let home = Home::new();
    home.say("echo precious");
    home.say("echo other");
    let gone = home.show("@~1")["id"].as_str().unwrap().to_owned();
    let short = gone.replace('-', "").to_uppercase();
    let database = rusqlite::Connection::open(home.database()).unwrap();
    database
        .execute("DELETE FROM session WHERE hex(id) = ?1", [&short])
        .unwrap();
    drop(database);
    home.run(&["doctor"]).code(5);
    home.run(&["doctor", "--repair"]).repaired();
    home.run(&["doctor"]).ok();
    assert_eq!(home.said(&gone), ["echo precious", "precious"]);
}

/// An index that is ahead of a log restored from a backup is rebuilt.
#[test]
fn search_follows_a_store_that_was_put_back() {
    let home = Home::new();
    home.say("echo alpha");
    let copy = std::fs::read(home.database()).unwrap();
    for word in ["beta", "gamma", "delta"] {
        home.say(&format!("echo {word}"));
    }
    home.run(&["search", "delta"]).ok();
    std::fs::write(home.database(), copy).unwrap();
    home.say("echo zeppelin");
    assert_eq!(
        home.run(&["search", "zeppelin", "--json"]).ok().json()["total"],
        2
    );
    assert_eq!(
        home.run(&["search", "beta", "--json"]).ok().json()["total"],
        0
    );
}
