//! Files that are not a store, or not one for this version: rejected without changing a byte.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{Backend, Home, both, files_below};

/// Every command that opens the store.
const COMMANDS: [&[&str]; 8] = [
    &["chat", "-p", "hello"],
    &["list"],
    &["show"],
    &["search", "x"],
    &["doctor"],
    &["doctor", "--repair"],
    &["store", "info"],
    &["undo"],
];

fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = files_below(folder)
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Checks that every command rejects the store and leaves it unchanged.
fn refused(home: &Home, flags: &[&str], words: &str) {
    let before = snapshot(home.path());
    for command in COMMANDS {
        let args = [flags, command].concat();
        home.run(&args).code(5).notes(words);
        assert_eq!(snapshot(home.path()), before, "{args:?}");
    }
}

#[test]
fn a_file_that_is_no_database() {
    let home = Home::new();
    let path = home.path().join("notes.txt");
    fs::write(&path, "my notes, not a database\n".repeat(50)).unwrap();
    let url = format!("sqlite:{}", path.display());
    refused(&home, &["--store", &url], "notes.txt");
    fs::write(&path, "short").unwrap();
    refused(&home, &["--store", &url], "notes.txt");
}

#[test]
fn a_database_of_another_program() {
    let home = Home::new();
    home.say("hello");
    let path = home.database();
    let mut bytes = fs::read(&path).unwrap();
    bytes[68..72].copy_from_slice(&[0; 4]);
    fs::remove_dir_all(home.path().join(".local")).unwrap();
    let foreign = home.path().join("foreign.db");
    fs::write(&foreign, bytes).unwrap();
    let url = format!("sqlite:{}", foreign.display());
    refused(&home, &["--store", &url], "another program");
}

#[test]
fn a_newer_format() {
    both(|home| {
        home.say("hello");
        match home.backend() {
            Backend::Sqlite => {
                let mut bytes = fs::read(home.database()).unwrap();
                bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
                fs::write(home.database(), bytes).unwrap();
            }
            Backend::Files => {
                let marker = home.files_folder().join("tertulia-store.json");
                let text = fs::read_to_string(&marker).unwrap();
                fs::write(&marker, text.replace("\"format\":1", "\"format\":99")).unwrap();
            }
        }
        refused(home, &[], "99");
        home.run(&["list"]).code(5).notes("upgrade");
        let error = home.run(&["list", "--json"]).code(5).error();
        assert_eq!(error["kind"], "invalid");
    });
}

#[test]
fn a_folder_of_other_files() {
    let home = Home::new();
    fs::write(home.folder("docs").join("letter.txt"), "dear").unwrap();
    let url = format!("files:{}", home.path().join("docs").display());
    refused(&home, &["--store", &url], "docs");
}

#[test]
fn a_folder_for_a_file_and_a_file_for_a_folder() {
    let home = Home::new();
    let folder = home.folder("docs");
    fs::write(home.path().join("file"), "x").unwrap();
    refused(
        &home,
        &["--store", &format!("sqlite:{}", folder.display())],
        "files:",
    );
    let file = home.path().join("file").display().to_string();
    refused(&home, &["--store", &format!("files:{file}")], "sqlite:");
}

#[test]
fn a_marker_that_cannot_be_read() {
    let home = Home::with(Backend::Files);
    home.say("hello");
    fs::write(home.files_folder().join("tertulia-store.json"), "{}").unwrap();
    refused(&home, &[], "tertulia-store.json");
}

#[test]
fn a_name_that_is_no_store() {
    let home = Home::new();
    for url in ["nonsense", "mysql:x", "sqlite:", "files:", ""] {
        let output = home.run(&["--store", url, "list"]).code(2);
        output.notes("sqlite:FILE");
    }
}

#[test]
fn a_place_that_cannot_be_written() {
    let home = Home::new();
    for url in ["sqlite:/proc/nowhere/t.db", "files:/proc/nowhere"] {
        let output = home.run(&["--store", url, "chat", "-p", "hello"]).code(1);
        output.notes("/proc/nowhere");
    }
}
