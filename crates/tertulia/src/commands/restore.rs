use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia_core::query::{Filter, Row, Trash};
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::open::{self, Workspace};
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
    let workspace = open::workspace(global, ui)?;
    let (row, was_there) = restore(&workspace, &args.reference)?;
    if ui.json {
        ui.document(&Value::Object(json::session(&row)));
    } else if was_there {
        ui.note(&format!(
            "{} \"{}\" is back",
            row.meta.id.short(),
            row.meta.title_or_untitled()
        ));
    } else {
        ui.note(&format!("{} was not in the trash", row.meta.id.short()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes a session out of the trash. Returns whether it was there.
pub fn restore(workspace: &Workspace, reference: &str) -> CommandResult<(Row, bool)> {
    let scope = Filter {
        trash: Trash::Only,
        ..workspace.here()
    };
    let mut row = workspace.find_in(reference, &scope)?;
    let was_there = row.meta.trashed_at.is_some();
    let operation = workspace.sessions.clock().entry_id();
    row.meta = workspace.wait(workspace.sessions.restore(row.meta.id, operation))?;
    Ok((row, was_there))
}
