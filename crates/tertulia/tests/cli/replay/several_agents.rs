//! Replays of pairs and teams: all their agents are played by the agent or model of the replay.

use serde_json::{Value, json};

use super::{replayed, results};
use crate::home::{Home, messages};

fn newest(home: &Home) -> String {
    home.show("@")["id"].as_str().unwrap().to_owned()
}

/// Returns speaker and text of the messages of a session.
fn said(session: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = messages(session);
    all.iter()
        .map(|message| (text(&message["speaker"]["id"]), text(&message["content"])))
        .collect()
}

#[test]
fn a_pair_is_replayed() {
    let home = &Home::new();
    home.script_agent(
        "boss",
        "grep -q did-it && echo DONE || echo 'Tell worker: try'",
    );
    home.script_agent("hand", "cat > /dev/null; echo did-it");
    let args = ["pair", "go", "--instructor", "boss", "--worker", "hand"];
    home.run(&[&args[..], &["-r", "3"]].concat()).ok();
    let id = newest(home);
    // The same agents say the same.
    let same = replayed(home, &[&id, "--with-model", "other"]);
    assert_eq!(results(&same), ["same"], "{same:#}");
    let replay = home.show("@");
    assert_eq!(
        (&replay["kind"], &replay["parent"]["relation"]),
        (&json!("pair"), &json!("replay"))
    );
    assert_eq!(said(&replay), said(&home.show(&id)));
    assert_eq!(replay["pair"]["worker_calls"], 1);
    assert_eq!(replay["pair"]["remaining"], 2, "the budget of the original");
    // One agent in both roles.
    home.script_agent("lazy", "cat > /dev/null; echo DONE");
    let other = replayed(home, &[&id, "--with-agent", "lazy"]);
    assert_ne!(results(&other), ["same"], "{other:#}");
    assert_eq!(home.show("@")["pair"]["worker_calls"], 0);
    home.run(&["doctor"]).ok();
}

#[test]
fn a_team_is_replayed() {
    let home = &Home::new();
    home.run(&["team", "init", "team.json"]).ok();
    home.run(&["team", "team.json", "plan a bird table"]).ok();
    let id = newest(home);
    let same = replayed(home, &[&id, "--with-agent", "demo"]);
    assert_eq!(results(&same), ["same"], "{same:#}");
    let replay = home.show("@");
    assert_eq!(
        (&replay["kind"], &replay["parent"]["relation"]),
        (&json!("team"), &json!("replay"))
    );
    assert_eq!(said(&replay), said(&home.show(&id)));
    // Another agent speaks for every member that is one.
    home.script_agent("terse", "cat > /dev/null; echo no");
    let other = replayed(home, &[&id, "--with-agent", "terse"]);
    assert_ne!(results(&other), ["same"], "{other:#}");
    let all = said(&home.show("@"));
    assert_eq!(all[1].1.trim_end(), "no", "{all:?}");
    home.run(&["doctor"]).ok();
}

/// Chats, pairs and teams are replayed together.
#[test]
fn all_kinds_together() {
    let home = &Home::new();
    let chat = home.say("echo one");
    home.run(&["pair", "do it", "--instructor", "demo", "--worker", "demo"]);
    let pair = newest(home);
    let args = ["replay", &chat, &pair, "--with-agent", "demo", "--json"];
    let document = home.run(&args).ok().json();
    assert_eq!(document["replays"].as_array().unwrap().len(), 2);
}
