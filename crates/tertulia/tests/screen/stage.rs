//! A talk on the screen, and what is done there again and again.

use tertulia_testkit::terminal::{Screen, Size, Terminal};

use crate::home::Home;

/// The smallest that everybody has.
pub const SIZE: Size = Size::new(80, 24);

/// The program on the screen of 80×24.
pub fn open(home: &Home, args: &[&str]) -> Terminal {
    open_at(home, args, SIZE)
}

/// The same on a screen of another size.
pub fn open_at(home: &Home, args: &[&str], size: Size) -> Terminal {
    Terminal::open(&mut home.prepare(args).command(), size)
}

/// The same with more in the environment.
pub fn open_with(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let mut command = home.prepare(args).command();
    command.envs(variables.iter().copied());
    Terminal::open(&mut command, SIZE)
}

/// The program on the screen, once it waits for words. Keys cannot be mistaken: what a terminal sends for
/// `Esc` begins other keys, so that two of them in haste are one.
pub fn talk(home: &Home, args: &[&str]) -> Terminal {
    let mut terminal = open(home, args).with_clear_keys();
    ready(&mut terminal);
    terminal
}

/// Waits until nobody answers.
#[track_caller]
pub fn ready(terminal: &mut Terminal) {
    terminal.wait_for("the status line says ready", |screen| {
        screen.is_alternate() && status(screen).contains("● ready")
    });
}

/// The status line.
pub fn status(screen: Screen<'_>) -> String {
    screen.row(screen.size().rows - 1)
}

/// Waits until the status line has some words.
#[track_caller]
pub fn status_says(terminal: &mut Terminal, words: &str) {
    terminal.wait_for(&format!("{words:?} in the status line"), |screen| {
        status(screen).contains(words)
    });
}

/// Says something, and waits until something is seen of what follows and nobody answers any more.
#[track_caller]
pub fn say(terminal: &mut Terminal, words: &str, answer: &str) {
    terminal.type_text(&format!("{words}\n"));
    terminal.sees(answer);
    ready(terminal);
}

/// Leaves by a key, and takes the exit code for 0.
#[track_caller]
pub fn leave(terminal: &mut Terminal) {
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0, "{}", terminal.contents());
}

/// What stands in an empty input.
const PLACEHOLDER: &str = "say something, or / for commands";

/// What stands in the input of a chat, row by row.
pub fn written(screen: Screen<'_>) -> Vec<String> {
    let mut rows = Vec::new();
    for row in (0..screen.size().rows - 1).rev() {
        let text = screen.row(row);
        if let Some(words) = text.strip_prefix("you>") {
            rows.push(words.trim_start().replace(PLACEHOLDER, ""));
            break;
        }
        rows.push(text.trim_start().to_owned());
    }
    rows.reverse();
    rows
}

/// Waits until this, and nothing else, stands in the input of a chat.
#[track_caller]
pub fn wrote(terminal: &mut Terminal, rows: &[&str]) {
    terminal.wait_for(&format!("{rows:?} is written"), |screen| {
        written(screen) == rows
    });
}
