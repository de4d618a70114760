//! A talk of any kind, led in the same way by every door: `told` is what it tells about itself, `turned` how a
//! turn of it ended.

mod told;
mod turned;

use tertulia_core::entry::Kind;
use tertulia_core::team::markers;
use tertulia_engine::chat::TurnEnd;
use tertulia_engine::duet::{Duet, Pause};
use tertulia_engine::frontend::Frontend;
use tertulia_engine::pair::Progress;
use tertulia_engine::run::{Compaction, Talk};
use tertulia_engine::table::{Round, Table};
use tertulia_engine::team::events::SenderError;
use tokio_util::sync::CancellationToken;

pub use told::{LeftUndone, resumed};

/// A talk of any kind.
#[derive(Debug)]
pub enum Conversation {
    /// One agent.
    Chat(Box<Talk>),
    /// A team.
    Team(Box<Table>),
    /// An instructor and a worker.
    Pair(Box<Duet>),
}

/// How a turn ended.
#[derive(Debug)]
pub enum Turned {
    /// One agent's.
    Chat(TurnEnd),
    /// A team's.
    Team(Round),
    /// An instructor's and a worker's, and how far they are.
    Pair(Pause, Progress),
}

impl Conversation {
    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Conversation::Chat(_) => Kind::Chat,
            Conversation::Team(_) => Kind::Team,
            Conversation::Pair(_) => Kind::Pair,
        }
    }

    /// The talk under it.
    pub fn talk(&self) -> &Talk {
        match self {
            Conversation::Chat(talk) => talk,
            Conversation::Team(table) => table.talk(),
            Conversation::Pair(duet) => duet.talk(),
        }
    }

    /// The talk under it, to be changed.
    pub fn talk_mut(&mut self) -> &mut Talk {
        match self {
            Conversation::Chat(talk) => talk,
            Conversation::Team(table) => table.talk_mut(),
            Conversation::Pair(duet) => duet.talk_mut(),
        }
    }

    /// Somebody says something, and it is answered; in a team as this member, unless the words say who
    /// speaks. Empty words continue a pair's unfinished work.
    pub async fn say(
        &mut self,
        words: String,
        seat: Option<&str>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<Turned, SenderError> {
        // The words are newer than the seat.
        let seat = seat.filter(|_| markers::parse(&words).from.is_none());
        self.say_as(words, seat, frontend, cancel).await
    }

    /// The same, but a seat that is given counts more than the words, which may have come through a pipe.
    pub async fn say_as(
        &mut self,
        words: String,
        seat: Option<&str>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<Turned, SenderError> {
        Ok(match self {
            Conversation::Chat(talk) => Turned::Chat(talk.turn(words, frontend, cancel).await),
            Conversation::Team(table) => {
                Turned::Team(table.turn(seat, words, frontend, cancel).await?)
            }
            Conversation::Pair(duet) => {
                let pause = duet.turn(&words, frontend, cancel).await;
                Turned::Pair(pause, duet.progress())
            }
        })
    }

    /// Sums up the older part. Teams and pairs give each of theirs only what they need.
    pub async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<Compaction> {
        match self {
            Conversation::Chat(talk) => Some(talk.compact(frontend, cancel).await),
            Conversation::Team(_) | Conversation::Pair(_) => None,
        }
    }

    /// Lets the agents end what they have running, in their own way.
    pub async fn leave(&self) {
        match self {
            Conversation::Chat(talk) => talk.leave().await,
            Conversation::Team(table) => table.leave().await,
            Conversation::Pair(duet) => duet.leave().await,
        }
    }
}
