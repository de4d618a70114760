//! Arguments and variables by which known agent programs stop asking, or leave their own sandbox.
//! Permissions come from the tool policy, so a program with one of these runs only under `all`.

use std::path::Path;

use crate::approval::Approval;
use crate::program_name;
use crate::vendor::Vendor;
use crate::{AgentError, FailureKind, Whence};

/// How a known program is made to do as it likes.
struct Bypass {
    /// Names of the program, and of packages and adapters that run it.
    programs: &'static [&'static str],
    /// Arguments: a flag alone, or `flag a|b` if only values that contain a or b count.
    arguments: &'static [&'static str],
    /// Variables, likewise.
    variables: &'static [&'static str],
}

const TABLE: &[Bypass] = &[
    Bypass {
        programs: &[
            "claude",
            "claude-code",
            "claude-agent-acp",
            "claude-code-acp",
        ],
        arguments: &[
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
            "--permission-mode bypasspermissions|acceptedits|auto",
            "--settings bypasspermissions|acceptedits",
            "--allowed-tools",
        ],
        variables: &["ACP_PERMISSION_MODE bypasspermissions|acceptedits"],
    },
    Bypass {
        programs: &["codex", "codex-acp"],
        arguments: &[
            "--dangerously-bypass-approvals-and-sandbox",
            "--yolo",
            "--full-auto",
            "-s danger|workspace",
            "--sandbox danger|workspace",
            "-c danger|workspace-write|sandbox_permissions|default_permissions",
            "--config danger|workspace-write|sandbox_permissions|default_permissions",
        ],
        variables: &[],
    },
    Bypass {
        programs: &["gemini", "gemini-cli"],
        arguments: &[
            "--yolo",
            "-y",
            "--approval-mode yolo|auto",
            "--allowed-tools",
        ],
        variables: &[],
    },
    Bypass {
        programs: &["qwen", "qwen-code"],
        arguments: &[
            "--yolo",
            "-y",
            "--approval-mode yolo|auto",
            "--allowed-tools",
        ],
        variables: &[],
    },
    Bypass {
        programs: &["opencode", "opencode-ai"],
        arguments: &["--auto", "--dangerously-skip-permissions"],
        variables: &[
            "OPENCODE_PERMISSION",
            "OPENCODE_DISABLE_PROJECT_CONFIG 0|false",
            "OPENCODE_CONFIG_CONTENT permission",
        ],
    },
    Bypass {
        programs: &["kilo", "kilocode"],
        arguments: &["--auto", "--yolo", "--dangerously-skip-permissions"],
        variables: &["KILO_PERMISSION", "OPENCODE_PERMISSION"],
    },
    Bypass {
        programs: &["copilot"],
        arguments: &[
            "--allow-all-tools",
            "--allow-all-paths",
            "--allow-all-urls",
            "--allow-all",
            "--allow-tool",
            "--yolo",
        ],
        variables: &["COPILOT_ALLOW_ALL"],
    },
    Bypass {
        programs: &["cline"],
        arguments: &["--yolo", "-y", "--auto-approve-all", "--auto-approve"],
        variables: &[],
    },
    Bypass {
        programs: &["cn"],
        arguments: &["--auto", "--allow"],
        variables: &[],
    },
    Bypass {
        programs: &["amp"],
        arguments: &["--dangerously-allow-all"],
        variables: &[],
    },
    Bypass {
        programs: &["droid"],
        arguments: &["--skip-permissions-unsafe", "--auto"],
        variables: &[],
    },
    Bypass {
        programs: &["kimi", "kimi-cli", "kimi-code"],
        arguments: &["--yolo", "-y", "--yes", "--auto-approve", "--afk"],
        variables: &[],
    },
    Bypass {
        programs: &["crush"],
        arguments: &["--yolo", "-y"],
        variables: &[],
    },
    Bypass {
        programs: &["goose"],
        arguments: &[],
        variables: &["GOOSE_MODE auto"],
    },
    Bypass {
        programs: &["cursor-agent"],
        arguments: &["--force", "-f", "--yolo"],
        variables: &[],
    },
];

/// The command line and the added variables of an agent.
#[derive(Clone, Copy)]
pub(super) struct CommandLine<'a> {
    /// Vendor of the program, if the settings say it.
    pub(super) vendor: Option<Vendor>,
    /// The program.
    pub(super) command: &'a Path,
    /// Its arguments.
    pub(super) args: &'a [String],
    /// Variables added to its environment.
    pub(super) env: &'a [(String, String)],
}

impl CommandLine<'_> {
    /// Fails if something switches the program's own guard off, unless the tool policy does the same.
    pub(super) fn check(
        &self,
        name: &str,
        approval: Approval,
        whence: &Whence,
    ) -> Result<(), AgentError> {
        if approval == Approval::All {
            return Ok(());
        }
        let Some((key, found)) = self.bypass() else {
            return Ok(());
        };
        let words = format!(
            "{name} was not run: {found} lets it use tools without asking, and the tool policy does not"
        );
        let hint = format!(
            "`--approve all` allows it; or take it out of {}",
            whence.setting(key)
        );
        Err(AgentError::new(FailureKind::Unavailable, words).hint(hint))
    }

    /// Returns `without` and the variables that switch the program's guard off, which it must not
    /// inherit unless the tool policy does the same.
    pub(super) fn not_inherited(&self, without: &[String], approval: Approval) -> Vec<String> {
        let known = self.known().filter(|_| approval != Approval::All);
        let variables = known.map(|known| known.variables).unwrap_or_default();
        // One that also says other things than that stays.
        let rows = variables.iter().filter(|row| !row.contains(' '));
        let names = rows.map(|row| (*row).to_owned());
        without.iter().cloned().chain(names).collect()
    }

    /// Returns the setting that holds a bypass, and the argument or variable itself.
    fn bypass(&self) -> Option<(&'static str, String)> {
        let known = self.known()?;
        for (at, word) in self.args.iter().enumerate() {
            let next = self.args.get(at + 1).map(String::as_str);
            let mut rows = known.arguments.iter();
            if let Some(row) = rows.find(|row| is_given(row, word, next)) {
                let (flag, values) = pattern(row);
                let is_alone = values.is_empty() || attached(flag, word) != Some(None);
                let value = next.filter(|_| !is_alone);
                let value = value.map(|value| format!(" {value}")).unwrap_or_default();
                return Some(("args", format!("{word}{value}")));
            }
        }
        let set = self.env.iter().find(|(name, value)| {
            known.variables.iter().any(|row| {
                let (variable, values) = pattern(row);
                name == variable && fits(values, value)
            })
        });
        set.map(|(name, _)| ("env", format!("the variable {name}")))
    }

    fn known(&self) -> Option<&'static Bypass> {
        let row = |name: &str| TABLE.iter().find(|row| row.programs.contains(&name));
        if let Some(vendor) = self.vendor {
            return row(vendor.program());
        }
        program_name::names(self.command, self.args).find_map(row)
    }
}

/// Splits a row into the flag or variable, and the values that count.
fn pattern(row: &'static str) -> (&'static str, &'static str) {
    row.split_once(' ').unwrap_or((row, ""))
}

fn is_given(row: &'static str, word: &str, next: Option<&str>) -> bool {
    let (flag, values) = pattern(row);
    match attached(flag, word) {
        None => false,
        // An explicit `--flag=false` switches nothing off.
        Some(Some(value)) if values.is_empty() => !["false", "0", "no"].contains(&value),
        Some(value) => fits(values, value.or(next).unwrap_or_default()),
    }
}

fn fits(values: &str, value: &str) -> bool {
    let value = value.to_lowercase();
    values.is_empty() || values.split('|').any(|part| value.contains(part))
}

/// Returns the value that is attached to the flag, if the word is this flag: `--flag=value`, `-fvalue`.
pub fn attached<'a>(flag: &str, word: &'a str) -> Option<Option<&'a str>> {
    if word == flag {
        return Some(None);
    }
    if flag.starts_with("--") {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let is_it = word.starts_with("--") && comparable(name) == comparable(flag);
        return is_it.then_some(value);
    }
    let value = word.strip_prefix(flag).filter(|_| flag.len() == 2)?;
    Some(Some(value.trim_start_matches('=')))
}

/// Normalises a long flag for comparison: some programs accept `--allowedTools` for
/// `--allowed-tools`.
fn comparable(flag: &str) -> String {
    flag.replace(['-', '_'], "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, env: &[(&str, &str)], vendor: Option<Vendor>) -> Option<String> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        let args: Vec<String> = words.collect();
        let env: Vec<(String, String)> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let line = CommandLine {
            vendor,
            command: Path::new(&command),
            args: &args,
            env: &env,
        };
        line.bypass().map(|(_, found)| found)
    }

    #[test]
    fn every_row_is_found() {
        for row in TABLE {
            for program in row.programs {
                for argument in row.arguments {
                    let (flag, values) = pattern(argument);
                    let values: Vec<&str> = values.split('|').collect();
                    for value in values {
                        let spelled = format!("{flag} {value}");
                        let line = format!("/opt/bin/{program} -x {spelled}");
                        let expected = spelled.trim();
                        assert_eq!(found(&line, &[], None).as_deref(), Some(expected), "{line}");
                        let line = format!("npx -y @scope/{program}@1.2 {spelled}");
                        let runs_too = found(&line, &[], None);
                        assert!(runs_too.is_some(), "{line}");
                    }
                }
                for variable in row.variables {
                    let (name, values) = pattern(variable);
                    let value = values.split('|').next().unwrap();
                    let env = [(name, value)];
                    let expected = format!("the variable {name}");
                    assert_eq!(found(program, &env, None), Some(expected), "{variable}");
                }
            }
        }
    }

    #[test]
    fn other_spellings_are_found() {
        let check = |line: &str, vendor, expected: &str| {
            assert_eq!(
                found(line, &[], vendor).as_deref(),
                Some(expected),
                "{line}"
            );
        };
        check(
            "claude --permissionMode=bypassPermissions",
            None,
            "--permissionMode=bypassPermissions",
        );
        check("claude --allowedTools Bash", None, "--allowedTools");
        check(
            "gemini.js --approval-mode=AUTO_EDIT",
            None,
            "--approval-mode=AUTO_EDIT",
        );
        check("codex -sdanger-full-access", None, "-sdanger-full-access");
        check(
            "codex exec -c sandbox_mode=\"workspace-write\"",
            None,
            "-c sandbox_mode=\"workspace-write\"",
        );
        // A wrapper of a known vendor.
        check("/opt/wrapper.sh --yolo", Some(Vendor::GeminiCli), "--yolo");
        check(
            "node /opt/copilot.js --allow-all-tools",
            None,
            "--allow-all-tools",
        );
    }

    #[test]
    fn what_restricts_or_is_unknown_stays() {
        let check = |line: &str| assert_eq!(found(line, &[], None), None, "{line}");
        check("claude --permission-mode plan");
        check("codex -s read-only -c model=o3");
        check("gemini --approval-mode default --yolo=false");
        check("tr --yolo");
        check("sh -c codex --yolo");
        check("cat");
    }
}
