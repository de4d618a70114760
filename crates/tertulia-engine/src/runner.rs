//! Carries effects out: the only room where an agent meets a store, and tools meet a person.

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

/// How much of the talk an agent is given at most, in bytes, cut at whole messages.
pub(super) const CONTEXT_BYTES: usize = 768 * 1024;

/// What a talk is led by.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Which tools may be used unasked.
    pub rules: Permissions,
    /// The tools for agents that bring none; without it they have none.
    pub tools: Option<Toolbox>,
    /// Whether nothing of it is to be kept, by agents neither.
    pub ephemeral: bool,
    /// How many tokens an agent may be given before the older part is summed up.
    pub compact_at: Option<u64>,
    /// Whether the session was left only to switch the model, so that another model is expected.
    pub model_switched: bool,
    /// Ends what runs for the session if this program is killed.
    pub guard: Option<Arc<Guard>>,
}

/// Who answers, and as whom.
#[derive(Clone, Debug)]
pub struct Participant {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// As whom it speaks.
    pub speaker: Speaker,
}

/// What whoever is asked is given, where that is not the talk as it was said.
#[derive(Clone, Debug, Default)]
pub struct PromptOverride {
    /// The words.
    pub messages: Vec<PromptMessage>,
    /// The part that it plays.
    pub part: Part,
    /// The thread in which it speaks, where there are several.
    pub thread: Option<String>,
    /// Whether messages may lose their middles if they are too long for the agent.
    pub shorten: bool,
}

/// What whoever is asked may use.
#[derive(Clone, Debug, Default)]
pub struct ToolAccess {
    /// The tools, for agents that bring none.
    pub tools: Option<Toolbox>,
    /// Which of them may be used unasked.
    pub rules: Permissions,
}

/// What came of asking somebody.
#[derive(Debug)]
pub struct Answered {
    /// How it ended.
    pub end: TurnEnd,
    /// What was said, in this order; tools and their results are not among it.
    pub said: Vec<LoggedMessage>,
}

/// A message with its id, be it in the log or held until it can be.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedMessage {
    /// The id.
    pub id: EntryId,
    /// The message, as it was said.
    pub message: Message,
    /// What the log has of its words, where they held a secret.
    pub logged: Option<String>,
}

/// What was written for a pair, whose agents' contexts are kept elsewhere.
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

/// A talk: words are made durable, agents are asked one at a time, and what they do is carried out.
#[derive(Debug)]
pub struct Runner {
    chat: Chat,
    writer: LogWriter,
    agent: Arc<dyn Agent>,
    options: RunOptions,
    /// What the agent of a chat remembers, as the log has it.
    context: Context,
    /// What the agent was last given and said, in tokens as it told them, and in bytes as they were then.
    told: Option<(u64, u64)>,
    /// The tokens of the last answer before this conversation was resumed, as the agent told them.
    reported: Option<u64>,
    /// Where this turn begins in it.
    turn_start: usize,
    /// This turn as it was said: the log has it without secrets, its agent gets it whole.
    turn: Vec<PromptMessage>,
    unsaved: bool,
    /// Whether no other program is in the session that this talk continues.
    alone: bool,
    /// What whoever is asked now is given instead of the talk.
    prompt_override: Option<PromptOverride>,
    /// What was said in this answer.
    said: Vec<LoggedMessage>,
    /// Who can be addressed.
    members: Vec<names::Member>,
    /// Whether everybody is given a brief: then nothing is remembered here, but collected in
    /// `written`.
    by_brief: bool,
    written: Written,
    /// Stops the turn that runs: a write does not wait for another program any longer then.
    cancel: CancellationToken,
    /// What agents' notices said so far, so that each is said once.
    noticed: BTreeSet<String>,
}

impl Runner {
    /// A talk that begins.
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

    /// The same talk, in which everybody is given a brief.
    #[must_use]
    pub fn by_brief(mut self) -> Runner {
        self.by_brief = true;
        self
    }

    /// Takes what was written since the last call.
    pub(crate) fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    /// Puts down something that nobody said. Whether it may be in the log.
    pub async fn put_down(&mut self, bodies: Vec<Body>, frontend: &mut dyn Frontend) -> bool {
        self.write(bodies, frontend).await.is_some()
    }

    /// The pen.
    pub fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// Lets the agent end what it has running, in its own way.
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

    /// One turn: from the human's words until the human has the floor again.
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

    /// One answer of whoever has this seat, to what they are given.
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

    /// Somebody says something that nobody is asked to answer yet. Nothing if it may not be in the log.
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

    /// Makes it part of the log that somebody could not be asked at all.
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

    /// Takes in who can be addressed.
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
                    // Nothing of it is more recent than the rest any more.
                    self.turn_start = self.context.messages.len();
                    self.turn.clear();
                    return end;
                }
            }
        }
        TurnEnd::Refused
    }

    /// Withdraws the words of a turn that a person stopped before the agent said or did anything.
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
