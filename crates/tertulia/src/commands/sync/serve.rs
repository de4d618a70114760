//! The far end of a link: answers on standard output what is asked on standard input.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde::Serialize;
use tertulia_store::sync::Branches;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::link::lines::{Arrival, Cut, Lines, LinkLimits};
use crate::link::watch_store;
use crate::link::wire::{self, Answer, Failure, Hello, Request};
use crate::open::{self, Workspace};
use crate::ui::Ui;

/// Exchange sessions over standard input and output; `tertulia sync ssh://…` runs it
#[derive(Debug, Args)]
pub struct SyncServeArgs {
    /// Path of the store: a database, or a folder of logs
    #[arg(long, value_name = "PATH")]
    at: Option<String>,
}

pub fn run(args: &SyncServeArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let mut global = global.clone();
    if let Some(path) = &args.at {
        global.store = Some(store_at(path));
    }
    let is_new = args.at.is_some() && super::is_absent(&open::quiet_settings(&global, ui)?.store);
    let workspace = open::workspace(&global, ui)?;
    let store = workspace.settings.store.clone();
    if is_new {
        // Standard error of this end is that of the near end.
        ui.note(&format!("a new store was made at {store}"));
    }
    let limits = LinkLimits::default();
    let lines = Lines::on_standard_streams(limits).map_err(|error| {
        CommandError::new(ErrorKind::Failed, "requests cannot be read").because(error)
    })?;
    match serve(&workspace, &lines, limits) {
        Ok(()) | Err(Served::Link(Cut::Ended)) => Ok(ExitCode::SUCCESS),
        Err(Served::Link(cut)) => Err(CommandError::new(
            ErrorKind::Failed,
            format!("the other end of the link is not used any more: {cut}"),
        )),
        Err(Served::Failed(error)) => Err(error),
    }
}

/// Why serving ended.
enum Served {
    Link(Cut),
    Failed(CommandError),
}

impl From<Cut> for Served {
    fn from(cut: Cut) -> Served {
        Served::Link(cut)
    }
}

impl From<CommandError> for Served {
    fn from(error: CommandError) -> Served {
        Served::Failed(error)
    }
}

fn serve(workspace: &Workspace, lines: &Lines, limits: LinkLimits) -> Result<(), Served> {
    let store = &workspace.settings.store;
    let hello = Hello {
        tertulia_sync: wire::VERSION,
        store: store.to_string(),
    };
    say(lines, limits, &hello)?;
    let branches = Branches::of_sessions(&workspace.sessions);
    let has_changed = Arc::new(AtomicBool::new(false));
    let mut watcher = None;
    loop {
        if has_changed.swap(false, Ordering::SeqCst) {
            say(lines, limits, &Answer::<()>::Changed)?;
        }
        // Who watches may have nothing to ask for long.
        let arrival = match watcher {
            None => lines.next(),
            Some(_) => lines.next_at_leisure(),
        };
        let line = match arrival {
            Arrival::Cut(cut) => return Err(cut.into()),
            Arrival::Woken => continue,
            Arrival::Line(line) => line,
        };
        let answer = match serde_json::from_str(&line) {
            Ok(Request::Alive) => continue,
            Ok(request) => {
                drop(line);
                if matches!(request, Request::Watch) && watcher.is_none() {
                    let (changed, waker) = (has_changed.clone(), lines.waker());
                    let tell = move || {
                        changed.store(true, Ordering::SeqCst);
                        waker.wake();
                    };
                    watcher = Some(watch_store(store, tell)?);
                }
                let answer = async { Ok(wire::answer(&branches, request).await) };
                workspace.wait(answer).map_err(CommandError::from)?
            }
            Err(error) => Answer::Failed(Failure::Other {
                message: format!("the request is not understood: {error}"),
            }),
        };
        say(lines, limits, &answer)?;
    }
}

/// Returns the URL of the store at a path.
fn store_at(path: &str) -> String {
    let expanded = match path.strip_prefix("~/").zip(crate::env::path("HOME")) {
        Some((rest, home)) => home.join(rest),
        None => Path::new(path).to_owned(),
    };
    match expanded.is_dir() || path.ends_with('/') {
        true => format!("files:{}", expanded.display()),
        false => format!("sqlite:{}", expanded.display()),
    }
}

fn say(lines: &Lines, limits: LinkLimits, message: &impl Serialize) -> Result<(), Cut> {
    let line = wire::encoded(message, limits.line).or_else(|error| {
        let message = error.to_string();
        wire::encoded(
            &Answer::<()>::Failed(Failure::Other { message }),
            limits.line,
        )
    });
    lines.write(line.map_err(|error| Cut::Unreadable(error.to_string()))?)
}
