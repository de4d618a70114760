use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tertulia_agents::{
    AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, PromptMessage, Readiness,
};
use tertulia_core::entry::Role;
use tertulia_core::team::Registered;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::args::GlobalArgs;
use crate::ui::Ui;

/// A folder with settings and programs of its own.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> World {
        World {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn settings(&self, toml: &str) -> Settings {
        fs::write(self.folder.path().join("config.toml"), toml).unwrap();
        let global = GlobalArgs {
            data_dir: Some(self.folder.path().to_owned()),
            ..GlobalArgs::default()
        };
        Settings::resolve(&global, &Ui::new(&global), crate::settings::Faults::Refuse).unwrap()
    }

    /// Writes a script and returns its path.
    fn program(&self, name: &str, script: &str) -> String {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn find(&self, toml: &str, registry: &Registry, team: &TeamFile) -> TeamAgents {
        for_team(&self.settings(toml), registry, team, self.folder.path()).unwrap()
    }
}

/// Builds a team of one person and these agents, given as `(name, agentType, env)`.
fn team(agents: Value, members: &[(&str, &str, Value)]) -> TeamFile {
    let human = json!({
        "name": "ana", "displayName": "Ana", "role": "r", "type": "human",
        "baseDir": ".", "systemInstruction": "",
    });
    let members = members.iter().map(|(name, agent, env)| {
        json!({
            "name": name, "displayName": name.to_uppercase(), "role": "r", "type": "ai",
            "agentType": agent, "baseDir": ".", "systemInstruction": "", "env": env,
        })
    });
    let members: Vec<Value> = [human].into_iter().chain(members).collect();
    let document = json!({
        "schemaVersion": "1.2",
        "agents": agents,
        "team": {
            "name": "t", "description": "d",
            "members": members,
        },
        "conversation": { "maxAgentResponseTime": 1000 },
    });
    TeamFile::read(&document.to_string(), "test").unwrap()
}

fn registry(agents: &[(&str, &str, &[&str])]) -> Registry {
    let agents = agents.iter().map(|(name, command, args)| {
        let agent = Registered {
            display_name: (*name).to_owned(),
            command: (*command).to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            use_pty: false,
            version: None,
            installed_at: None,
            last_verified: None,
        };
        ((*name).to_owned(), agent)
    });
    Registry {
        agents: agents.collect(),
    }
}

/// Returns an agent's answer or error.
async fn answer(agent: &MemberAgent) -> Result<String, AgentError> {
    let agent = agent.agent.clone().unwrap();
    let question = AgentRequest {
        messages: vec![PromptMessage::plain(Role::User, "Ana", "echo hello")],
        total: 1,
        marker: uuid::Uuid::new_v4().to_string(),
        ..AgentRequest::default()
    };
    let (sink, mut listener) = AgentSink::open(&CancellationToken::new());
    let answering = async move { agent.answer(&question, &sink).await };
    let listening = async {
        let mut words = String::new();
        while let Some(event) = listener.events.recv().await {
            if let AgentEvent::Text(text) = event {
                words.push_str(&text);
            }
        }
        words
    };
    let (result, words) = tokio::join!(answering, listening);
    result.map(|_| words)
}

#[tokio::test]
async fn each_member_speaks_under_its_own_name_with_its_own_environment() {
    let world = World::new();
    let colour = world.program("colour", "cat >/dev/null; echo \"$COLOUR $SHARED\"");
    let team = team(
        json!([]),
        &[
            ("ada", "colour", json!({ "COLOUR": "green" })),
            ("bob", "colour", json!({ "COLOUR": "red" })),
            ("eve", "demo", json!({})),
        ],
    );
    let settings = "[agents.colour]\ntype = \"command\"\n[agents.colour.env]\nSHARED = \"yes\"\n";
    let found = world.find(settings, &registry(&[("colour", &colour, &[])]), &team);
    let told = |name: &str| {
        format!(
            "the team file sets COLOUR for {name}: this can change which program or server is used"
        )
    };
    assert_eq!(found.warnings, [told("ADA"), told("BOB")]);
    let names: Vec<&str> = found
        .members
        .iter()
        .map(|member| member.agent.as_ref().unwrap().name())
        .collect();
    assert_eq!(names, ["ada", "bob", "eve"]);
    let kinds: Vec<&str> = found
        .members
        .iter()
        .map(|member| member.kind.as_str())
        .collect();
    assert_eq!(kinds, ["command", "command", "demo"]);
    // Settings of the same name determine how a registered program is run.
    assert_eq!(answer(&found.members[0]).await.unwrap(), "green yes\n");
    assert_eq!(answer(&found.members[1]).await.unwrap(), "red yes\n");
    assert_eq!(answer(&found.members[2]).await.unwrap(), "hello");
}

#[tokio::test]
async fn the_shorter_of_two_time_limits_holds() {
    let world = World::new();
    let stuck = world.program("stuck", "exec sleep 300");
    let team = team(json!([]), &[("ada", "stuck", json!({}))]);
    let registry = registry(&[("stuck", &stuck, &[])]);
    for settings in ["", "[agents.stuck]\ntype = \"command\"\ntimeout = 900\n"] {
        let found = world.find(settings, &registry, &team);
        let error = answer(&found.members[0]).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::Timeout, "{error}");
        assert!(error.message.contains("1 s"), "{error}");
    }
}

#[tokio::test]
async fn a_vendors_program_is_started_without_what_frees_it() {
    let world = World::new();
    let claude = world.program(
        "claude",
        "cat >/dev/null; echo \"$*\" > \"$0.line\"\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"}'",
    );
    let args = [
        "--permission-mode",
        "bypassPermissions",
        "--output-format",
        "stream-json",
        "--verbose",
        "--add-dir",
        "x",
    ];
    let team = team(json!([]), &[("ada", "claude", json!({}))]);
    let settings = "[agents.claude]\nmodel = \"opus\"\n";
    let found = world.find(settings, &registry(&[("claude", &claude, &args)]), &team);
    assert_eq!(found.members[0].kind, "claude");
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert!(found.warnings[0].contains("--permission-mode bypassPermissions"));
    assert!(found.warnings[0].contains("--approve all"));
    assert_eq!(answer(&found.members[0]).await.unwrap(), "done");
    let line = fs::read_to_string(format!("{claude}.line")).unwrap();
    assert!(line.ends_with("--add-dir x\n"), "{line}");
    assert!(line.contains("--model opus"), "{line}");
    assert!(!line.contains("bypass"), "{line}");
    assert_eq!(line.matches("--verbose").count(), 1, "{line}");
}

#[test]
fn who_is_asked_first() {
    let world = World::new();
    let (mine, theirs) = (world.program("mine", ""), world.program("bin/theirs", ""));
    let agents = json!([
        { "name": "both", "command": theirs },
        { "name": "local", "command": "bin/theirs", "args": ["-x"], "usePty": true },
        { "name": "claude", "args": ["--model", "x"] },
        { "name": "same", "command": "./bin/../mine" },
        { "name": "unused" },
    ]);
    let members = [
        ("a", "both", json!({})),
        ("b", "local", json!({})),
        ("c", "also", json!({})),
        ("d", "nobody", json!({})),
        ("e", "same", json!({ "PATH": "/evil", "COLOUR": "red" })),
    ];
    let registry = registry(&[
        ("both", &mine, &[]),
        ("also", &mine, &[]),
        ("same", &mine, &[]),
    ]);
    let found = world.find("", &registry, &team(agents, &members));
    let local = world.folder.path().join("bin/theirs");
    let expected = [
        format!("the team file wants the agent \"both\" to be {theirs:?}, but it is registered as {mine:?}: the registered one is used"),
        "the team file names the agent 'unused', which has no known program".to_owned(),
        format!("the team file runs a program as 'local', so make sure that you trust it: {} -x", local.display()),
        "agent 'local' asks for a terminal (usePty), but tertulia runs it without one".to_owned(),
        "D is to be the agent 'nobody', and there is none of that name; `tertulia agents` shows which there are".to_owned(),
        "the team file sets COLOUR, PATH for E: this can change which program or server is used".to_owned(),
    ];
    // The first warning contains paths, and shortens them if the temporary folder is deep.
    let told: Vec<&String> = found.warnings.iter().collect();
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    assert!(told[0].contains("the registered one is used"), "{told:#?}");
    assert_eq!(told[1..], expected[1..].iter().collect::<Vec<_>>());
    let reasons: Vec<Option<String>> = found
        .members
        .iter()
        .map(|member| member.agent.as_ref().err().cloned())
        .collect();
    assert_eq!(reasons[3].as_ref(), Some(&expected[4]));
    assert_eq!(reasons.iter().flatten().count(), 1);
}

#[test]
fn what_a_project_or_a_team_file_may_not_do_in_silence() {
    let world = World::new();
    let shell = world.program("shell", "");
    let check = |toml: &str, agents: Value, agent: &str, words: &str| {
        let team = team(agents, &[("ada", agent, json!({}))]);
        let found = world.find(toml, &registry(&[("shell", &shell, &[])]), &team);
        let told = found.warnings.join("\n");
        assert!(told.contains(words), "{told}");
    };
    check(
        "",
        json!([{ "name": "shell", "args": ["-c", "rm"] }]),
        "shell",
        "gives it other arguments",
    );
    let lost = PathBuf::from("/no/such/program");
    check(
        &format!("[agents.lost]\ncommand = {lost:?}\n"),
        json!([{ "name": "lost", "args": ["-c"] }]),
        "lost",
        "are left out",
    );
    check(
        &format!("[agents.lost]\ncommand = {lost:?}\n"),
        json!([]),
        "lost",
        "/no/such/program of the agent 'lost' was not found",
    );
    check(
        "[agents.odd]\ntype = \"telepathy\"\n",
        json!([]),
        "odd",
        "ADA cannot speak",
    );
}

#[tokio::test]
async fn a_team_files_program_gets_nothing_that_was_meant_for_the_persons() {
    let world = World::new();
    let theirs = world.program("theirs", "cat >/dev/null; echo \"theirs $MY_KEY\"");
    let mine = world.program("mine", "cat >/dev/null; echo \"mine $MY_KEY\"");
    let team = team(
        json!([{ "name": "x", "command": theirs, "args": [] }]),
        &[("ada", "x", json!({}))],
    );
    let open = "[agents.x]\ntype = \"command\"\n[agents.x.env]\nMY_KEY = \"k\"\n";
    let found = world.find(open, &Registry::default(), &team);
    assert_eq!(answer(&found.members[0]).await.unwrap(), "theirs \n");
    // Settings that name the program are as good as a registration.
    let whole = format!("[agents.x]\ncommand = {mine:?}\n[agents.x.env]\nMY_KEY = \"k\"\n");
    let found = world.find(&whole, &Registry::default(), &team);
    assert_eq!(answer(&found.members[0]).await.unwrap(), "mine k\n");
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert!(found.warnings[0].contains("they are followed"));
    let found = world.find(open, &registry(&[("x", &mine, &[])]), &team);
    assert_eq!(answer(&found.members[0]).await.unwrap(), "mine k\n");
}

#[tokio::test]
async fn a_person_says_how_a_registered_program_is_spoken_to() {
    let world = World::new();
    let claude = world.program("claude", "");
    let team = team(json!([]), &[("ada", "x", json!({}))]);
    let registry = registry(&[("x", &claude, &[])]);
    for (settings, kind) in [
        ("", "claude"),
        ("[agents.x]\ntype = \"acp\"\n", "acp"),
        ("[agents.x]\ntype = \"command\"\n", "command"),
        ("[agents.x]\ntype = \"ollama\"\n", "claude"),
    ] {
        let found = world.find(settings, &registry, &team);
        assert_eq!(found.members[0].kind, kind, "{settings}");
    }
}

#[tokio::test]
async fn a_members_own_key_is_used() {
    let world = World::new();
    let variable = "TERTULIA_TEST_OF_A_KEY";
    let settings = format!("[agents.x]\ntype = \"anthropic\"\nkey_env = \"{variable}\"\n");
    let members = [
        ("ada", "x", json!({ variable: "k-1" })),
        ("bob", "x", json!({})),
    ];
    let found = world.find(&settings, &Registry::default(), &team(json!([]), &members));
    let mut ready = Vec::new();
    for member in &found.members {
        let readiness = member.agent.as_ref().unwrap().readiness().await;
        ready.push(matches!(readiness, Readiness::Ready(_)));
    }
    assert_eq!(ready, [true, false]);
}

#[test]
fn variables_that_choose_a_configuration_lead_astray() {
    for name in [
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
        "CLAUDE_CONFIG_DIR",
        "PATH",
    ] {
        assert!(leads_astray(name), "{name}");
    }
    for name in ["LANG", "TERM", "HOMEBREW", "DEBUG"] {
        assert!(!leads_astray(name), "{name}");
    }
}
