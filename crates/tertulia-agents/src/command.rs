//! Any program as an agent: prompt on standard input, answer from standard output. A non-zero exit
//! code is a failure, explained by the program's standard error. Such a program cannot be made to
//! ask before it changes something, so it runs in a file system that it cannot write, unless the
//! tool policy is `all`.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::approval::Approval;
use super::bypass::CommandLine;
use super::plain_text::PlainText;
use super::process::{self, Confined, Kernel, Limits, ProcessError, Program, Utf8Stream};
use super::scratch::Scratch;
use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Patience,
    Readiness, ToolSide, Whence, failure, mention, prompt,
};

/// Folders for temporary files, by the variables that programs read.
const SCRATCH_VARIABLES: &[&str] = &["TMPDIR", "XDG_CACHE_HOME"];

/// A file system in which a program may write only its temporary folder and chosen paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOnly {
    /// Files and folders that it may write.
    pub writable: Vec<PathBuf>,
    /// Folder in which its temporary folder is made.
    pub scratch: PathBuf,
    /// Whether the kernel can confine programs.
    pub kernel: Kernel,
    /// Whether the user's settings of the agent can change this.
    pub settable: bool,
}

/// Configuration of a program that is run as an agent.
#[derive(Clone)]
pub struct Command {
    /// Name under which the agent speaks.
    pub name: String,
    /// Model, if the settings name one.
    pub model: Option<String>,
    /// The program: a path, or a name on the search path.
    pub command: PathBuf,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// Inherited variables that are removed from the environment.
    pub without: Vec<String>,
    /// Working directory.
    pub work_dir: Option<PathBuf>,
    /// Text that precedes every prompt.
    pub system: Option<String>,
    /// Time limits of an answer.
    pub patience: Patience,
    /// Where the agent is configured, for hints.
    pub whence: Whence,
    /// Path at which the program was found, if it was.
    pub found: Option<PathBuf>,
    /// How the program is confined, unless the tool policy is `all`; not at all if `None`.
    pub read_only: Option<ReadOnly>,
}

// The environment may hold keys: it is never shown.
impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("name", &self.name)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Agent for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn tools(&self) -> ToolSide {
        ToolSide::None
    }

    fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    async fn readiness(&self) -> Readiness {
        match &self.found {
            Some(path) => Readiness::Ready(Some(path.display().to_string())),
            None => Readiness::NotReady(format!(
                "the program {} was not found",
                self.command.display()
            )),
        }
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        Ok(self.model.iter().cloned().collect())
    }

    fn notices(&self, approval: Approval, _: bool) -> Vec<String> {
        let read_only = self.read_only(approval);
        let notice = read_only.map(|read_only| {
            let more = self.how_to_write_more(read_only);
            format!(
                "{} cannot ask for permission here: it runs read-only; {more}",
                self.name
            )
        });
        notice.into_iter().collect()
    }

    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        let read_only = self.read_only(question.approval);
        if self.read_only.is_some() {
            let line = self.command_line();
            line.check(&self.name, question.approval, &self.whence)?;
        }
        let scratch = read_only.map(|read_only| self.scratch(read_only, &question.marker));
        let scratch = scratch.transpose()?;
        let program = self.program(question, read_only.zip(scratch.as_ref()));
        let limits = Limits {
            idle: Some(self.patience.idle),
            total: Some(self.patience.total),
            // No limit here: the consumer of the stream cuts the text and reports how much is
            // missing.
            output: usize::MAX,
            ..Limits::default()
        };
        sink.show_stderr(&limits.stderr);
        let prompt = prompt::talk(&self.name, self.system.as_deref(), &question.messages);
        let mentions = mention::mentions(&self.command, &self.args);
        let prompt = mention::as_text(mentions, prompt, self.work_dir.as_deref());
        let (chunks, received) = mpsc::channel(64);
        let run = process::run(&program, prompt.as_bytes(), &limits, sink.cancel(), chunks);
        let (finished, ()) = tokio::join!(run, hand_on(received, sink));
        match finished {
            Ok(finished) if finished.status.success() => Ok(Outcome::Done),
            Ok(finished) => Err(AgentError::new(
                FailureKind::Failed,
                failure::explain(
                    &format!("{} ended with {}", self.command.display(), finished.status),
                    &finished.stderr_tail,
                ),
            )),
            Err(error) => Err(match (read_only, error) {
                (Some(read_only), ProcessError::Unconfined { reason }) => {
                    self.unconfined(read_only, &reason)
                }
                (_, error) => failure::of_process(error, &self.command, &self.whence),
            }),
        }
        .map_err(|mut error| {
            error.message = failure::without_keys(&error.message, &self.env);
            match read_only {
                Some(read_only) => self.advised(error, read_only),
                None => error,
            }
        })
    }
}

impl Command {
    /// Returns how the program is confined under this tool policy, if it is.
    fn read_only(&self, approval: Approval) -> Option<&ReadOnly> {
        let read_only = self.read_only.as_ref();
        read_only.filter(|_| approval != Approval::All)
    }

    fn command_line(&self) -> CommandLine<'_> {
        CommandLine {
            vendor: None,
            command: &self.command,
            args: &self.args,
            env: &self.env,
        }
    }

    /// Returns the program of one answer, confined to what is given.
    fn program(&self, question: &AgentRequest, confined: Option<(&ReadOnly, &Scratch)>) -> Program {
        let mut env: Vec<(String, String)> = Vec::new();
        if let Some((_, scratch)) = confined {
            let path = scratch.path().to_string_lossy();
            let variables = SCRATCH_VARIABLES.iter();
            env.extend(variables.map(|name| ((*name).to_owned(), path.clone().into_owned())));
        }
        // The settings take precedence.
        env.extend(self.env.iter().cloned());
        let confined = confined.map(|(read_only, scratch)| {
            let mut writable = read_only.writable.clone();
            writable.push(scratch.path().to_owned());
            Confined { writable }
        });
        Program {
            command: self.command.clone(),
            args: self.args.clone(),
            env,
            without: self.without.clone(),
            work_dir: self.work_dir.clone(),
            marker: question.marker.clone(),
            confined,
        }
    }

    /// Makes the temporary folder of a confined program.
    fn scratch(&self, read_only: &ReadOnly, marker: &str) -> Result<Scratch, AgentError> {
        if let Kernel::Cannot(reason) = &read_only.kernel {
            return Err(self.unconfined(read_only, reason));
        }
        Scratch::empty(&read_only.scratch, marker).map_err(|error| {
            let folder = read_only.scratch.display();
            let words = format!("no temporary folder could be made in {folder} for it: {error}");
            self.unconfined(read_only, &words)
        })
    }

    /// The failure of a program that was not started because it cannot be confined.
    fn unconfined(&self, read_only: &ReadOnly, reason: &str) -> AgentError {
        let words = format!(
            "{} was not run: it cannot ask for permission, and cannot be kept from writing files: {reason}",
            self.name
        );
        AgentError::new(FailureKind::Unavailable, words).hint(format!(
            "{} lets it write whatever you may",
            self.how_to_write_all(read_only)
        ))
    }

    /// Adds what the user can do if the program failed because it runs read-only.
    fn advised(&self, error: AgentError, read_only: &ReadOnly) -> AgentError {
        if ![FailureKind::Failed, FailureKind::Timeout].contains(&error.kind) {
            return error;
        }
        let more = self.how_to_write_more(read_only);
        let before = error.hint.clone().map(|hint| format!("{hint}; "));
        let before = before.unwrap_or_default();
        error.hint(format!("{before}it runs read-only: {more}"))
    }

    fn how_to_write_more(&self, read_only: &ReadOnly) -> String {
        let all = self.how_to_write_all(read_only);
        match read_only.settable {
            true => format!(
                "{} lets it write there, {all} everywhere",
                self.whence.setting("writable = [\"DIR\"]")
            ),
            false => format!("{all} lets it write"),
        }
    }

    fn how_to_write_all(&self, read_only: &ReadOnly) -> String {
        match read_only.settable {
            true => format!(
                "{} or `--approve all`",
                self.whence.setting("confine = false")
            ),
            false => "`--approve all`".to_owned(),
        }
    }
}

async fn hand_on(mut received: mpsc::Receiver<Vec<u8>>, sink: &AgentSink) {
    let (mut decoder, mut plain) = (Utf8Stream::default(), PlainText::default());
    while let Some(chunk) = received.recv().await {
        let text = plain.push(&decoder.push(&chunk));
        if !text.is_empty() && sink.say(AgentEvent::Text(text)).await.is_err() {
            return;
        }
    }
    let rest = plain.push(&decoder.finish());
    if !rest.is_empty() {
        let _ = sink.say(AgentEvent::Text(rest)).await;
    }
}
