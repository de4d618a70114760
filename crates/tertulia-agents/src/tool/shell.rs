//! `shell`: runs a command, with all its processes and output.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::arguments::Arguments;
use super::cut::{Ends, within};
use super::tail::Tail;
use super::{ToolLimits, ToolOutput, git};
use crate::ToolSpec;
use crate::process::{self, Finished, Limits, ProcessError, Program, Utf8Stream};
use tertulia_core::preview::visible;

/// Maximum length of a command in bytes; longer ones do not fit into one argument.
pub(super) const LONGEST: usize = 100_000;
/// Number of bytes reserved for the exit status line.
const STATUS: usize = 160;
/// Joins both streams before the command begins, so that their order is kept. The command is an
/// argument, so that the wrapper cannot misinterpret any part of it.
const WRAPPER: &str = "exec 2>&1; exec sh -c -- \"$1\"";

pub(super) fn spec(limits: &ToolLimits) -> ToolSpec {
    ToolSpec {
        name: "shell".to_owned(),
        description: format!(
            "Runs a command with `sh -c` in the work folder, and gives what it printed (both streams, in order) \
             and its exit status. It has no input and no terminal. It is ended after {} seconds, or after \
             `timeout_seconds`; everything it started ends with it. With `background` it goes on while you do \
             something else, and `shell_poll` looks at it. Of long output the middle is left out. For reading, \
             finding and changing files use the other tools.",
            limits.time.min(limits.longest).as_secs()
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command, as it would be typed into a shell."},
                "timeout_seconds": {"type": "integer", "minimum": 1, "description": format!("End it after so many seconds, at most {}.", limits.longest.as_secs())},
                "background": {"type": "boolean", "description": "Start it and go on at once; it ends with your answer at the latest."},
                "description": {"type": "string", "description": "What it is for, in a few words."}
            },
            "required": ["command"],
            "additionalProperties": false
        }),
    }
}

/// Where and how a command runs.
pub(super) struct Run<'a> {
    pub(super) work_dir: &'a Path,
    pub(super) limits: &'a ToolLimits,
    /// Variables that the command does not inherit.
    pub(super) hidden: &'a [String],
    /// Identifies the processes of the command.
    pub(super) marker: &'a str,
    pub(super) cancel: &'a CancellationToken,
}

#[derive(Debug)]
pub(super) struct Shell {
    command: String,
    time: Option<Duration>,
    background: bool,
}

impl Shell {
    pub(super) fn parse(arguments: &Arguments<'_>) -> Result<Shell, String> {
        let command: String = arguments.required("command")?;
        let wrong = |why: &str| Err(format!("the argument `command` is wrong: {why}"));
        if command.trim().is_empty() {
            return wrong("it is empty");
        }
        if command.contains('\0') {
            return wrong("a command cannot contain NUL");
        }
        if command.len() > LONGEST {
            return wrong("it is too long; write a script with file_write and run that");
        }
        Ok(Shell {
            command,
            time: arguments
                .whole("timeout_seconds", 1)?
                .map(Duration::from_secs),
            background: arguments.optional("background")?.unwrap_or(false),
        })
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }

    pub(super) fn is_in_background(&self) -> bool {
        self.background
    }

    /// Returns the time limit: the one that the agent requests, within bounds. A command in the
    /// background has all the time that there is.
    fn time(&self, limits: &ToolLimits) -> Duration {
        let usual = match self.background {
            true => limits.longest,
            false => limits.time,
        };
        self.time.unwrap_or(usual).min(limits.longest)
    }

    /// Returns the same read-only git command, without programs from the repository's
    /// configuration.
    pub(super) fn looking(self) -> Shell {
        Shell {
            command: git::looking(&self.command),
            ..self
        }
    }

    /// Returns the key for "always": this command only.
    pub(super) fn key(&self) -> String {
        format!("shell {}", self.command)
    }

    pub(super) fn preview(&self) -> String {
        visible(&self.command)
    }

    /// Runs the command. Returns when none of its processes is left.
    pub(super) async fn run(&self, run: Run<'_>, tail: &watch::Sender<String>) -> ToolOutput {
        let limits = run.limits;
        let program = program(&self.command, run.work_dir, run.hidden, run.marker);
        let process_limits = Limits {
            total: Some(self.time(limits)),
            // All output passes through; `keep_ends` bounds what is kept.
            output: usize::MAX,
            ..Limits::default()
        };
        let (chunks, received) = mpsc::channel(16);
        let most = limits.output.saturating_sub(STATUS.min(limits.output / 2));
        let (finished, printed) = tokio::join!(
            process::run(&program, b"", &process_limits, run.cancel, chunks),
            keep_ends(received, most, tail)
        );
        let told = told(finished, printed);
        ToolOutput {
            text: within(told.text, limits.output),
            ok: told.ok,
        }
    }
}

/// Returns the program that runs a command.
pub(super) fn program(command: &str, work_dir: &Path, hidden: &[String], marker: &str) -> Program {
    Program {
        command: "sh".into(),
        args: ["-c", WRAPPER, "sh", command].map(str::to_owned).into(),
        env: Vec::new(),
        without: hidden.to_vec(),
        work_dir: Some(work_dir.to_owned()),
        marker: marker.to_owned(),
        confined: None,
    }
}

async fn keep_ends(
    mut received: mpsc::Receiver<Vec<u8>>,
    most: usize,
    tail: &watch::Sender<String>,
) -> String {
    let (mut decoder, mut ends) = (Utf8Stream::default(), Ends::new(most));
    let mut newest = Tail::default();
    while let Some(chunk) = received.recv().await {
        let text = without_nul(decoder.push(&chunk));
        ends.push(&text);
        newest.push(&text);
        // Fails if the receiver is gone: the output is not watched.
        let _ = tail.send(newest.text());
    }
    ends.push(&decoder.finish());
    ends.finish()
}

pub(super) fn without_nul(text: String) -> String {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}"),
        false => text,
    }
}

/// Combines the output with a line about the exit status.
pub(super) fn told(finished: Result<Finished, ProcessError>, mut text: String) -> ToolOutput {
    let ok = finished
        .as_ref()
        .is_ok_and(|finished| finished.status.success());
    let ending = match finished {
        Ok(finished) => status(finished.status),
        Err(ProcessError::Timeout { limit, .. }) => format!(
            "not finished after {} s: ended, with all that it had started",
            limit.as_secs_f32()
        ),
        Err(ProcessError::Cancelled) => "stopped, with all that it had started".to_owned(),
        Err(error) => format!("it cannot be run: {error}"),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{ending}]"));
    ToolOutput { text, ok }
}

fn status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
