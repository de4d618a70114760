use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia_core::query::{Filter, Trash};
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::open;
use crate::ui::Ui;

/// Take a session out of the trash
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia list --trash\n  \
    tertulia restore 5f3a9c1e\n  \
    tertulia restore @              the newest of this project in the trash")]
pub struct RestoreArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: String,
}

pub fn run(args: &RestoreArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let house = open::house(global, ui)?;
    let scope = Filter {
        trash: Trash::Only,
        ..house.here()
    };
    let mut row = house.find_in(&args.reference, &scope)?;
    let was_there = row.summary.trashed_at.is_some();
    let operation = house.sessions.stamp().entry_id();
    row.summary = house.wait(house.sessions.restore(row.summary.id, operation))?;
    if ui.json {
        ui.document(&Value::Object(json::session(&row)));
    } else if was_there {
        ui.note(&format!(
            "{} \"{}\" is back",
            row.summary.id.short(),
            row.summary.title_or_untitled()
        ));
    } else {
        ui.note(&format!("{} was not in the trash", row.summary.id.short()));
    }
    Ok(ExitCode::SUCCESS)
}
