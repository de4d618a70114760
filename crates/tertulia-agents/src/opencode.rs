//! OpenCode's environment: permissions, configuration files and persistence. OpenCode's command
//! line and its Agent Client Protocol server read the same variables.

use std::path::{Path, PathBuf};

use serde_json::json;

/// What OpenCode may do with its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Use no tools.
    Nothing,
    /// Read files that are not secret.
    Looking,
    /// Ask before each tool, and receive an answer.
    Asking,
}

/// Files with instructions for agents; OpenCode reads the first that exists.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md"];
/// Every tool needs permission, those of MCP servers too. To-do lists change nothing outside
/// OpenCode.
const ASKING: &str = r#"{"*":"ask","todoread":"allow","todowrite":"allow"}"#;
/// The last matching rule counts: first everything is denied, tools of MCP servers too.
const LOOKING: &str = r#"{"*":"deny","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"grep":"allow","glob":"allow","list":"allow","lsp":"allow","todoread":"allow","todowrite":"allow"}"#;
const NOTHING: &str = r#"{"*":"deny"}"#;

/// Returns the file with the folder's instructions, which OpenCode does not find by itself when
/// project configuration is disabled.
pub(super) fn instructions(folder: &Path) -> Option<PathBuf> {
    let files = INSTRUCTIONS.iter().map(|name| folder.join(name));
    files.into_iter().find(|file| file.is_file())
}

/// Builds the variables for a process that is restricted to `access`; `None` leaves everything to
/// OpenCode's own configuration.
pub(super) fn environment(
    access: Option<Access>,
    ephemeral: bool,
    instructions: Option<&Path>,
) -> Vec<(String, String)> {
    // No self-update while a session runs. OpenCode's other switches would also disable logins and
    // models.
    let mut env = vec![
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
    ];
    let mut config = json!({});
    if let Some(access) = access {
        let rules = match access {
            Access::Nothing => NOTHING,
            Access::Looking => LOOKING,
            Access::Asking => ASKING,
        };
        env.push(("OPENCODE_PERMISSION", rules.to_owned()));
        // A project's own files may allow its agents everything, and its plugins run without
        // permission.
        env.push(("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()));
        if let Some(file) = instructions {
            config["instructions"] = json!([file]);
        }
    }
    if ephemeral {
        env.push(("OPENCODE_DB", ":memory:".to_owned()));
        // OpenCode would copy the files that it changes.
        config["snapshot"] = json!(false);
    }
    if config != json!({}) {
        env.push(("OPENCODE_CONFIG_CONTENT", config.to_string()));
    }
    env.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Variables that control permissions: only the user's own configuration may set them.
pub const POLICY_VARIABLES: &[&str] = &[
    "OPENCODE_PERMISSION",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_CONTENT",
    "OPENCODE_CONFIG_DIR",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_json_and_begin_with_everything() {
        for rules in [ASKING, LOOKING, NOTHING] {
            let read: serde_json::Value = serde_json::from_str(rules).unwrap();
            assert!(read["*"].is_string(), "{rules}");
            assert!(rules.starts_with("{\"*\""), "{rules}");
        }
    }

    #[test]
    fn each_process_is_told_what_it_may_do_and_keep() {
        let names = |access, ephemeral, file: Option<&Path>| {
            let env = environment(access, ephemeral, file).into_iter();
            let named: Vec<String> = env
                .skip(2)
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            named.join(" ").replace(LOOKING, "L").replace(NOTHING, "N")
        };
        assert_eq!(names(None, false, Some(Path::new("/p/AGENTS.md"))), "");
        let held = "OPENCODE_PERMISSION=L OPENCODE_DISABLE_PROJECT_CONFIG=1";
        assert_eq!(names(Some(Access::Looking), false, None), held);
        assert_eq!(
            names(
                Some(Access::Looking),
                false,
                Some(Path::new("/p/AGENTS.md"))
            ),
            format!("{held} OPENCODE_CONFIG_CONTENT={{\"instructions\":[\"/p/AGENTS.md\"]}}")
        );
        assert_eq!(
            names(None, true, None),
            "OPENCODE_DB=:memory: OPENCODE_CONFIG_CONTENT={\"snapshot\":false}"
        );
    }
}
