//! Any program as an agent: prompt on standard input, answer from standard output. A non-zero exit
//! code is a failure, explained by the program's standard error.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::process::{self, Limits, Program, Utf8Stream};
use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Patience,
    Readiness, ToolSide, Whence, failure, prompt,
};

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

    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        let program = Program {
            command: self.command.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            without: self.without.clone(),
            work_dir: self.work_dir.clone(),
            marker: question.marker.clone(),
        };
        let limits = Limits {
            idle: Some(self.patience.idle),
            total: Some(self.patience.total),
            // No limit here: the consumer of the stream cuts the text and reports how much is
            // missing.
            output: usize::MAX,
            ..Limits::default()
        };
        sink.show_stderr(&limits.stderr);
        let prompt = prompt::talk(self.system.as_deref(), &question.messages);
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
            Err(error) => Err(failure::of_process(error, &self.command, &self.whence)),
        }
        .map_err(|mut error| {
            error.message = failure::without_keys(&error.message, &self.env);
            error
        })
    }
}

async fn hand_on(mut received: mpsc::Receiver<Vec<u8>>, sink: &AgentSink) {
    let mut decoder = Utf8Stream::default();
    while let Some(chunk) = received.recv().await {
        let text = decoder.push(&chunk);
        if !text.is_empty() && sink.say(AgentEvent::Text(text)).await.is_err() {
            return;
        }
    }
    let rest = decoder.finish();
    if !rest.is_empty() {
        let _ = sink.say(AgentEvent::Text(rest)).await;
    }
}
