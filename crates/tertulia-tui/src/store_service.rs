//! Store service: reads and changes the store for the TUI. Each [`Request`] yields an [`Answer`].
//!
//! The event loop never waits for a disk: it passes each request to a blocking thread. The answer
//! names its request, so that it can be matched whatever happened meanwhile. A failure is an answer
//! too, with the message of the equivalent command.

mod bill;
mod candidates;
mod compare;
mod family;
mod figures;
mod files;
mod lists;
mod models;
mod reading;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use tertulia_core::entry::Kind;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Hits, Listing, Row};

use self::models::ModelList;
use super::bill::Bill;
use super::completion::{Asked, Candidate};
use super::history::History;
use super::item::Item;
use super::picker::{self, Ticket};
use super::rewind::{self, Moment};
use super::search;
use super::stats::Figures;
use super::transcript;
use crate::error::TuiResult;
use crate::host::{AgentRow, ExportFormat, Exported, Forked, Host, Models, Undone, Workspace};

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
    /// Matches of a text search in a part of a transcript.
    Scan {
        /// Session id.
        session: SessionId,
        /// Kind of the session, also while it is not in the store yet.
        kind: Kind,
        /// The part.
        scan: transcript::Scan,
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
    /// Cost of a session up to an entry.
    Bill(SessionId, Seq),
    /// Completion candidates, with the agent of a chat.
    Complete(Asked, Option<String>),
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
    /// Take the last rename, tag or trash back.
    Undo,
    /// Fork a session after this entry, or at its end.
    Fork(SessionId, Option<Seq>),
    /// Find a session by a reference.
    Find(String),
    /// Export a session to a file.
    Export {
        /// Session id.
        session: SessionId,
        /// Format; Markdown by default.
        format: Option<ExportFormat>,
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
    /// List the agents, or only this one to use it.
    Agents(Option<String>),
    /// Check whether the agent of a resumed session is available.
    CheckAgent(String),
    /// List the models of an agent.
    Models {
        /// The agent.
        agent: String,
        /// Model to check.
        check: Option<String>,
    },
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
        loaded: TuiResult<transcript::Loaded>,
    },
    /// Matches of a text search in a part of a transcript, with the ticket of the search.
    Scanned(u64, TuiResult<transcript::Scanned>),
    /// Data for the session list.
    Picker(Ticket, TuiResult<Listed>),
    /// Data for the full-text search.
    Search(Ticket, TuiResult<Searched>),
    /// Messages of the user in a session, and whether there are earlier ones.
    Rewind(SessionId, Ticket, TuiResult<(Vec<Moment>, bool)>),
    /// Full text of one message.
    Words(SessionId, Seq, TuiResult<String>),
    /// Fork tree of a session.
    Tree(SessionId, TuiResult<Family>),
    /// Statistics of a session.
    Stats(SessionId, TuiResult<Figures>),
    /// Cost of a session.
    Bill(SessionId, TuiResult<Bill>),
    /// Completion candidates.
    Complete(Asked, TuiResult<Vec<Candidate>>),
    /// The renamed session.
    Renamed(TuiResult<Box<Row>>),
    /// The session with its new tags.
    Tagged(TuiResult<Box<Row>>),
    /// The session moved to the trash.
    Trashed(SessionId, TuiResult<Box<Row>>),
    /// The sessions that an undo changed.
    Undone(TuiResult<Vec<Undone>>),
    /// The new fork.
    Forked(TuiResult<Box<Forked>>),
    /// The session found for a reference.
    Found(String, TuiResult<Box<Row>>),
    /// The exported file.
    Exported(TuiResult<Exported>),
    /// Comparison with the session of this reference, as lines.
    Compared(SessionId, String, TuiResult<Vec<String>>),
    /// List of agents, and the one to use.
    Agents(Option<String>, TuiResult<Vec<AgentRow>>),
    /// Whether the agent of a resumed session is available.
    AgentChecked(String, TuiResult<Vec<AgentRow>>),
    /// Models of an agent.
    Models {
        /// The agent.
        agent: String,
        /// Model to check.
        check: Option<String>,
        /// The models.
        models: TuiResult<Models>,
    },
    /// List of teams, as lines.
    Teams(TuiResult<Vec<String>>),
    /// Result of appending to the input history.
    Remembered(TuiResult<()>),
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

/// Answers requests. Cheap to clone.
#[derive(Clone)]
pub struct StoreService {
    host: Arc<dyn Host>,
    models: Arc<ModelList>,
}

impl StoreService {
    /// Creates the store service of a host.
    pub fn new(host: Arc<dyn Host>) -> StoreService {
        StoreService {
            host,
            models: Arc::default(),
        }
    }

    /// Input history of all sessions.
    pub fn history(&self) -> History {
        History::new(self.host.earlier_prompts())
    }

    /// Current time, by the clock of the store.
    pub fn now(&self) -> Timestamp {
        self.workspace().sessions.clock().now()
    }

    /// Time zone of the user.
    pub fn zone(&self) -> TimeZone {
        self.workspace().zone.clone()
    }

    fn workspace(&self) -> &Workspace {
        self.host.workspace()
    }

    /// Executes a request. What the program's commands do, its host does.
    pub async fn answer(&self, request: Request) -> Answer {
        let host = &self.host;
        match request {
            Request::Transcript {
                session,
                kind,
                wanted,
            } => Answer::Transcript {
                session,
                wanted,
                loaded: self.transcript(session, kind, wanted).await,
            },
            Request::Scan {
                session,
                kind,
                scan,
            } => Answer::Scanned(scan.ticket, self.scan(session, kind, &scan).await),
            Request::Picker(ticket, wanted) => Answer::Picker(ticket, self.listed(wanted).await),
            Request::Search(ticket, wanted) => Answer::Search(ticket, self.searched(wanted).await),
            Request::Rewind(session, ticket, wanted) => {
                Answer::Rewind(session, ticket, self.moments(session, wanted).await)
            }
            Request::Words(session, seq) => {
                Answer::Words(session, seq, self.words(session, seq).await)
            }
            Request::Tree(session) => Answer::Tree(session, self.family(session).await),
            Request::Stats(session) => Answer::Stats(session, self.figures(session).await),
            Request::Bill(session, upto) => Answer::Bill(session, self.bill(session, upto).await),
            Request::Complete(asked, agent) => {
                let candidates = self.candidates(&asked, agent.as_deref()).await;
                Answer::Complete(asked, candidates)
            }
            Request::Compare { session, with } => {
                let lines = self.compare(session, &with).await;
                Answer::Compared(session, with, lines)
            }
            Request::Models { agent, check } => {
                let models = self.models(&agent).await;
                Answer::Models {
                    agent,
                    check,
                    models,
                }
            }
            Request::Rename(id, title) => Answer::Renamed(boxed(host.rename(id, &title).await)),
            Request::Tag {
                session,
                add,
                remove,
            } => Answer::Tagged(boxed(host.tag(session, &add, &remove).await)),
            Request::Trash(id) => Answer::Trashed(id, boxed(host.trash(id).await)),
            Request::Undo => Answer::Undone(host.undo().await),
            Request::Fork(id, at) => Answer::Forked(boxed(host.fork(id, at).await)),
            Request::Find(text) => {
                let row = boxed(host.find(&text).await);
                Answer::Found(text, row)
            }
            Request::Export {
                session,
                format,
                file,
            } => {
                let format = format.unwrap_or_default();
                Answer::Exported(host.export(session, format, file.as_deref()).await)
            }
            Request::Agents(only) => {
                let agents = host.agents(only.as_deref()).await;
                Answer::Agents(only, agents)
            }
            Request::CheckAgent(name) => {
                let agents = host.agents(Some(&name)).await;
                Answer::AgentChecked(name, agents)
            }
            Request::Teams => Answer::Teams(host.teams().await),
            Request::Remember(prompt) => Answer::Remembered(host.remember_prompt(&prompt).await),
        }
    }
}

fn boxed<T>(result: TuiResult<T>) -> TuiResult<Box<T>> {
    result.map(Box::new)
}
