//! [`Conversation`]: a running conversation of any kind. `state` describes it between turns, `turn`
//! the result of a turn.

mod state;
mod turn;

use tokio_util::sync::CancellationToken;

use crate::frontend::Frontend;
use crate::pair_conversation::PairConversation;
use crate::runner::{Compaction, Runner};
use crate::team::events::SenderError;
use crate::team_conversation::TeamConversation;
use tertulia_core::entry::Kind;
use tertulia_core::team::markers;

pub use state::UnfinishedWork;
pub use turn::TurnResult;

/// A running conversation.
#[derive(Debug)]
pub enum Conversation {
    /// With one agent.
    Chat(Box<Runner>),
    /// With a team.
    Team(Box<TeamConversation>),
    /// Between an instructor and a worker.
    Pair(Box<PairConversation>),
}

impl Conversation {
    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Conversation::Chat(_) => Kind::Chat,
            Conversation::Team(_) => Kind::Team,
            Conversation::Pair(_) => Kind::Pair,
        }
    }

    /// Returns its runner.
    pub fn runner(&self) -> &Runner {
        match self {
            Conversation::Chat(runner) => runner,
            Conversation::Team(table) => table.runner(),
            Conversation::Pair(duet) => duet.runner(),
        }
    }

    /// Returns its runner.
    pub fn runner_mut(&mut self) -> &mut Runner {
        match self {
            Conversation::Chat(runner) => runner,
            Conversation::Team(table) => table.runner_mut(),
            Conversation::Pair(duet) => duet.runner_mut(),
        }
    }

    /// Runs a turn: the user's message and the answers to it. In a team the user speaks as `seat`,
    /// unless the message says as whom. An empty message continues a pair's unfinished work.
    pub async fn say(
        &mut self,
        text: String,
        seat: Option<&str>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<TurnResult, SenderError> {
        // The message is newer than the seat.
        let seat = seat.filter(|_| markers::parse(&text).from.is_none());
        self.say_as(text, seat, frontend, cancel).await
    }

    /// Runs a turn like [`say`](Conversation::say), but `seat` overrides the message, which may
    /// have come through a pipe.
    pub async fn say_as(
        &mut self,
        text: String,
        seat: Option<&str>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<TurnResult, SenderError> {
        Ok(match self {
            Conversation::Chat(runner) => {
                TurnResult::Chat(runner.turn(text, frontend, cancel).await)
            }
            Conversation::Team(table) => {
                TurnResult::Team(table.turn(seat, text, frontend, cancel).await?)
            }
            Conversation::Pair(duet) => {
                let pause = duet.turn(&text, frontend, cancel).await;
                TurnResult::Pair(pause, duet.progress())
            }
        })
    }

    /// Compacts the older part of the context. Returns `None` for teams and pairs, whose agents get
    /// only what fits.
    pub async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<Compaction> {
        match self {
            Conversation::Chat(runner) => Some(runner.compact(frontend, cancel).await),
            Conversation::Team(_) | Conversation::Pair(_) => None,
        }
    }

    /// Lets the agents end their processes gracefully.
    pub async fn leave(&self) {
        match self {
            Conversation::Chat(runner) => runner.leave().await,
            Conversation::Team(table) => table.leave().await,
            Conversation::Pair(duet) => duet.leave().await,
        }
    }
}
