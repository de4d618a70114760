//! Sealed sessions in several stores: titles, tags and trash are merged where the key is at hand, and
//! random histories with seals among them end alike.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use tertulia_core::entry::{Kind, Relation};
use tertulia_core::id::SessionId;
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients};
use tertulia_core::session::SessionMeta;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::sync::{Branches, Heads, Partner, Transfer, Transferred, transfer};
use tertulia_store::{
    Doing, Fork, KeyError, KeySource, Progress, Redaction, Sessions, Start, Store, StoreError,
    StoreResult, Unlocking,
};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{ai, human};
use tertulia_testkit::scratch::Scratch;

use super::property::{Cut, histories};
use super::{assert_sound, ends, log, metas};

/// A person with several machines: a wrapped key is its number, and each machine makes its own ones.
#[derive(Debug)]
struct Numbered {
    next: AtomicU8,
}

impl KeySource for Numbered {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok((KeyBytes::new([number; KEY_BYTES]), number.to_string()))
    }

    fn renew(&self, _: &Recipients, _: &[String]) -> Result<NewKey, KeyError> {
        Err(KeyError("its keys do not change".to_owned()))
    }

    fn wrap(&self, _: &KeyBytes, _: &str) -> Result<String, KeyError> {
        Err(KeyError("its keys do not change".to_owned()))
    }

    fn unwrap_key(&self, wrapped: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        let number = wrapped.parse().map_err(|_| KeyError("no key".to_owned()))?;
        Ok(KeyBytes::new([number; KEY_BYTES]))
    }
}

/// A store of a machine that has the keys.
fn machine(store: Arc<dyn Store>, number: u8) -> Sessions {
    let sessions = Sessions::new(store, still_clock(u64::from(number)), Redaction::On);
    let next = AtomicU8::new(1 + number * 40);
    sessions.with_keys(Arc::new(Numbered { next }))
}

fn memory() -> Arc<dyn Store> {
    Arc::new(SqliteStore::in_memory().unwrap())
}

fn create(sessions: &Sessions, is_sealed: bool) -> SessionId {
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    if is_sealed {
        now(sessions.seal_new(start.id)).unwrap();
    }
    let words = vec![human("hello"), ai("demo", "yes")];
    now(sessions.create(&start, words)).unwrap().0.id
}

fn say(sessions: &Sessions, id: SessionId, words: &str) {
    let meta = now(sessions.row(id)).unwrap().meta;
    now(sessions.append(id, meta.head, vec![human(words)])).unwrap();
}

fn rename(sessions: &Sessions, id: SessionId, title: &str) {
    let operation = sessions.clock().entry_id();
    now(sessions.rename(id, title, operation)).unwrap();
}

fn tag(sessions: &Sessions, id: SessionId, tag: &str) {
    let operation = sessions.clock().entry_id();
    now(sessions.tag(id, &[tag.to_owned()], &[], operation)).unwrap();
}

/// Moves everything both ways, as `tertulia sync` does.
fn exchange(
    here: &Sessions,
    there: &dyn Partner,
) -> StoreResult<(Vec<SessionId>, Transferred, Transferred)> {
    let ours = Branches::of_sessions(here);
    let progress = Progress::unseen();
    now(async {
        let mut known = (Heads::of(&ours).await?, Heads::of(there).await?);
        let sealed = here.seal_copies(there, (&known.0, &known.1)).await?;
        if !sealed.is_empty() {
            known.0 = Heads::of(&ours).await?;
        }
        let pulled = transfer(Transfer {
            source: (there, &known.1),
            target: (&ours, &mut known.0),
            doing: Doing::Write,
            progress: &progress,
        });
        let pulled = pulled.await?;
        let pushed = transfer(Transfer {
            source: (&ours, &known.0),
            target: (there, &mut known.1),
            doing: Doing::Write,
            progress: &progress,
        });
        let sealed = sealed.iter().map(|copy| copy.session).collect();
        Ok((sealed, pulled, pushed.await?))
    })
}

fn sync(one: &Sessions, other: &Sessions) -> (Transferred, Transferred) {
    let (_, pulled, pushed) = exchange(one, &Branches::of_sessions(other)).unwrap();
    (pulled, pushed)
}

/// Returns the only session of a store, with its words.
fn only(sessions: &Sessions) -> SessionMeta {
    let rows = metas(sessions.store());
    let [meta] = rows.as_slice() else {
        panic!("{rows:#?}");
    };
    meta.clone()
}

#[test]
fn changes_of_a_sealed_session_are_merged() {
    let folder = Scratch::new();
    let files: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path()).unwrap());
    let (one, other) = (machine(memory(), 1), machine(files, 2));
    let id = create(&one, true);
    sync(&one, &other);
    rename(&one, id, "tomatoes");
    tag(&one, id, "red");
    tag(&other, id, "green");
    let (pulled, pushed) = sync(&one, &other);
    assert!(pulled.diverged.is_empty() && pushed.diverged.is_empty());
    assert_eq!(log(one.stored(), id), log(other.stored(), id));
    for sessions in [&one, &other] {
        let meta = only(sessions);
        assert_eq!(meta.title.as_deref(), Some("tomatoes"));
        assert_eq!(meta.tags.iter().collect::<Vec<_>>(), ["green", "red"]);
        assert!(now(sessions.load(id)).unwrap().damage.is_empty());
        assert_sound(sessions.store());
    }
    let (pulled, pushed) = sync(&one, &other);
    assert!(pulled.is_empty() && pushed.is_empty());
}

#[test]
fn a_store_between_two_machines_needs_no_key() {
    let hub = memory();
    let (one, other) = (machine(memory(), 1), machine(memory(), 2));
    let id = create(&one, true);
    let through = |sessions: &Sessions| {
        let (_, pulled, pushed) = exchange(sessions, &Branches::of(hub.as_ref())).unwrap();
        assert!(pulled.diverged.is_empty() && pushed.diverged.is_empty());
    };
    through(&one);
    through(&other);
    rename(&one, id, "tomatoes");
    tag(&other, id, "green");
    say(&other, id, "potatoes");
    for sessions in [&one, &other, &one] {
        through(sessions);
    }
    let expected = ends(hub.as_ref());
    for sessions in [&one, &other] {
        assert_eq!(ends(sessions.stored()), expected);
        assert_eq!(only(sessions).title.as_deref(), Some("tomatoes"));
    }
}

#[test]
fn without_the_key_they_become_forks() {
    let (one, other) = (machine(memory(), 1), machine(memory(), 2));
    let id = create(&one, true);
    sync(&one, &other);
    rename(&one, id, "tomatoes");
    rename(&other, id, "potatoes");
    let (ours, theirs) = (Branches::of(one.stored()), Branches::of(other.stored()));
    let pulled = super::move_all(&theirs, &ours, Doing::Write).unwrap();
    assert_eq!(pulled.diverged.len(), 1);
    let titles: Vec<Option<String>> = metas(one.store()).into_iter().map(|it| it.title).collect();
    assert_eq!(titles.len(), 2);
    assert!(titles.contains(&Some("tomatoes".into())) && titles.contains(&Some("potatoes".into())));
}

#[derive(Clone, Debug)]
enum Op {
    Create(bool),
    Say(usize),
    Fork(usize),
    Rename(usize),
    Tag(usize),
    Trash(usize),
    Restore(usize),
    Seal(usize),
    /// Both ways, with another machine or the store between them; stops after so many writes there.
    Sync(usize, Option<usize>),
}

fn ops(machines: usize) -> impl Strategy<Value = Vec<(usize, Op)>> {
    let session = 0..4_usize;
    let op = prop_oneof![
        2 => any::<bool>().prop_map(Op::Create),
        4 => session.clone().prop_map(Op::Say),
        1 => session.clone().prop_map(Op::Fork),
        2 => session.clone().prop_map(Op::Rename),
        2 => session.clone().prop_map(Op::Tag),
        1 => session.clone().prop_map(Op::Trash),
        1 => session.clone().prop_map(Op::Restore),
        2 => session.prop_map(Op::Seal),
        6 => (0..=machines, proptest::option::weighted(0.3, 0..4_usize))
            .prop_map(|(with, stop)| Op::Sync(with, stop)),
    ];
    vec((0..machines, op), 1..40)
}

/// Machines that have the keys, and a store between them that has none.
struct World {
    machines: Vec<Sessions>,
    hub: Arc<dyn Store>,
    _folder: Scratch,
}

impl World {
    fn new(count: u8) -> World {
        let folder = Scratch::new();
        let files: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path()).unwrap());
        let machines = (0..count).map(|number| match number {
            1 => machine(files.clone(), number),
            _ => machine(memory(), number),
        });
        World {
            machines: machines.collect(),
            hub: memory(),
            _folder: folder,
        }
    }

    fn branches(&self, with: usize) -> Branches<'_> {
        match self.machines.get(with) {
            Some(sessions) => Branches::of_sessions(sessions),
            None => Branches::of(self.hub.as_ref()),
        }
    }

    fn session(&self, at: usize, session: usize) -> Option<SessionId> {
        let metas = metas(self.machines[at].stored());
        let mut ids: Vec<SessionId> = metas.iter().map(|meta| meta.id).collect();
        ids.sort();
        ids.get(session % ids.len().max(1)).copied()
    }

    fn play(&self, at: usize, number: usize, op: &Op) {
        let sessions = &self.machines[at];
        let operation = sessions.clock().entry_id();
        let with = |session: &usize, work: &dyn Fn(SessionId)| {
            self.session(at, *session).into_iter().for_each(work);
        };
        match op {
            Op::Create(is_sealed) => {
                create(sessions, *is_sealed);
            }
            Op::Say(it) => with(it, &|id| say(sessions, id, &format!("words {number}"))),
            Op::Fork(it) => with(it, &|id| {
                let fork = Fork {
                    id: sessions.clock().session_id(),
                    at: None,
                    title: None,
                    relation: Relation::Fork,
                };
                let meta = now(sessions.row(id)).unwrap().meta;
                now(sessions.fork(&meta, &fork, Vec::new())).unwrap();
            }),
            Op::Rename(it) => with(it, &|id| rename(sessions, id, &format!("title {number}"))),
            Op::Tag(it) => with(it, &|id| tag(sessions, id, &format!("tag{number}"))),
            Op::Trash(it) => with(it, &|id| drop(now(sessions.trash(id, operation)).unwrap())),
            Op::Restore(it) => with(it, &|id| {
                drop(now(sessions.restore(id, operation)).unwrap());
            }),
            Op::Seal(it) => with(it, &|id| match now(sessions.seal(id)) {
                Ok(_) | Err(StoreError::Refused(_)) => {}
                Err(error) => panic!("{error:?}"),
            }),
            Op::Sync(with, stop) if *with != at => {
                let cut = Cut {
                    branches: self.branches(*with),
                    left: AtomicUsize::new(stop.unwrap_or(usize::MAX)),
                };
                match exchange(sessions, &cut) {
                    Ok(_) | Err(StoreError::Unreachable { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            Op::Sync(..) => {}
        }
    }

    /// Syncs all machines with each other and with the store between them until nothing moves any more.
    fn settle(&self) {
        for _round in 0..self.machines.len() + 3 {
            let mut moved = 0;
            for (at, sessions) in self.machines.iter().enumerate() {
                // A plain copy is sealed by the machine that has it.
                for with in (0..=self.machines.len()).filter(|with| *with != at) {
                    let branches = self.branches(with);
                    let (sealed, pulled, pushed) = exchange(sessions, &branches).unwrap();
                    moved += sealed.len() + pulled.entries + pushed.entries;
                }
            }
            if moved == 0 {
                return;
            }
        }
        panic!("entries still move");
    }

    /// Returns what can be read in a machine's sessions: their words, titles and tags.
    fn read(&self, at: usize) -> Vec<String> {
        let sessions = &self.machines[at];
        let mut found = Vec::new();
        for meta in metas(sessions.store()) {
            let log = now(sessions.load(meta.id)).unwrap();
            assert!(log.damage.is_empty(), "{:?}", log.damage);
            for entry in &log.entries {
                let body = format!("{:?}", entry.body);
                let words = body.split(|c: char| !c.is_alphanumeric() && c != ' ');
                let named = |word: &&str| {
                    ["words ", "title ", "tag"].iter().any(|kind| {
                        let number = word.strip_prefix(kind);
                        number.is_some_and(|number| number.parse::<usize>().is_ok())
                    })
                };
                found.extend(words.filter(named).map(str::to_owned));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

fn play(ops: &[(usize, Op)], machines: u8) {
    let world = World::new(machines);
    for (number, (at, op)) in ops.iter().enumerate() {
        world.play(*at, number, op);
    }
    let all = 0..world.machines.len();
    let mut written: Vec<String> = all.clone().flat_map(|at| world.read(at)).collect();
    written.sort();
    written.dedup();
    world.settle();
    let expected = ends(world.machines[0].stored());
    for at in all {
        let sessions = &world.machines[at];
        assert_eq!(ends(sessions.stored()), expected, "hashes differ");
        assert_eq!(world.read(at), written, "something was lost or made up");
        assert_sound(sessions.store());
    }
    // What the store between them had in plain, or with another key, stays so: it has no keys.
    let seals = |store: &dyn Store| -> HashMap<SessionId, Option<String>> {
        let seal = |meta: &SessionMeta| meta.seal.as_ref().map(|seal| seal.key.clone());
        let metas = metas(store).into_iter();
        metas.map(|meta| (meta.id, seal(&meta))).collect()
    };
    let (in_hub, elsewhere) = (seals(world.hub.as_ref()), seals(world.machines[0].stored()));
    let same = |ends: Vec<(SessionId, String)>| -> Vec<(SessionId, String)> {
        let ends = ends.into_iter();
        ends.filter(|(root, _)| in_hub.get(root) == elsewhere.get(root))
            .collect()
    };
    assert_eq!(
        same(ends(world.hub.as_ref())),
        same(expected),
        "hashes differ"
    );
}

#[test]
fn two_machines_agree() {
    histories(ops(2), |ops| play(&ops, 2));
}

#[test]
fn three_machines_agree() {
    histories(ops(3), |ops| play(&ops, 3));
}

/// A fork may be sealed alone: its beginning is in its own log then.
#[test]
fn a_fork_that_is_sealed_alone_reaches_every_machine() {
    let (one, other) = (machine(memory(), 1), machine(memory(), 2));
    let id = create(&one, false);
    for number in [1, 2] {
        let fork = Fork {
            id: SessionId::new(uuid::Uuid::from_u128(number)),
            at: None,
            title: None,
            relation: Relation::Fork,
        };
        let meta = now(one.row(id)).unwrap().meta;
        now(one.fork(&meta, &fork, Vec::new())).unwrap();
    }
    now(one.seal(SessionId::new(uuid::Uuid::from_u128(1)))).unwrap();
    let (pulled, pushed) = sync(&one, &other);
    assert!(
        pulled.skipped.is_empty() && pushed.skipped.is_empty(),
        "{pushed:?}"
    );
    assert_eq!(ends(one.stored()), ends(other.stored()));
}

/// Each has a key of its own, and so has its copy on every machine.
#[test]
fn a_fork_that_is_sealed_before_its_original_is_the_same_everywhere() {
    play(
        &[
            (1, Op::Create(false)),
            (1, Op::Fork(0)),
            (0, Op::Create(false)),
            (1, Op::Sync(0, None)),
            (0, Op::Seal(2)),
            (0, Op::Seal(1)),
        ],
        2,
    );
}

/// What is a branch on one machine is the session itself on another.
#[test]
fn a_branch_that_sync_kept_is_sealed_with_its_session() {
    let ops = |sealed| {
        [
            (0, Op::Create(false)),
            (1, Op::Sync(0, None)),
            (1, Op::Say(0)),
            (0, Op::Say(0)),
            (2, Op::Sync(1, None)),
            (1, Op::Sync(0, None)),
            (0, Op::Seal(sealed)),
        ]
    };
    play(&ops(0), 3);
    play(&ops(1), 3);
}

#[test]
fn what_is_sealed_with_a_branch_is_unsealed_with_it() {
    let (one, other) = (machine(memory(), 1), machine(memory(), 2));
    let id = create(&one, false);
    sync(&one, &other);
    say(&one, id, "tomatoes");
    say(&other, id, "potatoes");
    sync(&one, &other);
    let plain = ends(one.stored());
    let metas = || metas(one.stored());
    let branch = metas().into_iter().find(|meta| meta.id != id).unwrap().id;
    now(one.seal(branch)).unwrap();
    assert!(metas().iter().all(|meta| meta.seal.is_some()));
    now(one.unseal(branch)).unwrap();
    assert!(metas().iter().all(|meta| meta.seal.is_none()));
    assert_eq!(ends(one.stored()), plain);
}

/// Each has a key of its own at first; what either of them said is there in the end.
#[test]
fn a_session_that_two_machines_sealed_gets_one_key() {
    let hub = memory();
    let (one, other) = (machine(memory(), 1), machine(memory(), 2));
    let id = create(&one, false);
    sync(&one, &other);
    say(&one, id, "tomatoes");
    say(&other, id, "potatoes");
    for sessions in [&one, &other] {
        now(sessions.seal(id)).unwrap();
        // The first of the two keys is what a store without keys goes on with.
        exchange(sessions, &Branches::of(hub.as_ref())).unwrap();
    }
    assert_ne!(ends(one.stored()), ends(other.stored()));
    for _ in 0..2 {
        sync(&one, &other);
        sync(&other, &one);
    }
    assert_eq!(ends(one.stored()), ends(other.stored()));
    for sessions in [&one, &other] {
        let mut said = Vec::new();
        for meta in metas(sessions.store()) {
            let log = now(sessions.load(meta.id)).unwrap();
            assert!(log.damage.is_empty(), "{:?}", log.damage);
            said.push(format!("{:?}", log.entries));
        }
        for words in ["tomatoes", "potatoes"] {
            assert!(said.iter().any(|said| said.contains(words)), "{words}");
        }
        assert_sound(sessions.store());
    }
}

/// Two machines have the same changes in another order, and forks that refer to either of them. A third
/// one has both orders, too, though its forks name the session that the branches continue.
#[test]
fn what_forks_refer_to_stays_in_a_branch_that_sync_kept() {
    play(
        &[
            (1, Op::Create(false)),
            (1, Op::Sync(2, None)),
            (1, Op::Rename(0)),
            (0, Op::Sync(1, None)),
            (0, Op::Rename(0)),
            (0, Op::Fork(0)),
            (1, Op::Rename(0)),
            (2, Op::Say(0)),
            (1, Op::Fork(0)),
            (0, Op::Fork(0)),
        ],
        3,
    );
}
