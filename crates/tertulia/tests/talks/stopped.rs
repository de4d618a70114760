//! Answers that are stopped, killed or fail: which prompts agents receive afterwards, and which
//! agent continues.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use tertulia_testkit::provider::Api;

use super::native::{CLAUDE, CODEX, Stage};
use crate::agents::world::{KEY, World};
use crate::home::{Home, Prepared, until, until_draft};
use crate::pty::{CTRL_C, CTRL_D, DUMB, Terminal};
use crate::running::{Running, agents_of, sweep};

const WITHDRAWN: &str = "Do not act on it";
const SHOWN: &str = "(stopped before an answer)";

/// Hangs while the file `hang` exists, after it has reported its session.
const HANGING: &str = r#"
hang() { if [ -e "$LOG/hang" ]; then touch "$LOG/hanging"; while :; do sleep 0.1; done; fi; }
"#;

/// Interrupts a turn of a prepared command line as soon as `begun` holds.
fn stop(prepared: &Prepared<'_>, begun: impl Fn() -> bool) {
    let running = Running::of(prepared);
    until("the agent is asked", || begun().then_some(()));
    running.signal(Signal::INT);
    running.end().code(130);
}

fn turn<'a>(home: &'a Home, agent: &str, more: &[&str], words: &str) -> Prepared<'a> {
    let args = [&["chat", "--agent", agent, "-p", words], more].concat();
    home.prepare(&args)
}

/// A vendor's program that hangs on demand after these events, and answers otherwise.
fn hanging(name: &'static str, events: &str, answer: &str) -> Stage {
    let stage = Stage::new(name, &format!("{HANGING}\n{events}\nhang\n{answer}"));
    fs::write(stage.log("hang"), "").unwrap();
    stage
}

fn stop_vendor(stage: &Stage, name: &str, more: &[&str], words: &str) {
    fs::write(stage.log("hang"), "").unwrap();
    let _ = fs::remove_file(stage.log("hanging"));
    stop(&turn(&stage.home, name, more, words), || {
        stage.log("hanging").exists()
    });
    fs::remove_file(stage.log("hang")).unwrap();
}

/// Checks that the prompt is marked as withdrawn for agents, and shown as such to users.
#[track_caller]
fn is_withdrawn(home: &Home, told: &str, words: &str, last: &str) {
    assert!(told.ends_with(last), "{told}");
    if let Some(at) = told.find(words) {
        assert!(told[..at].contains(WITHDRAWN), "{told}");
        assert_eq!(told.matches(words).count(), 1, "{told}");
    }
    let shown = home.run(&["show", "@"]).ok().stdout;
    assert!(shown.contains(words) && shown.contains(SHOWN), "{shown}");
    home.run(&["show", "@", "--entries"]).ok().says(SHOWN);
    let markdown = ["export", "@", "--format", "md"];
    home.run(&markdown).ok().says(SHOWN);
}

#[test]
fn an_api_agent_is_not_asked_again_for_what_was_stopped() {
    let world = World::new(Api::Anthropic);
    let prepared = turn(&world.home, "a", &[], "DELETE EVERYTHING [[fail:hang]]");
    let prepared = prepared.env("TEST_KEY", KEY);
    stop(&prepared, || !world.questions().is_empty());
    world
        .run(&["chat", "-c", "-p", "[[fail:none]] what time is it?"])
        .ok();
    let body = world.questions().pop().unwrap().body;
    let told = body["messages"][0]["content"].to_string();
    let told = told.replace("\\n", "\n");
    let last = "what time is it?";
    let told = &told[..told.rfind(last).unwrap() + last.len()];
    is_withdrawn(&world.home, told, "DELETE EVERYTHING", last);
    assert!(told.contains("> DELETE EVERYTHING"), "{told}");
    // The log has the original prompt.
    assert_eq!(world.home.said("@")[0], "DELETE EVERYTHING [[fail:hang]]");
    // Later turns receive the same.
    world.run(&["chat", "-c", "-p", "and now?"]).ok();
    let body = world.questions().pop().unwrap().body;
    let told = body["messages"][0]["content"].to_string();
    assert!(told.contains(WITHDRAWN), "{told}");
}

#[test]
fn a_command_is_not_asked_again_for_what_was_stopped() {
    let home = Home::new();
    let script = "cat > ../told; if grep -q 'DELETE EVERYTHING$' ../told; then touch ../hanging; \
                  while [ ! -e ../go ]; do sleep 0.1; done; fi; echo fine";
    home.script_agent("slow", script);
    let words = "DELETE EVERYTHING";
    stop(&turn(&home, "slow", &[], words), || {
        home.path().join("hanging").exists()
    });
    fs::write(home.path().join("go"), "").unwrap();
    home.run(&["chat", "-c", "-p", "what time is it?"]).ok();
    let told = fs::read_to_string(home.path().join("told")).unwrap();
    is_withdrawn(&home, &told, words, "what time is it?");
}

const CLAUDE_INIT: &str = r#"printf '{"type":"system","subtype":"init","session_id":"%s","tools":[],"model":"opus"}\n' "$id""#;
const CODEX_INIT: &str =
    r#"printf '{"type":"thread.started","thread_id":"%s"}\n{"type":"turn.started"}\n' "$id""#;

/// The agent's own session has the prompt: it is told that the prompt is withdrawn, without a
/// repetition.
#[test]
fn a_vendors_program_is_not_told_twice_what_was_stopped() {
    for (name, init, answer) in [
        ("claude", CLAUDE_INIT, CLAUDE),
        ("codex", CODEX_INIT, CODEX),
    ] {
        let stage = hanging(name, init, answer);
        stop_vendor(&stage, name, &[], "DELETE EVERYTHING");
        stage.say(&["-c"], "what time is it?");
        assert_eq!(stage.resumed(2).as_deref(), Some("native-1"));
        let told = stage.given(2).1;
        assert!(!told.contains("DELETE EVERYTHING"), "{told}");
        is_withdrawn(&stage.home, &told, "DELETE EVERYTHING", "what time is it?");
        assert!(told.contains("withdrawn: do not act on it"), "{told}");
        // Only once.
        stage.say(&["-c"], "and now?");
        assert_eq!(stage.given(3).1, "and now?");
        // The same in a later turn.
        stop_vendor(&stage, name, &["-c"], "BURN IT");
        stage.say(&["-c"], "and then?");
        let told = stage.given(5).1;
        assert!(
            !told.contains("BURN IT") && told.ends_with("and then?"),
            "{told}"
        );
        assert!(told.contains("withdrawn: do not act on it"), "{told}");
    }
}

/// Another agent, which has never seen the prompt, is told that it was withdrawn.
#[test]
fn another_agent_is_told_that_words_were_withdrawn() {
    let stage = hanging("claude", CLAUDE_INIT, CLAUDE);
    stage.home.script_agent("other", "tee ../told");
    stop_vendor(&stage, "claude", &[], "DELETE EVERYTHING");
    turn(&stage.home, "other", &["-c"], "what time is it?")
        .run()
        .ok();
    let told = fs::read_to_string(stage.home.path().join("told")).unwrap();
    is_withdrawn(&stage.home, &told, "DELETE EVERYTHING", "what time is it?");
    assert!(told.contains("> DELETE EVERYTHING"), "{told}");
}

/// A crash withdraws nothing: the prompt stays, and the user is told that it got no answer.
#[test]
fn words_that_a_crash_left_unanswered_stay() {
    let stage = hanging("claude", CLAUDE_INIT, CLAUDE);
    let running = Running::of(&turn(&stage.home, "claude", &[], "count the files"));
    until("it is asked", || {
        stage.log("hanging").exists().then_some(())
    });
    running.kill();
    sweep(&stage.home);
    fs::remove_file(stage.log("hang")).unwrap();
    let noted = stage.say(&["-c"], "well?");
    assert!(noted.contains("no answer"), "{noted}");
    let told = stage.given(2).1;
    assert!(told.contains("User: count the files"), "{told}");
    assert!(!told.contains("withdrawn"), "{told}");
    stage.home.run(&["show", "@"]).ok().lacks(SHOWN);
}

#[test]
fn ctrl_c_on_a_terminal_withdraws_and_the_talk_goes_on() {
    let home = Home::new();
    let script = "cat > ../told; if grep -q 'DELETE EVERYTHING$' ../told; then touch ../hanging; \
                  while [ ! -e ../go ]; do sleep 0.1; done; fi; echo fine";
    home.script_agent("slow", script);
    let mut terminal = Terminal::open(&home, &["chat", "--agent", "slow"], &[DUMB]);
    terminal.sees("> ", 1);
    terminal.types("DELETE EVERYTHING\n");
    until("it is asked", || {
        home.path().join("hanging").exists().then_some(())
    });
    terminal.types(CTRL_C);
    until("it is stopped", || {
        agents_of(&home).is_empty().then_some(())
    });
    fs::write(home.path().join("go"), "").unwrap();
    terminal.sees("> ", 2);
    terminal.types("what time is it?\n");
    terminal.sees("fine", 1);
    terminal.types(CTRL_D);
    terminal.ends();
    let told = fs::read_to_string(home.path().join("told")).unwrap();
    is_withdrawn(&home, &told, "DELETE EVERYTHING", "what time is it?");
}

/// An interrupted answer is not part of claude's own session, so claude receives its text.
#[test]
fn what_was_said_before_a_cut_off_is_told_to_an_agent_that_lacks_it() {
    let partial = r#"if [ -e "$LOG/hang" ]; then
printf '{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}},"parent_tool_use_id":null}\n'
printf '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"THE FIRST HALF"}},"parent_tool_use_id":null}\n'
fi"#;
    let stage = hanging("claude", &format!("{CLAUDE_INIT}\n{partial}"), CLAUDE);
    let args = ["--output-format", "stream-json"];
    let mut running = Running::of(&turn(&stage.home, "claude", &args, "tell me"));
    running.until("text");
    running.signal(Signal::INT);
    running.end().code(130);
    fs::remove_file(stage.log("hang")).unwrap();
    stage.say(&["-c"], "go on");
    assert_eq!(stage.resumed(2).as_deref(), Some("native-1"));
    let told = stage.given(2).1;
    assert!(
        told.contains("claude: THE FIRST HALF [cut off here]"),
        "{told}"
    );
    assert!(
        !told.contains("tell me") && told.ends_with("go on"),
        "{told}"
    );
    // Only once: from then on its session has it.
    stage.say(&["-c"], "and then?");
    assert_eq!(stage.given(3).1, "and then?");
}

/// Returns the speaker of the last answer in the newest session.
fn answered_by(home: &Home) -> Value {
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap();
    let last = entries.iter().rfind(|entry| entry["role"] == "assistant");
    last.unwrap()["speaker"]["name"].clone()
}

/// However its first answer ended, a session continues with the agent that was prompted.
#[test]
fn a_session_goes_on_with_the_agent_that_was_asked() {
    // Stopped, after and before the agent's own session is known.
    for (init, linked) in [(CLAUDE_INIT, true), ("", false)] {
        let stage = hanging("claude", init, CLAUDE);
        stop_vendor(&stage, "claude", &[], "first");
        stage.home.run(&["chat", "-c", "-p", "second"]).ok();
        assert_eq!(answered_by(&stage.home), "claude");
        assert_eq!(stage.resumed(2).is_some(), linked);
    }
    // Killed, after and before.
    for init in [CLAUDE_INIT, ""] {
        let stage = hanging("claude", init, CLAUDE);
        let running = Running::of(&turn(&stage.home, "claude", &[], "first"));
        until("it is asked", || {
            stage.log("hanging").exists().then_some(())
        });
        running.kill();
        sweep(&stage.home);
        fs::remove_file(stage.log("hang")).unwrap();
        stage.home.run(&["chat", "-c", "-p", "second"]).ok();
        assert_eq!(answered_by(&stage.home), "claude");
    }
    // The program fails.
    let stage = Stage::new("claude", &format!("[ $n = 1 ] && exit 3\n{CLAUDE}"));
    turn(&stage.home, "claude", &[], "first").run().code(6);
    stage.home.run(&["chat", "-c", "-p", "second"]).ok();
    assert_eq!(answered_by(&stage.home), "claude");
}

#[test]
fn a_session_whose_server_was_down_or_that_was_killed_keeps_its_agent() {
    let world = World::new(Api::OpenAi);
    world.ask("[[fail:400]]").code(6);
    world
        .run(&["chat", "-c", "-p", "[[fail:none]][[say:on]]"])
        .ok()
        .says("on");
    assert_eq!(answered_by(&world.home), "a");
    // Killed during an answer that is saved as a draft.
    let args = ["chat", "--agent", "a", "--output-format", "stream-json"];
    let words = ["-p", "[[words:20]][[fail:stall:after=5]]"];
    let prepared = world.home.prepare(&[&args[..], &words].concat());
    let mut running = Running::of(&prepared.env("TEST_KEY", KEY));
    running.until("text");
    until_draft(&world.home.database());
    running.kill();
    world
        .run(&["chat", "-c", "-p", "[[fail:none]][[say:still]]"])
        .ok()
        .says("still");
    assert_eq!(answered_by(&world.home), "a");
}

/// The prompt was meant for that agent: without it no other agent receives the prompt.
#[test]
fn an_agent_that_never_answered_is_not_replaced_unasked() {
    let home = Home::new();
    home.script_agent("mine", "exit 3");
    home.run(&["chat", "--agent", "mine", "-p", "a secret plan"])
        .code(6);
    home.settings("");
    let output = home.run(&["chat", "-c", "-p", "echo on"]).code(6);
    output
        .notes("the agent 'mine' of this session")
        .notes("--agent");
    let args = ["chat", "-c", "--agent", "demo", "-p", "echo on"];
    home.run(&args).ok().says("on");
}

/// The user is told about the timeout, and what the program wrote to stderr.
#[test]
fn a_silence_is_named_with_what_the_program_wrote() {
    let stage = Stage::new(
        "claude",
        // Longer than the silence that is named, by more than a busy machine needs to notice it.
        "echo 'EROFS: read-only file system' >&2\nsleep 28",
    );
    let output = turn(&stage.home, "claude", &[], "hello").run().code(6);
    let named =
        "no output from claude for 15 s (it wrote: EROFS: read-only file system); Ctrl+C stops it";
    assert_eq!(output.stderr.matches(named).count(), 1, "{output:#?}");
}
