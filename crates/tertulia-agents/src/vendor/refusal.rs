//! Marks the results of tools that a program was not allowed to use, so that frontends and the log
//! show them as denied, not failed.

use std::collections::HashMap;

use super::{Vendor, permission};
use crate::{AgentEvent, UNANSWERED, denied};

/// Gemini CLI's tools that change things: it has them only under `all`.
const GEMINI_TOOLS: &[&str] = &["run_shell_command", "write_file", "replace"];

/// Detects denied tools in one turn.
pub(super) struct Refusals {
    vendor: Vendor,
    /// Names of running tools, by the id of the call.
    tools: HashMap<String, String>,
}

impl Refusals {
    pub(super) fn new(vendor: Vendor) -> Refusals {
        Refusals {
            vendor,
            tools: HashMap::new(),
        }
    }

    /// Returns the event, with the result of a denied tool marked.
    pub(super) fn mark(&mut self, event: AgentEvent) -> AgentEvent {
        match event {
            AgentEvent::ToolStarted(call) => {
                self.tools.insert(call.id.clone(), call.name.clone());
                AgentEvent::ToolStarted(call)
            }
            AgentEvent::ToolCompleted { id, output, ok } => {
                let tool = self.tools.remove(&id).unwrap_or_default();
                let refused = !ok && is_refusal(self.vendor, &tool, &output);
                let output = if refused { denied(&output) } else { output };
                AgentEvent::ToolCompleted { id, output, ok }
            }
            other => other,
        }
    }
}

/// Returns whether a tool failed for lack of permission, judging by its output.
fn is_refusal(vendor: Vendor, tool: &str, output: &str) -> bool {
    match vendor {
        // Calls that Claude Code denies itself are recognised by id, see `Claude`.
        Vendor::Claude => output.starts_with(permission::NO) || output.starts_with(UNANSWERED),
        // In the read-only sandbox every change fails.
        Vendor::Codex => tool == "file_change" || output.contains("Read-only file system"),
        Vendor::GeminiCli => {
            output.contains("denied by policy")
                || GEMINI_TOOLS.contains(&tool)
                    && output.contains("not found")
                    && output.starts_with("Tool ")
        }
        Vendor::OpenCode => {
            output.starts_with("The user rejected permission")
                || output.starts_with("Model tried to call unavailable tool")
                || output.contains("which prevents you from using this specific tool call")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::reading::started;

    fn completed(ok: bool, output: &str) -> AgentEvent {
        AgentEvent::ToolCompleted {
            id: "1".into(),
            output: output.into(),
            ok,
        }
    }

    fn marked(vendor: Vendor, tool: &str, ok: bool, output: &str) -> AgentEvent {
        let mut refusals = Refusals::new(vendor);
        refusals.mark(started("1", tool, None));
        refusals.mark(completed(ok, output))
    }

    #[test]
    fn what_is_denied_is_marked() {
        let check = |vendor, tool: &str, output: &str| {
            let expected = completed(false, &format!("[not run: {output}]"));
            assert_eq!(marked(vendor, tool, false, output), expected, "{vendor:?}");
            let fine = completed(true, output);
            assert_eq!(marked(vendor, tool, true, output), fine, "{vendor:?}");
        };
        let blocked = "touch: cannot touch 'x.txt': Read-only file system";
        check(Vendor::Codex, "command_execution", blocked);
        check(Vendor::Codex, "file_change", "add x.txt");
        let missing =
            "Tool \"write_file\" not found. Did you mean one of: \"glob\", \"read_file\"?";
        check(Vendor::GeminiCli, "write_file", missing);
        let rejected = "The user rejected permission to use this specific tool call.";
        check(Vendor::OpenCode, "bash", rejected);
        let ruled = "The user has specified a rule which prevents you from using this specific \
                     tool call. Here are some of the relevant rules []";
        check(Vendor::OpenCode, "edit", ruled);
        let missing =
            "Model tried to call unavailable tool 'invalid'. Available tools: glob, read.";
        check(Vendor::OpenCode, "pinger_ping", missing);
        check(Vendor::Claude, "Bash", permission::NO);
    }

    #[test]
    fn a_failure_is_no_refusal() {
        let check = |vendor, tool: &str, output: &str| {
            assert_eq!(
                marked(vendor, tool, false, output),
                completed(false, output)
            );
        };
        check(Vendor::Codex, "command_execution", "grep: no match");
        check(
            Vendor::GeminiCli,
            "read_file",
            "Tool \"read_file\" not found.",
        );
        check(Vendor::GeminiCli, "write_file", "File not found");
        check(Vendor::OpenCode, "bash", "exit 1");
        check(Vendor::Claude, "Bash", "Read-only file system");
    }
}
