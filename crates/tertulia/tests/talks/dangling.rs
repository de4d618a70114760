//! Tool calls without a result: the program was killed while a tool ran.

use serde_json::Value;
use tertulia_testkit::provider::Api;

use super::stage::{end_sleepers, sleepers, unique_seconds, wait_for_sleepers, wanted_command};
use crate::agents::world::{KEY, World, for_each_api};
use crate::home::{Home, messages};
use crate::running::Running;

for_each_api!(
    after_a_kill_the_call_is_closed_once_and_the_provider_goes_on,
    of_several_calls_those_without_a_result_are_closed,
    a_fork_at_the_call_is_closed_too,
);

const SAID: &str = "closed as interrupted";

/// Kills the program while a command of a new session runs.
fn killed(world: &World, words: &dyn Fn(&str) -> String) {
    let seconds = unique_seconds();
    let words = words(&seconds);
    let mut args = vec!["chat", "--output-format", "stream-json", "--agent", "a"];
    args.extend(["--approve", "all", "-p", &words]);
    let prepared = world.home.prepare(&args).env("TEST_KEY", KEY);
    let running = Running::of(&prepared);
    wait_for_sleepers(&seconds, 1);
    running.kill();
    // No process is left that would end it.
    end_sleepers(&seconds);
}

fn one_call(seconds: &str) -> String {
    format!(r#"[[tool:shell {{"command":"sleep {seconds}"}}]]"#)
}

/// Runs one more turn and returns the notes.
fn go_on(world: &World, reference: &str) -> String {
    let args = ["chat", "-r", reference, "--agent", "a", "-p", "[[say:on]]"];
    let output = world.run(&args).ok();
    assert_eq!(output.stdout, "on\n");
    output.stderr
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|m| m["role"].as_str()).collect()
}

fn after_a_kill_the_call_is_closed_once_and_the_provider_goes_on(api: Api) {
    let world = World::new(api);
    killed(&world, &one_call);
    let left = world.messages();
    assert_eq!(roles(&left), ["user", "assistant"], "the call is durable");
    let call = &left[1]["tool_calls"][0];
    assert_eq!(call["name"], "shell");
    assert!(go_on(&world, "@").contains(SAID));
    let messages = world.messages();
    assert_eq!(
        roles(&messages),
        ["user", "assistant", "tool", "user", "assistant"]
    );
    assert_eq!(messages[2]["interrupted"], true);
    assert_eq!(messages[2]["tool_call_id"], call["id"]);
    let entries = world.home.entries("@");
    assert!(!go_on(&world, "@").contains(SAID));
    assert_eq!(world.home.entries("@"), entries + 2);
}

fn of_several_calls_those_without_a_result_are_closed(api: Api) {
    let world = World::new(api);
    std::fs::write(world.home.project().join("kept"), "the words").unwrap();
    killed(&world, &|seconds| {
        format!(
            r#"[[tools:file_read {{"path":"kept"}} shell {{"command":"sleep {seconds}"}} file_read {{"path":"kept"}}]]"#
        )
    });
    assert_eq!(roles(&world.messages()), ["user", "assistant", "tool"]);
    assert!(go_on(&world, "@").contains(SAID));
    let messages = world.messages();
    let results: Vec<&Value> = messages.iter().filter(|m| m["role"] == "tool").collect();
    let interrupted: Vec<bool> = results
        .iter()
        .filter_map(|result| result["interrupted"].as_bool())
        .collect();
    assert_eq!(interrupted, [false, true, true]);
    for (at, result) in results.iter().enumerate() {
        assert_eq!(result["tool_call_id"], messages[1]["tool_calls"][at]["id"]);
    }
    assert!(!go_on(&world, "@").contains(SAID));
}

fn a_fork_at_the_call_is_closed_too(api: Api) {
    let world = World::new(api);
    let words = r#"[[tool:directory_list {}]] [[say:there is nothing]]"#;
    let id = world.answered(words)["session_id"].clone();
    let id = id.as_str().unwrap();
    let before = world.home.show(id);
    let call = before["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["role"] == "assistant")
        .unwrap()["seq"]
        .as_u64()
        .unwrap();
    let fork = world.run(&["fork", &format!("{id}:{call}")]).ok().stdout;
    let fork = fork.trim();
    assert!(go_on(&world, fork).contains(SAID));
    let messages = messages(&world.home.show(fork));
    assert_eq!(
        roles(&messages),
        ["user", "assistant", "tool", "user", "assistant"]
    );
    assert_eq!(messages[2]["interrupted"], true);
    assert!(!go_on(&world, fork).contains(SAID));
    assert_eq!(world.home.show(id)["entries"], before["entries"]);
}

#[test]
fn it_is_said_on_stderr_and_in_the_stream() {
    let home = Home::new();
    let seconds = unique_seconds();
    let words = wanted_command(&format!("sleep {seconds}"));
    let mut running = Running::start(&home, &["--approve", "all", "-p", &words]);
    running.until("tool.started");
    wait_for_sleepers(&seconds, 1);
    running.kill();
    end_sleepers(&seconds);
    let args = [
        "chat",
        "-c",
        "-p",
        "echo on",
        "--output-format",
        "stream-json",
    ];
    let output = home.run(&args).ok();
    assert!(output.stderr.contains(SAID), "{output:#?}");
    let results = output.events();
    let closed = results
        .iter()
        .find(|event| event["role"] == "tool")
        .unwrap();
    assert_eq!(closed["interrupted"], true);
    assert_eq!(sleepers(&seconds), []);
}

/// If the guard process was killed as well, the next resume ends what still runs, also in other
/// process groups.
#[test]
fn what_a_killed_program_left_running_is_ended() {
    let home = Home::new();
    let seconds = unique_seconds();
    let words = wanted_command(&format!("setsid sleep {seconds} & sleep {seconds}"));
    let running = Running::start(&home, &["--approve", "all", "-p", &words]);
    wait_for_sleepers(&seconds, 2);
    running.kill_with_guard();
    // Another session leaves them alone: they are not its own.
    home.run(&["chat", "-p", "echo elsewhere"]).ok();
    assert_eq!(sleepers(&seconds).len(), 2);
    let output = home.run(&["chat", "-r", "@~1", "-p", "echo on"]).ok();
    output.notes("still ran").notes(SAID);
    assert!(sleepers(&seconds).is_empty());
}
