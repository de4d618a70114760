//! The command line of a vendor's program for one turn: what it is told by arguments, by its
//! environment and on standard input. The prompt always comes on standard input, where it may have
//! any length and needs no quoting.
//!
//! The tool policy is put into each program's own words. Without a terminal only claude can ask; for the others
//! "ask" is "low":
//!
//! | | `none` | `low` | `ask` | `all` |
//! |---|---|---|---|---|
//! | claude | `--tools ''` | its default: it looks, the rest is refused | it asks on standard output and is answered on standard input | as `ask`, and every answer is yes, for MCP tools too (its bypass refuses to run as root) |
//! | codex | read-only sandbox: it cannot be without tools | read-only sandbox | as `low` | sandbox in which it may write to its folder |
//! | gemini-cli | `plan` | its default: tools that change things are not offered | as `low` | `--yolo` |
//! | opencode | every tool denied | every tool denied but those that look | as `low` | `--auto` |

use std::path::{Path, PathBuf};

use super::{Vendor, VendorProgram, leave};
use crate::approval::Approval;
use crate::opencode::{self, Access};
use crate::{AgentRequest, NativeSession, mention, prompt};

/// Settings under which claude runs no commands of its hooks.
const CLAUDE_NO_HOOKS: &str = r#"{"disableAllHooks":true}"#;
/// Claude's tools that it has only when it can ask, and that want more of a person than yes or no.
const CLAUDE_DIALOGS: &str = "AskUserQuestion,EnterPlanMode,ExitPlanMode";
/// Under which claude asks on standard output and is answered on standard input.
const CLAUDE_ASKS: &[&str] = &[
    "--disallowedTools",
    CLAUDE_DIALOGS,
    "--input-format",
    "stream-json",
    "--permission-prompt-tool",
    "stdio",
];
/// Longer texts are no arguments: the system takes at most 128 KiB in one, and shows them to everybody.
const LONGEST_ARGUMENT: usize = 32 * 1024;
/// What is there on this machine for one turn.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// A home that stands in for the user's.
    pub(super) home: Option<PathBuf>,
    /// The folder's instructions for agents, for a program that does not find them itself.
    pub(super) instructions: Option<PathBuf>,
}

/// How a program is started for one turn. No `Debug`: the environment may hold keys.
pub(super) struct Launch {
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) stdin: String,
    /// Whether it asks for leave, and reads the answers after that.
    pub(super) asks: bool,
}

/// The command line for `question`, going on with `native` if that is given.
pub(super) fn launch(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
    around: &Surroundings,
) -> Launch {
    let session = native.map(|native| native.id.as_str());
    let (args, mut env) = match program.vendor {
        Vendor::Claude => claude(program, question, session),
        Vendor::Codex => codex(program, question, session),
        Vendor::GeminiCli => gemini(program, question.approval, session, around.home.as_deref()),
        Vendor::OpenCode => opencode(program, question, session, around.instructions.as_deref()),
    };
    // The settings have the last word.
    env.extend(program.env.iter().cloned());
    // It is answered by the policy: all is yes, ask is the user's word.
    let answered = [Approval::Ask, Approval::All].contains(&question.approval);
    let asks = program.vendor == Vendor::Claude && answered;
    let words = stdin(program, question, native);
    let words = match program.vendor {
        Vendor::Claude => mention::unread(&words, program.work_dir.as_deref()),
        Vendor::GeminiCli => mention::escaped(&words),
        // They read no file for a word.
        Vendor::Codex | Vendor::OpenCode => words,
    };
    Launch {
        args,
        env,
        stdin: if asks { leave::prompt(&words) } else { words },
        asks,
    }
}

/// What it has not heard yet: with a session of its own the last words, else the whole talk.
fn stdin(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
) -> String {
    match native {
        Some(native) => {
            let (known, recall) = (native.known, program.vendor.recall());
            let told = prompt::unheard(&program.name, &question.messages, known, recall);
            prompt::talk(None, &told)
        }
        // Claude alone has a flag for it, and is given that, if it fits.
        None if program.vendor == Vendor::Claude => {
            let system = program.system.as_deref();
            prompt::talk(system.filter(|text| !is_argument(text)), &question.messages)
        }
        None => prompt::talk(program.system.as_deref(), &question.messages),
    }
}

type Line = (Vec<String>, Vec<(String, String)>);

fn claude(program: &VendorProgram, question: &AgentRequest, session: Option<&str>) -> Line {
    let mut args = strings(&[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ]);
    args.extend(option("--model", program.model.as_deref()));
    args.extend(option("--resume", session));
    let system = claude_system(program, question);
    args.extend(option("--append-system-prompt", system.as_deref()));
    if question.ephemeral {
        args.push("--no-session-persistence".into());
    }
    if question.approval != Approval::All {
        // A folder's hooks run without asking anybody.
        args.extend(strings(&["--settings", CLAUDE_NO_HOOKS]));
    }
    args.extend(match question.approval {
        Approval::None => strings(&["--tools", ""]),
        Approval::Low => Vec::new(),
        Approval::Ask => strings(CLAUDE_ASKS),
        Approval::All => strings(&[&["--permission-mode", "acceptEdits"], CLAUDE_ASKS].concat()),
    });
    args.extend(program.args.iter().cloned());
    // It would try for three minutes in silence.
    let retries = program.retries.to_string();
    // Versions that know it read no file for a word, however the word is written.
    let unread = ("CLAUDE_CODE_DISABLE_FILE_MENTIONS".into(), "1".into());
    (
        args,
        vec![("CLAUDE_CODE_MAX_RETRIES".into(), retries), unread],
    )
}

/// What claude is told apart from the talk. What is too long for that is on standard input: the part that
/// it plays stands in the prompt anyway, and what the settings say comes before it.
fn claude_system(program: &VendorProgram, question: &AgentRequest) -> Option<String> {
    let own = program.system.as_deref().filter(|text| is_argument(text));
    let part = question.part.as_ref().map(|part| part.system.as_str());
    let both: Vec<&str> = [own, part].into_iter().flatten().collect();
    let both = (!both.is_empty()).then(|| both.join("\n\n"));
    both.filter(|text| is_argument(text))
        .or_else(|| own.map(str::to_owned))
}

fn is_argument(text: &str) -> bool {
    text.len() <= LONGEST_ARGUMENT
}

fn codex(program: &VendorProgram, question: &AgentRequest, session: Option<&str>) -> Line {
    let mut args = strings(&["exec", "--json", "--skip-git-repo-check"]);
    // Plugins keep it for seconds after its last word; without a network it would wait for ever.
    // How often it tries a provider is set per provider, whose name is not known here. Versions that lack a
    // feature refuse its flag and do not mind its setting.
    args.extend(strings(&[
        "-c",
        "features.plugins=false",
        "-c",
        "features.unbounded_connection_retries=false",
    ]));
    args.extend(option("-m", program.model.as_deref()));
    if question.ephemeral {
        args.push("--ephemeral".into());
    }
    let sandbox = match question.approval {
        Approval::None | Approval::Low | Approval::Ask => "read-only",
        Approval::All => "workspace-write",
    };
    args.extend(option("-s", Some(sandbox)));
    args.extend(program.args.iter().cloned());
    args.extend(option("resume", session));
    args.push("-".into());
    (args, Vec::new())
}

fn gemini(
    program: &VendorProgram,
    approval: Approval,
    session: Option<&str>,
    home: Option<&Path>,
) -> Line {
    let mut args = strings(&["--skip-trust", "--output-format", "stream-json"]);
    args.extend(option("-m", program.model.as_deref()));
    args.extend(option("--resume", session));
    args.extend(match approval {
        Approval::None => strings(&["--approval-mode", "plan"]),
        Approval::Low | Approval::Ask => Vec::new(),
        Approval::All => strings(&["--yolo"]),
    });
    args.extend(program.args.iter().cloned());
    // Its second self would not hear that it shall end.
    let mut env = vec![("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned())];
    let home = home.map(|home| home.to_string_lossy().into_owned());
    env.extend(home.map(|home| ("GEMINI_CLI_HOME".to_owned(), home)));
    (args, env)
}

fn opencode(
    program: &VendorProgram,
    question: &AgentRequest,
    session: Option<&str>,
    instructions: Option<&Path>,
) -> Line {
    let mut args = strings(&["run", "--format", "json", "--thinking"]);
    args.extend(option("-m", program.model.as_deref()));
    args.extend(option("--session", session));
    let access = match question.approval {
        Approval::None => Some(Access::Nothing),
        Approval::Low | Approval::Ask => Some(Access::Looking),
        Approval::All => None,
    };
    if access.is_none() {
        args.push("--auto".into());
    }
    if question.ephemeral {
        // Its log has commands and paths in it.
        args.extend(strings(&["--log-level", "ERROR"]));
    }
    args.extend(program.args.iter().cloned());
    let env = opencode::environment(access, question.ephemeral, instructions);
    (args, env)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn option(flag: &str, value: Option<&str>) -> Vec<String> {
    value.map_or_else(Vec::new, |value| strings(&[flag, value]))
}

/// Whether a session's id is one, and not an option: a log may come from anywhere.
pub(super) fn is_session_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.len() <= 100 && id.chars().all(plain)
}

#[cfg(test)]
mod tests;
