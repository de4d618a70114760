//! What the screen learns from a session, and what it asks of it.

use tertulia_agents::approval::ToolRequest;
use tertulia_engine::event::{SessionEnd, SessionEvent};

use super::mailbox::Joins;
use crate::error::TuiError;

/// Number of a permission request: an answer must not reach a later request.
pub type Ticket = u64;

/// What the screen wants of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Send a message; an empty one continues a pair's unfinished work.
    Say(String),
    /// Speak as this person from now on, or as whom the team waits for.
    As(Option<String>),
    /// Compact the older part of the context.
    Compact,
    /// Leave: a session in this program ends, one on a server goes on.
    Leave,
    /// End the session, wherever it runs, and leave.
    End,
}

/// What the screen learns.
#[derive(Debug)]
pub enum News {
    /// An event of the session.
    Session(SessionEvent),
    /// A permission request, answered by its ticket.
    Permission(Ticket, Box<ToolRequest>),
    /// The last order was refused, which was told.
    Refused,
    /// A server has closed the idle session; it opens it again with the next message.
    Rested(String),
    /// The session could not be opened, or the connection was lost. Only [`News::Gone`] follows.
    NotOpened(Box<TuiError>),
    /// The session has ended; nothing follows.
    Gone(SessionEnd),
}

impl Joins for News {
    fn join(&mut self, later: News) -> Option<News> {
        use SessionEvent::{Text, Thought};
        match (self, later) {
            (News::Session(Text { text }), News::Session(Text { text: more }))
            | (News::Session(Thought { text }), News::Session(Thought { text: more })) => {
                text.push_str(&more);
                None
            }
            (_, later) => Some(later),
        }
    }
}
