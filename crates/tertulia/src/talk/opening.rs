//! A talk that is about to begin or to go on, whoever takes part: a screen, a line loop or a single turn
//! opens it and leads it.

use std::sync::Arc;

use tertulia_agents::Agent;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::team::TeamFile;
use tertulia_engine::door::Door;
use tertulia_engine::duet::{self, Duet};
use tertulia_engine::record::Recorder;
use tertulia_engine::run::{Talk, Terms};
use tertulia_engine::table::{self, Table};

use super::conversation::Conversation;
use super::target::Target;
use super::{Leaving, TalkArgs};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::House;

/// Everything that a talk begins with.
pub struct Opening {
    pub house: House,
    pub args: TalkArgs,
    pub target: Target,
    pub terms: Terms,
    pub leaving: Leaving,
    pub cast: Cast,
    /// Who is here and why, for people.
    pub introduction: String,
    /// Whether nobody chose who answers.
    pub unasked: bool,
    /// An earlier talk that could be gone on with in place of a new one.
    pub earlier: Option<Box<Row>>,
    /// Whether it goes on where it was only left for another model: nothing is restored, and no model is a surprise.
    pub is_switch: bool,
}

/// Who takes part.
pub enum Cast {
    /// One agent.
    Chat(Arc<dyn Agent>),
    /// A team.
    Team {
        team: Box<TeamFile>,
        seating: Box<table::Seating>,
        fit: table::Fit,
        /// Which person speaks, if that was said.
        seat: Option<String>,
    },
    /// An instructor and a worker.
    Pair {
        seating: Box<duet::Seating>,
        /// Whether the bell is rung when a person is needed.
        notify: bool,
    },
}

impl Cast {
    /// What kind of talk it is.
    pub fn kind(&self) -> Kind {
        match self {
            Cast::Chat(_) => Kind::Chat,
            Cast::Team { .. } => Kind::Team,
            Cast::Pair { .. } => Kind::Pair,
        }
    }

    /// Which person of several speaks, if that was said.
    pub fn seat(&self) -> Option<String> {
        match self {
            Cast::Team { seat, .. } => seat.clone(),
            Cast::Chat(_) | Cast::Pair { .. } => None,
        }
    }

    /// Whether the bell is rung when a person is needed.
    pub fn rings(&self) -> bool {
        matches!(self, Cast::Pair { notify: true, .. })
    }
}

/// A talk with what is said in it first.
pub struct Prepared {
    pub opening: Opening,
    pub words: Option<String>,
}

/// A frontend that is told which session it shows.
pub trait Doorway: Door {
    /// The session, and how many messages it has if it was resumed.
    fn started(&mut self, id: SessionId, resumed: Option<u64>);
}

impl Opening {
    /// Begins or resumes the talk.
    pub async fn open(self, door: &mut impl Doorway) -> CommandResult<Conversation> {
        let on_conflict = self.args.on_conflict();
        let sessions = self.house.sessions.clone();
        match self.target {
            Target::New(start) => {
                door.started(start.id, None);
                let recorder = Recorder::begin(sessions, start, on_conflict);
                self.cast.begin(recorder, self.terms)
            }
            Target::Resume(row, copy) => {
                let (mut recorder, left) =
                    Recorder::resume(sessions, row.summary, on_conflict).await?;
                if let Some(copy) = copy {
                    recorder.keep_copies(copy);
                }
                let messages = recorder.summary().map_or(0, |summary| summary.messages);
                door.started(recorder.id(), Some(messages));
                self.cast.resume(recorder, left, self.terms, door).await
            }
        }
    }
}

impl Cast {
    fn begin(self, recorder: Recorder, terms: Terms) -> CommandResult<Conversation> {
        Ok(match self {
            Cast::Chat(agent) => Conversation::Chat(Box::new(Talk::begin(recorder, agent, terms))),
            Cast::Team { seating, .. } => {
                let table = Table::begin(recorder, *seating, terms)
                    .map_err(|error| CommandError::new(ErrorKind::Invalid, error.to_string()))?;
                Conversation::Team(Box::new(table))
            }
            Cast::Pair { seating, .. } => {
                Conversation::Pair(Box::new(Duet::begin(recorder, *seating, terms)))
            }
        })
    }

    async fn resume(
        self,
        recorder: Recorder,
        left: Option<SessionId>,
        terms: Terms,
        door: &mut dyn Door,
    ) -> CommandResult<Conversation> {
        Ok(match self {
            Cast::Chat(agent) => {
                let talk = Talk::resume(recorder, left, agent, terms, door).await?;
                Conversation::Chat(Box::new(talk))
            }
            Cast::Team { seating, fit, .. } => {
                let table = Table::resume(recorder, left, *seating, fit, terms, door).await?;
                Conversation::Team(Box::new(table))
            }
            Cast::Pair { seating, .. } => {
                let duet = Duet::resume(recorder, left, *seating, terms, door).await?;
                Conversation::Pair(Box::new(duet))
            }
        })
    }
}
