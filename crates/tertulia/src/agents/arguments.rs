//! Filters the arguments of vendors' programs: removes those that tertulia sets itself, and those
//! that would let the vendor's tools run without permission.

use tertulia_agents::vendor::Vendor;

/// Arguments, sorted by whether they are passed on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Passed on.
    pub kept: Vec<String>,
    /// Removed, since `--approve` controls them.
    pub refused: Vec<String>,
    /// Removed, since a team file may not set them.
    pub strange: Vec<String>,
}

/// Rule for one argument.
struct Rule {
    /// The flag. Long flags match regardless of case and hyphens.
    flag: &'static str,
    takes: Takes,
    why: Why,
}

/// The words that belong to an argument.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Value,
    /// All words up to the next flag.
    Words,
    /// A value; the rule applies only if the value starts with one of these.
    Like(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Set by tertulia itself.
    Ours,
    /// Would let tools run without asking the user.
    Frees,
    /// Only chooses the model and its instructions, or restricts the agent.
    Harmless,
}

const fn ours(flag: &'static str, takes: Takes) -> Rule {
    Rule {
        flag,
        takes,
        why: Why::Ours,
    }
}

const fn frees(flag: &'static str, takes: Takes) -> Rule {
    Rule {
        flag,
        takes,
        why: Why::Frees,
    }
}

const fn harmless(flag: &'static str, takes: Takes) -> Rule {
    Rule {
        flag,
        takes,
        why: Why::Harmless,
    }
}

const CLAUDE: &[Rule] = &[
    ours("-p", Takes::Nothing),
    ours("--print", Takes::Nothing),
    ours("--output-format", Takes::Value),
    ours("--input-format", Takes::Value),
    ours("--include-partial-messages", Takes::Nothing),
    ours("--verbose", Takes::Nothing),
    ours("--permission-prompt-tool", Takes::Value),
    frees(
        "--permission-mode",
        Takes::Like(&["bypass", "accept", "dontask", "auto"]),
    ),
    frees("--allowed-tools", Takes::Words),
    // Settings may allow tools, and hooks run without asking.
    frees("--settings", Takes::Value),
];

const CODEX: &[Rule] = &[
    ours("exec", Takes::Nothing),
    ours("-", Takes::Nothing),
    ours("--json", Takes::Nothing),
    ours("--skip-git-repo-check", Takes::Nothing),
    frees("-s", Takes::Like(&["workspace", "danger"])),
    frees("--sandbox", Takes::Like(&["workspace", "danger"])),
    frees("-a", Takes::Like(&["never"])),
    frees("--ask-for-approval", Takes::Like(&["never"])),
    frees("-c", Takes::Like(CODEX_SETTINGS)),
    frees("--config", Takes::Like(CODEX_SETTINGS)),
];

/// Settings of codex that control permissions, or run programs without asking.
const CODEX_SETTINGS: &[&str] = &[
    "sandbox",
    "approval",
    "permissions",
    "default_permissions",
    "notify",
];

const GEMINI: &[Rule] = &[
    ours("-p", Takes::Words),
    ours("--prompt", Takes::Words),
    ours("-o", Takes::Value),
    ours("--output-format", Takes::Value),
    ours("--skip-trust", Takes::Nothing),
    frees("-y", Takes::Nothing),
    frees("--approval-mode", Takes::Like(&["yolo", "auto"])),
    frees("--allowed-tools", Takes::Words),
];

const OPENCODE: &[Rule] = &[
    ours("run", Takes::Nothing),
    ours("--format", Takes::Value),
    ours("--thinking", Takes::Nothing),
    frees("--auto", Takes::Nothing),
];

const HARMLESS_CLAUDE: &[Rule] = &[
    harmless("--model", Takes::Value),
    harmless("--fallback-model", Takes::Value),
    harmless("--effort", Takes::Value),
    harmless("--max-turns", Takes::Value),
    harmless("--max-budget-usd", Takes::Value),
    harmless("--system-prompt", Takes::Value),
    harmless("--append-system-prompt", Takes::Value),
    harmless("--permission-mode", Takes::Like(&["plan", "default"])),
    harmless("--disallowed-tools", Takes::Words),
];

const HARMLESS_CODEX: &[Rule] = &[
    harmless("-m", Takes::Value),
    harmless("--model", Takes::Value),
    harmless("-s", Takes::Like(&["read-only"])),
    harmless("--sandbox", Takes::Like(&["read-only"])),
    harmless("-c", Takes::Like(HARMLESS_CODEX_SETTINGS)),
    harmless("--config", Takes::Like(HARMLESS_CODEX_SETTINGS)),
];

/// Settings of codex that choose the model and how it reasons. Others may run programs or name
/// servers.
const HARMLESS_CODEX_SETTINGS: &[&str] =
    &["model=", "model =", "model_reasoning_", "model_verbosity"];

const HARMLESS_GEMINI: &[Rule] = &[
    harmless("-m", Takes::Value),
    harmless("--model", Takes::Value),
    harmless("--approval-mode", Takes::Like(&["default", "plan"])),
];

const HARMLESS_OPENCODE: &[Rule] = &[
    harmless("-m", Takes::Value),
    harmless("--model", Takes::Value),
    harmless("--variant", Takes::Value),
];

/// Flags of all vendors that disable permission prompts.
const EVERYBODY: &[Rule] = &[
    frees("--yolo", Takes::Nothing),
    frees("--full-auto", Takes::Nothing),
];

/// Prefixes of flags that disable permission prompts.
const DANGEROUS: &[&str] = &["dangerously", "allowdangerously"];

/// Filters the arguments of a vendor's program.
pub fn sift(vendor: Vendor, args: &[String]) -> Sifted {
    let mut sifted = Sifted::default();
    let mut rest = args;
    while let Some((first, after)) = rest.split_first() {
        let taken = match rule(vendor, first, after) {
            None => {
                sifted.kept.push(first.clone());
                0
            }
            Some((why, taken)) => {
                let taken = taken.min(after.len());
                if why == Why::Frees {
                    let words = std::iter::once(first).chain(&after[..taken]);
                    let words: Vec<&str> = words.map(String::as_str).collect();
                    sifted.refused.push(words.join(" "));
                }
                taken
            }
        };
        rest = &after[taken..];
    }
    sifted
}

/// Filters arguments that a team file gives a vendor's program. Keeps only known harmless ones:
/// those that load code, read files or contact servers have many names, and new ones are added.
pub fn sift_strictly(vendor: Vendor, args: &[String]) -> Sifted {
    let mut sifted = sift(vendor, args);
    let plain = std::mem::take(&mut sifted.kept);
    let mut rest = plain.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let known = harmless_words(vendor, first, after);
        let until_next_flag = || {
            after
                .iter()
                .take_while(|word| !word.starts_with('-'))
                .count()
        };
        let taken = known.unwrap_or_else(until_next_flag);
        let words = rest[..=taken].iter();
        match known {
            Some(_) => sifted.kept.extend(words.cloned()),
            None => {
                let words: Vec<&str> = words.map(String::as_str).collect();
                sifted.strange.push(words.join(" "));
            }
        }
        rest = &after[taken..];
    }
    sifted
}

/// Returns how many of the following words belong to a harmless argument, or `None` if it is not
/// one.
fn harmless_words(vendor: Vendor, word: &str, after: &[String]) -> Option<usize> {
    let rules = match vendor {
        Vendor::Claude => HARMLESS_CLAUDE,
        Vendor::Codex => HARMLESS_CODEX,
        Vendor::GeminiCli => HARMLESS_GEMINI,
        Vendor::OpenCode => HARMLESS_OPENCODE,
    };
    let (_, taken) = matching(rules, word, after)?;
    // Reject a missing value, and one that some programs would take for a flag.
    let values = after.get(..taken)?;
    let all_values = values.iter().all(|value| !value.starts_with('-'));
    all_values.then_some(taken)
}

/// Returns why an argument is removed and how many of the following words with it, or `None` if it
/// stays.
fn rule(vendor: Vendor, word: &str, after: &[String]) -> Option<(Why, usize)> {
    let plain = comparable(parted(word).0);
    if word.starts_with("--") && DANGEROUS.iter().any(|begin| plain.starts_with(begin)) {
        return Some((Why::Frees, 0));
    }
    let own = match vendor {
        Vendor::Claude => CLAUDE,
        Vendor::Codex => CODEX,
        Vendor::GeminiCli => GEMINI,
        Vendor::OpenCode => OPENCODE,
    };
    matching(own.iter().chain(EVERYBODY), word, after)
}

/// Splits a flag from a value attached with `=`.
fn parted(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
        _ => (word, None),
    }
}

/// Returns the reason of the first rule that matches, and how many of the following words belong to
/// the argument.
fn matching<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    word: &str,
    after: &[String],
) -> Option<(Why, usize)> {
    let (flag, attached) = parted(word);
    let plain = comparable(flag);
    rules.into_iter().find_map(|rule| {
        let (is_it, attached) = if rule.flag.starts_with("--") {
            (
                flag.starts_with("--") && comparable(rule.flag) == plain,
                attached,
            )
        } else {
            short(rule, word)
        };
        let taken = is_it.then(|| taken(rule.takes, attached, after))??;
        Some((rule.why, taken))
    })
}

/// Matches a short flag, which may have its value attached: `-sdanger-full-access`.
fn short<'a>(rule: &Rule, word: &'a str) -> (bool, Option<&'a str>) {
    if word == rule.flag {
        return (true, None);
    }
    let attached = word
        .strip_prefix(rule.flag)
        .filter(|_| rule.flag.len() == 2 && !word.starts_with("--"))
        .filter(|_| matches!(rule.takes, Takes::Like(_)));
    (
        attached.is_some(),
        attached.map(|value| value.trim_start_matches('=')),
    )
}

/// Returns how many of the following words belong to an argument, or `None` if a rule with prefixes
/// does not apply to its value.
fn taken(takes: Takes, attached: Option<&str>, after: &[String]) -> Option<usize> {
    let next = usize::from(attached.is_none());
    match takes {
        Takes::Nothing => Some(0),
        Takes::Value => Some(next),
        Takes::Words if attached.is_some() => Some(0),
        Takes::Words => Some(
            after
                .iter()
                .take_while(|word| !word.starts_with('-'))
                .count(),
        ),
        Takes::Like(begins) => {
            let value = attached.or_else(|| after.first().map(String::as_str))?;
            let value = value.trim_start_matches(['"', '\'', ' ']).to_lowercase();
            let like = begins.iter().any(|begin| value.starts_with(begin));
            like.then_some(next)
        }
    }
}

/// Normalises a long flag for comparison: some programs accept `--allowedTools` for
/// `--allowed-tools`.
fn comparable(flag: &str) -> String {
    let name = flag.trim_start_matches('-').replace(['-', '_'], "");
    name.to_lowercase()
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
            let sifted = sift(vendor, &words(line));
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

    #[test]
    fn somebody_elses_file_chooses_the_model_and_little_else() {
        let check = |vendor, line: &str, kept: &str, strange: &[&str]| {
            let sifted = sift_strictly(vendor, &words(line));
            assert_eq!(sifted.kept, words(kept), "{line}");
            assert_eq!(sifted.strange, strange, "{line}");
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
        let refused = sift_strictly(Vendor::Claude, &words("--settings {} --yolo")).refused;
        assert_eq!(refused, ["--settings {}", "--yolo"]);
    }

    #[test]
    fn a_flag_whose_value_is_missing_takes_nothing_that_is_not_there() {
        assert_eq!(
            sift(Vendor::Claude, &words("--output-format")).kept.len(),
            0
        );
        assert_eq!(
            sift(Vendor::Claude, &words("--permission-mode")).kept,
            ["--permission-mode"]
        );
    }
}
