//! The vendors' own programs as agents: run without a terminal once per turn, their JSON events read.
//! They bring their own tools and their own sessions; the id of a session is told, so that the next
//! turn goes on with it.

mod claude;
mod codex;
mod gemini;
mod launch;
mod leave;
mod lines;
mod listen;
mod opencode;
mod reading;
mod refusal;
mod turn;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use super::folder::Folder;
use super::prompt::Recall;
use super::scratch::Homes;
use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, NativeSession, Outcome,
    Patience, Readiness, ToolSide, Whence,
};
use crate::approval::Approval;
pub use reading::{Ending, Exit, Reader};
use turn::Turn;
pub use turn::version_in;

/// How long a program may stay after its last event: some linger for seconds.
const LINGER: Duration = Duration::from_secs(1);

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Claude Code, of Anthropic.
    Claude,
    /// Codex CLI, of OpenAI.
    Codex,
    /// Gemini CLI, of Google.
    GeminiCli,
    /// OpenCode.
    OpenCode,
}

impl Vendor {
    /// All of them.
    pub const ALL: [Vendor; 4] = [
        Vendor::Claude,
        Vendor::Codex,
        Vendor::GeminiCli,
        Vendor::OpenCode,
    ];

    /// Its name as it is written in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::Claude => "claude",
            Vendor::Codex => "codex",
            Vendor::GeminiCli => "gemini-cli",
            Vendor::OpenCode => "opencode",
        }
    }

    /// The vendor of that name.
    pub fn parse(name: &str) -> Option<Vendor> {
        Vendor::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// What its program is called.
    pub const fn program(self) -> &'static str {
        match self {
            Vendor::Claude => "claude",
            Vendor::Codex => "codex",
            Vendor::GeminiCli => "gemini",
            Vendor::OpenCode => "opencode",
        }
    }

    /// The command that installs it.
    pub const fn install(self) -> &'static str {
        match self {
            Vendor::Claude => "npm install -g @anthropic-ai/claude-code",
            Vendor::Codex => "npm install -g @openai/codex",
            Vendor::GeminiCli => "npm install -g @google/gemini-cli",
            Vendor::OpenCode => "npm install -g opencode-ai",
        }
    }

    /// What its session keeps of a turn that was cut off.
    const fn recall(self) -> Recall {
        match self {
            Vendor::Claude | Vendor::Codex | Vendor::GeminiCli => Recall::Asked,
            Vendor::OpenCode => Recall::Nothing,
        }
    }

    /// How one logs in.
    const fn login(self) -> &'static str {
        match self {
            Vendor::Claude => "run `claude` and log in there, or set ANTHROPIC_API_KEY",
            Vendor::Codex => "run `codex login`, or set the key that its settings name",
            Vendor::GeminiCli => "run `gemini` and log in there, or set GEMINI_API_KEY",
            Vendor::OpenCode => "run `opencode auth login`",
        }
    }
}

/// How a vendor's program is run as an agent.
#[derive(Clone)]
pub struct VendorProgram {
    /// The name under which it speaks.
    pub name: String,
    /// Whose program it is, and so how it is spoken to.
    pub vendor: Vendor,
    /// The model, if the settings name one.
    pub model: Option<String>,
    /// The program: a path, or a name on the search path.
    pub command: PathBuf,
    /// Arguments added to those of the turn.
    pub args: Vec<String>,
    /// What is added to its environment.
    pub env: Vec<(String, String)>,
    /// Inherited variables that it does not get.
    pub without: Vec<String>,
    /// The folder in which it runs.
    pub work_dir: Option<PathBuf>,
    /// What precedes every talk.
    pub system: Option<String>,
    /// How long it may take.
    pub patience: Patience,
    /// Where it is set how it is run.
    pub whence: Whence,
    /// How often it may try again what was refused or not reached, where it can be told.
    pub retries: u32,
    /// Where programs keep their files, for those that cannot be told to keep nothing.
    pub homes: Option<Homes>,
    /// Where the program was found, if it was.
    pub found: Option<PathBuf>,
}

// The environment may hold keys: it is never shown.
impl std::fmt::Debug for VendorProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VendorProgram")
            .field("name", &self.name)
            .field("vendor", &self.vendor)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Agent for VendorProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn tools(&self) -> ToolSide {
        ToolSide::Its
    }

    fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    async fn readiness(&self) -> Readiness {
        if self.found.is_none() {
            return Readiness::NotReady(format!(
                "the program {} was not found; {} installs it",
                self.command.display(),
                self.vendor.install()
            ));
        }
        match self.version().await {
            Ok(version) => Readiness::Ready(version),
            Err(error) => Readiness::NotReady(error.message),
        }
    }

    fn notices(&self, approval: Approval, _: bool) -> Vec<String> {
        let asks = self.vendor == Vendor::Claude;
        if asks || approval == Approval::All {
            return Vec::new();
        }
        vec![format!(
            "{} cannot ask for permission here: it runs read-only; `--approve all` lets it write, and by the Agent \
             Client Protocol (type = \"acp\") it can ask",
            self.name
        )]
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        Ok(self.model.iter().cloned().collect())
    }

    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        let native = question.native.as_ref();
        let native = native.filter(|native| launch::is_session_id(&native.id));
        let folder = native.map(|native| Folder::of(native, self.work_dir()));
        if let Some(remark) = folder.as_ref().and_then(|folder| folder.remark(&self.name)) {
            sink.say(AgentEvent::Remark(remark)).await?;
        }
        let gone = matches!(folder, Some(Folder::Gone(_)));
        let native = native.filter(|_| !gone);
        match self.attempt(question, native, sink).await? {
            // With more than looking allowed, something may have been done that is not to be done twice.
            Turn::Silent if question.approval != Approval::All => {
                let remark = format!("{} ended without an answer: asked again", self.name);
                sink.say(AgentEvent::Remark(remark)).await?;
            }
            Turn::Silent => return Err(self.silent()),
            _ => return Ok(Outcome::Done),
        }
        match self.attempt(question, native, sink).await? {
            Turn::Silent => Err(self.silent()),
            _ => Ok(Outcome::Done),
        }
    }
}

impl VendorProgram {
    /// One turn, in a new session of its own if it has lost the one to go on with.
    async fn attempt(
        &self,
        question: &AgentRequest,
        native: Option<&NativeSession>,
        sink: &AgentSink,
    ) -> Result<Turn, AgentError> {
        if let Some(native) = native {
            match self.turn(question, Some(native), sink).await? {
                Turn::Lost => {
                    let remark = format!(
                        "{} has lost its session {}: sending the whole conversation again",
                        self.name, native.id
                    );
                    sink.say(AgentEvent::Remark(remark)).await?;
                }
                turn => return Ok(turn),
            }
        }
        match self.turn(question, None, sink).await? {
            Turn::Lost => Err(AgentError::new(
                FailureKind::Failed,
                format!("{} misses a session that it was not asked for", self.name),
            )),
            turn => Ok(turn),
        }
    }

    fn silent(&self) -> AgentError {
        AgentError::new(
            FailureKind::Failed,
            format!("{} ended its turn without printing an answer", self.name),
        )
        .hint("ask again; it may have done something that it did not tell")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for vendor in Vendor::ALL {
            assert_eq!(Vendor::parse(vendor.name()), Some(vendor));
        }
        assert_eq!(Vendor::parse("gemini"), None);
    }
}
