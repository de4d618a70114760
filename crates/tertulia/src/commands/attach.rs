use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::ui::Ui;
#[cfg(feature = "tui")]
use crate::{open, serve::place, tui_host};

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

#[cfg(feature = "tui")]
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
    let id = match &args.reference {
        Some(reference) => Some(workspace.find(reference)?.meta.id),
        None => None,
    };
    tui_host::follow(path, workspace, global, ui, async |server| {
        match (id, &args.agent) {
            (Some(id), _) => server.follow(id).await,
            (None, Some(agent)) => server.begin(Some(agent)).await,
            (None, None) => server.follow_newest().await,
        }
    })
}

#[cfg(not(feature = "tui"))]
pub fn run(_: &AttachArgs, _: &GlobalArgs, _: &mut Ui) -> CommandResult<ExitCode> {
    Err(CommandError::new(
        ErrorKind::Usage,
        "attach needs the full-screen interface, which was left out of this program",
    )
    .hint("programs use `subscribe`: see docs/protocol.md"))
}
