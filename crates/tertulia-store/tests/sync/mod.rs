//! Sessions move between stores: named cases, and random histories in several stores.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod cases;
mod changes;
mod hostile;
mod property;
mod sealed;

use tertulia_core::entry::{Body, Head};
use tertulia_core::entry::{Entry, Relation};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::Page;
use tertulia_core::session::SessionMeta;
use tertulia_store::sync::{Branches, Heads, Partner, Transfer, Transferred, transfer};
use tertulia_store::{CheckMode, Doing, Progress, Store, StoreResult};
use tertulia_testkit::ask::{everything, now};

/// Moves everything from one partner to another.
pub fn move_all(from: &dyn Partner, to: &dyn Partner, doing: Doing) -> StoreResult<Transferred> {
    now(async {
        let heads = Heads::of(from).await?;
        let mut known = Heads::of(to).await?;
        transfer(Transfer {
            source: (from, &heads),
            target: (to, &mut known),
            doing,
            progress: &Progress::unseen(),
        })
        .await
    })
}

/// Moves everything from one store to another.
pub fn push(from: &dyn Store, to: &dyn Store) -> Transferred {
    move_all(&Branches::of(from), &Branches::of(to), Doing::Write).unwrap()
}

/// Moves everything both ways.
pub fn sync(one: &dyn Store, other: &dyn Store) -> (Transferred, Transferred) {
    (push(other, one), push(one, other))
}

pub fn metas(store: &dyn Store) -> Vec<SessionMeta> {
    let filter = tertulia_core::query::Filter {
        trash: tertulia_core::query::Trash::With,
        ..everything()
    };
    let listing = now(store.list(&filter, &Page::first(10_000))).unwrap();
    assert!(listing.damaged.is_empty(), "{:?}", listing.damaged);
    listing.rows.into_iter().map(|row| row.meta).collect()
}

/// Reads a log and verifies its chain.
pub fn log(store: &dyn Store, id: SessionId) -> Vec<Entry> {
    let lines = now(store.read(id, Seq::START, usize::MAX)).unwrap();
    let mut head = Head::START;
    let entries: Vec<Entry> = lines
        .iter()
        .map(|line| Entry::decode(&line.bytes).unwrap())
        .collect();
    for entry in &entries {
        assert!(entry.follows(&head), "entry {} of {id}", entry.seq);
        head = entry.head();
    }
    entries
}

/// Returns what was written in a session, in order: the ids and bodies of its entries, without those
/// that only keep a diverged branch in a fork.
pub fn written(store: &dyn Store, id: SessionId) -> Vec<(EntryId, String)> {
    let keeps_branch = |entry: &Entry| match &entry.body {
        Body::Forked(forked) => {
            forked.relation == Relation::Conflict && entry.id.uuid() == forked.session.uuid()
        }
        _ => false,
    };
    let entries = log(store, id).into_iter();
    entries
        .filter(|entry| !keeps_branch(entry))
        .map(|entry| {
            let body = match &entry.body {
                // Refers to the number of another entry, which differs.
                Body::Undone(undone) => format!("undone {}", undone.operation),
                body => format!("{body:?}"),
            };
            (entry.id, body)
        })
        .collect()
}

/// Returns what was written in all sessions of a store, sorted.
pub fn all_written(store: &dyn Store) -> Vec<Vec<(EntryId, String)>> {
    let mut all: Vec<_> = metas(store)
        .iter()
        .map(|meta| written(store, meta.id))
        .collect();
    all.sort();
    all
}

/// Returns the last entries of all branches of a store, sorted: stores that agree have the same.
pub fn ends(store: &dyn Store) -> Vec<(SessionId, String)> {
    let page = now(Branches::of(store).page(None, 10_000)).unwrap();
    let ends = page.branches.iter();
    let mut ends: Vec<_> = ends
        .map(|branch| (branch.root, format!("{:?}", branch.head)))
        .collect();
    ends.sort();
    ends
}

pub fn assert_sound(store: &dyn Store) {
    let report = now(store.check(CheckMode::Look, &Progress::unseen())).unwrap();
    assert!(report.is_clean(), "{report:?}");
}
