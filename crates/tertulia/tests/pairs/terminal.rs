//! A pair on a terminal: whose turn it is, unfinished work, the bell.

use serde_json::json;

use super::stage::{MARKING, home, marks, pair, planner, state, with_both};
use crate::pty::{CTRL_C, CTRL_D, Terminal};

#[test]
fn the_first_ctrl_c_gives_the_floor_and_the_second_leaves() {
    let boss = "grep -q 'never mind' && echo DONE || echo 'Tell worker: step-1'";
    let home = home(boss, "cat > /dev/null; echo begun; sleep 60");
    let mut args = vec!["--no-color"];
    args.extend(with_both(&["go"]));
    let mut terminal = Terminal::open(&home, &args, &[]);
    terminal.sees("begun", 1);
    terminal.types(CTRL_C);
    terminal.sees("stopped: the worker was cut off", 1);
    terminal.sees("you> ", 1);
    terminal.types("/info\n");
    terminal.sees("round 1", 2);
    terminal.types("never mind\n");
    terminal.sees("done after 1 worker call", 1);
    terminal.sees("you> ", 3);
    terminal.types(CTRL_C);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 130, "{shown}");
    assert!(shown.contains("Resume: tertulia --resume"), "{shown}");
}

#[test]
fn what_was_left_undone_is_offered_and_never_done_unasked() {
    let home = home(&planner(2), MARKING);
    pair(&home, &["go", "-r", "0"]).code(1);
    // Without a budget it cannot continue, and says so.
    let mut terminal = Terminal::open(&home, &["--no-color", "pair", "-c"], &[]);
    terminal.sees("The worker has not got this instruction: step-1", 1);
    terminal.sees("you> ", 1);
    terminal.types("[r+1]\n");
    terminal.sees("budget: 1 worker call left", 1);
    terminal.sees("paused: ", 1);
    terminal.sees("you> ", 2);
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends().0, 0);
    assert_eq!(marks(&home).len(), 2);
    // With a budget, the user is asked.
    let mut terminal = Terminal::open(&home, &["--no-color", "pair", "-c", "-r", "5"], &[]);
    terminal.sees("Give the instruction to the worker?", 1);
    terminal.types("n\n");
    terminal.sees("you> ", 1);
    terminal.types("/exit\n");
    terminal.ends();
    assert_eq!(marks(&home).len(), 2);
    let args = ["--no-color", "pair", "-c", "--notify"];
    let mut terminal = Terminal::open(&home, &args, &[]);
    terminal.sees("The worker has not got this instruction: step-2", 1);
    terminal.sees("you> ", 1);
    terminal.types("[r=1]\n");
    terminal.sees("done after 2 worker calls", 1);
    terminal.sees("\u{7}", 1);
    terminal.types(CTRL_D);
    terminal.ends();
    assert_eq!(state(&home)["next"], json!("human"));
}

#[test]
fn a_worker_that_was_cut_off_is_asked_again_only_when_that_is_wanted() {
    let boss = "grep -q 'Worker says: finished' && echo DONE || echo 'Tell worker: step-1'";
    let hand = "if grep -q 'You were cut off'; then echo finished; else echo begun; sleep 60; fi";
    let home = home(boss, hand);
    let mut args = vec!["--no-color"];
    args.extend(with_both(&["go"]));
    let mut terminal = Terminal::open(&home, &args, &[]);
    terminal.sees("begun", 1);
    // A second Ctrl+C does not wait.
    terminal.types(CTRL_C);
    terminal.sees("you> ", 1);
    terminal.types(CTRL_C);
    assert_eq!(terminal.ends().0, 130);
    for (answer, left) in [("n\n", true), ("y\n", false)] {
        let mut terminal = Terminal::open(&home, &["--no-color", "pair", "-c"], &[]);
        terminal.sees("The worker was interrupted: step-1", 1);
        terminal.sees("Repeat the interrupted instruction?", 1);
        terminal.types(answer);
        terminal.sees("you> ", 1);
        terminal.types(CTRL_D);
        let (code, shown) = terminal.ends();
        assert_eq!(code, 0, "{shown}");
        assert_eq!(shown.contains("done after 1 worker call"), !left, "{shown}");
        assert_eq!(state(&home)["next"] == json!("worker"), left);
    }
}

/// As in every session, not only at exit.
#[test]
fn a_session_file_is_written_back_at_the_end_of_a_turn() {
    let home = home("echo DONE", "echo never");
    pair(&home, &["first"]).ok();
    let file = home.path().join("shared.jsonl");
    let name = file.to_str().unwrap();
    home.run(&["export", "@", "--format", "jsonl", "-o", name])
        .ok();
    let mut args = vec!["--no-color"];
    args.extend(with_both(&["--session-file", name]));
    let mut terminal = Terminal::open(&home, &args, &[]);
    terminal.sees("you> ", 1);
    terminal.types("second\n");
    terminal.sees("you> ", 2);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("\"second\""), "{written}");
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends().0, 0);
}
