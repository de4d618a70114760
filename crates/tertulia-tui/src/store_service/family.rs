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
        let mut ancestors = self.ancestors(session).await?;
        let Some(root) = ancestors.rows.pop() else {
            return Ok(ancestors);
        };
        let mut scanned = None;
        let forks = async |place: usize, id: SessionId| {
            if place >= ASKED && scanned.is_none() {
                scanned = Some(self.all_forks().await?);
            }
            match &mut scanned {
                None => self.forks_of(id).await,
                Some((forks, _)) => Ok(forks.remove(&id).unwrap_or_default()),
            }
        };
        let mut family = descendants(root, MOST_MEMBERS, forks).await?;
        let is_scanned = scanned.is_none_or(|(_, complete)| complete);
        family.complete &= ancestors.complete && is_scanned;
        // The session itself and its ancestors are shown even if others are left out.
        let known: HashSet<SessionId> = family.rows.iter().map(|row| row.meta.id).collect();
        let missing = ancestors.rows.into_iter();
        family
            .rows
            .extend(missing.filter(|row| !known.contains(&row.meta.id)));
        Ok(family)
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

/// Collects a session and its forks, at most `most` of them. `forks` returns the forks of a session,
/// given its place among those collected.
async fn descendants(
    root: Row,
    most: usize,
    mut forks: impl AsyncFnMut(usize, SessionId) -> TuiResult<Vec<Row>>,
) -> TuiResult<Family> {
    let mut rows = Vec::new();
    let mut known = HashSet::new();
    let mut waiting = vec![root];
    while let Some(row) = waiting.pop() {
        // Guards against cycles in foreign data.
        if !known.insert(row.meta.id) {
            continue;
        }
        if rows.len() == most {
            return Ok(Family {
                rows,
                complete: false,
            });
        }
        waiting.extend(forks(rows.len(), row.meta.id).await?);
        rows.push(row);
    }
    Ok(Family {
        rows,
        complete: true,
    })
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::test_support::{id, session};

    #[test]
    fn whoever_is_left_out_at_the_limit_is_not_counted_as_shown() {
        let forks = async |_: usize, of: SessionId| {
            Ok(match of == id(1) {
                true => (2..6).map(|number| session(number, "fork", 1)).collect(),
                false => Vec::new(),
            })
        };
        let root = session(1, "root", 1);
        let family = block_on(descendants(root.clone(), 3, forks)).unwrap();
        assert_eq!((family.rows.len(), family.complete), (3, false));
        let family = block_on(descendants(root, 5, forks)).unwrap();
        assert_eq!((family.rows.len(), family.complete), (5, true));
    }
}
