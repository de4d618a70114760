use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Registry, TeamFile};
use super::*;

fn migrated(document: &Value) -> (TeamFile, Vec<String>) {
    let migration = migrate(&document.to_string(), "old.json").unwrap();
    let team = TeamFile::read(&migration.text, "new.json").unwrap();
    // A second migration changes nothing.
    let again = migrate(&migration.text, "new.json").unwrap();
    assert_eq!((again.text, again.changes), (migration.text, Vec::new()));
    (team, migration.changes)
}

/// The first published version: no version field, `roles` instead of `members`, agents by
/// `agentName`.
fn first_form() -> Value {
    json!({
        "agents": [{
            "name": "claude", "command": "claude", "usePty": false,
            "args": ["--append-system-prompt", "End every answer with [DONE]."],
            "endMarker": "[DONE]",
        }],
        "team": {
            "name": "First Team",
            "description": "One agent and one person",
            "roles": [
                { "title": "Claude", "name": "claude", "type": "ai", "agentName": "claude",
                  "systemInstruction": "You help." },
                { "title": "Observer", "name": "observer", "type": "human" },
            ],
        },
        "maxRounds": 10,
    })
}

/// Version 1.0: directories for each member, and files relative to the program's working directory.
fn second_form() -> Value {
    let member = |name: &str, kind: &str, agent: Option<&str>| {
        let mut member = json!({
            "displayName": format!("The {name}"), "displayRole": "Role", "name": name, "type": kind,
            "role": "reviewer", "themeColor": "cyan",
            "roleDir": format!("./teams/t/{name}"),
            "workDir": format!("./teams/t/{name}/work"),
            "homeDir": format!("./teams/t/{name}/home"),
            "instructionFile": format!("./teams/t/{name}/AGENTS.md"),
        });
        if let Some(agent) = agent {
            member["agentType"] = json!(agent);
        }
        member
    };
    json!({
        "schemaVersion": "1.0",
        "agents": [
            { "name": "codex", "command": "./wrapper.sh", "args": [], "endMarker": "[DONE]", "usePty": false },
        ],
        "team": {
            "name": "second", "displayName": "Second", "description": "d",
            "instructionFile": "./teams/t/team_instruction.md",
            "roleDefinitions": [{ "name": "reviewer", "title": "Reviewer", "description": "reads" }],
            "members": [member("builder", "ai", Some("codex")), member("watcher", "human", None)],
        },
        "maxRounds": 20,
    })
}

#[test]
fn the_first_form_becomes_a_team() {
    let (team, changes) = migrated(&first_form());
    let names: Vec<&str> = team.members.iter().map(|member| &*member.name).collect();
    assert_eq!(names, ["claude", "observer"]);
    assert_eq!(team.members[0].agent_type.as_deref(), Some("claude"));
    assert_eq!(team.members[0].display_name, "Claude");
    insta::assert_snapshot!(changes.join("\n"), @r#"
    schemaVersion: added "1.2"
    agents[0].endMarker: removed "[DONE]" (the end of an answer is known without it)
    agents[0].args: kept, but they still ask for [DONE] at the end of each answer
    team.roles: renamed to members
    team.members[0].title: renamed to displayName
    team.members[0].agentName: renamed to agentType
    team.members[0].role: added "claude"
    team.members[0].baseDir: added "."
    team.members[1].title: renamed to displayName
    team.members[1].role: added "observer"
    team.members[1].baseDir: added "."
    team.members[1].systemInstruction: added ""
    "#);
}

#[test]
fn folders_of_members_become_base_folders() {
    let (team, changes) = migrated(&second_form());
    let builder = &team.members[0];
    assert_eq!(builder.base_dir, "./teams/t/builder");
    assert_eq!(builder.instruction_file.as_deref(), Some("AGENTS.md"));
    let said = changes.join("\n");
    for line in [
        "schemaVersion: \"1.0\" -> \"1.2\"",
        "team.roleDefinitions[0].title: renamed to displayName",
        "team.members[0].roleDir: renamed to baseDir",
        "team.members[0].workDir: removed",
        "team.members[1].homeDir: removed",
        "team.members[1].systemInstruction: added \"\"",
    ] {
        assert!(said.contains(line), "no {line}: {said}");
    }
}

#[test]
fn forms_that_earlier_programs_ran_though_their_schema_did_not() {
    // 1.1 with registered agents, one working directory for all, and no instructions.
    let (team, changes) = migrated(&json!({
        "schemaVersion": "1.1",
        "agents": [{ "name": "claude", "endMarker": "[CUSTOM]" }],
        "team": {
            "name": "t", "description": "d",
            "workDir": { "name": "p", "displayName": "P", "directory": "/work/p" },
            "members": [
                { "displayName": "Me", "name": "me", "type": "human", "role": "r", "roleDir": "~/x" },
                { "displayName": "It", "name": "it", "type": "ai", "role": "r", "order": 0,
                  "agentConfigId": "claude" },
            ],
        },
        "conversation": { "contextMessageCount": 5, "maxAgentResponseTime": 2000 },
    }));
    assert_eq!(team.members[1].agent_type.as_deref(), Some("claude"));
    assert_eq!(team.conversation.context_window_size, 5);
    assert!(
        changes
            .iter()
            .any(|line| line.starts_with("team.workDir: removed"))
    );
    // A member without an agent, where the file defines only one.
    let mut alone = second_form();
    alone["team"]["members"][0]
        .as_object_mut()
        .unwrap()
        .remove("agentType");
    assert_eq!(
        migrated(&alone).0.members[0].agent_type.as_deref(),
        Some("codex")
    );
    // Names that markers cannot use.
    let mut spaced = first_form();
    spaced["team"]["roles"][0]["name"] = json!("Claude Code");
    spaced["team"]["roles"][1]["name"] = json!("claude-code");
    spaced["team"]["roles"][1]["title"] = json!("Somebody");
    spaced["team"]["roles"][0]["title"] = json!("The agent");
    let names: Vec<String> = migrated(&spaced)
        .0
        .members
        .into_iter()
        .map(|m| m.name)
        .collect();
    assert_eq!(names, ["Claude-Code", "claude-code-2"]);
    // Order given by numbers.
    let mut numbered = second_form();
    numbered["team"]["members"][0]["order"] = json!(1);
    numbered["team"]["members"][1]["order"] = json!(0);
    assert_eq!(migrated(&numbered).0.members[0].name, "watcher");
}

#[test]
fn registries_lose_their_end_markers() {
    let old = json!({
        "schemaVersion": "1.1",
        "agents": { "claude": {
            "name": "claude", "command": "claude", "args": ["-p"], "endMarker": "[DONE]",
            "installedAt": "2024-11-18T10:30:00Z",
        } },
    });
    let migration = migrate(&old.to_string(), "registry.json").unwrap();
    assert_eq!(migration.form, Form::Registry);
    Registry::read(&migration.text, "registry.json").unwrap();
    let removed = |line: &String| line.starts_with("agents.claude.endMarker: removed");
    assert!(
        migration.changes.iter().any(removed),
        "{:?}",
        migration.changes
    );
}

#[test]
fn nothing_is_cut_or_dropped_without_a_word() {
    let mut document = second_form();
    let long: Vec<u32> = (0..100).collect();
    let member = &mut document["team"]["members"][0];
    member["env"] = json!({ "LIST": long.clone() });
    member["agentType"] = json!("claude");
    member["agentName"] = json!("codex");
    let migration = migrate(&document.to_string(), "x.json").unwrap();
    let migrated: Value = serde_json::from_str(&migration.text).unwrap();
    let member = &migrated["team"]["members"][0];
    assert_eq!(member["env"]["LIST"], json!(long).to_string());
    assert_eq!(member["agentType"], "claude");
    let line = r#"team.members[0].agentName: removed "codex" (agentType counts)"#;
    assert!(
        migration.changes.iter().any(|change| change == line),
        "{:?}",
        migration.changes
    );
}

#[test]
fn what_cannot_be_guessed_is_refused_with_what_is_wrong() {
    let wrong = |document: Value| {
        migrate(&document.to_string(), "x.json")
            .unwrap_err()
            .to_string()
    };
    let mut nobody = first_form();
    nobody["team"]["roles"].as_array_mut().unwrap().pop();
    assert!(wrong(nobody).contains("/team/members"));
    assert!(wrong(json!({ "schemaVersion": "9.0", "team": {} })).contains("upgrade"));
    assert!(wrong(json!([1])).contains("x.json"));
    assert!(migrate("{", "x.json").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Any document is either rejected, or the result is valid and stable.
    #[test]
    fn what_comes_out_is_valid(
        path in 0_usize..6, value in prop_oneof![
            Just(json!(null)), Just(json!(7)), Just(json!("x")), Just(json!([])), Just(json!({})),
            Just(json!([{}])), Just(json!({ "a": {} })),
        ],
    ) {
        let mut document = second_form();
        match path {
            0 => document["schemaVersion"] = value,
            1 => document["agents"] = value,
            2 => document["team"] = value,
            3 => document["team"]["members"] = value,
            4 => document["team"]["members"][0]["env"] = value,
            _ => document["conversation"] = value,
        }
        if let Ok(migration) = migrate(&document.to_string(), "x") {
            prop_assert!(migrate(&migration.text, "x").unwrap().changes.is_empty());
        }
    }
}
