//! `team`: the files of teams.

use std::fs;

use crate::home::Home;

#[test]
fn a_first_team_is_valid_and_is_not_replaced() {
    let home = Home::new();
    home.run(&["team", "list"]).ok().notes("team init");
    let output = home.run(&["team", "init"]).ok();
    let file = home.project().join(".tertulia/teams/demo.json");
    assert_eq!(output.stdout.trim(), file.display().to_string());
    let listed = home.run(&["team", "list", "--json"]).ok().json();
    assert_eq!(listed["teams"][0]["name"], "demo");
    assert_eq!(listed["teams"][0]["valid"], true);
    home.run(&["team", "check", "demo"])
        .ok()
        .says("ada")
        .says("demo");
    home.run(&["team", "check", ".tertulia/teams/demo.json"])
        .ok();
    fs::write(&file, "{}").unwrap();
    home.run(&["team", "init"]).code(4).notes("stays as it is");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    home.run(&["team", "init", "other.json"]).ok();
    home.run(&["team", "check", "other.json"]).ok();
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let home = Home::new();
    let folder = home.folder("project/.tertulia/teams");
    let check = |text: &str, words: &[&str]| {
        fs::write(folder.join("bad.json"), text).unwrap();
        let mut output = home.run(&["team", "check", "bad"]).code(5);
        for word in words {
            output = output.notes(word);
        }
        let listed = home.run(&["team", "list", "--json"]).ok().json();
        assert_eq!(listed["teams"][0]["valid"], false);
    };
    check("{", &["not JSON", "line 1"]);
    check(r#"{"schemaVersion": "9.0"}"#, &["not supported", "upgrade"]);
    check(r#"{"schemaVersion": "1.0"}"#, &["deprecated", "migrate"]);
    check(
        r#"{"schemaVersion": "1.2", "team": {"name": 7, "members": []}}"#,
        &["/team/name", "/team/members", "/team"],
    );
}

#[test]
fn a_team_that_is_not_there_is_not_found() {
    let home = Home::new();
    home.run(&["team", "check", "nobody"])
        .code(3)
        .notes("'nobody'")
        .notes("team init");
    home.run(&["team", "init"]).ok();
    home.run(&["team", "check", "nobody"]).code(3).notes("demo");
    // A name is no path.
    home.run(&["team", "check", "../teams/demo"]).code(3);
}

#[test]
fn an_agent_that_nobody_knows_is_named() {
    let home = Home::new();
    home.run(&["team", "init", "team.json"]).ok();
    let file = home.project().join("team.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replacen("\"agentType\": \"demo\"", "\"agentType\": \"nobody\"", 1),
    )
    .unwrap();
    home.run(&["team", "check", "team.json"])
        .ok()
        .notes("'nobody'")
        .notes("Ada");
}
