//! Programs that cannot ask for leave: that they were refused something is noticed, and said once
//! what can be done about it.

use std::collections::HashMap;

use super::Vendor;
use crate::agent::AgentEvent;
use crate::approval::Approval;

/// Gemini's tools that change things: without leave it does not have them.
const GEMINI_TOOLS: &[&str] = &["run_shell_command", "write_file", "replace"];

/// Listens for what is refused in one turn.
pub(super) struct Refusals {
    vendor: Vendor,
    /// The name under which it speaks.
    name: String,
    /// Its tools that are being used, by the id of the call.
    tools: HashMap<String, String>,
    /// Whether there is anything to be said still.
    listening: bool,
}

impl Refusals {
    /// Listens if the person wants to be asked and this program cannot.
    pub(super) fn new(vendor: Vendor, name: &str, approval: Approval) -> Refusals {
        Refusals {
            vendor,
            name: name.to_owned(),
            tools: HashMap::new(),
            listening: approval == Approval::Ask && vendor != Vendor::Claude,
        }
    }

    /// Takes in an event; says what is to be said after it.
    pub(super) fn hear(&mut self, event: &AgentEvent) -> Option<AgentEvent> {
        if !self.listening {
            return None;
        }
        match event {
            AgentEvent::ToolStarted(call) => {
                self.tools.insert(call.id.clone(), call.name.clone());
                None
            }
            AgentEvent::ToolCompleted { id, output, ok } => {
                let tool = self.tools.remove(id).unwrap_or_default();
                if *ok || !is_refusal(self.vendor, &tool, output) {
                    return None;
                }
                self.listening = false;
                Some(AgentEvent::Remark(format!(
                    "{} cannot ask for leave here, so it was refused: --approve all lets it change \
                     files, and by the Agent Client Protocol (type = \"acp\") it can ask",
                    self.name
                )))
            }
            _ => None,
        }
    }
}

/// Whether a tool failed because it may not be used without leave, as far as its words tell.
fn is_refusal(vendor: Vendor, tool: &str, output: &str) -> bool {
    match vendor {
        Vendor::Claude => false,
        // Where nothing can be written, no change succeeds.
        Vendor::Codex => tool == "file_change" || output.contains("Read-only file system"),
        Vendor::GeminiCli => {
            output.contains("denied by policy")
                || GEMINI_TOOLS.contains(&tool)
                    && output.contains("not found")
                    && output.starts_with("Tool ")
        }
        Vendor::OpenCode => {
            output.starts_with("The user rejected permission")
                || output.contains("which prevents you from using this specific tool call")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::vendor::reading::started;

    fn remarks(vendor: Vendor, approval: Approval, uses: &[(&str, bool, &str)]) -> usize {
        let mut refusals = Refusals::new(vendor, "bot", approval);
        let mut count = 0;
        for (tool, ok, output) in uses {
            assert_eq!(refusals.hear(&started("1", tool, None)), None);
            let remark = refusals.hear(&AgentEvent::ToolCompleted {
                id: "1".into(),
                output: (*output).into(),
                ok: *ok,
            });
            if let Some(AgentEvent::Remark(words)) = &remark {
                assert!(
                    words.starts_with("bot cannot ask for leave here"),
                    "{words}"
                );
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_refusal_is_told_once() {
        let check = |vendor, tool: &str, output: &str| {
            let twice = [(tool, false, output), (tool, false, output)];
            assert_eq!(remarks(vendor, Approval::Ask, &twice), 1, "{vendor:?}");
            for approval in [Approval::Low, Approval::All, Approval::None] {
                assert_eq!(remarks(vendor, approval, &twice), 0, "{vendor:?}");
            }
            let fine = [(tool, true, output)];
            assert_eq!(remarks(vendor, Approval::Ask, &fine), 0, "{vendor:?}");
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
    }

    #[test]
    fn a_failure_is_no_refusal() {
        let check = |vendor, tool: &str, output: &str| {
            assert_eq!(remarks(vendor, Approval::Ask, &[(tool, false, output)]), 0);
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
