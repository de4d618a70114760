//! Tells the user that a session needs them: bell, desktop notification, window title, own command.

use std::time::Duration;

pub use tertulia_engine::notification::{Occasion, message, run};

/// Turns that take longer are worth a notification, unless the settings say otherwise.
const AFTER: Duration = Duration::from_secs(10);

/// How the user is told, from the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Whether the terminal's bell rings.
    pub bell: bool,
    /// Whether the terminal shows a desktop notification (OSC 9).
    pub desktop: bool,
    /// Whether the title of the window shows the session and its state (OSC 2).
    pub title: bool,
    /// Shortest turn that is announced when it ends.
    pub after: Duration,
    /// Program to run, with its arguments; none if empty.
    pub command: Vec<String>,
    /// Whether the program also gets content of the session.
    pub content: bool,
}

impl Default for Notify {
    fn default() -> Notify {
        Notify {
            bell: true,
            desktop: true,
            title: true,
            after: AFTER,
            command: Vec::new(),
            content: false,
        }
    }
}

impl Notify {
    /// Settings under which nothing is announced.
    pub fn silent() -> Notify {
        Notify {
            bell: false,
            desktop: false,
            title: false,
            ..Notify::default()
        }
    }
}
