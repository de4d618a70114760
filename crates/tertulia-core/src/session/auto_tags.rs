//! Automatic tags: facts about a session in one word each, derived without a model. They are never
//! written as the user's tags.

use serde_json::Value;

use super::SessionMeta;
use crate::entry::{Message, ToolCall};

/// Number of messages of a long session.
pub const LONG: u64 = 100;

/// Tag of a long session.
pub const LONG_TAG: &str = "long";

/// Tag of a session that was imported from another program.
pub const IMPORTED_TAG: &str = "imported";

/// Maximum number of languages and tools that the metadata keeps: every append rewrites it.
const MOST: usize = 8;

/// Arguments of tools that name a file.
const FILE_KEYS: &[&str] = &[
    "path",
    "file_path",
    "filepath",
    "file",
    "filename",
    "absolute_path",
    "notebook_path",
    "target_file",
];

/// Arguments of tools that hold several files: as texts, as objects, or as the keys of an object.
const FILES_KEYS: &[&str] = &["paths", "files", "changes", "edits", "locations"];

/// Names of tools that run commands.
const SHELL: &[&str] = &[
    "shell",
    "bash",
    "exec",
    "execute",
    "exec_command",
    "local_shell",
    "command_execution",
    "run_command",
    "run_shell_command",
    "run_terminal_cmd",
    "terminal",
];

/// Languages by the extension of their files. Data and settings (JSON, TOML, YAML) say little about a
/// session and are left out.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("bash", &["sh", "bash", "zsh"]),
    ("c", &["c", "h"]),
    ("cpp", &["cc", "cpp", "cxx", "hpp", "hh"]),
    ("csharp", &["cs"]),
    ("css", &["css", "scss", "less"]),
    ("dart", &["dart"]),
    ("elixir", &["ex", "exs"]),
    ("go", &["go"]),
    ("haskell", &["hs"]),
    ("html", &["html", "htm"]),
    ("java", &["java"]),
    ("javascript", &["js", "mjs", "cjs", "jsx"]),
    ("julia", &["jl"]),
    ("kotlin", &["kt", "kts"]),
    ("latex", &["tex"]),
    ("lua", &["lua"]),
    ("markdown", &["md"]),
    ("ocaml", &["ml", "mli"]),
    ("php", &["php"]),
    ("python", &["py", "pyi", "ipynb"]),
    ("r", &["r"]),
    ("ruby", &["rb"]),
    ("rust", &["rs"]),
    ("scala", &["scala"]),
    ("sql", &["sql"]),
    ("svelte", &["svelte"]),
    ("swift", &["swift"]),
    ("terraform", &["tf"]),
    ("typescript", &["ts", "tsx", "mts"]),
    ("vue", &["vue"]),
    ("zig", &["zig"]),
];

impl SessionMeta {
    /// Returns the automatic tags, sorted.
    pub fn auto_tags(&self) -> Vec<String> {
        let mut tags = self.uses.clone();
        tags.extend((self.messages >= LONG).then(|| LONG_TAG.to_owned()));
        tags.extend(self.source.as_ref().map(|_| IMPORTED_TAG.to_owned()));
        tags.sort();
        tags
    }

    /// Returns true if a stored row is what the log says. Rows of earlier versions know fewer
    /// languages and tools, or none: that is no fault.
    pub fn is_same_row(&self, folded: &SessionMeta) -> bool {
        let mut stored = self.clone();
        stored.uses.clone_from(&folded.uses);
        stored == *folded
    }
}

/// Adds the languages and tools of a message's tool calls.
pub(super) fn note_uses(uses: &mut Vec<String>, message: &Message) {
    for call in &message.tool_calls {
        let mut found = Vec::new();
        found.extend(tool_kind(&call.name));
        each_file(call, &mut |path| found.extend(language(path)));
        for word in found {
            if uses.len() < MOST && !uses.iter().any(|known| known == word) {
                uses.push(word.to_owned());
            }
        }
    }
    uses.sort();
}

/// Returns `shell` or `web`, if a tool is one of these.
fn tool_kind(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let is_web = name.contains("web") || name == "fetch" || name.contains("browser");
    match SHELL.contains(&name.as_str()) {
        true => Some("shell"),
        false => is_web.then_some("web"),
    }
}

/// Passes the paths in a call's arguments to `visit`.
fn each_file(call: &ToolCall, visit: &mut dyn FnMut(&str)) {
    let Value::Object(arguments) = &call.arguments else {
        return;
    };
    for (key, value) in arguments {
        let key = key.to_ascii_lowercase();
        match value {
            Value::String(path) if FILE_KEYS.contains(&key.as_str()) => visit(path),
            Value::Array(several) if FILES_KEYS.contains(&key.as_str()) => {
                for one in several {
                    let path = one.as_str().or_else(|| one.get("path")?.as_str());
                    path.into_iter().for_each(&mut *visit);
                }
            }
            Value::Object(several) if FILES_KEYS.contains(&key.as_str()) => {
                several.keys().for_each(|path| visit(path));
            }
            _ => {}
        }
    }
}

/// Returns the language of a file, by its extension.
fn language(path: &str) -> Option<&'static str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    let mut languages = LANGUAGES.iter();
    let (language, _) = languages.find(|(_, ends)| ends.contains(&extension.as_str()))?;
    (!stem.is_empty()).then_some(language)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry::{Role, human, plain};

    fn check(name: &str, arguments: Value, expected: &[&str]) {
        let mut message = plain(&human(), Role::Assistant, String::new());
        message.tool_calls.push(ToolCall {
            id: "1".into(),
            name: name.into(),
            arguments,
        });
        let mut uses = Vec::new();
        note_uses(&mut uses, &message);
        assert_eq!(uses, expected, "{name} {:?}", message.tool_calls[0]);
        note_uses(&mut uses, &message);
        assert_eq!(uses, expected, "a second time adds nothing");
    }

    #[test]
    fn tool_calls_name_languages_and_tools() {
        check("file_edit", json!({ "path": "src/main.rs" }), &["rust"]);
        check("Edit", json!({ "file_path": "/w/A.PY" }), &["python"]);
        check("read", json!({ "filePath": "a.b/c.tsx" }), &["typescript"]);
        check("Bash", json!({ "command": "cat x.go" }), &["shell"]);
        check("WebFetch", json!({ "url": "http://x.org/a.rb" }), &["web"]);
        check("web_search", json!({ "query": "x" }), &["web"]);
        check(
            "apply_patch",
            json!({ "changes": { "a.rs": {}, "b.md": {} } }),
            &["markdown", "rust"],
        );
        check(
            "edits",
            json!({ "edits": [{ "path": "a.c" }, "b.lua", 3] }),
            &["c", "lua"],
        );
    }

    #[test]
    fn other_arguments_name_nothing() {
        check("file_read", json!({ "path": ".rs" }), &[]);
        check("file_read", json!({ "path": "Cargo.toml" }), &[]);
        check("file_read", json!({ "path": 7, "content": "a.rs" }), &[]);
        check("glob", json!({ "pattern": "**/*.rs" }), &[]);
        check("prefetch", json!("a.rs"), &[]);
        check("x", json!({ "path": "rs" }), &[]);
    }

    #[test]
    fn there_are_not_more_than_the_row_can_bear() {
        let ends = [
            "rs", "py", "go", "c", "md", "sql", "lua", "zig", "rb", "php",
        ];
        let paths: Vec<String> = ends.iter().map(|end| format!("a.{end}")).collect();
        let mut message = plain(&human(), Role::Assistant, String::new());
        message.tool_calls.push(ToolCall {
            id: "1".into(),
            name: "x".into(),
            arguments: json!({ "paths": paths }),
        });
        let mut uses = Vec::new();
        note_uses(&mut uses, &message);
        assert_eq!(uses.len(), MOST);
        assert!(uses.is_sorted());
    }
}
