//! Shell commands that the user runs in a session.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::stage::{sleepers, unique_seconds, wait_for_sleepers};
use crate::home::Home;
use crate::pty::{CTRL_D, Terminal as Lines};
use crate::screen::stage::{leave, ready, say, talk};

fn home() -> Home {
    let home = Home::new();
    home.script_agent("copies", "cat");
    home
}

/// Returns the entries about commands.
fn commands(home: &Home) -> Vec<Value> {
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap().iter();
    let is_command = |entry: &&Value| entry["type"].as_str().unwrap().starts_with("shell");
    entries.filter(is_command).cloned().collect()
}

#[test]
fn a_command_runs_and_the_agent_sees_it_with_the_next_prompt() {
    let home = home();
    let mut terminal = talk(&home, &["--agent", "copies"]);
    terminal.type_text("!");
    terminal.sees("a shell command");
    terminal.type_text("pwd; echo tusk >&2; exit 3\n");
    terminal.sees("[exit status 3]");
    terminal.sees("tusk");
    ready(&mut terminal);
    say(
        &mut terminal,
        "what was that?",
        "[I ran a command in the work folder.]",
    );
    leave(&mut terminal);
    let ran = commands(&home);
    assert_eq!(ran[0]["command"], "pwd; echo tusk >&2; exit 3");
    assert_eq!(ran[1]["run"], ran[0]["run"]);
    assert_eq!(
        (&ran[1]["exit"], &ran[1]["outcome"]),
        (&3.into(), &"failed".into())
    );
    let folder = home.project().canonicalize().unwrap();
    let printed = format!("{}\ntusk\n", folder.display());
    assert_eq!(ran[1]["output"], printed);
    let shown = home.run(&["show"]).ok();
    shown
        .says("!pwd; echo tusk >&2; exit 3\n")
        .says("[exit status 3]");
    home.run(&["search", "tusk"]).ok().lacks("Nothing found");
    home.run(&["export", "--format", "md"])
        .ok()
        .says("[exit status 3]");
    home.run(&["doctor"]).ok();
}

#[test]
fn escape_stops_a_command() {
    let home = home();
    let seconds = unique_seconds();
    let mut terminal = talk(&home, &["--agent", "copies"]);
    terminal.type_text(&format!("!echo begun; sleep {seconds}\n"));
    terminal.sees("begun");
    wait_for_sleepers(&seconds, 1);
    terminal.keys("Esc");
    terminal.sees("[interrupted]");
    ready(&mut terminal);
    assert!(sleepers(&seconds).is_empty());
    leave(&mut terminal);
    let ran = commands(&home);
    assert_eq!(ran[1]["output"], "begun\n");
    assert_eq!(ran[1]["outcome"], "interrupted");
}

#[test]
fn a_killed_program_leaves_an_interrupted_command() {
    let home = home();
    let seconds = unique_seconds();
    let mut lines = Lines::open(&home, &["--plain", "--agent", "copies"], &[]);
    lines.sees("you> ", 1);
    lines.types(format!("!sleep {seconds}\n"));
    wait_for_sleepers(&seconds, 1);
    assert_eq!(commands(&home).len(), 1, "written before it runs");
    let pid = i32::try_from(lines.child.process_id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    lines.child.wait().unwrap();
    wait_for_sleepers(&seconds, 0);
    let output = home
        .run(&["chat", "-c", "--agent", "copies", "-p", "what happened?"])
        .ok();
    let output = output.notes("closed as interrupted: !sleep");
    output.says("[interrupted]").says("what happened?");
    assert_eq!(commands(&home)[1]["outcome"], "interrupted");
    home.run(&["doctor"]).ok();
}

#[test]
fn pasted_text_runs_nothing() {
    let home = home();
    let mut terminal = talk(&home, &["--agent", "copies"]);
    terminal.paste("! touch made\n! touch made too");
    terminal.sees("touch made too");
    terminal.keys("Enter");
    ready(&mut terminal);
    leave(&mut terminal);
    assert!(!home.project().join("made").exists());
    assert!(commands(&home).is_empty());
    assert_eq!(home.said("@")[0], "! touch made\n! touch made too");
}

#[test]
fn line_mode_runs_commands_and_asks_about_pasted_ones() {
    let home = home();
    let mut lines = Lines::open(&home, &["--plain", "--agent", "copies"], &[]);
    lines.sees("you> ", 1);
    lines.types("!echo tus''k\n");
    lines.sees("tusk", 1);
    lines.sees("you> ", 2);
    lines.types("!\n");
    lines.sees("type a command after the !", 1);
    lines.types("!touch made\nand this\n");
    lines.sees("Run touch made? [y]es, [n]o: ", 1);
    lines.types("n\n");
    lines.sees("not run", 1);
    lines.sees("and this", 2);
    lines.types(CTRL_D);
    lines.ends();
    assert!(!home.project().join("made").exists());
    assert_eq!(commands(&home).len(), 2);
}
