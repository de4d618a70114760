//! `tertulia`: conversations between people and AI agents in the terminal that are never lost.

mod agents;
mod args;
mod commands;
mod env;
mod error;
mod input;
mod moment;
mod open;
mod project;
mod settings;
mod show;
mod ui;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use ui::Ui;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return error::from_clap(&error),
    };
    let mut ui = Ui::new(&args.global);
    match commands::run(args, &mut ui) {
        Ok(code) => code,
        Err(error) => error.report(&mut ui),
    }
}
