//! The policy of a pair: carries the decisions of the state machine in [`super::state`] out as
//! prompts and messages. The log is the state: a session can be resumed after a crash at any point.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;

use super::budget::{self, Budget};
use super::reply;
use super::roster::{PairAgent, PairRoster};
use super::words;
use super::{Next, Pair, PairEvent, PairRole, Pause, Progress, Todo, Wait};
use crate::answer::TurnEnd;
use crate::context::ContextMessage;
use crate::conversation::TurnResult;
use crate::event::SessionEvent;
use crate::policy::{Answered, Ask, Effect, Event, View};
use crate::prompt::Prompt;
use tertulia_agents::{Agent, AgentError, FailureKind, Part};
use tertulia_core::entry::{Body, Budgeted, Entry, Message, Paired, Role, Speaker};
use tertulia_core::entry::{human, plain};

/// Number of consecutive worker failures after which the conversation pauses for the user.
const FAILURES: u32 = 3;

/// An instructor that tells a worker what to do until a task is done.
#[derive(Debug)]
pub struct PairPolicy {
    instructor: PairAgent,
    worker: PairAgent,
    /// System prompt of the instructor.
    system: String,
    /// Entries to save with the next message.
    opening: Vec<Body>,
    /// The user's message that is not saved yet, without its text.
    sent: Prompt,
    /// Last message of the last prompted agent, before redaction.
    answer: Option<String>,
    /// Whether the worker has just received its instruction and was not prompted with it yet.
    fresh: bool,
    /// Number of consecutive worker failures.
    failures: u32,
    begun: Timestamp,
    stage: Stage,
}

/// What the policy waits for.
#[derive(Debug, Default)]
enum Stage {
    /// The user's message.
    #[default]
    Idle,
    /// Held entries to be saved: they come first, because the state is known only from the log.
    Flushing(String),
    /// The contexts to be loaded before this message, whose secrets the log does not have.
    Preparing(String),
    /// What the instructor must know before this message of the user.
    ReadingNews(String),
    /// An instruction that the policy does not remember.
    ReadingInstruction,
    /// The worker's answer or failure.
    ReadingReport,
    /// A message or a change of the budget to be saved.
    Telling,
    /// The instruction to be saved.
    Instructing,
    /// The report of the worker to be saved; it failed with this error.
    Reporting(Option<AgentError>),
    /// A message to an agent that was cut off to be saved.
    TakingUp(PairRole),
    /// The contexts to be loaded.
    Loading,
    /// The answer of a prompted agent.
    Asking(PairRole),
}

impl PairPolicy {
    /// Creates the policy of a new session.
    pub fn begin(roster: PairRoster, now: Timestamp) -> PairPolicy {
        let opening = roster.opening();
        PairPolicy::new(roster, opening, now)
    }

    /// Creates the policy of a resumed session whose participants were `known`. The instructor keeps
    /// the system prompt that the session began with.
    pub fn resume(mut roster: PairRoster, known: Option<&Paired>, now: Timestamp) -> PairPolicy {
        if let Some(known) = known {
            roster.paired.system.clone_from(&known.system);
        }
        let unchanged = known.is_some_and(|known| {
            let round = known.round;
            *known
                == Paired {
                    round,
                    ..roster.paired.clone()
                }
        });
        let paired = (!unchanged).then(|| Body::Paired(roster.paired.clone()));
        let budget = roster.budget;
        let budget = budget.map(|budget| Body::Budgeted(Budgeted { budget }));
        let opening = paired.into_iter().chain(budget).collect();
        PairPolicy::new(roster, opening, now)
    }

    fn new(roster: PairRoster, opening: Vec<Body>, begun: Timestamp) -> PairPolicy {
        PairPolicy {
            instructor: roster.instructor,
            worker: roster.worker,
            system: roster.paired.system,
            opening,
            sent: Prompt::default(),
            answer: None,
            fresh: false,
            failures: 0,
            begun,
            stage: Stage::Idle,
        }
    }

    /// Returns the entries that are to be saved before the next message.
    pub fn opening(&mut self) -> &mut Vec<Body> {
        &mut self.opening
    }

    /// Returns both agents.
    pub fn agents(&self) -> Vec<Arc<dyn Agent>> {
        vec![self.instructor.agent.clone(), self.worker.agent.clone()]
    }

    /// Returns the progress: rounds, worker calls, budget, usage and time.
    pub fn progress(&self, view: &View<'_>) -> Progress {
        let pair = pair(view);
        Progress {
            round: pair.map_or(0, |pair| pair.round),
            worker_calls: pair.map_or(0, |pair| pair.worker_calls),
            remaining: self.budget(view),
            tokens: view.meta.map_or_else(Default::default, |meta| meta.tokens),
            elapsed: view.now.duration_since(self.begun),
        }
    }

    fn budget(&self, view: &View<'_>) -> Budget {
        let opening = self.opening.iter().rev().find_map(|body| match body {
            Body::Budgeted(budgeted) => Some(budgeted.budget),
            _ => None,
        });
        let known = pair(view).map(|pair| pair.remaining);
        opening.or(known).unwrap_or_default()
    }

    /// Processes an event.
    pub fn step(&mut self, event: Event, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        match (std::mem::take(&mut self.stage), event) {
            (_, Event::Said { mut prompt, .. }) => {
                let text = std::mem::take(&mut prompt.text);
                self.sent = prompt;
                self.begin_turn(text, view, shown)
            }
            (Stage::Flushing(text), Event::Saved(_) | Event::Refused) => {
                self.prepare(text, view, shown)
            }
            // A log that cannot be read is reported once the message is saved.
            (Stage::Preparing(text), Event::Loaded | Event::Unreadable(_)) => {
                self.read(&text, view, shown)
            }
            (_, Event::Refused) => self.pause(Pause::Refused, view),
            (_, Event::Unreadable(why)) => self.pause(Pause::Unreadable(why), view),
            (Stage::ReadingNews(said), Event::Recalled(entry, worker_said)) => {
                let news = self.news(entry.as_deref(), worker_said, view, shown);
                self.tell_instructor(&said, news)
            }
            (Stage::ReadingInstruction, Event::Recalled(entry, _)) => {
                let reply = entry.and_then(|entry| Some(entry.message()?.content.clone()));
                self.instruct(reply.as_deref(), view)
            }
            (Stage::ReadingReport, Event::Recalled(entry, worker_said)) => {
                let (text, error) = self.report(entry.as_deref(), worker_said, shown);
                let by = words::speaker(PairRole::Worker);
                let message = message_to(PairRole::Instructor, &by, text);
                self.tell(message, Stage::Reporting(error))
            }
            (stage, Event::Saved(_)) => self.saved(stage, view, shown),
            (Stage::Asking(role), Event::Answered(answered)) => {
                self.answered(role, answered, view, shown)
            }
            _ => self.follow(view, shown),
        }
    }

    /// Begins a turn: applies budget changes at the beginning of the user's message and sends the
    /// rest to the instructor. Without a message, continues with the pending step.
    fn begin_turn(
        &mut self,
        text: String,
        view: &View<'_>,
        shown: &mut Vec<SessionEvent>,
    ) -> Effect {
        self.begun = view.now;
        self.failures = 0;
        self.answer = None;
        if view.unsaved {
            self.stage = Stage::Flushing(text);
            return Effect::Append(Vec::new());
        }
        self.prepare(text, view, shown)
    }

    fn prepare(&mut self, text: String, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        if view.contexts.is_empty() && !budget::read(&text).1.trim().is_empty() {
            self.stage = Stage::Preparing(text);
            return Effect::Load;
        }
        self.read(&text, view, shown)
    }

    fn read(&mut self, text: &str, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        let (changes, said) = budget::read(text);
        if !changes.is_empty() {
            let budget = changes.into_iter().fold(self.budget(view), Budget::changed);
            self.opening.push(Body::Budgeted(Budgeted { budget }));
            show(PairEvent::Budgeted(budget), shown);
        }
        if said.trim().is_empty() {
            if pair(view).is_some() && !self.opening.is_empty() {
                return self.append(Vec::new(), Stage::Telling);
            }
            return self.follow(view, shown);
        }
        let recall = match pair(view) {
            Some(pair) if pair.next == Next::Worker => Some(None),
            Some(pair) if pair.next == Next::Report => Some(pair.report_at),
            _ => None,
        };
        if let Some(at) = recall {
            self.stage = Stage::ReadingNews(said.to_owned());
            return Effect::Recall { at, worker: true };
        }
        let news = self.news(None, String::new(), view, shown);
        self.tell_instructor(said, news)
    }

    /// Returns the report that the instructor did not get yet, and its speaker.
    fn news(
        &mut self,
        entry: Option<&Entry>,
        worker_said: String,
        view: &View<'_>,
        shown: &mut Vec<SessionEvent>,
    ) -> Option<(Speaker, String)> {
        match pair(view)?.next {
            Next::Worker => Some((words::narrator(), words::worker_cut_off(&worker_said))),
            Next::Handover => Some((words::narrator(), words::NOT_GIVEN.to_owned())),
            Next::Report => {
                let report = self.report(entry, worker_said, shown);
                Some((words::speaker(PairRole::Worker), report.0))
            }
            Next::Human | Next::Instructor | Next::Correction => None,
        }
    }

    /// Sends the user's message to the instructor, after a report that it did not get yet.
    fn tell_instructor(&mut self, said: &str, news: Option<(Speaker, String)>) -> Effect {
        let news = news.map(|(by, text)| message_to(PairRole::Instructor, &by, text));
        let words = Message {
            attachments: std::mem::take(&mut self.sent.attached),
            client_id: self.sent.client_id.take(),
            ..message_to(PairRole::Instructor, &human(), said.to_owned())
        };
        self.append(news.into_iter().chain([words]).collect(), Stage::Telling)
    }

    fn tell(&mut self, message: Message, stage: Stage) -> Effect {
        self.append(vec![message], stage)
    }

    /// Saves messages, after the entries in `opening`.
    fn append(&mut self, messages: Vec<Message>, stage: Stage) -> Effect {
        self.stage = stage;
        let opening = self.opening.iter().cloned();
        Effect::Append(
            opening
                .chain(messages.into_iter().map(Body::Message))
                .collect(),
        )
    }

    fn saved(&mut self, stage: Stage, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        self.opening.clear();
        match stage {
            Stage::Instructing => self.fresh = true,
            Stage::Reporting(None) => self.failures = 0,
            Stage::Reporting(Some(error)) => {
                self.failures += 1;
                if self.failures >= FAILURES {
                    return self.pause(Pause::WorkerFails(error), view);
                }
            }
            Stage::TakingUp(role) => return self.ask(role, view),
            _ => {}
        }
        self.follow(view, shown)
    }

    /// Takes the next step, or gives the user the turn.
    fn follow(&mut self, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        if view.unsaved {
            return self.pause(Pause::Unsaved, view);
        }
        let Some(pair) = pair(view) else {
            return self.pause(Pause::Waits(Wait::Idle), view);
        };
        match pair.todo() {
            Todo::Wait(wait) => self.pause(Pause::Waits(wait), view),
            todo if view.cancelled => {
                let role = match todo {
                    Todo::Ask(role) => role,
                    _ => PairRole::Instructor,
                };
                self.pause(Pause::Stopped(role), view)
            }
            Todo::Correct(attempt) => {
                show(PairEvent::Correcting { attempt }, shown);
                let text = words::correction(attempt);
                let message = message_to(PairRole::Instructor, &words::narrator(), text);
                self.tell(message, Stage::Telling)
            }
            Todo::HandOver => match self.answer.take() {
                Some(reply) => self.instruct(Some(&reply), view),
                None => {
                    self.stage = Stage::ReadingInstruction;
                    let at = pair.reply_at;
                    Effect::Recall { at, worker: false }
                }
            },
            Todo::Report => {
                self.stage = Stage::ReadingReport;
                Effect::Recall {
                    at: pair.report_at,
                    worker: self.answer.is_none(),
                }
            }
            Todo::Ask(_) if view.contexts.is_empty() => {
                self.stage = Stage::Loading;
                Effect::Load
            }
            Todo::Ask(role) => match self.take_up(role, view) {
                Some(text) => {
                    if role == PairRole::Worker {
                        show(PairEvent::TakenUp, shown);
                    }
                    let message = message_to(role, &words::narrator(), text.to_owned());
                    self.tell(message, Stage::TakingUp(role))
                }
                None => self.ask(role, view),
            },
        }
    }

    fn pause(&mut self, pause: Pause, view: &View<'_>) -> Effect {
        Effect::WaitFor(TurnResult::Pair(pause, self.progress(view)))
    }

    /// Gives the worker its instruction, which counts as a worker call.
    fn instruct(&mut self, reply: Option<&str>, view: &View<'_>) -> Effect {
        let instruction = reply.map(|reply| reply::read(reply).instruction);
        let instruction = match instruction.filter(|words| !words.is_empty()) {
            Some(instruction) => instruction,
            // The state points to no reply in the log, as in an imported session.
            None => pair(view).map_or_else(String::new, |pair| pair.last_instruction.clone()),
        };
        let by = words::speaker(PairRole::Instructor);
        let message = message_to(PairRole::Worker, &by, words::cut(&instruction));
        self.tell(message, Stage::Instructing)
    }

    /// Returns the report of the worker's answer or failure for the instructor.
    fn report(
        &mut self,
        entry: Option<&Entry>,
        worker_said: String,
        shown: &mut Vec<SessionEvent>,
    ) -> (String, Option<AgentError>) {
        let answer = self.answer.take();
        match entry.map(|entry| &entry.body) {
            Some(Body::Failed(failed)) => {
                let kind = FailureKind::of_name(&failed.kind);
                let error = AgentError::new(kind, failed.message.clone());
                show(PairEvent::WorkerFailed(error.clone()), shown);
                let said = answer.unwrap_or(worker_said);
                (words::worker_failed(&error, &said), Some(error))
            }
            Some(Body::Message(message)) => {
                let said = answer.unwrap_or_else(|| message.content.clone());
                (words::worker_says(&said), None)
            }
            _ => (words::worker_says(&answer.unwrap_or_default()), None),
        }
    }

    /// Returns the message to an agent whose previous answer was cut off, which says so.
    fn take_up(&mut self, role: PairRole, view: &View<'_>) -> Option<&'static str> {
        let fresh = std::mem::take(&mut self.fresh);
        match role {
            PairRole::Worker => (!fresh).then_some(words::TAKE_UP),
            PairRole::Instructor => {
                let context = view.contexts.get(&Some(role))?;
                let newest = context.messages().iter().rev();
                let is_reply = |said: &&ContextMessage| said.words.role != Role::User;
                let reply: Vec<&ContextMessage> = newest.take_while(is_reply).collect();
                let used_tools = reply.iter().any(|said| said.words.role == Role::Tool);
                match used_tools {
                    true => Some(words::REPLY_AFTER_TOOLS),
                    false => (!reply.is_empty()).then_some(words::REPLY_AGAIN),
                }
            }
        }
    }

    fn ask(&mut self, role: PairRole, view: &View<'_>) -> Effect {
        let (agent, system, model) = match role {
            PairRole::Instructor => (&self.instructor, self.system.as_str(), None),
            PairRole::Worker => {
                let reply = pair(view).and_then(|pair| pair.last_reply.as_ref());
                let model = reply.and_then(|reply| reply.worker_model.clone());
                (&self.worker, words::WORKER, model)
            }
        };
        let context = view.contexts.get(&Some(role));
        let newest = context.and_then(|context| context.messages().last());
        let newest = newest.map(ContextMessage::given);
        let part = Part {
            system: system.to_owned(),
            from: newest.map_or_else(String::new, |words| words.speaker.clone()),
            words: newest.map_or_else(String::new, |words| words.content.clone()),
            next: Vec::new(),
            role: Some(role),
        };
        let ask = Ask {
            agent: Ok(agent.agent.clone()),
            other_model: model.map(|model| (model, agent.with_model.clone())),
            speaker: words::speaker(role),
            model: None,
            thread: Some(role),
            prompt: None,
            part: Some(part),
            access: Some(agent.access.clone()),
            compact_at: agent.compact_at,
        };
        self.stage = Stage::Asking(role);
        Effect::Ask(Box::new(ask))
    }

    fn answered(
        &mut self,
        role: PairRole,
        mut answered: Answered,
        view: &View<'_>,
        shown: &mut Vec<SessionEvent>,
    ) -> Effect {
        self.answer = answered.said.pop().map(|said| said.message.content);
        match answered.end {
            TurnEnd::Answered => {
                if role == PairRole::Instructor {
                    show(PairEvent::Round(self.progress(view)), shown);
                }
                self.follow(view, shown)
            }
            TurnEnd::Cancelled => self.pause(Pause::Stopped(role), view),
            TurnEnd::Refused => self.pause(Pause::Refused, view),
            TurnEnd::Failed(error) if role == PairRole::Instructor => {
                shown.push(SessionEvent::Failed {
                    speaker: words::speaker(role),
                    error: error.clone(),
                });
                self.pause(Pause::Failed(error), view)
            }
            // A worker's failure is reported to the instructor.
            TurnEnd::Failed(_) => self.follow(view, shown),
        }
    }
}

/// Returns the state of the pair, or `None` before the first entries.
pub fn pair<'a>(view: &View<'a>) -> Option<&'a Pair> {
    view.meta?.pair.as_deref()
}

fn show(event: PairEvent, shown: &mut Vec<SessionEvent>) {
    shown.push(SessionEvent::Pair { event });
}

fn message_to(role: PairRole, by: &Speaker, words: String) -> Message {
    Message {
        thread: Some(role.name().to_owned()),
        ..plain(by, Role::User, words)
    }
}
