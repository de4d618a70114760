//! Sessions of every kind, started and changed by clients.

use serde_json::{Value, json};

use super::stage::{Client, Server, both_ways, string, text};
use crate::home::Home;

fn speakers(story: &[Value]) -> Vec<&str> {
    let all = story.iter();
    all.filter_map(|reply| reply["speaker"].as_str()).collect()
}

fn ask(client: &mut Client, words: &str) -> Vec<Value> {
    let id = client.ask(json!({ "type": "query", "query": words }));
    client.story(id)
}

fn kinds(home: &Home) -> Vec<String> {
    let all = home.all().into_iter();
    all.map(|session| string(&session, "kind")).collect()
}

#[test]
fn a_team_starts_over_the_protocol() {
    both_ways(|home, mut client| {
        home.run(&["team", "init"]).ok();
        let made =
            client.answer(json!({ "type": "session_create", "kind": "team", "team": "demo" }));
        assert_eq!(made["type"], "session_created", "{made}");
        assert_eq!(kinds(home), ["team"]);
        let story = ask(&mut client, "plan a bird table");
        assert_eq!(story.last().unwrap()["status"], "completed", "{story:?}");
        for member in ["ada", "ben"] {
            assert!(speakers(&story).contains(&member), "{story:?}");
        }
        assert!(!text(&story).contains("[NEXT"), "{}", text(&story));
    });
}

#[test]
fn a_team_that_was_started_goes_on_after_the_server_was_killed() {
    let home = Home::new();
    home.run(&["team", "init"]).ok();
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let made = client.answer(json!({ "type": "session_create", "team": "demo", "title": "birds" }));
    let session = string(&made, "session_id");
    server.kill();
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let loaded = client.answer(json!({ "type": "session_load", "session_id": session }));
    assert_eq!(loaded["type"], "session_loaded", "{loaded}");
    let story = ask(&mut client, "plan a bird table");
    assert!(speakers(&story).contains(&"ada"), "{story:?}");
    server.end().ok();
}

#[test]
fn a_pair_starts_over_the_protocol_with_its_budget() {
    both_ways(|home, mut client| {
        let made = client.answer(json!({
            "type": "session_create", "kind": "pair",
            "instructor": "demo", "worker": "demo", "max_rounds": 0,
        }));
        assert_eq!(made["type"], "session_created", "{made}");
        assert_eq!(kinds(home), ["pair"]);
        let story = ask(&mut client, "plan a bird table");
        // The budget allows no call of the worker.
        assert_eq!(story.last().unwrap()["status"], "paused", "{story:?}");
        assert_eq!(speakers(&story).first(), Some(&"instructor"));
        assert!(!speakers(&story).contains(&"worker"));
        let story = ask(&mut client, "[r+5] go on");
        assert!(speakers(&story).contains(&"worker"), "{story:?}");
    });
}

#[test]
fn the_agent_of_a_running_chat_is_changed() {
    let home = Home::new();
    home.script_agent("one", "cat > /dev/null; echo I am one");
    home.script_agent("two", "cat > /dev/null; echo I am two");
    let server = Server::start(&home, &[]);
    let mut client = server.client();
    let made = client.answer(json!({ "type": "session_create", "agent": "one" }));
    let session = string(&made, "session_id");
    assert_eq!(text(&ask(&mut client, "who?")).trim(), "I am one");
    // Another client follows throughout.
    let mut follower = server.client();
    follower.answer(json!({ "type": "subscribe", "session_id": session, "detail": "full" }));
    let changed = client.answer(json!({ "type": "session_configure", "agent": "two" }));
    assert_eq!(changed["type"], "session_configured", "{changed}");
    assert_eq!(text(&ask(&mut client, "and now?")).trim(), "I am two");
    let wrong = client.answer(json!({ "type": "session_configure", "agent": "three" }));
    assert_eq!(wrong["type"], "error", "{wrong}");
    assert!(string(&wrong, "message").contains("three"), "{wrong}");
    assert_eq!(text(&ask(&mut client, "still?")).trim(), "I am two");
    let opened = loop {
        let happening = follower.until_happening("over");
        if happening["happening"]["floor"]["agent"] == "two" {
            break happening;
        }
    };
    assert_eq!(opened["session_id"], session.as_str());
    let said = home.said(&session);
    assert_eq!(said.len(), 6, "{said:?}");
    server.end().ok();
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_made() {
    both_ways(|home, mut client| {
        let mut check = |request: Value, kind: &str, words: &str| {
            let answer = client.answer(request);
            assert_eq!(answer["type"], "error", "{answer}");
            assert_eq!(answer["kind"], kind, "{answer}");
            assert!(string(&answer, "message").contains(words), "{answer}");
        };
        let create = |more: Value| {
            let mut request = json!({ "type": "session_create" });
            let object = request.as_object_mut().unwrap();
            object.extend(more.as_object().unwrap().clone());
            request
        };
        check(
            create(json!({ "kind": "chat", "team": "x" })),
            "usage",
            "no team",
        );
        check(create(json!({ "kind": "team" })), "usage", "which team");
        check(create(json!({ "team": "nowhere" })), "not_found", "nowhere");
        check(
            create(json!({ "agent": "nobody-here" })),
            "not_found",
            "nobody-here",
        );
        check(
            create(json!({ "worker": "nobody-here" })),
            "not_found",
            "nobody-here",
        );
        // Known, but without a key.
        for more in [
            json!({ "agent": "anthropic" }),
            json!({ "instructor": "anthropic", "worker": "demo" }),
            json!({ "instructor": "demo", "worker": "anthropic" }),
        ] {
            check(create(more), "agent", "ANTHROPIC_API_KEY is not set");
        }
        // The schema has no such kind, so the request is sent past the client's own validation.
        client.send_bytes(b"{\"type\":\"session_create\",\"kind\":\"choir\",\"id\":99}\n");
        let unknown = client.of(99);
        assert_eq!(unknown["kind"], "usage", "{unknown}");
        assert!(string(&unknown, "message").contains("choir"), "{unknown}");
        assert!(home.all().is_empty());
        home.run(&["team", "init"]).ok();
        client.answer(create(json!({ "team": "demo" })));
        let configured = client.answer(json!({ "type": "session_configure", "model": "m" }));
        assert_eq!(configured["kind"], "usage", "{configured}");
    });
}

#[test]
fn a_deferred_session_is_created_with_its_first_message() {
    both_ways(|home, mut client| {
        let create = |more: Value| {
            let mut ask = json!({ "type": "session_create", "deferred": true });
            let fields = ask.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            ask
        };
        let refused = client.answer(create(json!({ "title": "birds" })));
        assert_eq!(refused["kind"], "usage", "{refused}");
        let refused = client.answer(create(json!({ "agent": "nobody" })));
        assert_eq!(refused["kind"], "not_found", "{refused}");
        let made = client.answer(create(json!({ "agent": "demo", "approve": "none" })));
        assert_eq!(made["type"], "session_created", "{made}");
        let id = string(&made, "session_id");
        let followed =
            client.answer(json!({ "type": "subscribe", "session_id": id, "detail": "full" }));
        assert_eq!(followed["type"], "subscribed", "{followed}");
        assert!(home.all().is_empty());
        let story = ask(&mut client, "echo now it begins");
        assert_eq!(text(&story), "now it begins");
        assert_eq!(string(&home.all()[0], "id"), id);
    });
}
