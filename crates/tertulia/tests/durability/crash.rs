//! Power cuts: data that was not synced is lost, acknowledged data never is.

use std::path::Path;

use serde_json::Value;
use tertulia_testkit::soak::soak;

use super::disk::Disk;
use super::trace::{Step, traced};
use super::world::{Ack, Backend, Chance, Place, acks, seed, world};

/// A command whose disk loses power.
struct Scenario {
    name: &'static str,
    /// Prompts of earlier turns.
    before: &'static [&'static [&'static str]],
    /// Command line that is cut off. `@` is the newest session.
    args: &'static [&'static str],
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "the first run",
        before: &[],
        args: &["chat", "-p", "--output-format", "stream-json", "hello"],
    },
    Scenario {
        name: "a resumed talk",
        before: &[&["hello"], &["echo another"]],
        args: &[
            "chat",
            "-p",
            "--output-format",
            "stream-json",
            "-c",
            "count to 900",
        ],
    },
    Scenario {
        name: "a talk in a fork",
        before: &[&["hello"], &["-c", "echo on"]],
        args: &[
            "chat",
            "-p",
            "--output-format",
            "stream-json",
            "-c",
            "--fork",
            "echo apart",
        ],
    },
    Scenario {
        name: "a fork",
        before: &[&["hello"]],
        args: &["fork", "@", "--json"],
    },
    Scenario {
        name: "a rename",
        before: &[&["hello"]],
        args: &["rename", "@", "Reborn"],
    },
];

/// What must be found after the power cut.
#[derive(Default)]
pub struct Promise {
    acks: Vec<Ack>,
    forks: Vec<String>,
    renamed: bool,
}

impl Promise {
    /// Promises these messages.
    pub fn of_messages(acks: Vec<Ack>) -> Promise {
        Promise {
            acks,
            ..Promise::default()
        }
    }

    /// Derives the guarantees from the program's output so far.
    fn of(before: &[Ack], said: &str, noted: &str, args: &[&str]) -> Promise {
        let mut promise = Promise {
            acks: before.to_vec(),
            ..Promise::default()
        };
        match args[0] {
            "chat" => promise.acks.extend(acks(said)),
            "fork" => {
                let document: Option<Value> = serde_json::from_str(said).ok();
                let id = document.map(|document| document["id"].as_str().unwrap().to_owned());
                promise.forks.extend(id);
            }
            _ => promise.renamed = said.contains("Reborn") || noted.contains("Reborn"),
        }
        promise
    }

    #[track_caller]
    pub fn is_kept(&self, place: &Place, when: &str) {
        place.assert_has(&self.acks, when);
        for fork in &self.forks {
            let shown = place
                .show(fork)
                .unwrap_or_else(|ran| panic!("{when}: the fork is gone: {ran:?}"));
            let shared = self.acks.iter().filter(|ack| ack.is_in(&shown)).count();
            assert_eq!(shared, self.acks.len(), "{when}: {shown:#}");
        }
        if self.renamed {
            let shown = place.show(&self.acks[0].session).unwrap();
            assert_eq!(shown["title"], "Reborn", "{when}");
        }
    }
}

/// Simulates a power cut and checks what is left, in a fresh folder.
pub fn cut(
    place: &Place,
    disk: &Disk,
    promise: &Promise,
    when: &str,
    luck: Option<&mut Chance>,
) -> u8 {
    let fresh = tempfile::tempdir().unwrap();
    let home = fresh.path().join("home");
    let torn = luck.is_some();
    disk.after_power_cut(&home, luck);
    let left = place.with_home(&home);
    if !torn {
        promise.is_kept(&left, when);
        left.assert_sound(when);
        return 0;
    }
    look_at_torn(&left, promise, when, &home)
}

/// Checks a store with torn writes: the doctor may find garbage at the end of a log, but nothing
/// else is lost. Returns whether it found some.
fn look_at_torn(left: &Place, promise: &Promise, when: &str, home: &Path) -> u8 {
    promise.is_kept(left, when);
    let doctor = left.run(&["doctor"]);
    assert!(
        matches!(doctor.code, Some(0 | 5)) && !doctor.broke(),
        "{when}, in {}: {doctor:?}",
        home.display()
    );
    if doctor.code == Some(5) {
        left.run(&["doctor", "--repair"]).ok(when);
        promise.is_kept(left, &format!("{when}, repaired"));
        left.assert_sound(&format!("{when}, repaired"));
    }
    if let Some(ack) = promise.acks.last() {
        let ran = left.run(&["chat", "-p", "--resume", &ack.session, "echo and on"]);
        ran.ok(&format!("{when}: going on"));
        promise.is_kept(left, &format!("{when}, gone on"));
        left.assert_sound(&format!("{when}, gone on"));
    }
    u8::from(doctor.code == Some(5))
}

fn power_cut(backend: Backend) {
    let seed = seed();
    let mut chance = Chance::new(seed);
    let (one_sync_in, one_step_in, tears) = if soak() { (2, 20, 3) } else { (6, 80, 1) };
    let (mut strict, mut torn, mut rubbish) = (0, 0, 0_u32);
    for scenario in SCENARIOS {
        let (_root, place) = world(backend);
        let before: Vec<Ack> = scenario
            .before
            .iter()
            .flat_map(|args| place.turn(args))
            .collect();
        let mut disk = Disk::of(&place.home, &place.work);
        let (ran, steps) = traced(&place, &place.command(scenario.args));
        ran.ok(scenario.name);
        let (mut said, mut noted) = (String::new(), String::new());
        let mut promised = 0;
        for (at, step) in steps.iter().enumerate() {
            disk.step(step);
            match step {
                Step::Says(1, bytes) => said.push_str(&String::from_utf8_lossy(bytes)),
                Step::Says(_, bytes) => noted.push_str(&String::from_utf8_lossy(bytes)),
                _ => {}
            }
            let promise = Promise::of(&before, &said, &noted, scenario.args);
            let weight = promise.acks.len() + promise.forks.len() + usize::from(promise.renamed);
            let is_ack = weight > promised && matches!(step, Step::Says(..));
            promised = weight;
            let is_last = at + 1 == steps.len();
            // Just before a sync the most data can be lost.
            let is_sync = matches!(step, Step::SyncBegins(..)) && chance.below(one_sync_in) == 0;
            let is_any = !matches!(step, Step::Says(..)) && chance.below(one_step_in) == 0;
            if !(is_ack || is_last || is_sync || is_any) {
                continue;
            }
            let when = format!(
                "seed {seed}, {backend:?}, {}, step {at} of {}",
                scenario.name,
                steps.len()
            );
            cut(&place, &disk, &promise, &when, None);
            strict += 1;
            for _ in 0..if is_ack || is_sync { tears } else { 1 } {
                let found = cut(
                    &place,
                    &disk,
                    &promise,
                    &format!("{when}, torn"),
                    Some(&mut chance),
                );
                rubbish += u32::from(found);
                torn += 1;
            }
        }
        let kept = Promise::of(&before, &said, &noted, scenario.args);
        let promised = kept.acks.len() > before.len() || !kept.forks.is_empty() || kept.renamed;
        assert!(promised, "{} acknowledged nothing", scenario.name);
    }
    eprintln!(
        "{backend:?}: {strict} cuts that keep only what was synced, {torn} torn ones, of which {rubbish} needed a repair"
    );
}

#[test]
fn sqlite_survives_a_power_cut() {
    power_cut(Backend::Sqlite);
}

#[test]
fn files_survive_a_power_cut() {
    power_cut(Backend::Files);
}

/// Counter-check: without any sync acknowledged messages are lost, so these tests would notice.
fn a_missing_sync_shows(backend: Backend) {
    let scenario = &SCENARIOS[1];
    let (_root, place) = world(backend);
    for args in scenario.before {
        place.turn(args);
    }
    let mut disk = Disk::of(&place.home, &place.work);
    let (ran, steps) = traced(&place, &place.command(scenario.args));
    let acked = acks(&ran.ok(scenario.name));
    for step in &steps {
        if !matches!(step, Step::SyncEnds(_)) {
            disk.step(step);
        }
    }
    let fresh = tempfile::tempdir().unwrap();
    let home = fresh.path().join("home");
    disk.after_power_cut(&home, None);
    let lost = place.with_home(&home).lacks(&acked);
    assert_eq!(lost.len(), acked.len(), "{lost:#?}");
}

#[test]
fn a_missing_sync_of_sqlite_shows() {
    a_missing_sync_shows(Backend::Sqlite);
}

#[test]
fn a_missing_sync_of_files_shows() {
    a_missing_sync_shows(Backend::Files);
}
