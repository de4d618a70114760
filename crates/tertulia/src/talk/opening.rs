//! A talk that is about to begin or to go on, whoever takes part: a screen, a line loop or a single turn
//! opens it and leads it.

use std::sync::Arc;

use tertulia_agents::Agent;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::team::TeamFile;
use tertulia_engine::duet::{self, Duet};
use tertulia_engine::frontend::Frontend;
use tertulia_engine::log_writer::LogWriter;
use tertulia_engine::run::{RunOptions, Talk};
use tertulia_engine::table::{self, Table};

use super::conversation::Conversation;
use super::target::Target;
use super::{Leaving, TalkArgs};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;

/// Everything that a talk begins with.
pub struct Opening {
    pub workspace: Workspace,
    pub args: TalkArgs,
    pub target: Target,
    pub terms: RunOptions,
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
pub trait StartedFrontend: Frontend {
    /// The session, and how many messages it has if it was resumed.
    fn started(&mut self, id: SessionId, resumed: Option<u64>);
}

impl Opening {
    /// Begins or resumes the talk.
    pub async fn open(self, frontend: &mut impl StartedFrontend) -> CommandResult<Conversation> {
        let on_conflict = self.args.on_conflict();
        let sessions = self.workspace.sessions.clone();
        match self.target {
            Target::New(start) => {
                frontend.started(start.id, None);
                let writer = LogWriter::begin(sessions, start, on_conflict);
                self.cast.begin(writer, self.terms)
            }
            Target::Resume(row, copy) => {
                let (mut writer, left) = LogWriter::resume(sessions, row.meta, on_conflict).await?;
                if let Some(copy) = copy {
                    writer.keep_copies(copy);
                }
                let messages = writer.meta().map_or(0, |meta| meta.messages);
                frontend.started(writer.id(), Some(messages));
                self.cast.resume(writer, left, self.terms, frontend).await
            }
        }
    }
}

impl Cast {
    fn begin(self, writer: LogWriter, terms: RunOptions) -> CommandResult<Conversation> {
        Ok(match self {
            Cast::Chat(agent) => Conversation::Chat(Box::new(Talk::begin(writer, agent, terms))),
            Cast::Team { seating, .. } => {
                let table = Table::begin(writer, *seating, terms)
                    .map_err(|error| CommandError::new(ErrorKind::Invalid, error.to_string()))?;
                Conversation::Team(Box::new(table))
            }
            Cast::Pair { seating, .. } => {
                Conversation::Pair(Box::new(Duet::begin(writer, *seating, terms)))
            }
        })
    }

    async fn resume(
        self,
        writer: LogWriter,
        left: Option<SessionId>,
        terms: RunOptions,
        frontend: &mut dyn Frontend,
    ) -> CommandResult<Conversation> {
        Ok(match self {
            Cast::Chat(agent) => {
                let talk = Talk::resume(writer, left, agent, terms, frontend).await?;
                Conversation::Chat(Box::new(talk))
            }
            Cast::Team { seating, fit, .. } => {
                let table = Table::resume(writer, left, *seating, fit, terms, frontend).await?;
                Conversation::Team(Box::new(table))
            }
            Cast::Pair { seating, .. } => {
                let duet = Duet::resume(writer, left, *seating, terms, frontend).await?;
                Conversation::Pair(Box::new(duet))
            }
        })
    }
}
