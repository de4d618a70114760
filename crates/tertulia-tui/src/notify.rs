//! Tells the user that a session needs them: bell, desktop notification, window title, own command.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tertulia_core::id::SessionId;

/// Turns that take longer are worth a notification, unless the settings say otherwise.
const AFTER: Duration = Duration::from_secs(10);
/// Longest run of the user's command.
const LIMIT: Duration = Duration::from_secs(30);
/// Pause before the command is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

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
}

impl Default for Notify {
    fn default() -> Notify {
        Notify {
            bell: true,
            desktop: true,
            title: true,
            after: AFTER,
            command: Vec::new(),
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

/// Why the user is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// An agent asks for permission.
    Permission,
    /// The others wait for a person.
    Person,
    /// A turn has ended.
    Ended,
}

impl Occasion {
    /// Name for the user's command.
    pub fn name(self) -> &'static str {
        match self {
            Occasion::Permission => "permission",
            Occasion::Person => "person",
            Occasion::Ended => "ended",
        }
    }

    /// One line for the user that says nothing of the session's content.
    pub fn line(self, who: &str) -> String {
        match self {
            Occasion::Permission => format!("{who} asks for permission"),
            Occasion::Person => "the others wait for you".to_owned(),
            Occasion::Ended => format!("{who} is done"),
        }
    }
}

/// JSON object that the user's command reads.
pub fn message(session: SessionId, occasion: Occasion, line: &str) -> String {
    let kind = occasion.name();
    json!({ "session": session.to_string(), "kind": kind, "line": line }).to_string()
}

/// Runs the user's command with a message on its standard input, on a thread of its own, which
/// ends a command that takes too long.
pub fn run(command: &[String], message: String) {
    let Some((program, arguments)) = command.split_first() else {
        return;
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A notification that fails must not disturb the session.
    std::thread::spawn(move || {
        if let Ok(child) = command.spawn() {
            attend(child, &message);
        }
    });
}

fn attend(mut child: Child, message: &str) {
    if let Some(mut stdin) = child.stdin.take() {
        // A program need not read it. One line fits into a pipe, so this does not block.
        let _ = writeln!(stdin, "{message}");
    }
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(PAUSE),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_one_object_without_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told");
        let script = format!("cat > {0}.part && mv {0}.part {0}", file.display());
        let command = ["sh", "-c", &script].map(str::to_owned);
        let id = crate::test_support::id(1);
        let line = Occasion::Permission.line("sage");
        run(&command, message(id, Occasion::Permission, &line));
        let began = Instant::now();
        while !file.exists() && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(PAUSE);
        }
        let told = std::fs::read_to_string(file).unwrap();
        let expected = format!(
            r#"{{"kind":"permission","line":"sage asks for permission","session":"{id}"}}"#
        );
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(told, expected);
        run(&["/no/such/program".to_owned()], String::new());
        run(&[], String::new());
    }
}
