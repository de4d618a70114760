//! Filters the arguments of vendors' programs that a registry or a team file gives: only known ones
//! are passed on. New versions add arguments that let tools run without permission, load code or
//! contact servers, and a list of those would never be complete.

use tertulia_agents::bypass::attached;
use tertulia_agents::vendor::Vendor;

/// Who gives the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// The user, who registered the agent.
    User,
    /// A team file, which may choose the model and its instructions, and restrict the agent.
    TeamFile,
}

/// Arguments, sorted by whether they are passed on. Those that tertulia sets itself are in neither
/// list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Passed on.
    pub kept: Vec<String>,
    /// Removed, each with its values.
    pub refused: Vec<String>,
}

/// Known arguments of a program, each with its values: `_` for one value, `a|b` for one that begins
/// with a or b, `...` for all words up to the next flag.
struct Known {
    /// Set by tertulia itself.
    ours: &'static [&'static str],
    /// Only choose the model and its instructions, or restrict the agent.
    harmless: &'static [&'static str],
    /// Give the agent more to work with, but still make it ask.
    users: &'static [&'static str],
}

const CLAUDE: Known = Known {
    ours: &[
        "-p",
        "--print",
        "--output-format _",
        "--input-format _",
        "--include-partial-messages",
        "--verbose",
        "--permission-prompt-tool _",
    ],
    harmless: &[
        "--model _",
        "--fallback-model _",
        "--effort _",
        "--max-turns _",
        "--max-budget-usd _",
        "--system-prompt _",
        "--append-system-prompt _",
        "--permission-mode plan|default",
        "--disallowed-tools ...",
    ],
    users: &[
        "--add-dir ...",
        "--agent _",
        "--agents _",
        "--betas ...",
        "--mcp-config ...",
        "--plugin-dir _",
        "--strict-mcp-config",
    ],
};

const CODEX: Known = Known {
    ours: &["exec", "-", "--json", "--skip-git-repo-check"],
    harmless: &[
        "-m _",
        "--model _",
        "-s read-only",
        "--sandbox read-only",
        "-c model=|model =|model_reasoning_|model_verbosity",
        "--config model=|model =|model_reasoning_|model_verbosity",
    ],
    users: &[
        "-p _",
        "--profile _",
        "--oss",
        "--local-provider _",
        "--search",
        "--enable _",
        "--disable _",
        "-c model|mcp_servers.|tools.|features.|project_doc|web_search",
        "--config model|mcp_servers.|tools.|features.|project_doc|web_search",
    ],
};

const GEMINI: Known = Known {
    ours: &[
        "-p ...",
        "--prompt ...",
        "-o _",
        "--output-format _",
        "--skip-trust",
    ],
    harmless: &["-m _", "--model _", "--approval-mode default|plan"],
    users: &["-e ...", "--extensions ...", "--include-directories ..."],
};

const OPENCODE: Known = Known {
    ours: &["run", "--format _", "--thinking"],
    harmless: &["-m _", "--model _", "--variant _"],
    users: &["--agent _"],
};

/// Filters the arguments of a vendor's program.
pub fn sift(vendor: Vendor, giver: Giver, args: &[String]) -> Sifted {
    let known = match vendor {
        Vendor::Claude => CLAUDE,
        Vendor::Codex => CODEX,
        Vendor::GeminiCli => GEMINI,
        Vendor::OpenCode => OPENCODE,
    };
    let users = if giver == Giver::User {
        known.users
    } else {
        &[]
    };
    let mut sifted = Sifted::default();
    let mut rest = args;
    while let Some((first, after)) = rest.split_first() {
        let values = |known: &[&str]| known.iter().find_map(|one| values(one, first, after));
        let taken = if let Some(taken) = values(known.ours) {
            taken
        } else if let Some(taken) = values(known.harmless).or_else(|| values(users)) {
            sifted.kept.extend_from_slice(&rest[..=taken]);
            taken
        } else {
            let taken = words(after);
            sifted.refused.push(rest[..=taken].join(" "));
            taken
        };
        rest = &after[taken..];
    }
    sifted
}

/// Returns the number of words up to the next flag.
fn words(after: &[String]) -> usize {
    let is_word = |word: &&String| !word.starts_with('-');
    after.iter().take_while(is_word).count()
}

/// Returns how many of the following words are values of the argument, if it is the known one and
/// has the values that are known of it. A value that some programs would take for a flag is none.
fn values(known: &str, word: &str, after: &[String]) -> Option<usize> {
    let (flag, values) = known.split_once(' ').unwrap_or((known, ""));
    let attached = attached(flag, word)?;
    match (values, attached) {
        ("", None) => Some(0),
        ("", Some(_)) => None,
        ("...", None) => Some(words(after)),
        ("...", Some(_)) => Some(0),
        (begins, attached) => {
            let next = || after.first().filter(|_| words(after) > 0);
            let value = attached.or_else(|| next().map(String::as_str))?;
            let value = value.trim_start_matches(['"', '\'', ' ']).to_lowercase();
            let fits = begins == "_" || begins.split('|').any(|begin| value.starts_with(begin));
            fits.then_some(usize::from(attached.is_none()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_this_program_gives_and_what_frees_is_left_out() {
        let check = |vendor, line: &str, kept: &str, refused: &[&str]| {
            let sifted = sift(vendor, Giver::User, &words(line));
            assert_eq!(sifted.kept, words(kept), "{line}");
            assert_eq!(sifted.refused, refused, "{line}");
        };
        // The arguments that agent-chatter registers.
        check(
            Vendor::Claude,
            "--permission-mode bypassPermissions --output-format stream-json --verbose",
            "",
            &["--permission-mode bypassPermissions"],
        );
        check(
            Vendor::Codex,
            "exec --dangerously-bypass-approvals-and-sandbox --json --skip-git-repo-check",
            "",
            &["--dangerously-bypass-approvals-and-sandbox"],
        );
        check(
            Vendor::GeminiCli,
            "--yolo --output-format stream-json",
            "",
            &["--yolo"],
        );
        check(
            Vendor::Claude,
            "-p --model opus --permission-mode=acceptEdits --permission-mode plan",
            "--model opus --permission-mode plan",
            &["--permission-mode=acceptEdits"],
        );
        check(
            Vendor::Claude,
            "--allowedTools Bash Edit --add-dir x --allowed-tools=Bash --dangerously-skip-permissions",
            "--add-dir x",
            &[
                "--allowedTools Bash Edit",
                "--allowed-tools=Bash",
                "--dangerously-skip-permissions",
            ],
        );
        check(
            Vendor::Codex,
            "-p work -s read-only -sdanger-full-access --sandbox workspace-write -c model=x -c sandbox_mode=\"y\" -a never --full-auto",
            "-p work -s read-only -c model=x",
            &[
                "-sdanger-full-access",
                "--sandbox workspace-write",
                "-c sandbox_mode=\"y\"",
                "-a never",
                "--full-auto",
            ],
        );
        check(
            Vendor::GeminiCli,
            "-m pro -y --approvalMode yolo --approval-mode default -p",
            "-m pro --approval-mode default",
            &["-y", "--approvalMode yolo"],
        );
        check(
            Vendor::OpenCode,
            "run --format json --auto --agent plan",
            "--agent plan",
            &["--auto"],
        );
    }

    /// Settings, hooks and anything newer than this list could let tools run without asking.
    #[test]
    fn what_is_not_known_is_left_out_for_the_user_too() {
        let check = |vendor, line: &str| {
            let sifted = sift(vendor, Giver::User, &words(line));
            assert_eq!((sifted.kept.len(), sifted.refused.len()), (0, 1), "{line}");
        };
        check(Vendor::Claude, "--settings {}");
        check(Vendor::Claude, "--newest-flag=x");
        check(Vendor::Codex, "-c notify=[\"sh\"]");
        check(Vendor::Codex, "--config=approval_policy=never");
        check(Vendor::Codex, "-cdefault_permissions=x");
        check(Vendor::GeminiCli, "--allowed-tools=run");
    }

    #[test]
    fn somebody_elses_file_chooses_the_model_and_little_else() {
        let check = |vendor, line: &str, kept: &str, refused: &[&str]| {
            let sifted = sift(vendor, Giver::TeamFile, &words(line));
            assert_eq!(sifted.kept, words(kept), "{line}");
            assert_eq!(sifted.refused, refused, "{line}");
        };
        check(
            Vendor::Claude,
            "-p --mcp-config evil.json --model opus --plugin-dir p --add-dir / /etc --disallowedTools Bash Edit",
            "--model opus --disallowedTools Bash Edit",
            &[
                "--mcp-config evil.json",
                "--plugin-dir p",
                "--add-dir / /etc",
            ],
        );
        check(
            Vendor::Claude,
            "stray --model=opus --model --mcp-config=x --permission-mode plan --newest-flag",
            "--model=opus --permission-mode plan",
            &["stray", "--model", "--mcp-config=x", "--newest-flag"],
        );
        check(
            Vendor::Codex,
            "exec -c mcp_servers.x.command=sh -cmodel_provider=evil -c model=o3 --config model_reasoning_effort=high -m o3 -C / -s read-only",
            "-c model=o3 --config model_reasoning_effort=high -m o3 -s read-only",
            &[
                "-c mcp_servers.x.command=sh",
                "-cmodel_provider=evil",
                "-C /",
            ],
        );
        check(
            Vendor::GeminiCli,
            "--include-directories / -e evil -m pro --approval-mode plan",
            "-m pro --approval-mode plan",
            &["--include-directories /", "-e evil"],
        );
        check(
            Vendor::OpenCode,
            "run --attach http://evil -m x/y --variant high",
            "-m x/y --variant high",
            &["--attach http://evil"],
        );
        check(
            Vendor::Claude,
            "--settings {} --yolo",
            "",
            &["--settings {}", "--yolo"],
        );
    }

    #[test]
    fn a_flag_whose_value_is_missing_takes_nothing_that_is_not_there() {
        for flag in ["--output-format", "--permission-mode", "--model"] {
            let sifted = sift(Vendor::Claude, Giver::User, &words(flag));
            assert_eq!((sifted.kept.len(), sifted.refused), (0, words(flag)));
        }
        let sifted = sift(Vendor::Claude, Giver::User, &words("--model --yolo"));
        assert_eq!(sifted.kept, Vec::<String>::new());
    }
}
