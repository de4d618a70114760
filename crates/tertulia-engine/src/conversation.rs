//! [`Conversation`]: a running conversation of any kind. It carries out the effects of its policy:
//! only here agents, the log and the frontend meet. `ask` prompts an agent and `act` runs its tools,
//! `command` runs shell commands of the user,
//! `write` saves entries, `compact` summarises a context, `resume` opens an existing session;
//! `switch` changes the agent of a chat; `terms` records the tool policy that the user sets; `state` describes a conversation between turns, `turn` the result of a turn.

mod act;
mod ask;
mod command;
mod compact;
mod folder;
mod request;
mod resume;
mod silence;
mod state;
mod switch;
mod terms;
mod turn;
mod write;

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use crate::chat::Chat;
use crate::context::Context;
use crate::error::{ErrorBody, ErrorKind};
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::log_writer::LogWriter;
use crate::pair::policy::PairPolicy;
use crate::pair::{PairRole, Progress};
use crate::policy::{Contexts, Effect, Event, Policy, View};
use crate::prompt::Prompt;
use crate::setup::{Participants, RunOptions};
use crate::team::events::SenderError;
use crate::team::mentions;
use crate::team::names::Member;
use crate::team::policy::Team;
use tertulia_agents::ToolSide;
use tertulia_agents::approval::{Approval, Permissions};
use tertulia_agents::tool::Toolbox;
use tertulia_core::entry::{Body, Kind};

pub use compact::Compaction;
pub use turn::TurnResult;

/// A running conversation.
#[derive(Debug)]
pub struct Conversation {
    writer: LogWriter,
    options: RunOptions,
    contexts: Contexts,
    policy: Policy,
    /// Whether the last write failed.
    unsaved: bool,
    /// Whether the user was told so in this turn.
    told_unsaved: bool,
    /// Stops the current turn, and a write that waits for another process.
    cancel: CancellationToken,
    /// Whether the agent or the model was switched, so that another model is expected.
    switched: bool,
    /// Agents' notices shown so far, so that each is shown once.
    noticed: BTreeSet<String>,
    /// The tool policy that the log has.
    recorded_mode: Option<Approval>,
    /// The member as whom the user has chosen to speak, and the one that the log has.
    seat: Option<String>,
    recorded_seat: Option<String>,
}

impl Conversation {
    /// Begins the conversation of a new session.
    pub fn begin(
        writer: LogWriter,
        participants: Participants,
        options: RunOptions,
    ) -> Result<Conversation, ErrorBody> {
        let mut contexts = Contexts::new();
        let link = options.replay.as_ref();
        let link = link.map(|replay| Body::Replayed(replay.link.clone()));
        let policy = match participants {
            Participants::Chat(agent) => {
                contexts.insert(None, Context::default());
                let chat = Chat::new(agent, options.compact_at);
                Policy::Chat(chat.with_opening(link.into_iter().collect()))
            }
            Participants::Team { roster, .. } => {
                let team = Team::begin(*roster)
                    .map_err(|error| ErrorBody::new(ErrorKind::Invalid, error.to_string()))?;
                Policy::Team(Box::new(team.with_link(link)))
            }
            Participants::Pair { roster, .. } => {
                for role in [PairRole::Instructor, PairRole::Worker] {
                    contexts.insert(Some(role), Context::default());
                }
                let now = writer.sessions().clock().now();
                let mut pair = PairPolicy::begin(*roster, now);
                pair.opening().splice(..0, link);
                Policy::Pair(Box::new(pair))
            }
        };
        let mut conversation = Conversation::new(writer, options, policy);
        conversation.contexts = contexts;
        Ok(conversation)
    }

    fn new(writer: LogWriter, options: RunOptions, policy: Policy) -> Conversation {
        Conversation {
            recorded_mode: writer.meta().and_then(|meta| meta.approve),
            seat: writer.meta().and_then(|meta| meta.seat.clone()),
            recorded_seat: writer.meta().and_then(|meta| meta.seat.clone()),
            writer,
            options,
            contexts: Contexts::new(),
            policy,
            unsaved: false,
            told_unsaved: false,
            cancel: CancellationToken::new(),
            switched: false,
            noticed: BTreeSet::new(),
        }
    }

    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        self.policy.kind()
    }

    /// Returns the log writer.
    pub fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// Marks a session that has no entries yet as open.
    pub async fn hold(&mut self) {
        self.writer.hold().await;
    }

    /// Returns the tool permissions. Clones share one state.
    pub fn permissions(&self) -> &Permissions {
        &self.options.rules
    }

    /// Returns the name of the agent of a chat.
    pub fn agent_name(&self) -> Option<&str> {
        match &self.policy {
            Policy::Chat(chat) => Some(chat.agent().name()),
            Policy::Team(_) | Policy::Pair(_) => None,
        }
    }

    /// Returns the team.
    pub fn team(&self) -> Option<&Team> {
        match &self.policy {
            Policy::Team(team) => Some(team),
            Policy::Chat(_) | Policy::Pair(_) => None,
        }
    }

    /// Returns the progress of a pair.
    pub fn progress(&self) -> Option<Progress> {
        match &self.policy {
            Policy::Pair(pair) => Some(pair.progress(&self.view())),
            Policy::Chat(_) | Policy::Team(_) => None,
        }
    }

    /// Returns what reads the files that a message attaches, and the members that it addresses at
    /// its beginning.
    pub fn attaching(&self, text: &str) -> (Option<Toolbox>, Vec<String>) {
        let members = self.team().map_or(&[][..], |team| team.router().members());
        let leading = mentions::leading(members, text);
        let is_meant = |member: &&Member| leading.iter().any(|named| named.name == member.name);
        let meant = members.iter().filter(is_meant);
        let names = meant.flat_map(|member| [&member.name, &member.display_name]);
        (self.options.tools.clone(), names.cloned().collect())
    }

    /// Returns true for a chat whose agent runs as a program, with tools of its own.
    pub fn is_answered_by_a_program(&self) -> bool {
        match &self.policy {
            Policy::Chat(chat) => chat.agent().tools() != ToolSide::Ours,
            Policy::Team(_) | Policy::Pair(_) => false,
        }
    }

    /// Runs a turn: the user's message and the answers to it. In a team the user speaks as `seat`,
    /// or as whom the message names. An empty message continues a pair's unfinished work.
    pub async fn say(
        &mut self,
        prompt: impl Into<Prompt>,
        seat: Option<&str>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<TurnResult, SenderError> {
        let prompt = prompt.into();
        let by = self.policy.sender(seat, &prompt.text)?;
        self.cancel = cancel.clone();
        self.told_unsaved = false;
        let mut event = Event::Said { by, prompt };
        loop {
            let mut shown: Vec<SessionEvent> = Vec::new();
            let view = view(&self.writer, &self.contexts, &self.cancel);
            let effect = self.policy.step(event, &view, &mut shown);
            shown.into_iter().for_each(|event| frontend.show(event));
            event = match effect {
                Effect::Append(bodies) => match self.write(None, bodies, frontend).await {
                    Some(messages) => Event::Saved(messages),
                    None => Event::Refused,
                },
                Effect::Ask(ask) => Event::Answered(self.ask(*ask, frontend).await),
                Effect::Summarise(request) => {
                    Event::Summarised(self.summarise_team(*request, frontend).await)
                }
                Effect::Load => match self.load_pair(frontend).await {
                    Ok(()) => Event::Loaded,
                    Err(error) => Event::Unreadable(error.to_string()),
                },
                Effect::Recall { at, worker } => match self.recall(at, worker).await {
                    Ok((entry, worker_said)) => Event::Recalled(entry.map(Box::new), worker_said),
                    Err(error) => Event::Unreadable(error.to_string()),
                },
                Effect::WaitFor(result) => {
                    self.end_turn();
                    return Ok(result);
                }
            };
        }
    }

    /// Ends the turn: from now on its messages are part of the past.
    fn end_turn(&mut self) {
        let is_chat = self.kind() == Kind::Chat;
        for context in self.contexts.values_mut() {
            // A pair may still resume a stopped message.
            if is_chat {
                context.withdraw_stopped();
            }
            context.end_turn();
        }
    }

    fn view(&self) -> View<'_> {
        view(&self.writer, &self.contexts, &self.cancel)
    }

    /// Lets the agents end their processes gracefully.
    pub async fn leave(&self) {
        for agent in self.policy.agents() {
            agent.leave().await;
        }
    }
}

fn view<'a>(writer: &'a LogWriter, contexts: &'a Contexts, cancel: &CancellationToken) -> View<'a> {
    View {
        meta: writer.meta(),
        unsaved: writer.has_unsaved(),
        cancelled: cancel.is_cancelled(),
        now: writer.sessions().clock().now(),
        contexts,
    }
}
