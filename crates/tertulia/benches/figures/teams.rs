//! A long session of a team: whether its thousandth turn costs more than its first, and whether memory grows
//! with what was said.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tertulia_agents::approval::{ToolRequest, Verdict};
use tertulia_agents::demo::Demo;
use tertulia_core::clock::Clock;
use tertulia_core::entry::Kind;
use tertulia_core::team::{EXAMPLE, TeamFile};
use tertulia_engine::conversation::{Conversation, TurnResult};
use tertulia_engine::event::SessionEvent;
use tertulia_engine::frontend::Frontend;
use tertulia_engine::log_writer::{LogWriter, OnConflict};
use tertulia_engine::setup::{Participants, RunOptions};
use tertulia_engine::team::names::{Member, Nature};
use tertulia_engine::team::policy::{TeamAgent, TeamRoster};
use tertulia_engine::team::prompt::Layout;
use tertulia_engine::team::resume::ResumePlan;
use tertulia_store::{Redaction, Sessions, Start, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::append::{cpu_time, percentile};
use crate::logs::{BACKENDS, MESSAGE, open, text};
use crate::table::Table;

const TURNS: usize = 1_000;
/// So many at either end are compared.
const SOME: usize = 100;
const AGENTS: [&str; 4] = ["ada", "ben", "cleo", "dan"];

pub fn measure(table: &mut Table) {
    for backend in BACKENDS {
        println!("a team of four, {backend}");
        let folder = tempfile::tempdir_in(".").unwrap();
        // A process of its own: what the other figures left free would hide what this one takes.
        let output = Command::new(std::env::current_exe().unwrap())
            .env("TERTULIA_BENCH_ROLE", "team")
            .env("TERTULIA_BENCH_BACKEND", backend)
            .env("TERTULIA_BENCH_FOLDER", folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success());
        let words = String::from_utf8(output.stdout).unwrap();
        let figures: Vec<f64> = words
            .split_whitespace()
            .map(|figure| figure.parse().unwrap())
            .collect();
        let [first, wall, processor, grown] = figures[..] else {
            panic!("not four figures: {words}");
        };
        let name = format!("{backend}: {TURNS} turns of a team of {}", AGENTS.len());
        let ends = format!("last {SOME} to first");
        table.fact(&format!("{name}, first {SOME}, p50"), first * 1000.0, "ms");
        table.at_most(&format!("{name}, wall, {ends}"), wall, 1.5, "×");
        table.at_most(&format!("{name}, processor, {ends}"), processor, 1.5, "×");
        let half = format!("{name}, memory in the second half");
        table.at_most(&half, grown / 1e6, 8.0, "MB");
    }
}

/// Runs a session, and prints what it cost: seconds of a turn at the beginning, what a turn at the end takes as a
/// multiple of that, in time and in processor time, and bytes of memory of the second half.
pub fn be_a_team() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let store = open(
        &variable("TERTULIA_BENCH_BACKEND"),
        Path::new(&variable("TERTULIA_BENCH_FOLDER")),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut talk = Talk::begin(store.clone());
        talk.turns(TURNS / 2).await;
        let memory_at_half = memory();
        talk.turns(TURNS / 2 - SOME).await;
        let before = memory();
        // The first turns are those of another session, taken by turns with the last ones: so both see the
        // same disk and the same neighbours.
        let mut other = Talk::begin(store);
        let mut taken = 0;
        for _ in 0..SOME {
            other.turns(1).await;
            let between = memory();
            talk.turns(1).await;
            taken += memory().saturating_sub(between);
        }
        let grown = before.saturating_sub(memory_at_half) + taken;
        let last = |times: &[Duration]| percentile(&times[TURNS - SOME..], 50);
        let first = |times: &[Duration]| percentile(times, 50);
        println!(
            "{} {} {} {grown}",
            first(&other.walls),
            last(&talk.walls) / first(&other.walls),
            last(&talk.processor) / first(&other.processor),
        );
    });
}

/// A session, and what its turns cost, one by one.
struct Talk {
    conversation: Conversation,
    walls: Vec<Duration>,
    processor: Vec<Duration>,
}

impl Talk {
    fn begin(store: Arc<dyn Store>) -> Talk {
        let clock = Clock::new(jiff::Timestamp::now, Uuid::now_v7);
        let sessions = Sessions::new(store, clock, Redaction::On);
        let start = Start {
            id: sessions.clock().session_id(),
            kind: Kind::Team,
            title: None,
            team: Some("bench".to_owned()),
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
        };
        let writer = LogWriter::begin(sessions, start, OnConflict::Fork);
        let participants = Participants::Team {
            team: Box::new(TeamFile::read(EXAMPLE, "example").unwrap()),
            roster: Box::new(roster()),
            plan: ResumePlan::default(),
            seat: None,
        };
        Talk {
            conversation: Conversation::begin(writer, participants, RunOptions::default()).unwrap(),
            walls: Vec::with_capacity(TURNS),
            processor: Vec::with_capacity(TURNS),
        }
    }

    async fn turns(&mut self, count: usize) {
        for _ in 0..count {
            // Ada repeats it, so that a turn weighs as much as others do.
            let words = format!("echo {}", text(self.walls.len() as u64, MESSAGE));
            let cancel = CancellationToken::new();
            let (processor, started) = (cpu_time(), Instant::now());
            let mut closed = Closed;
            let said = self.conversation.say(words, None, &mut closed, &cancel);
            let turn = said.await;
            self.walls.push(started.elapsed());
            self.processor.push(cpu_time() - processor);
            let Ok(TurnResult::Team(round)) = turn else {
                panic!("{turn:?}");
            };
            assert_eq!(round.asked, AGENTS.len());
            assert!(round.failed.is_none());
        }
        let messages = self.conversation.writer().meta().unwrap().messages;
        assert_eq!(messages, (self.walls.len() * (AGENTS.len() + 1)) as u64);
    }
}

/// Each hands over to the next.
fn roster() -> TeamRoster {
    let mut members = Vec::new();
    let mut agents = BTreeMap::new();
    for (order, name) in AGENTS.into_iter().enumerate() {
        members.push(member(name, Nature::Ai, order));
        let next = AGENTS.get(order + 1);
        let system = next.map_or_else(String::new, |next| format!("Then [NEXT: {next}]."));
        let agent = TeamAgent {
            agent: Ok(Arc::new(Demo::new(name, Duration::ZERO))),
            layout: Layout::Claude,
            system,
        };
        agents.insert(name.to_owned(), agent);
    }
    let mut person = member("ann", Nature::Human, AGENTS.len());
    person.usual = tertulia_core::team::markers::parse("[NEXT: ada]").next;
    members.push(person);
    TeamRoster {
        team: "bench".to_owned(),
        file: None,
        members,
        agents,
        max_rounds: 0,
        window: 50,
        max_bytes: 768 * 1024,
        summarise: false,
    }
}

fn member(name: &str, nature: Nature, order: usize) -> Member {
    Member {
        id: name.to_owned(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        nature,
        order,
        usual: Vec::new(),
    }
}

/// No user looks, and none can be asked.
struct Closed;

#[async_trait]
impl Frontend for Closed {
    fn show(&mut self, _: SessionEvent) {}

    async fn approve(&mut self, _: &ToolRequest) -> Verdict {
        Verdict::No
    }
}

/// The memory of this process that is in use, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().unwrap() * 1024
}
