//! Tool permissions: which client is asked, and what happens without one.

use serde_json::{Value, json};

use super::stage::{Client, Server, both_ways, string, text};
use crate::home::{Home, finish, messages, until};

const TOUCH: &str = r#"use shell {"command": "touch made"}"#;

fn touched(home: &Home) -> bool {
    home.project().join("made").exists()
}

/// Sends a prompt that uses a tool, and waits for the permission request.
fn asked(client: &mut Client, words: &str) -> (i64, Value) {
    let id = client.ask(json!({ "type": "query", "query": words }));
    loop {
        let reply = client.of(id);
        assert_ne!(reply["type"], "complete", "nobody was asked");
        if reply["type"] == "tool_request" {
            return (id, reply);
        }
    }
}

fn approve(request: &Value, approved: bool) -> Value {
    json!({ "type": "tool_approve", "tool_id": request["tool_id"], "approved": approved })
}

#[test]
fn a_tool_runs_when_the_client_says_yes() {
    both_ways(|home, mut client| {
        let (id, request) = asked(&mut client, TOUCH);
        assert_eq!(
            (&request["tool"], &request["risk"]),
            (&json!("shell"), &json!("high"))
        );
        assert!(string(&request, "preview").contains("touch made"));
        assert!(!touched(home));
        client.send(&approve(&request, true));
        let story = client.story(id);
        let result = story
            .iter()
            .find(|reply| reply["type"] == "tool_result")
            .unwrap();
        assert_eq!(
            (&result["tool"], &result["ok"]),
            (&json!("shell"), &json!(true))
        );
        assert_eq!(result["tool_id"], request["tool_id"]);
        assert!(text(&story).contains("The tool said"));
        assert!(touched(home));
    });
}

#[test]
fn a_tool_does_not_run_when_the_client_says_no() {
    both_ways(|home, mut client| {
        let (id, request) = asked(&mut client, TOUCH);
        client.send(&approve(&request, false));
        let story = client.story(id);
        let result = story
            .iter()
            .find(|reply| reply["type"] == "tool_result")
            .unwrap();
        assert_eq!(result["ok"], false);
        assert_eq!(story.last().unwrap()["status"], "completed");
        assert!(!touched(home));
    });
}

#[test]
fn a_denial_may_say_what_to_do_instead() {
    both_ways(|home, mut client| {
        let (id, request) = asked(&mut client, TOUCH);
        let mut wrong = approve(&request, true);
        wrong["reason"] = json!("why not");
        let refused = client.ask(wrong);
        let error = client.of(refused);
        assert_eq!(
            (&error["type"], &error["kind"]),
            (&json!("error"), &json!("usage"))
        );
        let mut denied = approve(&request, false);
        denied["reason"] = json!("list the folder");
        client.send(&denied);
        let story = client.story(id);
        let result = story
            .iter()
            .find(|reply| reply["type"] == "tool_result")
            .unwrap();
        let reason = "says what to do instead: list the folder]";
        assert!(string(result, "output").ends_with(reason), "{result}");
        assert!(!touched(home));
    });
}

#[test]
fn always_is_asked_once() {
    both_ways(|home, mut client| {
        let (id, request) = asked(&mut client, TOUCH);
        let mut always = approve(&request, true);
        always["always"] = json!(true);
        client.send(&always);
        client.story(id);
        std::fs::remove_file(home.project().join("made")).unwrap();
        let id = client.ask(json!({ "type": "query", "query": TOUCH }));
        let story = client.story(id);
        assert!(story.iter().all(|reply| reply["type"] != "tool_request"));
        assert!(touched(home));
    });
}

#[test]
fn nothing_runs_when_whoever_asked_is_gone() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let (_, request) = asked(&mut client, TOUCH);
    let session = string(&request, "session_id");
    client.leave();
    let said = until("the answer without the tool", || {
        let said = messages(&home.show(&session));
        (said.len() == 4).then_some(said)
    });
    assert!(string(&said[2], "content").contains("not run"), "{said:?}");
    assert!(!touched(&home));
    server.end().ok();
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let home = Home::new();
    let asked = json!({ "type": "query", "query": TOUCH }).to_string();
    let output = home.prepare(&["serve", "--stdio"]).stdin(asked).run().ok();
    let story = output.events();
    assert_eq!(story.last().unwrap()["status"], "completed", "{story:?}");
    assert!(!touched(&home));
}

#[test]
fn the_mode_decides_before_anybody_is_asked() {
    for (mode, runs) in [("all", true), ("low", false), ("none", false)] {
        let home = Home::new();
        let (mut client, child) = Client::over_stdio(&home, &["--approve", mode]);
        let id = client.ask(json!({ "type": "query", "query": TOUCH }));
        let story = client.story(id);
        assert!(story.iter().all(|reply| reply["type"] != "tool_request"));
        assert_eq!(touched(&home), runs, "{mode}");
        client.leave();
        crate::home::finish(child, "a server").ok();
    }
}

#[test]
fn cancel_takes_the_question_back() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let (id, request) = asked(&mut client, TOUCH);
    let running = client.answer(json!({ "type": "ps" }));
    assert_eq!(running["talks"][0]["state"], "asking");
    let mut other = server.client();
    let session = string(&request, "session_id");
    other.send(&json!({ "type": "subscribe", "session_id": session, "detail": "full" }));
    let question = other.until_happening("may_i");
    assert_eq!(question["replayed"], true);
    assert_eq!(
        question["happening"]["request"]["call"]["id"],
        request["tool_id"]
    );
    client.send(&json!({ "type": "cancel" }));
    assert_eq!(client.story(id).last().unwrap()["status"], "cancelled");
    other.until_happening("settled");
    let late = client.answer(approve(&request, true));
    assert_eq!(late["kind"], "not_found");
    assert!(!touched(&home));
    server.end().ok();
}

#[test]
fn who_follows_everything_can_answer() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut asker = server.client();
    let (id, request) = asked(&mut asker, TOUCH);
    let session = string(&request, "session_id");
    let mut other = server.client();
    other.send(&json!({ "type": "subscribe", "session_id": session, "detail": "full" }));
    other.until_happening("may_i");
    // The client that sent the prompt may disconnect: another one can answer.
    asker.leave();
    let verdict = json!({ "type": "verdict", "session_id": session, "tool_id": request["tool_id"], "verdict": "yes" });
    let answered = other.ask(verdict);
    assert_eq!(other.of(answered)["type"], "accepted");
    until("the tool ran", || touched(&home).then_some(()));
    assert!(id > 0);
    server.end().ok();
}

#[test]
fn two_talks_that_ask_about_calls_of_one_name_are_told_apart() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (mut one, mut two) = (server.client(), server.client());
    let (first, request) = asked(&mut one, TOUCH);
    let (second, other) = asked(&mut two, r#"use shell {"command": "touch too"}"#);
    assert_eq!(request["tool_id"], other["tool_id"]);
    two.send(&approve(&other, false));
    two.story(second);
    one.send(&approve(&request, true));
    one.story(first);
    assert!(touched(&home) && !home.project().join("too").exists());
    server.end().ok();
}

/// The policy with which a session is created is the user's word in the live session that begins then,
/// not in those that follow.
#[test]
fn a_tightened_policy_holds_when_the_session_is_opened_again() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let created = client.answer(
        json!({ "type": "session_create", "kind": "chat", "agent": "demo", "approve": "all" }),
    );
    let session = string(&created, "session_id");
    let id = client.ask(json!({ "type": "query", "query": TOUCH }));
    client.story(id);
    assert!(touched(&home), "all tools run");
    std::fs::remove_file(home.project().join("made")).unwrap();
    client.answer(json!({ "type": "session_configure", "session_id": session, "approve": "ask" }));
    let socket = server.path.to_str().unwrap();
    home.run(&["stop", &session, "--socket", socket]).ok();
    let (_, request) = asked(&mut client, TOUCH);
    client.send(&approve(&request, false));
    assert!(!touched(&home));
}

/// What was set before is not loosened by the flag of a server.
#[test]
fn the_flag_of_a_server_is_no_word_of_the_user() {
    let home = Home::new();
    home.run(&["-p", "hello", "--approve", "none"]).ok();
    let session = home.all()[0]["id"].as_str().unwrap().to_owned();
    let (mut client, child) = Client::over_stdio(&home, &["--approve", "all"]);
    client.answer(json!({ "type": "session_load", "session_id": session }));
    let id = client.ask(json!({ "type": "query", "query": TOUCH }));
    client.story(id);
    assert!(!touched(&home));
    drop(client);
    finish(child, "a server").ok();
    let entries = home.show(&session)["entries"].as_array().unwrap().clone();
    assert!(entries.iter().all(|entry| entry["type"] != "terms"));
}
