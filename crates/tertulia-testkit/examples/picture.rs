//! Plays a short session on a terminal of 100×30 and draws what is seen: `./picture` writes `docs/screen.svg`.
//!
//! Nothing in the picture depends on when or where it is made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a picture that cannot be made should say so and stop"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tertulia_testkit::terminal::{Size, Terminal, picture};

const SIZE: Size = Size::new(100, 30);
/// The end of it is on the screen.
const SESSION: &str = "0199d0c0-7e57-7000-8000-0000b12d7ab1";

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let program = arguments.next().expect("the program is the first argument");
    let program = std::path::absolute(program).unwrap();
    let file = arguments.next().expect("the file is the second argument");
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("garden");
    std::fs::create_dir(&project).unwrap();
    let settings = home.path().join(".config/tertulia");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "[agents.demo]\npace = 0\n").unwrap();
    let mut init = at_home(&program, home.path(), &project);
    assert!(
        init.args(["team", "init"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let mut command = at_home(&program, home.path(), &project);
    command.args(["team", "demo", "--session-id", SESSION]);
    let mut terminal = Terminal::open(&mut command, SIZE);
    play(&mut terminal);
    let drawn = terminal.look(|screen| picture::svg(screen, "tertulia team demo"));
    std::fs::write(file, timeless(&drawn)).unwrap();
}

/// The program with nothing of this machine around it.
fn at_home(program: &Path, home: &Path, project: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(project)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("TZ", "UTC");
    command
}

/// What a person does who sees it for the first time.
fn play(terminal: &mut Terminal) {
    let ready = |terminal: &mut Terminal| {
        terminal.wait_for("nobody answers", |screen| {
            screen.row(SIZE.rows - 1).starts_with("● ready")
        });
    };
    ready(terminal);
    terminal.type_text("plan a bird table\n");
    terminal.sees("with far too many");
    ready(terminal);
    terminal.type_text("/");
    terminal.sees("/sessions");
}

/// The time of day is another one each time, and the same in the picture.
fn timeless(picture: &str) -> String {
    let mut letters: Vec<char> = picture.chars().collect();
    for at in 0..letters.len().saturating_sub(4) {
        let is_time = |(place, letter): (usize, &char)| match place {
            2 => *letter == ':',
            _ => letter.is_ascii_digit(),
        };
        if letters[at..at + 5].iter().enumerate().all(is_time) {
            letters[at..at + 5].copy_from_slice(&['1', '8', ':', '3', '0']);
        }
    }
    letters.into_iter().collect()
}
