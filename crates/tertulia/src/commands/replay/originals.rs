//! Finds the sessions to replay: in the store, in a file, or in all files of a folder.

use std::path::{Path, PathBuf};

use tertulia_core::id::Seq;
use tertulia_core::jsonl;
use tertulia_core::query::Row;
use tertulia_core::replay::Recording;
use tertulia_core::session::SessionMeta;

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::show;
use crate::ui::Ui;

/// Extension of exported logs.
const EXTENSION: &str = "jsonl";

/// A session to replay.
pub struct Original {
    pub meta: SessionMeta,
    /// Its turns, as many as are to be played.
    pub recording: Recording,
    /// The file that it was read from.
    file: Option<PathBuf>,
}

impl Original {
    /// Returns the short id, with the file if there is one.
    pub fn label(&self) -> String {
        let short = self.meta.id.short();
        match &self.file {
            Some(file) => format!("{short} ({})", file.display()),
            None => short,
        }
    }

    /// Returns why the session cannot be replayed.
    fn obstacle(&self) -> Option<String> {
        let label = self.label();
        let is_empty = self.recording.turns.is_empty();
        is_empty.then(|| format!("session {label} has no prompt to replay"))
    }

    /// Describes the part of the session that is not played, or played with changes.
    pub fn omissions(&self) -> Vec<String> {
        let recording = &self.recording;
        let counted = |count: usize, what: &str| {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            (count > 0).then(|| show::count(count, what))
        };
        let omitted: Vec<String> = [
            counted(recording.withdrawn, "withdrawn prompt"),
            counted(recording.system, "system message"),
            counted(recording.early, "message").map(|count| format!("{count} before any prompt")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut lines = Vec::new();
        if !omitted.is_empty() {
            lines.push(format!("not played: {}", omitted.join(", ")));
        }
        if let Some(count) = counted(recording.redacted(), "prompt") {
            lines.push(format!(
                "secrets were removed from {count}, which is sent without them"
            ));
        }
        lines
    }
}

/// Finds all sessions to replay, with their first `to` turns. Fails if any of them cannot be
/// replayed, before anything is sent.
pub fn find(
    references: &[String],
    to: Option<u32>,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Vec<Original>> {
    let mut originals = Vec::new();
    for reference in references {
        originals.extend(named(reference, workspace, ui)?);
    }
    let obstacles: Vec<String> = originals.iter().filter_map(Original::obstacle).collect();
    if let Some(first) = obstacles.first() {
        return Err(match originals.len() {
            1 => CommandError::new(ErrorKind::Usage, first),
            total => {
                let words = format!("{} of {total} sessions cannot be replayed", obstacles.len());
                let error = CommandError::new(ErrorKind::Usage, words);
                obstacles.into_iter().fold(error, CommandError::hint)
            }
        });
    }
    if let Some(to) = to {
        let count = usize::try_from(to).unwrap_or(usize::MAX);
        for original in &mut originals {
            original.recording.keep_first(count);
        }
    }
    Ok(originals)
}

/// Returns the sessions that a reference or a path names. A path that looks like one is preferred.
fn named(reference: &str, workspace: &Workspace, ui: &mut Ui) -> CommandResult<Vec<Original>> {
    let path = Path::new(reference);
    let is_path = reference.contains('/') || path.extension().is_some_and(|end| end == EXTENSION);
    if is_path && path.exists() {
        return from_path(path, ui);
    }
    let here = workspace.here();
    match workspace.look_up(reference, &here)? {
        Some(row) => Ok(vec![from_store(row, workspace, ui)?]),
        None if path.exists() => from_path(path, ui),
        None => {
            let error = workspace.not_found(reference, &here);
            Err(match is_path {
                true => error.hint(format!("there is no file or folder '{reference}' either")),
                false => error,
            })
        }
    }
}

fn from_store(row: Row, workspace: &Workspace, ui: &mut Ui) -> CommandResult<Original> {
    let mut log = workspace.wait(workspace.sessions.load(row.meta.id))?;
    // Another program may have appended since the row was read; the link names the end of the row.
    let end = row.meta.head.seq;
    log.entries.retain(|entry| entry.seq <= end);
    workspace.with_unfinished(&row, &mut log)?;
    for line in show::damage(&log.damage) {
        ui.warn(&format!("damaged, so not played: {line}"));
    }
    Ok(Original {
        recording: Recording::of(&log.entries),
        meta: row.meta,
        file: None,
    })
}

fn from_path(path: &Path, ui: &mut Ui) -> CommandResult<Vec<Original>> {
    if !path.is_dir() {
        return Ok(vec![from_file(path)?]);
    }
    let unreadable = |error: std::io::Error| {
        CommandError::new(
            ErrorKind::Failed,
            format!("{} cannot be read", path.display()),
        )
        .because(error)
    };
    let (mut logs, mut others) = (Vec::new(), 0);
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        match file.extension().is_some_and(|end| end == EXTENSION) {
            true => logs.push(file),
            false => others += 1,
        }
    }
    if logs.is_empty() {
        let words = format!("there is no .{EXTENSION} file in {}", path.display());
        return Err(CommandError::new(ErrorKind::NotFound, words).hint(
            "`tertulia export REF --format jsonl -o FILE` writes a session that can be replayed",
        ));
    }
    if others > 0 {
        let others = show::count(others, "other file");
        ui.note(&format!("{}: {others} ignored", path.display()));
    }
    logs.sort();
    logs.iter().map(|file| from_file(file)).collect()
}

fn from_file(file: &Path) -> CommandResult<Original> {
    let invalid = |why: &str| {
        let words = format!("{} is not an exported session: {why}", file.display());
        CommandError::new(ErrorKind::Invalid, words).hint(
            "`tertulia import FILE` takes in sessions of other programs; then replay by their ids",
        )
    };
    let content = std::fs::read(file).map_err(|error| {
        let words = format!("{} cannot be read", file.display());
        CommandError::new(ErrorKind::Failed, words).because(error)
    })?;
    let read = jsonl::read(&content).map_err(|error| invalid(&error.to_string()))?;
    if read.after != Seq::START {
        return Err(invalid("it lacks the beginning of the session"));
    }
    Ok(Original {
        meta: SessionMeta::of(read.id, &read.entries),
        recording: Recording::of(&read.entries),
        file: Some(file.to_owned()),
    })
}
