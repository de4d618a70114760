//! Renames, tags, trashes and forks sessions like the commands do, so that `tertulia undo` works.

use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Row;

use super::StoreService;
use crate::commands::rename::title;
use crate::commands::tag::tag_name;
use crate::error::CommandResult;
use crate::talk::target::{self, Forked};

impl StoreService {
    pub(super) fn rename(&self, id: SessionId, text: &str) -> CommandResult<Row> {
        let title = title(text)?;
        let mut row = self.row(id)?;
        let sessions = &self.workspace.sessions;
        let operation = sessions.clock().entry_id();
        row.meta = self
            .workspace
            .wait(sessions.rename(id, &title, operation))?;
        Ok(row)
    }

    pub(super) fn tag(
        &self,
        id: SessionId,
        add: &[String],
        remove: &[String],
    ) -> CommandResult<Row> {
        let names = |tags: &[String]| tags.iter().map(|tag| tag_name(tag)).collect();
        let (add, remove): (CommandResult<Vec<String>>, CommandResult<Vec<String>>) =
            (names(add), names(remove));
        let (add, remove) = (add?, remove?);
        if add.is_empty() && remove.is_empty() {
            // Produces the error message of the command.
            tag_name("")?;
        }
        let mut row = self.row(id)?;
        let sessions = &self.workspace.sessions;
        let operation = sessions.clock().entry_id();
        row.meta = self
            .workspace
            .wait(sessions.tag(id, &add, &remove, operation))?;
        Ok(row)
    }

    pub(super) fn trash(&self, id: SessionId) -> CommandResult<Row> {
        let mut row = self.row(id)?;
        let sessions = &self.workspace.sessions;
        let operation = sessions.clock().entry_id();
        row.meta = self.workspace.wait(sessions.trash(id, operation))?;
        Ok(row)
    }

    pub(super) fn fork(&self, id: SessionId, at: Option<Seq>) -> CommandResult<Forked> {
        target::fork(&self.workspace, &self.row(id)?, at, None)
    }
}
