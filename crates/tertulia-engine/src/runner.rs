//! [`Runner`] carries out the effects of [`Chat`]: it saves entries, prompts agents, and runs tools
//! after asking for permission. Only here agents, the log and the frontend meet.

mod act;
mod ask;
mod compact;
mod resume;
mod silence;
mod write;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::chat::{Chat, Effect, Event, TurnEnd};
use super::context::{Context, ContextMessage, prompt_message};
use super::log_writer::LogWriter;
use super::team::names;
use super::withdrawn;
use tertulia_agents::approval::Permissions;
use tertulia_agents::process::guard::Guard;
use tertulia_agents::tool::Toolbox;
use tertulia_agents::{Agent, AgentError, Part, PromptMessage};
use tertulia_core::entry::human;
use tertulia_core::entry::{Body, Entry, Message, Role, Speaker, SpeakerKind};
use tertulia_core::id::{EntryId, Seq};

use super::event::SessionEvent;
use super::frontend::Frontend;
use super::notice::Notice;
pub use compact::Compaction;
pub(super) use compact::{Compacting, Prompt, half_of};

/// Maximum size of an agent's context in bytes; only complete messages are left out.
pub(super) const CONTEXT_BYTES: usize = 768 * 1024;

/// Options of a conversation.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Tool permissions.
    pub rules: Permissions,
    /// Tools for agents that bring none of their own; `None` for no tools.
    pub tools: Option<Toolbox>,
    /// Whether nothing is saved, by agents neither.
    pub ephemeral: bool,
    /// Number of tokens above which a context is compacted.
    pub compact_at: Option<u64>,
    /// Whether the session was left only to switch the model, so that another model is expected.
    pub model_switched: bool,
    /// Ends the session's processes if this program is killed.
    pub guard: Option<Arc<Guard>>,
}

/// An agent and its speaker.
#[derive(Clone, Debug)]
pub struct Participant {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Speaker of its messages.
    pub speaker: Speaker,
}

/// Messages sent instead of the conversation context (team, pair).
#[derive(Clone, Debug, Default)]
pub struct PromptOverride {
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// The agent's part in the team or pair.
    pub part: Part,
    /// Thread of the agent's messages, in a pair.
    pub thread: Option<String>,
    /// Whether messages that are too long for the agent may be cut in the middle.
    pub shorten: bool,
}

/// Tool access of an agent.
#[derive(Clone, Debug, Default)]
pub struct ToolAccess {
    /// Tools for an agent that brings none of its own.
    pub tools: Option<Toolbox>,
    /// Tool permissions.
    pub rules: Permissions,
}

/// Result of prompting an agent.
#[derive(Debug)]
pub struct Answered {
    /// How the turn ended.
    pub end: TurnEnd,
    /// The agent's messages with text, in order, without tool results.
    pub said: Vec<LoggedMessage>,
}

/// A message with its id, in the log or held in memory until it can be saved.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedMessage {
    /// The id.
    pub id: EntryId,
    /// The message before redaction.
    pub message: Message,
    /// Redacted text in the log, if it differs.
    pub logged: Option<String>,
}

/// Output of a turn in a pair, whose contexts `PairConversation` keeps.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Durable entries.
    pub(crate) entries: Vec<Entry>,
    /// The agent's reasoning.
    pub(crate) thoughts: String,
}

impl Written {
    /// Returns the sequence number of the last message.
    pub(crate) fn last_message(&self) -> Option<Seq> {
        let mut messages = self.entries.iter().rev();
        let last = messages.find(|entry| entry.message().is_some());
        last.map(|entry| entry.seq)
    }
}

/// Runs a conversation: saves messages, prompts one agent at a time, and runs its tools.
#[derive(Debug)]
pub struct Runner {
    chat: Chat,
    writer: LogWriter,
    agent: Arc<dyn Agent>,
    options: RunOptions,
    /// Context of a chat's agent, as it is in the log.
    context: Context,
    /// Tokens of the last prompt and answer as the agent reported them, and the context's size in
    /// bytes at that time.
    told: Option<(u64, u64)>,
    /// Tokens of the last prompt and answer before the resume, as the agent reported them.
    reported: Option<u64>,
    /// Index in `context.messages` at which this turn begins.
    turn_start: usize,
    /// Messages of this turn before redaction: the log redacts secrets, the agent gets them.
    turn: Vec<PromptMessage>,
    unsaved: bool,
    /// False if another process had the session open, so that this conversation is a fork.
    alone: bool,
    /// Messages sent instead of the conversation context (team, pair).
    prompt_override: Option<PromptOverride>,
    /// The agent's messages of this answer.
    said: Vec<LoggedMessage>,
    /// Members that can be addressed; empty except in a team.
    members: Vec<names::Member>,
    /// True in a pair: entries are collected in `written` instead of `context`.
    by_brief: bool,
    written: Written,
    /// Stops the current turn, and a write that waits for another process.
    cancel: CancellationToken,
    /// Agents' notices shown so far, so that each is shown once.
    noticed: BTreeSet<String>,
}

impl Runner {
    /// Creates the runner of a new session.
    pub fn begin(writer: LogWriter, agent: Arc<dyn Agent>, options: RunOptions) -> Runner {
        let speaker = Speaker::plain(agent.name(), SpeakerKind::Ai);
        let model = agent.model().map(str::to_owned);
        let mut chat = Chat::new(human(), speaker, model);
        let folder = agent.work_dir().and_then(|folder| folder.to_str());
        chat.works_in(folder.map(str::to_owned));
        Runner {
            chat,
            writer,
            agent,
            options,
            context: Context::default(),
            told: None,
            reported: None,
            turn_start: 0,
            turn: Vec::new(),
            unsaved: false,
            alone: true,
            prompt_override: None,
            said: Vec::new(),
            members: Vec::new(),
            by_brief: false,
            written: Written::default(),
            cancel: CancellationToken::new(),
            noticed: BTreeSet::new(),
        }
    }

    /// Collects entries for `PairConversation` instead of keeping a context.
    #[must_use]
    pub fn by_brief(mut self) -> Runner {
        self.by_brief = true;
        self
    }

    /// Takes the output since the last call.
    pub(crate) fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    /// Saves entries outside of an answer. Returns false if the log refuses them.
    pub async fn put_down(&mut self, bodies: Vec<Body>, frontend: &mut dyn Frontend) -> bool {
        self.write(bodies, frontend).await.is_some()
    }

    /// Returns the log writer.
    pub fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// Lets the agent end its processes.
    pub async fn leave(&self) {
        self.agent.leave().await;
    }

    /// Returns the name of the agent.
    pub fn agent_name(&self) -> &str {
        self.agent.name()
    }

    /// Returns the agent's model, if it is known.
    pub fn model(&self) -> Option<String> {
        self.agent.model().map(str::to_owned)
    }

    /// Runs one turn of a chat: from the user's message until the user has the turn again.
    pub async fn turn(
        &mut self,
        words: String,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        self.turn_start = self.context.messages.len();
        self.turn.clear();
        self.cancel = cancel.clone();
        let effects = self.chat.step(Event::Said(words));
        self.carry_out(effects, frontend, cancel).await
    }

    /// Prompts a participant with the given messages for one answer.
    pub async fn answer(
        &mut self,
        seat: &Participant,
        prompt_override: PromptOverride,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Answered {
        self.agent = seat.agent.clone();
        let model = self.agent.model().map(str::to_owned);
        self.chat.seat(seat.speaker.clone(), model);
        self.prompt_override = Some(prompt_override);
        self.said.clear();
        self.turn.clear();
        self.cancel = cancel.clone();
        let effects = self.chat.step(Event::Asked);
        let end = self.carry_out(effects, frontend, cancel).await;
        self.prompt_override = None;
        let said = std::mem::take(&mut self.said);
        Answered { end, said }
    }

    /// Saves a message, after the entries `before`, without prompting an agent. Returns `None` if
    /// the log refuses it.
    pub async fn hear(
        &mut self,
        before: Vec<Body>,
        message: Message,
        frontend: &mut dyn Frontend,
    ) -> Option<LoggedMessage> {
        let mut bodies = before;
        bodies.push(Body::Message(message));
        self.write(bodies, frontend).await?.into_iter().last()
    }

    /// Records the failure of an agent that could not be prompted at all.
    pub async fn fail(
        &mut self,
        speaker: &Speaker,
        error: &AgentError,
        frontend: &mut dyn Frontend,
    ) {
        self.chat.seat(speaker.clone(), None);
        let now = self.writer.sessions().clock().now();
        let failure = Body::Failed(self.chat.failure(error, now));
        self.write(vec![failure], frontend).await;
    }

    /// Sets the members of a team, and drops the context: a team has its own.
    pub fn seat_members(&mut self, members: Vec<names::Member>) {
        self.members = members;
        self.context = Context::default();
        self.turn_start = 0;
    }

    async fn carry_out(
        &mut self,
        effects: Vec<Effect>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Save(bodies) => effects.extend(self.save(bodies, frontend).await),
                Effect::Ask => effects.extend(self.ask(frontend, cancel).await),
                Effect::Use(call) => effects.extend(self.act(call, frontend, cancel).await),
                Effect::KeepDraft(content) => self.keep_draft(content).await,
                Effect::TurnOver(end) => {
                    if end == TurnEnd::Cancelled {
                        self.withdraw_turn();
                    }
                    // The turn's messages are part of the past from now on.
                    self.turn_start = self.context.messages.len();
                    self.turn.clear();
                    return end;
                }
            }
        }
        TurnEnd::Refused
    }

    /// Withdraws the message of a turn that the user stopped before the agent wrote or did
    /// anything.
    fn withdraw_turn(&mut self) {
        let start = self.turn_start.min(self.context.messages.len());
        let turn = &mut self.context.messages[start..];
        if turn.iter().all(|said| said.words.role == Role::User) {
            let agent = self.agent.name();
            turn.iter_mut()
                .for_each(|said| withdrawn::withdraw(&mut said.words, agent));
        }
    }
}

fn said_in(entry: &Entry) -> Option<ContextMessage> {
    Some(ContextMessage {
        seq: Some(entry.seq),
        words: prompt_message(entry.message()?),
    })
}
