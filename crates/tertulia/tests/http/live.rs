//! One live session in terminals and browsers: both see every word, and a message is said once,
//! whatever happens to the server.

use std::time::Duration;

use serde_json::{Value, json};
use tertulia_testkit::idle::is_idle;

use super::stage::{WebServer, WebSocket};
use crate::home::{Home, messages, until};
use crate::running::WAITING;

fn follow(session: &str) -> Value {
    json!({ "type": "subscribe", "session_id": session, "detail": "full", "open": false })
}

#[test]
fn the_socket_and_the_page_share_a_live_session() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let mut page = server.socket(&login);
    let mut near = server.near();
    let created = near.answer(json!({ "type": "session_create", "title": "shared" }));
    let id = created["session_id"].as_str().unwrap().to_owned();
    assert_eq!(page.answer(follow(&id))["type"], "subscribed");
    near.answer(json!({ "type": "subscribe", "session_id": id, "detail": "full" }));
    let accepted =
        page.answer(json!({ "type": "say", "session_id": id, "text": "echo from the page" }));
    assert_eq!(accepted["type"], "accepted");
    page.until("over");
    near.until_happening("over");
    near.answer(json!({ "type": "say", "session_id": id, "text": "echo from the socket" }));
    near.until_happening("over");
    page.until("over");
    let said = home.said(&id);
    assert_eq!(
        said,
        [
            "echo from the page",
            "from the page",
            "echo from the socket",
            "from the socket"
        ]
    );
    let shown = page.answer(json!({ "type": "session_page", "session_id": id, "limit": 1 }));
    assert_eq!(shown["entries"][0]["text"], "from the socket");
    assert_eq!(
        (&shown["more_before"], &shown["more_after"]),
        (&json!(true), &json!(false))
    );
    let found = json!({ "type": "session_list", "title": "SHAR", "facets": true });
    let listed = page.answer(found);
    assert_eq!(listed["sessions"][0]["live"], "waiting");
    assert_eq!(listed["projects"].as_array().unwrap().len(), 1);
    server.end().ok();
}

#[test]
fn a_message_is_said_once_even_if_the_server_is_killed() {
    let home = Home::new();
    home.script_agent("slow", WAITING);
    let bind = "127.0.0.1:0";
    let server = WebServer::start_on(&home, bind, &[]);
    let login = server.log_in();
    let mut page = server.socket(&login);
    let created = page.answer(json!({ "type": "session_create", "agent": "slow" }));
    let id = created["session_id"].as_str().unwrap().to_owned();
    page.answer(follow(&id));
    let say = json!({ "type": "say", "session_id": id, "text": "begin", "client_id": "m-1" });
    assert!(page.answer(say.clone())["duplicate"].is_null());
    page.until("text");
    // While it is being answered.
    assert_eq!(page.answer(say.clone())["duplicate"], true);
    // While it is queued.
    let next = json!({ "type": "say", "session_id": id, "text": "next", "client_id": "m-2" });
    assert!(page.answer(next.clone())["duplicate"].is_null());
    assert_eq!(page.answer(next.clone())["duplicate"], true);
    server.kill();
    std::fs::write(home.path().join("go"), "").unwrap();
    let server = WebServer::start_on(&home, bind, &[]);
    // The login outlives the server.
    let mut page = server.socket(&login);
    page.answer(follow(&id));
    let again = page.answer(say);
    assert_eq!(again["duplicate"], true, "{again}");
    // What was only queued was never said, and only the user can say it now.
    let told = page.answer(next);
    assert_eq!(
        (&told["type"], &told["reason"]),
        (&json!("withdrawn"), &json!("restarted")),
        "{told}"
    );
    let anew = json!({ "type": "say", "session_id": id, "text": "next", "client_id": "m-3" });
    page.answer(anew);
    page.until("over");
    let given_up = json!({ "type": "withdraw", "session_id": id, "client_id": "m-2" });
    assert_eq!(page.answer(given_up.clone())["type"], "accepted");
    assert_eq!(page.answer(given_up)["kind"], "not_found");
    let session = home.show(&id);
    let prompts: Vec<Value> = messages(&session)
        .into_iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].clone())
        .collect();
    assert_eq!(prompts, ["begin", "next"]);
    let wrong = json!({ "type": "say", "session_id": id, "text": "x", "client_id": "a b" });
    assert_eq!(page.answer(wrong)["kind"], "usage");
    server.end().ok();
}

/// Waits for a message and its answer.
fn next_messages(page: &mut WebSocket) -> [String; 2] {
    std::array::from_fn(|_| {
        loop {
            let durable = page.until("durable");
            let line: Value = serde_json::from_str(durable["line"].as_str().unwrap()).unwrap();
            if line["type"] == "message" {
                return line["content"].as_str().unwrap().to_owned();
            }
        }
    })
}

#[test]
fn a_session_of_another_program_is_followed() {
    let home = Home::new();
    let id = home.say("echo before");
    let server = WebServer::start(&home, &[]);
    let mut page = server.socket(&server.log_in());
    page.answer(follow(&id));
    let opened = page.until("opened");
    assert_eq!(opened["floor"]["summary"]["messages"], 2);
    home.say_in(&id, "echo meanwhile");
    assert_eq!(next_messages(&mut page), ["echo meanwhile", "meanwhile"]);
    let ps = page.answer(json!({ "type": "ps" }));
    assert_eq!(ps["talks"], json!([]));
    // A message opens it here, and goes on in the same session.
    let say = json!({ "type": "say", "session_id": id, "text": "echo here" });
    assert_eq!(page.answer(say)["session_id"], id);
    // The end of the other program's turn may come at any time.
    assert_eq!(next_messages(&mut page), ["echo here", "here"]);
    assert_eq!(home.said(&id).last().map(String::as_str), Some("here"));
    server.end().ok();
}

#[test]
fn permission_waits_for_a_page_that_sleeps() {
    let home = Home::new();
    let told = home.path().join("told");
    home.settings(&format!(
        "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> {}\"]\n",
        told.display()
    ));
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let mut page = server.socket(&login);
    let created = page.answer(json!({ "type": "session_create", "agent": "demo" }));
    let id = created["session_id"].as_str().unwrap().to_owned();
    page.answer(follow(&id));
    let ask = r#"use file_write {"path": "a.txt", "content": "x"}"#;
    page.answer(json!({ "type": "say", "session_id": id, "text": ask }));
    page.until("may_i");
    drop(page);
    let mut near = server.near();
    until("the server knows that the page is gone", || {
        let ps = near.answer(json!({ "type": "ps" }));
        (ps["server"]["clients"] == 1).then_some(())
    });
    near.leave();
    let mut page = server.socket(&login);
    page.answer(follow(&id));
    let asked = page.until("may_i");
    let tool_id = asked["request"]["call"]["id"].clone();
    let yes = json!({ "type": "verdict", "session_id": id, "tool_id": tool_id, "verdict": "yes" });
    assert_eq!(page.answer(yes)["type"], "accepted");
    page.until("over");
    assert_eq!(
        std::fs::read_to_string(home.project().join("a.txt")).unwrap(),
        "x"
    );
    let lines = until("both notifications came", || {
        let text = std::fs::read_to_string(&told).ok()?;
        (text.lines().count() == 2).then_some(text)
    });
    let kinds: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .inspect(|told| assert_eq!(told["session"], id))
        .map(|told| told["kind"].clone())
        .collect();
    assert_eq!(kinds, ["permission", "ended"]);
    assert!(!lines.contains("a.txt"));
    server.end().ok();
    // Content comes only if it is asked for.
    home.settings(&format!(
        "[notify]\ncontent = true\ncommand = [\"sh\", \"-c\", \"cat > {0}.part && mv {0}.part {0}.all\"]\n",
        told.display()
    ));
    let server = WebServer::start(&home, &[]);
    let mut page = server.socket(&login);
    page.answer(follow(&id));
    page.answer(json!({ "type": "say", "session_id": id, "text": "echo the answer" }));
    page.until("over");
    let text = until("the notification came", || {
        std::fs::read_to_string(home.path().join("told.all")).ok()
    });
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["text"], "the answer");
    server.end().ok();
}

#[test]
fn an_idle_server_sleeps() {
    let home = Home::new();
    let id = home.say("echo one");
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let mut page = server.socket(&login);
    page.answer(json!({ "type": "session_page", "session_id": id }));
    page.answer(follow(&id));
    page.until("opened");
    let pid = server.pid().as_raw_nonzero().get().cast_unsigned();
    // The next ping is due later.
    until(
        "nothing but an event wakes the server within a second",
        || is_idle(pid, Duration::from_secs(1)).then_some(()),
    );
    server.end().ok();
}
