//! Test fixture: a session in the TUI, and common steps.

use tertulia_testkit::terminal::{Screen, Size, Terminal};

use crate::home::Home;

/// The smallest common size.
pub const SIZE: Size = Size::new(80, 24);

/// Opens the program on a terminal of 80×24.
pub fn open(home: &Home, args: &[&str]) -> Terminal {
    open_at(home, args, SIZE)
}

/// The same on a terminal of another size.
pub fn open_at(home: &Home, args: &[&str], size: Size) -> Terminal {
    Terminal::open(&mut home.prepare(args).command(), size)
}

/// The same with additional environment variables.
pub fn open_with(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let mut command = home.prepare(args).command();
    command.envs(variables.iter().copied());
    Terminal::open(&mut command, SIZE)
}

/// Opens the program and waits until it is ready. Uses unambiguous key codes: the byte that a plain
/// terminal sends for `Esc` also begins other keys, so that two quick keys may be read as one.
pub fn talk(home: &Home, args: &[&str]) -> Terminal {
    let mut terminal = open(home, args).with_clear_keys();
    ready(&mut terminal);
    terminal
}

/// Waits until the status line says ready.
#[track_caller]
pub fn ready(terminal: &mut Terminal) {
    terminal.wait_for("the status line says ready", |screen| {
        screen.is_alternate() && status(screen).contains("● ready")
    });
}

/// Returns the status line.
pub fn status(screen: Screen<'_>) -> String {
    screen.row(screen.size().rows - 1)
}

/// Waits until the status line contains a text.
#[track_caller]
pub fn status_says(terminal: &mut Terminal, words: &str) {
    terminal.wait_for(&format!("{words:?} in the status line"), |screen| {
        status(screen).contains(words)
    });
}

/// Sends a prompt, and waits for a text and until the session is ready again.
#[track_caller]
pub fn say(terminal: &mut Terminal, words: &str, answer: &str) {
    terminal.type_text(&format!("{words}\n"));
    terminal.sees(answer);
    ready(terminal);
}

/// Exits by a key, and checks for exit code 0.
#[track_caller]
pub fn leave(terminal: &mut Terminal) {
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0, "{}", terminal.contents());
}

/// Placeholders of an empty input.
const PLACEHOLDERS: [&str; 2] = [
    "say something, or / for commands",
    "say something, / for commands, or Enter to resume the last session",
];

/// Returns the content of a chat's input, row by row.
pub fn written(screen: Screen<'_>) -> Vec<String> {
    let mut rows = Vec::new();
    for row in (0..screen.size().rows - 1).rev() {
        let text = screen.row(row);
        if let Some(words) = text.strip_prefix("you>") {
            let words = words.trim_start();
            let is_empty = PLACEHOLDERS.contains(&words.trim_end());
            rows.push(if is_empty { "" } else { words }.to_owned());
            break;
        }
        rows.push(text.trim_start().to_owned());
    }
    rows.reverse();
    rows
}

/// Waits until the input of a chat has exactly this content.
#[track_caller]
pub fn wrote(terminal: &mut Terminal, rows: &[&str]) {
    terminal.wait_for(&format!("{rows:?} is written"), |screen| {
        written(screen) == rows
    });
}
