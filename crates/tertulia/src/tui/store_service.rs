//! The librarian: what the screen wants from the disk is a [`Request`], and comes back as an [`Answer`].
//!
//! The loop never waits for a disk. It hands each request to a thread that may wait, and the answer
//! names what it answers, so that it finds its way whatever came in between. What cannot be done is an
//! answer, too, in the words of the command that would have done it.

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

/// What the screen wants.
#[derive(Clone, Debug)]
pub enum Request {
    /// A part of a talk.
    Transcript {
        /// Which talk.
        session: SessionId,
        /// Of what kind it is, also while it is not in the store yet.
        kind: Kind,
        /// Which part.
        wanted: transcript::Wanted,
    },
    /// What the list of sessions wants.
    Picker(Ticket, picker::Wanted),
    /// What the search wants.
    Search(Ticket, search::Wanted),
    /// What the person said in a session.
    Rewind(SessionId, Ticket, rewind::Wanted),
    /// All that was said in one message, to be changed and said again.
    Words(SessionId, Seq),
    /// The family of a session.
    Tree(SessionId),
    /// How much was said in a session.
    Stats(SessionId),
    /// What a word could become.
    Complete(Asked),
    /// A new title for a session.
    Rename(SessionId, String),
    /// Other tags for a session.
    Tag {
        /// Which session.
        session: SessionId,
        /// These are put on.
        add: Vec<String>,
        /// These are taken off.
        remove: Vec<String>,
    },
    /// A session goes to the trash.
    Trash(SessionId),
    /// A fork that shares a session up to this entry, or all of it.
    Fork(SessionId, Option<Seq>),
    /// The session that a person named.
    Find(String),
    /// A session as a file.
    Export {
        /// Which session.
        session: SessionId,
        /// In which form; Markdown if none is named.
        format: Option<Format>,
        /// Where to; a new file in the work folder if none is named.
        file: Option<String>,
    },
    /// A session beside another.
    Compare {
        /// The one.
        session: SessionId,
        /// The other, as a person named it.
        with: String,
    },
    /// Who could answer.
    Agents,
    /// The models of the agent that answers: all of them, or whether this is one.
    Models(Option<String>),
    /// Which teams there are.
    Teams,
    /// What a person said is to be kept for their history.
    Remember(String),
}

/// What the screen is given. Each names what it answers, unless what came of it does.
#[derive(Debug)]
pub enum Answer {
    /// A part of a talk.
    Transcript {
        /// Which talk.
        session: SessionId,
        /// Which part was wanted.
        wanted: transcript::Wanted,
        /// That part.
        loaded: Answered<transcript::Loaded>,
    },
    /// For the list of sessions.
    Picker(Ticket, Answered<Listed>),
    /// For the search.
    Search(Ticket, Answered<Searched>),
    /// What the person said in a session, and whether they said more before.
    Rewind(SessionId, Ticket, Answered<(Vec<Moment>, bool)>),
    /// All that was said in one message.
    Words(SessionId, Seq, Answered<String>),
    /// The family of a session.
    Tree(SessionId, Answered<Family>),
    /// How much was said in a session.
    Stats(SessionId, Answered<Figures>),
    /// What a word could become.
    Complete(Asked, Answered<Vec<Candidate>>),
    /// A session with its new title.
    Renamed(Answered<Box<Row>>),
    /// A session with its new tags.
    Tagged(Answered<Box<Row>>),
    /// A session that is in the trash.
    Trashed(SessionId, Answered<Box<Row>>),
    /// A fork of a session.
    Forked(Answered<Box<Forked>>),
    /// The session that a person named so.
    Found(String, Answered<Box<Row>>),
    /// A file that was written.
    Exported(Answered<Exported>),
    /// A session beside the one that a person named so, in lines.
    Compared(SessionId, String, Answered<Vec<String>>),
    /// Who could answer, in lines.
    Agents(Answered<Vec<String>>),
    /// The models of the agent that answers, and which of them is wanted.
    Models(Option<String>, Answered<Models>),
    /// Which teams there are, in lines.
    Teams(Answered<Vec<String>>),
    /// Whether what a person said is in their history.
    Remembered(Answered<()>),
}

/// The models that an agent could use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// Their names.
    pub names: Vec<String>,
    /// Whether there are no others. A program that brings its own models names only the one it was given.
    pub complete: bool,
}

/// What was wanted, or why it could not be had.
pub type Answered<T> = Result<T, Refusal>;

/// Why something could not be had or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What went wrong.
    pub words: String,
    /// What to do about it.
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

/// All of it on one line.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        self.hints.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

/// What the list of sessions is given.
#[derive(Debug)]
pub enum Listed {
    /// For [`picker::Picker::page`].
    Page(Listing),
    /// For [`picker::Picker::found`].
    Found(Hits),
    /// For [`picker::Picker::preview`].
    Preview(Vec<Item>),
}

/// What the search is given.
#[derive(Debug)]
pub enum Searched {
    /// For [`search::Search::found`].
    Found(Hits),
    /// For [`search::Search::around`].
    Around(Vec<Item>),
}

/// The family of a session, for [`super::tree::Tree::new`].
#[derive(Debug)]
pub struct Family {
    /// Its members, in no order.
    pub rows: Vec<Row>,
    /// Whether these are all, or only as many as were looked for.
    pub complete: bool,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: usize,
    /// What a person should know about it.
    pub notes: Vec<String>,
}

/// Answers what the screen wants. Cheap to clone; it may wait for a disk, and for agents at most as long
/// as a person would.
#[derive(Clone)]
pub struct StoreService {
    workspace: Arc<Workspace>,
    models: Arc<ModelList>,
    past: Arc<Past>,
}

impl StoreService {
    /// The librarian of a store. `agent` is who answers, where that is one; of an ephemeral talk
    /// nothing is kept.
    pub fn new(workspace: Workspace, agent: Option<String>, ephemeral: bool) -> StoreService {
        let keeps = !ephemeral && workspace.settings.store != StoreUrl::Memory;
        StoreService {
            past: Arc::new(Past::new(&workspace.settings, keeps)),
            models: Arc::new(ModelList::new(agent)),
            workspace: Arc::new(workspace),
        }
    }

    /// What a person said before, in all their talks.
    pub fn history(&self) -> History {
        self.past.history()
    }

    /// Does what is wanted, and waits for it.
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
