//! What a tool call changes in a file, read from its arguments. Every agent has tools of its own,
//! but they describe a change in a few forms only: the whole content, texts to be replaced, or a
//! patch.

use serde_json::Value;

use crate::entry::ToolCall;
use crate::text_diff::{Change, TextDiff};

/// Names of the argument that holds the whole content.
const WHOLE: &[&str] = &["content", "contents", "file_text", "text"];
/// Names of the arguments that hold a text and its replacement.
const REPLACED: &[(&str, &str)] = &[
    ("old_text", "new_text"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldString", "newString"),
    ("oldText", "newText"),
    ("search", "replace"),
];
/// Size of texts above which lines are compared as sets: a change may replace a whole file.
const LARGEST: usize = 2_000_000;

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEdit {
    /// The file got this content.
    Whole(String),
    /// A text was replaced by another.
    Replaced {
        /// The text before.
        old: String,
        /// The text after.
        new: String,
    },
    /// Lines of a patch.
    Patched {
        /// Lines that were put in.
        inserted: Vec<String>,
    },
}

impl FileEdit {
    /// Returns the lines that the edit put in. `before` is the content before, if it is known.
    pub(super) fn inserted(&self, before: Option<&str>) -> Vec<String> {
        match self {
            FileEdit::Whole(content) => new_lines(before.unwrap_or_default(), content),
            FileEdit::Replaced { old, new } => new_lines(old, new),
            FileEdit::Patched { inserted } => inserted.clone(),
        }
    }

    /// Returns the content after the edit, if it can be known.
    pub(super) fn applied(&self, before: Option<String>) -> Option<String> {
        match self {
            FileEdit::Whole(content) => Some(content.clone()),
            FileEdit::Replaced { old, new } => before
                .filter(|before| before.contains(old.as_str()))
                .map(|before| before.replacen(old.as_str(), new, 1)),
            FileEdit::Patched { .. } => None,
        }
    }
}

/// Returns the lines of `after` that are not in `before`, in order.
fn new_lines(before: &str, after: &str) -> Vec<String> {
    if before.len() + after.len() > LARGEST {
        let known: std::collections::HashSet<&str> = before.lines().collect();
        let new = after.lines().filter(|line| !known.contains(line));
        return new.map(str::to_owned).collect();
    }
    // Compared without line ends: a replaced text may begin and end within a line.
    let diff = TextDiff::new(before.lines().collect(), after.lines().collect(), None);
    let inserted = diff
        .changes()
        .filter(|(change, _)| *change == Change::Insert);
    inserted.map(|(_, line)| line.to_owned()).collect()
}

/// Returns the changes that a call makes to the file at `path`, which is compared by its end:
/// calls name files relative to a folder.
pub fn edits_of(call: &ToolCall, path: &str) -> Vec<FileEdit> {
    let mut edits = Vec::new();
    match &call.arguments {
        Value::String(patch) => edits.extend(patched(patch, path)),
        arguments => read(arguments, path, &mut edits),
    }
    edits
}

fn read(arguments: &Value, path: &str, edits: &mut Vec<FileEdit>) {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let replaced = REPLACED.iter().find_map(|(old, new)| {
        let (old, new) = (text(old)?, text(new).unwrap_or_default());
        Some((old.to_owned(), new.to_owned()))
    });
    if let Some((old, new)) = replaced {
        edits.push(FileEdit::Replaced { old, new });
        return;
    }
    if let Some(several) = arguments.get("edits").and_then(Value::as_array) {
        several.iter().for_each(|one| read(one, path, edits));
        return;
    }
    let patch = ["patch", "diff", "input", "patchText"].into_iter();
    if let Some(patch) = patch.filter_map(text).find_map(|text| patched(text, path)) {
        edits.push(patch);
        return;
    }
    if let Some(command) = arguments.get("command") {
        // Codex passes a patch to a shell.
        let words = match command {
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
            Value::String(text) => vec![text.as_str()],
            _ => Vec::new(),
        };
        edits.extend(words.iter().filter_map(|text| patched(text, path)));
    }
    if let Some(content) = WHOLE.iter().find_map(|name| text(name)) {
        edits.push(FileEdit::Whole(content.to_owned()));
    }
}

/// Reads the part of a patch that concerns the file: in the form of `apply_patch` or of `diff`.
fn patched(patch: &str, path: &str) -> Option<FileEdit> {
    let mut inserted = Vec::new();
    let (mut is_patch, mut concerns) = (false, false);
    for line in patch.lines() {
        let named = ["*** Update File: ", "*** Add File: ", "+++ "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        if let Some(name) = named {
            is_patch = true;
            let name = name.split('\t').next().unwrap_or(name).trim();
            let name = name.strip_prefix("b/").unwrap_or(name);
            concerns = is_same_file(path, name);
        } else if let Some(line) = line.strip_prefix('+').filter(|_| concerns) {
            inserted.push(line.to_owned());
        }
    }
    is_patch.then_some(FileEdit::Patched { inserted })
}

/// Returns true if the path ends with the name.
fn is_same_file(path: &str, name: &str) -> bool {
    let name = name.strip_prefix("./").unwrap_or(name);
    path == name
        || path
            .strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('/'))
}
