use std::fs;

use tempfile::TempDir;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions};
use tertulia_testkit::clock::still_clock;

use super::*;

/// A working directory in a temporary folder.
struct World {
    _folder: TempDir,
    workspace: Workspace,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().join("work");
        fs::create_dir(&cwd).unwrap();
        let store = std::sync::Arc::new(SqliteStore::in_memory().unwrap());
        World {
            _folder: folder,
            workspace: Workspace {
                sessions: Sessions::new(store, still_clock(1), Redaction::On),
                project: "here".into(),
                cwd,
                home: None,
                zone: jiff::tz::TimeZone::UTC,
                prices: Default::default(),
            },
        }
    }

    fn cwd(&self) -> &Path {
        &self.workspace.cwd
    }
}

fn files(world: &World, written: &str) -> Vec<String> {
    // A long time limit, so that the result does not depend on the speed of the test.
    let candidates = below(&world.workspace, written, Duration::from_secs(600));
    for candidate in &candidates {
        assert_eq!(candidate.goes_on, candidate.insert.ends_with('/'));
    }
    candidates
        .into_iter()
        .map(|candidate| candidate.insert)
        .collect()
}

fn put(world: &World, names: &[&str]) {
    for name in names {
        let path = world.cwd().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
}

#[test]
fn files_are_named_as_they_would_be_written() {
    let world = World::new();
    put(
        &world,
        &[
            "a.md",
            "src/main.rs",
            "src/deep/er/x.rs",
            "out/big.o",
            ".git/config",
            ".env",
            "né 漢.md",
            "bad\nname",
        ],
    );
    fs::write(world.cwd().join(".gitignore"), "out/\n").unwrap();
    std::os::unix::fs::symlink("src", world.cwd().join("link")).unwrap();
    assert_eq!(
        files(&world, ""),
        [
            "a.md",
            "link/",
            "né 漢.md",
            "src/",
            "src/deep/",
            "src/deep/er/",
            "src/main.rs",
            "src/deep/er/x.rs"
        ]
    );
    assert_eq!(
        files(&world, "src/ma"),
        [
            "src/deep/",
            "src/main.rs",
            "src/deep/er/",
            "src/deep/er/x.rs"
        ]
    );
    assert_eq!(files(&world, "./src/deep/")[0], "./src/deep/er/");
    // Parts of a path.
    assert!(files(&world, "sr/ma").contains(&"src/main.rs".to_owned()));
    let hidden = files(&world, ".e");
    assert!(
        hidden.contains(&".env".to_owned()) && !hidden.iter().any(|name| name.contains(".git/"))
    );
    // Outside the working directory only the folder itself is listed.
    assert_eq!(files(&world, "../"), ["../work/"]);
    let absolute = format!("{}/sr", world.cwd().display());
    assert!(files(&world, &absolute).contains(&format!("{}/src/main.rs", world.cwd().display())));
    assert!(files(&world, "/no/such/folder/x").len() == files(&world, "").len());
}

#[test]
fn files_are_looked_for_no_longer_than_one_waits() {
    let world = World::new();
    put(&world, &["a.md"]);
    let found = below(&world.workspace, "a", Duration::ZERO);
    assert!(found.is_empty());
}

#[test]
fn a_folder_of_very_many_files_is_not_gone_through_to_its_end() {
    let world = World::new();
    fs::create_dir(world.cwd().join("many")).unwrap();
    for number in 0..6000 {
        fs::write(world.cwd().join(format!("many/{number}")), "").unwrap();
    }
    put(&world, &["many/the-needle", "zebra"]);
    let found = files(&world, "needle");
    assert!(found.len() <= 6003);
    assert!(
        found.contains(&"zebra".to_owned()),
        "what is near comes first"
    );
    assert!(
        found.contains(&"many/the-needle".to_owned()),
        "what fits is always told"
    );
    assert!(
        found.len() < 6000,
        "what does not fit is left out beyond some"
    );
}
