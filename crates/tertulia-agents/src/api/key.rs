//! The API key: where it comes from, and how it is kept secret.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::process::{self, Limits, ProcessError, Program};
use crate::{AgentError, FailureKind};

/// Time limit of the command that prints the key.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of a key in bytes.
const LONGEST: usize = 64 * 1024;

/// A secret that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the secret, without the white space around it.
    pub fn new(secret: &str) -> Secret {
        Secret(secret.trim().to_owned())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the secret in a text that may contain it.
    pub(super) fn cut_out_of(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Source of the API key.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// Looked for in this variable, which is not set.
    Missing {
        /// The variable.
        variable: String,
    },
    /// The server needs no key.
    NotNeeded,
    /// Found in the environment.
    Value {
        /// The key.
        secret: Secret,
        /// Variable in which it was found.
        variable: String,
    },
    /// Printed by a program on its standard output.
    Command {
        /// The program: a path, or a name on the search path.
        command: PathBuf,
        /// Arguments of the program.
        args: Vec<String>,
        /// Where the program was found, if it was.
        found: Option<PathBuf>,
    },
}

// Arguments may hold secrets, too.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Missing { variable } => write!(f, "Missing({variable})"),
            Key::NotNeeded => f.write_str("NotNeeded"),
            Key::Value { variable, .. } => write!(f, "Value({variable}: ***)"),
            Key::Command { command, .. } => write!(f, "Command({})", command.display()),
        }
    }
}

impl Key {
    /// Returns what the user should check when the key is not accepted.
    pub(super) fn hint(&self, agent: &str) -> String {
        match self {
            Key::Missing { variable } => format!("set {variable}"),
            Key::NotNeeded => format!("the server wants a key: set `key_env` in [agents.{agent}]"),
            Key::Value { variable, .. } => format!("check the key in {variable}"),
            Key::Command { command, .. } => format!(
                "check `key_command` in [agents.{agent}] ({})",
                command.display()
            ),
        }
    }
}

/// Caches the key that a command printed, so that the command runs once.
#[derive(Default)]
pub(super) struct Keyring {
    told: Mutex<Option<Secret>>,
}

impl Keyring {
    /// Returns the key, or `None` if none is needed.
    pub(super) async fn get(
        &self,
        key: &Key,
        agent: &str,
        marker: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<Secret>, AgentError> {
        let (command, args) = match key {
            Key::NotNeeded => return Ok(None),
            Key::Value { secret, .. } => return Ok(Some(secret.clone())),
            Key::Missing { variable } => return Err(missing(variable)),
            Key::Command { command, args, .. } => (command, args),
        };
        let mut told = self.told.lock().await;
        if let Some(secret) = &*told {
            return Ok(Some(secret.clone()));
        }
        let program = Program {
            without: Vec::new(),
            command: command.clone(),
            args: args.clone(),
            env: Vec::new(),
            work_dir: None,
            marker: format!("{marker}-key-{}", std::process::id()),
            confined: None,
        };
        let secret = ask(&program, cancel).await.map_err(|error| match error {
            Some(message) => AgentError::new(
                FailureKind::Auth,
                format!("the key command {} {message}", command.display()),
            )
            .hint(key.hint(agent)),
            None => AgentError::cancelled(),
        })?;
        *told = Some(secret.clone());
        Ok(Some(secret))
    }

    /// Drops the cached key: it was not accepted, and may have been renewed.
    pub(super) async fn forget(&self) {
        *self.told.lock().await = None;
    }
}

fn missing(variable: &str) -> AgentError {
    AgentError::new(FailureKind::Auth, format!("{variable} is not set"))
        .hint(format!("set {variable} to your key"))
}

/// Runs the program. Its output may contain the key or a part of it: no error repeats any of it.
async fn ask(program: &Program, cancel: &CancellationToken) -> Result<Secret, Option<String>> {
    let limits = Limits {
        total: Some(PATIENCE),
        output: LONGEST,
        ..Limits::default()
    };
    let (chunks, mut received) = mpsc::channel::<Vec<u8>>(16);
    let collect = async {
        let mut output = Vec::new();
        while let Some(chunk) = received.recv().await {
            output.extend(chunk);
        }
        output
    };
    let run = process::run(program, b"", &limits, cancel, chunks);
    let (finished, output) = tokio::join!(run, collect);
    match finished {
        Ok(finished) if !finished.status.success() => {
            Err(Some(format!("ended with {}", finished.status)))
        }
        Ok(_) => match std::str::from_utf8(&output).map(Secret::new) {
            Ok(secret) if !secret.0.is_empty() => Ok(secret),
            Ok(_) => Err(Some("told no key".to_owned())),
            Err(_) => Err(Some("told something that is not text".to_owned())),
        },
        Err(ProcessError::Cancelled) => Err(None),
        Err(ProcessError::Timeout { limit, .. }) => {
            Err(Some(format!("was not done after {} s", limit.as_secs())))
        }
        Err(error) => Err(Some(format!("cannot be run: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-very-secret";

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new(&format!("  {KEY}\n"));
        let key = Key::Value {
            secret: secret.clone(),
            variable: "SOME_KEY".to_owned(),
        };
        let shown = format!("{secret} {secret:?} {key:?} {key:#?} {}", key.hint("x"));
        assert!(!shown.contains(KEY), "{shown}");
        assert!(shown.contains("SOME_KEY"), "{shown}");
        assert_eq!(secret.reveal(), KEY);
    }

    #[test]
    fn a_secret_is_cut_out_of_what_others_say() {
        let secret = Secret::new(KEY);
        assert_eq!(
            secret.cut_out_of(&format!("bad key {KEY}, really {KEY}")),
            "bad key ***, really ***"
        );
        assert_eq!(Secret::new("").cut_out_of("as it is"), "as it is");
    }
}
