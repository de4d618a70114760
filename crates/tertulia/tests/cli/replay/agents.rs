//! Replays with agents of each kind: recorded results instead of tools.

use std::fs;

use serde_json::{Value, json};
use tertulia_testkit::provider::Api;

use super::{replayed, results};
use crate::agents::world::{KEY, World, for_each_api};
use crate::home::{Home, messages};
use crate::talks::stage::write_program;

for_each_api!(recorded_results_go_to_the_model);

fn recorded_results_go_to_the_model(api: Api) {
    let world = World::new(api);
    let made = world.home.project().join("made");
    let call = r#"[[tool:file_write {"path":"made","content":"x"}]] [[tool:shell {"command":"cat made; echo once"}]]"#;
    let args = ["chat", "--agent", "a", "--approve", "all", "-p", call];
    world.run(&args).ok();
    assert_eq!(fs::read_to_string(&made).unwrap(), "x");
    fs::remove_file(&made).unwrap();
    let asked = world.questions().len();
    let args = [
        "replay",
        "@",
        "--with-model",
        "fake-large",
        "--json",
        "--fail-on-divergence",
    ];
    let document = world.run(&args).ok().json();
    let replay = &document["replays"][0];
    assert_eq!(results(replay), ["same"]);
    assert_eq!(
        (&replay["agent"], &replay["model"]),
        (&json!("a"), &json!("fake-large"))
    );
    assert!(!made.exists());
    let questions = world.questions().split_off(asked);
    assert_eq!(questions.len(), 3);
    for question in &questions {
        let body = question.body.to_string();
        assert!(format!("{}{body}", question.path).contains("fake-large"));
        assert!(body.contains("file_write"), "the tools are offered: {body}");
    }
    let last = questions[2].body.to_string();
    assert!(last.contains("once"), "{last}");
    let replay = world.home.show("@");
    assert_eq!(
        replay["title"].as_str().unwrap().rsplit(' ').next(),
        Some("fake-large)")
    );
    let tools: Vec<Value> = messages(&replay)
        .into_iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(tools.len(), 2);
    assert!(tools[1]["content"].as_str().unwrap().contains("xonce"));
}

/// A model that does something else: none of it happens.
#[test]
fn a_call_without_a_record_is_refused() {
    let world = World::new(Api::OpenAi);
    // To the demo agent, these are only words.
    let call = r#"[[tool:shell {"command":"touch made"}]]"#;
    world.home.say(call);
    let args = ["replay", "@", "--with-agent", "a"];
    let output = world.run(&args).ok();
    output
        .says("First divergence: turn 1, other tools")
        .says("original: no tool call")
        .says("replay:   shell touch made (not in the recording)");
    assert!(!world.home.project().join("made").exists());
    let told = messages(&world.home.show("@"));
    assert_eq!(
        told[2]["content"],
        "[not run: the recording has no such call]"
    );
}

#[test]
fn secrets_were_removed_from_what_is_played() {
    let world = World::new(Api::OpenAi);
    let secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let call = format!(r#"[[tool:shell {{"command":"echo {secret}"}}]]"#);
    let args = ["chat", "--agent", "a", "--approve", "all", "-p", &call];
    world.run(&args).ok();
    let args = ["replay", "@", "--with-agent", "a", "--fail-on-divergence"];
    let output = world.run(&args).ok();
    output.notes("secrets were removed from 1 prompt");
    let sent = world.questions().pop().unwrap().body.to_string();
    assert!(!sent.contains(&secret), "{sent}");
    assert!(!sent.contains(KEY));
}

/// Saves its arguments, and answers.
const CLAUDE: &str = r#"
read -r line; printf '%s\n' "$@" > "$LOG/args"
echo '{"type":"system","subtype":"init","session_id":"n1","tools":[],"model":"opus"}'
echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"seen"}]},"parent_tool_use_id":null}'
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"n1","result":"seen","usage":{}}'
"#;

#[test]
fn a_program_with_tools_of_its_own_runs_without_them() {
    let home = &Home::new();
    let (log, program) = (home.folder("log"), home.folder("bin").join("claude"));
    write_program(&program, &format!("LOG='{}'\n{CLAUDE}", log.display()));
    home.settings(&format!(
        "[agents.claude]\ntype = \"claude\"\ncommand = \"{}\"\n",
        program.display()
    ));
    let arguments = || fs::read_to_string(log.join("args")).unwrap();
    let chat = |mode: &str| {
        let args = ["chat", "--agent", "claude", "--approve", mode, "-p", "go"];
        home.run(&args).ok();
        arguments()
    };
    let (all, none) = (chat("all"), chat("none"));
    assert_ne!(all, none);
    let args = ["replay", "@", "@~1", "--with-agent", "claude"];
    let output = home.run(&args).ok();
    assert_eq!(arguments(), none);
    let said = "claude has tools of its own, which cannot be given recorded results";
    assert_eq!(output.stderr.matches(said).count(), 1, "{output:#?}");
}

#[test]
fn with_a_model_alone_the_agent_stays() {
    let home = &Home::new();
    let script = "echo same";
    home.script_agent("same", script);
    home.run(&["chat", "--agent", "same", "-p", "hi"]).ok();
    let replay = replayed(home, &["@", "--with-model", "m"]);
    assert_eq!(
        (&replay["agent"], &replay["model"]),
        (&json!("same"), &json!("m"))
    );
    assert_eq!(home.show("@")["title"], "hi (replay with m)");
    let replay = replayed(
        home,
        &["@", "--with-agent", "demo", "--with-model", "demo-1"],
    );
    assert_eq!(replay["agent"], "demo");
    assert_eq!(
        home.show("@")["title"],
        "hi (replay with m) (replay with demo/demo-1)"
    );
}
