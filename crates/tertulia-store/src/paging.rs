//! Pages of a list, and the sessions that it hides: what no backend should decide by itself.

use std::cmp::Reverse;

use tertulia_core::id::SessionId;
use tertulia_core::query::{Cursor, DamagedSession, Filter, Hidden, Listing, Page, Row, Trash};
use tertulia_core::session::SessionMeta;

/// Number of sessions, by whether they are in the trash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) live: i64,
    pub(super) trashed: i64,
}

impl std::ops::Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            live: self.live + other.live,
            trashed: self.trashed + other.trashed,
        }
    }
}

/// Makes a listing of the rows that a backend found: at least one more than the page has, if there
/// are more. `all` counts the sessions of the store, `here` those of the filter's project.
pub(super) fn listing(
    filter: &Filter,
    page: &Page,
    mut metas: Vec<SessionMeta>,
    (all, here): (Counts, Counts),
    damaged: Vec<DamagedSession>,
    is_open: impl Fn(SessionId) -> bool,
) -> Listing {
    let more = metas.len() > page.limit;
    metas.truncate(page.limit);
    let next = metas.last().filter(|_| more).map(|last| Cursor {
        at: filter.sort_key(last),
        id: last.id,
    });
    let count = |count: i64| count.max(0).cast_unsigned();
    let (elsewhere, trashed) = match filter.trash {
        Trash::Without => (all.live - here.live, here.trashed),
        Trash::Only => (all.trashed - here.trashed, 0),
        Trash::With => (all.live + all.trashed - here.live - here.trashed, 0),
    };
    Listing {
        rows: rows(metas, is_open),
        hidden: Hidden {
            elsewhere: count(elsewhere),
            trashed: count(trashed),
        },
        sessions: count(all.live + all.trashed),
        next,
        damaged,
    }
}

/// Makes a listing of all sessions of a store, for a backend that cannot select.
pub(super) fn listing_of_all(
    filter: &Filter,
    page: &Page,
    all: Vec<SessionMeta>,
    damaged: Vec<DamagedSession>,
    is_open: impl Fn(SessionId) -> bool,
) -> Listing {
    let count = |is_here: bool| {
        all.iter()
            .filter(|meta| !is_here || filter.has_project(meta))
            .fold(Counts::default(), |sum, meta| {
                let trashed = i64::from(meta.trashed_at.is_some());
                sum + Counts {
                    live: 1 - trashed,
                    trashed,
                }
            })
    };
    let counts = (count(false), count(true));
    let key = |meta: &SessionMeta| (filter.sort_key(meta), meta.id);
    let mut matching = all;
    matching.retain(|meta| {
        let after = page
            .cursor
            .is_none_or(|Cursor { at, id }| key(meta) < (at, id));
        after && filter.matches(meta)
    });
    matching.sort_by_key(|meta| Reverse(key(meta)));
    listing(filter, page, matching, counts, damaged, is_open)
}

/// Adds to each session whether a program has it open.
pub(super) fn rows(metas: Vec<SessionMeta>, is_open: impl Fn(SessionId) -> bool) -> Vec<Row> {
    let row = |meta: SessionMeta| Row {
        open: is_open(meta.id),
        meta,
    };
    metas.into_iter().map(row).collect()
}
