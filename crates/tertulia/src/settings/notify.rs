//! `[notify] command`: the program that tells the user that a session needs them, for every frontend.

use tertulia_core::id::SessionId;
use tertulia_engine::notification::{self, Occasion};

use super::Settings;

/// The user's program.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    command: Vec<String>,
    /// Whether the program also gets content of the session.
    content: bool,
}

impl Caller {
    /// Runs the program, if there is one.
    pub fn call(&self, session: SessionId, occasion: Occasion, who: &str, text: &str) {
        if !self.command.is_empty() {
            let (line, text) = (occasion.line(who), Some(text).filter(|_| self.content));
            let message = notification::message(session, occasion, &line, text);
            notification::run(&self.command, &message);
        }
    }
}

impl Settings {
    /// Returns the user's program.
    #[cfg(feature = "tui")]
    pub fn caller(&self) -> Caller {
        let notify = &self.screen.notify;
        Caller {
            command: notify.command.clone(),
            content: notify.content,
        }
    }

    /// Returns no program, since only the screen's settings name one.
    #[cfg(not(feature = "tui"))]
    pub fn caller(&self) -> Caller {
        Caller::default()
    }
}
