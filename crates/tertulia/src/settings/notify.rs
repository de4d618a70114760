//! `[notify] command`: the program that tells the user that a session needs them, for every frontend.

use super::Settings;

impl Settings {
    /// Returns the user's program with its arguments; empty without one.
    #[cfg(feature = "tui")]
    pub fn notify_command(&self) -> &[String] {
        &self.screen.notify.command
    }

    /// Returns the user's program with its arguments: none, since only the screen's settings name it.
    #[cfg(not(feature = "tui"))]
    pub fn notify_command(&self) -> &[String] {
        &[]
    }
}
