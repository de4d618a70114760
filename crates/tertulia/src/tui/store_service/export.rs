//! Exports a session to a file.

use std::path::{Path, PathBuf};

use tertulia_core::id::SessionId;

use super::{Exported, StoreService};
use crate::commands::export::{self, Format};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::{env, show};

/// Maximum number of file names tried.
const MOST_NAMES: usize = 100;

impl StoreService {
    pub(super) fn export(
        &self,
        session: SessionId,
        format: Option<Format>,
        file: Option<String>,
    ) -> CommandResult<Exported> {
        let format = format.unwrap_or(Format::Md);
        let row = self.row(session)?;
        let workspace = &self.workspace;
        let mut log = workspace.wait(workspace.sessions.load(session))?;
        workspace.with_unfinished(&row, &mut log)?;
        let content = export::content(format, &row, &log)?;
        let mut notes: Vec<String> = show::damage(&log.damage)
            .iter()
            .map(|line| format!("damaged: {line}"))
            .collect();
        notes.extend(export::left_out(format, &row, &log));
        let path = self.place(session, format, file.as_deref())?;
        export::write(&path, content.as_bytes(), false)?;
        Ok(Exported {
            path,
            bytes: content.len(),
            notes,
        })
    }

    /// Path of the file. Never overwrites: picks a free name, or fails if the file named by the
    /// user exists.
    fn place(
        &self,
        session: SessionId,
        format: Format,
        file: Option<&str>,
    ) -> CommandResult<PathBuf> {
        let cwd = &self.workspace.settings.cwd;
        let Some(file) = file else {
            return free_name(cwd, session, format);
        };
        let path = match file.strip_prefix("~/").zip(env::path("HOME")) {
            Some((rest, home)) => home.join(rest),
            None => cwd.join(file),
        };
        if path.is_dir() {
            return free_name(&path, session, format);
        }
        if path.symlink_metadata().is_ok() {
            let words = format!("{} is there already and stays as it is", path.display());
            return Err(CommandError::new(ErrorKind::Conflict, words).hint("choose another name"));
        }
        Ok(path)
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
