use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::args::{ApproveMode, GlobalArgs};
use crate::error::CommandResult;
use crate::open;
use crate::serve::{Manner, detach, over_socket, over_stdio, place};
use crate::ui::Ui;

/// Serve talks to other programs
///
/// One line of JSON per request and answer: docs/protocol.md tells which. On a socket many clients can talk at
/// once, each in its own session; agents go on when a client leaves, and what they say is saved as ever. Only
/// you can connect.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia serve --stdio                   one client, on standard input and output\n  \
    tertulia serve --socket                  many, on a socket in $XDG_RUNTIME_DIR\n  \
    tertulia serve --socket ./talk.sock      the same elsewhere\n  \
    tertulia serve --detach --idle-exit 600  stays when the terminal goes, ends when nobody needs it\n  \
    echo '{\"type\":\"query\",\"query\":\"hello\"}' | tertulia serve --stdio\n\n\
    `tertulia ps` shows what it does, `tertulia stop REF` ends a talk, `tertulia stop --all` the server.")]
pub struct ServeArgs {
    /// One client on standard input and output; ends when that is closed and everything is answered
    #[arg(long, conflicts_with_all = ["socket", "detach", "idle_exit"])]
    stdio: bool,
    /// On a Unix socket [default: tertulia/tertulia.sock in $XDG_RUNTIME_DIR, else with the data]
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    socket: Option<Option<PathBuf>>,
    /// Stay when the terminal goes
    #[arg(long)]
    detach: bool,
    /// The one that stays
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
    /// End when nobody has been connected and nobody has answered for so long
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,
    /// How many kilobytes may wait for a client that does not read, before it is hung up on
    #[arg(long, value_name = "KB", hide = true)]
    queue: Option<usize>,
    /// Which tools an agent may use: what only looks runs at once, the rest is asked about (ask) or
    /// refused (low); all runs everything, none offers none [default: ask]
    #[arg(long, value_enum, value_name = "MODE")]
    approve: Option<ApproveMode>,
}

pub fn run(args: &ServeArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let manner = Manner {
        approve: args.approve,
        idle_exit: args.idle_exit.map(Duration::from_secs),
        queue: args.queue.map(|kilobytes| kilobytes.saturating_mul(1000)),
    };
    if args.stdio {
        return over_stdio(open::house(global, ui)?, manner, ui);
    }
    let settings = open::settings(global, ui)?;
    let path = place::socket(
        args.socket.iter().flatten().next().map(PathBuf::as_path),
        global,
        &settings,
    );
    if args.detach {
        return Ok(match detach::start(ui)? {
            Ok(pid) => {
                tell(&path, pid, ui);
                ExitCode::SUCCESS
            }
            Err(code) => code,
        });
    }
    if args.detached {
        detach::leave_terminal(ui);
    }
    let house = open::house(global, ui)?;
    let ready = |ui: &mut Ui| match args.detached {
        true => ui.line(detach::READY),
        false => tell(&path, std::process::id(), ui),
    };
    over_socket(house, manner, &path, ready, ui)
}

fn tell(path: &std::path::Path, pid: u32, ui: &mut Ui) {
    if ui.json {
        ui.document(&json!({ "socket": path.display().to_string(), "pid": pid }));
    } else {
        ui.note(&format!("Listening on {} (process {pid})", path.display()));
    }
}
