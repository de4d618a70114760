//! Lists: order, pages and counts of hidden sessions.

use tertulia_core::id::SessionId;
use tertulia_core::query::{Cursor, Filter, Hidden, Order, Page, Row, Trash};
use tertulia_store::Store;

use crate::ask::{everything, ids, list, now};
use crate::clock::{frozen_clock, still_clock};
use crate::logs::{Writer, ai, human, renamed, restored, tagged, trashed};

/// The session with the newest message comes first.
pub fn newest_first(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writers: Vec<_> = (0..4).map(|_| Writer::begin(store, &clock)).collect();
    let listed = || ids(&list(store, &Filter::default()).rows);
    let order = |of: [usize; 4], writers: &[Writer]| of.map(|n| writers[n].id);
    assert_eq!(listed(), order([3, 2, 1, 0], &writers));
    writers[1].say(store, "hello");
    assert_eq!(listed(), order([1, 3, 2, 0], &writers));
    writers[0].append(store, vec![ai("claude", "hello")]);
    assert_eq!(listed(), order([0, 1, 3, 2], &writers));
    let fork = writers[2].fork(store, 1);
    assert_eq!(listed()[0], fork.id);
}

/// Sessions with equal times are sorted by descending id.
pub fn equal_times_by_id(store: &dyn Store) {
    let clock = frozen_clock(1, 0);
    let mut made: Vec<SessionId> = (0..5).map(|_| clock.session_id()).collect();
    // Created in an order other than that of their ids.
    made.swap(0, 3);
    made.swap(1, 4);
    for id in &made {
        Writer::named(*id, &clock)
            .open(store, |_| {}, vec![])
            .unwrap();
    }
    made.sort_unstable();
    made.reverse();
    assert_eq!(ids(&list(store, &Filter::default()).rows), made);
    for limit in 1..=5 {
        assert_eq!(paged(store, &Filter::default(), || limit), made);
    }
}

/// Housekeeping does not change the order.
pub fn only_speaking_moves_a_session_up(store: &dyn Store) {
    let clock = still_clock(1);
    let mut old = Writer::begin(store, &clock);
    let new = Writer::begin(store, &clock);
    old.append(store, vec![renamed("tidy"), tagged(&["tidy"], &[])]);
    old.append(store, vec![trashed()]);
    old.append(store, vec![restored()]);
    assert_eq!(ids(&list(store, &Filter::default()).rows), [new.id, old.id]);
}

/// Returns the rows of all pages.
fn paged(store: &dyn Store, filter: &Filter, mut limit: impl FnMut() -> usize) -> Vec<SessionId> {
    let mut seen: Vec<Row> = Vec::new();
    let mut cursor = None;
    loop {
        let page = Page {
            limit: limit(),
            cursor,
        };
        let listing = now(store.list(filter, &page)).unwrap();
        assert!(listing.rows.len() <= page.limit, "a page is no larger");
        seen.extend(listing.rows);
        match listing.next {
            Some(next) => cursor = Some(next),
            None => return ids(&seen),
        }
        assert!(seen.len() < 1000, "the pages never end");
    }
}

/// 23 sessions with 6 different times, some of them changed, some in the trash.
fn crowd(store: &dyn Store) {
    for n in 0..23 {
        let clock = frozen_clock(n, i64::try_from(n % 6).unwrap());
        let mut writer = Writer::begin(store, &clock);
        if n % 3 == 0 {
            writer.append(store, vec![renamed("changed")]);
        }
        if n % 5 == 0 {
            writer.append(store, vec![trashed()]);
        }
    }
}

/// Pages of any size return every session exactly once, in the order of the whole list.
pub fn pages_cover_everything_once(store: &dyn Store) {
    crowd(store);
    let filters = [
        everything(),
        Filter::default(),
        Filter {
            trash: Trash::Only,
            ..Filter::default()
        },
    ];
    for filter in filters {
        let whole = ids(&list(store, &filter).rows);
        let mut once = whole.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), whole.len());
        for limit in 1..=24 {
            assert_eq!(paged(store, &filter, || limit), whole, "pages of {limit}");
        }
    }
    assert_eq!(list(store, &everything()).rows.len(), 23);
    assert_eq!(list(store, &Filter::default()).sessions, 23);
    assert_eq!(list(store, &Filter::default()).rows.len(), 18);
}

/// The page size may change between pages.
pub fn pages_of_changing_size(store: &dyn Store) {
    crowd(store);
    let whole = ids(&list(store, &everything()).rows);
    for step in 1..6 {
        let mut size = 0;
        let limit = || {
            size = (size + step) % 7;
            size + 1
        };
        assert_eq!(paged(store, &everything(), limit), whole);
    }
}

/// The same for the order by change.
pub fn pages_by_change(store: &dyn Store) {
    crowd(store);
    let filter = Filter {
        order: Order::Changed,
        ..everything()
    };
    let whole = ids(&list(store, &filter).rows);
    assert_eq!(whole.len(), 11);
    for limit in 1..=12 {
        assert_eq!(paged(store, &filter, || limit), whole, "pages of {limit}");
    }
}

/// A cursor round-trips through text.
pub fn a_cursor_survives_being_written_down(store: &dyn Store) {
    crowd(store);
    let whole = ids(&list(store, &everything()).rows);
    let first = now(store.list(&everything(), &Page::first(7))).unwrap();
    let text = first.next.unwrap().to_string();
    let page = Page {
        limit: 100,
        cursor: Some(text.parse::<Cursor>().unwrap()),
    };
    let rest = now(store.list(&everything(), &page)).unwrap();
    assert_eq!(ids(&rest.rows), whole[7..]);
    assert_eq!(rest.next, None);
}

/// 3 live and 2 trashed sessions of project `a`, 2 and 1 of `b`, 1 and 1 of none.
fn projects(store: &dyn Store) -> Vec<Writer> {
    let clock = still_clock(1);
    let mut writers = Vec::new();
    for (project, live, dead) in [(Some("a"), 3, 2), (Some("b"), 2, 1), (None, 1, 1)] {
        for n in 0..live + dead {
            let edit = |created: &mut tertulia_core::entry::Created| {
                created.project = project.map(str::to_owned);
            };
            let mut writer = Writer::begin_with(store, &clock, edit, vec![human("hi")]);
            if n >= live {
                writer.append(store, vec![trashed()]);
            }
            writers.push(writer);
        }
    }
    writers
}

fn hidden(store: &dyn Store, project: Option<&str>, trash: Trash) -> (u64, u64) {
    let filter = Filter {
        project: project.map(Into::into),
        trash,
        ..Filter::default()
    };
    let hidden = list(store, &filter).hidden;
    assert_eq!(hidden.total(), hidden.elsewhere + hidden.trashed);
    (hidden.elsewhere, hidden.trashed)
}

/// A list counts hidden sessions in other projects and in the trash.
pub fn hidden_are_counted(store: &dyn Store) {
    assert_eq!(list(store, &Filter::default()).hidden, Hidden::default());
    projects(store);
    assert_eq!(hidden(store, None, Trash::Without), (0, 4));
    assert_eq!(hidden(store, None, Trash::Only), (0, 0));
    assert_eq!(hidden(store, None, Trash::With), (0, 0));
    // With a project: sessions elsewhere that match the trash setting, and the project's trash.
    assert_eq!(hidden(store, Some("a"), Trash::Without), (3, 2));
    assert_eq!(hidden(store, Some("a"), Trash::Only), (2, 0));
    assert_eq!(hidden(store, Some("a"), Trash::With), (5, 0));
    assert_eq!(hidden(store, Some("b"), Trash::Without), (4, 1));
    assert_eq!(hidden(store, Some("nowhere"), Trash::Without), (6, 0));
}

/// Other filter conditions do not affect the counts of hidden sessions: those exclusions are
/// intended by the user.
pub fn hidden_count_every_other_filter(store: &dyn Store) {
    let mut writers = projects(store);
    writers[0].append(store, vec![tagged(&["x"], &[])]);
    let filter = Filter {
        project: Some("a".into()),
        tag: Some("x".into()),
        ..Filter::default()
    };
    let listing = now(store.list(&filter, &Page::first(1))).unwrap();
    assert_eq!(listing.rows.len(), 1);
    assert_eq!((listing.hidden.elsewhere, listing.hidden.trashed), (3, 2));
}

/// The counts follow trash, restore, undo, forks into other projects and purges.
pub fn hidden_follow_every_change(store: &dyn Store) {
    let mut writers = projects(store);
    let here = |store| hidden(store, Some("a"), Trash::Without);
    writers[0].append(store, vec![trashed()]);
    assert_eq!(here(store), (3, 3));
    let at = writers[0].head().seq.0;
    writers[0].append(store, vec![crate::logs::undone(at)]);
    assert_eq!(here(store), (3, 2));
    writers[3].append(store, vec![restored()]);
    assert_eq!(here(store), (3, 1));
    let fork = writers[0].fork_with(store, 2, |fork| fork.project = Some("b".into()), vec![]);
    assert_eq!(here(store), (4, 1));
    now(store.purge(fork.id)).unwrap();
    now(store.purge(writers[4].id)).unwrap();
    assert_eq!(here(store), (3, 0));
}
