//! The family of a session: what it was forked from, and what was forked from it.

use std::collections::{HashMap, HashSet};

use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Lookup, Page, Row, Trash};

use super::{Family, StoreService};
use crate::error::CommandResult;

/// A family of so many is put together by asking for the forks of each. No store has an index of forks,
/// so that for larger ones it is better to look at every session once.
const ASKED: usize = 12;
/// How many sessions are looked at, at most.
const MOST_LOOKED_AT: usize = 50_000;
/// How many sessions are looked at at a time.
const PAGE: usize = 1000;
/// How many members are shown, at most.
const MOST_MEMBERS: usize = 5000;
/// How far back ancestors are followed.
const MOST_ANCESTORS: usize = 1000;

impl StoreService {
    pub(super) fn family(&self, session: SessionId) -> CommandResult<Family> {
        let mut family = self.ancestors(session)?;
        let mut rows = Vec::new();
        let mut known: HashSet<SessionId> = HashSet::new();
        let mut waiting: Vec<Row> = family.rows.pop().into_iter().collect();
        let mut forks = None;
        while let Some(row) = waiting.pop() {
            // A family is a tree; data from elsewhere may claim otherwise.
            if !known.insert(row.meta.id) {
                continue;
            }
            if rows.len() == MOST_MEMBERS {
                family.complete = false;
                break;
            }
            if rows.len() == ASKED {
                let (all, complete) = self.all_forks()?;
                family.complete &= complete;
                forks = Some(all);
            }
            waiting.extend(match &mut forks {
                None => self.forks_of(row.meta.id)?,
                Some(forks) => forks.remove(&row.meta.id).unwrap_or_default(),
            });
            rows.push(row);
        }
        // Who is asked about, and who leads to them, is shown whatever is left out.
        let missing = family.rows.into_iter();
        rows.extend(missing.filter(|row| !known.contains(&row.meta.id)));
        Ok(Family {
            rows,
            complete: family.complete,
        })
    }

    /// A session, its parent, and so on, up to the one that has none or whose parent is not in this store.
    fn ancestors(&self, session: SessionId) -> CommandResult<Family> {
        let mut rows = vec![self.row(session)?];
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
            let store = self.workspace.sessions.store();
            match self.workspace.wait(store.find(&Lookup::Id(id), 1))?.pop() {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        Ok(Family { rows, complete })
    }

    fn forks_of(&self, session: SessionId) -> CommandResult<Vec<Row>> {
        let filter = Filter {
            parent: Some(session),
            trash: Trash::With,
            ..Filter::default()
        };
        let page = Page::first(MOST_MEMBERS);
        let listing = self
            .workspace
            .wait(self.workspace.sessions.store().list(&filter, &page))?;
        Ok(listing.rows)
    }

    /// Every fork in the store by what it was forked from, and whether that is all of them.
    fn all_forks(&self) -> CommandResult<(HashMap<SessionId, Vec<Row>>, bool)> {
        let filter = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let mut forks: HashMap<SessionId, Vec<Row>> = HashMap::new();
        let mut page = Page::first(PAGE);
        let mut looked_at = 0;
        loop {
            let listing = self
                .workspace
                .wait(self.workspace.sessions.store().list(&filter, &page))?;
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
