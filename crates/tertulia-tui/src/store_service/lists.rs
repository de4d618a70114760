//! Data for the session list and the full-text search.

use std::time::Duration;

use tertulia_store::Progress;

use super::reading::Reader;
use super::{Listed, Searched, StoreService};
use crate::entries;
use crate::error::TuiResult;
use crate::item::Item;
use crate::{picker, search};

/// Time a search waits for the index before it returns what is indexed.
const PATIENCE: Duration = Duration::from_millis(800);

/// Search progress limited to `PATIENCE`, so that the TUI does not wait.
fn hasty() -> Progress {
    Progress::unseen().within(PATIENCE)
}

/// Maximum number of bytes read for a preview.
const LOOK_BYTES: usize = 256_000;

impl StoreService {
    pub(super) async fn listed(&self, wanted: picker::Wanted) -> TuiResult<Listed> {
        let store = self.workspace().sessions.store();
        Ok(match wanted {
            picker::Wanted::Page { filter, page } => {
                Listed::Page(store.list(&filter, &page).await?)
            }
            picker::Wanted::Search(query) => Listed::Found(store.search(&query, &hasty()).await?),
            picker::Wanted::Preview { id, messages } => {
                let row = self.row(id).await?;
                let reader = Reader::of(self.workspace(), &row).at_most(LOOK_BYTES);
                let mut items = reader
                    .items(reader.back(reader.head, messages).await?)
                    .await?;
                items.extend(self.unfinished(&row).await?);
                Listed::Preview(items)
            }
        })
    }

    /// The unfinished answer of a session, unless the session is open and the answer may still be
    /// streaming.
    async fn unfinished(&self, row: &tertulia_core::query::Row) -> TuiResult<Vec<Item>> {
        if row.open {
            return Ok(Vec::new());
        }
        let sessions = &self.workspace().sessions;
        let entry = sessions.unfinished(&row.meta).await?;
        Ok(entries::items(entry.as_slice(), row.meta.kind))
    }

    pub(super) async fn searched(&self, wanted: search::Wanted) -> TuiResult<Searched> {
        let store = self.workspace().sessions.store();
        Ok(match wanted {
            search::Wanted::Search(query) => Searched::Found(store.search(&query, &hasty()).await?),
            search::Wanted::Around { spot, messages } => {
                let row = self.row(spot.session).await?;
                let reader = Reader::of(self.workspace(), &row).at_most(LOOK_BYTES);
                // One message before for context.
                let piece = reader
                    .around(spot.seq, 1, messages.saturating_sub(1))
                    .await?;
                Searched::Around(reader.items(piece).await?)
            }
        })
    }
}
