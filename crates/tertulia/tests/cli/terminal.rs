//! A session in line mode on a real terminal.

use crate::home::Home;
use crate::pty::{CAPABLE, CTRL_C, CTRL_D, DUMB, Terminal};
use crate::running::agents_of;

#[test]
fn two_turns_and_leaving_with_ctrl_d() {
    let home = Home::new();
    let mut terminal = Terminal::open(&home, &[], &[]);
    terminal.sees("you> ", 1);
    terminal.types("echo first words\n");
    terminal.sees("you> ", 2);
    terminal.types("what did I say?\n");
    terminal.sees("1. echo first words", 1);
    terminal.sees("you> ", 3);
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0);
    assert!(shown.contains("Using demo"), "{shown}");
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    let hint = format!("Resume: tertulia --resume {}", crate::home::short(&id));
    assert!(shown.contains(&hint), "{shown}");
    assert_eq!(home.said("@").len(), 4);
}

#[test]
fn slash_commands() {
    let home = Home::new();
    let mut terminal = Terminal::open(&home, &["chat"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("/help\n");
    terminal.sees("/exit", 1);
    terminal.sees("you> ", 2);
    terminal.types("/hlep\n");
    terminal.sees("there is no command /hlep", 1);
    terminal.sees("you> ", 3);
    terminal.types("/info\n");
    terminal.sees("no messages yet", 1);
    terminal.sees("you> ", 4);
    terminal.types("/quit\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0);
    assert!(shown.contains("/help"), "the nearest is named: {shown}");
    // A session without messages is not saved, and there is nothing to resume.
    assert!(!shown.contains("Resume:"), "{shown}");
    assert!(home.all().is_empty());
}

#[test]
fn ctrl_c_stops_the_answer_and_then_leaves() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 50\n");
    let mut terminal = Terminal::open(&home, &[], &[]);
    terminal.sees("you> ", 1);
    terminal.types("count to 500\n");
    terminal.sees("7 8 9 ", 1);
    terminal.types(CTRL_C);
    terminal.sees("(stopped)", 1);
    terminal.sees("you> ", 2);
    terminal.types("echo still here\n");
    terminal.sees("you> ", 3);
    terminal.types(CTRL_C);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 130);
    assert!(shown.contains("Resume: tertulia --resume"), "{shown}");
    assert!(!shown.contains("499"), "{shown}");
    let session = home.show("@");
    assert_eq!(session["entries"][2]["interrupted"], true);
    assert!(
        session["entries"][2]["content"]
            .as_str()
            .unwrap()
            .starts_with("1 2 3 4 5 6 7 8 9")
    );
    assert_eq!(home.said("@")[3], "still here");
}

#[test]
fn control_sequences_of_an_answer_do_not_reach_the_terminal() {
    let home = Home::new();
    home.script_agent(
        "evil",
        "printf 'a\\033]0;owned\\007b\\033[2Jc\\rd\\302\\2332Je\\n'",
    );
    let mut terminal = Terminal::open(&home, &["--agent", "evil", "--no-color"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("hi\n");
    terminal.sees("you> ", 2);
    terminal.types(CTRL_D);
    let (_, shown) = terminal.ends();
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{7}') && !shown.contains('\u{9b}'),
        "{shown:?}"
    );
    assert!(!shown.contains("c\rd"), "{shown:?}");
    // Nor later, when it is shown, found, listed or used as the title.
    home.run(&["rename", "@", "plain"]).ok();
    for args in [
        &["show"][..],
        &["search", "owned"],
        &["list"],
        &["show", "--entries"],
    ] {
        let args = [args, &["--no-color"]].concat();
        let args = if args[0] == "search" {
            vec!["--no-color", "search", "owned"]
        } else {
            args
        };
        let (code, shown) = Terminal::open(&home, &args, &[]).ends();
        assert_eq!(code, 0);
        assert!(
            shown.len() > 10 && !shown.contains('\u{1b}') && !shown.contains('\u{7}'),
            "{shown:?}"
        );
    }
}

#[test]
fn control_sequences_in_errors_do_not_reach_the_terminal() {
    let home = Home::new();
    home.script_agent("evil", "printf 'no\\033]0;owned\\007\\033[2J' >&2; exit 3");
    let args = ["chat", "--no-color", "--agent", "evil", "-p", "hi"];
    let (code, shown) = Terminal::open(&home, &args, &[]).ends();
    assert_eq!(code, 6);
    assert!(shown.contains("owned"), "{shown:?}");
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
    for command in [&["show"][..], &["show", "--entries"]] {
        let args = [command, &["--no-color"]].concat();
        let (_, shown) = Terminal::open(&home, &args, &[]).ends();
        assert!(shown.contains("owned"), "{shown:?}");
        assert!(
            !shown.contains(['\u{1b}', '\u{7}']),
            "{command:?} {shown:?}"
        );
    }
}

#[test]
fn control_sequences_in_names_do_not_reach_the_terminal() {
    let home = Home::new();
    home.prepare(&["chat"])
        .stdin("x\u{1b}]0;owned\u{7}\u{1b}[2Jy")
        .run()
        .ok();
    let mut steered = Vec::new();
    for args in [
        &["list"][..],
        &["log"],
        &["tag", "@", "+a"],
        &["rm", "-y", "@"],
        &["undo"],
        &["rm", "-y", "@"],
        &["restore", "@"],
        &["show", "nosuch"],
        &["show", "nosuch\u{1b}[2J"],
        &["prune", "--keep", "0", "--dry-run"],
        &["export", "@"],
    ] {
        let args = [&["--no-color"], args].concat();
        let (_, shown) = Terminal::open(&home, &args, &[]).ends();
        if shown.contains(['\u{1b}', '\u{7}']) {
            steered.push(format!("{args:?}: {shown:?}"));
        }
    }
    assert_eq!(steered, Vec::<String>::new());
}

#[test]
fn control_sequences_in_settings_do_not_reach_the_terminal() {
    let home = Home::new();
    home.settings("\"odd\\u001B[2J\" = 1\n");
    let (_, shown) = Terminal::open(&home, &["--no-color", "list"], &[]).ends();
    assert!(
        shown.contains("odd") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
}

#[test]
fn colours_only_where_they_are_wanted() {
    let home = Home::new();
    home.say("hello");
    let escapes = |args: &[&str], variables: &[(&str, &str)]| {
        let (code, shown) = Terminal::open(&home, args, variables).ends();
        assert_eq!(code, 0, "{shown}");
        shown.contains('\u{1b}')
    };
    let without = [CAPABLE, ("NO_COLOR", "1")];
    assert!(escapes(&["show"], &[CAPABLE]));
    assert!(!escapes(&["show"], &without));
    assert!(!escapes(&["show", "--no-color"], &[CAPABLE]));
    assert!(!escapes(&["show"], &[DUMB]));
    assert!(!escapes(&["--help"], &without));
    assert!(!escapes(&["--help"], &[DUMB]));
    assert!(!escapes(&["--no-color", "--help"], &[CAPABLE]));
}

#[test]
fn ctrl_c_stops_a_program_and_the_talk_goes_on() {
    let home = Home::new();
    home.script_agent("slow", crate::running::SLOW);
    let mut terminal = Terminal::open(&home, &["--agent", "slow"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("speak\n");
    terminal.sees("line 1", 1);
    terminal.types(CTRL_C);
    terminal.sees("(stopped)", 1);
    terminal.sees("you> ", 2);
    assert!(agents_of(&home).is_empty());
    terminal.types("speak again\n");
    terminal.sees("line 1", 2);
    terminal.types(CTRL_C);
    terminal.sees("you> ", 3);
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends().0, 0);
    let session = home.show("@");
    assert_eq!(session["messages"], 4);
    assert_eq!(session["status"], "paused");
    for answer in [2, 4] {
        assert_eq!(session["entries"][answer]["interrupted"], true);
    }
}

#[test]
fn rm_asks_on_a_terminal() {
    let home = Home::new();
    home.say("hello");
    let mut terminal = Terminal::open(&home, &["rm", "@"], &[]);
    terminal.sees("[y/N]", 1);
    terminal.types("n\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, 1);
    assert!(shown.contains("Nothing was changed"), "{shown}");
    assert_eq!(home.all().len(), 1);
    let mut terminal = Terminal::open(&home, &["rm", "@"], &[]);
    terminal.sees("[y/N]", 1);
    terminal.types("y\n");
    assert_eq!(terminal.ends().0, 0);
    assert!(home.all().is_empty());
}

#[test]
fn an_earlier_talk_is_mentioned_and_resumed() {
    let home = Home::new();
    home.say("the milk");
    let mut terminal = Terminal::open(&home, &[], &[]);
    terminal.sees("you> ", 1);
    terminal.types(CTRL_D);
    let (_, shown) = terminal.ends();
    assert!(
        shown.contains("the milk") && shown.contains("tertulia -c"),
        "{shown}"
    );
    assert_eq!(home.all().len(), 1);
    let mut terminal = Terminal::open(&home, &["-c"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("what did I say?\n");
    terminal.sees("1. the milk", 1);
    terminal.sees("you> ", 2);
    terminal.types(CTRL_D);
    let (_, shown) = terminal.ends();
    assert!(
        shown.contains("Resumed") && shown.contains("2 messages"),
        "{shown}"
    );
    assert_eq!(home.all().len(), 1);
}

#[test]
fn a_failed_agent_gives_the_floor_back() {
    let home = Home::new();
    let mut terminal = Terminal::open(&home, &["fail now, please", "--agent", "demo"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("fail\n");
    terminal.sees("as it was asked to", 1);
    terminal.sees("you> ", 2);
    terminal.types("a line\\\nand another\n");
    terminal.sees("you> ", 3);
    terminal.types("/exit\n");
    assert_eq!(terminal.ends().0, 0);
    let said = home.said("@");
    assert_eq!(said[0], "fail now, please");
    assert_eq!(said[3], "a line\nand another");
}

#[test]
fn a_terminal_that_goes_away_ends_the_talk_and_keeps_it() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 50\n");
    let mut terminal = Terminal::open(&home, &[], &[]);
    terminal.sees("you> ", 1);
    terminal.types("count to 500\n");
    terminal.sees("7 8 9 ", 1);
    let pid = rustix::process::Pid::from_raw(terminal.child.process_id().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    assert_eq!(terminal.ends().0, 129);
    assert_eq!(home.show("@")["entries"][2]["interrupted"], true);
}

#[test]
fn keys_that_are_not_text_do_not_end_the_talk() {
    let home = Home::new();
    let mut terminal = Terminal::open(&home, &[], &[]);
    terminal.sees("you> ", 1);
    terminal.types(b"echo caf\xe9\n");
    terminal.sees("you> ", 2);
    terminal.types("echo still here\n");
    terminal.sees("you> ", 3);
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0);
    assert!(
        shown.contains("demo> ") && shown.contains("still here\r\n"),
        "{shown:?}"
    );
}
