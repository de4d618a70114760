//! One answer of one agent, as a pure state machine: events in, effects out as data.
//!
//! ```text
//! Asked → Ask the agent → Received … Received → Ended → Save the answer → over
//!              ↑                            ↓ with calls
//!              └── Save each result ← Use ← Save the calls
//! ```
//!
//! The order is guaranteed: a call is durable before it is run, its result before the agent sees it,
//! an answer before the next step.

mod partial;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use partial::{Partial, append_within_limit, cut_mark};
use tertulia_agents::{AgentError, AgentEvent, FailureKind, Outcome};
use tertulia_core::entry::plain;
use tertulia_core::entry::{
    Body, Failed, Linked, MESSAGE_LIMIT, Message, Role, Speaker, SpeakerKind, ToolCall,
    ToolOutcome, Usage,
};

pub use partial::PartialAnswer;

/// Interval at which a draft of a partial answer is saved: how long text that was shown may be
/// without one.
const DRAFT_INTERVAL: SignedDuration = SignedDuration::from_millis(700);
/// Maximum number of tool rounds in one turn: more of them are taken for a loop.
const ROUNDS: u32 = 200;
/// Result of a call whose result never came.
pub const INTERRUPTED: &str = "[interrupted: the tool did not finish]";
/// Result of a call that was not begun.
const NOT_RUN: &str = "[interrupted: the tool was not run]";

/// Result of a call whose arguments are larger than a message may be.
const TOO_LONG: &str = "[not run: the arguments are longer than 1 MB; do it in smaller pieces]";

/// The state machine.
#[derive(Debug)]
pub struct Answer {
    agent: Speaker,
    model: Option<String>,
    /// Id of the agent's own session, according to the log.
    native: Option<String>,
    /// Usage of the messages that a copy of the program's own session begins with.
    inherited: Option<Usage>,
    /// Folder in which a new session of the agent's own would begin.
    work_dir: Option<String>,
    phase: Phase,
    /// Number of tool rounds in this turn.
    rounds: u32,
}

#[derive(Debug)]
enum Phase {
    /// The agent is not prompted.
    Idle,
    /// The agent is answering.
    Answering(Partial),
    /// Calls, or the result of one, are being saved; these are still to be run.
    Calling(VecDeque<ToolCall>),
    /// A call is running; these follow.
    Using(VecDeque<ToolCall>),
    /// The answer is being saved.
    Closing(TurnEnd),
}

/// An input of the state machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The agent is to answer the last message of the log.
    Asked,
    /// The entries are saved, or are held in memory because they cannot be saved.
    Saved,
    /// The entries were refused: they are not valid in the log.
    Refused,
    /// The agent sent an event.
    Received(AgentEvent, Timestamp),
    /// Time has passed.
    Tick(Timestamp),
    /// The agent has ended.
    Ended(Result<Outcome, AgentError>, Timestamp),
    /// A tool has run, or was denied: this is the result for the agent.
    Used {
        /// The call.
        call: ToolCall,
        /// Output of the tool.
        output: String,
        /// Whether the tool succeeded.
        ok: bool,
    },
    /// The tool was stopped.
    Stopped(ToolCall, Timestamp),
}

/// An output of the state machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Save these entries durably, then send [`Event::Saved`].
    Save(Vec<Body>),
    /// Prompt the agent.
    Ask,
    /// Run a tool, if it is allowed.
    Use(ToolCall),
    /// Save the unfinished answer as a draft.
    KeepDraft(PartialAnswer),
    /// The answer has ended.
    TurnOver(TurnEnd),
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// With an answer.
    Answered,
    /// The agent was stopped.
    Cancelled,
    /// The agent failed.
    Failed(AgentError),
    /// The log did not accept an entry.
    Refused,
}

impl Answer {
    /// Creates the machine of an agent that is not prompted yet. `native` is the agent's own
    /// session according to the log, `work_dir` the folder in which a new one would begin.
    pub fn new(
        agent: Speaker,
        model: Option<String>,
        native: Option<String>,
        work_dir: Option<String>,
    ) -> Answer {
        Answer {
            agent,
            model,
            native,
            inherited: None,
            work_dir,
            phase: Phase::Idle,
            rounds: 0,
        }
    }

    /// Sets the usage of the imported messages that a copy of the agent's own session begins with.
    pub fn with_copy_of(self, inherited: Option<Usage>) -> Answer {
        Answer { inherited, ..self }
    }

    /// Sets the model that answers, if it was not known from the start.
    pub fn answered_by(&mut self, model: &str) {
        self.model = Some(model.to_owned());
    }

    /// The model that answers, if it is known.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The speaker that answers.
    pub fn agent(&self) -> &Speaker {
        &self.agent
    }

    /// Processes an event. An event that does not fit the phase changes nothing.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        match (std::mem::replace(&mut self.phase, Phase::Idle), event) {
            (Phase::Idle, Event::Asked) => {
                self.rounds = 0;
                self.ask()
            }
            (Phase::Closing(_) | Phase::Calling(_), Event::Refused) => {
                vec![Effect::TurnOver(TurnEnd::Refused)]
            }
            (Phase::Answering(answer), Event::Received(received, at)) => {
                self.receive(answer, received, at)
            }
            (Phase::Answering(answer), Event::Tick(at)) => self.save_draft_if_due(answer, at),
            (Phase::Answering(answer), Event::Ended(Ok(Outcome::Calls { calls, .. }), at))
                if !calls.is_empty() =>
            {
                self.call(answer, calls, at)
            }
            (Phase::Answering(answer), Event::Ended(result, at)) => self.close(answer, result, at),
            (Phase::Calling(mut calls), Event::Saved) => match calls.pop_front() {
                None => self.ask(),
                Some(call) => {
                    self.phase = Phase::Using(calls);
                    vec![Effect::Use(call)]
                }
            },
            (Phase::Using(calls), Event::Used { call, output, ok }) => {
                self.phase = Phase::Calling(calls);
                let outcome = ToolOutcome::of(&output, ok);
                vec![Effect::Save(vec![result_of(&call, &output, outcome)])]
            }
            (Phase::Using(calls), Event::Stopped(call, at)) => {
                self.phase = Phase::Closing(TurnEnd::Cancelled);
                let interrupted = ToolOutcome::Interrupted;
                let mut results = vec![result_of(&call, INTERRUPTED, interrupted)];
                results.extend(
                    calls
                        .iter()
                        .map(|call| result_of(call, NOT_RUN, interrupted)),
                );
                let stopped = self.failure(&AgentError::cancelled(), at);
                results.push(Body::Failed(stopped));
                vec![Effect::Save(results)]
            }
            (Phase::Closing(end), Event::Saved) => vec![Effect::TurnOver(end)],
            (phase, _) => {
                self.phase = phase;
                Vec::new()
            }
        }
    }

    fn ask(&mut self) -> Vec<Effect> {
        self.phase = Phase::Answering(Partial {
            acted: self.rounds > 0,
            ..Partial::default()
        });
        vec![Effect::Ask]
    }

    fn receive(&mut self, mut answer: Partial, received: AgentEvent, at: Timestamp) -> Vec<Effect> {
        let bodies = match received {
            AgentEvent::ToolStarted(call) => {
                answer.acted = true;
                answer.open.push(call.clone());
                answer.parted = true;
                let said = answer.take_said();
                vec![self.spoken(said, vec![call], None, false)]
            }
            AgentEvent::ToolCompleted { id, output, ok } => {
                let started = answer.open.iter().position(|call| call.id == id);
                // A result without its call is dropped.
                started.map_or(Vec::new(), |at| {
                    let outcome = ToolOutcome::of(&output, ok);
                    vec![result_of(&answer.open.remove(at), &output, outcome)]
                })
            }
            AgentEvent::Session(native) if self.native.as_ref() != Some(&native) => {
                self.native = Some(native.clone());
                let agent = self.agent.name.clone();
                let cwd = self.work_dir.clone();
                let inherited = self.inherited.take();
                vec![Body::Linked(Linked {
                    agent,
                    native,
                    cwd,
                    inherited,
                })]
            }
            AgentEvent::Usage(usage) => {
                answer.usage = Some(usage);
                Vec::new()
            }
            AgentEvent::Requests(requests) => {
                answer.requests = requests;
                Vec::new()
            }
            AgentEvent::Model(model) => {
                self.model = Some(model);
                Vec::new()
            }
            AgentEvent::Text(text) => {
                answer.write(&text, at);
                Vec::new()
            }
            AgentEvent::Reasoning(text) => {
                answer.think(&text, at);
                Vec::new()
            }
            _ => Vec::new(),
        };
        let mut effects = self.save_draft_if_due(answer, at);
        if !bodies.is_empty() {
            effects.push(Effect::Save(bodies));
        }
        effects
    }

    fn save_draft_if_due(&mut self, mut answer: Partial, now: Timestamp) -> Vec<Effect> {
        let due = answer
            .undrafted_since
            .is_some_and(|since| now.duration_since(since) >= DRAFT_INTERVAL);
        let effects = if due {
            answer.undrafted_since = None;
            vec![Effect::KeepDraft(PartialAnswer {
                text: answer.text.text.clone(),
                reasoning: answer.reasoning.text.clone(),
            })]
        } else {
            Vec::new()
        };
        self.phase = Phase::Answering(answer);
        effects
    }

    fn call(&mut self, mut answer: Partial, calls: Vec<ToolCall>, at: Timestamp) -> Vec<Effect> {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            let error = AgentError::new(
                FailureKind::Failed,
                format!(
                    "{} called for tools {ROUNDS} times without an answer",
                    self.agent.display_name
                ),
            );
            return self.close(answer, Err(error), at);
        }
        let said = answer.take_said();
        let (calls, refused): (Vec<ToolCall>, Vec<ToolCall>) = calls
            .into_iter()
            .partition(|call| size(call) <= MESSAGE_LIMIT);
        let refused: Vec<ToolCall> = refused.into_iter().map(emptied).collect();
        let all = calls.iter().chain(&refused).cloned().collect();
        let mut bodies = vec![self.spoken(said, all, answer.usage, false)];
        let failed = ToolOutcome::Failed;
        bodies.extend(refused.iter().map(|call| result_of(call, TOO_LONG, failed)));
        self.phase = Phase::Calling(calls.into());
        vec![Effect::Save(bodies)]
    }

    fn close(
        &mut self,
        mut answer: Partial,
        result: Result<Outcome, AgentError>,
        at: Timestamp,
    ) -> Vec<Effect> {
        let silent = answer.text.text.is_empty();
        let result = match result {
            Ok(_) if silent && !answer.acted => Err(AgentError::new(
                FailureKind::Failed,
                format!("{} ended without an answer", self.agent.display_name),
            )),
            other => other,
        };
        let mut bodies: Vec<Body> = answer
            .open
            .drain(..)
            .map(|call| result_of(&call, INTERRUPTED, ToolOutcome::Interrupted))
            .collect();
        if silent && result.is_err() {
            bodies.extend(answer.thought());
        } else {
            let said = answer.take_said();
            let mut spoken = self.spoken(said, Vec::new(), answer.usage, result.is_err());
            if let Body::Message(message) = &mut spoken
                && message.usage.is_some()
            {
                message.requests = std::mem::take(&mut answer.requests);
            }
            bodies.push(spoken);
        }
        let end = match result {
            Ok(_) => TurnEnd::Answered,
            Err(error) if error.kind == FailureKind::Cancelled => {
                if silent {
                    bodies.push(Body::Failed(Failed {
                        withdrawn: !answer.acted,
                        ..self.failure(&error, at)
                    }));
                }
                TurnEnd::Cancelled
            }
            Err(error) => {
                bodies.push(Body::Failed(self.failure(&error, at)));
                TurnEnd::Failed(error)
            }
        };
        self.phase = Phase::Closing(end);
        vec![Effect::Save(bodies)]
    }

    fn spoken(
        &self,
        said: PartialAnswer,
        tool_calls: Vec<ToolCall>,
        usage: Option<Usage>,
        interrupted: bool,
    ) -> Body {
        Body::Message(Message {
            tool_calls,
            usage,
            model: self.model.clone(),
            interrupted,
            reasoning: Some(said.reasoning).filter(|text| !text.trim().is_empty()),
            ..plain(&self.agent, Role::Assistant, said.text)
        })
    }

    fn failure(&self, error: &AgentError, at: Timestamp) -> Failed {
        failure(&self.agent, error, at)
    }
}

/// Creates the entry of an agent's failure.
pub fn failure(agent: &Speaker, error: &AgentError, at: Timestamp) -> Failed {
    let retry_at = error
        .retry_after
        .and_then(|wait| SignedDuration::try_from(wait).ok())
        .and_then(|wait| at.checked_add(wait).ok());
    Failed {
        agent: agent.name.clone(),
        kind: error.kind.name().to_owned(),
        message: error.message.clone(),
        retry_at,
        withdrawn: false,
    }
}

/// Size of a call's arguments in bytes.
fn size(call: &ToolCall) -> usize {
    call.arguments.to_string().len()
}

/// Removes the arguments of a call: the log holds no more than a message may hold.
fn emptied(call: ToolCall) -> ToolCall {
    ToolCall {
        arguments: serde_json::json!({}),
        ..call
    }
}

/// Creates the message of a tool's result.
pub fn result_of(call: &ToolCall, output: &str, outcome: ToolOutcome) -> Body {
    let mut text = String::new();
    let cut = append_within_limit(&mut text, output);
    if cut > 0 {
        text.push_str(&cut_mark(cut));
    }
    let tool = Speaker::plain(&call.name, SpeakerKind::Tool);
    Body::Message(Message {
        tool_call_id: Some(call.id.clone()),
        interrupted: outcome == ToolOutcome::Interrupted,
        outcome: Some(outcome).filter(|outcome| *outcome != ToolOutcome::Interrupted),
        ..plain(&tool, Role::Tool, text)
    })
}
