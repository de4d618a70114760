//! The terminal of the tests, tested with small programs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use rustix::process::{Signal, test_kill_process};
use tertulia_testkit::terminal::{Size, Terminal};

const SIZE: Size = Size::new(40, 10);

fn shell(script: &str) -> Terminal {
    Terminal::open(Command::new("sh").args(["-c", script]), SIZE)
}

#[test]
fn what_is_drawn_is_seen() {
    let mut terminal = shell("printf 'one\\ntwo \\033[31mred\\033[0m'; exit 7");
    assert_eq!(terminal.exit_code(), 7);
    assert_eq!(terminal.row(0), "one");
    assert_eq!(terminal.row(1), "two red");
    assert_eq!(
        terminal.contents(),
        format!("one\ntwo red{}", "\n".repeat(8))
    );
    assert_eq!(terminal.cursor(), Some((1, 7)));
    assert_eq!(terminal.raw_text(), "one\r\ntwo \u{1b}[31mred\u{1b}[0m");
    assert!(!terminal.is_alternate());
    let red = terminal.look(|screen| screen.inner().cell(1, 4).unwrap().fgcolor());
    assert_eq!(red, vt100::Color::Idx(1));
}

#[test]
fn it_is_a_terminal_of_its_own_with_an_empty_environment() {
    let mut command = Command::new("sh");
    command.args(["-c", "tty; stty size; env; exit $(ps -o tty= | wc -l)"]);
    command
        .env("HOME", "/nowhere")
        .env("PATH", std::env::var_os("PATH").unwrap());
    let mut terminal = Terminal::open(&mut command, Size::new(60, 20));
    terminal.exit_code();
    let shown = terminal.contents();
    assert!(
        shown.contains("/dev/pts/") && shown.contains("20 60"),
        "{shown}"
    );
    let mut names: Vec<&str> = shown
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    let shells_own = |name: &&str| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name);
    let names: Vec<&str> = names.into_iter().filter(shells_own).collect();
    assert_eq!(names, ["HOME", "PATH", "TERM"]);
}

#[test]
fn what_is_typed_arrives() {
    let mut terminal = Terminal::open(&mut Command::new("cat"), SIZE);
    terminal.type_text("hello 世界\n");
    terminal.wait_for("typed and repeated", |screen| {
        screen.rows_with("hello 世界") == 2
    });
    terminal.keys("a b Backspace Enter ^d");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.look(|screen| screen.row(3)), "a");
    let mut terminal = Terminal::open(&mut Command::new("cat"), SIZE);
    terminal.type_text("x\n");
    terminal.wait_for("cat is there", |screen| screen.rows_with("x") == 2);
    terminal.keys("^c");
    assert_eq!(terminal.exit_code(), 128 + 2);
}

/// `od` shows the bytes that a program gets which reads keys as they come.
#[test]
fn keys_and_pastes_arrive_as_bytes() {
    let script = "stty raw -echo; printf '\\033[?2004h'; head -c 27 | od -An -c -v -w7";
    let mut terminal = shell(script);
    terminal.wait_for("it listens", |screen| screen.marks_pastes());
    terminal.keys("^r Esc PgUp");
    terminal.keys("Alt+Enter");
    terminal.paste("x\ny");
    terminal.type_text("1234");
    assert_eq!(terminal.exit_code(), 0);
    let shown = terminal
        .contents()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(
        shown,
        "022 033 033 [ 5 ~ 033 \\r 033 [ 2 0 0 ~ x \\r y 033 [ 2 0 1 ~ 1 2 3 4"
    );
}

#[test]
fn keys_are_clear_for_whoever_asks() {
    let script = "stty raw -echo; printf ready; head -c 1 >/dev/null; printf '\\033[>1uasked'; \
                  head -c 10 | od -An -c -v";
    let mut terminal = shell(script).with_clear_keys();
    terminal.sees("ready");
    terminal.keys("Esc");
    terminal.sees("asked");
    terminal.keys("Esc Esc");
    terminal.exit_code();
    let shown = terminal
        .contents()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(shown.ends_with("asked 033 [ 2 7 u 033 [ 2 7 u"), "{shown}");
}

#[test]
fn much_can_be_pasted() {
    let mut terminal = shell("stty raw -echo; printf '\\033[?2004h'; head -c 500012 | wc -c");
    terminal.wait_for("it listens", |screen| screen.marks_pastes());
    terminal.paste(&"0123456789".repeat(50_000));
    terminal.sees("500012");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn the_window_can_be_resized() {
    let script = "trap 'stty size' WINCH; echo ready; i=0; while [ $i -lt 3000 ]; do sleep 0.01; i=$((i+1)); done";
    let mut terminal = shell(script);
    terminal.sees("ready");
    terminal.resize(Size::new(33, 7));
    terminal.sees("7 33");
    assert_eq!(terminal.look(|screen| screen.size()), Size::new(33, 7));
}

#[test]
fn a_terminal_answers_what_it_is_asked() {
    let mut terminal = shell("stty raw -echo; printf 'ab\\033[6n'; head -c 6 | od -An -c");
    assert_eq!(terminal.exit_code(), 0);
    assert!(
        terminal.contents().contains("033   [   1   ;   3   R"),
        "{}",
        terminal.contents()
    );
}

#[test]
fn half_a_drawing_is_not_seen() {
    let script =
        "stty -echo; printf '\\033[?2026hhalf'; read x; printf '\\rwhole\\033[?2026l'; read x";
    let mut terminal = shell(script);
    let mut seen = Vec::new();
    while !terminal.raw_text().contains("half") {
        std::thread::yield_now();
    }
    terminal.type_text("\n");
    terminal.wait_for("the whole", |screen| {
        seen.push(screen.row(0));
        screen.has("whole")
    });
    assert!(!seen.contains(&"half".to_owned()), "{seen:?}");
}

#[test]
fn a_program_is_ended_without_warning() {
    let mut terminal = shell("trap 'echo no' TERM INT HUP; echo ready; read x");
    terminal.sees("ready");
    terminal.kill9();
    assert_eq!(terminal.exit_code(), 128 + 9);
}

#[test]
fn signals_reach_it() {
    let mut terminal =
        shell("trap 'echo caught; exit 3' TERM; echo ready; while :; do read x; done");
    terminal.sees("ready");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.exit_code(), 3);
    assert!(terminal.contents().contains("caught"));
}

/// Nothing is typed for it when it loses its terminal, not even an end of a line.
#[test]
fn a_window_that_goes_away_hangs_up() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo hung up >> log; exit 4' HUP; echo ready; \
                  while :; do if read x; then echo \"read <$x>\" >> log; else echo end >> log; fi; done";
    let mut command = Command::new("sh");
    let mut terminal = Terminal::open(
        command.args(["-c", script]).current_dir(folder.path()),
        SIZE,
    );
    terminal.sees("ready");
    terminal.type_text("half a line");
    terminal.sees("half a line");
    terminal.close();
    assert_eq!(terminal.exit_code(), 4);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        !log.contains("read <") && log.ends_with("hung up\n"),
        "{log}"
    );
}

#[test]
fn nothing_is_left_of_a_terminal_that_is_dropped() {
    let mut terminal = shell("trap '' HUP; echo ready; while :; do read x; done");
    terminal.sees("ready");
    let pid = terminal.pid();
    drop(terminal);
    assert!(test_kill_process(pid).is_err());
}

#[test]
fn a_failure_shows_the_whole_screen() {
    let mut terminal = shell("printf 'what there is\\nelse'; exit");
    let failed = catch_unwind(AssertUnwindSafe(|| terminal.sees("what there is not")));
    let message = failed.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("\"what there is not\" (the program has ended)"),
        "{message}"
    );
    assert!(
        message.contains("│what there is   ") && message.contains("│else"),
        "{message}"
    );
    assert!(
        message.ends_with("40×10, cursor row 1, column 4, normal screen"),
        "{message}"
    );
}

#[test]
fn a_full_screen_program_is_seen_as_it_is() {
    let mut command = Command::new("sh");
    command
        .args(["-c", "seq 100 | less"])
        .env("PATH", std::env::var_os("PATH").unwrap());
    let mut terminal = Terminal::open(&mut command, SIZE);
    terminal.wait_for("the first page", |screen| {
        screen.row(0) == "1" && screen.row(8) == "9"
    });
    assert!(terminal.is_alternate());
    terminal.keys("G");
    terminal.wait_for("the last page", |screen| {
        screen.row(0) == "92" && screen.row(8) == "100"
    });
    terminal.keys("q");
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.is_alternate());
}
