//! Events of the live session behind the TUI, and commands for it.

use tertulia_agents::AgentEvent;
use tertulia_agents::approval::ToolRequest;
use tertulia_engine::event::{SessionEnd, SessionEvent};
use tertulia_engine::spec::AgentSpec;

use super::event_queue::Merge;
use crate::error::TuiError;

/// Number of a permission request: an answer must not reach a later request.
pub type Ticket = u64;

/// Command for the live session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveCommand {
    /// Send a message; an empty one continues a pair's unfinished work, or asks the agent of a chat
    /// again.
    Say(String),
    /// Queue a message behind the running turn.
    Queue {
        /// Id of the message.
        client_id: String,
        /// The words.
        text: String,
    },
    /// Replace the words of a queued message; without words, let it and those after it wait meanwhile.
    EditQueued {
        /// Id of the message.
        client_id: String,
        /// The new words.
        text: Option<String>,
    },
    /// Remove a queued message, or a draft.
    Withdraw {
        /// Id of the message.
        client_id: String,
    },
    /// Keep what is in the input.
    KeepDraft(String),
    /// Run a shell command of the user.
    Run(String),
    /// Speak as this person from now on, or as whom the team waits for.
    As(Option<String>),
    /// Let another agent, or another model, answer from now on.
    Switch(AgentSpec),
    /// Compact the older part of the context.
    Compact,
    /// Leave: a session in this program ends, one on a server goes on.
    Leave,
    /// End the session, wherever it runs, and leave.
    End,
}

/// Event of the live session.
#[derive(Debug)]
pub enum LiveEvent {
    /// An event of the session.
    Session(SessionEvent),
    /// A permission request, answered by its ticket.
    Permission(Ticket, Box<ToolRequest>),
    /// The last command was refused; a notice has said why.
    Refused,
    /// Another program has this session open now, or none has any more. It is described by its name.
    Holder(Option<String>),
    /// Another program has taken the session over.
    TakenOver,
    /// A server has closed the idle session; it opens it again with the next message.
    Rested(String),
    /// The session could not be opened, or the connection was lost. Only [`LiveEvent::Gone`] follows.
    NotOpened(Box<TuiError>),
    /// The session has ended; nothing follows.
    Gone(SessionEnd),
}

impl Merge for LiveEvent {
    fn merge(&mut self, later: LiveEvent) -> Option<LiveEvent> {
        use SessionEvent::{Heard, Printed, Text, Thought};
        match (self, later) {
            (LiveEvent::Session(Text { text }), LiveEvent::Session(Text { text: more }))
            | (LiveEvent::Session(Printed { text }), LiveEvent::Session(Printed { text: more }))
            | (LiveEvent::Session(Thought { text }), LiveEvent::Session(Thought { text: more })) => {
                text.push_str(&more);
                None
            }
            (
                LiveEvent::Session(Heard {
                    event: AgentEvent::ToolOutput { id, tail },
                }),
                LiveEvent::Session(Heard {
                    event:
                        AgentEvent::ToolOutput {
                            id: same,
                            tail: newer,
                        },
                }),
            ) if *id == same => {
                *tail = newer;
                None
            }
            (_, later) => Some(later),
        }
    }
}
