//! Inputs ([`Event`]) and outputs ([`Effect`]) of `update`.

use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use ratatui::layout::Size;
use std::time::Instant;
use tertulia_agents::approval::{PermissionChange, Verdict};
use tertulia_core::id::{Seq, SessionId};
use tertulia_engine::spec::{AgentSpec, PairSpec, ParticipantSpec, TeamSpec};

use super::live::{LiveCommand, LiveEvent, Ticket};
use super::store_service::{Answer, Request};

/// Input of the event loop.
#[derive(Debug)]
pub enum Event {
    /// Key press, repeat or release.
    Key(KeyEvent),
    /// Bracketed paste.
    Paste(String),
    /// Mouse event.
    Mouse(MouseEvent),
    /// The terminal has got or lost the focus.
    Focus(bool),
    /// The terminal was resized.
    Resize(Size),
    /// Event of the live session.
    Live(LiveEvent),
    /// Answer of the store service.
    Answer(Box<Answer>),
    /// Text from the external editor, or the reason for its failure.
    Edited(Result<String, String>),
    /// Signal that ends the program.
    Signal(u8),
    /// The terminal is gone.
    Unplugged,
    /// A timer expired.
    Tick,
}

/// Side effect that `update` requests.
#[derive(Debug)]
pub enum Effect {
    /// Sends a command to the session.
    Command(LiveCommand),
    /// Cancels the current turn.
    Cancel,
    /// Drops the session without waiting for the current turn.
    Abort,
    /// Answers a tool permission request.
    Verdict(Ticket, Verdict),
    /// Changes the tool permissions, also during a turn.
    Permit(PermissionChange),
    /// Sends a request to the store service.
    Ask(Box<Request>),
    /// Copies text to the clipboard.
    Copy(String),
    /// Rings the terminal bell.
    Ring,
    /// Shows a desktop notification.
    Desktop(String),
    /// Runs the user's notification command with a message.
    RunNotify(String),
    /// Opens text in the external editor.
    Edit(String),
    /// Redraws the whole screen.
    Redraw,
    /// Suspends the program and returns the terminal to the shell.
    Suspend,
}

/// Session to open next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Resumes a session.
    Resume {
        /// Session id.
        id: SessionId,
        /// Entry to scroll to first.
        at: Option<Seq>,
        /// Initial text of the input.
        draft: Option<String>,
        /// Team to use instead of the team recorded in the session.
        team: Option<TeamOverride>,
        /// What to do if another program has the session open.
        if_open: IfOpen,
    },
    /// Starts a chat session.
    New {
        /// Agent to use.
        agent: Option<String>,
        /// Model to use.
        model: Option<String>,
    },
    /// Starts a team session.
    Team {
        /// Path or name of the team file.
        config: String,
        /// Skips the question whether to resume an earlier session of the team.
        fresh: bool,
    },
    /// Starts a session of an instructor and a worker.
    Pair,
}

impl Next {
    /// Resumes a session unchanged.
    pub fn resume(id: SessionId) -> Next {
        Next::Resume {
            id,
            at: None,
            draft: None,
            team: None,
            if_open: IfOpen::Ask,
        }
    }

    /// Resumes a session that another program may have open.
    pub fn resume_if_open(id: SessionId, if_open: IfOpen) -> Next {
        Next::Resume {
            id,
            at: None,
            draft: None,
            team: None,
            if_open,
        }
    }

    /// Resumes a session with the team of `file` instead of the team file it was started with.
    pub fn resume_with(id: SessionId, file: Option<String>) -> Next {
        Next::Resume {
            id,
            at: None,
            draft: None,
            team: file.map(TeamOverride::new),
            if_open: IfOpen::Ask,
        }
    }

    /// Returns the participants of the session.
    pub fn participants(&self) -> ParticipantSpec {
        let chat = |agent: &Option<String>, model: &Option<String>| {
            ParticipantSpec::Chat(AgentSpec {
                agent: agent.clone(),
                model: model.clone(),
            })
        };
        match self {
            Next::Resume {
                team: Some(team), ..
            } => ParticipantSpec::Team(TeamSpec {
                config: Some(team.config.clone()),
                map: team.map.clone(),
                ..TeamSpec::default()
            }),
            Next::Resume { .. } => ParticipantSpec::Recorded,
            Next::New { agent, model } => chat(agent, model),
            Next::Team { config, .. } => ParticipantSpec::Team(TeamSpec {
                config: Some(config.clone()),
                ..TeamSpec::default()
            }),
            Next::Pair => ParticipantSpec::Pair(PairSpec::default()),
        }
    }
}

/// What to do with a session that another program has open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfOpen {
    /// Show it, and ask.
    #[default]
    Ask,
    /// Show it, without writing to it.
    Read,
    /// Continue in a fork, and send the draft there at once: an empty fork is of no use.
    Fork,
    /// Continue it; the other program continues in a fork.
    TakeOver,
}

/// Team that resumes a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamOverride {
    /// Path or name of the team file.
    pub config: String,
    /// Earlier speakers that members take over, each as `old=new`.
    pub map: Vec<String>,
}

impl TeamOverride {
    /// Uses a team file without mapping speakers.
    pub fn new(config: String) -> TeamOverride {
        TeamOverride {
            config,
            map: Vec::new(),
        }
    }
}

/// Current time, as wall clock and as monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall clock, for display.
    pub at: Timestamp,
    /// Monotonic clock, for measuring.
    pub tick: Instant,
}
