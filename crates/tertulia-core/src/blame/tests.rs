//! Tests of the forms of changes, and of who wrote a line.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::entry::ToolCall;

fn call(arguments: Value) -> ToolCall {
    ToolCall {
        id: "1".into(),
        name: "edit".into(),
        arguments,
    }
}

fn replaced(old: &str, new: &str) -> FileEdit {
    FileEdit::Replaced {
        old: old.into(),
        new: new.into(),
    }
}

fn whole(content: &str) -> FileEdit {
    FileEdit::Whole(content.into())
}

#[test]
fn every_form_of_a_change_is_read() {
    let path = "/w/src/a.rs";
    for (arguments, expected) in [
        (
            json!({ "path": "a.rs", "content": "x\n" }),
            vec![whole("x\n")],
        ),
        (
            json!({ "file_path": "/w/src/a.rs", "old_string": "a", "new_string": "b" }),
            vec![replaced("a", "b")],
        ),
        (
            json!({ "path": "a.rs", "old_text": "a", "new_text": "" }),
            vec![replaced("a", "")],
        ),
        (
            json!({ "edits": [{ "old_string": "a", "new_string": "b" }, { "oldText": "c", "newText": "d" }] }),
            vec![replaced("a", "b"), replaced("c", "d")],
        ),
        (json!({ "path": "a.rs" }), vec![]),
        (json!(7), vec![]),
    ] {
        assert_eq!(
            edits_of(&call(arguments.clone()), path),
            expected,
            "{arguments}"
        );
    }
}

#[test]
fn a_patch_counts_for_the_file_that_it_names() {
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-old\n+one\n*** Add File: b.rs\n+two\n*** End Patch";
    let lines = |path: &str, arguments: Value| match &edits_of(&call(arguments), path)[..] {
        [FileEdit::Patched { inserted }] => inserted.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(lines("/w/src/a.rs", json!(patch)), ["one"]);
    assert_eq!(lines("/w/b.rs", json!({ "input": patch })), ["two"]);
    assert_eq!(
        lines("/w/bb.rs", json!({ "command": ["apply_patch", patch] })),
        [""; 0]
    );
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-x\n+y\n";
    assert_eq!(lines("/w/src/a.rs", json!({ "diff": diff })), ["y"]);
}

#[test]
fn a_line_belongs_to_the_newest_call_that_put_it_in() {
    let edits = [
        whole("fn main() {\n    first();\n}\n"),
        replaced("    first();", "    first();\n    second();"),
        whole("fn main() {\n    first();\n    second();\n    third();\n}\n"),
    ];
    let lines = [
        "fn main() {",
        "    first();",
        "    second();",
        "    third();",
        "}",
        "by hand",
    ];
    assert_eq!(
        authors(&lines, &edits),
        [Some(0), Some(0), Some(1), Some(2), None, None]
    );
}

#[test]
fn brackets_go_with_their_neighbours() {
    let edits = [replaced("x", "fn one() {\n    two();\n}\n")];
    let lines = ["}", "", "fn one() {", "    two();", "}", "other line"];
    assert_eq!(
        authors(&lines, &edits),
        [None, None, Some(0), Some(0), Some(0), None]
    );
}

#[test]
fn numbers_become_ranges() {
    assert_eq!(ranges([1, 2, 3, 5, 7, 8]), [(1, 3), (5, 5), (7, 8)]);
    assert_eq!(ranges([]), []);
}

proptest! {
    /// A file that was only ever written by recorded calls has an author for every telling line,
    /// and that author wrote the line.
    #[test]
    fn every_recorded_line_has_an_author_that_wrote_it(
        versions in prop::collection::vec(prop::collection::vec("[a-d]{2}", 0..8), 1..6)
    ) {
        let contents: Vec<String> = versions.iter().map(|lines| lines.join("\n")).collect();
        let edits: Vec<FileEdit> = contents.iter().map(|content| whole(content)).collect();
        let last: Vec<&str> = contents.last().map_or(Vec::new(), |text| text.lines().collect());
        for (line, author) in last.iter().zip(authors(&last, &edits)) {
            let author = author.expect("an author");
            prop_assert!(versions[author].iter().any(|written| written == line));
        }
    }
}
