//! Prompts the agent: builds the request, and processes events until the answer ends.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::silence::{self, Silence};
use super::{CONTEXT_BYTES, Compaction, Frontend, Notice, Runner, SessionEvent};
use crate::chat::{Effect, Event};
use crate::context::{context, shortened, total_weight};
use crate::tokens;
use tertulia_agents::approval::Approval;
use tertulia_agents::process::guard;
use tertulia_agents::{
    AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, NativeSession, Outcome,
    PromptMessage, ToolSide, ToolSpec,
};
use tertulia_core::entry::{MESSAGE_LIMIT, Role, Usage};
use tertulia_core::id::SessionId;
use tertulia_core::pair::PairRole;
use tertulia_core::redact::redact;
use tertulia_store::Draft;

/// Interval of checks for a draft to save and for silence of the agent.
const TICK: Duration = Duration::from_millis(250);

/// Maximum number of attempts to compact or shorten a request that is too long for the agent.
const SHORTER: usize = 6;

/// The part of an answer's events that `ask` needs.
#[derive(Default)]
struct Heard {
    text: String,
    usage: Option<Usage>,
    anything: bool,
}

impl Runner {
    /// Prompts the agent. While it rejects the request as too long, compacts the context or
    /// shortens messages and prompts again.
    pub(super) async fn ask(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Vec<Effect> {
        self.compact_if_due(frontend, cancel).await;
        self.tell_notices(frontend);
        let question = self.question();
        let mut room = total_weight(&question.messages);
        let (mut result, mut heard) = self.hear_out(question, frontend, cancel).await;
        for _ in 0..SHORTER {
            let too_long = matches!(&result, Err(error) if error.kind == FailureKind::TooLong);
            if !too_long || heard.anything || cancel.is_cancelled() {
                break;
            }
            let compacted = self.compact(frontend, cancel).await == Compaction::Done;
            // The agent's own session is as long as before, so the agent begins another.
            let mut question = AgentRequest {
                native: None,
                ..self.question()
            };
            if !compacted {
                let Some(shorter) = self.shorter(&question, &mut room) else {
                    break;
                };
                tell(frontend, Notice::Shortened);
                question.messages = shorter;
            }
            (result, heard) = self.hear_out(question, frontend, cancel).await;
        }
        match heard.usage {
            Some(usage) => self.told = Some((usage.input + usage.output, self.weight())),
            None if result.is_ok() && self.agent.tools() == ToolSide::Ours => {
                self.estimate(&heard, frontend).await;
            }
            None => {}
        }
        if let Some(model) = self.agent.model() {
            self.chat.answered_by(model);
        }
        let memo = match &mut result {
            Ok(Outcome::Calls { memo, .. }) => memo.take(),
            _ => None,
        };
        if let Err(error) = &mut result {
            // Programs print their keys, and an error is shown before the log redacts it.
            error.message = redact(&error.message).text.into_owned();
        }
        let now = self.writer.sessions().clock().now();
        let mut effects = self.chat.step(Event::Ended(result, now));
        if memo.is_some()
            && let Some(Effect::Save(bodies)) = effects.first()
        {
            // Saved here and not by the caller, because the memo is attached to the saved calls.
            let bodies = bodies.clone();
            let followed = self.save(bodies, frontend).await;
            effects.splice(..1, followed);
            if let Some(calls) = self.turn.iter_mut().rfind(|words| !words.calls.is_empty()) {
                calls.memo = memo;
            }
        }
        effects
    }

    /// Returns the messages of a request shortened to half of `room`, for contexts with nothing
    /// left to compact: a single message may be longer than a model can read. Returns `None` if
    /// the prompt override forbids it: a pair compacts first.
    fn shorter(&self, question: &AgentRequest, room: &mut usize) -> Option<Vec<PromptMessage>> {
        if self
            .prompt_override
            .as_ref()
            .is_some_and(|prompt_override| !prompt_override.shorten)
        {
            return None;
        }
        *room = total_weight(&question.messages).min(*room) / 2;
        shortened(question.messages.clone(), *room)
    }

    /// Shows the agent's notices under the current tool policy, each once.
    fn tell_notices(&mut self, frontend: &mut dyn Frontend) {
        let role = self
            .prompt_override
            .as_ref()
            .and_then(|prompt_override| prompt_override.part.role);
        let approval = match role {
            // An instructor is meant to only read, so that is not worth a notice.
            Some(PairRole::Instructor) => Approval::All,
            _ => self.options.rules.mode(),
        };
        for notice in self.agent.notices(approval, self.options.ephemeral) {
            if self.noticed.insert(notice.clone()) {
                frontend.show(SessionEvent::agent(AgentEvent::Remark(notice)));
            }
        }
    }

    async fn hear_out(
        &mut self,
        question: AgentRequest,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> (Result<Outcome, AgentError>, Heard) {
        let agent = self.agent.clone();
        let (sink, mut listener) = AgentSink::open(cancel);
        // The sink is dropped with the answer, which closes the channel after the last event.
        let answer = async move {
            let answer = agent.answer(&question, &sink).await;
            drop(sink);
            answer
        };
        tokio::pin!(answer);
        let mut tick = tokio::time::interval(TICK);
        let mut ended: Option<Result<Outcome, AgentError>> = None;
        let mut heard = Heard::default();
        let mut silence = Silence::begin(Instant::now());
        loop {
            let event = tokio::select! {
                biased;
                event = listener.events.recv() => match event {
                    // A session that is not saved cannot be resumed.
                    Some(AgentEvent::Session(_)) if self.keeps_nothing() => continue,
                    Some(event) => {
                        silence.hear(&event, Instant::now());
                        if let AgentEvent::Reasoning(text) = &event
                            && self.by_brief
                            && self.written.thoughts.len() < MESSAGE_LIMIT / 2
                        {
                            self.written.thoughts.push_str(text);
                        }
                        frontend.show(SessionEvent::agent(event.clone()));
                        heard.note(&event);
                        if let AgentEvent::Model(now) = &event {
                            self.compare_model(now, frontend);
                        }
                        Event::Heard(event, self.writer.sessions().clock().now())
                    }
                    None => {
                        let result = match ended.take() {
                            Some(result) => result,
                            None => answer.as_mut().await,
                        };
                        return (result, heard);
                    }
                },
                Some(permission) = listener.permissions.recv() => {
                    let verdict = self.settle(&permission.request, frontend, cancel).await;
                    permission.settle(verdict);
                    silence.end(Instant::now());
                    continue;
                }
                result = answer.as_mut(), if ended.is_none() => {
                    ended = Some(result);
                    continue;
                }
                _ = tick.tick() => {
                    if !cancel.is_cancelled() && silence.is_due(Instant::now()) {
                        let words = silence::words(self.agent.name(), listener.stderr());
                        // Programs print their keys.
                        let words = redact(&words).text.into_owned();
                        frontend.show(SessionEvent::agent(AgentEvent::Remark(words)));
                    }
                    Event::Tick(self.writer.sessions().clock().now())
                }
            };
            for effect in self.chat.step(event) {
                match effect {
                    Effect::KeepDraft(content) => self.keep_draft(content).await,
                    // The effects are dropped: the agent is still answering.
                    Effect::Save(bodies) => drop(self.save(bodies, frontend).await),
                    Effect::Ask | Effect::Use(_) | Effect::TurnOver(_) => {}
                }
            }
        }
    }

    /// Shows a notice if the model differs from the recorded one, for agents that report it late.
    fn compare_model(&self, now: &str, frontend: &mut dyn Frontend) {
        if self.prompt_override.is_some() || self.options.model_switched {
            return;
        }
        let meta = self.writer.meta();
        if let Some(recorded) = meta.and_then(|meta| meta.model.clone())
            && recorded != now
        {
            let now = now.to_owned();
            tell(frontend, Notice::OtherModel { recorded, now });
        }
    }

    fn question(&self) -> AgentRequest {
        let messages = match &self.prompt_override {
            Some(prompt_override) => {
                let given: Vec<PromptMessage> = prompt_override
                    .messages
                    .iter()
                    .chain(&self.turn)
                    .cloned()
                    .collect();
                context(None, &[], &given, CONTEXT_BYTES)
            }
            None => {
                let past =
                    &self.context.messages[..self.turn_start.min(self.context.messages.len())];
                context(
                    self.context.summary.as_ref(),
                    past,
                    &self.turn,
                    CONTEXT_BYTES,
                )
            }
        };
        let total = self.writer.meta().map_or(0, |meta| meta.messages);
        AgentRequest {
            total: total.max(messages.len() as u64),
            native: match self.prompt_override {
                Some(_) => None,
                None => self.native(&messages),
            },
            messages,
            marker: self.agent_marker(),
            tools: self.tool_specs(),
            approval: match self.options.rules.mode() {
                // Nothing runs that is not in the log first.
                Approval::Ask | Approval::All if self.unsaved => Approval::Low,
                mode => mode,
            },
            ephemeral: self.keeps_nothing(),
            part: self
                .prompt_override
                .as_ref()
                .map(|prompt_override| prompt_override.part.clone()),
        }
    }

    /// Returns the tools that the agent may call.
    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        match (&self.options.tools, self.agent.tools()) {
            (Some(tools), ToolSide::Ours) if self.options.rules.mode() != Approval::None => {
                tools.specs()
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if the agent should not save a session of its own: this session is ephemeral,
    /// or each prompt contains all that the agent needs (team, pair).
    fn keeps_nothing(&self) -> bool {
        self.options.ephemeral || self.prompt_override.is_some()
    }

    /// Returns the marker for processes of the agent. Agents that use tertulia's tools start none
    /// themselves, so that the guard need not be started; their tools get markers of their own.
    pub(super) fn agent_marker(&self) -> String {
        match self.agent.tools() {
            ToolSide::Ours => {
                let unique = self.writer.sessions().clock().entry_id();
                format!("{}{unique}", marker_prefix(self.writer.id()))
            }
            ToolSide::Its | ToolSide::Nobody => self.marker(),
        }
    }

    /// Returns a unique marker that shows which session and which run of this program started a
    /// process.
    pub(super) fn marker(&self) -> String {
        let unique = self.writer.sessions().clock().entry_id().to_string();
        let prefix = marker_prefix(self.writer.id());
        // Without the guard's helper, orphaned processes are ended on resume.
        match self
            .options
            .guard
            .as_ref()
            .and_then(|guard| guard.run().ok())
        {
            Some(run) => guard::marker(&prefix, run, &unique),
            None => format!("{prefix}{unique}"),
        }
    }

    /// Returns the agent's own session, and how many of `messages` it contains already.
    fn native(&self, messages: &[PromptMessage]) -> Option<NativeSession> {
        let name = self.agent.name();
        let meta = self.writer.meta()?;
        let native = meta.natives.iter().find(|native| native.agent == name)?;
        // Messages from before this native session began belong to an earlier one.
        let spoke_there = self.context.messages.iter().any(|said| {
            said.words.role == Role::Assistant
                && said.words.speaker == name
                && said.seq.is_none_or(|seq| seq > native.since)
        });
        let last = messages
            .iter()
            .rposition(|words| words.role == Role::Assistant && words.speaker == name);
        let known = last.filter(|_| spoke_there).map_or(0, |last| {
            let results = messages[last + 1..]
                .iter()
                .take_while(|words| words.role == Role::Tool);
            last + 1 + results.count()
        });
        // Logs of earlier versions have only the folder in which the session itself began.
        let cwd = native.cwd.as_ref().or(meta.cwd.as_ref());
        Some(NativeSession {
            id: native.id.clone(),
            cwd: cwd.map(PathBuf::from),
            known,
            spent: native.spent,
        })
    }

    /// Saves the text of an unfinished answer as a draft.
    pub(super) async fn keep_draft(&mut self, content: String) {
        let Some(meta) = self.writer.meta() else {
            return;
        };
        let draft = Draft {
            after: meta.head,
            id: self.writer.sessions().clock().entry_id(),
            at: self.writer.sessions().clock().now(),
            speaker: self.chat.agent().clone(),
            model: self.agent.model().map(str::to_owned),
            thread: self
                .prompt_override
                .as_ref()
                .and_then(|prompt_override| prompt_override.thread.clone()),
            content,
        };
        // The finished answer is saved anyway: a missing draft matters only after a crash, and the
        // next save reports the error.
        let _ = self.writer.keep_draft(draft).await;
    }

    /// Estimates the usage of an answer whose provider did not report it.
    async fn estimate(&mut self, heard: &Heard, frontend: &mut dyn Frontend) {
        let asked = self.question().messages;
        let said = heard.text.clone();
        let counted = tokio::task::spawn_blocking(move || Usage {
            input: asked.iter().map(tokens_of).sum(),
            output: tokens::count(&said),
            estimated: true,
        });
        let Ok(usage) = counted.await else { return };
        let event = AgentEvent::Usage(usage);
        frontend.show(SessionEvent::agent(event.clone()));
        let now = self.writer.sessions().clock().now();
        self.chat.step(Event::Heard(event, now));
    }
}

/// Returns the prefix of all process markers of a session.
pub(super) fn marker_prefix(session: SessionId) -> String {
    format!("{session}:")
}

/// Counts the tokens of a message and its tool calls.
pub(crate) fn tokens_of(words: &PromptMessage) -> u64 {
    let calls: u64 = words
        .calls
        .iter()
        .map(|call| tokens::count(&call.arguments.to_string()))
        .sum();
    tokens::count(&words.content) + calls
}

impl Heard {
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

/// Shows a notice.
pub(super) fn tell(frontend: &mut dyn Frontend, notice: Notice) {
    frontend.show(notice.into());
}
