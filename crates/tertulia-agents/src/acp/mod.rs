//! Agents that speak the Agent Client Protocol over their standard streams. An agent is started at
//! the first prompt and kept for the following ones; it runs its own tools and asks permission for
//! them.

pub mod adapter;
mod content;
mod failure;
mod habits;
mod live;
mod permission;
mod session;
mod turn;
mod updates;
mod watch;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Mutex;

use self::adapter::{Adapter, Manner};
use self::live::{Ending, Live};
use self::turn::{Policy, Prompted};
use self::watch::{End, Lost, Watch};
use super::bypass::CommandLine;
use super::folder::Folder;
use super::mention::{self, Mentions};
use super::process::{ProcessError, Program};
use super::scratch::{Homes, Scratch};
use super::session_files::{self, SessionFiles};
use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Patience,
    Readiness, ToolSide, Whence,
};
use crate::approval::Approval;
use tertulia_core::entry::Usage;

/// Usual value of [`Acp::grace`].
pub const GRACE: Duration = Duration::from_secs(5);

/// Configuration of an agent that speaks the Agent Client Protocol.
pub struct Acp {
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
    /// Folder in which the agent works. The protocol requires an absolute path.
    pub work_dir: PathBuf,
    /// Whether the user declares that the agent asks before it uses a tool. Otherwise it must be
    /// known to.
    pub asks: bool,
    /// Locations of the programs' files, for programs that have no option to save nothing.
    pub homes: Option<Homes>,
    /// The files in which the agent's program keeps its sessions, for what its events lack.
    pub session_files: Option<Arc<dyn SessionFiles>>,
    /// Text that precedes the first prompt of a session.
    pub system: Option<String>,
    /// Time limits of an answer.
    pub patience: Patience,
    /// Time that the agent has to end its answer after a cancellation, and its processes after
    /// TERM. Usually [`GRACE`].
    pub grace: Duration,
    /// Where the agent is configured, for hints.
    pub whence: Whence,
    /// Path at which the program was found, if it was.
    pub found: Option<PathBuf>,
    /// Its process, once it has been prompted. Begins empty.
    pub connection: Connection,
}

/// The running process of an agent, or none yet. Dropping it ends the process.
#[derive(Default)]
pub struct Connection(Mutex<Option<Live>>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

// The environment may hold keys: it is never shown.
impl std::fmt::Debug for Acp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acp")
            .field("name", &self.name)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Agent for Acp {
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
        Some(&self.work_dir)
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
        Ok(Vec::new())
    }

    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        let line = self.command_line();
        line.check(&self.name, question.approval, &self.whence)?;
        let mut slot = tokio::select! {
            biased;
            () = sink.cancel().cancelled() => return Err(AgentError::cancelled()),
            slot = self.connection.0.lock() => slot,
        };
        // Taken out while it answers: if this answer is dropped, the process ends with it.
        let manner = Manner {
            held: question.approval != Approval::All,
            ephemeral: question.ephemeral,
        };
        let mut live = match slot.take() {
            Some(live) if live.alive() && live.manner.is_enough_for(manner) => live,
            // Dead, never started, or started with other restrictions. The agent's context is in
            // its own store.
            other => {
                if let Some(live) = other {
                    live.end(false).await;
                }
                self.start(question, manner).await?
            }
        };
        sink.show_stderr(live.stderr());
        let watch = Watch::begin(sink, self.patience, self.grace);
        let stopped = std::mem::take(&mut live.stopped);
        if stopped {
            live.settle().await;
        }
        let mut prompted = self.converse(&mut live, question, &watch).await;
        if stopped && !prompted.heard && !sink.cancel().is_cancelled() {
            // The agent sent the end of the cancelled answer for this prompt: it would stay one
            // answer behind.
            live.end(true).await;
            live = self.start(question, manner).await?;
            sink.show_stderr(live.stderr());
            prompted = self.converse(&mut live, question, &watch).await;
        }
        match prompted.end {
            Ok(outcome) => {
                *slot = Some(live);
                Ok(outcome)
            }
            Err(End::Told(error)) => {
                live.stopped = error.kind == FailureKind::Cancelled;
                *slot = Some(live);
                Err(error)
            }
            Err(End::Lost(lost)) => {
                let at_once = matches!(lost, Lost::Cancelled | Lost::Unasked(_));
                let ending = live.end(at_once).await;
                let mut error = self.explain(lost, &ending);
                error.message = super::failure::without_keys(&error.message, &self.env);
                Err(error)
            }
        }
    }

    fn notices(&self, _: Approval, ephemeral: bool) -> Vec<String> {
        let keeps = ephemeral && self.adapter().is_none();
        let words = || {
            format!(
                "{} may keep its own copy of this session: tertulia does not know how to prevent it",
                self.name
            )
        };
        keeps.then(words).into_iter().collect()
    }

    async fn leave(&self) {
        // A held lock means that the agent is answering; that answer ends the process by itself.
        let live = match self.connection.0.try_lock() {
            Ok(mut slot) => slot.take(),
            Err(_) => None,
        };
        if let Some(live) = live {
            live.end(false).await;
        }
    }
}

impl Acp {
    fn command_line(&self) -> CommandLine<'_> {
        CommandLine {
            vendor: None,
            command: &self.command,
            args: &self.args,
            env: &self.env,
        }
    }

    async fn start(&self, question: &AgentRequest, manner: Manner) -> Result<Live, AgentError> {
        let native = question.native.as_ref();
        let folder = native.map(|native| Folder::of(native, Some(&self.work_dir)));
        let work_dir = match folder {
            Some(Folder::Other(folder)) => folder,
            _ => self.work_dir.clone(),
        };
        let known = self.adapter();
        let mut env = adapter::environment(known, manner, &work_dir);
        let place = known.and_then(Adapter::place).filter(|_| manner.ephemeral);
        let scratch = match (place, &self.homes) {
            (Some(place), Some(homes)) => {
                let scratch = Scratch::make(place, homes, &question.marker)
                    .map_err(|error| super::failure::no_scratch(&self.name, &error))?;
                let path = scratch.path().to_string_lossy().into_owned();
                env.push((place.variable().to_owned(), path));
                Some(scratch)
            }
            _ => None,
        };
        // The settings take precedence.
        env.extend(bounded(&self.env));
        let program = Program {
            without: self
                .command_line()
                .not_inherited(&self.without, question.approval),
            command: self.command.clone(),
            args: self.args.clone(),
            env,
            work_dir: Some(work_dir),
            marker: question.marker.clone(),
            confined: None,
        };
        Live::start(program, manner, scratch, self.grace)
            .await
            .ok_or_else(|| {
                AgentError::new(
                    FailureKind::Unavailable,
                    format!("{} could not be started", self.command.display()),
                )
            })
    }

    async fn converse(
        &self,
        live: &mut Live,
        question: &AgentRequest,
        watch: &Watch<'_>,
    ) -> Prompted {
        let place = match session::open(self, live, question, watch).await {
            Ok(place) => place,
            Err(end) => return Prompted::ended(end),
        };
        let words = session::words(self, live, &question.messages, place.known);
        let words = match mention::mentions(&self.command, &self.args) {
            Some(Mentions::Paths) => mention::split(&words),
            _ => mention::unread(&words, Some(&self.work_dir)),
        };
        // An agent of which the user says that it asks is in any mode.
        let known = self.adapter().filter(|_| !self.asks);
        let policy = Policy {
            approval: question.approval,
            free: known.map(Adapter::unasked_kinds).unwrap_or_default(),
            always: live.always.clone(),
        };
        let prompted = turn::prompt(live, watch, &place.session, words, policy).await;
        live.always.clone_from(&prompted.always);
        if let Some(since) = question.asked_at.filter(|_| !question.ephemeral)
            && prompted.end.is_ok()
        {
            let usage = prompted.usage.unwrap_or_default();
            self.say_requests(&place.session, since, usage, watch).await;
        }
        if question.ephemeral && !matches!(prompted.end, Err(End::Lost(_))) {
            session::delete(live).await;
        }
        prompted
    }

    /// Names the requests of an answer, which the protocol does not.
    async fn say_requests(&self, session: &str, since: Timestamp, usage: Usage, watch: &Watch<'_>) {
        let Some(files) = &self.session_files else {
            return;
        };
        let recorded = session_files::read_from_running(files, session, since, usage).await;
        if let Some(recorded) = recorded {
            // Fails only if the answer is cancelled.
            let _ = watch.say(AgentEvent::Requests(recorded.requests)).await;
        }
    }

    /// Returns which known program the agent is.
    fn adapter(&self) -> Option<Adapter> {
        Adapter::of(&self.command, &self.args)
    }

    /// The failure of an agent that would use tools without permission.
    fn does_not_ask(&self, why: Option<&AgentError>) -> AgentError {
        let why = why.map(|error| format!(" ({error})")).unwrap_or_default();
        let words = format!(
            "{} may run tools without asking, and cannot be set to ask{why}",
            self.name
        );
        let hint = format!(
            "`--approve all` lets it use every tool unasked; if it does ask, set {} to true in your own settings",
            self.whence.setting("asks")
        );
        AgentError::new(FailureKind::Unavailable, words).hint(hint)
    }

    /// The failure of an agent that used a tool without permission.
    fn ran_unasked(&self, tool: &str) -> AgentError {
        let words = format!(
            "{} used {tool} without asking for permission, and was stopped; what the tool did is done",
            self.name
        );
        let why = match self.asks {
            true => format!(
                "take {} out, it does not always ask; ",
                self.whence.setting("asks")
            ),
            false => String::new(),
        };
        let hint = format!("{why}`--approve all` lets it use every tool unasked");
        AgentError::new(FailureKind::Failed, words).hint(hint)
    }

    /// Explains why the agent cannot be prompted again.
    fn explain(&self, lost: Lost, ending: &Ending) -> AgentError {
        let command = self.command.display();
        let failed = |kind, what: String| AgentError::new(kind, with_reason(&what, ending));
        match lost {
            Lost::Cancelled => AgentError::cancelled(),
            Lost::Idle(limit) => failed(
                FailureKind::Timeout,
                format!(
                    "{command} sent nothing for {} s and was stopped",
                    limit.as_secs_f32()
                ),
            )
            .hint(format!(
                "{} sets how long",
                self.whence.setting("idle_timeout")
            )),
            Lost::Total(limit) => failed(
                FailureKind::Timeout,
                format!(
                    "{command} was not done after {} s and was ended",
                    limit.as_secs_f32()
                ),
            )
            .hint(format!("{} sets how long", self.whence.limit())),
            Lost::Gone => self.gone(ending),
            Lost::Unasked(tool) => self.ran_unasked(&tool),
            Lost::Unfit(why) => failed(
                FailureKind::Protocol,
                format!("{command} does not keep to version 1 of the Agent Client Protocol: {why}"),
            ),
        }
    }

    fn gone(&self, ending: &Ending) -> AgentError {
        let command = self.command.display();
        match &ending.process {
            Ok(finished) if !ending.noise.too_much => AgentError::new(
                FailureKind::Protocol,
                with_reason(
                    &format!(
                        "{command} ended with {} before it had answered",
                        finished.status
                    ),
                    ending,
                ),
            ),
            Ok(_) | Err(ProcessError::Cancelled) => AgentError::new(
                FailureKind::Protocol,
                with_reason(
                    &format!("{command} does not speak the Agent Client Protocol"),
                    ending,
                ),
            ),
            Err(ProcessError::NotFound { .. }) => AgentError::new(
                FailureKind::Unavailable,
                format!("the program {command} was not found"),
            )
            .hint(format!("install it, or {}", self.whence.program())),
            Err(other) => AgentError::new(
                FailureKind::Unavailable,
                format!("{command} cannot be run: {other}"),
            ),
        }
    }
}

/// Adds a limit on the retries of Claude Code behind an adapter: it would retry for three minutes
/// in silence. Other programs do not know the variable, and the settings take precedence.
fn bounded(env: &[(String, String)]) -> Vec<(String, String)> {
    let mut all = vec![("CLAUDE_CODE_MAX_RETRIES".to_owned(), "3".to_owned())];
    all.extend(env.iter().cloned());
    all
}

/// Joins a description of the failure with the program's own output about it.
fn with_reason(what: &str, ending: &Ending) -> String {
    let tail = match &ending.process {
        Ok(finished) => finished.stderr_tail.trim(),
        Err(_) => "",
    };
    let noise = ending
        .noise
        .last
        .as_deref()
        .map(|line| format!("it wrote “{line}”"));
    let said = (!tail.is_empty()).then(|| tail.to_owned());
    let reasons: Vec<String> = noise.into_iter().chain(said).collect();
    match reasons[..] {
        [] => what.to_owned(),
        _ => format!("{what}: {}", reasons.join("; ")),
    }
}
