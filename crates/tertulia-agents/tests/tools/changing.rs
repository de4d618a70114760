//! Writing, editing and deleting.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;
use tertulia_agents::approval::Risk;

use super::world;

#[tokio::test]
async fn a_file_is_written_with_its_folders() {
    let world = world();
    let write = json!({"path": "a/b/c.txt", "content": "añ€\ntwo"});
    let request = world.request("file_write", write.clone());
    assert_eq!(
        request.preview,
        "--- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+añ€\n+two\n\\ No newline at end of file"
    );
    assert!(world.names().is_empty(), "asking changes nothing");
    let said = world.done("file_write", write).await;
    assert_eq!(said, "wrote 2 lines to a/b/c.txt");
    assert_eq!(world.read("a/b/c.txt"), "añ€\ntwo");
    assert_eq!(fs::read_dir(world.path("a/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_is_replaced_as_a_whole_and_keeps_its_rights() {
    let world = world();
    world.write("run.sh", "old\n");
    let mode = |mode| fs::set_permissions(world.path("run.sh"), PermissionsExt::from_mode(mode));
    mode(0o751).unwrap();
    let before = fs::metadata(world.path("run.sh")).unwrap();
    let held = fs::File::open(world.path("run.sh")).unwrap();
    let write = json!({"path": "run.sh", "content": "new\n"});
    let preview = world.request("file_write", write.clone()).preview;
    assert_eq!(preview, "--- run.sh\n+++ run.sh\n@@ -1 +1 @@\n-old\n+new");
    world.done("file_write", write).await;
    let after = fs::metadata(world.path("run.sh")).unwrap();
    assert_eq!(after.mode() & 0o7777, 0o751);
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    // A reader that has the old file open still reads it whole.
    assert_ne!(after.ino(), before.ino());
    assert_eq!(std::io::read_to_string(held).unwrap(), "old\n");
    assert_eq!(world.names(), ["run.sh"]);
}

#[tokio::test]
async fn what_cannot_be_written_leaves_nothing_behind() {
    let world = world();
    world.write("file", "");
    fs::create_dir(world.path("folder")).unwrap();
    let check = async |path: &str, words: &[&str]| {
        let write = json!({"path": path, "content": "x"});
        world.fails("file_write", write, words).await;
    };
    check("folder", &["folder", "not a file"]).await;
    check(".", &["work folder itself"]).await;
    check("file/below", &["cannot write", "Not a directory"]).await;
    check(&"x".repeat(300), &["too long"]).await;
    assert_eq!(world.names(), ["file", "folder"]);
    assert_eq!(fs::read_dir(world.path("folder")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_replaced_is_shown_even_if_it_is_no_text() {
    let world = world();
    world.write("picture", b"\x89PNG\0\0");
    let write = json!({"path": "picture", "content": "text\n"});
    let preview = world.request("file_write", write).preview;
    assert!(
        preview.starts_with("picture (6 bytes) is too large or no text"),
        "{preview}"
    );
    assert!(preview.ends_with("+text"), "{preview}");
}

#[tokio::test]
async fn a_preview_hides_nothing() {
    let world = world();
    let write = json!({"path": "a", "content": "evil\u{1b}[2K\rgood\u{202e}\n"});
    let preview = world.request("file_write", write).preview;
    assert!(
        preview.contains("+evil\\u{1b}[2K\\rgood\\u{202e}"),
        "{preview}"
    );
    let write = json!({"path": "b\u{1b}[2K", "content": ""});
    let preview = world.request("file_write", write).preview;
    assert_eq!(preview, "b\\u{1b}[2K becomes an empty file");
    let shell = json!({"command": "rm -r x\u{1b}[8D\u{8}\u{200b}\nls"});
    let preview = world.request("shell", shell).preview;
    assert_eq!(preview, "rm -r x\\u{1b}[8D\\u{8}\\u{200b}\nls");
    let read = json!({"path": "a\nb"});
    assert_eq!(world.request("file_read", read).preview, "read a\\nb");
}

#[tokio::test]
async fn a_text_is_replaced_where_it_is() {
    let world = world();
    world.write("a.rs", "fn ñ() {\n    one();\n}\nlast");
    let edit =
        json!({"path": "a.rs", "old_text": "    one();\n", "new_text": "    two();\n    3;\n"});
    assert_eq!(
        world.request("file_edit", edit.clone()).preview,
        "--- a.rs\n+++ a.rs\n@@ -1,4 +1,5 @@\n fn ñ() {\n-    one();\n+    two();\n+    3;\n }\n last\n\
         \\ No newline at end of file"
    );
    let said = world.done("file_edit", edit.clone()).await;
    assert_eq!(said, "replaced 1 place in a.rs, in line 2");
    assert_eq!(world.read("a.rs"), "fn ñ() {\n    two();\n    3;\n}\nlast");
    // After the edit, the old text is gone.
    world.refused("file_edit", edit, &["a.rs", "not found"]);
}

#[tokio::test]
async fn a_text_that_is_there_twice_must_be_meant() {
    let world = world();
    world.write("a", "x\ny\nx\n");
    let once = json!({"path": "a", "old_text": "x", "new_text": "z"});
    world.refused("file_edit", once.clone(), &["2 times", "lines 1, 3"]);
    world.fails("file_edit", once, &["2 times"]).await;
    let all = json!({"path": "a", "old_text": "x", "new_text": "z", "replace_all": true});
    let said = world.done("file_edit", all).await;
    assert_eq!(said, "replaced 2 places in a");
    assert_eq!(world.read("a"), "z\ny\nz\n");
}

#[tokio::test]
async fn line_ends_stay_as_they_are() {
    let world = world();
    world.write("dos", "\u{feff}one\r\ntwo\r\nthree\r\n");
    let edit = json!({"path": "dos", "old_text": "one\ntwo\n", "new_text": "1\n2\n"});
    let preview = world.request("file_edit", edit.clone()).preview;
    assert!(!preview.contains("\\r"), "{preview}");
    world.done("file_edit", edit).await;
    assert_eq!(world.read("dos"), "\u{feff}1\r\n2\r\nthree\r\n");
}

#[tokio::test]
async fn an_edit_meets_the_file_as_it_is_by_then() {
    let world = world();
    world.write("a", "one\ntwo\n");
    let edit = json!({"path": "a", "old_text": "two", "new_text": "2"});
    world.request("file_edit", edit.clone());
    world.write("a", "zero\none\ntwo\n");
    world.done("file_edit", edit.clone()).await;
    assert_eq!(world.read("a"), "zero\none\n2\n");
    world.write("a", "gone\n");
    world.fails("file_edit", edit, &["not found"]).await;
    assert_eq!(world.read("a"), "gone\n");
}

#[tokio::test]
async fn only_text_is_edited() {
    let world = world();
    world.write("binary", b"a\0b");
    world.write("latin", b"caf\xe9");
    let check = |path: &str, words: &[&str]| {
        let edit = json!({"path": path, "old_text": "a", "new_text": "b"});
        world.refused("file_edit", edit, words);
    };
    check("binary", &["binary"]);
    check("latin", &["not UTF-8"]);
    check("none", &["no file none"]);
    check(".", &["work folder itself"]);
}

#[tokio::test]
async fn a_file_is_deleted() {
    let world = world();
    world.write("a.txt", "one\n\u{1b}[2Jtwo\n");
    world.write("folder/b", "");
    let delete = json!({"path": "a.txt"});
    assert_eq!(
        world.request("file_delete", delete.clone()).preview,
        "delete a.txt (12 bytes), which begins:\n| one\n| \\u{1b}[2Jtwo"
    );
    let said = world.done("file_delete", delete.clone()).await;
    assert_eq!(said, "deleted a.txt (12 bytes)");
    world.fails("file_delete", delete, &["no file a.txt"]).await;
    let folder = json!({"path": "folder"});
    world.refused("file_delete", folder.clone(), &["it is a folder"]);
    world
        .fails("file_delete", folder, &["it is a folder"])
        .await;
    assert_eq!(world.names(), ["folder"]);
}

#[tokio::test]
async fn files_that_programs_act_on_are_more_than_an_edit() {
    let world = world();
    world.write("notes.md", "");
    world.write(".mcp.json", "{}");
    symlink("notes.md", world.path("AGENTS.md")).unwrap();
    symlink(".mcp.json", world.path("plain.json")).unwrap();
    let absolute = world.path("sub/.vscode/tasks.json").display().to_string();
    let check = |path: &str, is_edit: bool| {
        let request = world.request("file_write", json!({"path": path, "content": "x"}));
        assert_eq!(request.is_edit, is_edit, "{path}");
        let risk = if is_edit { Risk::Medium } else { Risk::High };
        assert_eq!(request.risk, risk, "{path}");
    };
    check("notes.md", true);
    check("src/main.rs", true);
    check("Sub/Claude.MD", false);
    check(".agent-chatter/team-config/a.json", false);
    check(".cargo/config.toml", false);
    check(&absolute, false);
    // By either name.
    check("AGENTS.md", false);
    check("plain.json", false);
}
