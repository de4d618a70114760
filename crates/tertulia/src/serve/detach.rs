//! Runs the server in the background: starts the same program again, detached from the terminal.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::ui::Ui;

/// Flag of the process that starts the background server.
const FLAG: &str = "--detach";
/// Flag of the background server itself.
const STAYS: &str = "--detached";
/// Line that the background server prints once it listens.
pub const READY: &str = "listening";

/// Starts the background server and waits until it listens. Returns its process id, or its exit
/// code if it fails to start.
pub fn start(ui: &mut Ui) -> CommandResult<Result<u32, ExitCode>> {
    let failed = |error: std::io::Error| {
        CommandError::new(ErrorKind::Failed, "the server cannot be started").because(error)
    };
    let program = std::env::current_exe().map_err(failed)?;
    let same = |word: OsString| match word == FLAG {
        true => OsString::from(STAYS),
        false => word,
    };
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1).map(same))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(failed)?;
    }
    if line.trim() == READY {
        return Ok(Ok(child.id()));
    }
    not_started(child, ui).map(Err)
}

/// Shows the error output of a server that failed to start, and returns its exit code.
fn not_started(mut child: Child, ui: &mut Ui) -> CommandResult<ExitCode> {
    let mut words = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // Unreadable output is not shown; the exit code still is.
        let _ = stderr.read_to_string(&mut words);
    }
    ui.ask(words.trim_end());
    let status = child.wait().map_err(|error| {
        CommandError::new(ErrorKind::Failed, "the server cannot be started").because(error)
    })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.filter(|code| *code != 0).unwrap_or(1)))
}

/// Detaches the background server from its terminal.
pub fn leave_terminal(ui: &mut Ui) {
    if let Err(error) = rustix::process::setsid() {
        ui.detail(&format!("this server ends with its terminal: {error}"));
    }
}
