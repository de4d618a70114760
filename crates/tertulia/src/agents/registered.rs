//! Converts registered agents, and programs that a team file starts, to agent settings.

use std::path::{Path, PathBuf};

use tertulia_agents::acp::adapter::Adapter;
use tertulia_agents::api::Provider;
use tertulia_agents::vendor::Vendor;
use tertulia_core::redact::redact;
use tertulia_core::team::{Launch, Registered, Registry, Source as Chooser};

use super::arguments::{self, Giver};
use super::{ACP, COMMAND, DEMO, KnownProgram};
use crate::error::CommandResult;
use crate::settings::{AgentSettings, Settings, Source};

/// Characters at which a shell, path or list may start a new part.
const BREAKS: &[char] = &[
    ' ', '\t', '\n', '\r', '"', '\'', '`', '$', '(', ')', '<', '>', '|', '&', ';', '{', '}', '\\',
];

/// Why an argument that a team file gives is removed.
const OF_A_TEAM_FILE: &str = "a team file may choose only its model and instructions; allow more in your settings or with `tertulia agents register`";
/// Why an argument that the user registered is removed.
const OF_THE_USER: &str = "it may change permissions, which come from --approve; --approve all allows everything. Other arguments go into the settings of the agent";

/// Settings of a program that is run as an agent, and warnings about them.
pub struct Started {
    pub described: AgentSettings,
    pub warnings: Vec<String>,
}

/// Converts a launch to agent settings. The launch determines the program; settings of the same
/// name may still determine its type and how it answers.
pub fn started(settings: &Settings, name: &str, launch: &Launch) -> Started {
    let said = settings.agents.get(name);
    let persons = said.filter(|said| said.source != Source::TeamFile);
    let guessed = kind_of(name, &launch.command, &launch.args);
    let kind = persons
        .map(|said| said.kind.as_str())
        .filter(|kind| launch.source == Chooser::Registry && is_program(kind))
        .unwrap_or(guessed);
    let vendor = Vendor::parse(kind);
    let mut warnings = Vec::new();
    let mut described = match said.filter(|said| said.kind == kind) {
        // The environment set by the user may hold keys, so only the user's own program gets it.
        Some(said) if persons.is_some() && launch.source == Chooser::Registry => said.clone(),
        Some(said) => AgentSettings::plain(kind).adjusted_by(said.clone()),
        None => AgentSettings::plain(kind),
    };
    if let Some(said) = persons.filter(|_| launch.source == Chooser::Registry) {
        described.writable.clone_from(&said.writable);
        described.confine = said.confine;
    }
    // A team file could claim it of a program of its own.
    if launch.source == Chooser::Registry {
        let known = KnownProgram::started_by(&launch.command, &launch.args);
        described.asks |= known.is_some_and(|known| known.asks);
    }
    described.command = Some(PathBuf::from(&launch.command));
    described.args = match vendor {
        None => launch.args.clone(),
        Some(vendor) => {
            let (giver, why) = if is_given_strangers_words(launch, vendor) {
                (Giver::TeamFile, OF_A_TEAM_FILE)
            } else {
                (Giver::User, OF_THE_USER)
            };
            let sifted = arguments::sift(vendor, giver, &launch.args);
            warnings.extend(sifted.refused.iter().map(|refused| {
                let refused = shown(refused);
                format!("the agent '{name}' starts without {refused}: {why}")
            }));
            sifted.kept
        }
    };
    described.source = match launch.source {
        Chooser::Registry => Source::UserFile,
        Chooser::TeamFile => Source::TeamFile,
    };
    if launch.use_pty {
        warnings.push(format!(
            "agent '{name}' asks for a terminal (usePty), but tertulia runs it without one"
        ));
    }
    Started {
        described,
        warnings,
    }
}

/// Returns true if a vendor's program would get arguments from a team file. A program that merely
/// has a vendor's name is the team file's own, for which the vendor's options mean nothing.
fn is_given_strangers_words(launch: &Launch, vendor: Vendor) -> bool {
    let theirs = launch.source == Chooser::TeamFile;
    launch.args_source == Chooser::TeamFile
        && (!theirs || vendor_of("", &launch.command) == Some(vendor))
}

/// Returns how a registered agent is launched.
pub fn launch(agent: &Registered) -> Launch {
    Launch {
        command: agent.command.clone(),
        args: agent.args.clone(),
        args_source: Chooser::Registry,
        use_pty: agent.use_pty,
        source: Chooser::Registry,
    }
}

/// Determines the agent type from the command line: `acp` for known Agent Client Protocol programs,
/// a vendor's name, or `command`.
pub fn kind_of(name: &str, command: &str, args: &[String]) -> &'static str {
    if Adapter::of(Path::new(command), args).is_some() {
        return ACP;
    }
    match KnownProgram::started_by(command, args) {
        Some(known) => known.kind,
        None => vendor_of(name, command).map_or(COMMAND, Vendor::name),
    }
}

/// Returns the vendor of a program, judged by its file name or else by the agent's name.
pub fn vendor_of(name: &str, command: &str) -> Option<Vendor> {
    let file = Path::new(command).file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    [file.as_ref(), name].into_iter().find_map(|text| {
        let text = text.to_lowercase();
        Vendor::ALL
            .into_iter()
            .find(|vendor| text.contains(vendor.program()))
    })
}

/// Adds the registered agents to the settings. The user's own settings win, except for the program
/// if they do not name one.
pub fn joined(settings: &Settings, registry: &Registry) -> Settings {
    let mut joined = settings.clone();
    for (name, agent) in &registry.agents {
        if is_taken(name) {
            continue;
        }
        let mut described = started(settings, name, &launch(agent)).described;
        if let Some(said) = settings.agents.get(name)
            && said.source != Source::TeamFile
        {
            if is_whole(settings, name) {
                continue;
            }
            if !said.args.is_empty() {
                described.args.clone_from(&said.args);
            }
        }
        joined.agents.insert(name.clone(), described);
    }
    joined
}

/// Adds the registry's entry for one name to the settings. Reads the registry only if needed, so
/// that an unreadable one does not affect other agents.
pub fn joined_for(settings: &Settings, name: &str) -> CommandResult<Settings> {
    if is_taken(name) || is_whole(settings, name) {
        return Ok(settings.clone());
    }
    Ok(joined(settings, &settings.registry.read()?))
}

/// Returns true if the user's own settings describe an agent completely.
pub fn is_whole(settings: &Settings, name: &str) -> bool {
    settings.agents.get(name).is_some_and(|said| {
        said.source != Source::TeamFile && (said.command.is_some() || is_taken(&said.kind))
    })
}

/// Returns true if agents of this type are programs.
fn is_program(kind: &str) -> bool {
    Vendor::parse(kind).is_some() || [COMMAND, ACP].contains(&kind)
}

/// Returns true if a name outside of teams always means the demo agent or a provider's API. A
/// session started with a provider's API continues with it.
pub fn is_taken(name: &str) -> bool {
    name == DEMO || Provider::parse(name).is_some()
}

/// Formats a command line for the user to judge: complete, with invisible characters escaped and
/// keys redacted.
pub fn command_line(command: &str, args: &[String]) -> String {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let line: Vec<String> = words.map(shown).collect();
    line.join(" ")
}

/// Returns a word unchanged, or quoted if it contains whitespace or invisible characters.
pub fn shown(word: &str) -> String {
    let word = without_keys(word);
    let written_out = format!("{word:?}");
    let odd = written_out.len() != word.len() + 2 || word.is_empty();
    if odd || word.contains(char::is_whitespace) {
        written_out
    } else {
        word
    }
}

/// Redacts keys in a word. Works on the parts between [`BREAKS`], so that a command is never taken
/// for a key: otherwise `TOKEN="$(…)"` could hide one.
fn without_keys(word: &str) -> String {
    let pieces = word.split_inclusive(BREAKS);
    pieces
        .map(|piece| redact(piece).text.into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_are_known_by_their_programs_and_by_names() {
        let check = |name: &str, command: &str, expected: Option<Vendor>| {
            assert_eq!(vendor_of(name, command), expected, "{name} {command}");
        };
        check("claude", "/usr/bin/claude", Some(Vendor::Claude));
        check(
            "reviewer",
            "/opt/claude-2.1/claude.exe",
            Some(Vendor::Claude),
        );
        check("my-Codex", "/opt/wrapper.sh", Some(Vendor::Codex));
        // The program takes precedence over the name.
        check("claude", "/usr/bin/codex", Some(Vendor::Codex));
        check("gemini", "gemini", Some(Vendor::GeminiCli));
        check("opencode", "opencode", Some(Vendor::OpenCode));
        // The folder does not count.
        check("upper", "/home/claude/bin/tr", None);
    }

    #[test]
    fn adapters_are_no_vendors_programs() {
        let check = |line: &str, expected: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(kind_of("xx", &words[0], &words[1..]), expected, "{line}");
        };
        check("/usr/bin/codex-acp", "acp");
        check("claude-agent-acp", "acp");
        check("gemini --experimental-acp", "acp");
        check("opencode acp", "acp");
        check("npx @agentclientprotocol/claude-agent-acp", "acp");
        check("qwen --acp", "acp");
        check("/usr/bin/copilot --acp", "acp");
        check("qwen", "command");
        check("cn -p", "command");
        check("gemini --yolo", "gemini-cli");
        check("opencode", "opencode");
        check("tr", "command");
    }

    #[test]
    fn nothing_hides_in_a_command_line() {
        let check = |words: &[&str], expected: &str| {
            let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(command_line("sh", &args), expected);
        };
        check(&["-c", "x"], "sh -c x");
        check(&["a\nb", "", "\u{202e}c"], r#"sh "a\nb" "" "\u{202e}c""#);
        check(&["-c", "a  b"], "sh -c \"a  b\"");
        // However long it is, its end may be what matters.
        let long = format!("true ; : {}; id", "x".repeat(5000));
        assert!(command_line("sh", &["-c".to_owned(), long.clone()]).contains(&long));
        // A key is redacted, a command is not.
        let key = ["sk-ant-", "api03-", "Zq8fK2mW5xT9", "bN4cR7vL1hJ6"].concat();
        check(
            &[&format!("--key={key}")],
            "sh --key=[redacted:anthropic-key]",
        );
        let hidden = "PASSWORD=`Zq8fK2;id>/tmp/q;W5xT9`";
        assert!(redact(hidden).text.contains("[redacted"));
        check(&[hidden], &format!("sh {hidden}"));
    }
}
