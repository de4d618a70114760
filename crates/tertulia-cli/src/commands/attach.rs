use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::serve::place;
use crate::tui::{self, attach::Server};
use crate::ui::Ui;

/// Follow a talk that a server leads, on the screen
///
/// The talk goes on without the screen: leave with Ctrl+\, close the terminal, drop the line, and attach again from
/// anywhere on this machine. Without REF it is the talk in which somebody is answering, else the last one, else a new
/// one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia serve --detach     a server that holds talks\n  \
    tertulia attach             the talk that goes on there, or a new one\n  \
    tertulia attach 5f3a9c1e    that one\n  \
    tertulia ps                 which there are")]
pub struct AttachArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// The server's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &AttachArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    if !ui.has_keyboard() || !ui.has_screen() || ui.is_dumb() {
        return Err(
            CommandError::new(ErrorKind::Usage, "a talk is followed on a terminal")
                .hint("programs follow it with `subscribe`: see docs/protocol.md"),
        );
    }
    let house = open::house(global, ui)?;
    let path = place::socket(args.socket.as_deref(), global, &house.settings);
    let server = Server { path, house };
    let attachment = match &args.reference {
        Some(reference) => {
            let row = server.house.find(reference)?;
            server.follow(row.summary.id)?
        }
        None => server.follow_newest()?,
    };
    ui.hold();
    let result = tui::follow(attachment, server, global, ui);
    ui.release();
    result
}
