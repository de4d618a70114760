//! OpenCode's generation and environment: permissions, configuration files and persistence. OpenCode's
//! command line and its Agent Client Protocol server read the same variables; those of permissions
//! mean nothing to its second generation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::sync::OnceCell;

use crate::approval::Approval;
use crate::process::{ProcessError, Program};
use crate::vendor::{print_version, version_in};
use crate::{AgentError, FailureKind};

/// Time limit for printing the version, on which depends what the program may do.
const VERSION_LIMIT: Duration = Duration::from_secs(30);
/// What is missing with the second generation, for lists of agents.
const SECOND: &str =
    "runs with `--approve all` only: the tools of OpenCode 2 cannot be restricted from outside";

/// Generation of OpenCode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// OpenCode 1.
    #[default]
    First,
    /// OpenCode 2. It ignores the variables that restrict the first, and is run in the background
    /// unless told otherwise.
    Second,
}

impl Generation {
    /// Returns the generation of a version. Previews of the second have the number 0.0.0.
    pub fn of(version: &str) -> Generation {
        let mut numbers = version.split('.');
        let major = numbers.next().and_then(|major| major.parse::<u32>().ok());
        let is_preview = version.starts_with("0.0.0-");
        match major.is_some_and(|major| major >= 2) || is_preview {
            true => Generation::Second,
            false => Generation::First,
        }
    }

    /// Returns what is missing, for lists of agents.
    pub fn remark(self) -> Option<&'static str> {
        (self == Generation::Second).then_some(SECOND)
    }

    /// Refuses to let the agent `name` answer under a tool policy that it would not keep to.
    pub(super) fn check(self, name: &str, approval: Approval) -> Result<(), AgentError> {
        if self == Generation::First || approval == Approval::All {
            return Ok(());
        }
        let words = format!(
            "{name} is OpenCode 2, whose tools cannot be restricted from outside: it is not run under `--approve {}`",
            approval.name()
        );
        Err(AgentError::new(FailureKind::Unavailable, words).hint(
            "`--approve all` lets it use every tool unasked; OpenCode 1 can be restricted: `npm install -g opencode-ai@1`",
        ))
    }
}

/// The generation of a program, which is asked for its version once.
#[derive(Clone, Debug, Default)]
pub struct KnownGeneration(OnceCell<Generation>);

impl KnownGeneration {
    /// Returns the generation of a program that prints its version with these arguments. One that
    /// does not start counts as the first: its turn fails for the same reason.
    pub(super) async fn of(&self, program: Program) -> Result<Generation, AgentError> {
        let asked = async || {
            let (finished, printed) = print_version(&program, VERSION_LIMIT).await;
            if let Err(ProcessError::Timeout { .. }) = finished {
                let words = format!(
                    "`{} --version` took more than {} s, and its tools are restricted by its version",
                    program.command.display(),
                    VERSION_LIMIT.as_secs()
                );
                return Err(AgentError::new(FailureKind::Timeout, words));
            }
            let version = version_in(&printed);
            Ok(version.map_or(Generation::First, |version| Generation::of(&version)))
        };
        self.0.get_or_try_init(asked).await.copied()
    }
}

/// What OpenCode may do with its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Use no tools.
    Nothing,
    /// Read files that are not secret.
    Looking,
    /// Ask before each tool, and receive an answer.
    Asking,
}

/// Files with instructions for agents; OpenCode reads the first that exists.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md"];
/// Every tool needs permission, those of MCP servers too. To-do lists change nothing outside
/// OpenCode.
const ASKING: &str = r#"{"*":"ask","todoread":"allow","todowrite":"allow"}"#;
/// The last matching rule counts: first everything is denied, tools of MCP servers too.
const LOOKING: &str = r#"{"*":"deny","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"grep":"allow","glob":"allow","list":"allow","lsp":"allow","todoread":"allow","todowrite":"allow"}"#;
const NOTHING: &str = r#"{"*":"deny"}"#;

/// Returns the file with the folder's instructions, which OpenCode does not find by itself when
/// project configuration is disabled.
pub(super) fn instructions(folder: &Path) -> Option<PathBuf> {
    let files = INSTRUCTIONS.iter().map(|name| folder.join(name));
    files.into_iter().find(|file| file.is_file())
}

/// Builds the variables for a process that is restricted to `access`; `None` leaves everything to
/// OpenCode's own configuration.
pub(super) fn environment(
    access: Option<Access>,
    ephemeral: bool,
    instructions: Option<&Path>,
) -> Vec<(String, String)> {
    // No self-update while a session runs. OpenCode's other switches would also disable logins and
    // models.
    let mut env = vec![
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
    ];
    let mut config = json!({});
    if let Some(access) = access {
        let rules = match access {
            Access::Nothing => NOTHING,
            Access::Looking => LOOKING,
            Access::Asking => ASKING,
        };
        env.push(("OPENCODE_PERMISSION", rules.to_owned()));
        // A project's own files may allow its agents everything, and its plugins run without
        // permission.
        env.push(("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()));
        if let Some(file) = instructions {
            config["instructions"] = json!([file]);
        }
    }
    if ephemeral {
        env.push(("OPENCODE_DB", ":memory:".to_owned()));
        // OpenCode would copy the files that it changes.
        config["snapshot"] = json!(false);
    }
    if config != json!({}) {
        env.push(("OPENCODE_CONFIG_CONTENT", config.to_string()));
    }
    env.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Variables that control permissions: only the user's own configuration may set them.
pub const POLICY_VARIABLES: &[&str] = &[
    "OPENCODE_PERMISSION",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_CONTENT",
    "OPENCODE_CONFIG_DIR",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_generation_is_known_by_its_version() {
        for first in ["1.18.33", "0.15.2", "1.0.0-beta", ""] {
            assert_eq!(Generation::of(first), Generation::First, "{first}");
            assert_eq!(Generation::of(first).remark(), None);
        }
        for second in ["2.0.32", "2.1.0-rc.1", "0.0.0-next-16350", "10.0"] {
            let generation = Generation::of(second);
            assert_eq!(generation, Generation::Second, "{second}");
            assert!(generation.remark().unwrap().contains("--approve all"));
        }
    }

    #[test]
    fn the_second_generation_is_run_only_where_everything_is_allowed() {
        for approval in [
            Approval::None,
            Approval::Low,
            Approval::Ask,
            Approval::Edits,
        ] {
            assert_eq!(Generation::First.check("oc", approval), Ok(()));
            let error = Generation::Second.check("oc", approval).unwrap_err();
            assert_eq!(error.kind, FailureKind::Unavailable);
            assert!(error.message.contains(approval.name()), "{error}");
        }
        assert_eq!(Generation::Second.check("oc", Approval::All), Ok(()));
    }

    #[test]
    fn rules_are_json_and_begin_with_everything() {
        for rules in [ASKING, LOOKING, NOTHING] {
            let read: serde_json::Value = serde_json::from_str(rules).unwrap();
            assert!(read["*"].is_string(), "{rules}");
            assert!(rules.starts_with("{\"*\""), "{rules}");
        }
    }

    #[test]
    fn each_process_is_told_what_it_may_do_and_keep() {
        let names = |access, ephemeral, file: Option<&Path>| {
            let env = environment(access, ephemeral, file).into_iter();
            let named: Vec<String> = env
                .skip(2)
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            named.join(" ").replace(LOOKING, "L").replace(NOTHING, "N")
        };
        assert_eq!(names(None, false, Some(Path::new("/p/AGENTS.md"))), "");
        let held = "OPENCODE_PERMISSION=L OPENCODE_DISABLE_PROJECT_CONFIG=1";
        assert_eq!(names(Some(Access::Looking), false, None), held);
        assert_eq!(
            names(
                Some(Access::Looking),
                false,
                Some(Path::new("/p/AGENTS.md"))
            ),
            format!("{held} OPENCODE_CONFIG_CONTENT={{\"instructions\":[\"/p/AGENTS.md\"]}}")
        );
        assert_eq!(
            names(None, true, None),
            "OPENCODE_DB=:memory: OPENCODE_CONFIG_CONTENT={\"snapshot\":false}"
        );
    }
}
