//! Tools neither read, change nor wait for anything outside the folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use super::{World, world};

/// One call of each tool that takes a path.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("file_read", json!({"path": path})),
        ("directory_list", json!({"path": path})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("grep", json!({"pattern": "secret", "path": path})),
        ("file_write", json!({"path": path, "content": "changed"})),
        (
            "file_edit",
            json!({"path": path, "old_text": "secret", "new_text": "changed"}),
        ),
        ("file_delete", json!({"path": path})),
    ]
}

/// Asserts that nothing beside the work folder has changed.
fn assert_untouched(world: &World) {
    let out = world.dir.path().join("out");
    assert_eq!(
        fs::read_to_string(out.join("secret")).unwrap(),
        "secret words\n"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    assert_eq!(fs::read_dir(world.dir.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn no_path_leads_out() {
    let world = world();
    world.write("a/b", "");
    let out = world.dir.path().join("out");
    symlink(&out, world.path("folder")).unwrap();
    symlink("../out/secret", world.path("file")).unwrap();
    symlink("../out/new", world.path("dangling")).unwrap();
    symlink("folder", world.path("twice")).unwrap();
    let absolute = out.join("secret");
    for path in [
        "..",
        "../out/secret",
        "../new",
        "a/../../out/secret",
        "folder",
        "folder/secret",
        "folder/new/file",
        "twice/secret",
        "twice/../out/secret",
        "file",
        "dangling",
        absolute.to_str().unwrap(),
        "/etc/passwd",
        "/proc/self/cwd/../../../../../../../../etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
    ] {
        for (name, arguments) in calls(path) {
            let words = ["outside the work folder"];
            world.refused(name, arguments.clone(), &words);
            world.fails(name, arguments, &words).await;
        }
    }
    assert_untouched(&world);
}

#[tokio::test]
async fn links_inside_are_followed() {
    let world = world();
    world.write("real/a.txt", "secret one\n");
    symlink("real", world.path("folder")).unwrap();
    symlink("real/a.txt", world.path("file")).unwrap();
    let read = json!({"path": "folder/a.txt"});
    assert_eq!(world.done("file_read", read).await, "secret one\n");
    let found = world
        .done("grep", json!({"pattern": "one", "path": "folder"}))
        .await;
    assert_eq!(found, "real/a.txt:1:secret one");
    // The target is written, and the link stays a link.
    world
        .done("file_write", json!({"path": "file", "content": "two\n"}))
        .await;
    assert_eq!(world.read("real/a.txt"), "two\n");
    assert!(world.path("file").is_symlink());
    world
        .done("file_write", json!({"path": "folder/b", "content": "b"}))
        .await;
    assert_eq!(world.read("real/b"), "b");
    // The absolute path names the same file.
    let whole = world.path("real/b");
    assert_eq!(world.done("file_read", json!({"path": whole})).await, "b");
}

#[tokio::test]
async fn what_a_link_means_is_not_guessed() {
    let world = world();
    world.write("real", "x\n");
    symlink("real", world.path("link")).unwrap();
    symlink("nothing", world.path("dangling")).unwrap();
    world
        .fails("file_delete", json!({"path": "link"}), &["is a link"])
        .await;
    assert!(world.path("link").exists());
    let write = json!({"path": "dangling", "content": "x"});
    world.refused("file_write", write.clone(), &["dangling link"]);
    world.fails("file_write", write, &["dangling link"]).await;
    let below = json!({"path": "dangling/x", "content": "x"});
    world.fails("file_write", below, &["dangling link"]).await;
    world
        .fails("file_read", json!({"path": "dangling"}), &["no file"])
        .await;
    assert_eq!(world.names(), ["dangling", "link", "real"]);
}

#[tokio::test]
async fn what_is_no_file_never_blocks() {
    let world = world();
    let pipe = std::process::Command::new("mkfifo")
        .arg(world.path("pipe"))
        .status();
    assert!(pipe.unwrap().success());
    let _socket = UnixListener::bind(world.path("socket")).unwrap();
    for (path, what) in [("pipe", "FIFO"), ("socket", "socket")] {
        for (name, arguments) in calls(path) {
            if matches!(name, "directory_list" | "glob") {
                world.fails(name, arguments, &["Not a directory"]).await;
            } else {
                world
                    .fails(name, arguments, &[what, "not a regular file"])
                    .await;
            }
        }
    }
    let listed = world.done("directory_list", json!({})).await;
    assert_eq!(
        listed,
        "pipe (not a regular file)\nsocket (not a regular file)"
    );
    let found = world.done("grep", json!({"pattern": "x"})).await;
    assert_eq!(found, "[no matches]");
    // The same for a `.gitignore`.
    fs::rename(world.path("pipe"), world.path(".gitignore")).unwrap();
    world.write("sub/a", "x\n");
    symlink("/dev/zero", world.path("sub/.gitignore")).unwrap();
    let found = world.done("grep", json!({"pattern": "x"})).await;
    assert_eq!(found, "sub/a:1:x");
}

#[tokio::test]
async fn deep_trees_and_circles_have_an_end() {
    let world = world();
    let deep = vec!["d"; 150].join("/");
    world.write(&format!("{deep}/leaf"), "x\n");
    symlink(world.path(""), world.path("d/circle")).unwrap();
    let found = world.done("glob", json!({"pattern": "leaf"})).await;
    assert_eq!(
        found,
        "[no files match]\n[deeper than 100 levels: not all were seen]"
    );
    let found = world.done("grep", json!({"pattern": "x"})).await;
    assert!(found.contains("[deeper than 100 levels"), "{found}");
    assert!(!found.contains("too many"), "{found}");
    let found = world
        .done("glob", json!({"pattern": "leaf", "path": deep}))
        .await;
    assert!(found.ends_with("/leaf"), "{found}");
}
