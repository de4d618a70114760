//! Aliases of the vendors' programs, as used by earlier programs and their team files.

use tertulia_agents::vendor::Vendor;

/// Aliases of the vendors' programs, in lower case and with hyphens.
const ALIASES: &[(&str, Vendor)] = &[
    ("claude-code", Vendor::Claude),
    ("claude-cli", Vendor::Claude),
    ("claudecode", Vendor::Claude),
    ("anthropic-claude", Vendor::Claude),
    ("openai-codex", Vendor::Codex),
    ("codex-cli", Vendor::Codex),
    ("google-gemini", Vendor::GeminiCli),
    ("geminicli", Vendor::GeminiCli),
    ("open-code", Vendor::OpenCode),
    ("opencode-ai", Vendor::OpenCode),
];

/// Returns the vendor that an alias means. Ignores case and treats spaces and underscores as
/// hyphens.
pub fn vendor(name: &str) -> Option<Vendor> {
    let plain: String = name
        .trim()
        .chars()
        .map(|c| {
            if matches!(c, ' ' | '_') {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    let known = ALIASES.iter().find(|(alias, _)| *alias == plain);
    let spelt = || {
        Vendor::ALL
            .into_iter()
            .find(|vendor| vendor.name() == plain)
    };
    known.map(|(_, vendor)| *vendor).or_else(spelt)
}

/// Resolves an alias: returns `name` if `is_known` accepts it, else the name of the vendor it
/// means.
pub fn resolved(name: &str, is_known: impl FnOnce(&str) -> bool) -> &str {
    match vendor(name) {
        Some(vendor) if !is_known(name) => vendor.name(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_names_lead_to_programs() {
        let check = |name: &str, expected: &str| {
            let found = resolved(name, |name| ["ana", "claude"].contains(&name));
            assert_eq!(found, expected, "{name}");
        };
        check("claude-code", "claude");
        check("Claude Code", "claude");
        check("claude_code", "claude");
        check("openai-codex", "codex");
        check("google-gemini", "gemini-cli");
        check("Gemini_CLI", "gemini-cli");
        check("claude", "claude");
        check("ana", "ana");
        check("gemini", "gemini");
        assert_eq!(resolved("claude-code", |_| true), "claude-code");
    }
}
