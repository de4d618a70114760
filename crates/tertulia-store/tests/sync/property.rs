//! Random histories in several stores, synced in random order and with interruptions: in the end,
//! every store has everything that was ever written, once per branch, and nothing moves any more.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Entry, Head, Merged, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Cursor;
use tertulia_core::session::Line;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::sync::{
    Branch, BranchPage, BranchSource, Branches, MergedEnd, NewBranch, Partner,
};
use tertulia_store::{Doing, Store, StoreError, StoreResult};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human, renamed, restored, tagged, trashed, undone};
use tertulia_testkit::scratch::Scratch;
use tertulia_testkit::soak::soak;

use super::{all_written, assert_sound, ends, log, metas, move_all, push};

/// Number of histories of a sample and of a whole run, unless `PROPTEST_CASES` is set.
const HISTORIES: (u32, u32) = (40, 400);

#[derive(Clone, Debug)]
enum Op {
    Create,
    Say(usize, usize),
    Fork(usize, usize),
    /// Joins two sessions in a new one.
    Merge(usize, usize),
    Rename(usize),
    Tag(usize),
    Trash(usize),
    Restore(usize),
    Undo(usize),
    /// Moves everything to another store; stops after so many writes.
    Push(usize, Option<usize>),
}

fn ops(stores: usize) -> impl Strategy<Value = Vec<(usize, Op)>> {
    let session = 0..5_usize;
    let op = prop_oneof![
        2 => Just(Op::Create),
        6 => (session.clone(), 1..4_usize).prop_map(|(n, count)| Op::Say(n, count)),
        2 => (session.clone(), 1..9_usize).prop_map(|(n, at)| Op::Fork(n, at)),
        1 => (session.clone(), session.clone()).prop_map(|(one, other)| Op::Merge(one, other)),
        1 => session.clone().prop_map(Op::Rename),
        1 => session.clone().prop_map(Op::Tag),
        1 => session.clone().prop_map(Op::Trash),
        1 => session.clone().prop_map(Op::Restore),
        1 => session.prop_map(Op::Undo),
        6 => (0..stores, proptest::option::weighted(0.3, 0..4_usize))
            .prop_map(|(to, stop)| Op::Push(to, stop)),
    ];
    vec((0..stores, op), 1..40)
}

/// A partner whose link is cut after some writes.
pub struct Cut<'a> {
    pub branches: Branches<'a>,
    pub left: AtomicUsize,
}

impl Cut<'_> {
    fn write(&self) -> StoreResult<()> {
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        left.map(drop).map_err(|_| StoreError::Unreachable {
            place: "the test".into(),
            reason: "cut".into(),
        })
    }
}

#[async_trait]
impl BranchSource for Cut<'_> {
    async fn head_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
        self.branches.head_at(id, seq).await
    }

    async fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.branches.lines(id, after, limit).await
    }

    async fn origins(&self, id: SessionId) -> StoreResult<Vec<Origin>> {
        self.branches.origins(id).await
    }

    async fn fixed(&self, id: SessionId) -> StoreResult<Seq> {
        self.branches.fixed(id).await
    }
}

#[async_trait]
impl Partner for Cut<'_> {
    async fn page(&self, cursor: Option<Cursor>, limit: usize) -> StoreResult<BranchPage> {
        self.branches.page(cursor, limit.min(3)).await
    }

    async fn family(&self, root: SessionId) -> StoreResult<Vec<Branch>> {
        self.branches.family(root).await
    }

    async fn has(&self, origin: &Origin) -> StoreResult<bool> {
        self.branches.has(origin).await
    }

    async fn create(&self, new: &NewBranch) -> StoreResult<Branch> {
        self.write()?;
        self.branches.create(new).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.write()?;
        self.branches.append(id, after, entries).await
    }

    async fn merge_end(&self, id: SessionId, end: &MergedEnd) -> StoreResult<Head> {
        self.write()?;
        self.branches.merge_end(id, end).await
    }
}

struct World {
    stores: Vec<Box<dyn Store>>,
    clocks: Vec<Clock>,
    _folders: Vec<Scratch>,
}

impl World {
    fn new(count: usize) -> World {
        let mut world = World {
            stores: Vec::new(),
            clocks: Vec::new(),
            _folders: Vec::new(),
        };
        for number in 0..count {
            if number % 2 == 0 {
                world
                    .stores
                    .push(Box::new(SqliteStore::in_memory().unwrap()));
            } else {
                let folder = Scratch::new();
                let store = FilesStore::open(folder.path()).unwrap();
                world.stores.push(Box::new(store));
                world._folders.push(folder);
            }
            world.clocks.push(still_clock(100 + number as u64));
        }
        world
    }

    fn writer(&self, at: usize, session: usize) -> Option<Writer> {
        let mut ids: Vec<SessionId> = metas(&*self.stores[at])
            .iter()
            .map(|meta| meta.id)
            .collect();
        ids.sort();
        let id = *ids.get(session % ids.len().max(1))?;
        let mut writer = Writer::named(id, &self.clocks[at]);
        writer.log = log(&*self.stores[at], id);
        Some(writer)
    }

    fn play(&self, at: usize, op: &Op) {
        let store = &*self.stores[at];
        let append = |session: usize, bodies| {
            if let Some(mut writer) = self.writer(at, session) {
                writer.append(store, bodies);
            }
        };
        match op {
            Op::Create => {
                Writer::begin(store, &self.clocks[at]);
            }
            Op::Say(session, count) => {
                let said = (0..*count).map(|n| match n % 2 {
                    0 => human(&format!("store {at} says {n}")),
                    _ => ai("demo", "yes"),
                });
                append(*session, said.collect());
            }
            Op::Fork(session, place) => {
                if let Some(writer) = self.writer(at, *session) {
                    let place = (*place).min(writer.log.len()) as u64;
                    writer.fork(store, place);
                }
            }
            Op::Merge(one, other) => {
                let sessions = self.writer(at, *one).zip(self.writer(at, *other));
                if let Some((ours, theirs)) = sessions {
                    let end = |writer: &Writer| Origin {
                        id: writer.id,
                        seq: writer.head().seq,
                        hash: writer.head().hash,
                    };
                    let joins = Body::Merged(Merged {
                        ours: end(&ours),
                        theirs: end(&theirs),
                    });
                    let mut merge = ours.fork(store, 1);
                    merge.append(store, vec![joins, human("both")]);
                }
            }
            Op::Rename(session) => append(*session, vec![renamed("new")]),
            Op::Tag(session) => append(*session, vec![tagged(&["x"], &[])]),
            Op::Trash(session) => append(*session, vec![trashed()]),
            Op::Restore(session) => append(*session, vec![restored()]),
            Op::Undo(session) => {
                if let Some(writer) = self.writer(at, *session) {
                    let end = writer.head().seq.0;
                    append(*session, vec![undone(end)]);
                }
            }
            Op::Push(to, stop) if *to != at => {
                let from = Branches::of(store);
                let cut = Cut {
                    branches: Branches::of(&*self.stores[*to]),
                    left: AtomicUsize::new(stop.unwrap_or(usize::MAX)),
                };
                match move_all(&from, &cut, Doing::Write) {
                    Ok(moved) => assert!(moved.skipped.is_empty(), "{:?}", moved.skipped),
                    Err(StoreError::Unreachable { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            Op::Push(..) => {}
        }
    }

    /// Moves everything both ways, around the ring or by way of the first store, until nothing moves
    /// any more.
    fn settle(&self, by_hub: bool) {
        let count = self.stores.len();
        for _round in 0..count + 2 {
            let mut moved = 0;
            for at in 0..count {
                let next = if by_hub { 0 } else { (at + 1) % count };
                if next == at {
                    continue;
                }
                moved += push(&*self.stores[at], &*self.stores[next]).entries;
                moved += push(&*self.stores[next], &*self.stores[at]).entries;
            }
            if moved == 0 {
                return;
            }
        }
        panic!("entries still move after {} rounds", count + 2);
    }
}

fn play(ops: &[(usize, Op)], count: usize) {
    let world = World::new(count);
    for (at, op) in ops {
        world.play(*at, op);
    }
    let mut messages: Vec<_> = world
        .stores
        .iter()
        .flat_map(|store| all_written(&**store).concat())
        .collect();
    messages.sort();
    messages.dedup();
    world.settle(ops.len().is_multiple_of(2));
    let first = all_written(&*world.stores[0]);
    for (branch, next) in first.iter().zip(first.iter().skip(1)) {
        // A fork that the user made also begins with its original.
        let rest = next.strip_prefix(&branch[..]);
        let is_same =
            rest.is_some_and(|rest| rest.iter().all(|(_, body)| !body.starts_with("Forked")));
        assert!(!is_same, "a branch is there twice");
    }
    let mut kept = first.concat();
    kept.sort();
    kept.dedup();
    assert_eq!(kept, messages, "something was lost or made up");
    for store in &world.stores {
        assert_eq!(all_written(&**store), first);
        assert_eq!(ends(&**store), ends(&*world.stores[0]), "hashes differ");
        assert_sound(&**store);
    }
}

fn run(count: usize) {
    histories(ops(count), |ops| play(&ops, count));
}

/// Plays random histories.
pub fn histories<S: Strategy>(strategy: S, play: impl Fn(S::Value)) {
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = if soak() { HISTORIES.1 } else { HISTORIES.0 };
    }
    let result = TestRunner::new(config).run(&strategy, |ops| {
        play(ops);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A branch with nothing but changes fits to several others; it goes to the nearest.
#[test]
fn changes_go_to_the_branch_that_they_were_made_in() {
    let ops = [
        (2, Op::Create),
        (2, Op::Push(1, None)),
        (2, Op::Fork(0, 1)),
        (1, Op::Push(0, None)),
        (0, Op::Rename(0)),
        (1, Op::Say(0, 2)),
        (2, Op::Rename(2)),
        (0, Op::Push(2, None)),
        (0, Op::Say(2, 1)),
        // By way of the first store.
        (0, Op::Push(0, None)),
    ];
    play(&ops, 3);
}

#[test]
fn two_stores_agree() {
    run(2);
}

#[test]
fn three_stores_agree() {
    run(3);
}

#[test]
fn five_stores_agree() {
    run(5);
}
