//! A project keeps its sessions, whatever happens to its folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::home::Home;

fn git(home: &Home, folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(args)
        .current_dir(folder)
        .env("HOME", home.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// Checks that every way to find sessions in a folder finds these, the newest first.
fn finds(home: &Home, folder: &Path, ids: &[String]) {
    let listed = home
        .prepare(&["list", "--json"])
        .folder(folder)
        .run()
        .ok()
        .json();
    let found: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["id"].as_str().unwrap())
        .collect();
    assert_eq!(found, ids, "{listed}");
    assert_eq!(listed["hidden"], 0, "{listed}");
    let newest = home
        .prepare(&["show", "@", "--json"])
        .folder(folder)
        .run()
        .ok()
        .json();
    assert_eq!(newest["id"], ids[0].as_str());
    let hits = home
        .prepare(&["search", "precious", "--json"])
        .folder(folder)
        .run()
        .ok()
        .json();
    assert_eq!(hits["total"], ids.len() * 2, "{hits}");
}

fn say(home: &Home, folder: &Path) -> String {
    let answer = home
        .prepare(&["chat", "-p", "echo precious", "--output-format", "json"])
        .folder(folder)
        .run()
        .ok()
        .json();
    answer["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn git_and_moving_hide_no_session() {
    let home = &Home::new();
    let mut folder = home.project();
    let mut ids = vec![say(home, &folder)];
    let grow = |folder: &Path, ids: &mut Vec<String>| {
        finds(home, folder, ids);
        ids.insert(0, say(home, folder));
        finds(home, folder, ids);
    };
    git(home, &folder, &["init", "-q"]);
    grow(&folder, &mut ids);
    git(
        home,
        &folder,
        &["commit", "-q", "--allow-empty", "-m", "one"],
    );
    grow(&folder, &mut ids);
    git(
        home,
        &folder,
        &["remote", "add", "origin", "git@h.org:a/talk.git"],
    );
    grow(&folder, &mut ids);
    git(
        home,
        &folder,
        &["remote", "set-url", "origin", "https://H.org/a/talk"],
    );
    finds(home, &folder, &ids);
    git(
        home,
        &folder,
        &["remote", "set-url", "origin", "https://new.org/talk"],
    );
    grow(&folder, &mut ids);
    let moved = home.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    folder = moved;
    grow(&folder, &mut ids);
    git(home, &folder, &["worktree", "add", "-q", "../tree"]);
    finds(home, &home.path().join("tree"), &ids);
    // The list of known folders can be deleted: sessions record the project themselves.
    fs::remove_file(home.path().join(".local/share/tertulia/projects.json")).unwrap();
    git(
        home,
        &folder,
        &["remote", "set-url", "origin", "https://third.org/talk"],
    );
    finds(home, &folder, &ids);
    home.prepare(&["chat", "-c", "-p", "echo more"])
        .folder(&folder)
        .run()
        .ok();
}

#[test]
fn a_folder_without_git_may_be_renamed() {
    let home = &Home::new();
    let folder = home.folder("plain");
    if fs::metadata(&folder).unwrap().created().is_err() {
        // Without a creation time a folder cannot be told from another one.
        return;
    }
    let ids = [say(home, &folder)];
    let moved = home.path().join("renamed");
    fs::rename(&folder, &moved).unwrap();
    finds(home, &moved, &ids);
    // A folder created later is another project.
    let other = home.folder("other");
    let listed = home
        .prepare(&["list", "--json"])
        .folder(&other)
        .run()
        .ok()
        .json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 0, "{listed}");
}

#[test]
fn a_repository_of_the_whole_home_does_not_unite_what_is_in_it() {
    let home = Home::new();
    git(&home, home.path(), &["init", "-q"]);
    let (one, two) = (home.folder("one"), home.folder("two"));
    let ids = [say(&home, &one)];
    let listed = home
        .prepare(&["list", "--json"])
        .folder(&two)
        .run()
        .ok()
        .json();
    assert_eq!(listed["hidden"], 1, "{listed}");
    finds(&home, &one, &ids);
}
