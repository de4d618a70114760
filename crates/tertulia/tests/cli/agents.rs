//! `agents`, and programs as agents.

use serde_json::json;

use crate::home::{Home, keys};
use crate::running::agents_of;

#[test]
fn the_demo_is_always_there() {
    let home = Home::new();
    home.run(&["agents"]).ok().says("demo").says("ready");
    let document = home.run(&["agents", "--json"]).ok().json();
    let agents = document["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["name"] == "demo").unwrap();
    assert_eq!(keys(agent), ["model", "name", "ready", "reason", "type"]);
    assert_eq!(agent["ready"], true);
    assert!(
        agents
            .iter()
            .any(|agent| agent["name"] == "anthropic" && agent["ready"] == false)
    );
    home.run(&["agents", "nobody"])
        .code(3)
        .notes("nobody")
        .notes("demo");
    home.run(&["chat", "--agent", "nobody", "-p", "x"])
        .code(3)
        .notes("nobody");
    assert!(home.all().is_empty());
}

#[test]
fn a_missing_program_is_not_ready() {
    let home = Home::new();
    home.settings("[agents.lost]\ntype = \"command\"\ncommand = \"no-such-program-here\"\n");
    let document = home.run(&["agents", "lost", "--json"]).ok().json();
    let agent = &document["agents"][0];
    assert_eq!(agent["ready"], false);
    assert!(
        agent["reason"]
            .as_str()
            .unwrap()
            .contains("no-such-program-here")
    );
    let output = home.run(&["chat", "--agent", "lost", "-p", "x"]).code(6);
    output.notes("no-such-program-here").notes("not found");
}

#[test]
fn a_program_answers() {
    let home = &Home::new();
    home.settings(
            "agent = \"upper\"\n[agents.upper]\ntype = \"command\"\ncommand = \"tr\"\nargs = [\"a-z\", \"A-Z\"]\n",
        );
    let output = home.run(&["chat", "-p", "shout this"]).ok();
    assert_eq!(output.stdout, "SHOUT THIS\n");
    let session = home.show("@");
    assert_eq!(session["agents"], json!(["upper"]));
    assert_eq!(session["entries"][2]["speaker"]["name"], "upper");
    home.run(&["agents"]).ok().says("upper").says("ready");
}

#[test]
fn a_failing_program_is_explained_by_its_stderr() {
    let home = &Home::new();
    home.script_agent(
        "broken",
        "echo half an answer; echo the reactor melted >&2; exit 3",
    );
    let output = home.run(&["chat", "--agent", "broken", "-p", "x"]).code(6);
    assert_eq!(output.stdout, "half an answer\n");
    output.notes("the reactor melted").notes("3");
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap();
    assert_eq!(entries[2]["interrupted"], true);
    assert_eq!(entries[3]["type"], "failed");
    assert!(
        entries[3]["message"]
            .as_str()
            .unwrap()
            .contains("the reactor melted")
    );
    let error = home
        .run(&["--json", "-c", "--agent", "broken", "-p", "x"])
        .code(6)
        .error();
    assert_eq!(error["kind"], "agent");
}

#[test]
fn a_program_that_says_nothing_has_failed() {
    let home = Home::new();
    home.script_agent("mute", "exit 0");
    home.run(&["chat", "--agent", "mute", "-p", "x"])
        .code(6)
        .notes("without an answer");
}

#[test]
fn time_limits_hold() {
    let home = Home::new();
    home.script_agent("stuck", "echo begun; exec sleep 300");
    let settings = home.path().join(".config/tertulia/config.toml");
    let base = std::fs::read_to_string(&settings).unwrap();
    for limit in ["idle_timeout = 2", "timeout = \"2s\""] {
        home.settings(&format!("{base}{limit}\n"));
        let output = home.run(&["chat", "--agent", "stuck", "-p", "x"]).code(6);
        output.says("begun").notes("2 s").notes("timeout");
        assert!(agents_of(&home).is_empty());
        assert_eq!(home.show("@")["entries"][2]["interrupted"], true);
    }
}

#[test]
fn a_program_gets_its_system_text_and_environment() {
    let home = Home::new();
    home.settings(
        "[agents.a]\ntype = \"command\"\ncommand = \"sh\"\nargs = [\"-c\", \"cat; echo; echo $COLOUR; pwd\"]\n\
         system = \"Be brief.\"\n[agents.a.env]\nCOLOUR = \"green\"\n",
    );
    let output = home.run(&["chat", "--agent", "a", "-p", "hi"]).ok();
    let folder = home.project().display().to_string();
    assert_eq!(output.stdout, format!("Be brief.\n\nhi\ngreen\n{folder}\n"));
}

#[test]
fn an_answer_that_is_too_long_is_cut_and_says_so() {
    let home = &Home::new();
    home.script_agent("chatty", "head -c 1500000 /dev/zero | tr '\\0' x");
    home.run(&["chat", "--agent", "chatty", "-p", "x"]).ok();
    let answer = home.said("@").remove(1);
    assert!(answer.len() < 1_100_000, "{}", answer.len());
    let end = &answer[answer.len() - 40..];
    assert!(
        end.contains("[cut here: ") && end.ends_with("more bytes]"),
        "{end}"
    );
}

#[test]
fn an_answer_that_is_not_text_does_not_break_the_talk() {
    let home = &Home::new();
    home.script_agent("binary", "printf 'a\\377b\\000c'");
    home.run(&["chat", "--agent", "binary", "-p", "x"]).ok();
    let answer = home.said("@").remove(1);
    assert!(answer.starts_with("a\u{fffd}b"), "{answer:?}");
    home.run(&["doctor"]).ok();
}

#[test]
fn an_unknown_type_is_named() {
    let home = Home::new();
    home.settings("[agents.x]\ntype = \"telepathy\"\n");
    home.run(&["chat", "--agent", "x", "-p", "hi"])
        .code(2)
        .notes("telepathy");
    home.run(&["agents"])
        .ok()
        .says("not ready")
        .says("telepathy");
    home.settings("[agents.y]\ntype = \"command\"\n");
    home.run(&["chat", "--agent", "y", "-p", "hi"])
        .code(2)
        .notes("command");
}

#[test]
fn a_model_that_the_agent_does_not_have_is_warned_about() {
    let home = Home::new();
    let args = [
        "chat", "--agent", "demo", "--model", "oops", "-p", "echo hi",
    ];
    home.run(&args)
        .ok()
        .says("hi")
        .notes("unknown model 'oops' for demo; known: demo-1");
    let args = [
        "chat", "--agent", "demo", "--model", "demo-1", "-p", "echo hi",
    ];
    home.run(&args).ok().lacks("unknown model");
}
