//! Random families of sessions: forks, copies, answers in several parts, resumes and purges.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tertulia_core::entry::{Body, Compacted, Entry, Imported, Usage};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Extent, Ledger, Progress, Store};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human};

use super::{answer, catch_up, everything_in, sums};

#[derive(Clone, Debug)]
enum Op {
    /// A new session.
    Begin,
    /// A message of a person.
    Ask(usize),
    /// An answer.
    Answer(usize, Usage),
    /// An answer of another program, whose copies have the same identity.
    Import(usize, u8, Usage),
    /// A copy of another session's entry, as a merge makes it.
    Copy(usize, usize, usize, Usage),
    /// The origin of a session: another program's, or an export of ours.
    Source(usize, bool),
    /// A compaction.
    Compact(usize, Usage),
    /// A fork, and its first answer.
    Fork(usize, usize, Usage),
    /// The end of a session.
    Purge(usize),
    /// Catching up: wholly, with the newest only, or without any time.
    CatchUp(Extent, bool),
}

fn usage() -> impl Strategy<Value = Usage> {
    (
        0..1000_u64,
        0..1000_u64,
        0..1000_u64,
        0..1000_u64,
        any::<bool>(),
    )
        .prop_map(
            |(input, output, cache_read, cache_written, estimated)| Usage {
                input,
                output,
                cache_read,
                cache_written,
                estimated,
            },
        )
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0..8_usize;
    prop_oneof![
        2 => Just(Op::Begin),
        2 => n.clone().prop_map(Op::Ask),
        4 => (n.clone(), usage()).prop_map(|(at, usage)| Op::Answer(at, usage)),
        4 => (n.clone(), 0..4_u8, usage()).prop_map(|(at, id, usage)| Op::Import(at, id, usage)),
        3 => (n.clone(), n.clone(), 0..64_usize, usage())
            .prop_map(|(from, to, entry, usage)| Op::Copy(from, to, entry, usage)),
        2 => (n.clone(), any::<bool>()).prop_map(|(at, exported)| Op::Source(at, exported)),
        1 => (n.clone(), usage()).prop_map(|(at, usage)| Op::Compact(at, usage)),
        3 => (n.clone(), 0..64_usize, usage()).prop_map(|(at, seq, usage)| Op::Fork(at, seq, usage)),
        1 => n.prop_map(Op::Purge),
        2 => (prop_oneof![Just(Extent::All), Just(Extent::Newest)], any::<bool>())
            .prop_map(|(extent, hasty)| Op::CatchUp(extent, hasty)),
    ]
}

/// Returns true if an entry names the usage of another one.
fn is_copy(entry: &Entry) -> bool {
    matches!(&entry.body, Body::Message(message) if message.usage_id.is_some())
}

/// The identity of an entry's usage, if the ledger counts the entry.
fn identity(entry: &Entry) -> Option<(String, bool, Option<Usage>)> {
    let own = entry.id.to_string();
    match &entry.body {
        Body::Message(message) => {
            let id = message.usage_id.clone().unwrap_or(own);
            Some((id, true, message.usage))
        }
        Body::Compacted(compacted) => Some((own, false, Some(compacted.usage?))),
        _ => None,
    }
}

/// Highest figures of an event, and by session in order of creation its rank and its messages.
type Seen = (Option<Usage>, BTreeMap<(i64, SessionId), (u8, u64)>);

/// What is expected: sums over distinct events, by looking at every log as a whole.
fn expected(writers: &[Writer]) -> (u64, Usage) {
    let mut events: BTreeMap<String, Seen> = BTreeMap::new();
    for writer in writers {
        let opening = writer.log.iter().rev().find(|entry| {
            matches!(&entry.body, Body::Created(_))
                || matches!(&entry.body, Body::Forked(forked) if forked.session == writer.id)
        });
        let owner = (opening.unwrap().at.as_microsecond(), writer.id);
        let source = SessionMeta::of(writer.id, &writer.log).source;
        let exported = source.is_some_and(|source| source.exported);
        // What a fork shares with its parent is the parent's, as long as there is one.
        let shared = match &opening.unwrap().body {
            Body::Forked(forked) if writers.iter().any(|other| other.id == forked.from.id) => {
                forked.from.seq
            }
            _ => Seq::START,
        };
        for entry in writer.log.iter().filter(|entry| entry.seq > shared) {
            let Some((id, is_message, usage)) = identity(entry) else {
                continue;
            };
            let (highest, messages) = events.entry(id).or_default();
            if let Some(usage) = usage {
                let known = highest.unwrap_or(Usage {
                    estimated: true,
                    ..Usage::default()
                });
                *highest = Some(Usage {
                    input: usage.input.max(known.input),
                    output: usage.output.max(known.output),
                    cache_read: usage.cache_read.max(known.cache_read),
                    cache_written: usage.cache_written.max(known.cache_written),
                    estimated: usage.estimated && known.estimated,
                });
            }
            let rank = match is_copy(entry) {
                false => 0,
                true => 1 + u8::from(exported),
            };
            let (best, count) = messages.entry(owner).or_insert((rank, 0));
            *best = rank.min(*best);
            *count += u64::from(is_message);
        }
    }
    let messages = events.values().filter_map(|(_, by)| {
        let owner = by.values().min_by_key(|(rank, _)| *rank);
        owner.map(|(_, messages)| messages)
    });
    let usage = events.values().filter_map(|(usage, _)| *usage);
    (messages.sum(), usage.fold(Usage::default(), Usage::plus))
}

struct World {
    store: SqliteStore,
    clock: tertulia_core::clock::Clock,
    writers: Vec<Writer>,
    ledger: Ledger,
}

impl World {
    fn play(&mut self, op: &Op) {
        let count = self.writers.len();
        let at = |n: usize| n % count.max(1);
        match op {
            Op::Begin => {
                let writer = Writer::begin(&self.store, &self.clock);
                self.writers.push(writer);
            }
            _ if count == 0 => {}
            Op::Ask(n) => self.say(at(*n), human("hi")),
            Op::Answer(n, usage) => self.say(at(*n), answer(*usage, None)),
            Op::Import(n, id, usage) => {
                self.say(at(*n), answer(*usage, Some(&format!("m{id}:r"))));
            }
            Op::Copy(from, to, entry, usage) => {
                let log = &self.writers[at(*from)].log;
                let original = identity(&log[entry % log.len()]);
                if let Some((id, true, Some(_))) = original {
                    self.say(at(*to), answer(*usage, Some(&id)));
                }
            }
            Op::Source(n, exported) => {
                let mut source = Imported::new("codex", "original");
                source.exported_from = exported.then(|| "ours".to_owned());
                self.say(at(*n), Body::Imported(source));
            }
            Op::Compact(n, usage) => {
                let compacted = Body::Compacted(Compacted {
                    upto: Seq(1),
                    summary: String::new(),
                    agent: "ada".into(),
                    model: None,
                    usage: Some(*usage),
                    thread: None,
                });
                self.say(at(*n), compacted);
            }
            Op::Fork(n, seq, usage) => {
                let parent = &self.writers[at(*n)];
                let seq = 1 + seq % parent.log.len();
                let first = vec![answer(*usage, None)];
                let fork = parent.fork_with(&self.store, seq as u64, |_| {}, first);
                self.writers.push(fork);
            }
            Op::Purge(n) => {
                let gone = self.writers.remove(at(*n));
                now(self.store.purge(gone.id)).unwrap();
            }
            Op::CatchUp(extent, hasty) => {
                let progress = match hasty {
                    true => Progress::unseen().within(Duration::ZERO),
                    false => Progress::unseen(),
                };
                now(self.ledger.catch_up(&self.store, *extent, &progress)).unwrap();
            }
        }
    }

    fn say(&mut self, at: usize, body: Body) {
        self.writers[at].append(&self.store, vec![body]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_event_counts_once_however_it_was_read(ops in prop::collection::vec(op(), 1..60)) {
        let mut world = World {
            store: SqliteStore::in_memory().unwrap(),
            clock: still_clock(7),
            writers: Vec::new(),
            ledger: Ledger::in_memory().unwrap(),
        };
        for op in &ops {
            world.play(op);
        }
        // Catching up in steps ends where catching up at once does.
        let mut at_once = Ledger::in_memory().unwrap();
        catch_up(&mut at_once, &world.store);
        catch_up(&mut world.ledger, &world.store);
        prop_assert_eq!(sums(&at_once), expected(&world.writers));
        prop_assert_eq!(everything_in(&world.ledger), everything_in(&at_once));
        // Nothing is left to read.
        prop_assert_eq!(catch_up(&mut world.ledger, &world.store).sessions, 0);
    }
}
