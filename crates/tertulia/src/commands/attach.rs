use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::serve::place;
use crate::tui::{self, attach::Server};
use crate::ui::Ui;

/// Attach the terminal to a session on a server
///
/// The session keeps running without the terminal: detach with Ctrl+\, close the terminal, lose the connection, and
/// attach again from anywhere on this machine. Without REF it is the session in which an agent is answering, else the
/// last one, else a new one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia serve --detach     start a server in the background\n  \
    tertulia attach             the running session, or a new one\n  \
    tertulia attach 5f3a9c1e    that session\n  \
    tertulia attach --agent codex   a new session with this agent\n  \
    tertulia ps                 list the sessions of the server")]
pub struct AttachArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Start a new session with this agent
    #[arg(long, value_name = "NAME", conflicts_with = "reference")]
    agent: Option<String>,
    /// The server's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &AttachArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    if !ui.has_keyboard() || !ui.has_screen() || ui.is_dumb() {
        return Err(
            CommandError::new(ErrorKind::Usage, "attach needs a terminal")
                .hint("programs use `subscribe`: see docs/protocol.md"),
        );
    }
    let workspace = open::workspace(global, ui)?;
    let path = place::socket(args.socket.as_deref(), global, &workspace.settings);
    ui.invocation.socket = place::flag(args.socket.as_deref(), &path);
    let server = Server { path, workspace };
    let attachment = match (&args.reference, &args.agent) {
        (Some(reference), _) => {
            let row = server.workspace.find(reference)?;
            server.follow(row.meta.id)?
        }
        (None, Some(agent)) => server.begin(Some(agent))?,
        (None, None) => server.follow_newest()?,
    };
    ui.hold();
    let result = tui::follow(attachment, server, global, ui);
    ui.release();
    result
}
