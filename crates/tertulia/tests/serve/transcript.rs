//! Each request of the protocol with its reply, identical over both transports.

use serde_json::{Value, json};

use super::stage::{Client, both_ways, string, text};
use crate::home::{Home, short};

fn check(client: &mut Client, request: Value, kind: &str) -> Value {
    let answer = client.answer(request.clone());
    assert_eq!(answer["type"], kind, "{request} → {answer}");
    answer
}

const WORDS: &str = "echo so:\n```rust\nfn main() {}\n```\ndone";

#[test]
fn every_request_has_its_answer() {
    both_ways(|home, mut client| {
        let session = begins(&mut client);
        talks(&mut client, &session);
        finds_it_again(&mut client, &session);
        forks_and_deletes(home, &mut client, &session);
        follows(&mut client, &session);
        shows_and_stops(&mut client, &session);
    });
}

fn begins(client: &mut Client) -> String {
    let hello = json!({ "type": "initialize", "demo_mode": true });
    let hello = check(client, hello, "initialized");
    assert_eq!(
        (&hello["protocol"], &hello["agent"]),
        (&json!(1), &json!("demo"))
    );
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));
    let saved = check(client, json!({ "type": "session_save" }), "session_saved");
    assert_eq!(saved["success"], false);
    let create = json!({ "type": "session_create", "title": "Bread" });
    string(&check(client, create, "session_created"), "session_id")
}

fn talks(client: &mut Client, session: &str) {
    let id = client.ask(json!({ "type": "query", "query": WORDS }));
    let story = client.story(id);
    assert_eq!(text(&story), "so:\n```rust\nfn main() {}\n```\ndone");
    let block = story.iter().find(|reply| reply["type"] == "block").unwrap();
    assert_eq!(block["kind"], "code");
    assert_eq!(
        (&block["language"], &block["text"]),
        (&json!("rust"), &json!("fn main() {}\n"))
    );
    let complete = story.last().unwrap();
    assert_eq!(complete["status"], "completed");
    assert_eq!(complete["session_id"], session);
    assert_eq!(complete["message_count"], 2);
    assert!(complete["usage"]["output"].as_u64().unwrap() > 0);
    let saved = check(client, json!({ "type": "session_save" }), "session_saved");
    assert_eq!(saved["success"], true);
}

fn finds_it_again(client: &mut Client, session: &str) {
    let asked = json!({ "type": "session_list", "limit": 5 });
    let list = check(client, asked, "session_list_result");
    let row = &list["sessions"][0];
    assert_eq!(
        (&row["session_id"], &row["title"]),
        (&json!(session), &json!("Bread"))
    );
    assert_eq!(
        (&row["message_count"], &row["tags"]),
        (&json!(2), &json!([]))
    );
    for key in ["created_at", "updated_at"] {
        let time = string(row, key);
        let read: jiff::Timestamp = time.parse().unwrap();
        assert!(time.ends_with('Z') && read.as_second() > 0);
    }
    let asked = json!({ "type": "session_search", "query": "\"fn main\"" });
    let found = check(client, asked, "session_search_result");
    assert_eq!(found["hits"][0]["session"], session);
    assert_eq!(found["pending"], 0);
    let asked = json!({ "type": "session_export", "format": "markdown" });
    let exported = check(client, asked, "session_exported");
    assert!(string(&exported, "content").contains("```rust\nfn main() {}\n```"));
}

fn forks_and_deletes(home: &Home, client: &mut Client, session: &str) {
    let asked = json!({ "type": "session_fork", "session_id": session, "seq": 2 });
    let fork = string(&check(client, asked, "session_forked"), "session_id");
    assert_ne!(fork, session);
    // By the end of the id, which is the part shown to users.
    let asked = json!({ "type": "session_load", "session_id": &fork[28..], "last": 9 });
    let loaded = check(client, asked, "session_loaded");
    assert_eq!(
        (&loaded["session_id"], &loaded["message_count"]),
        (&json!(fork), &json!(1))
    );
    assert_eq!(loaded["messages"][0]["content"], WORDS);
    assert_eq!(loaded["messages"][0]["speaker"]["type"], "human");
    let asked = json!({ "type": "session_delete", "session_id": fork });
    assert_eq!(check(client, asked, "session_deleted")["success"], true);
    let trash = home
        .run(&["list", "--all", "--trash", "--json"])
        .ok()
        .json();
    assert_eq!(trash["sessions"][0]["id"], fork.as_str());
}

fn follows(client: &mut Client, session: &str) {
    let subscribe = client.ask(json!({ "type": "subscribe", "session_id": session }));
    assert_eq!(client.of(subscribe)["type"], "subscribed");
    let load = json!({ "type": "session_load", "session_id": session });
    check(client, load, "session_loaded");
    client.query("echo again");
    let [human, agent] = [client.of(subscribe), client.of(subscribe)];
    assert_eq!(
        (&human["content"], &agent["content"]),
        (&json!("echo again"), &json!("again"))
    );
    assert_eq!(
        (&human["type"], &human["session_id"]),
        (&json!("message"), &json!(session))
    );
    assert_eq!(human["role"], "user");
    let detach = json!({ "type": "detach", "session_id": session });
    check(client, detach, "detached");
}

fn shows_and_stops(client: &mut Client, session: &str) {
    let running = check(client, json!({ "type": "ps" }), "ps_result");
    assert_eq!(running["talks"][0]["session_id"], session);
    assert_eq!(running["talks"][0]["state"], "waiting");
    let stop = json!({ "type": "stop", "session_id": session });
    check(client, stop, "stopped");
    let running = check(client, json!({ "type": "ps" }), "ps_result");
    assert_eq!(running["talks"], json!([]));
}

#[test]
fn what_was_said_before_is_given_to_the_agent() {
    both_ways(|home, mut client| {
        let earlier = home.say("the parrot is green");
        client.answer(json!({ "type": "session_load", "session_id": earlier }));
        let (answer, complete) = client.query("what did I say?");
        assert!(answer.contains("the parrot is green"), "{answer}");
        assert_eq!(complete["session_id"], earlier.as_str());
        assert_eq!(complete["message_count"], 4);
    });
}

#[test]
fn without_a_session_one_is_made_and_stays_the_current_one() {
    both_ways(|home, mut client| {
        let (_, first) = client.query("echo one");
        let (_, second) = client.query("echo two");
        assert_eq!(first["session_id"], second["session_id"]);
        let said = home.said(first["session_id"].as_str().unwrap());
        assert_eq!(said, ["echo one", "one", "echo two", "two"]);
    });
}

#[test]
fn a_deleted_session_is_not_gone_on_with() {
    both_ways(|home, mut client| {
        let (_, first) = client.query("echo one");
        let session = string(&first, "session_id");
        client.answer(json!({ "type": "session_delete", "session_id": session }));
        let (_, second) = client.query("echo two");
        assert_ne!(second["session_id"], session.as_str());
        assert_eq!(home.all().len(), 1);
        assert_eq!(home.said(&session), ["echo one", "one"]);
    });
}

#[test]
fn a_session_is_named_as_on_the_command_line() {
    both_ways(|home, mut client| {
        let (_, first) = client.query("echo one");
        let id = string(&first, "session_id");
        client.query("echo two");
        home.run(&["rename", &id, "The first one"]).ok();
        let end = short(&id);
        for name in [&id, &end, &end[..4], "The first one", "@", "latest"] {
            let asked = json!({ "type": "session_load", "session_id": name });
            let loaded = check(&mut client, asked, "session_loaded");
            assert_eq!(loaded["session_id"], *id, "{name}");
        }
        let asked = json!({ "type": "session_fork", "session_id": format!("{end}:3") });
        let fork = string(&check(&mut client, asked, "session_forked"), "session_id");
        assert_eq!(home.said(&fork), ["echo one", "one"]);
        let title = json!({ "type": "session_delete", "session_id": "The first one" });
        // Deleting a session twice succeeds.
        for _ in 0..2 {
            assert_eq!(
                check(&mut client, title.clone(), "session_deleted")["success"],
                true
            );
        }
        let left: Vec<_> = home
            .all()
            .iter()
            .map(|session| session["id"].clone())
            .collect();
        assert_eq!(left, [fork]);
    });
}

#[test]
fn whatever_is_wrong_is_answered_and_the_connection_lives_on() {
    both_ways(|home, mut client| {
        let kind = |client: &mut Client, request: Value| {
            let answer = client.answer(request);
            assert_eq!(answer["type"], "error", "{answer}");
            string(&answer, "kind")
        };
        let secret = home.path().join("secret.jsonl");
        std::fs::write(&secret, "{}").unwrap();
        let path = secret.to_str().unwrap();
        for name in [
            path,
            "../../etc/passwd",
            "a/b",
            "..",
            "no such title",
            "x y",
        ] {
            for request in [
                "session_load",
                "session_fork",
                "session_export",
                "subscribe",
                "stop",
            ] {
                let asked = json!({ "type": request, "session_id": name, "format": "json" });
                assert_eq!(kind(&mut client, asked), "not_found", "{request} {name}");
            }
        }
        let unknown = "01890000-0000-7000-8000-000000000001";
        let asked = |request: &str| json!({ "type": request, "session_id": unknown });
        assert_eq!(kind(&mut client, asked("session_load")), "not_found");
        assert_eq!(kind(&mut client, asked("stop")), "not_found");
        assert_eq!(kind(&mut client, asked("subscribe")), "not_found");
        assert_eq!(kind(&mut client, json!({ "type": "cancel" })), "not_found");
        let approve = json!({ "type": "tool_approve", "tool_id": "x", "approved": true });
        assert_eq!(kind(&mut client, approve), "not_found");
        assert_eq!(
            kind(&mut client, json!({ "type": "query", "query": " " })),
            "usage"
        );
        assert_eq!(
            kind(&mut client, json!({ "type": "session_export" })),
            "usage"
        );
        assert_eq!(
            kind(
                &mut client,
                json!({ "type": "session_create", "title": "a\u{1b}b" })
            ),
            "usage"
        );
        assert_eq!(
            kind(
                &mut client,
                json!({ "type": "session_search", "query": "\"" })
            ),
            "usage"
        );
        assert_eq!(
            kind(
                &mut client,
                json!({ "type": "session_list", "cursor": "x" })
            ),
            "usage"
        );
        let agent = json!({ "type": "initialize", "agent": "nobody" });
        assert_eq!(kind(&mut client, agent), "not_found");
        client.send_bytes(b"{\"type\":\"dance\",\"id\":77}\n");
        let answer = client.of(77);
        assert_eq!(answer["kind"], "unknown_type");
        assert!(string(&answer, "message").contains("dance"));
        let (_, complete) = client.query(&format!("echo {}", "x".repeat(1_000_001)));
        assert_eq!(complete["status"], "refused");
        let (said, _) = client.query("echo still here");
        assert_eq!(said, "still here");
    });
}

#[test]
fn a_failing_agent_is_an_error_and_then_the_end() {
    both_ways(|_, mut client| {
        let id = client.ask(json!({ "type": "query", "query": "fail" }));
        let story = client.story(id);
        let [.., error, complete] = &story[..] else {
            panic!("{story:?}");
        };
        assert_eq!(
            (&error["type"], &error["kind"]),
            (&json!("error"), &json!("agent"))
        );
        assert_eq!(complete["status"], "failed");
        assert_eq!(client.query("echo on").0, "on");
    });
}

#[test]
fn cancel_stops_the_answer_and_keeps_what_was_said() {
    both_ways(|home, mut client| {
        let id = client.ask(json!({ "type": "query", "query": "count to 200000" }));
        client.of(id);
        client.ask(json!({ "type": "cancel" }));
        let complete = client.story(id).pop().unwrap();
        assert_eq!(complete["status"], "cancelled");
        let shown = home.show(complete["session_id"].as_str().unwrap());
        let last = crate::home::messages(&shown).pop().unwrap();
        assert_eq!(last["interrupted"], true);
        assert!(last["content"].as_str().unwrap().starts_with("1 2 3"));
    });
}
