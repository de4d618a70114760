use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia_core::query::Row;
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::ui::Ui;

/// Give a session a title
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia rename @ \"Parser rewrite\"\n  \
    tertulia rename 5f3a9c1e Release notes\n  \
    tertulia undo                        takes it back")]
pub struct RenameArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: String,
    /// The title
    #[arg(value_name = "TITLE", required = true)]
    title: Vec<String>,
}

pub fn run(args: &RenameArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let title = title(&args.title.join(" "))?;
    let row = rename(&workspace, workspace.find(&args.reference)?, &title)?;
    if ui.json {
        ui.document(&Value::Object(json::session(&row)));
    } else {
        ui.note(&format!(
            "{} is now \"{}\"",
            row.meta.id.short(),
            row.meta.title_or_untitled()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives a session a title.
pub fn rename(workspace: &Workspace, mut row: Row, text: &str) -> CommandResult<Row> {
    let title = title(text)?;
    let sessions = &workspace.sessions;
    let operation = sessions.clock().entry_id();
    row.meta = workspace.wait(sessions.rename(row.meta.id, &title, operation))?;
    Ok(row)
}

/// Normalises a title to one line of 1 to 200 characters.
pub fn title(text: &str) -> CommandResult<String> {
    let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > 200 || title.contains(char::is_control) {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "a title is one line of 1 to 200 characters",
        ));
    }
    Ok(title)
}
