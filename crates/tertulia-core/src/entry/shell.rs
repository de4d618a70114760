//! Shell commands that the user runs in a session. Each is two entries: the command, written before
//! it runs, and its output.

use serde::{Deserialize, Serialize};

use super::message::ToolOutcome;
use crate::id::EntryId;

/// A shell command that the user runs in the work folder. Written before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCommand {
    /// Id of the run, which its output refers to.
    pub run: EntryId,
    /// The command.
    pub command: String,
}

/// The end of a shell command of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOutput {
    /// Id of the run.
    pub run: EntryId,
    /// What it printed, both streams in order, cut at the limit of tools.
    pub output: String,
    /// Exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Outcome: `interrupted` if the user or a crash stopped it.
    pub outcome: ToolOutcome,
}

impl ShellOutput {
    /// Returns the output with a line that says how the command ended.
    pub fn text(&self) -> String {
        let ending = match (self.exit, self.outcome) {
            (Some(code), _) => format!("[exit status {code}]"),
            (None, ToolOutcome::Interrupted) => "[interrupted]".to_owned(),
            (None, _) => String::new(),
        };
        let gap = match self.output.is_empty() || self.output.ends_with('\n') {
            true => "",
            false => "\n",
        };
        format!("{}{gap}{ending}", self.output)
    }
}
