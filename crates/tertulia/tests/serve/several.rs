//! Teams, pairs, and sessions that another process has open.

use std::fs;

use serde_json::json;

use super::stage::{Server, both_ways, string, text};
use crate::home::Home;
use crate::running::{Running, WAITING};

#[test]
fn a_teams_talk_is_gone_on_with() {
    both_ways(|home, mut client| {
        home.run(&["team", "init"]).ok();
        let run = [
            "team",
            "demo",
            "--output-format",
            "json",
            "plan a bird table",
        ];
        let session = string(&home.run(&run).ok().json(), "session_id");
        let loaded = client.answer(json!({ "type": "session_load", "session_id": session }));
        let before = loaded["message_count"].as_u64().unwrap();
        let id = client.ask(json!({ "type": "query", "query": "[NEXT: ben] and you?" }));
        let story = client.story(id);
        let speakers: Vec<&str> = story
            .iter()
            .filter_map(|reply| reply["speaker"].as_str())
            .collect();
        assert!(speakers.contains(&"ben"), "{story:?}");
        assert!(!text(&story).contains("[NEXT"), "{}", text(&story));
        let complete = story.last().unwrap();
        assert_eq!(complete["status"], "completed");
        assert!(complete["message_count"].as_u64().unwrap() >= before + 2);
    });
}

#[test]
fn a_pairs_talk_is_gone_on_with() {
    both_ways(|home, mut client| {
        let run = ["pair", "--output-format", "json", "plan a bird table"];
        let session = string(&home.run(&run).ok().json(), "session_id");
        client.answer(json!({ "type": "session_load", "session_id": session }));
        let id = client.ask(json!({ "type": "query", "query": "and a bench" }));
        let story = client.story(id);
        let complete = story.last().unwrap();
        assert_eq!(
            (&complete["status"], &complete["session_id"]),
            (&json!("completed"), &json!(session))
        );
        for seat in ["instructor", "worker"] {
            assert!(
                story.iter().any(|reply| reply["speaker"] == seat),
                "{story:?}"
            );
        }
    });
}

#[test]
fn a_session_that_another_program_has_open_is_forked() {
    let home = Home::new();
    home.script_agent("slow", WAITING);
    let session = home.say("the parrot is green");
    let server = Server::start(&home, &[]);
    let mut other = Running::start(&home, &["-r", &session, "--agent", "slow", "-p", "go"]);
    other.until("text");
    let mut client = server.client();
    client.answer(json!({ "type": "initialize", "demo_mode": true }));
    client.answer(json!({ "type": "session_load", "session_id": session }));
    let mut follows = server.client();
    follows.send(&json!({ "type": "subscribe", "session_id": session, "detail": "messages" }));
    follows.until("subscribed");
    let id = client.ask(json!({ "type": "query", "query": "what did I say?" }));
    let story = client.story(id);
    let told = story
        .iter()
        .find(|reply| reply["type"] == "notice")
        .unwrap();
    assert!(string(told, "text").contains("fork"), "{told}");
    assert!(text(&story).contains("the parrot is green"));
    let fork = string(story.last().unwrap(), "session_id");
    assert_ne!(fork, session);
    assert_eq!(follows.until("message")["session_id"], fork.as_str());
    let (_, again) = client.query("echo again");
    assert_eq!(again["session_id"], fork.as_str());
    fs::write(home.path().join("go"), "").unwrap();
    other.end().ok();
    assert_eq!(home.said(&session).last().unwrap(), "begun\ndone\n");
    assert_eq!(home.said(&fork).last().unwrap(), "again");
    server.end().ok();
}
