//! Tool calls in words for users: what a call does, to what, and the lines that it changes. Every
//! agent brings tools of its own, which are recognised by their usual names and arguments.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;
use tertulia_agents::approval::ToolRequest;
use tertulia_core::blame::{FileEdit, edits_of};
use tertulia_core::entry::{ToolCall, ToolOutcome};
use tertulia_core::preview::{changed_lines, diff, one_line};
use tertulia_core::tool_files::files_of;

/// Name of the request to work in a folder. It is no tool: the program asks itself.
pub const WORK_IN: &str = "work_in";

/// Number of paths of a call that are named.
const NAMED: usize = 1;

/// What a tool call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads a file.
    Read,
    /// Writes a whole file.
    Write,
    /// Changes a part of a file.
    Edit,
    /// Deletes a file.
    Delete,
    /// Moves a file.
    Move,
    /// Lists a folder.
    List,
    /// Finds files by name.
    Find,
    /// Searches the content of files.
    Search,
    /// Runs a command.
    Run,
    /// Fetches an address.
    Fetch,
    /// Searches the web.
    SearchWeb,
    /// Uses a tool that is not known by its name.
    Use,
}

/// Names of tools, of tertulia and of other programs.
const NAMES: &[(Verb, &[&str])] = &[
    (
        Verb::Read,
        &["file_read", "read", "read_file", "view", "notebookread"],
    ),
    (
        Verb::Write,
        &["file_write", "write", "write_file", "create_file"],
    ),
    (
        Verb::Edit,
        &[
            "file_edit",
            "edit",
            "multiedit",
            "notebookedit",
            "replace",
            "patch",
            "apply_patch",
            "file_change",
            "str_replace_based_edit_tool",
            "str_replace_editor",
        ],
    ),
    (Verb::Delete, &["file_delete", "delete", "delete_file"]),
    (Verb::Move, &["move", "move_file"]),
    (
        Verb::List,
        &["directory_list", "ls", "list", "list_directory"],
    ),
    (Verb::Find, &["glob", "find"]),
    (Verb::Search, &["grep", "search", "search_file_content"]),
    (
        Verb::Run,
        &[
            "shell",
            "bash",
            "execute",
            "command_execution",
            "run_shell_command",
            "exec_command",
            "local_shell",
        ],
    ),
    (Verb::Fetch, &["fetch", "webfetch", "web_fetch"]),
    (
        Verb::SearchWeb,
        &["websearch", "web_search", "google_web_search"],
    ),
];

impl Verb {
    /// The verb as a heading begins with it.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Read => "Read",
            Verb::Write => "Write",
            Verb::Edit => "Edit",
            Verb::Delete => "Delete",
            Verb::Move => "Move",
            Verb::List => "List",
            Verb::Find => "Find",
            Verb::Search => "Search",
            Verb::Run => "Run",
            Verb::Fetch => "Fetch",
            Verb::SearchWeb => "Search the web for",
            Verb::Use => "Use",
        }
    }

    /// Returns true if the call changes the content of a file.
    pub const fn changes(self) -> bool {
        matches!(self, Verb::Write | Verb::Edit)
    }
}

/// Returns what a call does, by the name of its tool.
pub fn verb(call: &ToolCall) -> Verb {
    let name = call.name.to_lowercase();
    let known = NAMES.iter().find(|(_, names)| names.contains(&&*name));
    // One tool of several vendors shows, creates and edits files.
    match (known, call.arguments["command"].as_str()) {
        (Some((Verb::Edit, _)), Some("view")) => Verb::Read,
        (Some((Verb::Edit, _)), Some("create")) => Verb::Write,
        (Some((verb, _)), _) => *verb,
        (None, _) => Verb::Use,
    }
}

/// Returns the command that a call runs.
pub fn command(call: &ToolCall) -> Option<String> {
    if verb(call) != Verb::Run {
        return None;
    }
    let arguments = &call.arguments;
    match arguments.get("command").or_else(|| arguments.get("cmd"))? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        _ => None,
    }
}

/// Returns what a call acts on, on one line: a path, a command, a pattern.
pub fn object(call: &ToolCall) -> String {
    let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
    let found = match verb(call) {
        Verb::Run => command(call),
        Verb::Find => text("pattern").map(str::to_owned),
        Verb::Search => text("pattern").or(text("query")).map(|pattern| {
            let path = text("path").filter(|path| *path != ".");
            match path {
                Some(path) => format!("{pattern} in {path}"),
                None => pattern.to_owned(),
            }
        }),
        Verb::List => text("path").map(str::to_owned),
        Verb::Fetch => text("url").map(str::to_owned),
        Verb::SearchWeb => text("query").map(str::to_owned),
        Verb::Read | Verb::Write | Verb::Edit | Verb::Delete | Verb::Move => files(call),
        Verb::Use => None,
    };
    let object = found.or_else(|| titled(call)).or_else(|| first(call));
    first_line(&object.unwrap_or_default())
}

/// Names the files of a call.
fn files(call: &ToolCall) -> Option<String> {
    let files = files_of(call);
    let more = files.len().saturating_sub(NAMED);
    let first = files.into_iter().next()?.path;
    Some(match more {
        0 => first,
        more => format!("{first} and {more} more"),
    })
}

/// Returns the title that an agent gave its call, without the verb that stands before it anyway.
fn titled(call: &ToolCall) -> Option<String> {
    let title = call.arguments.get("title")?.as_str()?.trim();
    let begins = |verb: &str| {
        let (word, rest) = title.split_once(' ')?;
        word.eq_ignore_ascii_case(verb).then(|| rest.trim())
    };
    let rest = begins(verb(call).name()).or_else(|| begins(&call.name));
    let rest = rest.unwrap_or(match title.eq_ignore_ascii_case(&call.name) {
        true => "",
        false => title,
    });
    Some(rest.trim_matches('`').to_owned())
}

fn first(call: &ToolCall) -> Option<String> {
    let value = match &call.arguments {
        Value::Object(values) => values.values().next()?,
        Value::Array(values) => values.first()?,
        Value::Null => return None,
        other => other,
    };
    Some(match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// Returns the first line of a text, with a mark if there are more.
fn first_line(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\n') {
        Some((line, _)) => format!("{} …", one_line(line.trim_end())),
        None => one_line(text),
    }
}

/// Heading of a call: what it does and to what, as in `Edit src/main.rs`.
pub fn heading(call: &ToolCall) -> (String, String) {
    let object = object(call);
    match verb(call) {
        // The name of an unknown tool says more than a verb.
        Verb::Use => (one_line(&call.name), object),
        verb => (verb.name().to_owned(), object),
    }
}

/// Describes what an agent asks permission for, after "wants to".
pub fn wish(request: &ToolRequest) -> String {
    let call = &request.call;
    let object = object(call);
    let lines = Lines::of_diff(&request.preview);
    match (verb(call), object.as_str()) {
        (Verb::Run, _) => "run a command".to_owned(),
        (Verb::Use, folder) if call.name == WORK_IN => format!("work in {folder}"),
        (Verb::Use, _) => format!("use {}", one_line(&call.name)),
        (verb, "") => format!("{} ({})", verb.name().to_lowercase(), one_line(&call.name)),
        (verb, object) => match lines.filter(|_| verb.changes()) {
            Some(lines) => format!("{} {object} ({lines})", verb.name().to_lowercase()),
            None => format!("{} {object}", verb.name().to_lowercase()),
        },
    }
}

/// Number of lines that a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Added lines.
    pub added: usize,
    /// Removed lines.
    pub removed: usize,
}

impl Lines {
    /// Counts the lines of a unified diff; `None` if the text is none.
    pub fn of_diff(text: &str) -> Option<Lines> {
        let mut lines = Lines::default();
        let mut is_diff = false;
        for line in text.lines() {
            is_diff |= line.starts_with("@@");
            // The two lines before the first place name the file.
            match line.as_bytes().first().filter(|_| is_diff) {
                Some(b'+') => lines.added += 1,
                Some(b'-') => lines.removed += 1,
                _ => {}
            }
        }
        is_diff.then_some(lines)
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.added, self.removed) {
            (added, 0) => write!(f, "+{added}"),
            (0, removed) => write!(f, "−{removed}"),
            (added, removed) => write!(f, "+{added} −{removed}"),
        }
    }
}

/// Counts the lines that a call changes: from its arguments, or else from a diff in its result.
pub fn lines(call: &ToolCall, result: Option<&str>) -> Option<Lines> {
    if !verb(call).changes() {
        return None;
    }
    if let Some(patch) = patch(&call.arguments) {
        return Some(Lines::of_patch(patch));
    }
    let edits = edits(call).unwrap_or_default().1;
    let counts = edits.iter().filter_map(counted);
    let counted = counts.reduce(|sum, more| Lines {
        added: sum.added + more.added,
        removed: sum.removed + more.removed,
    });
    counted.or_else(|| Lines::of_diff(result?))
}

fn counted(edit: &FileEdit) -> Option<Lines> {
    let (added, removed) = match edit {
        FileEdit::Whole(content) => (content.lines().count(), 0),
        FileEdit::Replaced { old, new } => changed_lines(old, new),
        FileEdit::Patched { .. } => return None,
    };
    Some(Lines { added, removed })
}

/// Returns the file that a call changes, and the changes.
fn edits(call: &ToolCall) -> Option<(String, Vec<FileEdit>)> {
    let path = files_of(call).into_iter().next()?.path;
    let edits = edits_of(call, &path);
    Some((path, edits))
}

/// Returns the change that a call makes, from its arguments: texts that are replaced, the content of
/// a written file, or a patch, as a unified diff. `result` tells where a text was replaced; where its
/// place is not known, the diff has none. What a written file held before is not known either, so all
/// its lines count as added.
pub fn change(call: &ToolCall, result: Option<&str>) -> Option<String> {
    if !verb(call).changes() {
        return None;
    }
    if let Some(patch) = patch(&call.arguments) {
        return Some(patch.to_owned());
    }
    let (path, edits) = edits(call)?;
    let name = one_line(&path);
    // Only a single replaced text can be placed.
    let at = result.and_then(line_of).filter(|_| edits.len() == 1);
    let diffs: Vec<String> = edits
        .iter()
        .filter_map(|edit| match edit {
            FileEdit::Whole(content) if content.is_empty() => Some(diff(&name, None, "")),
            // The file may have been there before.
            FileEdit::Whole(content) => Some(diff(&name, Some(""), content)),
            FileEdit::Replaced { old, new } => Some(placed(
                &diff(&name, Some(&whole_lines(old)), &whole_lines(new)),
                at,
            )),
            FileEdit::Patched { .. } => None,
        })
        .collect();
    (!diffs.is_empty()).then(|| diffs.join("\n"))
}

impl Lines {
    fn of_patch(patch: &str) -> Lines {
        let is_name = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
        let count = |sign| {
            let lines = patch.lines().filter(|line| !is_name(line));
            lines.filter(|line| line.starts_with(sign)).count()
        };
        Lines {
            added: count('+'),
            removed: count('-'),
        }
    }
}

/// Ends a part of a text with a line feed: that it has none says nothing about the file.
fn whole_lines(part: &str) -> Cow<'_, str> {
    match part.is_empty() || part.ends_with('\n') {
        true => Cow::Borrowed(part),
        false => Cow::Owned(format!("{part}\n")),
    }
}

/// Finds a patch among the arguments.
fn patch(arguments: &Value) -> Option<&str> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let keys = ["patch", "diff", "input", "patchText"].into_iter();
    let mut texts = keys.filter_map(text).chain(arguments.as_str());
    texts.find(|text| text.contains("*** Begin Patch") || text.contains("\n@@"))
}

/// Reads where a text was replaced from the result of `file_edit`.
fn line_of(result: &str) -> Option<usize> {
    let (_, line) = result.trim_end().rsplit_once(", in line ")?;
    line.parse().ok()
}

/// Moves the places of a diff of a part to that part's place in the file, or removes them if it is
/// not known.
fn placed(diff: &str, at: Option<usize>) -> String {
    let lines: Vec<String> = diff
        .lines()
        .map(|line| match (line.starts_with("@@ "), at) {
            (false, _) => line.to_owned(),
            (true, None) => "@@".to_owned(),
            (true, Some(at)) => moved(line, at.saturating_sub(1)).unwrap_or("@@".to_owned()),
        })
        .collect();
    lines.join("\n")
}

fn moved(place: &str, by: usize) -> Option<String> {
    let (old, new) = place
        .strip_prefix("@@ -")?
        .strip_suffix(" @@")?
        .split_once(" +")?;
    let moved = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let start: usize = start.parse().ok()?;
        Some(format!("{},{count}", start + by))
    };
    Some(format!("@@ -{} +{} @@", moved(old)?, moved(new)?))
}

/// Beginning of the result of a call that the user denied.
const DENIED_BY_USER: &str = "[not run: the user does not want";

/// Returns the output of a call for people: the words that tell an agent of a denial are shortened.
pub fn readable_output(output: &str, outcome: ToolOutcome) -> Cow<'_, str> {
    if outcome != ToolOutcome::Denied || !output.starts_with(DENIED_BY_USER) {
        return Cow::Borrowed(output);
    }
    Cow::Owned(match tertulia_agents::denial_words(output) {
        Some(words) => format!("denied by you: {words}"),
        None => "denied by you".to_owned(),
    })
}

/// Describes how a call ended: the number of lines of its output, or why it has none.
pub fn ending(call: &ToolCall, output: &str, outcome: ToolOutcome) -> String {
    if outcome == ToolOutcome::Denied {
        let words = tertulia_agents::denial_words(output);
        let words = words.map(|words| format!("denied: {}", first_line(words)));
        return words.unwrap_or_else(|| "denied".to_owned());
    }
    if outcome == ToolOutcome::Interrupted {
        return "interrupted".to_owned();
    }
    if outcome == ToolOutcome::Ok && verb(call).changes() {
        return String::new();
    }
    let (lines, status) = match status(output) {
        Some((before, status)) => (before.lines().count(), Some(status)),
        None => (output.lines().count(), None),
    };
    let lines = match lines {
        0 => None,
        1 => Some("1 line".to_owned()),
        lines => Some(format!("{lines} lines")),
    };
    let status = status.filter(|status| *status != "exit status 0");
    let parts: Vec<String> = status.map(str::to_owned).into_iter().chain(lines).collect();
    parts.join(", ")
}

/// Splits the line about the exit status off the output of a command.
fn status(output: &str) -> Option<(&str, &str)> {
    let output = output.trim_end();
    let (before, last) = output.rsplit_once('\n').unwrap_or(("", output));
    let status = last.strip_prefix('[')?.strip_suffix(']')?;
    let known = ["exit status ", "ended by signal "];
    let is_status = known.iter().any(|known| status.starts_with(known));
    is_status.then_some((before, status))
}

#[cfg(test)]
mod tests;
