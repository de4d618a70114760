//! Exports a session to a file.

use std::path::{Path, PathBuf};

use tertulia_core::id::SessionId;

use tertulia_tui::host::{self, ExportFormat, Exported};

use crate::commands::export::{self, Format};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::show;

/// Maximum number of file names tried.
const MOST_NAMES: usize = 100;

/// Writes a session to a file.
pub fn export(
    workspace: &Workspace,
    shown: &host::Workspace,
    session: SessionId,
    format: ExportFormat,
    file: Option<&str>,
) -> CommandResult<Exported> {
    let format = Format::from(format);
    let row = workspace.wait(workspace.sessions.row(session))?;
    let mut log = workspace.wait(workspace.sessions.load(session))?;
    workspace.with_unfinished(&row, &mut log)?;
    let content = export::content(format, &row, &log)?;
    let mut notes: Vec<String> = show::damage(&log.damage)
        .iter()
        .map(|line| format!("damaged: {line}"))
        .collect();
    notes.extend(export::left_out(format, &row, &log));
    let path = place(shown, session, format, file)?;
    export::write(&path, content.as_bytes(), false)?;
    Ok(Exported {
        path,
        bytes: content.len(),
        notes,
    })
}

/// Path of the file. Never overwrites: picks a free name, or fails if the file named by the user
/// exists.
fn place(
    shown: &host::Workspace,
    session: SessionId,
    format: Format,
    file: Option<&str>,
) -> CommandResult<PathBuf> {
    let Some(file) = file else {
        return free_name(&shown.cwd, session, format);
    };
    let path = shown.path(file);
    if path.is_dir() {
        return free_name(&path, session, format);
    }
    if path.symlink_metadata().is_ok() {
        let words = format!("{} is there already and stays as it is", path.display());
        return Err(CommandError::new(ErrorKind::Conflict, words).hint("choose another name"));
    }
    Ok(path)
}

impl From<ExportFormat> for Format {
    fn from(format: ExportFormat) -> Format {
        match format {
            ExportFormat::Markdown => Format::Md,
            ExportFormat::Json => Format::Json,
            ExportFormat::Jsonl => Format::Jsonl,
            ExportFormat::Snapshot => Format::Snapshot,
        }
    }
}

/// Returns an unused file name in a folder.
fn free_name(folder: &Path, session: SessionId, format: Format) -> CommandResult<PathBuf> {
    let extension = match format {
        Format::Md => "md",
        Format::Json | Format::Snapshot => "json",
        Format::Jsonl => "jsonl",
    };
    let stem = format!("tertulia-{}", session.short());
    let mut names = (1..=MOST_NAMES).map(|number| {
        folder.join(match number {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number}.{extension}"),
        })
    });
    names
        .find(|path| path.symlink_metadata().is_err())
        .ok_or_else(|| {
            let words = format!(
                "{} has {MOST_NAMES} files of this session already",
                folder.display()
            );
            CommandError::new(ErrorKind::Conflict, words).hint("name the file")
        })
}
