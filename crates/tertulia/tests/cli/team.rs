//! `team`: team files.

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

/// A team file in the format of agent-chatter's first release.
const FIRST_FORM: &str = r#"{
    "agents": [{ "name": "filter", "command": "true", "args": [], "endMarker": "[DONE]", "usePty": false }],
    "team": {
        "name": "Old Team", "description": "d",
        "roles": [
            { "title": "Demo", "name": "demo", "type": "ai", "agentName": "filter" },
            { "title": "Me", "name": "me", "type": "human" }
        ]
    },
    "maxRounds": 10
}"#;

#[test]
fn an_older_team_file_is_migrated_and_what_changed_is_said() {
    let home = Home::new();
    let file = home.project().join("old.json");
    let read = |name: &str| fs::read_to_string(home.project().join(name)).unwrap();
    fs::write(&file, FIRST_FORM).unwrap();
    // The error names a command, and the command works as printed.
    let hint = format!("tertulia team migrate {}", file.display());
    home.run(&["team", "check", "old.json"])
        .code(5)
        .notes(&hint);
    let shown = file.display().to_string();
    let dry = home.run(&["team", "migrate", &shown, "--dry-run"]).ok();
    dry.says("schemaVersion: added \"1.2\"")
        .says("team.roles: renamed to members")
        .notes("nothing was written");
    assert_eq!(read("old.json"), FIRST_FORM);
    // Nothing is overwritten unasked.
    home.run(&["team", "migrate", "old.json"])
        .code(2)
        .notes("-y");
    assert_eq!(read("old.json"), FIRST_FORM);
    let output = home
        .run(&["team", "migrate", "old.json", "-o", "new.json", "--json"])
        .ok()
        .json();
    assert!(output["changes"].as_array().unwrap().len() > 5, "{output}");
    home.run(&["team", "check", "new.json"]).ok().says("demo");
    home.run(&["team", "migrate", "old.json", "-o", "new.json"])
        .code(2)
        .notes("new.json exists");
    home.run(&["team", "migrate", "old.json", "-y"])
        .ok()
        .notes("old.json.bak");
    assert_eq!(read("old.json.bak"), FIRST_FORM);
    home.run(&["team", "check", "old.json"]).ok();
    home.run(&["team", "migrate", "old.json"])
        .ok()
        .notes("is already at schema 1.2");
    // Errors other than the old format are reported, and nothing is written.
    fs::write(&file, r#"{"team": {"name": "x", "roles": []}}"#).unwrap();
    home.run(&["team", "migrate", "old.json", "-y"])
        .code(5)
        .notes("/team/members");
    home.run(&["team", "check", "old.json"])
        .code(5)
        .lacks("team migrate");
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
    // A name is not a path.
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

#[test]
fn a_team_file_from_the_future_asks_for_an_upgrade_alone() {
    let home = Home::new();
    let folder = home.folder("project/.tertulia/teams");
    fs::write(folder.join("new.json"), r#"{"schemaVersion": "9.0"}"#).unwrap();
    home.run(&["team", "migrate", "new"])
        .code(5)
        .notes("upgrade tertulia")
        .lacks("by hand");
}
