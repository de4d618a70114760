//! The vendors' own programs as agents: run once per turn without a terminal, with their JSON
//! events parsed. They have their own tools and sessions; the session id is reported, so that the
//! next turn resumes it.

mod claude;
mod codex;
mod gemini;
mod launch;
mod lines;
mod listen;
mod opencode;
mod permission;
mod reading;
mod refusal;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::bypass::CommandLine;
use super::folder::Folder;
use super::opencode::{Generation, KnownGeneration};
use super::prompt::Recall;
use super::scratch::Homes;
use super::session_files::SessionFiles;
use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, NativeSession, Outcome,
    Patience, Readiness, ToolSide, Whence,
};
use crate::approval::Approval;
pub use reading::{Ending, Exit, Reader};
use turn::Turn;
pub(crate) use turn::print_version;
pub use turn::version_in;

/// Maximum time that a program may stay after its last event: some linger for seconds.
const LINGER: Duration = Duration::from_secs(1);

/// Vendor of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Claude Code, by Anthropic.
    Claude,
    /// Codex CLI, by OpenAI.
    Codex,
    /// Gemini CLI, by Google.
    GeminiCli,
    /// OpenCode.
    OpenCode,
}

impl Vendor {
    /// All vendors.
    pub const ALL: [Vendor; 4] = [
        Vendor::Claude,
        Vendor::Codex,
        Vendor::GeminiCli,
        Vendor::OpenCode,
    ];

    /// Name in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::Claude => "claude",
            Vendor::Codex => "codex",
            Vendor::GeminiCli => "gemini-cli",
            Vendor::OpenCode => "opencode",
        }
    }

    /// Returns the vendor with this name.
    pub fn parse(name: &str) -> Option<Vendor> {
        Vendor::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// Name of the program.
    pub const fn program(self) -> &'static str {
        match self {
            Vendor::Claude => "claude",
            Vendor::Codex => "codex",
            Vendor::GeminiCli => "gemini",
            Vendor::OpenCode => "opencode",
        }
    }

    /// Name of the importer of the program's sessions.
    pub const fn history(self) -> &'static str {
        match self {
            Vendor::Claude => "claude-code",
            Vendor::Codex => "codex",
            Vendor::GeminiCli => "gemini-cli",
            Vendor::OpenCode => "opencode",
        }
    }

    /// Command that installs the program.
    pub const fn install(self) -> &'static str {
        match self {
            Vendor::Claude => "npm install -g @anthropic-ai/claude-code",
            Vendor::Codex => "npm install -g @openai/codex",
            Vendor::GeminiCli => "npm install -g @google/gemini-cli",
            Vendor::OpenCode => "npm install -g opencode-ai",
        }
    }

    /// Returns what a version of the program lacks here.
    pub fn remark(self, version: &str) -> Option<&'static str> {
        match self {
            Vendor::OpenCode => Generation::of(version).remark(),
            Vendor::Claude | Vendor::Codex | Vendor::GeminiCli => None,
        }
    }

    /// Returns a version with what it lacks.
    fn described(self, version: String) -> String {
        match self.remark(&version) {
            Some(remark) => format!("{version}: {remark}"),
            None => version,
        }
    }

    /// Returns what the program's session keeps of a turn that was cut off.
    const fn recall(self) -> Recall {
        match self {
            Vendor::Claude | Vendor::Codex | Vendor::GeminiCli => Recall::Asked,
            Vendor::OpenCode => Recall::Nothing,
        }
    }

    /// Returns how to log in.
    const fn login(self) -> &'static str {
        match self {
            Vendor::Claude => "run `claude` and log in there, or set ANTHROPIC_API_KEY",
            Vendor::Codex => "run `codex login`, or set the key that its settings name",
            Vendor::GeminiCli => "run `gemini` and log in there, or set GEMINI_API_KEY",
            Vendor::OpenCode => "run `opencode auth login`",
        }
    }
}

/// Configuration of a vendor's program that is run as an agent.
#[derive(Clone)]
pub struct VendorProgram {
    /// Name under which the agent speaks.
    pub name: String,
    /// Vendor, which determines options and event format.
    pub vendor: Vendor,
    /// Model, if the settings name one.
    pub model: Option<String>,
    /// The program: a path, or a name on the search path.
    pub command: PathBuf,
    /// Arguments added to those of the turn.
    pub args: Vec<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// Inherited variables that are removed from the environment.
    pub without: Vec<String>,
    /// Working directory.
    pub work_dir: Option<PathBuf>,
    /// Text that precedes every conversation.
    pub system: Option<String>,
    /// Time limits of an answer.
    pub patience: Patience,
    /// Where the agent is configured, for hints.
    pub whence: Whence,
    /// Number of the program's own retries of failed requests, if it has such an option.
    pub retries: u32,
    /// Locations of the programs' files, for programs that have no option to save nothing.
    pub homes: Option<Homes>,
    /// The program's own files, for what its events lack.
    pub session_files: Option<Arc<dyn SessionFiles>>,
    /// Path at which the program was found, if it was.
    pub found: Option<PathBuf>,
    /// Generation of OpenCode, once it has been asked for. Begins empty.
    pub generation: KnownGeneration,
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

    fn history(&self) -> Option<&'static str> {
        Some(self.vendor.history())
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
            Ok(version) => Readiness::Ready(version.map(|version| self.vendor.described(version))),
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
        let line = self.command_line();
        line.check(&self.name, question.approval, &self.whence)?;
        let native = question.native.as_ref();
        let native = native.filter(|native| launch::is_session_id(&native.id));
        let folder = native.map(|native| Folder::of(native, self.work_dir()));
        if let Some(remark) = folder.as_ref().and_then(|folder| folder.remark(&self.name)) {
            sink.say(AgentEvent::Remark(remark)).await?;
        }
        let gone = matches!(folder, Some(Folder::Gone(_)));
        let native = native.filter(|_| !gone);
        match self.attempt(question, native, sink).await? {
            // Under `all`, the program may have changed something that must not be done twice.
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
    fn command_line(&self) -> CommandLine<'_> {
        CommandLine {
            vendor: Some(self.vendor),
            command: &self.command,
            args: &self.args,
            env: &self.env,
        }
    }

    /// Runs one turn, in a new session if the program has lost the one to resume.
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
