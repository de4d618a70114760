//! Data for the session list and the full-text search.

use std::time::Duration;

use tertulia_store::Progress;

use super::reading::Reader;
use super::{Listed, Searched, StoreService};
use crate::error::CommandResult;
use crate::tui::entries;
use crate::tui::item::Item;
use crate::tui::{picker, search};

/// Time a search waits for the index before it returns what is indexed.
const PATIENCE: Duration = Duration::from_millis(800);

/// Search progress limited to `PATIENCE`, so that the TUI does not wait.
fn hasty() -> Progress {
    Progress::unseen().within(PATIENCE)
}

/// Maximum number of bytes read for a preview.
const LOOK_BYTES: usize = 256_000;

impl StoreService {
    pub(super) fn listed(&self, wanted: picker::Wanted) -> CommandResult<Listed> {
        let store = self.workspace.sessions.store();
        Ok(match wanted {
            picker::Wanted::Page { filter, page } => {
                Listed::Page(self.workspace.wait(store.list(&filter, &page))?)
            }
            picker::Wanted::Search(query) => {
                Listed::Found(self.workspace.wait(store.search(&query, &hasty()))?)
            }
            picker::Wanted::Preview { id, messages } => {
                let row = self.row(id)?;
                let reader = Reader::of(&self.workspace, &row).at_most(LOOK_BYTES);
                let mut items = reader.items(reader.back(reader.head, messages)?)?;
                items.extend(self.unfinished(&row)?);
                Listed::Preview(items)
            }
        })
    }

    /// The unfinished answer of a session, unless the session is open and the answer may still be
    /// streaming.
    fn unfinished(&self, row: &tertulia_core::query::Row) -> CommandResult<Vec<Item>> {
        if row.open {
            return Ok(Vec::new());
        }
        let sessions = &self.workspace.sessions;
        let entry = self.workspace.wait(sessions.unfinished(&row.meta))?;
        Ok(entries::items(entry.as_slice(), row.meta.kind))
    }

    pub(super) fn searched(&self, wanted: search::Wanted) -> CommandResult<Searched> {
        let store = self.workspace.sessions.store();
        Ok(match wanted {
            search::Wanted::Search(query) => {
                Searched::Found(self.workspace.wait(store.search(&query, &hasty()))?)
            }
            search::Wanted::Around { spot, messages } => {
                let row = self.row(spot.session)?;
                let reader = Reader::of(&self.workspace, &row).at_most(LOOK_BYTES);
                // One message before for context.
                let piece = reader.around(spot.seq, 1, messages.saturating_sub(1))?;
                Searched::Around(reader.items(piece)?)
            }
        })
    }
}
