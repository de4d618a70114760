//! Files whose content other programs act on: a change of one of them decides what is run or what
//! agents are told, so it is more than an edit.

use std::path::Path;

/// Files, and folders with everything in them, in any folder and any letter case.
const TABLE: &[&str] = &[
    // Hooks and configuration of git and tertulia.
    ".git",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    "lefthook.yaml",
    ".tertulia",
    ".agent-chatter",
    // Instructions for agents.
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    ".github/instructions",
    // Permissions, hooks and tool servers of agents.
    ".mcp.json",
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".cursor",
    ".continue",
    ".windsurf",
    ".kilocode",
    // Read by shells, editors and build tools when a folder is entered or opened.
    ".envrc",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".cargo/config",
    ".cargo/config.toml",
    "mise.toml",
    ".mise.toml",
    // Run by the servers that build a project.
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".circleci",
    ".buildkite",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
];

/// Returns whether programs act on what the file says.
pub(crate) fn is_obeyed(path: &Path) -> bool {
    let lower = |text: &str| text.to_lowercase();
    let parts: Vec<String> = path
        .components()
        .map(|part| lower(&part.as_os_str().to_string_lossy()))
        .collect();
    TABLE.iter().any(|row| {
        let row: Vec<String> = row.split('/').map(lower).collect();
        parts.windows(row.len()).any(|part| part == row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_in_every_folder_and_case() {
        for row in TABLE {
            for path in [
                (*row).to_owned(),
                format!("a/b/{row}"),
                format!("{row}/below/it"),
                format!("/abs/{}", row.to_uppercase()),
                format!("x/{}", row.to_lowercase()),
            ] {
                assert!(is_obeyed(Path::new(&path)), "{path}");
            }
        }
    }

    #[test]
    fn other_files_are_not() {
        for path in [
            "src/main.rs",
            "README.md",
            ".gitignore",
            ".github/CODEOWNERS",
            ".cargo/credentials",
            "workflows/ci.yml",
            "docs/AGENTS.md.txt",
            "git/config",
            "",
        ] {
            assert!(!is_obeyed(Path::new(path)), "{path}");
        }
    }
}
