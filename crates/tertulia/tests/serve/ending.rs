//! How a server ends (shut down, killed, idle or stopped), and what remains.

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::{Value, json};

use super::stage::{Client, Server, string};
use crate::home::{Home, messages, until, until_kept};
use crate::running::{SLOW, agents_of, sweep};

/// Returns three clients, each with an agent in the middle of its answer.
fn three_speaking(server: &Server) -> Vec<(Client, i64, String)> {
    (0..3)
        .map(|_| {
            let mut client = server.client();
            let made = client.answer(json!({ "type": "session_create" }));
            let id = client.ask(json!({ "type": "query", "query": "speak" }));
            let token = client.of(id);
            assert_eq!(token["type"], "token", "{token}");
            (client, id, string(&made, "session_id"))
        })
        .collect()
}

fn home_with_slow() -> Home {
    let home = Home::new();
    home.script_agent("slow", SLOW);
    let settings =
        std::fs::read_to_string(home.path().join(".config/tertulia/config.toml")).unwrap();
    home.settings_as_they_are(&settings.replace("agent = \"demo\"", "agent = \"slow\""));
    home
}

#[test]
fn told_to_end_it_finishes_what_is_written_and_leaves_nothing() {
    let home = home_with_slow();
    let server = Server::start(&home, &[]);
    let path = server.path.clone();
    let speaking: Vec<_> = (0..3)
        .map(|_| {
            let mut client = server.client();
            let id = client.ask(json!({ "type": "query", "query": "speak" }));
            assert_eq!(client.of(id)["type"], "token");
            (client, id)
        })
        .collect();
    let mut idle = server.client();
    idle.answer(json!({ "type": "ps" }));
    server.end().ok();
    for (mut client, id) in speaking {
        let complete = client.story(id).pop().unwrap();
        assert_eq!(complete["status"], "cancelled");
        assert_eq!(client.next()["type"], "goodbye");
        assert!(client.is_hung_up());
        let shown = home.show(complete["session_id"].as_str().unwrap());
        let last = messages(&shown).pop().unwrap();
        assert_eq!(last["interrupted"], true);
        assert!(string(&last, "content").starts_with("line 0"));
    }
    assert_eq!(idle.next()["type"], "goodbye");
    assert!(!path.exists());
    assert_eq!(agents_of(&home), []);
}

/// Reads the answer to a query up to these words, and returns what came.
fn hear(client: &mut Client, id: i64, words: &str) -> String {
    let mut heard = String::new();
    while !heard.contains(words) {
        heard.push_str(&string(&client.of(id), "text"));
    }
    heard
}

/// What is shown is soon kept, again and again, and nothing of it goes with the server.
#[test]
fn killed_it_loses_nothing_that_was_seen_for_a_second() {
    let home = home_with_slow();
    let server = Server::start(&home, &[]);
    let mut speaking = three_speaking(&server);
    let mut seen = vec![String::new(); speaking.len()];
    for last in ["line 4\n", "line 8\n"] {
        for ((client, id, session), seen) in speaking.iter_mut().zip(&mut seen) {
            seen.push_str(&hear(client, *id, last));
            until_kept(&home.store_url(), session, seen);
        }
    }
    // They are still speaking when the server is killed.
    for (client, id, _) in &mut speaking {
        hear(client, *id, "line");
    }
    server.kill();
    sweep(&home);
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    client.answer(json!({ "type": "initialize", "demo_mode": true }));
    let listed = client.answer(json!({ "type": "session_list" }));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 3);
    for ((_, _, session), seen) in speaking.iter().zip(&seen) {
        let load = json!({ "type": "session_load", "session_id": session, "last": 1 });
        let loaded = client.answer(load);
        let last = &loaded["messages"][0];
        assert_eq!(last["interrupted"], true, "{loaded}");
        let kept = string(last, "content");
        assert!(kept.contains(seen.as_str()), "{seen:?} of {kept:?}");
        // The session continues where it was.
        let (answer, _) = client.query("echo on");
        assert_eq!(answer, "on");
    }
    server.end().ok();
}

#[test]
fn it_ends_by_itself_when_nobody_needs_it() {
    let home = home_with_slow();
    let server = Server::start(&home, &["--idle-exit", "1"]);
    let mut client = server.client();
    let id = client.ask(json!({ "type": "query", "query": "speak" }));
    // Its agent needs more than a second for so many lines, and so does the server until the next.
    while !string(&client.of(id), "text").contains("line 10") {}
    assert_eq!(client.answer(json!({ "type": "ps" }))["type"], "ps_result");
    client.leave();
    // The agent is still answering.
    let lines = home.project().join("lines");
    until("the agent has gone on for more than a second", || {
        std::fs::read_to_string(&lines)
            .unwrap()
            .contains("line 25\n")
            .then_some(())
    });
    let mut client = server.client();
    let talks = client.answer(json!({ "type": "ps" }))["talks"].clone();
    assert_eq!(talks[0]["state"], "answering");
    client.answer(json!({ "type": "stop", "session_id": talks[0]["session_id"] }));
    client.leave();
    let path = server.path.clone();
    server.wait().ok();
    assert!(!path.exists());
}

#[test]
fn a_talk_is_stopped_and_the_others_go_on() {
    let home = home_with_slow();
    let server = Server::start(&home, &[]);
    let speaking = three_speaking(&server);
    let socket = server.path.to_str().unwrap().to_owned();
    let shown = home.run(&["ps", "--socket", &socket]).ok();
    assert_eq!(shown.stdout.matches("answering").count(), 3, "{shown:?}");
    let shown = shown.notes("3 sessions, 3 clients");
    let (_, _, session) = &speaking[0];
    let short = &session[28..];
    assert!(shown.stdout.contains(short));
    home.run(&["stop", short, "--socket", &socket])
        .ok()
        .notes("Stopped");
    let left = home.run(&["ps", "--json", "--socket", &socket]).ok().json();
    let ids: Vec<&str> = left["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|talk| talk["session_id"].as_str().unwrap())
        .collect();
    assert!(ids.len() == 2 && !ids.contains(&session.as_str()), "{left}");
    home.run(&["stop", short, "--socket", &socket]).code(3);
    home.run(&["stop", "no/such", "--socket", &socket]).code(3);
    let mut speaking = speaking.into_iter();
    let (mut stopped, id, session) = speaking.next().unwrap();
    assert_eq!(stopped.story(id).last().unwrap()["status"], "cancelled");
    assert_eq!(
        messages(&home.show(&session)).last().unwrap()["interrupted"],
        true
    );
    for (mut client, id, _) in speaking {
        assert_eq!(client.of(id)["type"], "token");
    }
    server.end().ok();
    assert_eq!(agents_of(&home), []);
}

#[test]
fn detached_it_stays_and_can_be_ended() {
    let home = Home::new();
    let started = home.run(&["serve", "--detach", "--json"]).ok().json();
    let pid = i32::try_from(started["pid"].as_i64().unwrap()).unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    // It has its own process session, so that closing the terminal does not end it.
    assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
    let path = std::path::PathBuf::from(string(&started, "socket"));
    let mut client = Client::over_socket(&path);
    assert_eq!(client.query("echo here").0, "here");
    home.run(&["ps"]).ok().notes("1 session, 1 client");
    home.run(&["stop", "--all"]).ok().notes("has stopped");
    assert!(!path.exists(), "it ended before its socket went");
    assert_eq!(client.next()["type"], "goodbye");
    until("the process is gone", || {
        let zombie = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            stat.is_ok_and(|stat| stat.contains(") Z "))
        };
        (test_kill_process(pid).is_err() || zombie()).then_some(())
    });
}

#[test]
fn on_the_standard_streams_a_signal_ends_it_too() {
    let home = home_with_slow();
    let (mut client, child) = Client::over_stdio(&home, &[]);
    let id = client.ask(json!({ "type": "query", "query": "speak" }));
    client.of(id);
    let pid = Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(client.story(id).last().unwrap()["status"], "cancelled");
    assert_eq!(client.next()["type"], "goodbye");
    crate::home::finish(child, "a server").ok();
    assert_eq!(agents_of(&home), []);
}

#[test]
fn closing_the_sending_side_ends_with_the_last_answer() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let ids: Vec<i64> = (0..3)
        .map(|n| client.ask(json!({ "type": "query", "query": format!("echo {n}") })))
        .collect();
    client.hush();
    for (n, id) in ids.into_iter().enumerate() {
        let story: Vec<Value> = client.story(id);
        assert_eq!(super::stage::text(&story), n.to_string());
    }
    assert!(client.is_hung_up());
    server.end().ok();
}
