//! Asking the agent: what it is given, and hearing it out.

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

/// How often a running answer is looked at for text that is worth keeping.
const TICK: Duration = Duration::from_millis(250);

/// How often what is too long for an agent is summed up or shortened before that is given up.
const SHORTER: usize = 6;

/// What was heard of an answer, as far as asking is concerned.
#[derive(Default)]
struct Heard {
    text: String,
    usage: Option<Usage>,
    anything: bool,
}

impl Runner {
    /// Asks the agent. If it says that the talk is too long, once more with the older part summed up.
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
            // Its own session is as long as before, so that it begins another.
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
            // Programs print their keys, and an error is shown before it is cleaned for the log.
            error.message = redact(&error.message).text.into_owned();
        }
        let now = self.writer.sessions().clock().now();
        let mut effects = self.chat.step(Event::Ended(result, now));
        if memo.is_some()
            && let Some(Effect::Save(bodies)) = effects.first()
        {
            // Saved here and not by the caller, so that what goes back with the calls finds them.
            let bodies = bodies.clone();
            let followed = self.save(bodies, frontend).await;
            effects.splice(..1, followed);
            if let Some(calls) = self.turn.iter_mut().rfind(|words| !words.calls.is_empty()) {
                calls.memo = memo;
            }
        }
        effects
    }

    /// What is asked in half the room, where nothing is left to be summed up: a single message may be longer
    /// than a model can read. Among several, whoever gives the brief sums up first.
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

    /// Shows once what a user should know about the agent under the present policy.
    fn tell_notices(&mut self, frontend: &mut dyn Frontend) {
        let role = self
            .prompt_override
            .as_ref()
            .and_then(|prompt_override| prompt_override.part.role);
        let approval = match role {
            // That it only looks is what an instructor is for.
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
        // The floor goes with the answer: when both are gone, everything has been heard.
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
                    // What keeps nothing can be gone on with nowhere.
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
                    // Nothing follows from it but that it is saved: the agent is still speaking.
                    Effect::Save(bodies) => drop(self.save(bodies, frontend).await),
                    Effect::Ask | Effect::Use(_) | Effect::TurnOver(_) => {}
                }
            }
        }
    }

    /// Says that another model answers than before, where that is known only now.
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
                // Nothing is done that is not in the log first.
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

    /// The tools that the agent may ask for.
    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        match (&self.options.tools, self.agent.tools()) {
            (Some(tools), ToolSide::Ours) if self.options.rules.mode() != Approval::None => {
                tools.specs()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the agent is to keep nothing: what keeps nothing can be gone on with nowhere, and who is
    /// given all it needs each time has no use for a session of its own.
    fn keeps_nothing(&self) -> bool {
        self.options.ephemeral || self.prompt_override.is_some()
    }

    /// The marker of what is started for the agent. One that is reached without a program starts none; the
    /// tools that it calls for are marked on their own.
    pub(super) fn agent_marker(&self) -> String {
        match self.agent.tools() {
            ToolSide::Ours => {
                let unique = self.writer.sessions().clock().entry_id();
                format!("{}{unique}", marker_prefix(self.writer.id()))
            }
            ToolSide::Its | ToolSide::Nobody => self.marker(),
        }
    }

    /// A name that nothing else has, and that tells which session and which run of this program started a process.
    pub(super) fn marker(&self) -> String {
        let unique = self.writer.sessions().clock().entry_id().to_string();
        let prefix = marker_prefix(self.writer.id());
        // Without a helper, resuming the session still ends what was left running.
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

    /// The agent's own session, and how much of what it is given it knows from there.
    fn native(&self, messages: &[PromptMessage]) -> Option<NativeSession> {
        let name = self.agent.name();
        let meta = self.writer.meta()?;
        let native = meta.natives.iter().find(|native| native.agent == name)?;
        // What it said before this session of its own began, it said in another.
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

    /// Keeps what was said so far of an answer that is not finished.
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
        // The answer itself is saved when it is finished; a draft that cannot be kept costs only what
        // a crash would take, and the save that follows reports the trouble.
        let _ = self.writer.keep_draft(draft).await;
    }

    /// Counts the tokens of an answer whose provider did not.
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

/// What the names begin with of everything that runs for a session.
pub(super) fn marker_prefix(session: SessionId) -> String {
    format!("{session}:")
}

/// The tokens of a message.
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
                // More is not kept of an answer, so more is not counted.
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

/// A notice, shown.
pub(super) fn tell(frontend: &mut dyn Frontend, notice: Notice) {
    frontend.show(notice.into());
}
