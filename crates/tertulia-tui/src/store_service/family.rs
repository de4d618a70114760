//! Collects the fork tree of a session: its ancestors and all their forks.

use std::collections::{HashMap, HashSet};

use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Lookup, Page, Row, Trash};

use super::{Family, StoreService};
use crate::error::TuiResult;

/// Size up to which the forks of each session are queried one by one. Stores have no index of
/// forks, so for larger trees it is cheaper to scan all sessions once.
const ASKED: usize = 12;
/// Maximum number of sessions scanned.
const MOST_LOOKED_AT: usize = 50_000;
/// Sessions scanned per page.
const PAGE: usize = 1000;
/// Maximum number of sessions in the tree.
const MOST_MEMBERS: usize = 5000;
/// Maximum number of ancestors.
const MOST_ANCESTORS: usize = 1000;

impl StoreService {
    pub(super) async fn family(&self, session: SessionId) -> TuiResult<Family> {
        let mut family = self.ancestors(session).await?;
        let mut rows = Vec::new();
        let mut known: HashSet<SessionId> = HashSet::new();
        let mut waiting: Vec<Row> = family.rows.pop().into_iter().collect();
        let mut forks = None;
        while let Some(row) = waiting.pop() {
            // Guards against cycles in foreign data.
            if !known.insert(row.meta.id) {
                continue;
            }
            if rows.len() == MOST_MEMBERS {
                family.complete = false;
                break;
            }
            if rows.len() == ASKED {
                let (all, complete) = self.all_forks().await?;
                family.complete &= complete;
                forks = Some(all);
            }
            waiting.extend(match &mut forks {
                None => self.forks_of(row.meta.id).await?,
                Some(forks) => forks.remove(&row.meta.id).unwrap_or_default(),
            });
            rows.push(row);
        }
        // The session itself and its ancestors are shown even if others are left out.
        let missing = family.rows.into_iter();
        rows.extend(missing.filter(|row| !known.contains(&row.meta.id)));
        Ok(Family {
            rows,
            complete: family.complete,
        })
    }

    /// Returns a session and its ancestors, up to one without a parent in this store.
    async fn ancestors(&self, session: SessionId) -> TuiResult<Family> {
        let mut rows = vec![self.row(session).await?];
        let mut seen = HashSet::from([session]);
        let mut complete = true;
        while let Some(parent) = rows.last().and_then(|row| row.meta.parent.as_ref()) {
            let id = parent.id;
            if !seen.insert(id) {
                break;
            }
            if rows.len() == MOST_ANCESTORS {
                complete = false;
                break;
            }
            let store = self.workspace().sessions.store();
            match store.find(&Lookup::Id(id), 1).await?.pop() {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        Ok(Family { rows, complete })
    }

    async fn forks_of(&self, session: SessionId) -> TuiResult<Vec<Row>> {
        let filter = Filter {
            parent: Some(session),
            trash: Trash::With,
            ..Filter::default()
        };
        let page = Page::first(MOST_MEMBERS);
        let listing = self
            .workspace()
            .sessions
            .store()
            .list(&filter, &page)
            .await?;
        Ok(listing.rows)
    }

    /// Returns all forks in the store by parent, and whether the scan was complete.
    async fn all_forks(&self) -> TuiResult<(HashMap<SessionId, Vec<Row>>, bool)> {
        let filter = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let mut forks: HashMap<SessionId, Vec<Row>> = HashMap::new();
        let mut page = Page::first(PAGE);
        let mut looked_at = 0;
        loop {
            let listing = self
                .workspace()
                .sessions
                .store()
                .list(&filter, &page)
                .await?;
            looked_at += listing.rows.len();
            for row in listing.rows {
                if let Some(parent) = &row.meta.parent {
                    forks.entry(parent.id).or_default().push(row);
                }
            }
            match listing.next {
                None => return Ok((forks, true)),
                Some(_) if looked_at >= MOST_LOOKED_AT => return Ok((forks, false)),
                next => page.cursor = next,
            }
        }
    }
}
