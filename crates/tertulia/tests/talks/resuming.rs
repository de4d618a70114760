//! Checks and notes when a session is resumed.

use std::fs;

use tertulia_testkit::provider::Api;

use super::stage::write_program;
use crate::agents::world::{KEY, World};
use crate::home::Home;
use crate::pty::{CTRL_D, Terminal};

fn asked() -> World {
    let world = World::new(Api::OpenAi);
    world.ask("hello").ok();
    world
}

#[test]
fn another_model_is_named_with_the_recorded_one() {
    let world = asked();
    let args = ["chat", "-c", "--model", "other", "-p", "hello"];
    world
        .run(&args)
        .ok()
        .notes("recorded with the model m; other answers now");
    assert_eq!(world.questions().pop().unwrap().body["model"], "other");
    // The model that answered last counts.
    let output = world.run(&args).ok();
    assert!(!output.stderr.contains("recorded with"), "{output:#?}");
    let args = ["chat", "-c", "-p", "hello"];
    world.run(&args).ok().notes("model other; m answers now");
}

/// Some programs name their model more than once.
#[test]
fn another_model_of_a_program_is_named_once() {
    let home = Home::new();
    let (program, model) = (home.folder("bin").join("claude"), home.path().join("model"));
    let init = r#"printf '{"type":"system","subtype":"init","session_id":"n1","tools":[],"model":"%s"}\n' "$m""#;
    let script = format!(
        "cat > /dev/null; m=$(cat '{}'); {init}; {init}\n{}",
        model.display(),
        r#"echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"seen"}]},"parent_tool_use_id":null}'
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"n1","result":"seen","usage":{}}'"#
    );
    write_program(&program, &script);
    home.settings(&format!(
        "[agents.claude]\ntype = \"claude\"\ncommand = \"{}\"\n",
        program.display()
    ));
    fs::write(&model, "one").unwrap();
    home.run(&["--agent", "claude", "-p", "hello"]).ok();
    fs::write(&model, "two").unwrap();
    let output = home.run(&["-c", "-p", "hello again"]).ok();
    let said = output.stderr.matches("recorded with the model one").count();
    assert_eq!(said, 1, "{output:?}");
}

/// The messages of a session are not sent to another agent unasked.
#[test]
fn an_agent_that_is_not_described_any_more_is_not_replaced_unasked() {
    let world = asked();
    world.home.settings("");
    let output = world.run(&["chat", "-c", "-p", "echo on"]).code(6);
    output
        .notes("the agent 'a' of this session")
        .notes("--agent");
    assert_eq!(world.messages().len(), 2);
    let named = ["chat", "-c", "--agent", "demo", "-p", "echo on"];
    assert_eq!(world.run(&named).ok().stdout, "on\n");
    assert_eq!(world.messages()[1]["speaker"]["name"], "a");
    // The demo agent answered last and continues.
    world.run(&["chat", "-c", "-p", "echo on"]).ok();
}

/// The order of the last answers counts, not that of the first.
#[test]
fn who_answered_last_goes_on() {
    let world = asked();
    let say = |agent: &str| {
        let args = ["chat", "-c", "--agent", agent, "-p", "echo x"];
        world.run(&args).ok();
    };
    say("demo");
    say("a");
    let output = world.run(&["chat", "-c", "-p", "who?"]).ok();
    output.says("echo #7: who?");
}

#[test]
fn the_agent_of_the_session_answers_unless_a_person_names_another() {
    // The settings select the demo agent.
    let world = asked();
    world
        .run(&["chat", "-p", "echo of the demo"])
        .ok()
        .says("of the demo");
    let args = ["chat", "-r", "@~1", "-p", "hello"];
    world.run(&args).ok().says("echo #3: hello");
    let named = world.home.prepare(&["chat", "-c", "-p", "echo on"]);
    let output = named.env("TERTULIA_AGENT", "demo").run().ok();
    assert_eq!(output.stdout, "on\n");
    let args = ["chat", "-c", "--agent", "a", "-p", "hello"];
    world.run(&args).ok().says("echo #7: hello");
}

#[test]
fn without_its_key_a_talk_is_readable_and_resumable_and_the_first_turn_fails() {
    let world = asked();
    let home = &world.home;
    home.run(&["show", "@"]).ok().says("echo #1: hello");
    home.run(&["chat", "-c", "-p", "and now?"])
        .code(6)
        .notes("TEST_KEY")
        .notes("hint:");
    assert_eq!(world.failure()["kind"], "auth");
    let mut terminal = Terminal::open(home, &["--no-color", "-c"], &[]);
    terminal.sees("Resumed", 1);
    terminal.sees("you> ", 1);
    terminal.types("still nobody\n");
    terminal.sees("TEST_KEY", 1);
    terminal.sees("you> ", 2);
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends().0, 0);
    assert_eq!(world.questions().len(), 1, "nobody was asked without a key");
    let output = home.prepare(&["chat", "-c", "-p", "[[say:here]]"]);
    assert_eq!(output.env("TEST_KEY", KEY).run().ok().stdout, "here\n");
}

#[test]
fn a_program_of_a_project_runs_no_longer_when_trust_is_gone() {
    let home = Home::new();
    let folder = home.folder("project/.tertulia");
    fs::write(
        folder.join("config.toml"),
        "[agents.theirs]\ntype = \"command\"\ncommand = \"sh\"\nargs = [\"-c\", \"echo ran >> ran; echo answered\"]\n",
    )
    .unwrap();
    let ran = || fs::read_to_string(home.project().join("ran")).unwrap();
    home.run(&["trust", "-y"]).ok();
    home.run(&["chat", "--agent", "theirs", "--approve", "all", "-p", "x"])
        .ok();
    assert_eq!(ran(), "ran\n");
    home.run(&["trust", "--revoke"]).ok();
    let before = home.entries("@");
    for more in [&["-c"][..], &["-r", "@"], &["-c", "--fork"]] {
        let args = [&["chat", "-p", "y"], more].concat();
        home.run(&args).code(6).notes("tertulia trust");
    }
    assert_eq!(ran(), "ran\n");
    assert_eq!(home.entries("@"), before);
    assert_eq!(home.all().len(), 1, "no fork is left behind");
}
