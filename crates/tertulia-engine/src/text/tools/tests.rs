use serde_json::json;
use tertulia_agents::approval::Risk;

use super::*;

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

fn request(name: &str, arguments: Value, preview: &str) -> ToolRequest {
    ToolRequest {
        call: call(name, arguments),
        risk: Risk::Medium,
        preview: preview.to_owned(),
        folder: String::new(),
        key: name.to_owned(),
        is_edit: false,
    }
}

#[test]
fn a_call_is_told_by_verb_and_object() {
    let check = |name: &str, arguments: Value, expected: &str| {
        let (verb, object) = heading(&call(name, arguments));
        assert_eq!(format!("{verb} {object}").trim_end(), expected, "{name}");
    };
    check(
        "file_edit",
        json!({ "path": "src/main.rs" }),
        "Edit src/main.rs",
    );
    check("file_read", json!({ "path": "notes.md" }), "Read notes.md");
    check(
        "file_write",
        json!({ "path": "a", "content": "x" }),
        "Write a",
    );
    check("file_delete", json!({ "path": "a" }), "Delete a");
    check("directory_list", json!({ "path": "src" }), "List src");
    check("glob", json!({ "pattern": "**/*.rs" }), "Find **/*.rs");
    check(
        "grep",
        json!({ "pattern": "fn", "path": "src" }),
        "Search fn in src",
    );
    check(
        "shell",
        json!({ "command": "cargo test" }),
        "Run cargo test",
    );
    check("shell", json!({ "command": "cd a\nls" }), "Run cd a …");
    check(
        "shell",
        json!({ "command": "ls\u{1b}[2K" }),
        "Run ls\\u{1b}[2K",
    );
    // Vendors.
    check(
        "Edit",
        json!({ "file_path": "/w/a.rs", "old_string": "x" }),
        "Edit /w/a.rs",
    );
    check(
        "Bash",
        json!({ "command": "ls", "description": "Looks" }),
        "Run ls",
    );
    check(
        "command_execution",
        json!({ "command": ["ls", "-l"] }),
        "Run ls -l",
    );
    let changes =
        json!({ "changes": [{ "path": "a", "kind": "add" }, { "path": "b", "kind": "add" }] });
    check("file_change", changes, "Edit a and 1 more");
    check(
        "WebSearch",
        json!({ "query": "rust" }),
        "Search the web for rust",
    );
    // ACP agents name the kind, and repeat the verb in the title.
    check(
        "edit",
        json!({ "title": "Edit src/main.rs" }),
        "Edit src/main.rs",
    );
    check("execute", json!({ "title": "`ls -l`" }), "Run ls -l");
    check("read", json!({ "title": "Read" }), "Read");
    check(
        "edit",
        json!({ "title": "Write w4.txt" }),
        "Edit Write w4.txt",
    );
    // An unknown tool keeps its name.
    check(
        "mcp__tracker__create_issue",
        json!({ "title": "it fails" }),
        "mcp__tracker__create_issue it fails",
    );
    check(
        "str_replace_based_edit_tool",
        json!({ "command": "view", "path": "a" }),
        "Read a",
    );
    check("ping", json!(null), "ping");
}

#[test]
fn a_wish_names_the_change() {
    let diff = "--- a.rs\n+++ a.rs\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3";
    let edit = request("file_edit", json!({ "path": "a.rs" }), diff);
    assert_eq!(wish(&edit), "edit a.rs (+2 −1)");
    let run = request("shell", json!({ "command": "ls" }), "ls");
    assert_eq!(wish(&run), "run a command");
    let delete = request("file_delete", json!({ "path": "a" }), "delete a (3 bytes)");
    assert_eq!(wish(&delete), "delete a");
    assert_eq!(wish(&request("ping", json!({}), "{}")), "use ping");
}

#[test]
fn a_change_is_read_from_the_arguments() {
    let edit = call(
        "file_edit",
        json!({ "path": "a.rs", "old_text": "one\ntwo\n", "new_text": "one\n2\n3\n" }),
    );
    let known = change(&edit, Some("replaced 1 place in a.rs, in line 12")).unwrap();
    assert_eq!(lines(&edit, None).unwrap().to_string(), "+2 −1");
    assert!(
        known.contains("@@ -12,2 +12,3 @@\n one\n-two\n+2\n+3"),
        "{known}"
    );
    let part = call(
        "file_edit",
        json!({ "path": "a", "old_text": "x", "new_text": "y\nz" }),
    );
    let changed = change(&part, None).unwrap();
    assert!(changed.ends_with("@@\n-x\n+y\n+z"), "{changed}");
    // Without a result the place is not known, and none is made up.
    let unknown = change(&edit, None).unwrap();
    assert!(unknown.contains("\n@@\n one"), "{unknown}");
    let write = call("Write", json!({ "file_path": "/a", "content": "x\ny\n" }));
    let written = change(&write, None).unwrap();
    assert_eq!(lines(&write, None).unwrap().to_string(), "+2");
    assert!(
        written.ends_with("+x\n+y") && !written.contains("/dev/null"),
        "{written}"
    );
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch";
    let patch = call("apply_patch", json!({ "input": patch }));
    assert_eq!(lines(&patch, None).unwrap().to_string(), "+1 −1");
    assert!(change(&patch, None).unwrap().contains("\n-x\n+y"));
    // An ACP agent may show its change in the result alone.
    let shown = call("edit", json!({ "title": "Edit a" }));
    let result = "a\n@@ -1 +1,2 @@\n-x\n+y\n+z";
    assert_eq!(lines(&shown, Some(result)).unwrap().to_string(), "+2 −1");
    for (name, arguments) in [
        ("shell", json!({ "command": "echo a > b" })),
        ("file_read", json!({ "path": "a" })),
        (
            "file_change",
            json!({ "changes": [{ "path": "a", "kind": "add" }] }),
        ),
        ("edit", json!({ "title": "Edit a" })),
    ] {
        assert_eq!(change(&call(name, arguments), None), None, "{name}");
    }
}

#[test]
fn an_end_is_told_in_few_words() {
    let shell = call("shell", json!({ "command": "ls" }));
    let check = |output: &str, outcome, expected: &str| {
        assert_eq!(ending(&shell, output, outcome), expected, "{output}");
    };
    check("a\nb\n[exit status 0]", ToolOutcome::Ok, "2 lines");
    check("[exit status 0]", ToolOutcome::Ok, "");
    check(
        "a\n[exit status 2]",
        ToolOutcome::Failed,
        "exit status 2, 1 line",
    );
    check("[not run: no]", ToolOutcome::Denied, "denied");
    let denied = format!("[not run: {}]", tertulia_agents::denial("use rg"));
    check(&denied, ToolOutcome::Denied, "denied: use rg");
    check("", ToolOutcome::Interrupted, "interrupted");
    let edit = call("file_edit", json!({ "path": "a" }));
    assert_eq!(ending(&edit, "replaced 1 place", ToolOutcome::Ok), "");
    assert_eq!(ending(&edit, "a: not found", ToolOutcome::Failed), "1 line");
}

#[test]
fn always_is_told_in_plain_words() {
    use crate::text::permissions::covers;
    let with_key = |name: &str, arguments: Value, key: &str| {
        covers(&ToolRequest {
            key: key.to_owned(),
            ..request(name, arguments, "")
        })
    };
    let ls = || json!({ "command": "ls -l" });
    let exactly = "allow exactly this command in this session";
    assert_eq!(with_key("shell", ls(), "shell ls -l"), exactly);
    assert_eq!(with_key("execute", ls(), "execute ls -l"), exactly);
    assert_eq!(
        with_key("shell", ls(), "shell"),
        "allow every shell in this session",
        "the key decides, not the command"
    );
    assert_eq!(
        with_key("file_edit", json!({ "path": "a" }), "file_edit"),
        "allow all file edits in this session"
    );
    assert_eq!(
        with_key("file_delete", json!({ "path": "a" }), "file_delete /w/a"),
        "allow exactly this (file_delete /w/a) in this session"
    );
}
