//! Several clients: each in its own session, many following one session, and reconnecting.

use std::fs;

use serde_json::{Value, json};

use super::stage::{Client, Server, string};
use crate::home::{Home, until};
use crate::running::WAITING;

fn full(session: &str, since: Option<u64>) -> Value {
    match since {
        Some(since) => {
            json!({ "type": "subscribe", "session_id": session, "detail": "full", "since": since })
        }
        None => json!({ "type": "subscribe", "session_id": session, "detail": "full" }),
    }
}

/// Events received until the session is idle: joined text and log lines.
struct Heard {
    text: String,
    lines: Vec<String>,
    n: u64,
}

fn until_over(client: &mut Client) -> Heard {
    let mut heard = Heard {
        text: String::new(),
        lines: Vec::new(),
        n: 0,
    };
    loop {
        let reply = client.until("happening");
        let n = reply["n"].as_u64().unwrap();
        assert!(n >= heard.n, "{reply}");
        heard.n = n;
        let happening = &reply["happening"];
        match happening["what"].as_str().unwrap() {
            "text" => heard.text.push_str(happening["text"].as_str().unwrap()),
            "durable" => heard.lines.push(string(happening, "line")),
            "over" => return heard,
            _ => {}
        }
    }
}

#[test]
fn each_client_has_its_own_session() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (mut one, mut two) = (server.client(), server.client());
    let (_, first) = one.query("echo one");
    let (_, second) = two.query("echo two");
    assert_ne!(first["session_id"], second["session_id"]);
    one.query("echo still one");
    let said = home.said(first["session_id"].as_str().unwrap());
    assert_eq!(said, ["echo one", "one", "echo still one", "still one"]);
    server.end().ok();
}

#[test]
fn agents_go_on_when_a_client_leaves() {
    let home = Home::new();
    home.script_agent("slow", WAITING);
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    client.answer(json!({ "type": "initialize", "agent": "slow" }));
    let made = client.answer(json!({ "type": "session_create" }));
    let session = string(&made, "session_id");
    let id = client.ask(json!({ "type": "query", "query": "go" }));
    assert_eq!(client.of(id)["text"], "begun\n");
    client.leave();
    fs::write(home.path().join("go"), "").unwrap();
    until("the answer is whole", || {
        (home.said(&session) == ["go", "begun\ndone\n"]).then_some(())
    });
    server.end().ok();
}

#[test]
fn a_session_is_followed_while_another_client_talks_in_it() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (mut talks, mut follows) = (server.client(), server.client());
    let made = talks.answer(json!({ "type": "session_create" }));
    let session = string(&made, "session_id");
    let followed = follows.answer(json!({ "type": "subscribe", "session_id": session }));
    assert_eq!(followed["type"], "subscribed");
    for n in 0..5 {
        talks.query(&format!("echo {n}"));
    }
    let mut heard = Vec::new();
    while heard.len() < 10 {
        let message = follows.until("message");
        assert_eq!(message["session_id"], session.as_str());
        heard.push(string(&message, "content"));
    }
    assert_eq!(heard, home.said(&session));
    server.end().ok();
}

#[test]
fn who_joins_in_the_middle_hears_the_beginning() {
    let home = Home::new();
    home.script_agent("slow", WAITING);
    let server = Server::start(&home, &[]);
    let mut talks = server.client();
    talks.answer(json!({ "type": "initialize", "agent": "slow" }));
    let made = talks.answer(json!({ "type": "session_create" }));
    let session = string(&made, "session_id");
    let id = talks.ask(json!({ "type": "query", "query": "go" }));
    talks.of(id);
    let mut joins = server.client();
    joins.send(&full(&session, None));
    let subscribed = joins.next();
    assert_eq!(
        (&subscribed["type"], &subscribed["fresh"]),
        (&json!("subscribed"), &json!(true))
    );
    let mut kinds = Vec::new();
    loop {
        let reply = joins.next();
        assert_eq!(reply["replayed"], true, "{reply}");
        assert_eq!(reply["n"], subscribed["n"]);
        kinds.push(string(&reply["happening"], "what"));
        if kinds.last().unwrap() == "text" {
            assert_eq!(reply["happening"]["text"], "begun\n");
            break;
        }
    }
    assert_eq!(kinds, ["opened", "permissions", "began", "text"]);
    fs::write(home.path().join("go"), "").unwrap();
    let heard = until_over(&mut joins);
    assert_eq!(heard.text, "done\n");
    assert!(heard.lines.len() == 1 && heard.lines[0].contains("begun\\ndone"));
    server.end().ok();
}

#[test]
fn who_comes_back_misses_nothing() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut talks = server.client();
    let made = talks.answer(json!({ "type": "session_create" }));
    let session = string(&made, "session_id");
    let mut screen = server.client();
    screen.send(&full(&session, None));
    screen.until_happening("opened");
    screen.send(&json!({ "type": "say", "session_id": session, "text": "echo one" }));
    let first = until_over(&mut screen);
    assert_eq!(first.text, "one");
    screen.leave();
    talks.query("echo two");
    let mut back = server.client();
    back.send(&full(&session, Some(first.n)));
    let subscribed = back.next();
    assert_eq!(subscribed["fresh"], false);
    let missed = until_over(&mut back);
    assert_eq!(missed.text, "two");
    assert_eq!(missed.n, subscribed["n"].as_u64().unwrap());
    // The received lines equal the log, byte for byte.
    let exported = home
        .run(&["export", &session, "--format", "jsonl"])
        .ok()
        .stdout;
    let lines: Vec<&str> = exported.lines().skip(1).collect();
    assert_eq!([first.lines, missed.lines].concat(), lines);
    // A sequence number of another server run does not apply to this one.
    for since in [1, first.n + 1_000_000] {
        let mut other = server.client();
        other.send(&full(&session, Some(since)));
        assert_eq!(other.next()["fresh"], true);
        assert_eq!(other.next()["happening"]["what"], "opened");
    }
    server.end().ok();
}

#[test]
fn a_screen_can_open_what_does_not_run_and_leave_it() {
    let home = Home::new();
    let session = home.say("the parrot is green");
    let server = Server::start(&home, &[]);
    let mut screen = server.client();
    screen.send(&full(&session[28..], None));
    let opened = screen.until_happening("opened");
    let floor = &opened["happening"]["floor"];
    assert_eq!(
        (&floor["id"], &floor["summary"]["messages"]),
        (&json!(session), &json!(2))
    );
    assert!(string(floor, "introduction").contains("demo"));
    let order = |kind: &str| json!({ "type": kind, "session_id": session });
    assert_eq!(screen.answer(order("compact"))["type"], "accepted");
    let told = screen.until_happening("notice");
    assert!(
        string(&told["happening"], "text").contains("summarising"),
        "{told}"
    );
    let lines = until_over(&mut screen).lines;
    assert!(
        lines.iter().any(|line| line.contains("\"compacted\"")),
        "{lines:?}"
    );
    let seat = json!({ "type": "as", "session_id": session, "name": "ana" });
    screen.send(&seat);
    let told = screen.until_happening("notice");
    assert!(
        string(&told["happening"], "text").contains("no team"),
        "{told}"
    );
    until_over(&mut screen);
    assert_eq!(screen.answer(order("detach"))["type"], "detached");
    assert_eq!(screen.answer(order("detach"))["kind"], "not_found");
    server.end().ok();
}

#[test]
fn what_cannot_be_opened_is_told_and_can_be_tried_again() {
    let home = Home::new();
    home.script_agent("gone", "echo hello");
    let session = {
        let chat = [
            "chat",
            "--agent",
            "gone",
            "--output-format",
            "json",
            "-p",
            "hi",
        ];
        home.run(&chat).ok().json()["session_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    home.settings_as_they_are("agent = \"demo\"\n");
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    client.answer(json!({ "type": "session_load", "session_id": session }));
    for _ in 0..2 {
        let id = client.ask(json!({ "type": "query", "query": "hello" }));
        let story = client.story(id);
        assert_eq!(story[0]["kind"], "agent", "{story:?}");
        assert_eq!(story[1]["status"], "failed");
    }
    client.answer(json!({ "type": "initialize", "demo_mode": true }));
    assert_eq!(client.query("echo back").0, "back");
    server.end().ok();
}

#[test]
fn queries_wait_for_each_other_and_too_many_are_refused() {
    let home = Home::new();
    home.script_agent("slow", WAITING);
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    client.answer(json!({ "type": "initialize", "agent": "slow" }));
    let first = client.ask(json!({ "type": "query", "query": "0" }));
    client.of(first);
    let ids: Vec<i64> = (1..=33)
        .map(|n| client.ask(json!({ "type": "query", "query": n.to_string() })))
        .collect();
    assert_eq!(client.of(ids[32])["kind"], "busy");
    fs::write(home.path().join("go"), "").unwrap();
    let last = client.story(ids[31]).pop().unwrap();
    assert_eq!(last["message_count"], 66);
    let said = home.said(last["session_id"].as_str().unwrap());
    let asked: Vec<String> = said.iter().step_by(2).cloned().collect();
    assert_eq!(asked, (0..=32).map(|n| n.to_string()).collect::<Vec<_>>());
    server.end().ok();
}
