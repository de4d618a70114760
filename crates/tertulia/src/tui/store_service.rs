//! Store service: reads and changes the store for the TUI. Each [`Request`] yields an [`Answer`].
//!
//! The event loop never waits for a disk: it passes each request to a blocking thread. The answer
//! names its request, so that it can be matched whatever happened meanwhile. A failure is an answer
//! too, with the message of the equivalent command.

mod candidates;
mod changes;
mod compare;
mod export;
mod family;
mod figures;
mod files;
mod lists;
mod overview;
mod past;
mod reading;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tertulia_core::entry::Kind;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Hits, Listing, Row};

use self::overview::ModelList;
use self::past::Past;
use super::completion::{Asked, Candidate};
use super::history::History;
use super::item::Item;
use super::picker::{self, Ticket};
use super::rewind::{self, Moment};
use super::search;
use super::stats::Figures;
use super::transcript;
use crate::commands::export::Format;
use crate::error::CommandError;
use crate::open::Workspace;
use crate::settings::StoreUrl;
use crate::talk::target::Forked;

/// Request of the TUI.
#[derive(Clone, Debug)]
pub enum Request {
    /// A part of a transcript.
    Transcript {
        /// Session id.
        session: SessionId,
        /// Kind of the session, also while it is not in the store yet.
        kind: Kind,
        /// The part.
        wanted: transcript::Wanted,
    },
    /// Data for the session list.
    Picker(Ticket, picker::Wanted),
    /// Data for the full-text search.
    Search(Ticket, search::Wanted),
    /// Messages of the user in a session.
    Rewind(SessionId, Ticket, rewind::Wanted),
    /// Full text of one message, to edit and send again.
    Words(SessionId, Seq),
    /// Fork tree of a session.
    Tree(SessionId),
    /// Statistics of a session.
    Stats(SessionId),
    /// Completion candidates.
    Complete(Asked),
    /// Rename a session.
    Rename(SessionId, String),
    /// Change the tags of a session.
    Tag {
        /// Session id.
        session: SessionId,
        /// Tags to add.
        add: Vec<String>,
        /// Tags to remove.
        remove: Vec<String>,
    },
    /// Move a session to the trash.
    Trash(SessionId),
    /// Fork a session after this entry, or at its end.
    Fork(SessionId, Option<Seq>),
    /// Find a session by a reference.
    Find(String),
    /// Export a session to a file.
    Export {
        /// Session id.
        session: SessionId,
        /// Format; Markdown by default.
        format: Option<Format>,
        /// File; a new file in the working directory by default.
        file: Option<String>,
    },
    /// Compare two sessions.
    Compare {
        /// First session.
        session: SessionId,
        /// Reference to the second session.
        with: String,
    },
    /// List the agents.
    Agents,
    /// List the models of the current agent, either to show them or to check this one.
    Models(Option<String>),
    /// List the teams.
    Teams,
    /// Append a prompt to the input history.
    Remember(String),
}

/// Answer to a [`Request`]. Each names its request, unless the result does.
#[derive(Debug)]
pub enum Answer {
    /// A part of a transcript.
    Transcript {
        /// Session id.
        session: SessionId,
        /// The requested part.
        wanted: transcript::Wanted,
        /// The loaded part.
        loaded: Answered<transcript::Loaded>,
    },
    /// Data for the session list.
    Picker(Ticket, Answered<Listed>),
    /// Data for the full-text search.
    Search(Ticket, Answered<Searched>),
    /// Messages of the user in a session, and whether there are earlier ones.
    Rewind(SessionId, Ticket, Answered<(Vec<Moment>, bool)>),
    /// Full text of one message.
    Words(SessionId, Seq, Answered<String>),
    /// Fork tree of a session.
    Tree(SessionId, Answered<Family>),
    /// Statistics of a session.
    Stats(SessionId, Answered<Figures>),
    /// Completion candidates.
    Complete(Asked, Answered<Vec<Candidate>>),
    /// The renamed session.
    Renamed(Answered<Box<Row>>),
    /// The session with its new tags.
    Tagged(Answered<Box<Row>>),
    /// The session moved to the trash.
    Trashed(SessionId, Answered<Box<Row>>),
    /// The new fork.
    Forked(Answered<Box<Forked>>),
    /// The session found for a reference.
    Found(String, Answered<Box<Row>>),
    /// The exported file.
    Exported(Answered<Exported>),
    /// Comparison with the session of this reference, as lines.
    Compared(SessionId, String, Answered<Vec<String>>),
    /// List of agents, as lines.
    Agents(Answered<Vec<String>>),
    /// Models of the current agent, and the model to check.
    Models(Option<String>, Answered<Models>),
    /// List of teams, as lines.
    Teams(Answered<Vec<String>>),
    /// Result of appending to the input history.
    Remembered(Answered<()>),
}

/// Models of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// Model names.
    pub names: Vec<String>,
    /// Whether the list is complete. An agent CLI with its own models lists only the configured
    /// one.
    pub complete: bool,
}

/// Result of a request.
pub type Answered<T> = Result<T, Refusal>;

/// Failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error message.
    pub words: String,
    /// Hints.
    pub hints: Vec<String>,
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Refusal {
        Refusal {
            words: error.words(),
            hints: error.hints().to_vec(),
        }
    }
}

/// Writes message and hints on one line.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        self.hints.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

/// Data for the session list.
#[derive(Debug)]
pub enum Listed {
    /// For [`picker::Picker::page`].
    Page(Listing),
    /// For [`picker::Picker::found`].
    Found(Hits),
    /// For [`picker::Picker::preview`].
    Preview(Vec<Item>),
}

/// Data for the full-text search.
#[derive(Debug)]
pub enum Searched {
    /// For [`search::Search::found`].
    Found(Hits),
    /// For [`search::Search::around`].
    Around(Vec<Item>),
}

/// Fork tree of a session, for [`super::tree::Tree::new`].
#[derive(Debug)]
pub struct Family {
    /// Sessions of the tree, in no particular order.
    pub rows: Vec<Row>,
    /// Whether these are all, or the search stopped at a limit.
    pub complete: bool,
}

/// An exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Path.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Answers requests. Cheap to clone. Blocks on the disk, and on agents for a limited time.
#[derive(Clone)]
pub struct StoreService {
    workspace: Arc<Workspace>,
    models: Arc<ModelList>,
    past: Arc<Past>,
}

impl StoreService {
    /// Creates the store service of a workspace. `agent` is the agent of a chat session; an
    /// ephemeral session records no input history.
    pub fn new(workspace: Workspace, agent: Option<String>, ephemeral: bool) -> StoreService {
        let keeps = !ephemeral && workspace.settings.store != StoreUrl::Memory;
        StoreService {
            past: Arc::new(Past::new(&workspace.settings, keeps)),
            models: Arc::new(ModelList::new(agent)),
            workspace: Arc::new(workspace),
        }
    }

    /// Input history of all sessions.
    pub fn history(&self) -> History {
        self.past.history()
    }

    /// Executes a request and blocks until it is done.
    pub fn answer(&self, request: Request) -> Answer {
        match request {
            Request::Transcript {
                session,
                kind,
                wanted,
            } => Answer::Transcript {
                session,
                wanted,
                loaded: answered(self.transcript(session, kind, wanted)),
            },
            Request::Picker(ticket, wanted) => {
                Answer::Picker(ticket, answered(self.listed(wanted)))
            }
            Request::Search(ticket, wanted) => {
                Answer::Search(ticket, answered(self.searched(wanted)))
            }
            Request::Rewind(session, ticket, wanted) => {
                Answer::Rewind(session, ticket, answered(self.moments(session, wanted)))
            }
            Request::Words(session, seq) => {
                Answer::Words(session, seq, answered(self.words(session, seq)))
            }
            Request::Tree(session) => Answer::Tree(session, answered(self.family(session))),
            Request::Stats(session) => Answer::Stats(session, answered(self.figures(session))),
            Request::Complete(asked) => {
                let candidates = answered(self.candidates(&asked));
                Answer::Complete(asked, candidates)
            }
            Request::Rename(id, title) => Answer::Renamed(boxed(self.rename(id, &title))),
            Request::Tag {
                session,
                add,
                remove,
            } => Answer::Tagged(boxed(self.tag(session, &add, &remove))),
            Request::Trash(id) => Answer::Trashed(id, boxed(self.trash(id))),
            Request::Fork(id, at) => Answer::Forked(boxed(self.fork(id, at))),
            Request::Find(text) => {
                let row = boxed(self.workspace.find(&text));
                Answer::Found(text, row)
            }
            Request::Export {
                session,
                format,
                file,
            } => Answer::Exported(answered(self.export(session, format, file))),
            Request::Compare { session, with } => {
                let lines = answered(self.compare(session, &with));
                Answer::Compared(session, with, lines)
            }
            Request::Agents => Answer::Agents(answered(self.agents())),
            Request::Models(wanted) => {
                let models = self.known_models();
                Answer::Models(wanted, answered(models))
            }
            Request::Teams => Answer::Teams(answered(self.teams())),
            Request::Remember(words) => Answer::Remembered(answered(self.past.add(&words))),
        }
    }
}

fn answered<T>(result: Result<T, CommandError>) -> Answered<T> {
    result.map_err(Refusal::from)
}

fn boxed<T>(result: Result<T, CommandError>) -> Answered<Box<T>> {
    answered(result.map(Box::new))
}
