//! Prompts an agent: builds the request, processes events until the answer ends, and carries out the
//! effects of [`Answer`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::silence::{self, Silence};
use super::{Compaction, Conversation};
use crate::answer::{Answer, Effect, Event, PartialAnswer, TurnEnd, failure};
use crate::context::{Context, Reported, shortened, total_weight};
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::notice::Notice;
use crate::policy::{Answered, Ask, LoggedMessage};
use crate::setup::ToolAccess;
use crate::tokens;
use tertulia_agents::approval::Approval;
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, PromptMessage,
    ToolSide,
};
use tertulia_core::entry::{Body, MESSAGE_LIMIT, SpeakerKind, Usage};
use tertulia_core::pair::PairRole;
use tertulia_core::redact::redact;
use tertulia_store::Draft;

/// Interval of checks for a draft to save and for silence of the agent.
const TICK: Duration = Duration::from_millis(250);

/// Maximum number of attempts to compact or shorten a request that is too long for the agent.
const SHORTER: usize = 6;

/// The part of an answer's events that `prompt` needs.
#[derive(Default)]
struct Received {
    text: String,
    usage: Option<Usage>,
    anything: bool,
}

/// An agent that is prompted, until its answer has ended.
pub(super) struct Asking<'a> {
    pub(super) conversation: &'a mut Conversation,
    pub(super) frontend: &'a mut dyn Frontend,
    pub(super) cancel: CancellationToken,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) access: ToolAccess,
    pub(super) ask: Ask,
    pub(super) answer: Answer,
    /// The agent's messages with text.
    said: Vec<LoggedMessage>,
}

impl Conversation {
    /// Prompts an agent for one answer, with its tool calls.
    pub(super) async fn ask(&mut self, mut ask: Ask, frontend: &mut dyn Frontend) -> Answered {
        let agent = match ask.other_model.take() {
            Some((model, make)) => self.with_model(&ask, model, &make, frontend).await,
            None => ask.agent.clone(),
        };
        if ask.part.is_some() {
            frontend.show(SessionEvent::Asked {
                speaker: ask.speaker.clone(),
            });
        }
        let agent = match agent {
            Ok(agent) => self.may_work(&*agent, frontend).await.map(|()| agent),
            Err(error) => Err(error),
        };
        match agent {
            Ok(agent) => self.answer(ask, agent, frontend).await,
            Err(error) => {
                let now = self.writer.sessions().clock().now();
                let failed = Body::Failed(failure(&ask.speaker, &error, now));
                self.write(None, vec![failed], frontend).await;
                Answered {
                    end: TurnEnd::Failed(error),
                    said: Vec::new(),
                    model: None,
                }
            }
        }
    }

    async fn answer(
        &mut self,
        mut ask: Ask,
        agent: Arc<dyn Agent>,
        frontend: &mut dyn Frontend,
    ) -> Answered {
        let prompt = ask.prompt.take().map(Context::of_prompt);
        let is_single = prompt.is_some();
        if let Some(prompt) = prompt {
            self.contexts.insert(ask.thread, prompt);
        }
        let context = self.contexts.entry(ask.thread).or_default();
        context.begin_answer();
        let access = ask.access.take().unwrap_or_else(|| ToolAccess {
            tools: self.options.tools.clone(),
            rules: self.options.rules.clone(),
        });
        let meta = self.writer.meta();
        let native = meta.and_then(|meta| {
            let mut natives = meta.natives.iter();
            let native = natives.find(|native| native.agent == agent.name())?;
            Some(native.id.clone())
        });
        let copied = self.options.inherited.as_ref();
        let copied = copied.filter(|copied| native.is_none() && copied.agent == agent.name());
        let inherited = copied.and_then(|_| Some(meta?.tokens));
        let model = agent.model().map(str::to_owned).or(ask.model.take());
        let folder = agent.work_dir().and_then(|folder| folder.to_str());
        let folder = folder.map(str::to_owned);
        let thread = ask.thread;
        let asking = Asking {
            answer: Answer::new(ask.speaker.clone(), model, native, folder).with_copy_of(inherited),
            cancel: self.cancel.clone(),
            conversation: self,
            frontend,
            agent,
            access,
            ask,
            said: Vec::new(),
        };
        let answered = asking.run().await;
        if is_single {
            self.contexts.remove(&thread);
        }
        answered
    }
}

impl Asking<'_> {
    async fn run(mut self) -> Answered {
        let mut effects = VecDeque::from(self.answer.step(Event::Asked));
        let mut end = TurnEnd::Refused;
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Save(bodies) => effects.extend(self.save(bodies).await),
                Effect::Ask => effects.extend(self.prompt().await),
                Effect::Use(call) => effects.extend(self.act(call).await),
                Effect::KeepDraft(partial) => self.keep_draft(partial).await,
                Effect::TurnOver(how) => {
                    end = how;
                    break;
                }
            }
        }
        self.end_background().await;
        Answered {
            end,
            said: self.said,
            model: self.answer.model().map(str::to_owned),
        }
    }

    /// Saves entries and reports the result to [`Answer`]. Returns the effects.
    async fn save(&mut self, bodies: Vec<Body>) -> Vec<Effect> {
        let thread = self.ask.thread;
        let written = self.conversation.write(thread, bodies, self.frontend).await;
        match written {
            None => self.answer.step(Event::Refused),
            Some(messages) => {
                self.said.extend(messages.into_iter().filter(|said| {
                    said.message.speaker.kind == SpeakerKind::Ai && !said.message.content.is_empty()
                }));
                self.answer.step(Event::Saved)
            }
        }
    }

    /// Prompts the agent. While it rejects the request as too long, compacts the context or
    /// shortens messages and prompts again.
    async fn prompt(&mut self) -> Vec<Effect> {
        self.compact_if_due().await;
        self.show_notices();
        self.record_environment().await;
        let request = self.request();
        let mut room = total_weight(&request.messages);
        let (mut result, mut received) = self.listen(request).await;
        for _ in 0..SHORTER {
            let too_long = matches!(&result, Err(error) if error.kind == FailureKind::TooLong);
            if !too_long || received.anything || self.cancel.is_cancelled() {
                break;
            }
            let compacted = self.compact().await == Compaction::Done;
            // The agent's own session is as long as before, so the agent begins another.
            let mut request = AgentRequest {
                native: None,
                ..self.request()
            };
            if !compacted {
                // A single message may be longer than a model can read.
                room = total_weight(&request.messages).min(room) / 2;
                let Some(shorter) = shortened(request.messages, room) else {
                    break;
                };
                self.frontend.show(Notice::Shortened.into());
                request.messages = shorter;
            }
            (result, received) = self.listen(request).await;
        }
        self.count(&received, result.is_ok()).await;
        if let Some(model) = self.agent.model() {
            self.answer.answered_by(model);
        }
        let memo = match &mut result {
            Ok(Outcome::Calls { memo, .. }) => memo.take(),
            _ => None,
        };
        if let Err(error) = &mut result {
            // Programs print their keys, and an error is shown before the log redacts it.
            error.message = redact(&error.message).text.into_owned();
        }
        let mut effects = self.answer.step(Event::Ended(result, self.now()));
        if memo.is_some()
            && let Some(Effect::Save(bodies)) = effects.first()
        {
            // Saved here and not by the caller, because the memo is attached to the saved calls.
            let bodies = bodies.clone();
            let followed = self.save(bodies).await;
            effects.splice(..1, followed);
            self.context().set_memo(memo);
        }
        effects
    }

    /// Records the usage of an answer, or estimates it if the provider did not report it.
    async fn count(&mut self, received: &Received, answered: bool) {
        match received.usage {
            Some(usage) => {
                let context = self.context();
                context.reported = Some(Reported {
                    tokens: usage.input + usage.output,
                    sent: usage.input,
                    weight: Some(context.weight()),
                });
            }
            None if answered && self.agent.tools() == ToolSide::Ours => {
                self.estimate(received).await;
            }
            None => {}
        }
    }

    /// Returns the context of the agent.
    pub(super) fn context(&mut self) -> &mut Context {
        let contexts = &mut self.conversation.contexts;
        contexts.entry(self.ask.thread).or_default()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.conversation.writer.sessions().clock().now()
    }

    /// Shows the agent's notices under the current tool policy, each once.
    fn show_notices(&mut self) {
        let approval = match self.ask.thread {
            // An instructor is meant to only read, so that is not worth a notice.
            Some(PairRole::Instructor) => Approval::All,
            _ if self.is_replay() => Approval::None,
            _ => self.access.rules.mode(),
        };
        let ephemeral = self.conversation.options.ephemeral;
        for notice in self.agent.notices(approval, ephemeral) {
            if self.conversation.noticed.insert(notice.clone()) {
                let notice = AgentEvent::Remark(notice);
                self.frontend.show(SessionEvent::agent(notice));
            }
        }
    }

    /// Sends a request and processes events until the answer ends.
    async fn listen(&mut self, request: AgentRequest) -> (Result<Outcome, AgentError>, Received) {
        let agent = self.agent.clone();
        let (sink, mut listener) = AgentSink::open(&self.cancel);
        // The sink is dropped with the answer, which closes the channel after the last event.
        let answer = async move {
            let answer = agent.answer(&request, &sink).await;
            drop(sink);
            answer
        };
        tokio::pin!(answer);
        let mut tick = tokio::time::interval(TICK);
        let mut ended: Option<Result<Outcome, AgentError>> = None;
        let mut received = Received::default();
        let mut silence = Silence::begin(Instant::now());
        loop {
            let event = tokio::select! {
                biased;
                event = listener.events.recv() => match event {
                    // A session that is not saved cannot be resumed.
                    Some(AgentEvent::Session(_)) if self.keeps_nothing() => continue,
                    Some(event) => {
                        silence.note(&event, Instant::now());
                        self.frontend.show(SessionEvent::agent(event.clone()));
                        received.note(&event);
                        if let AgentEvent::Model(now) = &event {
                            self.compare_model(now);
                        }
                        Event::Received(event, self.now())
                    }
                    None => {
                        let result = match ended.take() {
                            Some(result) => result,
                            None => answer.as_mut().await,
                        };
                        return (result, received);
                    }
                },
                Some(permission) = listener.permissions.recv() => {
                    let verdict = self.settle(&permission.request).await;
                    permission.settle(verdict);
                    silence.end(Instant::now());
                    continue;
                }
                result = answer.as_mut(), if ended.is_none() => {
                    ended = Some(result);
                    continue;
                }
                _ = tick.tick() => {
                    if !self.cancel.is_cancelled() && silence.is_due(Instant::now()) {
                        let words = silence::words(self.agent.name(), listener.stderr());
                        // Programs print their keys.
                        let words = redact(&words).text.into_owned();
                        let silent = AgentEvent::Remark(words);
                        self.frontend.show(SessionEvent::agent(silent));
                    }
                    Event::Tick(self.now())
                }
            };
            for effect in self.answer.step(event) {
                match effect {
                    Effect::KeepDraft(partial) => self.keep_draft(partial).await,
                    // The effects are dropped: the agent is still answering.
                    Effect::Save(bodies) => drop(self.save(bodies).await),
                    Effect::Ask | Effect::Use(_) | Effect::TurnOver(_) => {}
                }
            }
        }
    }

    /// Saves the text of an unfinished answer as a draft.
    async fn keep_draft(&mut self, partial: PartialAnswer) {
        let writer = &self.conversation.writer;
        let Some(meta) = writer.meta() else {
            return;
        };
        let draft = Draft {
            after: meta.head,
            id: writer.sessions().clock().entry_id(),
            at: self.now(),
            speaker: self.answer.agent().clone(),
            model: self.agent.model().map(str::to_owned),
            thread: self.ask.thread.map(|role| role.name().to_owned()),
            content: partial.text,
            reasoning: Some(partial.reasoning).filter(|text| !text.trim().is_empty()),
            sealed: false,
        };
        // The finished answer is saved anyway: a missing draft matters only after a crash, and the
        // next save reports the error.
        let _ = writer.keep_draft(draft).await;
    }

    /// Estimates the usage of an answer whose provider did not report it.
    async fn estimate(&mut self, received: &Received) {
        let AgentRequest {
            messages, system, ..
        } = self.request();
        let said = received.text.clone();
        let counted = tokio::task::spawn_blocking(move || Usage {
            input: messages.iter().map(tokens_of).sum::<u64>()
                + system.as_deref().map_or(0, tokens::count),
            output: tokens::count(&said),
            estimated: true,
            ..Usage::default()
        });
        let Ok(usage) = counted.await else { return };
        let event = AgentEvent::Usage(usage);
        self.frontend.show(SessionEvent::agent(event.clone()));
        self.answer.step(Event::Received(event, self.now()));
    }
}

/// Counts the tokens of a message and its tool calls.
pub(crate) fn tokens_of(words: &PromptMessage) -> u64 {
    let calls: u64 = words
        .calls
        .iter()
        .map(|call| tokens::count(&call.arguments.to_string()))
        .sum();
    let files = words.attachments.iter();
    let files: u64 = files.map(|file| tokens::count(&file.content)).sum();
    tokens::count(&words.content) + calls + files
}

impl Received {
    fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text(text) => {
                self.anything = true;
                // No more of an answer is saved, so no more is counted.
                if self.text.len() < MESSAGE_LIMIT {
                    self.text.push_str(text);
                }
            }
            AgentEvent::Usage(usage) => self.usage = Some(*usage),
            AgentEvent::Reasoning(_) | AgentEvent::ToolStarted(_) => self.anything = true,
            _ => {}
        }
    }
}
