//! The command line of a vendor's program for one turn: what it is told by arguments, by its
//! environment and on standard input. The prompt always comes on standard input, where it may have
//! any length and needs no quoting.
//!
//! What a person allows is put into each one's own words. Without a terminal only claude can ask;
//! for the others "ask" is "low":
//!
//! | | `none` | `low` | `ask` | `all` |
//! |---|---|---|---|---|
//! | claude | `--tools ''` | its default: it looks, the rest is refused | it asks on standard output and is answered on standard input | edits accepted, its other tools allowed by name (its bypass refuses to run as root) |
//! | codex | read-only sandbox: it cannot be without tools | read-only sandbox | as `low` | sandbox in which it may write to its folder |
//! | gemini-cli | `plan` | its default: tools that change things are not offered | as `low` | `--yolo` |
//! | opencode | every tool denied | edits, shell and fetching denied | as `low` | `--auto` |

use super::{Vendor, VendorProgram, leave};
use crate::agent::{NativeSession, Question, prompt};
use crate::approval::Approval;

/// Claude's tools that do more than look.
const CLAUDE_TOOLS: &str = "Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch,Task,Skill,Monitor";
/// Settings under which claude runs no commands of its hooks.
const CLAUDE_NO_HOOKS: &str = r#"{"disableAllHooks":true}"#;
/// Claude's tools that it has only when it can ask, and that want more of a person than yes or no.
const CLAUDE_DIALOGS: &str = "AskUserQuestion,EnterPlanMode,ExitPlanMode";
/// Longer texts are no arguments: the system takes at most 128 KiB in one, and shows them to everybody.
const LONGEST_ARGUMENT: usize = 32 * 1024;
/// What opencode may not do when it may only look.
const OPENCODE_LOOKING: &str =
    r#"{"edit":"deny","bash":"deny","webfetch":"deny","websearch":"deny"}"#;
/// What opencode may do when there are no tools.
const OPENCODE_NOTHING: &str = r#"{"*":"deny"}"#;

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
    question: &Question,
    native: Option<&NativeSession>,
) -> Launch {
    let session = native.map(|native| native.id.as_str());
    let (args, mut env) = match program.vendor {
        Vendor::Claude => claude(program, question, session),
        Vendor::Codex => codex(program, question, session),
        Vendor::GeminiCli => gemini(program, question.approval, session),
        Vendor::OpenCode => opencode(program, question.approval, session),
    };
    // The settings have the last word.
    env.extend(program.env.iter().cloned());
    let asks = program.vendor == Vendor::Claude && question.approval == Approval::Ask;
    let words = stdin(program, question, native);
    Launch {
        args,
        env,
        stdin: if asks { leave::prompt(&words) } else { words },
        asks,
    }
}

/// What it has not heard yet: with a session of its own the last words, else the whole talk.
fn stdin(program: &VendorProgram, question: &Question, native: Option<&NativeSession>) -> String {
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

fn claude(program: &VendorProgram, question: &Question, session: Option<&str>) -> Line {
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
        Approval::Ask => strings(&[
            "--disallowedTools",
            CLAUDE_DIALOGS,
            "--input-format",
            "stream-json",
            "--permission-prompt-tool",
            "stdio",
        ]),
        Approval::All => strings(&[
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            CLAUDE_TOOLS,
        ]),
    });
    args.extend(program.args.iter().cloned());
    // It would try for three minutes in silence.
    let retries = program.retries.to_string();
    (args, vec![("CLAUDE_CODE_MAX_RETRIES".into(), retries)])
}

/// What claude is told apart from the talk. What is too long for that is on standard input: the part that
/// it plays stands in the prompt anyway, and what the settings say comes before it.
fn claude_system(program: &VendorProgram, question: &Question) -> Option<String> {
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

fn codex(program: &VendorProgram, question: &Question, session: Option<&str>) -> Line {
    let mut args = strings(&["exec", "--json", "--skip-git-repo-check"]);
    // Plugins keep it for seconds after its last word; without a network it would wait for ever.
    // How often it tries a provider is set per provider, whose name is not known here.
    args.extend(strings(&[
        "--disable",
        "plugins",
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

fn gemini(program: &VendorProgram, approval: Approval, session: Option<&str>) -> Line {
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
    (args, vec![("GEMINI_CLI_NO_RELAUNCH".into(), "true".into())])
}

fn opencode(program: &VendorProgram, approval: Approval, session: Option<&str>) -> Line {
    let mut args = strings(&["run", "--format", "json", "--thinking"]);
    args.extend(option("-m", program.model.as_deref()));
    args.extend(option("--session", session));
    // A run for one turn is no time to renew itself. Its other switches would take away logins and
    // models: whoever wants that sets them.
    let mut env = vec![
        ("OPENCODE_DISABLE_AUTOUPDATE".into(), "1".into()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD".into(), "1".into()),
    ];
    let permission = match approval {
        Approval::None => Some(OPENCODE_NOTHING),
        Approval::Low | Approval::Ask => Some(OPENCODE_LOOKING),
        Approval::All => None,
    };
    match permission {
        Some(rules) => env.push(("OPENCODE_PERMISSION".into(), rules.into())),
        None => args.push("--auto".into()),
    }
    args.extend(program.args.iter().cloned());
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
mod tests {
    use super::*;
    use crate::agent::{Part, Patience, Utterance, Whence};
    use crate::entry::{Role, Usage};

    fn program(vendor: Vendor) -> VendorProgram {
        VendorProgram {
            name: "bot".into(),
            vendor,
            model: Some("m".into()),
            command: vendor.program().into(),
            args: vec!["--mine".into()],
            env: vec![("KEY".into(), "value".into())],
            without: Vec::new(),
            work_dir: None,
            system: Some("Be kind.".into()),
            patience: Patience::default(),
            whence: Whence::settings("bot"),
            retries: 2,
            found: None,
        }
    }

    fn question(approval: Approval) -> Question {
        Question {
            messages: vec![
                Utterance::plain(Role::User, "ana", "one"),
                Utterance::plain(Role::Assistant, "bot", "two"),
                Utterance::plain(Role::User, "ana", "three"),
            ],
            approval,
            ..Question::default()
        }
    }

    fn native(known: usize) -> NativeSession {
        NativeSession {
            id: "id-1".into(),
            cwd: None,
            known,
            spent: Usage::default(),
        }
    }

    fn shown(launch: &Launch) -> (String, String) {
        let env: Vec<String> = launch.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        (launch.args.join(" "), env.join(" "))
    }

    #[test]
    fn each_program_is_told_in_its_own_words() {
        let check = |vendor, approval, resumed: bool, args: &str, env: &str| {
            let native = resumed.then(|| native(2));
            let launch = launch(&program(vendor), &question(approval), native.as_ref());
            assert_eq!(shown(&launch), (args.to_owned(), env.to_owned()));
        };
        const CLAUDE: &str =
            "-p --output-format stream-json --verbose --include-partial-messages --model m";
        let claude_env = "CLAUDE_CODE_MAX_RETRIES=2 KEY=value";
        let with = |rest: &str| format!("{CLAUDE} {rest}");
        let hookless = format!("--settings {CLAUDE_NO_HOOKS}");
        check(
            Vendor::Claude,
            Approval::Low,
            false,
            &with(&format!(
                "--append-system-prompt Be kind. {hookless} --mine"
            )),
            claude_env,
        );
        check(
            Vendor::Claude,
            Approval::None,
            true,
            &with(&format!(
                "--resume id-1 --append-system-prompt Be kind. {hookless} --tools  --mine"
            )),
            claude_env,
        );
        let all = "--append-system-prompt Be kind. --permission-mode acceptEdits --allowedTools";
        check(
            Vendor::Claude,
            Approval::All,
            false,
            &with(&format!("{all} {CLAUDE_TOOLS} --mine")),
            claude_env,
        );
        let asking = "--input-format stream-json --permission-prompt-tool stdio --mine";
        check(
            Vendor::Claude,
            Approval::Ask,
            true,
            &with(&format!(
                "--resume id-1 --append-system-prompt Be kind. {hookless} --disallowedTools {CLAUDE_DIALOGS} {asking}"
            )),
            claude_env,
        );
        let codex = "exec --json --skip-git-repo-check --disable plugins \
                     -c features.unbounded_connection_retries=false -m m -s";
        for approval in [Approval::None, Approval::Low, Approval::Ask] {
            let args = format!("{codex} read-only --mine -");
            check(Vendor::Codex, approval, false, &args, "KEY=value");
        }
        let args = format!("{codex} workspace-write --mine resume id-1 -");
        check(Vendor::Codex, Approval::All, true, &args, "KEY=value");
    }

    #[test]
    fn so_are_the_other_two() {
        let check = |vendor, approval, resumed: bool, args: &str, env: &str| {
            let native = resumed.then(|| native(2));
            let launch = launch(&program(vendor), &question(approval), native.as_ref());
            assert_eq!(
                shown(&launch),
                (args.to_owned(), format!("{env} KEY=value"))
            );
        };
        let gemini = "--skip-trust --output-format stream-json -m m";
        let once = "GEMINI_CLI_NO_RELAUNCH=true";
        for (approval, resumed, rest) in [
            (Approval::Ask, true, "--resume id-1 --mine"),
            (Approval::None, false, "--approval-mode plan --mine"),
            (Approval::All, false, "--yolo --mine"),
        ] {
            let args = format!("{gemini} {rest}");
            check(Vendor::GeminiCli, approval, resumed, &args, once);
        }
        let opencode = "run --format json --thinking -m m";
        let quiet = "OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1";
        let ruled = |rules: &str| format!("{quiet} OPENCODE_PERMISSION={rules}");
        for (approval, resumed, rest, env) in [
            (
                Approval::Ask,
                true,
                "--session id-1 --mine",
                ruled(OPENCODE_LOOKING),
            ),
            (Approval::None, false, "--mine", ruled(OPENCODE_NOTHING)),
            (Approval::All, false, "--auto --mine", quiet.to_owned()),
        ] {
            let args = format!("{opencode} {rest}");
            check(Vendor::OpenCode, approval, resumed, &args, &env);
        }
    }

    #[test]
    fn those_that_can_keep_nothing_are_told_to() {
        let check = |vendor, expected: &str| {
            let question = Question {
                ephemeral: true,
                ..question(Approval::Low)
            };
            let launch = launch(&program(vendor), &question, None);
            assert!(
                launch.args.iter().any(|word| word == expected),
                "{vendor:?}"
            );
        };
        check(Vendor::Claude, "--no-session-persistence");
        check(Vendor::Codex, "--ephemeral");
    }

    #[test]
    fn what_it_has_not_heard_comes_on_stdin() {
        let check = |vendor, known: Option<usize>, expected: &str| {
            let native = known.map(native);
            let question = question(Approval::Low);
            let launch = launch(&program(vendor), &question, native.as_ref());
            assert_eq!(launch.stdin, expected, "{vendor:?} {known:?}");
        };
        let talk = "ana: one\n\nbot: two\n\nthree";
        check(Vendor::Claude, None, talk);
        for vendor in [Vendor::Codex, Vendor::GeminiCli, Vendor::OpenCode] {
            check(vendor, None, &format!("Be kind.\n\n{talk}"));
        }
        for vendor in Vendor::ALL {
            check(vendor, Some(2), "three");
            check(vendor, Some(1), "bot: two\n\nthree");
            check(vendor, Some(9), "three");
        }
    }

    #[test]
    fn what_is_too_long_for_an_argument_is_none() {
        let (short, long) = ("Be kind.", "x".repeat(LONGEST_ARGUMENT + 1));
        let check = |own: &str, part: Option<&str>, argument: Option<&str>, stdin: &str| {
            let program = VendorProgram {
                system: Some(own.to_owned()),
                ..program(Vendor::Claude)
            };
            let question = Question {
                messages: vec![Utterance::plain(Role::User, "ana", "one")],
                part: part.map(|system| Part {
                    system: system.to_owned(),
                    ..Part::default()
                }),
                ..question(Approval::Low)
            };
            let launch = launch(&program, &question, None);
            let flag = |word: &String| word == "--append-system-prompt";
            let place = launch.args.iter().position(flag);
            let told = place.map(|place| launch.args[place + 1].as_str());
            assert_eq!(told, argument);
            assert_eq!(launch.stdin, stdin);
        };
        check(short, None, Some(short), "one");
        check(
            short,
            Some("You are Bo."),
            Some("Be kind.\n\nYou are Bo."),
            "one",
        );
        check(short, Some(&long), Some(short), "one");
        check(
            &long,
            Some("You are Bo."),
            Some("You are Bo."),
            &format!("{long}\n\none"),
        );
        check(&long, Some(&long), None, &format!("{long}\n\none"));
    }

    #[test]
    fn whoever_is_answered_is_spoken_to_in_json() {
        let question = question(Approval::Ask);
        let launched = launch(&program(Vendor::Claude), &question, Some(&native(2)));
        assert_eq!(launched.stdin, leave::prompt("three"));
        assert!(launched.asks);
        let launched = launch(&program(Vendor::Codex), &question, Some(&native(2)));
        assert_eq!(launched.stdin, "three");
        assert!(!launched.asks);
    }

    #[test]
    fn no_option_passes_for_a_session() {
        for id in [
            "ses_e1f66cd56ffe",
            "01a1e094-1b23-7bb3-b1de-481e4e055140",
            "x",
        ] {
            assert!(is_session_id(id), "{id}");
        }
        for id in ["", "--yolo", "-", "a b", "a\n", "a/../b", "é"] {
            assert!(!is_session_id(id), "{id}");
        }
        assert!(!is_session_id(&"x".repeat(101)));
    }
}
