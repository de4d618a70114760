//! Two processes in one session: nothing is lost, nothing is interleaved.

use rustix::process::Signal;
use serde_json::json;

use crate::home::{Home, both, short, until};
use crate::running::{Running, SLOW, WAITING};

#[test]
fn who_comes_second_goes_on_in_a_fork() {
    both(|home| {
        home.script_agent("slow", SLOW);
        let id = home.say("echo one");
        let mut first = Running::start(home, &["-r", &id, "--agent", "slow", "-p", "go on"]);
        first.until("text");
        let args = ["-r", &id, "--agent", "demo", "--json", "-p", "echo second"];
        let second = home.run(&args).ok();
        let fork = second.json()["session_id"].as_str().unwrap().to_owned();
        assert_ne!(fork, id);
        second.notes(&short(&id)).notes(&short(&fork)).notes("fork");
        let seen = home.show(&fork);
        assert_eq!(seen["parent"]["id"], id.as_str());
        assert_eq!(seen["parent"]["relation"], "conflict");
        let said = home.said(&fork);
        assert_eq!(&said[..2], ["echo one", "one"]);
        assert_eq!(&said[said.len() - 2..], ["echo second", "second"]);
        first.signal(Signal::INT);
        first.end().code(130);
        let said = home.said(&id);
        assert_eq!(&said[..3], ["echo one", "one", "go on"]);
        assert!(said[3].starts_with("line 0\n"), "{said:?}");
        assert_eq!((said.len(), home.all().len()), (4, 2));
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn the_stream_says_which_session_the_fork_is() {
    let home = &Home::new();
    home.script_agent("slow", SLOW);
    let id = home.say("echo one");
    let mut first = Running::start(home, &["-r", &id, "--agent", "slow", "-p", "go on"]);
    first.until("text");
    let args = [
        "chat",
        "-r",
        &id,
        "--agent",
        "demo",
        "--output-format",
        "stream-json",
        "-p",
        "echo x",
    ];
    let events = home.run(&args).ok().events();
    let started: Vec<_> = events
        .iter()
        .filter(|e| e["type"] == "session.started")
        .collect();
    let last = started.last().unwrap()["session_id"].as_str().unwrap();
    assert_ne!(last, id);
    assert_eq!(events.last().unwrap()["session_id"], last);
    first.signal(Signal::INT);
    first.end().code(130);
}

#[test]
fn no_fork_stops_with_a_conflict() {
    let home = &Home::new();
    home.script_agent("slow", SLOW);
    let id = home.say("echo one");
    let mut first = Running::start(home, &["-r", &id, "--agent", "slow", "-p", "go on"]);
    first.until("text");
    let args = [
        "-r",
        &id,
        "--agent",
        "demo",
        "--no-fork",
        "-p",
        "echo second",
    ];
    home.run(&args)
        .code(4)
        .notes(&format!("session {} is open in tertulia ", short(&id)))
        .notes("close it there")
        .lacks("appended");
    let error = home.run(&[&["--json"], &args[..]].concat()).code(4).error();
    assert_eq!(error["kind"], "conflict");
    assert_eq!(home.all().len(), 1);
    first.signal(Signal::INT);
    first.end().code(130);
    assert_eq!(home.said(&id).len(), 4);
    // Once the other process has exited, the same command works.
    assert_eq!(home.run(&args).ok().stdout, "second\n");
}

#[test]
fn tidying_up_does_not_get_between_two_speakers() {
    let home = &Home::new();
    home.script_agent("brief", WAITING);
    let id = home.say("echo one");
    let mut talk = Running::start(home, &["-r", &id, "--agent", "brief", "-p", "go on"]);
    talk.until("text");
    home.run(&["rename", &id, "New title"]).ok();
    home.run(&["tag", &id, "+x"]).ok();
    std::fs::write(home.path().join("go"), "").unwrap();
    let output = talk.end().ok();
    output.lacks("fork,");
    assert_eq!(home.all().len(), 1);
    let session = home.show(&id);
    assert_eq!(
        (&session["title"], &session["tags"]),
        (&json!("New title"), &json!(["x"]))
    );
    assert_eq!(
        home.said(&id),
        ["echo one", "one", "go on", "begun\ndone\n"]
    );
    home.run(&["doctor"]).ok();
}

#[test]
fn many_writers_at_once_lose_nothing() {
    both(|home| {
        home.say("echo zero");
        std::thread::scope(|scope| {
            for n in 0..6 {
                scope.spawn(move || home.run(&["chat", "-p", &format!("echo new {n}")]).ok());
            }
            for n in 0..6 {
                scope.spawn(move || {
                    home.run(&["-r", "@", "-p", &format!("echo resumed {n}")])
                        .ok()
                });
            }
        });
        let everything: Vec<String> = home
            .all()
            .iter()
            .flat_map(|session| home.said(session["id"].as_str().unwrap()))
            .collect();
        for n in 0..6 {
            for words in [format!("new {n}"), format!("resumed {n}")] {
                assert!(everything.contains(&words), "{words}: {everything:?}");
                assert!(everything.contains(&format!("echo {words}")), "{words}");
            }
        }
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn many_first_runs_at_once_share_one_store() {
    both(|home| {
        std::thread::scope(|scope| {
            for n in 0..6 {
                scope.spawn(move || home.run(&["chat", "-p", &format!("echo {n}")]).ok());
            }
        });
        assert_eq!(home.all().len(), 6);
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn a_session_is_free_again_after_kill() {
    both(|home| {
        home.script_agent("slow", SLOW);
        let id = home.say("echo one");
        let mut talk = Running::start(home, &["-r", &id, "--agent", "slow", "-p", "go on"]);
        talk.until("text");
        assert_eq!(home.all()[0]["open"], true);
        talk.kill();
        crate::running::sweep(home);
        until("it is free", || {
            (home.all()[0]["open"] == false).then_some(())
        });
        home.run(&["-r", &id, "--agent", "demo", "--no-fork", "-p", "echo on"])
            .ok();
        assert_eq!(home.all().len(), 1);
    });
}

#[test]
fn one_id_is_given_once() {
    let home = &Home::new();
    let id = "01900000-0000-7000-8000-0000000000aa";
    let mut codes: Vec<Option<i32>> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..5)
            .map(|n| {
                let words = format!("echo {n}");
                scope.spawn(move || home.run(&["chat", "--session-id", id, "-p", &words]))
            })
            .collect();
        let ended = runs.into_iter().map(|run| run.join().unwrap());
        ended.map(|output| output.status.code()).collect()
    });
    codes.sort();
    assert_eq!(codes, [Some(0), Some(4), Some(4), Some(4), Some(4)]);
    assert_eq!((home.said(id).len(), home.all().len()), (2, 1));
    home.run(&["doctor"]).ok();
}

#[test]
fn a_session_is_taken_over_and_the_earlier_writer_goes_on_in_a_fork() {
    both(|home| {
        home.script_agent("slow", SLOW);
        let id = home.say("echo one");
        let mut first = Running::start(home, &["-r", &id, "--agent", "slow", "-p", "go on"]);
        first.until("text");
        // Who has it open is said.
        let fork = home.run(&["-r", &id, "--agent", "demo", "-p", "echo fork"]);
        let process = format!("process {}", first.id());
        fork.ok().notes(&process).notes("--take-over");
        let args = ["-r", &id, "--take-over", "--agent", "demo", "--json", "-p"];
        let taken = home.run(&[&args[..], &["echo taken"]].concat()).ok();
        assert_eq!(taken.json()["session_id"], id.as_str());
        let said = home.said(&id);
        assert_eq!(said[..3], ["echo one", "one", "go on"]);
        assert_eq!(said[said.len() - 2..], ["echo taken", "taken"]);
        // What the earlier writer was about to save is in a fork.
        first.signal(Signal::INT);
        let ended = first.end();
        ended.code(130).notes("fork");
        assert_eq!(home.said(&id), said);
        assert_eq!(home.all().len(), 3);
        home.run(&["doctor"]).ok();
    });
}
