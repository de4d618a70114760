//! Randomly damaged stores: nothing crashes, and everything readable is read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{Backend, Home, both, files_below};

/// Positions of the damage, in percent of the file.
const PLACES: [usize; 10] = [1, 10, 25, 30, 45, 60, 70, 80, 90, 99];

fn hit(path: &Path, percent: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() * percent / 100;
    for byte in bytes.iter_mut().skip(at).take(64) {
        *byte = 0xa5;
    }
    fs::write(path, bytes).unwrap();
}

fn store_files(home: &Home) -> Vec<PathBuf> {
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

/// Checks that the command exits by itself with one of the documented codes.
fn survives(home: &Home, args: &[&str]) -> i32 {
    let output = home.run(args);
    let code = output.status.code();
    assert!(
        code.is_some_and(|code| [0, 1, 3, 5].contains(&code)),
        "{args:?}: {output:#?}"
    );
    assert!(!output.stderr.contains("panicked"), "{output:#?}");
    code.unwrap()
}

#[test]
fn no_hit_crashes_anything_and_repair_leaves_a_sound_store() {
    both(|home| {
        for n in 0..4 {
            let id = home.say(&format!("echo talk {n}"));
            home.say_in(&id, "count to 100");
        }
        let sound: Vec<(PathBuf, Vec<u8>)> = store_files(home)
            .into_iter()
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        let mut unsound = Vec::new();
        for percent in PLACES {
            let home = &Home::with(home.backend());
            for (path, bytes) in &sound {
                let name = path.strip_prefix(original(path)).unwrap();
                let path = home.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            if home.backend() == Backend::Files {
                let marker = home.files_folder().join("tertulia-store.json");
                fs::write(marker, "{\"format\":1,\"backend\":\"files\"}\n").unwrap();
            }
            hit(&store_files(home)[0], percent);
            survives(home, &["doctor"]);
            for args in [
                &["list"][..],
                &["show"],
                &["search", "talk"],
                &["export"],
                &["log"],
            ] {
                survives(home, args);
            }
            let repair = home.run(&["doctor", "--repair"]);
            let after = survives(home, &["doctor"]);
            if !matches!((repair.status.code(), after), (Some(0 | 1), 0)) {
                unsound.push(format!("hit at {percent} %: {repair:?}"));
            } else {
                let output = home.run(&["chat", "-p", "echo on"]).ok();
                assert_eq!(output.stdout, "on\n");
            }
        }
        assert_eq!(unsound, Vec::<String>::new());
    });
}

/// Returns the home that contains a path.
fn original(path: &Path) -> &Path {
    path.ancestors()
        .find(|folder| folder.join("project").is_dir())
        .unwrap()
}

#[test]
fn a_store_that_was_cut_short_does_not_crash_anything() {
    both(|home| {
        home.say("echo one");
        home.say("echo two");
        for path in store_files(home) {
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }
        for args in [
            &["doctor"][..],
            &["list"],
            &["show"],
            &["search", "one"],
            &["doctor", "--repair"],
        ] {
            survives(home, args);
        }
    });
}

#[test]
fn damage_to_what_is_derived_takes_nothing_away() {
    both(|home| {
        let id = home.say("echo tomato");
        home.run(&["search", "tomato"]).ok();
        let derived: Vec<PathBuf> = match home.backend() {
            Backend::Sqlite => vec![PathBuf::from(format!(
                "{}-search",
                home.database().display()
            ))],
            Backend::Files => files_below(&home.files_folder().join(".index"))
                .into_iter()
                .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
                .collect(),
        };
        assert!(!derived.is_empty());
        for path in &derived {
            fs::write(path, "garbage ".repeat(500)).unwrap();
        }
        assert_eq!(home.said(&id), ["echo tomato", "tomato"]);
        assert_eq!(home.all().len(), 1);
        assert_eq!(home.run(&["chat", "-p", "echo on"]).ok().stdout, "on\n");
        survives(home, &["search", "tomato"]);
        home.run(&["doctor", "--repair"]).repaired();
        home.run(&["search", "tomato"]).ok().notes("2 hits");
        home.run(&["doctor"]).ok();
    });
}

/// Creates two sessions, the second with metadata in the database that is not valid text.
fn with_a_damaged_row(home: &Home) -> [String; 2] {
    let ids = [home.say("echo potato"), home.say("echo tomato")];
    let mut bytes = fs::read(home.database()).unwrap();
    let title = b"\"title\":\"echo tomato\"";
    let at = bytes
        .windows(title.len())
        .position(|window| window == title)
        .expect("a summary in the database");
    bytes[at + 9..at + 13].fill(0xa5);
    fs::write(home.database(), bytes).unwrap();
    ids
}

#[test]
fn a_damaged_list_row_does_not_hide_the_other_sessions() {
    let home = Home::new();
    let [other, _] = with_a_damaged_row(&home);
    assert_eq!(home.said(&other), ["echo potato", "potato"]);
    home.run(&["search", "potato"]).ok().notes("2 hits");
    let output = home.run(&["list"]);
    output.says(&crate::home::short(&other));
    home.run(&["-r", &other, "-p", "echo on"]).ok();
}

#[test]
fn a_damaged_list_row_is_derived_anew() {
    for remedy in [&["doctor", "--repair"], &["store", "rebuild"]] {
        let home = Home::new();
        let [_, hurt] = with_a_damaged_row(&home);
        home.run(&["doctor"]).code(5).says(&hurt);
        home.run(remedy).ok();
        home.run(&["doctor"]).ok();
        assert_eq!(home.said(&hurt), ["echo tomato", "tomato"]);
        assert_eq!(home.all()[0]["title"], "echo tomato");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_sound_store() {
    both(|home| {
        let mut killed = 0;
        for number in (1..60).step_by(4) {
            let prepared = home.prepare(&["chat", "-p", "count to 2000"]);
            let calls = "openat,pwrite64,write,fdatasync,fsync,rename,unlink,ftruncate";
            killed += usize::from(prepared.killed_at(calls, number));
            home.run(&["doctor"]).ok();
        }
        assert!(killed > 0);
        for session in home.all() {
            let said = home.said(session["id"].as_str().unwrap());
            assert_eq!(said[0], "count to 2000");
        }
        assert_eq!(home.run(&["chat", "-p", "echo on"]).ok().stdout, "on\n");
    });
}
