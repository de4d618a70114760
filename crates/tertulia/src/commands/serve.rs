use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::args::{ApproveMode, GlobalArgs};
use crate::error::CommandResult;
#[cfg(feature = "web")]
use crate::error::{CommandError, ErrorKind};
use crate::open;
use crate::serve::web::WebPage;
use crate::serve::{Manner, detach, over_socket, over_stdio, place};
use crate::ui::Ui;

/// Serve sessions to other programs
///
/// One line of JSON per request and answer: see docs/protocol.md. On a socket many clients can connect at once,
/// each with its own current session; agents keep running when a client disconnects, and their answers are saved.
/// Only you can connect.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia serve --stdio                   one client, on standard input and output\n  \
    tertulia serve --socket                  many clients, on a socket in $XDG_RUNTIME_DIR\n  \
    tertulia serve --socket ./my.sock        on a socket of your choice\n  \
    tertulia serve --detach --idle-exit 600  in the background, until it is idle for 10 minutes\n  \
    tertulia serve --detach --web            in the background, with the web page\n  \
    echo '{\"type\":\"query\",\"query\":\"hello\"}' | tertulia serve --stdio\n\n\
    `tertulia ps` lists its sessions, `tertulia stop REF` stops one, `tertulia stop --all` stops the server.")]
pub struct ServeArgs {
    /// One client on standard input and output; ends when that is closed and everything is answered
    #[arg(long, conflicts_with_all = ["socket", "detach", "idle_exit"])]
    stdio: bool,
    /// On a Unix socket [default: tertulia/tertulia.sock in $XDG_RUNTIME_DIR, else with the data]
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    socket: Option<Option<PathBuf>>,
    /// Run in the background
    #[arg(long)]
    detach: bool,
    /// The one that stays
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
    /// Exit after SECONDS without clients or running turns
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,
    /// How many kilobytes may wait for a client that does not read, before it is hung up on
    #[arg(long, value_name = "KB", hide = true)]
    queue: Option<usize>,
    /// Tool policy: read-only tools always run; others ask (ask), are denied (low) or all run (all); none
    /// turns tools off [default: ask]
    #[arg(long, value_enum, value_name = "MODE")]
    approve: Option<ApproveMode>,
    /// Serve the web page, too: as `tertulia web`, without opening a browser
    #[cfg(feature = "web")]
    #[arg(long, conflicts_with = "stdio")]
    web: bool,
    #[cfg(feature = "web")]
    #[command(flatten)]
    page: super::web::PageArgs,
}

pub fn run(args: &ServeArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    #[cfg(feature = "web")]
    if !args.web && args.page.is_given() {
        let words = "the address and the encryption of a page need --web";
        return Err(CommandError::new(ErrorKind::Usage, words));
    }
    let manner = Manner {
        approve: args.approve,
        idle_exit: args.idle_exit.map(Duration::from_secs),
        queue: args.queue.map(|kilobytes| kilobytes.saturating_mul(1000)),
        #[cfg(feature = "web")]
        web: args.web.then(|| args.page.options()).transpose()?,
        #[cfg(not(feature = "web"))]
        web: None,
    };
    if args.stdio {
        return over_stdio(open::workspace(global, ui)?, &manner, ui);
    }
    let settings = open::settings(global, ui)?;
    let named = args.socket.iter().flatten().next().map(PathBuf::as_path);
    let path = place::socket(named, global, &settings);
    ui.invocation.socket = place::flag(named, &path);
    if args.detach {
        return Ok(match detach::start(ui)? {
            Ok(pid) => {
                tell(&path, pid, ui);
                #[cfg(feature = "web")]
                if args.web {
                    return super::web::code(false, global, ui);
                }
                ExitCode::SUCCESS
            }
            Err(code) => code,
        });
    }
    if args.detached {
        detach::leave_terminal(ui);
    }
    let workspace = open::workspace(global, ui)?;
    let ready = |page: Option<&WebPage>, ui: &mut Ui| match page {
        _ if args.detached => ui.line(detach::READY),
        #[cfg(feature = "web")]
        Some(page) => super::web::tell(page, &path, ui),
        _ => tell(&path, std::process::id(), ui),
    };
    over_socket(workspace, &manner, &path, ready, ui)
}

fn tell(path: &std::path::Path, pid: u32, ui: &mut Ui) {
    if ui.json {
        ui.document(&json!({ "socket": path.display().to_string(), "pid": pid }));
    } else {
        ui.note(&format!("Listening on {} (process {pid})", path.display()));
    }
}
