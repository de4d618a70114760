//! Any agent that speaks the Agent Client Protocol over its standard streams. It is started when it is
//! asked first and kept for the questions that follow; it brings its own tools and asks leave for them.

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

use std::path::PathBuf;

use async_trait::async_trait;
use tokio::sync::Mutex;

use self::live::{Ending, Live};
use self::watch::{End, Lost, Watch};
use super::process::{ProcessError, Program};
use super::{
    Agent, AgentError, FailureKind, Floor, Outcome, Patience, Question, Readiness, ToolSide, Whence,
};

/// How an agent is run that speaks the Agent Client Protocol.
pub struct Acp {
    /// The name under which it speaks.
    pub name: String,
    /// The model, if the settings name one.
    pub model: Option<String>,
    /// The program: a path, or a name on the search path.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// What is added to its environment.
    pub env: Vec<(String, String)>,
    /// Inherited variables that it does not get.
    pub without: Vec<String>,
    /// The folder in which it works. The protocol wants it absolute.
    pub work_dir: PathBuf,
    /// What precedes the first prompt of a session.
    pub system: Option<String>,
    /// How long an answer may take.
    pub patience: Patience,
    /// Where it is set how it is run.
    pub whence: Whence,
    /// Where the program was found, if it was.
    pub found: Option<PathBuf>,
    /// Its process, once it has been asked. Begins empty.
    pub connection: Connection,
}

/// The running process of an agent, or none yet. Dropped, it ends the process.
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

    async fn answer(&self, question: &Question, floor: &Floor) -> Result<Outcome, AgentError> {
        let mut slot = tokio::select! {
            biased;
            () = floor.cancel().cancelled() => return Err(AgentError::cancelled()),
            slot = self.connection.0.lock() => slot,
        };
        // Taken out while it answers: if this answer is dropped, the process ends with it.
        let mut live = match slot.take() {
            Some(live) if live.alive() => live,
            // Dead or never there. What it remembers is in its own store.
            _ => self.start(&question.marker).await?,
        };
        let watch = Watch::begin(floor, self.patience);
        match self.converse(&mut live, question, &watch).await {
            Ok(outcome) => {
                *slot = Some(live);
                Ok(outcome)
            }
            Err(End::Told(error)) => {
                *slot = Some(live);
                Err(error)
            }
            Err(End::Lost(lost)) => {
                let ending = live.end(lost == Lost::Cancelled).await;
                let mut error = self.explain(lost, &ending);
                error.message = super::failure::without_keys(&error.message, &self.env);
                Err(error)
            }
        }
    }

    async fn leave(&self) {
        // Whoever holds it is answering, and ends it by itself.
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
    async fn start(&self, marker: &str) -> Result<Live, AgentError> {
        let program = Program {
            without: self.without.clone(),
            command: self.command.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            work_dir: Some(self.work_dir.clone()),
            marker: marker.to_owned(),
        };
        Live::start(program).await.ok_or_else(|| {
            AgentError::new(
                FailureKind::Unavailable,
                format!("{} could not be started", self.command.display()),
            )
        })
    }

    async fn converse(
        &self,
        live: &mut Live,
        question: &Question,
        watch: &Watch<'_>,
    ) -> Result<Outcome, End> {
        let place = session::open(self, live, question, watch).await?;
        let words = session::words(self, live, &question.messages, place.known);
        turn::prompt(live, watch, &place.session, words, question.approval).await
    }

    /// Why it cannot be asked again, in words.
    fn explain(&self, lost: Lost, ending: &Ending) -> AgentError {
        let command = self.command.display();
        let failed = |kind, what: String| AgentError::new(kind, with_reason(&what, ending));
        match lost {
            Lost::Cancelled => AgentError::cancelled(),
            Lost::Idle(limit) => failed(
                FailureKind::Timeout,
                format!(
                    "{command} said nothing for {} s and was ended",
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

/// What happened, with what the program itself said about it.
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
