//! Passphrases: printed by a command, or typed at the terminal without an echo.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use age::secrecy::{ExposeSecret, SecretString};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tertulia_store::KeyError;
use zeroize::Zeroizing;

use super::KeyResult;

/// Set when the terminal belongs to the full screen, or there is none.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Never asks at the terminal from now on: the full screen or a server has begun.
pub fn forbid_prompts() {
    FORBIDDEN.store(true, Ordering::Relaxed);
}

/// Returns true if the user can be asked.
pub fn can_ask() -> bool {
    !FORBIDDEN.load(Ordering::Relaxed) && rustix::termios::isatty(io::stdin()) && terminal().is_ok()
}

fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Runs the command of the settings, and returns the first line that it prints.
pub fn of_command(command: &str) -> KeyResult<SecretString> {
    let failed = |why: String| KeyError(format!("`passphrase_command` of [seal] {why}"));
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("failed ({})", output.status)));
    }
    let printed = Zeroizing::new(output.stdout);
    let text = std::str::from_utf8(&printed).map_err(|_| failed("printed no text".to_owned()))?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(SecretString::from(line.to_owned())),
        None => Err(failed("printed nothing".to_owned())),
    }
}

/// Asks for the passphrase of a sealed session.
pub fn ask() -> KeyResult<SecretString> {
    typed("Passphrase: ")
}

/// Asks for a new passphrase, twice.
pub fn ask_for_new() -> KeyResult<SecretString> {
    loop {
        if !can_ask() {
            return Err(KeyError(
                "set `identity` or `passphrase_command` of [seal] in your settings".to_owned(),
            ));
        }
        let first = typed("New passphrase: ")?;
        if first.expose_secret().is_empty() {
            return Err(KeyError("an empty passphrase seals nothing".to_owned()));
        }
        let second = typed("The same again: ")?;
        if first.expose_secret() == second.expose_secret() {
            return Ok(first);
        }
        say("They differ.");
    }
}

/// Prints a line on the terminal.
pub fn say(text: &str) {
    if let Ok(mut terminal) = terminal() {
        // Only a hint: the prompt that follows shows whether the terminal works.
        let _ = writeln!(terminal, "{text}");
    }
}

/// Restores the terminal's echo on drop.
struct Silent<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

fn typed(question: &str) -> KeyResult<SecretString> {
    if !can_ask() {
        return Err(KeyError(
            "its passphrase is needed, and it cannot be asked for here: set `passphrase_command` of [seal] in your settings"
                .to_owned(),
        ));
    }
    let read = || -> io::Result<Zeroizing<String>> {
        let terminal = terminal()?;
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent
            .local_modes
            .insert(LocalModes::ECHONL | LocalModes::ICANON);
        // First, so that nothing that is typed at the question is shown or lost.
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        let _silent = Silent {
            terminal: &terminal,
            before,
        };
        write!(&terminal, "{question}")?;
        let mut line = Zeroizing::new(String::new());
        BufReader::new(&terminal).read_line(&mut line)?;
        Ok(line)
    };
    let line = read().map_err(|error| KeyError(format!("the terminal cannot be read: {error}")))?;
    if line.is_empty() {
        return Err(KeyError("no passphrase was given".to_owned()));
    }
    let passphrase = line.trim_end_matches(['\n', '\r']);
    Ok(SecretString::from(passphrase.to_owned()))
}
