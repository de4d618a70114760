//! A project keeps its sessions, whatever happens to its folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

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

/// Returns the sessions that a command finds in a folder, the newest first.
fn listed(home: &Home, folder: &Path, flags: &[&str]) -> Vec<String> {
    let args = [&["list", "--json"], flags].concat();
    let listing = home.prepare(&args).folder(folder).run().ok().json();
    let sessions = listing["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_worktree_can_be_listed_alone() {
    let home = &Home::new();
    let folder = home.project();
    git(home, &folder, &["init", "-q"]);
    let commit = ["commit", "-q", "--allow-empty", "-m", "one"];
    git(home, &folder, &commit);
    git(home, &folder, &["worktree", "add", "-q", "../tree"]);
    git(home, &folder, &["worktree", "add", "-q", "trees/inner"]);
    let below = folder.join("src");
    fs::create_dir(&below).unwrap();
    let tree = home.path().join("tree");
    let inner = folder.join("trees/inner");
    let of_main = [say(home, &folder), say(home, &below)];
    let of_tree = say(home, &tree);
    let of_inner = say(home, &inner);
    let all = [&of_inner, &of_tree, &of_main[1], &of_main[0]].map(String::clone);
    for place in [&folder, &below, &tree, &inner] {
        finds(home, place, &all);
    }
    let main = [of_main[1].clone(), of_main[0].clone()];
    assert_eq!(listed(home, &folder, &["--worktree"]), main);
    assert_eq!(listed(home, &below, &["--worktree"]), main);
    assert_eq!(listed(home, &tree, &["--worktree"]), [of_tree.as_str()]);
    assert_eq!(listed(home, &inner, &["--worktree"]), [of_inner]);
    let hits = home
        .prepare(&["search", "precious", "--worktree", "--json"])
        .folder(&tree)
        .run()
        .ok()
        .json();
    assert_eq!(hits["total"], 2, "{hits}");
    home.run(&["list", "--worktree", "--all"]).code(2);
    git(home, &folder, &["worktree", "add", "-q", "../bare"]);
    home.prepare(&["list", "--worktree"])
        .folder(home.path().join("bare"))
        .run()
        .ok()
        .notes("those of the project's other worktrees");
    // A moved worktree keeps its sessions, and does not get those of others.
    let moved = home.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    assert_eq!(listed(home, &moved, &["--worktree"]), main);
    git(
        home,
        &moved,
        &["worktree", "repair", "../tree", "trees/inner"],
    );
    finds(home, &tree, &all);
    git(home, &moved, &["worktree", "remove", "../tree"]);
    finds(home, &moved, &all);
    assert_eq!(listed(home, &moved, &["--worktree"]), main);
}

/// Imports a session of Claude Code that began in a folder.
fn import(home: &Home, name: &str, folder: &Path) -> String {
    let line = json!({
        "type": "user", "uuid": format!("{name}-1"), "parentUuid": null, "sessionId": name,
        "cwd": folder, "timestamp": "2026-01-02T03:04:05Z",
        "message": { "role": "user", "content": "precious" },
    });
    let file = home.path().join(format!("{name}.jsonl"));
    fs::write(&file, format!("{line}\n")).unwrap();
    let file = file.display().to_string();
    home.run(&["import", &file]).ok();
    home.show(name)["id"].as_str().unwrap().to_owned()
}

#[test]
fn imported_sessions_follow_their_folder() {
    let home = &Home::new();
    // The remote changes, and the folder is renamed, before a program runs there.
    let folder = home.folder("repository");
    git(home, &folder, &["init", "-q"]);
    let remote = ["remote", "add", "origin", "https://h.org/old"];
    git(home, &folder, &remote);
    let first = import(home, "first", &folder);
    let remote = ["remote", "set-url", "origin", "https://h.org/new"];
    git(home, &folder, &remote);
    assert_eq!(listed(home, &folder, &[]), [first.as_str()]);
    let plain = home.folder("plain");
    let second = import(home, "second", &plain);
    if fs::metadata(&plain).unwrap().created().is_ok() {
        let moved = home.path().join("renamed");
        fs::rename(&plain, &moved).unwrap();
        assert_eq!(listed(home, &moved, &[]), [second.as_str()]);
        assert_eq!(listed(home, &moved, &["--worktree"]), [second]);
    }
    // Without the list of known folders, the sessions say what is known.
    fs::remove_file(home.path().join(".local/share/tertulia/projects.json")).unwrap();
    assert_eq!(listed(home, &folder, &[]), [first]);
}

#[test]
fn imported_sessions_of_a_folder_that_is_gone_are_in_its_project() {
    let home = &Home::new();
    let folder = home.folder("repository");
    git(home, &folder, &["init", "-q"]);
    git(
        home,
        &folder,
        &["commit", "-q", "--allow-empty", "-m", "one"],
    );
    git(home, &folder, &["worktree", "add", "-q", "../tree"]);
    let tree = home.path().join("tree");
    let known = [say(home, &tree), say(home, &folder)];
    git(home, &folder, &["worktree", "remove", "--force", "../tree"]);
    let moved = home.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    finds(home, &moved, &[known[1].clone(), known[0].clone()]);
    // Programs recorded the paths that are gone, and folders below them.
    let imported = [
        import(home, "of-tree", &tree),
        import(home, "below-tree", &tree.join("src")),
        import(home, "of-folder", &folder),
        import(home, "below-folder", &folder.join("src")),
    ];
    let mut found = listed(home, &moved, &[]);
    let mut expected = [&known[..], &imported].concat();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let other = import(home, "of-another", &home.path().join("gone"));
    assert!(!listed(home, &moved, &[]).contains(&other));
    let shown = home.show("of-another");
    assert_eq!(
        shown["project"],
        format!("dir:{}/gone", home.path().display())
    );
}
