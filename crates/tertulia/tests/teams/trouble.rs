//! A member that fails in any way never stops the others: not in the same turn, not in the same
//! session, not after a resume.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cast::{Cast, said_in, speakers};
use crate::home::{Backend, Home, Output, until, until_kept};
use crate::pty::CTRL_C;
use crate::running::{SLOW, agents_of, sweep};

/// Ben's answer.
const WELL: &str = "Ben is well.";

fn cast() -> Cast {
    let cast = Cast::of(&["ada", "ben", "cleo"], &["ann"]);
    cast.says("ben", WELL);
    cast
}

/// Returns the failures in a session, oldest first.
fn failures(session: &Value) -> Vec<Value> {
    let entries = session["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["type"] == "failed")
        .cloned()
        .collect()
}

/// Checks that Ada alone fails with exit code 6, that the turn goes on with Ben after her, and
/// that Ben can be prompted after a resume, in a new process and in the same one. Returns the
/// output and the failure.
fn never_stops_the_others(cast: &Cast, kind: &str) -> (Output, Value) {
    the_others_say(WELL, cast, kind)
}

fn the_others_say(well: &str, cast: &Cast, kind: &str) -> (Output, Value) {
    let alone = cast.run(&["[NEXT: ada] go"]).code(6);
    let session = cast.home.show("@");
    let failed = failures(&session);
    assert_eq!(failed.len(), 1, "{session:#}");
    assert_eq!(
        (&failed[0]["agent"], &failed[0]["kind"]),
        (&json!("ada"), &json!(kind))
    );
    assert_eq!(session["status"], "paused");
    cast.run(&["-c", "[NEXT: ben] and you?"]).ok().says(well);
    let args = ["--output-format", "json", "[NEXT: ada, ben] go"];
    let document = cast.run(&args).code(6).json();
    assert_eq!(document["status"], "failed");
    let names = speakers(said_in(&document));
    assert_eq!(names.last(), Some(&"ben"), "{names:?}");
    let mut terminal = cast.open(&["[NEXT: ada] go"]);
    terminal.sees("Ann> ", 1);
    terminal.types("[NEXT: ben] and you?\n");
    terminal.sees(well, 1);
    terminal.sees("Ann> ", 2);
    terminal.types("/end\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Ada could not answer"), "{shown}");
    assert!(agents_of(&cast.home).is_empty());
    cast.home.run(&["doctor"]).ok();
    (alone, failed[0].clone())
}

#[test]
fn one_that_crashes() {
    let cast = cast();
    cast.does("ada", "echo 'the disk of Ada' >&2; exit 3");
    let (output, failed) = never_stops_the_others(&cast, "failed");
    output
        .notes("Ada could not answer")
        .notes("the disk of Ada")
        .notes("exit status: 3");
    let reason = failed["message"].as_str().unwrap();
    assert!(reason.contains("the disk of Ada"), "{failed}");
}

/// The text that arrived before is kept, and marked as incomplete in the next prompt.
#[test]
fn one_that_crashes_in_the_middle() {
    let cast = cast();
    cast.does("ada", "printf 'half an ans'; exit 3");
    never_stops_the_others(&cast, "failed");
    let document = cast.turn(&["[NEXT: ada, ben] go", "--keep-going"]);
    assert_eq!(speakers(said_in(&document)), ["ann", "ada", "ben"]);
    let half = &said_in(&document)[1];
    assert_eq!(
        (&half["content"], &half["interrupted"]),
        (&json!("half an ans"), &json!(true))
    );
    assert!(cast.prompt("ben").contains("half an ans"));
}

/// Markers in a failed answer are ignored: the last one may be incomplete.
#[test]
fn one_that_crashes_after_a_marker() {
    let cast = cast();
    cast.does(
        "ada",
        "printf 'Cleo? [NEXT: cleo] [DROP: ALL] [TEAM_TASK: none]'; exit 3",
    );
    never_stops_the_others(&cast, "failed");
    assert_eq!(cast.asked("cleo"), 0);
    assert!(!cast.prompt("ben").contains("none"));
}

#[test]
fn one_that_hangs() {
    let mut cast = cast();
    cast.change(|document| document["conversation"] = json!({"maxAgentResponseTime": 1000}));
    cast.does("ada", "printf 'I thi'; sleep 1000 & sleep 1000");
    // The limit applies to all members, and a busy machine may take long to start a program.
    cast.change_member("ben", |ben| ben["agentType"] = json!("demo"));
    let (output, failed) = the_others_say("I am here and listening.", &cast, "timeout");
    output.notes("Ada could not answer");
    assert!(
        failed["message"].as_str().unwrap().contains("1 s"),
        "{failed}"
    );
}

#[test]
fn one_that_says_nothing() {
    let cast = cast();
    for (script, spoke, code) in [
        ("true", &["ann", "ben"][..], 6),
        ("printf '\\n \\n'", &["ann", "ada", "ben"], 0),
    ] {
        cast.does("ada", script);
        let args = ["--output-format", "json", "[NEXT: ada, ben] go"];
        let document = cast.run(&args).code(code).json();
        assert_eq!(speakers(said_in(&document)), spoke);
        cast.run(&["-c", "[NEXT: ben] and you?"]).ok().says(WELL);
    }
    assert_eq!(cast.asked("ada"), 2);
}

#[test]
fn one_that_says_too_much() {
    let cast = cast();
    cast.does(
        "ada",
        "head -c 2000000 /dev/zero | tr '\\0' x; echo '[NEXT: cleo]'",
    );
    let document = cast.turn(&["[NEXT: ada, ben] go"]);
    assert_eq!(speakers(said_in(&document)), ["ann", "ada", "ben"]);
    let words = said_in(&document)[1]["content"].as_str().unwrap();
    assert!(words.len() <= 1_000_000, "{}", words.len());
    let (kept, mark) = words.split_once("\n[cut here: ").unwrap();
    let missing: usize = mark.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(kept.len() + missing, 2_000_000 + "[NEXT: cleo]\n".len());
    assert!(kept.len() > 999_000 && kept.bytes().all(|byte| byte == b'x'));
    // Ben's prompt is limited as well.
    let prompt = cast.prompt("ben");
    assert!(prompt.len() <= 768 * 1024, "{}", prompt.len());
    cast.run(&["-c", "[NEXT: ben] and you?"]).ok().says(WELL);
    cast.home.run(&["doctor"]).ok();
}

#[test]
fn one_that_addresses_itself_for_ever() {
    let mut cast = cast();
    cast.change(|document| document["maxRounds"] = json!(4));
    cast.says("ada", "Ada? [NEXT: ada]");
    let document = cast.turn(&["[NEXT: ada] go"]);
    assert_eq!(
        speakers(said_in(&document)),
        ["ann", "ada", "ada", "ada", "ada"]
    );
    assert_eq!(document["status"], "paused");
    cast.run(&["-c", "[NEXT: ben] and you?"]).ok().says(WELL);
}

#[test]
fn one_that_prints_rubbish() {
    let cast = cast();
    cast.says(
        "ada",
        b"caf\xc3\xa9 \xff\xfe\x00\x1b[2J \xe6\x97 end [NEXT: ben]",
    );
    let document = cast.turn(&["[NEXT: ada] go"]);
    assert_eq!(speakers(said_in(&document)), ["ann", "ada", "ben"]);
    let words = said_in(&document)[1]["content"].as_str().unwrap();
    assert!(
        words.starts_with("café \u{fffd}\u{fffd}\u{fffd} \u{fffd} end"),
        "{words:?}"
    );
    assert!(cast.prompt("ben").contains("caf\u{e9}"));
    cast.run(&["-c", "[NEXT: ben] and you?"]).ok().says(WELL);
    for form in ["md", "json", "jsonl", "snapshot"] {
        cast.home.run(&["export", "@", "--format", form]).ok();
    }
}

#[test]
fn one_whose_program_is_missing() {
    let mut cast = cast();
    let gone = cast.home.path().join("gone");
    cast.change(|document| {
        document["agents"] = json!([{"name": "lost", "command": gone}]);
    });
    cast.change_member("ada", |ada| ada["agentType"] = json!("lost"));
    let (output, _) = never_stops_the_others(&cast, "unavailable");
    output.notes("gone").notes("Ada could not answer");
}

#[test]
fn one_that_nobody_knows() {
    let mut cast = cast();
    cast.change_member("ada", |ada| ada["agentType"] = json!("phantom"));
    let (output, _) = never_stops_the_others(&cast, "unavailable");
    output.notes("'phantom'").notes("Ada could not answer");
}

#[test]
fn the_exit_code_tells_of_any_failure() {
    let cast = cast();
    cast.does("ada", "exit 3");
    cast.run(&["[NEXT: ben, ada] go"]).code(6);
    cast.run(&["[NEXT: ada, ben] go"]).code(6);
    cast.run(&["[NEXT: ada, ben] go", "--keep-going"]).ok();
    cast.run(&["[NEXT: ben] go"]).ok();
    // The same as JSON, with the messages.
    let output = cast
        .run(&["--output-format", "json", "[NEXT: ben, ada] go"])
        .code(6);
    let document = output.json();
    assert_eq!(
        (&document["status"], &document["waiting_for"]),
        (&json!("failed"), &json!("ann"))
    );
    assert_eq!(speakers(said_in(&document)), ["ann", "ben"]);
    let output = cast
        .run(&["--output-format", "stream-json", "[NEXT: ada, ben] go"])
        .code(6);
    let errors = output
        .events()
        .into_iter()
        .filter(|event| event["type"] == "error");
    let errors: Vec<Value> = errors.collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (&errors[0]["speaker"], &errors[0]["kind"]),
        (&json!("ada"), &json!("failed"))
    );
}

#[test]
fn an_interrupt_stops_the_queue_and_keeps_what_was_said() {
    let cast = cast();
    cast.does("ada", SLOW);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let asked = (cast.asked("ben"), cast.asked("cleo"));
        let mut talk = cast.start(&["[NEXT: ada, ben, cleo, ben] go"]);
        let heard = talk.speaking_for(Duration::from_millis(300));
        assert!(!agents_of(&cast.home).is_empty());
        talk.signal(signal);
        let output = talk.end().code(code);
        assert_eq!((cast.asked("ben"), cast.asked("cleo")), asked);
        let events = output.events();
        let stopped = events
            .iter()
            .find(|event| event["type"] == "stopped")
            .unwrap();
        assert_eq!(
            (&stopped["cut_off"], &stopped["unheard"]),
            (&json!("ada"), &json!(["ben", "cleo"]))
        );
        let end = events.last().unwrap();
        assert_eq!(
            (&end["type"], &end["status"]),
            (&json!("turn.completed"), &json!("cancelled"))
        );
        assert_eq!(end["waiting_for"], "ann");
        let output = output
            .notes("ada was cut off")
            .notes("ben, cleo do not get to speak");
        output.notes("Resume: tertulia --resume");
        until("no process is left", || {
            agents_of(&cast.home).is_empty().then_some(())
        });
        let said = cast.messages("@");
        assert_eq!(speakers(&said), ["ann", "ada"]);
        assert_eq!(said[1]["interrupted"], true);
        assert!(said[1]["content"].as_str().unwrap().starts_with(&heard));
        // A member stopped by the user is no longer queued.
        let output = cast.run(&["-c", "[NEXT: ben] and you?"]).ok().says(WELL);
        output.lacks("still queued").lacks("was cut off");
        assert!(
            cast.prompt("ben").contains(&heard),
            "what had arrived is part of the talk"
        );
    }
}

#[test]
fn ctrl_c_on_a_terminal_gives_the_floor_back() {
    let cast = cast();
    cast.does("ada", SLOW);
    let mut terminal = cast.open(&[]);
    terminal.sees("Ann> ", 1);
    terminal.types("[NEXT: ada, ben] go\n");
    terminal.sees("line 1", 1);
    terminal.types(CTRL_C);
    terminal.sees("ada was cut off; ben does not get to speak", 1);
    terminal.sees("Ann> ", 2);
    assert_eq!(cast.asked("ben"), 0);
    until("no process is left", || {
        agents_of(&cast.home).is_empty().then_some(())
    });
    terminal.types("/queue\n");
    terminal.sees("the queue is empty", 1);
    terminal.types("[NEXT: ben] and you?\n");
    terminal.sees(WELL, 1);
    terminal.sees("Ann> ", 4);
    terminal.types(CTRL_C);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 130, "{shown}");
    let said = cast.messages("@");
    assert_eq!(speakers(&said), ["ann", "ada", "ann", "ben"]);
    assert_eq!(said[1]["interrupted"], true);
    assert!(cast.prompt("ben").contains("Ada: line 0\nline 1"));
}

#[test]
fn after_a_kill_it_is_said_who_was_cut_off_and_who_was_not_heard() {
    for backend in [Backend::Sqlite, Backend::Files] {
        killed_in_the_middle(&Cast::in_home(
            Home::with(backend),
            &["ada", "ben", "cleo"],
            &["ann"],
        ));
    }
}

fn killed_in_the_middle(cast: &Cast) {
    cast.says("ada", "Ada is first.");
    cast.does("ben", SLOW);
    let mut talk = cast.start(&["[NEXT: ada, ben, cleo] [TEAM_TASK: Count] go"]);
    let id = talk.until("session.started")["session_id"].clone();
    while talk.until("turn.started")["speaker"] != "ben" {}
    let seen = talk.speaking_for(Duration::from_millis(100));
    until_kept(
        &cast.home.store_url(),
        id.as_str().unwrap(),
        seen.trim_end(),
    );
    // He is still speaking when the program is killed.
    talk.until("text");
    talk.kill();
    sweep(&cast.home);
    let output = cast.run(&["-c", "[NEXT: cleo] go on"]).ok();
    let output = output.notes("Ben was cut off in the middle");
    output.notes("exited: cleo").says("Cleo speaks.");
    let said = cast.messages("@");
    assert_eq!(speakers(&said), ["ann", "ada", "ben", "ann", "cleo"]);
    assert_eq!(said[2]["interrupted"], true);
    let kept = said[2]["content"].as_str().unwrap();
    assert!(kept.starts_with(seen.trim_end()), "{kept:?} has {seen:?}");
    let prompt = cast.prompt("cleo");
    for words in ["Count", "Ada is first.", seen.trim_end(), "go on"] {
        assert!(prompt.contains(words), "{words:?} in {prompt}");
    }
    // Reported once.
    cast.run(&["-c", "[NEXT: ada] more"])
        .ok()
        .lacks("cut off")
        .lacks("still queued");
    cast.home.run(&["doctor"]).ok();
}

/// No message of an agent yet.
#[test]
fn after_a_kill_before_the_first_word_all_are_unheard() {
    let cast = cast();
    cast.does("ada", "echo here > began; sleep 1000");
    let talk = cast.start(&["[NEXT: ada, ben] go"]);
    let began = cast.home.path().join("cast/ada/began");
    until("Ada is asked", || fs::exists(&began).unwrap().then_some(()));
    talk.kill();
    let output = cast.run(&["-c", "[NEXT: ben] go on"]).ok();
    output.notes("exited: ada, ben").says(WELL);
    until("Ada's process is gone", || {
        agents_of(&cast.home).is_empty().then_some(())
    });
}

/// Hints name the team file's limit, and the agent's name rather than the member's.
#[test]
fn hints_name_what_there_is() {
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.change_member("ada", |ada| ada["name"] = json!("member"));
    let check = |cast: &Cast, hint: &str| {
        let output = cast.run(&["[NEXT: member] go"]).code(6).notes(hint);
        output.lacks("[agents.member]").lacks("or --agent");
    };
    cast.does("ada", "exit 3");
    check(&cast, "hint: `tertulia team check CONFIG` shows");
    cast.does("ada", "exec sleep 1000");
    cast.change(|document| document["conversation"] = json!({"maxAgentResponseTime": 1000}));
    check(
        &cast,
        "`maxAgentResponseTime` in the team file sets how long",
    );
    cast.change(|document| document["conversation"] = json!({"maxAgentResponseTime": 60_000}));
    let settings = cast.home.path().join(".config/tertulia/config.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    for setting in ["idle_timeout", "timeout"] {
        let line = format!("[agents.ada]\n{setting} = \"1s\"\n");
        fs::write(&settings, text.replace("[agents.ada]\n", &line)).unwrap();
        check(&cast, &format!("`{setting}` in [agents.ada] sets how long"));
    }
    text.push_str("[agents.gone]\ncommand = \"/no/such/program\"\n");
    fs::write(&settings, text).unwrap();
    cast.change_member("member", |member| member["agentType"] = json!("gone"));
    check(&cast, "set `command` in [agents.gone]");
    cast.change(|document| document["agents"] = json!([{"name": "lost", "command": "/no/such"}]));
    cast.change_member("member", |member| member["agentType"] = json!("lost"));
    check(
        &cast,
        "change `command` of the agent 'lost' in the team file",
    );
}
