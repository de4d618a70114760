//! Renames, tags, trashes and forks sessions like the commands do, so that `tertulia undo` works.

use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Row;

use tertulia_tui::host::{Forked, Undone};

use crate::commands::{rename, tag, undo};
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::talk::target;

/// Renames a session.
pub fn rename(workspace: &Workspace, id: SessionId, text: &str) -> CommandResult<Row> {
    let row = workspace.wait(workspace.sessions.row(id))?;
    rename::rename(workspace, row, text)
}

/// Adds and removes tags of a session.
pub fn tag(
    workspace: &Workspace,
    id: SessionId,
    add: &[String],
    remove: &[String],
) -> CommandResult<Row> {
    let row = workspace.wait(workspace.sessions.row(id))?;
    tag::tag(workspace, row, add, remove)
}

/// Moves a session to the trash.
pub fn trash(workspace: &Workspace, id: SessionId) -> CommandResult<Row> {
    let sessions = &workspace.sessions;
    let mut row = workspace.wait(sessions.row(id))?;
    let operation = sessions.clock().entry_id();
    row.meta = workspace.wait(sessions.trash(id, operation))?;
    Ok(row)
}

/// Takes the last change back, on all sessions that it changed.
pub fn undo(workspace: &Workspace) -> CommandResult<Vec<Undone>> {
    let undone = undo::undo(workspace)?.into_iter();
    let undone = undone.map(|(before, now)| {
        let words = undo::sentence(&before, &now);
        let row = Row {
            meta: now,
            open: false,
        };
        Undone { row, words }
    });
    Ok(undone.collect())
}

/// Forks a session at an entry, or at its end.
pub fn fork(workspace: &Workspace, id: SessionId, at: Option<Seq>) -> CommandResult<Forked> {
    let row = workspace.wait(workspace.sessions.row(id))?;
    let target::Forked { row, recovered } = target::fork(workspace, &row, at, None)?;
    Ok(Forked { row, recovered })
}
