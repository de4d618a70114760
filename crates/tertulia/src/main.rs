//! `tertulia`: durable sessions of people and AI agents in the terminal.

#![cfg_attr(
    not(feature = "tui"),
    allow(dead_code, reason = "some of it serves the full-screen frontend alone")
)]

mod agents;
mod args;
mod author;
mod commands;
mod earlier_flags;
mod env;
mod error;
mod guard;
mod input;
mod link;
mod moment;
mod native_files;
mod open;
mod participants;
mod private_file;
mod project;
mod registry;
mod retention;
mod runtime;
mod seal;
mod serve;
mod settings;
mod show;
mod signals;
mod talk;
mod teams;
mod trust;
#[cfg(feature = "tui")]
mod tui_host;
mod ui;

use std::process::ExitCode;

use error::{CommandError, ErrorKind};
use ui::Ui;

fn main() -> ExitCode {
    if let Some(run) = guard::asked_for(std::env::args_os()) {
        return guard::keep(&run);
    }
    let words = std::env::args_os().collect();
    let translated = earlier_flags::translate(words, args::is_command);
    let mut note = translated.note;
    let mut code = ExitCode::SUCCESS;
    for words in translated.lines {
        code = match args::parse(words) {
            Ok(args) => run(args, note.take()),
            Err(error) => error::from_clap(error),
        };
        if code != ExitCode::SUCCESS {
            break;
        }
    }
    code
}

/// Runs one command line.
fn run(args: args::Args, note: Option<String>) -> ExitCode {
    let mut ui = Ui::new(&args.global);
    if let Some(note) = note {
        ui.note(&note);
    }
    let result = commands::run(args, &mut ui);
    // Stops what still runs for an agent, without waiting long for a slow disk.
    runtime::end();
    let result = match (result, ui.take_trouble()) {
        (Ok(_), Some(trouble)) => Err(CommandError::new(
            ErrorKind::Failed,
            "the output could not be written",
        )
        .because(trouble)),
        (result, _) => result,
    };
    match result {
        Ok(code) => code,
        Err(error) => error.report(&mut ui),
    }
}
