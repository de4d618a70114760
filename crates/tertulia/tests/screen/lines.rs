//! Line mode, where the TUI is not available.

use tertulia_testkit::terminal::{Size, Terminal};

use super::stage::{SIZE, open_with};
use crate::home::Home;

/// Checks that the program uses line mode and does not change the terminal.
fn is_line_based(mut terminal: Terminal) {
    terminal.sees("you>");
    terminal.type_text("echo in lines\n");
    terminal.wait_for("the answer and the prompt", |screen| {
        screen.rows_with("in lines") == 2 && screen.rows_with("you>") == 2
    });
    assert!(!terminal.is_alternate());
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0);
    let raw = terminal.raw_text();
    for mode in [
        "\u{1b}[?1049h",
        "\u{1b}[?2004h",
        "\u{1b}[?1000h",
        "\u{1b}[?25l",
    ] {
        assert!(!raw.contains(mode), "{mode:?} in {raw:?}");
    }
}

#[test]
fn plain_is_line_based() {
    is_line_based(open_with(&Home::new(), &["--plain"], &[]));
    is_line_based(open_with(&Home::new(), &["chat", "--plain"], &[]));
}

#[test]
fn a_dumb_terminal_is_line_based() {
    is_line_based(open_with(&Home::new(), &[], &[("TERM", "dumb")]));
}

#[test]
fn the_other_commands_draw_no_screen() {
    let home = Home::new();
    home.say("echo hello");
    for args in [
        &["list"][..],
        &["show"],
        &["chat", "-p", "echo x"],
        &["search", "hello"],
        &["--help"],
    ] {
        let mut terminal = Terminal::open(&mut home.prepare(args).command(), SIZE);
        assert_eq!(terminal.exit_code(), 0, "{args:?}");
        assert!(!terminal.raw_text().contains("\u{1b}[?1049h"), "{args:?}");
    }
}

/// If input or output is not a terminal, there is no TUI.
#[test]
fn half_a_terminal_is_none() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tertulia");
    for script in [
        format!("'{program}' < /dev/null"),
        format!("echo hello | '{program}'"),
        format!("'{program}' 'echo x' | cat"),
    ] {
        let command = home.prepare::<&str>(&[]).command();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).current_dir(home.project());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        let mut terminal = Terminal::open(&mut shell, Size::new(80, 24));
        terminal.exit_code();
        assert!(!terminal.raw_text().contains("\u{1b}[?1049h"), "{script}");
    }
}
