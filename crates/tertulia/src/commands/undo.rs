use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::query::Row;
use tertulia_core::session::{Before, SessionMeta};
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::ui::Ui;

/// Undo the last rename, tag, rm, restore or prune
///
/// Each change is an entry of the session's log, and so is taking it back. Repeated, it goes further back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia rm -y @ && tertulia undo")]
pub struct UndoArgs {}

pub fn run(_: &UndoArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let undone = undo(&workspace)?;
    if ui.json {
        let sessions: Vec<Value> = undone
            .iter()
            .map(|(_, now)| {
                Value::Object(json::session(&Row {
                    meta: now.clone(),
                    open: false,
                }))
            })
            .collect();
        ui.document(&json!({ "undone": sessions }));
        return Ok(ExitCode::SUCCESS);
    }
    for (before, now) in &undone {
        ui.note(&format!("{}: {}", now.id.short(), words(before, now)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the last change back. Returns each session that it changed, before and after.
pub fn undo(workspace: &Workspace) -> CommandResult<Vec<(SessionMeta, SessionMeta)>> {
    let undone = workspace.wait(workspace.sessions.undo())?;
    match undone.is_empty() {
        true => Err(CommandError::new(ErrorKind::NotFound, "nothing to undo")),
        false => Ok(undone),
    }
}

/// Describes what was taken back, for a frontend that shows the session.
pub fn sentence(before: &SessionMeta, now: &SessionMeta) -> String {
    format!("undone: {}", words(before, now))
}

fn words(before: &SessionMeta, now: &SessionMeta) -> String {
    match before.changes.last().map(|change| &change.before) {
        Some(Before::Title(..)) => format!("renamed to \"{}\"", now.title_or_untitled()),
        Some(Before::Tags(_)) if now.tags.is_empty() => "tags removed".to_owned(),
        Some(Before::Tags(_)) => format!("tags are {}", now.tags.join(", ")),
        Some(Before::Trash(None)) => {
            format!("\"{}\" restored from the trash", now.title_or_untitled())
        }
        Some(Before::Trash(Some(_))) => {
            format!("\"{}\" moved to the trash", now.title_or_untitled())
        }
        None => "nothing changed".to_owned(),
    }
}
