//! The TUI on a real pseudo-terminal: latency of a key while an agent streams and entries are
//! saved, time to the first frame, and memory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tertulia_testkit::terminal::{Size, Terminal};

use crate::append::percentile;
use crate::table::Table;

/// About 5 000 words a second, for as long as the keys take.
const FAST: &str = "words=$(seq -s ' ' 100); i=0; while [ $i -lt 700 ]; do \
    printf '%s ' \"$words\"; sleep 0.02; i=$((i+1)); done";
/// One line of 200 kB, followed by words.
const LONG: &str = "head -c 200000 /dev/zero | tr '\\0' x; i=0; while [ $i -lt 700 ]; do \
    printf ' and %s' $i; sleep 0.02; i=$((i+1)); done";
/// Number of keys pressed.
const KEYS: usize = 200;
/// Pause between two keys: a fast typist.
const PAUSE: Duration = Duration::from_millis(30);
/// Duration of a frame, in milliseconds.
const FRAME: f64 = 16.0;

pub fn measure(table: &mut Table) {
    println!("screen");
    let folder = tempfile::tempdir_in(".").unwrap();
    let idle = typing(folder.path(), "none", None);
    table.at_most("screen: a key, nobody speaks, p50", idle.p50, FRAME, "ms");
    table.at_most("screen: the first picture", idle.start, 30.0, "ms");
    for (name, script) in [("5 000 words a second", FAST), ("a line of 200 kB", LONG)] {
        let busy = typing(folder.path(), name, Some(script));
        table.at_most(
            &format!("screen: a key, {name}, p50"),
            busy.p50,
            FRAME,
            "ms",
        );
        table.at_most(
            &format!("screen: a key, {name}, p99"),
            busy.p99,
            FRAME,
            "ms",
        );
        table.at_most(&format!("screen: memory, {name}"), busy.memory, 200.0, "MB");
    }
}

struct Typing {
    start: f64,
    p50: f64,
    p99: f64,
    memory: f64,
}

/// Types while an agent answers, and measures the latency of each key.
fn typing(folder: &Path, name: &str, script: Option<&str>) -> Typing {
    let home = folder.join(name.replace(' ', "-"));
    fs::create_dir(&home).unwrap();
    if let Some(script) = script {
        let settings = format!(
            "agent = \"fast\"\n[agents.fast]\ntype = \"command\"\ncommand = \"sh\"\nargs = [\"-c\", '''{script}''']\n"
        );
        fs::write(home.join("config.toml"), settings).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tertulia"));
    command
        .env_clear()
        .env("HOME", &home)
        .env("PATH", "/usr/bin:/bin")
        .env("TERTULIA_HOME", &home)
        .current_dir(&home);
    let begun = Instant::now();
    let mut terminal = Terminal::open(
        &mut command,
        Size {
            columns: 120,
            rows: 40,
        },
    );
    terminal.sees("ready");
    let start = begun.elapsed().as_secs_f64() * 1000.0;
    if script.is_some() {
        terminal.type_text("go on\n");
        terminal.sees("speaking");
    }
    let mut times = Vec::new();
    let mut typed = String::new();
    for number in 0..KEYS {
        // The agent's output has none of these letters, and the input fits on one row.
        let letter = ['q', 'w', 'v', 'z'][number % 4];
        if typed.len() >= 60 {
            terminal.keys("^u");
            typed.clear();
            terminal.sees_no_more("qwvz");
        }
        typed.push(letter);
        let pressed = Instant::now();
        terminal.type_text(&letter.to_string());
        terminal.sees(&typed);
        times.push(pressed.elapsed());
        std::thread::sleep(PAUSE);
    }
    let memory = resident(&terminal);
    terminal.kill9();
    Typing {
        start,
        p50: percentile(&times, 50) * 1000.0,
        p99: percentile(&times, 99) * 1000.0,
        memory,
    }
}

/// Returns the resident memory of the program, in MB.
fn resident(terminal: &Terminal) -> f64 {
    let pid = terminal.pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1000.0
}
