//! The command line of a vendor's program for one turn: arguments, environment and standard input.
//! The prompt always goes to standard input, where it may have any length and needs no quoting.
//!
//! The permission mode is translated to each program's own options. Without a terminal only claude
//! can ask; for the others "ask" is "low":
//!
//! | | `none` | `low` | `ask` | `all` |
//! |---|---|---|---|---|
//! | claude | `--tools ''` | its default: read-only tools run, the rest is denied | it asks on standard output and is answered on standard input | as `ask`, and every answer is yes, for MCP tools too (its bypass refuses to run as root) |
//! | codex | read-only sandbox: it cannot be without tools | read-only sandbox | as `low` | sandbox in which it may write to its folder |
//! | gemini-cli | `plan` | its default: tools that change things are not offered | as `low` | `--yolo` |
//! | opencode | every tool denied | every tool denied except read-only ones | as `low` | `--auto` |

use std::path::{Path, PathBuf};

use super::{Vendor, VendorProgram, permission};
use crate::approval::Approval;
use crate::opencode::{self, Access, Generation};
use crate::{AgentRequest, NativeSession, mention, prompt};

/// Settings under which claude runs no hooks.
const CLAUDE_NO_HOOKS: &str = r#"{"disableAllHooks":true}"#;
/// Claude's tools that exist only when it can ask, and that need more than yes or no from the user.
const CLAUDE_DIALOGS: &str = "AskUserQuestion,EnterPlanMode,ExitPlanMode";
/// Options with which claude asks on standard output and is answered on standard input.
const CLAUDE_ASKS: &[&str] = &[
    "--disallowedTools",
    CLAUDE_DIALOGS,
    "--input-format",
    "stream-json",
    "--permission-prompt-tool",
    "stdio",
];
/// Maximum length of a text in an argument: the system accepts at most 128 KiB, and other users can
/// read arguments.
const LONGEST_ARGUMENT: usize = 32 * 1024;
/// Files of this machine for one turn.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Generation of OpenCode.
    pub(super) generation: Generation,
    /// Temporary home in place of the user's.
    pub(super) home: Option<PathBuf>,
    /// The folder's instructions for agents, for a program that does not find them itself.
    pub(super) instructions: Option<PathBuf>,
}

/// Arguments, environment and input for one turn. No `Debug`: the environment may hold keys.
pub(super) struct Launch {
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) stdin: String,
    /// Whether the program asks permission, and reads the answers from standard input.
    pub(super) asks: bool,
}

/// Builds the command line for `question`, resuming `native` if given.
pub(super) fn launch(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
    around: &Surroundings,
) -> Launch {
    let (args, mut env) = match program.vendor {
        Vendor::Claude => claude(program, question, native),
        Vendor::Codex => codex(program, question, native),
        Vendor::GeminiCli => gemini(program, question.approval, native, around.home.as_deref()),
        Vendor::OpenCode => opencode(program, question, native, around),
    };
    // The settings take precedence.
    env.extend(program.env.iter().cloned());
    // The permission mode gives the answers: `all` is always yes, the others ask the user.
    let answered = [Approval::Ask, Approval::Edits, Approval::All].contains(&question.approval);
    let asks = program.vendor == Vendor::Claude && answered;
    let words = stdin(program, question, native);
    let words = match program.vendor {
        Vendor::Claude => mention::unread(&words, program.work_dir.as_deref()),
        Vendor::GeminiCli => mention::escaped(&words, program.work_dir.as_deref()),
        // These programs do not read mentioned files.
        Vendor::Codex | Vendor::OpenCode => words,
    };
    Launch {
        args,
        env,
        stdin: if asks {
            permission::prompt(&words)
        } else {
            words
        },
        asks,
    }
}

/// Returns the messages that the program has not seen: with a session of its own the new ones, else
/// the whole conversation.
fn stdin(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
) -> String {
    let name = &program.name;
    match native {
        Some(native) => {
            let (known, recall) = (native.known, program.vendor.recall());
            let told = prompt::unheard(name, &question.messages, known, recall);
            prompt::talk(name, None, &told)
        }
        // Only claude has an option for the system text; it is used if the text fits.
        None if program.vendor == Vendor::Claude => {
            let system = program.system.as_deref();
            let system = system.filter(|text| !is_argument(text));
            prompt::talk(name, system, &question.messages)
        }
        None => prompt::talk(name, program.system.as_deref(), &question.messages),
    }
}

type Line = (Vec<String>, Vec<(String, String)>);

fn claude(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
) -> Line {
    let mut args = strings(&[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ]);
    args.extend(option("--model", program.model.as_deref()));
    args.extend(option("--resume", id_of(native)));
    if native.is_some_and(|native| native.fork) {
        args.push("--fork-session".into());
    }
    let system = claude_system(program, question);
    args.extend(option("--append-system-prompt", system.as_deref()));
    if question.ephemeral {
        args.push("--no-session-persistence".into());
    }
    if question.approval != Approval::All {
        // A folder's hooks run without permission.
        args.extend(strings(&["--settings", CLAUDE_NO_HOOKS]));
    }
    args.extend(match question.approval {
        Approval::None => strings(&["--tools", ""]),
        Approval::Low => Vec::new(),
        // Under `edits`, the answer is yes where nothing but a file of the folder is edited: claude
        // itself would also edit files that programs act on.
        Approval::Ask | Approval::Edits => strings(CLAUDE_ASKS),
        Approval::All => strings(&[&["--permission-mode", "acceptEdits"], CLAUDE_ASKS].concat()),
    });
    args.extend(program.args.iter().cloned());
    // It would retry for three minutes in silence.
    let retries = program.retries.to_string();
    // Versions that know it do not read mentioned files, however the mention is written.
    let unread = ("CLAUDE_CODE_DISABLE_FILE_MENTIONS".into(), "1".into());
    (
        args,
        vec![("CLAUDE_CODE_MAX_RETRIES".into(), retries), unread],
    )
}

/// Returns claude's system prompt option. Text that is too long for it goes to standard input: the
/// agent's part is in the prompt anyway, and the text from the settings precedes the prompt.
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

fn codex(program: &VendorProgram, question: &AgentRequest, native: Option<&NativeSession>) -> Line {
    let mut args = strings(&["exec", "--json", "--skip-git-repo-check"]);
    // Plugins keep it running for seconds after its last event; without a network it would wait for
    // ever. The number of retries is set per provider, whose name is not known here. Versions that
    // lack a feature refuse its flag but accept its setting.
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
        // It cannot ask, and its other sandbox runs commands, too.
        Approval::None | Approval::Low | Approval::Ask | Approval::Edits => "read-only",
        Approval::All => "workspace-write",
    };
    args.extend(option("-s", Some(sandbox)));
    args.extend(program.args.iter().cloned());
    let command = match native.is_some_and(|native| native.fork) {
        true => "fork",
        false => "resume",
    };
    args.extend(option(command, id_of(native)));
    args.push("-".into());
    (args, Vec::new())
}

fn gemini(
    program: &VendorProgram,
    approval: Approval,
    native: Option<&NativeSession>,
    home: Option<&Path>,
) -> Line {
    let mut args = strings(&["--skip-trust", "--output-format", "stream-json"]);
    args.extend(option("-m", program.model.as_deref()));
    args.extend(option("--resume", id_of(native)));
    args.extend(match approval {
        Approval::None => strings(&["--approval-mode", "plan"]),
        Approval::Low | Approval::Ask | Approval::Edits => Vec::new(),
        Approval::All => strings(&["--yolo"]),
    });
    args.extend(program.args.iter().cloned());
    // Its relaunched child process would not receive the signal to end.
    let mut env = vec![("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned())];
    let home = home.map(|home| home.to_string_lossy().into_owned());
    env.extend(home.map(|home| ("GEMINI_CLI_HOME".to_owned(), home)));
    (args, env)
}

fn opencode(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
    around: &Surroundings,
) -> Line {
    let mut args = strings(&["run", "--format", "json", "--thinking"]);
    let is_second = around.generation == Generation::Second;
    if is_second {
        // Otherwise it starts a server that stays, or lets one work that was started differently.
        args.push("--standalone".into());
    }
    args.extend(option("-m", program.model.as_deref()));
    args.extend(option("--session", id_of(native)));
    if native.is_some_and(|native| native.fork) {
        args.push("--fork".into());
    }
    let access = match question.approval {
        Approval::None => Some(Access::Nothing),
        Approval::Low | Approval::Ask | Approval::Edits => Some(Access::Looking),
        Approval::All => None,
    };
    if access.is_none() {
        args.push("--auto".into());
    }
    if question.ephemeral {
        // Its log has commands and paths in it.
        let level = if is_second { "none" } else { "ERROR" };
        args.extend(strings(&["--log-level", level]));
    }
    args.extend(program.args.iter().cloned());
    let instructions = around.instructions.as_deref();
    let env = opencode::environment(access, question.ephemeral, instructions);
    (args, env)
}

fn id_of(native: Option<&NativeSession>) -> Option<&str> {
    native.map(|native| native.id.as_str())
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn option(flag: &str, value: Option<&str>) -> Vec<String> {
    value.map_or_else(Vec::new, |value| strings(&[flag, value]))
}

/// Returns whether a session id is valid, and not an option: a log may come from anywhere.
pub(super) fn is_session_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.len() <= 100 && id.chars().all(plain)
}

#[cfg(test)]
mod tests;
