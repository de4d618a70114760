//! Files that a tool call names: which file it reads or changes, as far as its arguments say.
//!
//! Agents bring their own tools, so names and arguments are recognised by their usual forms. A shell
//! command is not analysed: what it does to files is unknown.

use serde_json::{Map, Value};

use crate::entry::ToolCall;

/// Arguments that hold the path of one file.
const PATH_KEYS: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "notebook_path",
    "absolute_path",
    "target_file",
    "source",
    "destination",
    "old_path",
    "new_path",
];
/// Arguments that hold several paths, or several objects with a path each.
const LIST_KEYS: &[&str] = &["paths", "file_paths", "files", "edits", "changes"];
/// Parts of the names of tools that look for files or list them: their path is a folder.
const LOOKS_AROUND: &[&str] = &["grep", "glob", "search", "list", "find", "tree"];
/// Parts of the names of tools that change files.
const CHANGES: &[&str] = &[
    "write", "edit", "create", "delete", "remove", "replace", "patch", "update", "insert", "move",
    "rename", "append", "save", "change",
];
/// Longest accepted path, in bytes.
const LONGEST_PATH: usize = 4096;

/// A file that a tool call names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTouch {
    /// Path as given in the call.
    pub path: String,
    /// True if the call changes the file, false if it reads it.
    pub written: bool,
}

/// Returns the files that a tool call names, without repetitions.
pub fn files_of(call: &ToolCall) -> Vec<FileTouch> {
    let name = call.name.to_lowercase();
    let written = changes_files(&name, &call.arguments);
    let mut paths = Vec::new();
    let looks_around =
        name == "ls" || (!written && LOOKS_AROUND.iter().any(|part| name.contains(part)));
    if let Value::Object(arguments) = &call.arguments
        && !looks_around
    {
        collect(arguments, &mut paths);
    }
    let named = paths.into_iter().map(|path| FileTouch { path, written });
    let mut patched = Vec::new();
    let diffs = name.contains("patch") || name.contains("diff");
    patches(&call.arguments, diffs, &mut patched);
    let patched = patched.into_iter().map(|path| FileTouch {
        path,
        written: true,
    });
    let mut touches: Vec<FileTouch> = named.chain(patched).collect();
    // A file that a call changes counts as changed once.
    touches.sort_by(|a, b| a.path.cmp(&b.path).then(b.written.cmp(&a.written)));
    touches.dedup_by(|a, b| a.path == b.path);
    touches
}

fn changes_files(name: &str, arguments: &Value) -> bool {
    // One tool of several vendors shows and edits files, depending on an argument.
    if arguments["command"].as_str() == Some("view") {
        return false;
    }
    CHANGES.iter().any(|part| name.contains(part))
}

fn collect(arguments: &Map<String, Value>, paths: &mut Vec<String>) {
    let single = PATH_KEYS.iter().filter_map(|key| arguments.get(*key));
    paths.extend(single.filter_map(path_in));
    for list in LIST_KEYS.iter().filter_map(|key| arguments.get(*key)) {
        match list {
            Value::Array(items) => {
                for item in items {
                    paths.extend(path_in(item));
                    if let Value::Object(item) = item {
                        let inner = PATH_KEYS.iter().filter_map(|key| item.get(*key));
                        paths.extend(inner.filter_map(path_in));
                    }
                }
            }
            // Some programs record changes by path.
            Value::Object(items) => {
                let keys = items.keys().map(|key| Value::from(key.as_str()));
                paths.extend(keys.filter_map(|key| path_in(&key)));
            }
            _ => {}
        }
    }
}

fn path_in(value: &Value) -> Option<String> {
    let path = value.as_str()?;
    let is_path = !path.trim().is_empty()
        && path.len() <= LONGEST_PATH
        && !path.contains(['\n', '\0', '*'])
        && !path.contains("://");
    is_path.then(|| path.to_owned())
}

/// Collects the files of patches in the arguments; unified diffs only if the tool takes them.
fn patches(value: &Value, diffs: bool, paths: &mut Vec<String>) {
    match value {
        Value::String(text) => patch(text, diffs, paths),
        Value::Array(values) => {
            let values = values.iter();
            values.for_each(|value| patches(value, diffs, paths));
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| !is_text(key));
            fields.for_each(|(_, value)| patches(value, diffs, paths));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns true for an argument that is text of a file, in which a patch is only quoted.
fn is_text(key: &str) -> bool {
    key.contains("content") || key.starts_with("old") || key.starts_with("new")
}

fn patch(text: &str, diffs: bool, paths: &mut Vec<String>) {
    let mut add = |path: &str| paths.extend(path_in(&Value::from(path.trim())));
    if text.contains("*** Begin Patch") {
        for line in text.lines() {
            let marked = ["Add File: ", "Update File: ", "Delete File: ", "Move to: "];
            let rest = line.strip_prefix("*** ");
            if let Some(path) =
                rest.and_then(|rest| marked.iter().find_map(|mark| rest.strip_prefix(mark)))
            {
                add(path);
            }
        }
        return;
    }
    if !diffs {
        return;
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        // The two header lines of a unified diff; one of them alone may be any text.
        let (Some(old), Some(new)) = (
            line.strip_prefix("--- "),
            lines.peek().and_then(|next| next.strip_prefix("+++ ")),
        ) else {
            continue;
        };
        for (path, prefix) in [(old, "a/"), (new, "b/")] {
            let path = path.split('\t').next().unwrap_or_default();
            let path = path.strip_prefix(prefix).unwrap_or(path);
            if path != "/dev/null" {
                add(path);
            }
        }
    }
}

/// Returns a path from the root, if it or the working directory begins there. Resolves `.` and `..`
/// without looking at the disk.
pub fn resolved(path: &str, cwd: Option<&str>) -> String {
    let whole = match cwd {
        Some(cwd) if !path.starts_with(['/', '~']) => format!("{cwd}/{path}"),
        _ => path.to_owned(),
    };
    let is_absolute = whole.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match is_absolute {
        true => format!("/{joined}"),
        false if joined.is_empty() => ".".to_owned(),
        false => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn files(name: &str, arguments: Value) -> Vec<(String, bool)> {
        let call = ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments,
        };
        let touches = files_of(&call).into_iter();
        touches.map(|touch| (touch.path, touch.written)).collect()
    }

    #[test]
    fn the_usual_tools_are_known() {
        let read = |path: &str| vec![(path.to_owned(), false)];
        let written = |path: &str| vec![(path.to_owned(), true)];
        for (name, arguments, expected) in [
            (
                "file_read",
                json!({"path": "a.rs", "limit": 3}),
                read("a.rs"),
            ),
            (
                "file_write",
                json!({"path": "a.rs", "content": "x"}),
                written("a.rs"),
            ),
            ("Read", json!({"file_path": "/w/a.rs"}), read("/w/a.rs")),
            (
                "MultiEdit",
                json!({"file_path": "/w/a.rs", "edits": [{"old_string": "x"}]}),
                written("/w/a.rs"),
            ),
            (
                "NotebookEdit",
                json!({"notebook_path": "n.ipynb"}),
                written("n.ipynb"),
            ),
            (
                "edit",
                json!({"filePath": "a.rs", "oldString": "x"}),
                written("a.rs"),
            ),
            ("read_file", json!({"absolute_path": "/w/a"}), read("/w/a")),
            ("replace", json!({"file_path": "/w/a"}), written("/w/a")),
            (
                "str_replace_based_edit_tool",
                json!({"command": "view", "path": "a"}),
                read("a"),
            ),
            (
                "str_replace_based_edit_tool",
                json!({"command": "create", "path": "a"}),
                written("a"),
            ),
            (
                "file_change",
                json!({"changes": [{"path": "/w/a", "kind": "add"}]}),
                written("/w/a"),
            ),
            (
                "apply_patch",
                json!({"changes": {"/w/a": {"update": {}}}}),
                written("/w/a"),
            ),
        ] {
            assert_eq!(files(name, arguments), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_file_is_left_out() {
        for (name, arguments) in [
            ("grep", json!({"pattern": "x", "path": "src"})),
            ("glob", json!({"pattern": "**/*.rs", "path": "src"})),
            ("directory_list", json!({"path": "src"})),
            ("LS", json!({"path": "/w"})),
            ("Bash", json!({"command": "cat a.rs"})),
            ("WebFetch", json!({"source": "https://example.com/a"})),
            ("read_many_files", json!({"paths": ["src/*.rs"]})),
            ("Read", json!({"file_path": 3})),
            ("Read", json!({"file_path": ""})),
            ("Write", json!("a.rs")),
            ("note", json!({"text": "--- a\n+++ b\n"})),
            ("patch", json!({"text": "--- a\nno patch"})),
            (
                "note",
                json!({"content": "*** Begin Patch\n*** Add File: x"}),
            ),
        ] {
            assert_eq!(files(name, arguments), [], "{name}");
        }
    }

    #[test]
    fn patches_name_their_files() {
        let text = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-a\n+b\n*** End Patch";
        let expected: Vec<(String, bool)> = ["moved.txt", "new.txt", "old.txt"]
            .map(|path| (path.to_owned(), true))
            .to_vec();
        assert_eq!(files("apply_patch", json!({"input": text})), expected);
        assert_eq!(
            files("shell", json!({"command": ["apply_patch", text]})),
            expected
        );
        let diff =
            "--- a/src/x.rs\t2026\n+++ b/src/x.rs\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/y\n";
        assert_eq!(
            files("patch", json!({"diff": diff})),
            [("src/x.rs".to_owned(), true), ("y".to_owned(), true)]
        );
    }

    #[test]
    fn paths_are_resolved() {
        for (path, cwd, expected) in [
            ("a/b", Some("/w"), "/w/a/b"),
            ("./a/../b", Some("/w/"), "/w/b"),
            ("../../../x", Some("/w"), "/x"),
            ("/a//b/./c", Some("/w"), "/a/b/c"),
            ("~/a", Some("/w"), "~/a"),
            ("a/../../b", None, "../b"),
            (".", None, "."),
            ("/", None, "/"),
        ] {
            assert_eq!(resolved(path, cwd), expected, "{path}");
        }
    }
}
