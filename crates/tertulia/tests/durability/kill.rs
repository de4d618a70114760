//! `kill -9` at any moment.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tertulia_testkit::soak::soak;

use super::world::{Ack, Backend, Chance, Place, acks, number_in, seed, world};
use crate::home::{DEADLINE, until_kept};

/// When a program is killed.
#[derive(Debug)]
enum Moment {
    /// After this time.
    Time(Duration),
    /// This long after so many lines of output.
    Lines(usize, Duration),
}

/// Output of a killed program.
#[derive(Default)]
struct Killed {
    said: String,
    in_time: bool,
}

/// Runs a program until the moment and kills it. Output written by then counts, whenever it is
/// read.
fn kill_at(mut child: Child, moment: &Moment) -> Killed {
    let (lines, heard) = mpsc::channel();
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut line = String::new();
            if stdout.read_line(&mut line).unwrap_or(0) == 0 || lines.send(line).is_err() {
                break;
            }
        }
    });
    let mut said = String::new();
    let mut listen_for = |time: Duration, most: usize| {
        let until = Instant::now() + time;
        for _ in 0..most {
            let left = until.saturating_duration_since(Instant::now());
            match heard.recv_timeout(left) {
                Ok(line) => said.push_str(&line),
                Err(_) => break,
            }
        }
    };
    match moment {
        Moment::Time(time) => listen_for(*time, usize::MAX),
        Moment::Lines(count, after) => {
            listen_for(DEADLINE, *count);
            listen_for(*after, usize::MAX);
        }
    }
    // The kill comes too late if the program has exited by itself.
    let in_time = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    reader.join().unwrap();
    said.extend(heard.try_iter());
    Killed { said, in_time }
}

fn moment(chance: &mut Chance, lines: u64) -> Moment {
    let millis = |chance: &mut Chance, most: u64| Duration::from_micros(chance.below(most * 1000));
    match chance.below(4) {
        0 => Moment::Time(millis(chance, 30)),
        1 => Moment::Lines(1, millis(chance, 8)),
        2 => Moment::Lines(1 + chance.below(lines + 4) as usize, Duration::ZERO),
        // Around the saving of the answer and the end of the program.
        _ => Moment::Lines(lines as usize, millis(chance, 12)),
    }
}

fn one_kill(place: &Place, chance: &mut Chance, known: &[Ack]) -> Killed {
    let count = 1 + chance.below(400);
    let prompt = format!("count to {count}");
    let mut args = vec!["chat", "-p", "--output-format", "stream-json", &prompt];
    match chance.below(5) {
        0 => {}
        1 if !known.is_empty() => {
            let any = chance.below(known.len() as u64) as usize;
            args.extend(["--resume", &known[any].session]);
            if chance.coin() {
                args.push("--fork");
            }
        }
        _ if known.is_empty() => {}
        _ => args.push("-c"),
    }
    let moment = moment(chance, count + 2);
    kill_at(place.command(&args).spawn().unwrap(), &moment)
}

fn killed_at_any_moment(backend: Backend) {
    let seed = seed();
    let kills = number_in("TERTULIA_KILLS").unwrap_or(if soak() { 300 } else { 60 });
    let mut chance = Chance::new(seed);
    let (_root, place) = world(backend);
    let mut acked: Vec<Ack> = Vec::new();
    let mut in_time = 0;
    // On a busy machine, more of the kills come too late or too soon: then there are more of them.
    let is_enough =
        |in_time: u64, acked: &[Ack]| in_time >= kills / 2 && acked.len() as u64 >= kills / 3;
    for kill in 1..=kills * 10 {
        if kill > kills && is_enough(in_time, &acked) {
            break;
        }
        let killed = one_kill(&place, &mut chance, &acked);
        acked.extend(acks(&killed.said));
        in_time += u64::from(killed.in_time);
        if kill % 50 == 0 {
            place.assert_sound(&format!("seed {seed}, after {kill} kills"));
        }
    }
    let when = format!("seed {seed}, {kills} kills");
    eprintln!(
        "{backend:?}: {kills} kills, {in_time} of them in time, {} messages acknowledged, {} sessions",
        acked.len(),
        place.sessions().len()
    );
    assert!(
        is_enough(in_time, &acked),
        "{when}: only {in_time} came before the end, {} acknowledgements before a kill",
        acked.len()
    );
    place.assert_has(&acked, &when);
    place.assert_sound(&when);
    let ran = place.run(&["chat", "-c", "-p", "echo still here"]);
    assert!(ran.out.contains("still here"), "{when}: {ran:?}");
    ran.ok(&when);
    place.assert_has(&acked, &when);
    place.assert_sound(&when);
}

#[test]
fn sqlite_keeps_what_it_acknowledged_when_killed() {
    killed_at_any_moment(Backend::Sqlite);
}

#[test]
fn files_keep_what_they_acknowledged_when_killed() {
    killed_at_any_moment(Backend::Files);
}

/// An incomplete answer is kept soon after it was on the screen, and survives `kill -9` from then on.
fn half_an_answer(backend: Backend) {
    let (_root, place) = world(backend);
    let settings = place.home.join(".config/tertulia");
    fs::create_dir_all(&settings).unwrap();
    fs::write(
        settings.join("config.toml"),
        "[agents.slow]\ntype = \"demo\"\npace = 20\n",
    )
    .unwrap();
    let args = [
        "chat",
        "-p",
        "--agent",
        "slow",
        "--output-format",
        "stream-json",
        "count to 100000",
    ];
    let mut child = place.command(&args).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut event = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let started = event();
    assert_eq!(started["type"], "session.started");
    let session = started["session_id"].as_str().unwrap();
    let mut seen = String::new();
    // The draft is renewed as the answer goes on.
    for length in [50, 200] {
        while seen.len() < length {
            seen.push_str(event()["text"].as_str().unwrap_or_default());
        }
        until_kept(&place.url(), session, &seen);
    }
    // It is still answering when it is killed.
    event();
    child.kill().unwrap();
    child.wait().unwrap();
    place.assert_sound("killed in mid-answer");
    place.turn(&["-c", "echo and now"]);
    let shown = place.show("@").unwrap();
    let entries = shown["entries"].as_array().unwrap();
    let kept = entries
        .iter()
        .find(|entry| entry["interrupted"] == true)
        .unwrap_or_else(|| panic!("no interrupted message: {entries:#?}"));
    let kept = kept["content"].as_str().unwrap();
    assert!(
        kept.starts_with(&seen),
        "seen and kept: {seen:?}\nleft: {kept:?}"
    );
    place.assert_sound("after the resume");
}

#[test]
fn sqlite_keeps_half_an_answer() {
    half_an_answer(Backend::Sqlite);
}

#[test]
fn files_keep_half_an_answer() {
    half_an_answer(Backend::Files);
}
