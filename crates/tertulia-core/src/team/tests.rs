use super::*;

fn registry() -> Registry {
    let text = r#"{"schemaVersion": "1.1", "agents": {
        "claude": {"name": "claude", "displayName": "Claude", "command": "claude",
            "args": ["--verbose"], "usePty": false},
        "codex": {"name": "codex", "displayName": "Codex", "command": "codex",
            "args": [], "usePty": true, "version": "1.0", "installedAt": "2026-01-31T12:00:00+01:00"}
    }}"#;
    Registry::read(text, "registry.json").unwrap()
}

fn definition(name: &str, command: Option<&str>, args: Option<&[&str]>) -> AgentDefinition {
    AgentDefinition {
        name: name.to_owned(),
        command: command.map(str::to_owned),
        args: args.map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()),
        use_pty: None,
    }
}

#[test]
fn a_team_without_agents_has_all_that_are_registered() {
    let merged = merge(&registry(), &[]);
    let names: Vec<&String> = merged.agents.keys().collect();
    assert_eq!(names, ["claude", "codex"]);
    assert_eq!(merged.agents["claude"].args, ["--verbose"]);
    assert!(merged.agents["codex"].use_pty);
    assert_eq!(merged.agents["codex"].source, Source::Registry);
}

#[test]
fn a_team_has_only_the_agents_that_it_names_called_as_it_wishes() {
    let mut wish = definition("codex", Some("codex"), Some(&["exec"]));
    wish.use_pty = Some(false);
    let merged = merge(&registry(), &[wish]);
    assert_eq!(merged.agents.len(), 1);
    assert_eq!(merged.agents["codex"].args, ["exec"]);
    assert!(!merged.agents["codex"].use_pty);
    assert!(merged.conflicts.is_empty());
}

#[test]
fn the_registered_program_wins_and_the_other_is_named() {
    let wish = definition("claude", Some("./evil.sh"), Some(&["--now"]));
    let merged = merge(&registry(), &[wish]);
    assert_eq!(merged.agents["claude"].command, "claude");
    assert_eq!(merged.agents["claude"].args, ["--verbose"]);
    assert_eq!(
        merged.conflicts[0].to_string(),
        "the team file wants the agent \"claude\" to be \"./evil.sh\", but it is registered as \
         \"claude\": the registered one is used"
    );
}

#[test]
fn an_agent_that_is_not_registered_brings_its_own_program() {
    let wishes = [
        definition("mine", Some("./mine"), None),
        definition("nobody", None, Some(&["-x"])),
    ];
    let merged = merge(&registry(), &wishes);
    assert_eq!(merged.agents["mine"].command, "./mine");
    assert_eq!(merged.agents["mine"].source, Source::TeamFile);
    assert_eq!(merged.unknown, ["nobody"]);
    assert!(!merged.agents.contains_key("nobody"));
}

#[test]
fn a_registry_is_written_as_it_is_read() {
    let registry = registry();
    let text = registry.write().unwrap();
    assert_eq!(Registry::read(&text, "again").unwrap(), registry);
    assert!(
        text.starts_with("{\n  \"schemaVersion\": \"1.1\""),
        "{text}"
    );
    assert!(text.contains("\"installedAt\": \"2026-01-31T11:00:00Z\""));
    assert!(!text.contains("null"), "{text}");
    let empty = Registry::default().write().unwrap();
    assert_eq!(
        Registry::read(&empty, "empty").unwrap(),
        Registry::default()
    );
}

#[test]
fn a_registry_that_could_not_be_read_again_is_not_written() {
    let mut registry = registry();
    if let Some(agent) = registry.agents.get_mut("claude") {
        agent.command.clear();
    }
    let error = registry.write().unwrap_err();
    assert_eq!(error.problems()[0].path, "/agents/claude/command");
}

#[test]
fn the_example_is_a_team_of_three_demos_and_a_person() {
    let team = TeamFile::read(EXAMPLE, "demo-team.json").unwrap();
    assert_eq!(team.id(), "demo");
    let agents: Vec<Option<&str>> = team
        .members
        .iter()
        .map(|member| member.agent_type.as_deref())
        .collect();
    assert_eq!(agents, [Some("demo"), Some("demo"), Some("demo"), None]);
    assert_eq!(team.humans().map(Member::id).collect::<Vec<_>>(), ["you"]);
    assert_eq!(team.member("ADA").map(Member::id), Some("ada"));
    assert_eq!(team.members[2].order, 2);
}

/// Parses the example with one change.
fn changed(change: impl FnOnce(&mut serde_json::Value)) -> Result<TeamFile, TeamError> {
    let mut document = serde_json::from_str(EXAMPLE).unwrap();
    change(&mut document);
    TeamFile::read(&document.to_string(), "changed.json")
}

#[test]
fn what_is_left_out_has_its_default() {
    let team = changed(|document| {
        document.as_object_mut().unwrap().remove("maxRounds");
        document.as_object_mut().unwrap().remove("conversation");
    })
    .unwrap();
    assert_eq!(team.max_rounds, None);
    let talk = &team.conversation;
    assert_eq!(talk.max_agent_response_time(), Duration::from_secs(1800));
    assert!(talk.show_thinking_timer && talk.allow_esc_cancel);
    assert_eq!((talk.context_window_size, talk.max_bytes), (50, 786_432));
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let team = changed(|document| document["maxRounds"] = serde_json::json!(5.0)).unwrap();
    assert_eq!(team.max_rounds, Some(5));
    let unlimited = changed(|document| document["maxRounds"] = serde_json::json!(0)).unwrap();
    assert_eq!(unlimited.max_rounds, None);
}

#[test]
fn teams_with_names_that_look_alike_have_ids_of_their_own() {
    let named = |name: &str| changed(|document| document["team"]["name"] = name.into()).unwrap();
    assert_ne!(named("a b").id(), named("a_b").id());
}

#[test]
fn each_kind_of_agent_has_its_own_file_of_instructions() {
    let file = |agent: Option<&str>, own: Option<&str>| {
        let mut member = TeamFile::read(EXAMPLE, "").unwrap().members.remove(0);
        member.agent_type = agent.map(str::to_owned);
        member.instruction_file = own.map(str::to_owned);
        member.instruction_file_or_default().to_owned()
    };
    assert_eq!(file(Some("Gemini-cli"), None), "GEMINI.md");
    assert_eq!(file(Some("claude"), None), "CLAUDE.md");
    assert_eq!(file(Some("codex"), None), "AGENTS.md");
    assert_eq!(file(None, None), "README.md");
    assert_eq!(file(Some("claude"), Some("own.md")), "own.md");
}

#[test]
fn lists_of_instructions_become_one_text() {
    let lines = Instruction::Lines(vec![" a ".into(), "  ".into(), "b".into()]);
    assert_eq!(lines.text(), "a\nb");
    let text = " as it\n\n is ";
    assert_eq!(Instruction::Text(text.into()).text(), text);
}

#[test]
fn values_of_an_environment_are_never_shown() {
    let secret = "hunter2-and-more";
    let team = changed(|document| {
        document["team"]["members"][0]["env"] = serde_json::json!({ "API_KEY": secret });
    })
    .unwrap();
    assert_eq!(team.members[0].env.0["API_KEY"], secret);
    let shown = format!("{team:?}");
    assert!(shown.contains("API_KEY") && !shown.contains(secret));

    let error = changed(|document| {
        document["team"]["members"][0]["env"] = serde_json::json!([secret]);
        document["team"]["members"][1]["env"] = serde_json::json!(secret);
        document["team"]["members"][2]["env"] =
            serde_json::json!({ "API_KEY": [secret], "PIN": 4711 });
    })
    .unwrap_err();
    assert_eq!(error.problems().len(), 4);
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains(secret) && !shown.contains("4711"),
        "{shown}"
    );
}
