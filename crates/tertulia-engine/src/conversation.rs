//! [`Conversation`]: a running conversation of any kind. It carries out the effects of its policy:
//! only here agents, the log and the frontend meet. `ask` prompts an agent and `act` runs its tools,
//! `write` saves entries, `compact` summarises a context, `resume` opens an existing session;
//! `state` describes a conversation between turns, `turn` the result of a turn.

mod act;
mod ask;
mod compact;
mod request;
mod resume;
mod silence;
mod state;
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
use crate::setup::{Participants, RunOptions};
use crate::team::events::SenderError;
use crate::team::policy::Team;
use tertulia_agents::approval::Permissions;
use tertulia_core::entry::{Body, Kind};

pub use compact::Compaction;
pub use state::UnfinishedWork;
pub use turn::TurnResult;

/// A running conversation.
#[derive(Debug)]
pub struct Conversation {
    writer: LogWriter,
    options: RunOptions,
    contexts: Contexts,
    policy: Policy,
    /// Whether the last write failed, which the user was told.
    unsaved: bool,
    /// Stops the current turn, and a write that waits for another process.
    cancel: CancellationToken,
    /// Agents' notices shown so far, so that each is shown once.
    noticed: BTreeSet<String>,
}

impl Conversation {
    /// Begins the conversation of a new session.
    pub fn begin(
        writer: LogWriter,
        participants: Participants,
        options: RunOptions,
    ) -> Result<Conversation, ErrorBody> {
        let mut contexts = Contexts::new();
        let policy = match participants {
            Participants::Chat(agent) => {
                contexts.insert(None, Context::default());
                let link = options.replay.iter();
                let opening = link.map(|replay| Body::Replayed(replay.link.clone()));
                let chat = Chat::new(agent, options.compact_at);
                Policy::Chat(chat.with_opening(opening.collect()))
            }
            Participants::Team { roster, .. } => {
                let team = Team::begin(*roster)
                    .map_err(|error| ErrorBody::new(ErrorKind::Invalid, error.to_string()))?;
                Policy::Team(Box::new(team))
            }
            Participants::Pair { roster, .. } => {
                for role in [PairRole::Instructor, PairRole::Worker] {
                    contexts.insert(Some(role), Context::default());
                }
                let now = writer.sessions().clock().now();
                Policy::Pair(Box::new(PairPolicy::begin(*roster, now)))
            }
        };
        let mut conversation = Conversation::new(writer, options, policy);
        conversation.contexts = contexts;
        Ok(conversation)
    }

    fn new(writer: LogWriter, options: RunOptions, policy: Policy) -> Conversation {
        Conversation {
            writer,
            options,
            contexts: Contexts::new(),
            policy,
            unsaved: false,
            cancel: CancellationToken::new(),
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

    /// Runs a turn: the user's message and the answers to it. In a team the user speaks as `seat`,
    /// or as whom the message names. An empty message continues a pair's unfinished work.
    pub async fn say(
        &mut self,
        text: String,
        seat: Option<&str>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<TurnResult, SenderError> {
        let by = self.policy.sender(seat, &text)?;
        self.cancel = cancel.clone();
        let mut event = Event::Said { by, text };
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
