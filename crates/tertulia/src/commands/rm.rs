use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::show;
use crate::ui::{Ui, fit};

/// Move sessions to the trash
///
/// Nothing is deleted: `undo` or `restore` brings them back. `prune` empties the trash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia rm 5f3a9c1e          asks first on a terminal\n  \
    tertulia rm -y @ @~1          two at once\n  \
    tertulia undo                 brings both back")]
pub struct RmArgs {
    /// The sessions
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

pub fn run(args: &RmArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    // Resolve all references before moving anything: a wrong one changes nothing.
    let mut rows = Vec::new();
    for reference in &args.references {
        let row = workspace.find(reference)?;
        if !rows
            .iter()
            .any(|known: &tertulia_core::query::Row| known.meta.id == row.meta.id)
        {
            rows.push(row);
        }
    }
    if !args.yes {
        let names: Vec<String> = rows
            .iter()
            .map(|row| {
                format!(
                    "{} \"{}\"",
                    row.meta.id.short(),
                    fit(row.meta.title_or_untitled(), 40)
                )
            })
            .collect();
        if !ui.is_interactive() {
            return Err(CommandError::new(
                ErrorKind::Usage,
                "not interactive: cannot ask whether to move them to the trash",
            )
            .hint("add -y"));
        }
        if !ui.confirm(&format!("Move {} to the trash?", names.join(", "))) {
            ui.note("Nothing was changed.");
            return Ok(ExitCode::from(1));
        }
    }
    let there = rows
        .iter()
        .filter(|row| row.meta.trashed_at.is_some())
        .count();
    let operation = workspace.sessions.clock().entry_id();
    for row in &mut rows {
        row.meta = workspace.wait(workspace.sessions.trash(row.meta.id, operation))?;
    }
    if ui.json {
        let sessions: Vec<Value> = rows
            .iter()
            .map(|row| Value::Object(json::session(row)))
            .collect();
        ui.document(&json!({ "sessions": sessions }));
    } else {
        let count = rows.len() - there;
        if count == 0 {
            ui.note("Already in the trash; nothing was changed.");
            return Ok(ExitCode::SUCCESS);
        }
        let it = if count == 1 { "it" } else { "them" };
        ui.advise(&format!(
            "Moved {} to the trash. `tertulia undo` brings {it} back.",
            show::count(count as u64, "session")
        ));
    }
    Ok(ExitCode::SUCCESS)
}
