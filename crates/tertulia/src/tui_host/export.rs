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
    let rendered = export::render(format, &row, &log, &shown.cwd)?;
    let mut notes: Vec<String> = show::damage(&log.damage)
        .iter()
        .map(|line| format!("damaged: {line}"))
        .collect();
    if !rendered.left_out.is_empty() {
        notes.push(format!("left out: {}", rendered.left_out.listed()));
    }
    notes.extend(rendered.notes);
    let path = place(shown, session, format, file)?;
    export::write(&path, rendered.content.as_bytes(), false)?;
    Ok(Exported {
        path,
        bytes: rendered.content.len(),
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
            ExportFormat::Html => Format::Html,
            ExportFormat::Json => Format::Json,
            ExportFormat::Jsonl => Format::Jsonl,
            ExportFormat::Snapshot => Format::Snapshot,
            ExportFormat::ClaudeCode => Format::ClaudeCode,
            ExportFormat::Codex => Format::Codex,
            ExportFormat::Atif => Format::Atif,
        }
    }
}

/// Returns an unused file name in a folder.
fn free_name(folder: &Path, session: SessionId, format: Format) -> CommandResult<PathBuf> {
    let extension = format.extension();
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
