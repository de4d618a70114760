//! Tells the user that a session needs them, by a program of their own.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tertulia_core::id::SessionId;

/// Maximum length of the content in a message, in characters.
pub const LONGEST_TEXT: usize = 500;
/// Longest run of the user's command.
const LIMIT: Duration = Duration::from_secs(30);
/// Pause before the command is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

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

/// JSON object that the user's command reads. `text` is content of the session, for users who ask for
/// it: what a tool would do, or the beginning of an answer.
pub fn message(session: SessionId, occasion: Occasion, line: &str, text: Option<&str>) -> String {
    let kind = occasion.name();
    let mut object = json!({ "session": session.to_string(), "kind": kind, "line": line });
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        let cut: String = text.chars().take(LONGEST_TEXT).collect();
        object["text"] = cut.into();
    }
    object.to_string()
}

/// Runs the user's command with a message on its standard input. It has been started and has the message on
/// return, so that it also runs if the program ends now; a thread ends a command that takes too long.
pub fn run(command: &[String], message: &str) {
    let Some((program, arguments)) = command.split_first() else {
        return;
    };
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // A notification that fails must not disturb the session.
    let Ok(mut child) = started else { return };
    if let Some(mut stdin) = child.stdin.take() {
        // A program need not read it. One line fits into a pipe, so this does not block.
        let _ = writeln!(stdin, "{message}");
    }
    std::thread::spawn(move || attend(child));
}

fn attend(mut child: Child) {
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
        // Reading a pipe waits for its writer.
        let made = Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let script = format!("cat > {}", file.display());
        let command = ["sh", "-c", &script].map(str::to_owned);
        let id: SessionId = "01890000-0000-7000-8000-000000000001".parse().unwrap();
        let line = Occasion::Permission.line("sage");
        run(&command, &message(id, Occasion::Permission, &line, None));
        let told = std::fs::read_to_string(file).unwrap();
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let expected = json!({
            "kind": "permission", "line": "sage asks for permission", "session": id.to_string(),
        });
        assert_eq!(told, expected);
        let asked_for = message(id, Occasion::Permission, &line, Some("rm -r x"));
        assert!(asked_for.contains("\"text\":\"rm -r x\""), "{asked_for}");
        run(&["/no/such/program".to_owned()], "");
        run(&[], "");
    }
}
