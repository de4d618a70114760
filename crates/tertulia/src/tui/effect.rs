//! What reaches the screen, and what the screen wants done: both are data.

use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use ratatui::layout::Size;
use std::time::Instant;
use tertulia_agents::approval::{PermissionChange, Verdict};
use tertulia_core::id::{Seq, SessionId};

use super::news::{News, Order, Ticket};
use super::store_service::{Answer, Request};

/// Something that reaches the screen.
#[derive(Debug)]
pub enum Event {
    /// A key.
    Key(KeyEvent),
    /// Text from a clipboard.
    Paste(String),
    /// The mouse.
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize(Size),
    /// Something happened in the talk.
    News(News),
    /// The librarian has answered.
    Answer(Box<Answer>),
    /// A text comes back from the editor, or why it does not.
    Edited(Result<String, String>),
    /// A signal: the program is to end.
    Signal(u8),
    /// The terminal is gone.
    Unplugged,
    /// Time has passed.
    Tick,
}

/// Something that the screen wants done.
#[derive(Debug)]
pub enum Effect {
    /// The talk is given an order.
    Order(Order),
    /// Whoever answers is stopped.
    Cancel,
    /// The talk is dropped where it stands.
    Insist,
    /// A question of the talk is answered.
    Verdict(Ticket, Verdict),
    /// The tool permissions are changed, also while an agent answers.
    Permit(PermissionChange),
    /// The librarian is asked.
    Ask(Box<Request>),
    /// A text goes to the clipboard.
    Copy(String),
    /// The bell rings.
    Ring,
    /// A text is to be changed in the person's editor.
    Edit(String),
    /// Everything is drawn anew.
    Redraw,
    /// The shell gets the terminal for a while.
    Suspend,
}

/// Which talk comes after this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A session is gone on with.
    Resume {
        /// Which one.
        id: SessionId,
        /// What is looked at in it first.
        at: Option<Seq>,
        /// What is written in the input.
        draft: Option<String>,
        /// With another model.
        model: Option<String>,
        /// With this team, where that is not for the session to say.
        team: Option<Reseated>,
    },
    /// A new one begins.
    New {
        /// With this agent.
        agent: Option<String>,
        /// With this model.
        model: Option<String>,
    },
    /// A new one with a team.
    Team {
        /// Its file, or its name.
        config: String,
        /// Whether an earlier one is not asked about.
        fresh: bool,
    },
    /// A new one of an instructor and a worker.
    Pair,
}

impl Next {
    /// A session is gone on with.
    pub fn resume(id: SessionId) -> Next {
        Next::Resume {
            id,
            at: None,
            draft: None,
            model: None,
            team: None,
        }
    }

    /// A session is gone on with by the team of this file, whatever file it was begun with.
    pub fn resume_with(id: SessionId, file: Option<String>) -> Next {
        Next::Resume {
            id,
            at: None,
            draft: None,
            model: None,
            team: file.map(Reseated::new),
        }
    }
}

/// The team that goes on with a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reseated {
    /// Its file, or its name.
    pub config: String,
    /// Seats of earlier speakers that members take over, each as `old=new`.
    pub map: Vec<String>,
}

impl Reseated {
    /// The team of a file, in which nobody takes over a seat.
    pub fn new(config: String) -> Reseated {
        Reseated {
            config,
            map: Vec::new(),
        }
    }
}

/// When something happens: for people, and for measuring.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// For people.
    pub at: Timestamp,
    /// For measuring.
    pub tick: Instant,
}
