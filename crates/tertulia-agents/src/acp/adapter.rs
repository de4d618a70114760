//! Known programs of the Agent Client Protocol: how each is made to ask permission, and to save
//! nothing.

use std::path::Path;

use serde_json::Value;

use crate::opencode::{self, Access, Generation};
use crate::program_name::plain;
use crate::scratch::Place;

/// A known program of the Agent Client Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// Claude Code behind an adapter.
    Claude,
    /// Codex behind an adapter.
    Codex,
    /// Gemini CLI, which speaks the protocol itself.
    Gemini,
    /// OpenCode, which speaks the protocol itself.
    OpenCode,
}

/// Programs that are adapters and nothing else.
const ADAPTERS: &[(&str, Adapter)] = &[
    ("claude-agent-acp", Adapter::Claude),
    ("claude-code-acp", Adapter::Claude),
    ("codex-acp", Adapter::Codex),
];

impl Adapter {
    /// Names of the programs that are adapters and nothing else.
    pub fn programs() -> impl Iterator<Item = &'static str> {
        ADAPTERS.iter().map(|(name, _)| *name)
    }

    /// Returns the known program that a command line starts, if any. A package runner names it in
    /// its arguments.
    pub fn of(command: &Path, args: &[String]) -> Option<Adapter> {
        let file = command.file_name().unwrap_or_default().to_string_lossy();
        let words = std::iter::once(file.as_ref()).chain(args.iter().map(String::as_str));
        let known = words.into_iter().find_map(|word| {
            let (_, adapter) = ADAPTERS.iter().find(|(name, _)| *name == plain(word))?;
            Some(*adapter)
        });
        let given = |word: &str| args.iter().any(|arg| arg == word);
        known.or_else(|| match plain(&file) {
            "gemini" if given("--acp") || given("--experimental-acp") => Some(Adapter::Gemini),
            "opencode" if given("acp") => Some(Adapter::OpenCode),
            _ => None,
        })
    }

    /// Returns the kinds of tools that the agent may run unasked in the mode in which it asks:
    /// Claude Code runs commands that only read and tools that change nothing outside of it, Codex
    /// runs commands in a read-only sandbox.
    pub(super) fn unasked_kinds(self) -> &'static [&'static str] {
        match self {
            Adapter::Claude => &["execute", "other", "switch_mode"],
            Adapter::Codex => &["execute"],
            Adapter::Gemini | Adapter::OpenCode => &[],
        }
    }

    /// Name of the importer of the sessions of the adapter's program.
    pub const fn history(self) -> &'static str {
        match self {
            Adapter::Claude => "claude-code",
            Adapter::Codex => "codex",
            Adapter::Gemini => "gemini-cli",
            Adapter::OpenCode => "opencode",
        }
    }

    /// Returns whose home holds the agent's sessions, if it has no other option to save none.
    pub(super) fn place(self) -> Option<Place> {
        match self {
            Adapter::Codex => Some(Place::Codex),
            Adapter::Gemini => Some(Place::Gemini),
            Adapter::Claude | Adapter::OpenCode => None,
        }
    }
}

/// Restrictions under which a process is started; they hold as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Whether the agent must ask, and ignores the project's configuration files.
    pub(super) held: bool,
    /// Whether the agent saves nothing.
    pub(super) ephemeral: bool,
}

impl Manner {
    /// Returns whether a process that was started like this may continue under `wanted`.
    pub(super) fn is_enough_for(self, wanted: Manner) -> bool {
        self.held >= wanted.held && self.ephemeral == wanted.ephemeral
    }
}

/// Returns the variables for the process. It asks about every tool even if all are allowed: then
/// the answer is yes, and the permission mode may change while it runs.
pub(super) fn environment(
    adapter: Option<Adapter>,
    manner: Manner,
    folder: &Path,
) -> Vec<(String, String)> {
    // Keeps versions of Claude Code that know the variable from reading mentioned files; other
    // programs ignore it.
    let mut env = vec![(
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS".to_owned(),
        "1".to_owned(),
    )];
    if adapter == Some(Adapter::OpenCode) {
        let access = manner.held.then_some(Access::Asking);
        let instructions = opencode::instructions(folder);
        env.extend(opencode::environment(
            access,
            manner.ephemeral,
            instructions.as_deref(),
        ));
    }
    env
}

/// How an agent comes to ask permission before it uses a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// The agent asks as it is.
    Already,
    /// The agent asks in this mode.
    InMode(&'static str),
    /// The agent is not known to ask.
    Unknown,
}

/// Returns how an agent that offers these modes comes to ask. Without modes that is unknown.
pub(super) fn asking(modes: &Value) -> Asking {
    const MODES: [&str; 3] = ["read-only", "default", "plan"];
    let now = modes["currentModeId"].as_str().unwrap_or_default();
    if MODES.contains(&now) {
        return Asking::Already;
    }
    let offers = modes["availableModes"].as_array();
    let offers = offers.map(Vec::as_slice).unwrap_or_default();
    let offered = MODES
        .into_iter()
        .find(|mode| offers.iter().any(|offer| offer["id"] == *mode));
    offered.map_or(Asking::Unknown, Asking::InMode)
}

/// Returns how OpenCode comes to ask, by what it reports of itself: the first generation asks because
/// of its environment, see [`environment`], to which the second does not keep.
pub(super) fn opencode_asking(abilities: Option<&Value>) -> Asking {
    let version = abilities.and_then(|told| told["agentInfo"]["version"].as_str());
    match version.map(Generation::of) {
        Some(Generation::Second) => Asking::Unknown,
        Some(Generation::First) | None => Asking::Already,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn adapters_are_known_by_their_command_lines() {
        let check = |line: &str, expected: Option<Adapter>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(
                Adapter::of(Path::new(&words[0]), &words[1..]),
                expected,
                "{line}"
            );
        };
        check("/usr/bin/claude-agent-acp", Some(Adapter::Claude));
        check("claude-code-acp", Some(Adapter::Claude));
        check(
            "npx -y @zed-industries/claude-code-acp@0.16.2",
            Some(Adapter::Claude),
        );
        check("codex-acp", Some(Adapter::Codex));
        check("gemini --acp --skip-trust", Some(Adapter::Gemini));
        check("/opt/gemini --experimental-acp", Some(Adapter::Gemini));
        check("opencode acp", Some(Adapter::OpenCode));
        check("opencode run acp-notes", None);
        check("gemini -p hello", None);
        check("claude", None);
        check("my-agent acp", None);
    }

    #[test]
    fn an_agent_that_decides_by_itself_is_told_to_ask() {
        let modes = |now: &str| {
            json!({ "currentModeId": now, "availableModes": [
                { "id": "agent" }, { "id": "default" }, { "id": "read-only" },
            ]})
        };
        assert_eq!(asking(&modes("agent")), Asking::InMode("read-only"));
        assert_eq!(asking(&modes("plan")), Asking::Already);
        assert_eq!(asking(&modes("default")), Asking::Already);
    }

    #[test]
    fn an_agent_without_a_mode_for_it_is_not_taken_to_ask() {
        assert_eq!(asking(&Value::Null), Asking::Unknown);
        let free = json!({ "currentModeId": "build", "availableModes": [{ "id": "build" }] });
        assert_eq!(asking(&free), Asking::Unknown);
    }

    #[test]
    fn only_the_first_opencode_keeps_to_its_environment() {
        let told =
            |version: &str| json!({ "agentInfo": { "name": "OpenCode", "version": version } });
        for first in [Some(told("1.18.33")), Some(json!({})), None] {
            assert_eq!(
                opencode_asking(first.as_ref()),
                Asking::Already,
                "{first:?}"
            );
        }
        for second in ["2.0.32", "0.0.0-next-16350"] {
            assert_eq!(opencode_asking(Some(&told(second))), Asking::Unknown);
        }
    }

    #[test]
    fn opencode_asks_whatever_a_project_says() {
        let held = Manner {
            held: true,
            ephemeral: false,
        };
        let env = environment(Some(Adapter::OpenCode), held, Path::new("/nowhere"));
        let value = |name: &str| {
            env.iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        assert!(
            value("OPENCODE_PERMISSION")
                .unwrap()
                .starts_with(r#"{"*":"ask""#)
        );
        assert_eq!(value("OPENCODE_DISABLE_PROJECT_CONFIG"), Some("1"));
        let others = environment(Some(Adapter::Gemini), held, Path::new("/nowhere"));
        assert_eq!(others.len(), 1);
    }
}
