//! Complete answers.

use serde_json::{Value, json};
use tertulia_testkit::provider::{Api, UNICODE};

use super::world::{World, for_each_api};
use crate::home::Home;

for_each_api!(
    an_answer_comes_and_is_kept,
    every_character_is_kept,
    a_new_process_knows_the_whole_talk,
    the_cost_is_kept,
    a_cost_that_nobody_told_is_an_estimate,
    what_it_thinks_is_not_the_answer,
    tools_are_run_and_their_results_go_back,
);

fn an_answer_comes_and_is_kept(api: Api) {
    let world = World::new(api);
    let document = world.answered("hello");
    let answer = &document["messages"][1];
    assert_eq!(answer["content"], "echo #1: hello");
    assert_eq!(answer["speaker"]["name"], "a");
    assert_eq!(answer["model"], "m");
    assert_eq!(answer["interrupted"], false);
    let kept = world.messages();
    assert_eq!(document["messages"], Value::from(kept));
    let questions = world.questions();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].api, api);
    let text = world.ask("hello").ok().stdout;
    assert_eq!(text, "echo #1: hello\n");
}

fn every_character_is_kept(api: Api) {
    let world = World::new(api);
    let text = world.ask("some unicode").ok().stdout;
    assert_eq!(text, format!("{UNICODE}\n"));
    assert_eq!(world.messages()[1]["content"], UNICODE);
}

fn a_new_process_knows_the_whole_talk(api: Api) {
    let world = World::new(api);
    world.answered("the first words");
    for (words, expected) in [
        ("the second words", "echo #3: the second words"),
        ("the third words", "echo #5: the third words"),
    ] {
        let output = world.run(&["chat", "-c", "--agent", "a", "-p", words]);
        assert_eq!(output.ok().stdout, format!("{expected}\n"));
    }
    let last = world.questions().pop().unwrap().body.to_string();
    for words in [
        "the first words",
        "echo #3: the second words",
        "the third words",
    ] {
        assert!(last.contains(words), "no {words:?} in {last}");
    }
}

fn the_cost_is_kept(api: Api) {
    let world = World::new(api);
    world.answered("[[words:7]]");
    let session = world.home.show("@");
    let usage = &world.messages()[1]["usage"];
    assert_eq!(usage["output"], 7, "{usage}");
    assert!(usage["input"].as_u64().unwrap() > 0, "{usage}");
    assert_eq!(session["tokens"], *usage);
}

fn a_cost_that_nobody_told_is_an_estimate(api: Api) {
    let world = World::new(api);
    world.answered("[[words:7]] [[usage:none]]");
    let usage = &world.messages()[1]["usage"];
    assert_eq!(usage["estimated"], true, "{usage}");
    assert!(usage["output"].as_u64().unwrap() >= 7, "{usage}");
}

fn what_it_thinks_is_not_the_answer(api: Api) {
    let world = World::new(api);
    let output = world.ask("[[think:hm, let me see]] [[say:yes]]").ok();
    assert_eq!(output.stdout, "yes\n");
    assert_eq!(world.messages()[1]["content"], "yes");
}

fn tools_are_run_and_their_results_go_back(api: Api) {
    let world = World::new(api);
    for name in ["one", "two", "three"] {
        let words = format!("the {name} words");
        std::fs::write(world.home.project().join(name), words).unwrap();
    }
    let words = r#"[[think:hm]] [[tool:file_read {"path":"one"}]]
        [[tools:file_read {"path":"two"} file_read {"path":"three"}]]"#;
    let output = world.ask(words).ok();
    assert!(output.stdout.contains("tool said: "), "{output:#?}");
    assert!(output.stdout.contains("the three words"), "{output:#?}");
    assert_eq!(world.questions().len(), 3, "two rounds and the answer");
    let messages = world.messages();
    let roles: Vec<&str> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    let expected = [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ];
    assert_eq!(roles, expected);
    let calls = messages
        .iter()
        .flat_map(|message| message["tool_calls"].as_array().unwrap());
    let mut ids: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "ids that no two calls share: {ids:?}");
    let output = world.run(&["chat", "-c", "--agent", "a", "-p", "[[say:and on]]"]);
    assert_eq!(output.ok().stdout, "and on\n");
}

/// A command that the model left running ends with its answer, which is said.
#[test]
fn a_command_in_the_background_ends_with_the_answer() {
    let world = World::new(Api::Anthropic);
    let command = "echo $$ > pid; exec sleep 1000";
    let call = json!({"command": command, "background": true});
    let words = format!("[[tool:shell {call}]] [[say:done]]");
    let args = ["chat", "--agent", "a", "--approve", "all", "-p", &words];
    let noted = world.run(&args).ok().stderr;
    let said = format!("ended with the answer, still running: {command}");
    assert!(noted.contains(&said), "{noted}");
    // It may have ended before it wrote this.
    let pid = std::fs::read_to_string(world.home.project().join("pid")).unwrap_or_default();
    if !pid.trim().is_empty() {
        let process = std::path::Path::new("/proc").join(pid.trim());
        assert!(!process.exists(), "{pid}");
    }
}

/// Colours are for a terminal: neither the log nor a pipe gets them.
#[test]
fn the_colours_of_a_program_are_no_part_of_its_answer() {
    let home = Home::new();
    home.script_agent(
        "colourful",
        r"cat > /dev/null; printf '\033[36mcyan\033[0m and plain\n'",
    );
    let output = home
        .run(&["chat", "--agent", "colourful", "-p", "hello"])
        .ok();
    assert_eq!(output.stdout, "cyan and plain\n");
    assert_eq!(home.said("@")[1].trim_end(), "cyan and plain");
}
