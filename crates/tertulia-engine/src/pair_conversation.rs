//! Conversation of an instructor and a worker: carries out the decisions of the state machine in
//! [`super::pair`], one answer at a time. The log is the state, so that a session can be resumed
//! after a crash at any point.

mod ask;
mod compact;
mod restore;
mod threads;

use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::event::SessionEvent;
use super::frontend::Frontend;
use super::log_writer::LogWriter;
use super::pair::budget::{self, Budget};
use super::pair::reply;
use super::pair::words;
use super::pair::{Next, Pair, PairEvent, PairRole, Progress, Todo, Wait};
use super::runner::{RunOptions, Runner, ToolAccess};
use tertulia_agents::{Agent, AgentError};
use tertulia_core::entry::{Body, Budgeted, Message, Paired, Role, Speaker};
use tertulia_core::entry::{human, plain};
use tertulia_core::session::SessionMeta;
use tertulia_store::StoreResult;
use threads::Threads;

/// Number of consecutive worker failures after which the conversation pauses for the user.
const FAILURES: u32 = 3;

/// Creates an agent with the named model.
pub type Maker = Arc<dyn Fn(&str) -> Result<Arc<dyn Agent>, AgentError> + Send + Sync>;

/// The instructor or the worker.
#[derive(Clone)]
pub struct PairAgent {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Creates the same agent with another model.
    pub with_model: Maker,
    /// Tool access.
    pub equipment: ToolAccess,
    /// Number of tokens above which its context is compacted.
    pub compact_at: Option<u64>,
}

impl std::fmt::Debug for PairAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairAgent")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// The participants of a pair conversation.
#[derive(Debug)]
pub struct PairRoster {
    /// The instructor.
    pub instructor: PairAgent,
    /// The worker.
    pub worker: PairAgent,
    /// Both, as recorded in the log.
    pub paired: Paired,
    /// New budget of worker calls; `None` for the recorded or default one.
    pub budget: Option<Budget>,
}

impl PairRoster {
    /// Returns the entries that a session of the pair begins with.
    pub fn opening(&self) -> Vec<Body> {
        let budget = self.budget.unwrap_or_default();
        vec![
            Body::Paired(self.paired.clone()),
            Body::Budgeted(Budgeted { budget }),
        ]
    }
}

/// Why the user has the turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Pause {
    /// The state machine waits for the user.
    Waits(Wait),
    /// The user stopped this agent.
    Stopped(PairRole),
    /// The instructor failed.
    Failed(AgentError),
    /// The worker failed several times in a row.
    WorkerFails(AgentError),
    /// The session cannot be saved, and nothing runs that is not in the log first.
    Unsaved,
    /// The log cannot be read.
    Unreadable(String),
    /// The message was refused.
    Refused,
}

/// A running pair conversation.
#[derive(Debug)]
pub struct PairConversation {
    runner: Runner,
    instructor: PairAgent,
    worker: PairAgent,
    /// System prompt of the instructor.
    system: String,
    /// Entries to save with the next message.
    opening: Vec<Body>,
    /// Contexts of the two agents.
    threads: Threads,
    /// Last message of the last prompted agent, before redaction.
    heard: Option<String>,
    /// Whether the worker has just received its instruction and was not prompted with it yet.
    fresh: bool,
    /// Number of consecutive worker failures.
    failures: u32,
    begun: Timestamp,
}

impl PairConversation {
    /// Creates the conversation of a new session.
    pub fn begin(writer: LogWriter, seating: PairRoster, options: RunOptions) -> PairConversation {
        let opening = seating.opening();
        let agent = seating.instructor.agent.clone();
        let runner = Runner::begin(writer, agent, options).by_brief();
        PairConversation::around(runner, seating, opening)
    }

    fn around(runner: Runner, seating: PairRoster, opening: Vec<Body>) -> PairConversation {
        let begun = runner.writer().sessions().clock().now();
        PairConversation {
            runner,
            instructor: seating.instructor,
            worker: seating.worker,
            system: seating.paired.system,
            opening,
            threads: Threads::default(),
            heard: None,
            fresh: false,
            failures: 0,
            begun,
        }
    }

    /// Returns the runner.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns the runner for changes.
    pub fn runner_mut(&mut self) -> &mut Runner {
        &mut self.runner
    }

    /// Returns the state of the pair, or `None` before the first entries.
    pub fn pair(&self) -> Option<&Pair> {
        self.runner.writer().meta()?.pair.as_deref()
    }

    /// Returns the next step if it is not the user's, so that the pair can continue.
    pub fn pending(&self) -> Option<Next> {
        let pair = self.pair()?;
        (pair.next != Next::Human).then_some(pair.next)
    }

    /// Returns the progress: rounds, worker calls, budget, usage and time.
    pub fn progress(&self) -> Progress {
        let now = self.runner.writer().sessions().clock().now();
        let meta = self.runner.writer().meta();
        let pair = self.pair();
        Progress {
            round: pair.map_or(0, |pair| pair.round),
            worker_calls: pair.map_or(0, |pair| pair.worker_calls),
            remaining: self.budget(),
            tokens: meta.map_or_else(Default::default, |meta| meta.tokens),
            elapsed: now.duration_since(self.begun),
        }
    }

    fn budget(&self) -> Budget {
        let opening = self.opening.iter().rev().find_map(|body| match body {
            Body::Budgeted(budgeted) => Some(budgeted.budget),
            _ => None,
        });
        let known = self.pair().map(|pair| pair.remaining);
        opening.or(known).unwrap_or_default()
    }

    /// Lets the agents end their processes.
    pub async fn leave(&self) {
        self.instructor.agent.leave().await;
        self.worker.agent.leave().await;
    }

    /// Runs one turn: applies budget changes at the beginning of `input`, sends the rest to the
    /// instructor, and continues until the user has the turn again. Without a message, continues
    /// with the pending step.
    pub async fn turn(
        &mut self,
        input: &str,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Pause {
        self.begun = self.runner.writer().sessions().clock().now();
        self.failures = 0;
        self.heard = None;
        self.threads.forget_typed();
        if self.runner.writer().has_unsaved() {
            // Held entries come first, because the state is known only from the log.
            self.put_down(Vec::new(), frontend).await;
        }
        let (changes, said) = budget::read(input);
        if !changes.is_empty() {
            let changed = changes.into_iter().fold(self.budget(), Budget::changed);
            self.opening
                .push(Body::Budgeted(Budgeted { budget: changed }));
            frontend.show(SessionEvent::Pair {
                event: PairEvent::Budgeted(changed),
            });
        }
        if said.trim().is_empty() {
            if self.pair().is_some() && !self.opening.is_empty() {
                let opening = std::mem::take(&mut self.opening);
                if !self.put_down(opening, frontend).await {
                    return Pause::Refused;
                }
            }
        } else if let Some(pause) = self.take_words(said, frontend).await {
            return pause;
        }
        self.follow(frontend, cancel).await
    }

    /// Sends the user's message to the instructor, after a report that it did not get yet. Returns
    /// the reason if that failed.
    async fn take_words(&mut self, said: &str, frontend: &mut dyn Frontend) -> Option<Pause> {
        let news = match self.news(frontend).await {
            Ok(news) => news,
            Err(error) => return Some(Pause::Unreadable(error.to_string())),
        };
        let mut before = std::mem::take(&mut self.opening);
        let opening = before.clone();
        before.extend(news.map(|(by, text)| said_to(PairRole::Instructor, &by, text)));
        let words = message_to(PairRole::Instructor, &human(), said.to_owned());
        if self.hear(before, words, frontend).await {
            return None;
        }
        // Still to be saved.
        self.opening = opening;
        Some(Pause::Refused)
    }

    /// Returns the report that the instructor did not get yet, and its speaker.
    async fn news(
        &mut self,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<Option<(Speaker, String)>> {
        Ok(match self.pair().map(|pair| pair.next) {
            Some(Next::Worker) => {
                let said = self.last_words_of_worker().await?;
                Some((words::narrator(), words::worker_cut_off(&said)))
            }
            Some(Next::Handover) => Some((words::narrator(), words::NOT_GIVEN.to_owned())),
            Some(Next::Report) => {
                let report = self.report(frontend).await?;
                Some((words::speaker(PairRole::Worker), report.0))
            }
            _ => None,
        })
    }

    /// Carries out steps until the user has the turn.
    async fn follow(&mut self, frontend: &mut dyn Frontend, cancel: &CancellationToken) -> Pause {
        loop {
            if self.runner.writer().has_unsaved() {
                return Pause::Unsaved;
            }
            let Some(pair) = self.pair() else {
                return Pause::Waits(Wait::Idle);
            };
            let todo = pair.todo();
            if let Todo::Wait(wait) = todo {
                return Pause::Waits(wait);
            }
            if cancel.is_cancelled() {
                let seat = match todo {
                    Todo::Ask(seat) => seat,
                    _ => PairRole::Instructor,
                };
                return Pause::Stopped(seat);
            }
            let pause = match todo {
                Todo::Wait(wait) => Some(Pause::Waits(wait)),
                Todo::Correct(attempt) => self.correct(attempt, frontend).await,
                Todo::HandOver => self.hand_over(frontend).await,
                Todo::Report => self.hand_back(frontend).await,
                Todo::Ask(seat) => self.ask(seat, frontend, cancel).await,
            };
            if let Some(pause) = pause {
                return pause;
            }
        }
    }

    async fn correct(&mut self, attempt: u32, frontend: &mut dyn Frontend) -> Option<Pause> {
        frontend.show(SessionEvent::Pair {
            event: PairEvent::Correcting { attempt },
        });
        let text = words::correction(attempt);
        let message = message_to(PairRole::Instructor, &words::narrator(), text);
        self.tell(message, frontend).await
    }

    /// Gives the worker its instruction, which counts as a worker call.
    async fn hand_over(&mut self, frontend: &mut dyn Frontend) -> Option<Pause> {
        let whole = match self.heard.take() {
            Some(heard) => Some(heard),
            None => match self.words_at(|pair| pair.reply_at).await {
                Ok(whole) => whole,
                Err(error) => return Some(Pause::Unreadable(error.to_string())),
            },
        };
        let instruction = whole.map(|whole| reply::read(&whole).instruction);
        let instruction = match instruction.filter(|words| !words.is_empty()) {
            Some(instruction) => instruction,
            // The state points to no reply in the log, as in an imported session.
            None => self.pair()?.last_instruction.clone(),
        };
        let by = words::speaker(PairRole::Instructor);
        let message = message_to(PairRole::Worker, &by, words::cut(&instruction));
        let pause = self.tell(message, frontend).await;
        self.fresh = pause.is_none();
        pause
    }

    /// Sends the worker's answer or failure to the instructor.
    async fn hand_back(&mut self, frontend: &mut dyn Frontend) -> Option<Pause> {
        let (text, error) = match self.report(frontend).await {
            Ok(report) => report,
            Err(error) => return Some(Pause::Unreadable(error.to_string())),
        };
        let message = message_to(
            PairRole::Instructor,
            &words::speaker(PairRole::Worker),
            text,
        );
        if let Some(pause) = self.tell(message, frontend).await {
            return Some(pause);
        }
        match error {
            Some(error) => {
                self.failures += 1;
                (self.failures >= FAILURES).then_some(Pause::WorkerFails(error))
            }
            None => {
                self.failures = 0;
                None
            }
        }
    }

    /// Returns the report of the worker's answer or failure for the instructor.
    async fn report(
        &mut self,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<(String, Option<AgentError>)> {
        let failure = self.failure_of_worker().await?;
        let heard = self.heard.take();
        Ok(match failure {
            Some(error) => {
                let said = match heard {
                    Some(heard) => heard,
                    None => self.last_words_of_worker().await?,
                };
                frontend.show(SessionEvent::Pair {
                    event: PairEvent::WorkerFailed(error.clone()),
                });
                (words::worker_failed(&error, &said), Some(error))
            }
            None => {
                let said = match heard {
                    Some(heard) => Some(heard),
                    None => self.words_at(|pair| pair.report_at).await?,
                };
                (words::worker_says(&said.unwrap_or_default()), None)
            }
        })
    }

    fn agent_of(&self, seat: PairRole) -> &PairAgent {
        match seat {
            PairRole::Instructor => &self.instructor,
            PairRole::Worker => &self.worker,
        }
    }

    fn agent_of_mut(&mut self, seat: PairRole) -> &mut PairAgent {
        match seat {
            PairRole::Instructor => &mut self.instructor,
            PairRole::Worker => &mut self.worker,
        }
    }

    fn meta(&self) -> Option<&SessionMeta> {
        self.runner.writer().meta()
    }

    /// Saves a message to one of the two agents, together with the entries in `opening`.
    async fn tell(&mut self, message: Message, frontend: &mut dyn Frontend) -> Option<Pause> {
        let before = std::mem::take(&mut self.opening);
        let taken = self.hear(before, message, frontend).await;
        (!taken).then_some(Pause::Refused)
    }

    async fn hear(
        &mut self,
        before: Vec<Body>,
        message: Message,
        frontend: &mut dyn Frontend,
    ) -> bool {
        let kept = self.runner.hear(before, message, frontend).await;
        let heard = self.runner.take_written();
        let at = heard.last_message();
        self.threads.take_in(heard);
        let Some(kept) = kept else {
            return false;
        };
        if kept.logged.is_some() {
            self.threads.as_typed(at, kept.message.content);
        }
        true
    }

    async fn put_down(&mut self, bodies: Vec<Body>, frontend: &mut dyn Frontend) -> bool {
        let written = self.runner.put_down(bodies, frontend).await;
        // Messages that were held until now are written with it.
        let entries = self.runner.take_written().entries;
        self.threads.take_entries(&entries);
        written
    }
}

fn message_to(seat: PairRole, by: &Speaker, words: String) -> Message {
    Message {
        thread: Some(seat.name().to_owned()),
        ..plain(by, Role::User, words)
    }
}

fn said_to(seat: PairRole, by: &Speaker, words: String) -> Body {
    Body::Message(message_to(seat, by, words))
}
