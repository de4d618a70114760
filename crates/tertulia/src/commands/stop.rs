use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tertulia_core::id::Reference;
use tertulia_server::call::{Call, CallError, unexpected};
use tertulia_server::protocol::{Answer, Ask};

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::open;
use crate::serve::place;
use crate::ui::Ui;

/// How long to wait for a server to exit after it has closed the connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which to check whether the server has exited.
const GLANCE: Duration = Duration::from_millis(5);

/// Stop a session on a server, or the server
///
/// A running answer is cancelled and kept as an interrupted message. The session stays and can be resumed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia stop 5f3a9c1e     that session\n  \
    tertulia stop --all        every session, and the server")]
pub struct StopArgs {
    /// The session
    #[arg(
        value_name = "REF",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    reference: Option<String>,
    /// Every session, and the server
    #[arg(long)]
    all: bool,
    /// The server's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &StopArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::settings(global, ui)?;
    let path = place::socket(args.socket.as_deref(), global, &settings);
    ui.invocation.socket = place::flag(args.socket.as_deref(), &path);
    let mut call = Call::connect(&path)?;
    let Some(reference) = &args.reference else {
        return everything(call, &path, ui);
    };
    let session_id = match reference.parse()? {
        // Resolve "newest" in this project, not in the server's.
        Reference::Latest(_) => open::workspace(global, ui)?
            .find(reference)?
            .meta
            .id
            .to_string(),
        Reference::Id(_) | Reference::Words(_) => reference.clone(),
    };
    match call.ask(Ask::Stop { session_id })? {
        Answer::Stopped { session_id } => {
            if ui.json {
                ui.document(&json!({ "session_id": session_id }));
            } else {
                ui.note(&format!("Stopped {reference}."));
            }
            Ok(ExitCode::SUCCESS)
        }
        other => Err(unexpected(other).into()),
    }
}

/// Shuts the server down and waits until it is gone.
fn everything(mut call: Call, path: &Path, ui: &mut Ui) -> CommandResult<ExitCode> {
    call.writer.send(None, Ask::Shutdown)?;
    loop {
        match call.reader.read() {
            Ok(_) => {}
            Err(CallError::HungUp | CallError::Failed(_)) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // The server closes connections first and removes its socket last.
    let hung_up = Instant::now();
    while path.exists() && hung_up.elapsed() < PATIENCE {
        std::thread::sleep(GLANCE);
    }
    if ui.json {
        ui.document(&json!({ "stopped": true }));
    } else {
        ui.note("The server has stopped.");
    }
    Ok(ExitCode::SUCCESS)
}
