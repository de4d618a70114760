//! A session that another program has open: it is read, forked or taken over.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tertulia_testkit::idle::is_idle;
use tertulia_testkit::terminal::Terminal;

use super::stage::{leave, open, open_with, ready, say, status_says, talk};
use crate::home::{Home, both, until};
use crate::running::Running;

/// Opens the newest session a second time, and waits for the question.
fn second(home: &Home, args: &[&str]) -> Terminal {
    let mut terminal = open(home, args).with_clear_keys();
    terminal.sees("This session is open elsewhere");
    terminal.sees("Enter read only");
    terminal
}

#[test]
fn it_is_read_along_and_taken_over_and_back() {
    both(|home| {
        let id = home.say("echo shared");
        let mut first = talk(home, &["-c"]);
        let mut other = second(home, &["-c"]);
        other.sees(&format!("process {}", first.pid().as_raw_nonzero()));
        other.keys("r Enter");
        status_says(&mut other, "read only");
        say(&mut first, "echo from the first", "from the first");
        other.sees("from the first");
        // What is written meanwhile waits in the input.
        other.type_text("echo from the second\n");
        other.sees("Enter read only");
        other.keys("t Enter");
        status_says(&mut other, "saved");
        // The first one finds out without writing, and reads along.
        status_says(&mut first, "read only");
        other.type_text("\n");
        // The prompt has the same words as its answer.
        for terminal in [&mut other, &mut first] {
            terminal.wait_for("the answer", |screen| {
                screen.rows_with("from the second") >= 2
            });
        }
        ready(&mut other);
        leave(&mut other);
        // It is free again.
        first.sees("has closed the session");
        first.type_text("echo back\n");
        status_says(&mut first, "saved");
        first.type_text("\n");
        first.wait_for("the answer", |screen| screen.rows_with("back") >= 2);
        leave(&mut first);
        let said = home.said(&id);
        let expected = [
            "echo shared",
            "shared",
            "echo from the first",
            "from the first",
        ];
        assert_eq!(said[..4], expected);
        let expected = [
            "echo from the second",
            "from the second",
            "echo back",
            "back",
        ];
        assert_eq!(said[4..], expected);
        assert_eq!(home.all().len(), 1, "looking forks nothing");
        home.run(&["doctor"]).ok();
    });
}

/// Another program may take the session over at any time, and that is waited for without looking.
#[test]
fn an_idle_screen_wakes_up_for_nothing() {
    both(|home| {
        let mut terminal = talk(home, &[]);
        say(&mut terminal, "echo quiet", "quiet");
        let pid = terminal.pid().as_raw_nonzero().get().cast_unsigned();
        until("the screen is idle", || {
            is_idle(pid, Duration::from_secs(3)).then_some(())
        });
        leave(&mut terminal);
    });
}

#[test]
fn an_answer_is_seen_while_it_is_written() {
    let home = Home::new();
    home.script_agent(
        "slow",
        "echo one; sleep 0.3; echo two; until [ -e go ]; do sleep 0.05; done; echo three",
    );
    let id = home.say("echo shared");
    let mut first = Running::start(&home, &["-r", &id, "--agent", "slow", "-p", "count"]);
    first.until("text");
    let mut other = open(&home, &["-c"]).with_clear_keys();
    other.sees("Enter read only");
    other.keys("r Enter");
    other.sees("one");
    assert!(!other.contents().contains("three"));
    std::fs::write(home.project().join("go"), "").unwrap();
    other.sees("three");
    first.end().ok();
    other.sees("has closed the session");
    leave(&mut other);
}

#[test]
fn line_mode_asks_too() {
    let home = Home::new();
    let id = home.say("echo shared");
    let mut first = talk(&home, &["-c"]);
    let mut other = open_with(&home, &["-c", "--plain"], &[]);
    other.sees("Read only, fork, or take over?");
    other.type_text("x\nt\n");
    other.sees("you>");
    other.type_text("echo lines\n");
    other.wait_for("the answer", |screen| screen.rows_with("lines") >= 2);
    status_says(&mut first, "read only");
    other.keys("^d");
    assert_eq!(other.exit_code(), 0);
    leave(&mut first);
    assert_eq!(
        home.said(&id),
        ["echo shared", "shared", "echo lines", "lines"]
    );
}

#[test]
fn a_prompt_on_the_command_line_waits_for_the_answer() {
    let home = Home::new();
    let id = home.say("echo shared");
    let mut first = talk(&home, &["-c"]);
    let mut other = open(&home, &["-c", "echo later"]).with_clear_keys();
    other.sees("you> echo later");
    other.sees("Tab answer");
    other.keys("Tab f Enter");
    status_says(&mut other, "saved");
    other.type_text("\n");
    other.wait_for("the answer", |screen| screen.rows_with("later") >= 2);
    leave(&mut other);
    leave(&mut first);
    assert_eq!(home.said(&id), ["echo shared", "shared"]);
    assert_eq!(home.all().len(), 2);
}

#[test]
fn a_fork_is_made_with_its_first_message() {
    let home = Home::new();
    let id = home.say("echo shared");
    let mut first = talk(&home, &["-c"]);
    // Every way to look at a session leaves it alone.
    let elsewhere = home.folder("elsewhere");
    let mut other = Terminal::open(
        &mut home.prepare::<&str>(&[]).folder(elsewhere).command(),
        super::stage::SIZE,
    )
    .with_clear_keys();
    super::stage::ready(&mut other);
    for way in [
        format!("/resume {id}\n"),
        "/search shared\n".to_owned(),
        "/sessions\n".to_owned(),
    ] {
        other.type_text(&way);
        // The session is in another project.
        if !way.starts_with("/resume") {
            other.sees("his project");
            other.keys("Tab");
            other.sees("echo shared");
            other.keys("Enter");
        }
        other.sees("Enter read only");
        other.keys("f Enter");
        other.sees("your next message goes to a fork");
        other.type_text("/new\n");
        other.sees("say something, or / for commands");
    }
    leave(&mut other);
    let mut other = second(&home, &["--resume", &id]);
    other.keys("f Enter");
    other.sees("your next message goes to a fork");
    assert_eq!(home.all().len(), 1, "nothing was said");
    // It is sent with one Enter.
    other.type_text("echo here\n");
    other.wait_for("the answer", |screen| screen.rows_with("here") >= 2);
    leave(&mut other);
    leave(&mut first);
    assert_eq!(home.said(&id), ["echo shared", "shared"]);
    assert_eq!(home.all().len(), 2);
}

#[test]
fn a_session_is_followed_line_by_line() {
    both(|home| {
        let id = home.say("echo shared");
        let args = [
            "chat",
            "--follow",
            "-s",
            &id,
            "--output-format",
            "stream-json",
        ];
        let mut follower = Running::of(&home.prepare(&args));
        // The last messages come first.
        assert_eq!(follower.until("message")["content"], "echo shared");
        assert_eq!(follower.until("message")["content"], "shared");
        home.say_in(&id, "echo more");
        assert_eq!(follower.until("message")["content"], "echo more");
        assert_eq!(follower.until("message")["content"], "more");
        follower.signal(Signal::INT);
        follower.end().code(130);
        let refused = home.run(&["chat", "--follow", "--json"]);
        refused.code(2).notes("stream-json");
        home.run(&["chat", "--follow", "-s", "nothing"]).code(3);
    });
}

/// A reader that goes away ends the program that follows.
#[test]
fn a_closed_pipe_ends_it() {
    let home = Home::new();
    let id = home.say("echo shared");
    let mut command: Command = home.prepare(&["chat", "--follow", "-s", &id]).command();
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    home.say_in(&id, "echo more");
    let ended = crate::home::until("it ends", || child.try_wait().unwrap());
    assert!(ended.success() || ended.code() == Some(141), "{ended:?}");
}
