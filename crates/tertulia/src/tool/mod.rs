//! The tools of agents that bring none of their own: what they are called, how risky each is, what
//! it would do, and doing it, confined to one folder.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::ToolSpec;
use crate::approval::ToolRequest;
use crate::entry::ToolCall;

/// The tools of one talk.
#[derive(Clone, Debug)]
pub struct Toolbox {
    /// The folder that they work in and cannot leave, links resolved.
    work_dir: PathBuf,
    limits: ToolLimits,
    /// Variables that a command does not inherit: the keys of the agents.
    hidden: Vec<String>,
}

/// How long a tool may take and how much it may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// The longest that a command runs unless the agent asks for less.
    pub time: Duration,
    /// Most bytes of output that an agent and the log get.
    pub output: usize,
}

impl Default for ToolLimits {
    fn default() -> ToolLimits {
        ToolLimits {
            time: Duration::from_secs(120),
            output: 64 * 1024,
        }
    }
}

/// What came of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the agent reads, cut at the limit with a mark that says how much is missing.
    pub text: String,
    /// Whether it did what it was asked to.
    pub ok: bool,
}

/// Why a toolbox cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a folder to work in", .path.display())]
pub struct WorkDirError {
    /// The folder.
    pub path: PathBuf,
    /// What the system says.
    pub source: std::io::Error,
}

impl Toolbox {
    /// Tools that work in `work_dir` and hide these variables from the commands that they run.
    pub fn new(
        work_dir: PathBuf,
        limits: ToolLimits,
        hidden: Vec<String>,
    ) -> Result<Toolbox, WorkDirError> {
        match work_dir.canonicalize() {
            Ok(work_dir) => Ok(Toolbox {
                work_dir,
                limits,
                hidden,
            }),
            Err(source) => Err(WorkDirError {
                path: work_dir,
                source,
            }),
        }
    }

    /// What an agent is told about them.
    pub fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    /// What a person is asked about a call: its risk, and what it would do. A call that cannot be
    /// run (no such tool, wrong arguments, a path outside the folder) is an output for the agent.
    pub fn request(&self, call: &ToolCall) -> Result<ToolRequest, ToolOutput> {
        Err(ToolOutput {
            text: format!("there is no tool '{}'", call.name),
            ok: false,
        })
    }

    /// Does it. `marker` tells the processes of this call from all others. Returns when nothing of it
    /// runs any more, also when it was cancelled.
    pub async fn run(
        &self,
        call: &ToolCall,
        marker: &str,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        let _ = (marker, cancel, &self.work_dir, &self.limits, &self.hidden);
        ToolOutput {
            text: format!("there is no tool '{}'", call.name),
            ok: false,
        }
    }
}
