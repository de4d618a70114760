//! Which arguments of a vendor's program are not handed on: those that this program gives itself, and
//! those that would let the vendor's tools do things that nobody was asked about.

use tertulia::agent::vendor::Vendor;

/// Arguments, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Handed on.
    pub kept: Vec<String>,
    /// Left out, since `--approve` decides about it.
    pub refused: Vec<String>,
}

/// One argument that is left out.
struct Rule {
    /// How it is written; long ones in any case and with or without hyphens.
    flag: &'static str,
    takes: Takes,
    why: Why,
}

/// What an argument takes with it.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Value,
    /// All words up to the next flag.
    Words,
    /// A value, and only with one that begins like this is it left out.
    Like(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// This program gives it.
    Ours,
    /// It would take the question out of a person's hands.
    Frees,
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
    // They may allow tools, and hooks run without asking.
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

/// Settings of codex that say what it may do, or what it runs unasked.
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

/// What any of them calls working without leave.
const EVERYBODY: &[Rule] = &[
    frees("--yolo", Takes::Nothing),
    frees("--full-auto", Takes::Nothing),
];

/// How the flags begin whose names say it themselves.
const DANGEROUS: &[&str] = &["dangerously", "allowdangerously"];

/// Sorts the arguments of a vendor's program.
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

/// Why a word is left out, if it is, and how many words after it are.
fn rule(vendor: Vendor, word: &str, after: &[String]) -> Option<(Why, usize)> {
    let (flag, attached) = match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
        _ => (word, None),
    };
    let plain = comparable(flag);
    if flag.starts_with("--") && DANGEROUS.iter().any(|begin| plain.starts_with(begin)) {
        return Some((Why::Frees, 0));
    }
    let own = match vendor {
        Vendor::Claude => CLAUDE,
        Vendor::Codex => CODEX,
        Vendor::GeminiCli => GEMINI,
        Vendor::OpenCode => OPENCODE,
    };
    own.iter().chain(EVERYBODY).find_map(|rule| {
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

/// A short flag may have its value attached: `-sdanger-full-access`.
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

/// How many words an argument takes with it; nothing if its value makes it harmless.
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

/// A long flag as it is compared: some programs take `--allowedTools` for `--allowed-tools`.
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
        // What agent-chatter registers.
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
