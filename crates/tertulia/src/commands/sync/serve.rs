//! The far end of a link: answers on standard output what is asked on standard input.

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

use clap::Args;
use serde::Serialize;
use tertulia_store::sync::Branches;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::link::watch_store;
use crate::link::wire::{self, Answer, Failure, Hello, Request};
use crate::open;
use crate::ui::Ui;

/// Exchange sessions over standard input and output; `tertulia sync ssh://…` runs it
#[derive(Debug, Args)]
pub struct SyncServeArgs {
    /// Path of the store: a database, or a folder of logs
    #[arg(long, value_name = "PATH")]
    at: Option<String>,
}

/// What happens at the far end.
enum Happened {
    Asked(String),
    Changed,
    /// Nothing more will be asked.
    Ended,
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
    say(
        ui,
        &Hello {
            tertulia_sync: wire::VERSION,
            store: store.to_string(),
        },
    );
    let (sender, happened) = channel();
    let asked = sender.clone();
    let thread = std::thread::Builder::new().name("tertulia-asked".to_owned());
    thread.spawn(move || listen(&asked)).map_err(|error| {
        CommandError::new(ErrorKind::Failed, "requests cannot be read").because(error)
    })?;
    let branches = Branches::of(workspace.sessions.stored());
    let mut watcher = None;
    // Without a reader, no answer arrives: the near end waits for one until this end leaves.
    while ui.has_reader()
        && let Ok(event) = happened.recv()
    {
        let line = match event {
            Happened::Ended => break,
            Happened::Changed => {
                say(ui, &Answer::Changed);
                continue;
            }
            Happened::Asked(line) => line,
        };
        let answer = match serde_json::from_str(&line) {
            Ok(request) => {
                if matches!(request, Request::Watch) && watcher.is_none() {
                    let changed = sender.clone();
                    let tell = move || drop(changed.send(Happened::Changed));
                    watcher = watch_store(&store, tell)?;
                }
                let answer = async { Ok(wire::answer(&branches, request).await) };
                workspace.wait(answer)?
            }
            Err(error) => Answer::Failed(Failure::Other {
                message: format!("the request is not understood: {error}"),
            }),
        };
        say(ui, &answer);
    }
    Ok(ExitCode::SUCCESS)
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

fn say(ui: &mut Ui, message: &impl Serialize) {
    ui.line(&serde_json::to_string(message).unwrap_or_default());
}

fn listen(asked: &Sender<Happened>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if asked.send(Happened::Asked(line)).is_err() {
            return;
        }
    }
    let _ = asked.send(Happened::Ended);
}
